/* The end of a function: labels get their pcs, virtual registers their places in the frame. */
#include "ptx/parse.h"

#include <string.h>

static bool in_scope(const struct ptx_parser *p, uint32_t inner, uint32_t outer) {
    while (inner != outer && inner) inner = p->scope_parent[inner];
    return inner == outer;
}

/* The label of this name in the innermost scope around the reference. */
static bool resolve(struct ptx_parser *p, const struct ptx_reference *r, uint32_t *pc) {
    const struct ptx_label *best = NULL;
    for (uint32_t l = 0; l < p->n_labels; l++) {
        const struct ptx_label *label = &p->labels[l];
        if (strcmp(label->name, r->name) || !in_scope(p, r->scope, label->scope)) continue;
        if (!best || in_scope(p, label->scope, best->scope)) best = label;
    }
    p->token_line = r->line;
    if (!best) return ptx_fail(p, "function %s: no label %s", p->function->name, r->name);
    *pc = best->pc;
    return true;
}

static void mention(struct ptx_parser *p, uint32_t reg, uint32_t op) {
    struct ptx_register *r = &p->registers[reg];
    if (r->first == UINT32_MAX || op < r->first) r->first = op;
    if (op > r->last) r->last = op;
}

/* Calls visit with each register field of an op. */
static void each_register(struct ptx_parser *p, uint32_t at, void (*visit)(struct ptx_parser *, uint32_t *, uint32_t)) {
    struct gpusim_op *op = &p->ops[at];
    visit(p, &op->guard, at);
    visit(p, &op->d, at);
    visit(p, &op->a, at);
    visit(p, &op->b, at);
    visit(p, &op->c, at);
    uint32_t *list = (uint32_t *)(uintptr_t)op->list;
    const struct gpusim_function *callee = op->ref;
    for (uint32_t k = 0; k < op->n_list && list; k++) {
        if (p->list_kinds[at] == PTX_LIST_TARGETS) break;
        if (p->list_kinds[at] == PTX_LIST_CALL) {
            const struct gpusim_param *param =
                k < callee->n_returns ? &callee->returns[k] : &callee->params[k - callee->n_returns];
            if (!param->reg) continue;
        }
        visit(p, &list[k], at);
    }
}

static void visit_mention(struct ptx_parser *p, uint32_t *reg, uint32_t at) { mention(p, *reg, at); }
static void visit_place(struct ptx_parser *p, uint32_t *reg, uint32_t at) {
    (void)at;
    *reg = p->registers[*reg].word;
}

/* Word 0 is the true predicate, 1 the carry flags; then other predicates, then constants as filled lanes (the part that
 * a new frame copies), then registers. */
static bool place_registers(struct ptx_parser *p) {
    struct gpusim_function *f = p->function;
    uint32_t word = 0;
    for (uint32_t r = 0; r < p->n_registers; r++)
        if (!p->registers[r].lane_words) p->registers[r].word = word++;
    word = word < 64 ? 64 : (word + 15) & ~15u; /* 64: fields that an op does not use are 0, and may be read */
    for (uint32_t r = 0; r < p->n_registers; r++) {
        struct ptx_register *reg = &p->registers[r];
        if (!reg->lane_words || !reg->constant) continue;
        reg->word = word;
        word += GPUSIM_WARP * reg->lane_words;
    }
    f->n_constant_words = word;
    if (!ptx_allocate(p, &word)) return false;
    f->frame_words = word;
    f->constants = gpusim_module_alloc(p->module, f->n_constant_words * sizeof(uint32_t));
    if (!f->constants) return ptx_fail(p, "out of memory");
    f->constants[0] = UINT32_MAX;
    for (uint32_t r = 0; r < p->n_registers; r++) {
        const struct ptx_register *reg = &p->registers[r];
        if (!reg->constant) continue;
        if (!reg->lane_words) f->constants[reg->word] = reg->value ? UINT32_MAX : 0;
        for (uint32_t i = 0; i < GPUSIM_WARP && reg->lane_words; i++)
            memcpy(&f->constants[reg->word + i * reg->lane_words], &reg->value, 4u * reg->lane_words);
    }
    return true;
}

bool ptx_finish(struct ptx_parser *p) {
    struct gpusim_function *f = p->function;
    struct ptx_instruction end = {.text = "ret", .full = "ret", .line = p->token_line};
    if (!ptx_decode(p, &end)) return false; /* a body may end without ret */
    for (uint32_t i = 0; i < p->n_references; i++) {
        const struct ptx_reference *r = &p->references[i];
        uint32_t pc = 0;
        if (r->op == UINT32_MAX) continue;
        if (!resolve(p, r, &pc)) return false;
        if (r->list_index < 0)
            p->ops[r->op].imm = pc;
        else
            ((uint32_t *)(uintptr_t)p->ops[r->op].list)[r->list_index] = pc;
    }
    for (uint32_t at = 0; at < p->n_ops; at++) each_register(p, at, visit_mention);
    for (uint32_t k = 0; k < f->n_params; k++)
        mention(p, f->params[k].reg, 0); /* .reg parameters: there from the start */
    for (uint32_t k = 0; k < f->n_returns; k++) mention(p, f->returns[k].reg, p->n_ops - 1);
    if (!place_registers(p)) return false;
    for (uint32_t at = 0; at < p->n_ops; at++) each_register(p, at, visit_place);
    for (uint32_t k = 0; k < f->n_params; k++)
        if (f->params[k].reg) f->params[k].reg = p->registers[f->params[k].reg].word;
    for (uint32_t k = 0; k < f->n_returns; k++)
        if (f->returns[k].reg) f->returns[k].reg = p->registers[f->returns[k].reg].word;
    f->ops = gpusim_module_alloc(p->module, p->n_ops * sizeof *f->ops);
    if (!f->ops) return ptx_fail(p, "out of memory");
    memcpy(f->ops, p->ops, p->n_ops * sizeof *f->ops);
    f->n_ops = p->n_ops;
    f->local_bytes = (p->local_bytes + 15) & ~15u;
    f->shared_bytes = p->shared_bytes;
    return true;
}
