/* Places of virtual registers in a frame: registers that are never live together share a place, so that a warp's frame
 * stays in cache. A register is live from its first to its last mention in the text, and through every loop (the span
 * of a backward branch) that this touches; but not where it is defined first and then used with no branch target in
 * between, as most are. Lanes may be at different pcs, but each lane's part of a place belongs to that lane's own path.
 */
#include "ptx/parse.h"

#include <stdlib.h>

struct loop {
    uint32_t first, last;
};

/* Is the mention of `reg` by the op at `at` its definition in all lanes that run the op? */
static bool defines(const struct ptx_parser *p, uint32_t at, uint32_t reg) {
    const struct gpusim_op *op = &p->ops[at];
    if (op->guard || op->a == reg || op->b == reg || op->c == reg) return false;
    if (op->d == reg) return true;
    uint32_t targets = op->cls == GPUSIM_CLASS_LOAD || op->cls == GPUSIM_CLASS_MATRIX_LOAD ? op->n_list
                       : op->cls == GPUSIM_CLASS_MMA                                       ? op->size
                                                                                           : 0;
    if (p->list_kinds[at] != PTX_LIST_REGISTERS || !op->list) return false;
    bool found = false;
    for (uint32_t k = 0; k < op->n_list; k++) {
        if (op->list[k] != reg) continue;
        if (k >= targets) return false;
        found = true;
    }
    return found;
}

/* Extends lives over loops until nothing changes. n_targets[i]: how many ops up to i are branch targets. */
static void extend(struct ptx_parser *p, const struct loop *loops, uint32_t n_loops, const uint32_t *n_targets) {
    for (uint32_t r = 0; r < p->n_registers; r++) {
        struct ptx_register *reg = &p->registers[r];
        if (reg->constant || !reg->lane_words || reg->first == UINT32_MAX) continue;
        if (n_targets[reg->first] == n_targets[reg->last] && defines(p, reg->first, r)) continue;
        for (bool changed = true; changed;) {
            changed = false;
            for (uint32_t l = 0; l < n_loops; l++) {
                const struct loop *loop = &loops[l];
                if (reg->last < loop->first || reg->first > loop->last) continue;
                if (reg->first > loop->first) reg->first = loop->first, changed = true;
                if (reg->last < loop->last) reg->last = loop->last, changed = true;
            }
        }
    }
}

static uint32_t find_loops(const struct ptx_parser *p, struct loop *loops, uint32_t *n_targets) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_references; i++) {
        const struct ptx_reference *r = &p->references[i];
        if (r->op == UINT32_MAX) continue;
        const struct gpusim_op *op = &p->ops[r->op];
        uint32_t target = r->list_index < 0 ? (uint32_t)op->imm : op->list[r->list_index];
        if (target < p->n_ops) n_targets[target] = 1;
        if (target <= r->op) loops[n++] = (struct loop){target, r->op};
    }
    for (uint32_t at = 1; at < p->n_ops; at++) n_targets[at] += n_targets[at - 1];
    return n;
}

/* Free places of one width, and the registers that hold places now, as lists through ptx_register.next_constant. */
struct pool {
    uint32_t free_words[4096], n_free, live;
};

static bool scan(struct ptx_parser *p, uint32_t *word, uint32_t *starts, uint32_t *ends, struct pool pools[2]) {
    uint32_t most = 0;
    for (uint32_t r = 0; r < p->n_registers; r++) { /* lists of what starts and ends at each op */
        struct ptx_register *reg = &p->registers[r];
        if (reg->constant || !reg->lane_words || reg->first == UINT32_MAX) continue;
        reg->next_start = starts[reg->first], starts[reg->first] = r;
        reg->next_end = ends[reg->last], ends[reg->last] = r;
    }
    for (uint32_t at = 0; at < p->n_ops; at++) {
        for (uint32_t r = starts[at]; r; r = p->registers[r].next_start) {
            struct ptx_register *reg = &p->registers[r];
            struct pool *pool = &pools[reg->lane_words - 1];
            pool->live++;
            if (pool->n_free) {
                reg->word = pool->free_words[--pool->n_free];
            } else {
                reg->word = *word;
                *word += GPUSIM_WARP * reg->lane_words;
            }
        }
        uint32_t live = pools[0].live + 2 * pools[1].live;
        most = live > most ? live : most;
        for (uint32_t r = ends[at]; r; r = p->registers[r].next_end) {
            struct pool *pool = &pools[p->registers[r].lane_words - 1];
            pool->live--;
            if (pool->n_free < 4096) pool->free_words[pool->n_free++] = p->registers[r].word;
        }
    }
    /* An estimate of what ptxas would give: it needs some for addresses and never less than 16. */
    most += 8;
    p->function->registers = most < 16 ? 16 : most > 255 ? 255 : most;
    return true;
}

bool ptx_allocate(struct ptx_parser *p, uint32_t *word) {
    struct loop *loops = calloc(p->n_references + 1, sizeof *loops);
    uint32_t *starts = calloc(3 * ((size_t)p->n_ops + 1), sizeof *starts);
    struct pool *pools = calloc(2, sizeof *pools);
    bool ok = loops && starts && pools;
    if (ok) {
        uint32_t *n_targets = starts + 2 * ((size_t)p->n_ops + 1), n_loops = find_loops(p, loops, n_targets);
        extend(p, loops, n_loops, n_targets);
        ok = scan(p, word, starts, starts + p->n_ops + 1, pools);
    } else
        ptx_fail(p, "out of memory");
    free(loops);
    free(starts);
    free(pools);
    return ok;
}
