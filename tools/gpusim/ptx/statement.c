/* The body of a function: scopes, declarations, labels, instructions. */
#include "ptx/parse.h"

#include <string.h>

static bool location(struct ptx_parser *p) { /* .loc file line column [, function_name ..., inlined_at ...] */
    uint64_t v[3], at[3];
    double real;
    bool is_float;
    for (int i = 0; i < 3; i++)
        if (!ptx_number(p, &v[i], &real, &is_float)) return false;
    if (v[1]) { /* line 0: no particular line */
        struct gpusim_module *m = p->module;
        struct gpusim_location here = {(uint32_t)v[0], (uint32_t)v[1], 0, 0};
        if (!(m->n_locations & 255)) { /* full: room for 256 more */
            struct gpusim_location *grown = gpusim_module_alloc(m, (m->n_locations + 256) * sizeof *grown);
            if (!grown) return ptx_fail(p, "out of memory");
            if (m->n_locations) memcpy(grown, m->locations, m->n_locations * sizeof *grown);
            m->locations = grown;
            if (!m->n_locations) m->n_locations = 1;
        }
        p->source = m->n_locations;
        m->locations[m->n_locations++] = here;
    }
    while (ptx_accept(p, ",")) {
        if (ptx_accept(p, "function_name")) {
            if (!ptx_next(p)) return false; /* a label in .debug_str */
            if (ptx_accept(p, "+") && !ptx_next(p)) return false;
        } else if (ptx_accept(p, "inlined_at")) {
            for (int i = 0; i < 3; i++)
                if (!ptx_number(p, &at[i], &real, &is_float)) return false;
            if (v[1]) {
                p->module->locations[p->source].at_file = (uint32_t)at[0];
                p->module->locations[p->source].at_line = (uint32_t)at[1];
            }
        } else
            return ptx_fail(p, ".loc: expected function_name or inlined_at");
    }
    return true;
}

static bool label(struct ptx_parser *p, const char *name, size_t n) {
    if (!ptx_grow(p, (void **)&p->labels, p->n_labels, &p->labels_reserved, sizeof *p->labels)) return false;
    char *copy = ptx_copy(p, name, n);
    p->labels[p->n_labels++] = (struct ptx_label){copy, p->scopes[p->depth], p->n_ops};
    return copy;
}

/* NAME: .branchtargets L1, L2 ...;  NAME: .callprototype ...; */
static bool table(struct ptx_parser *p, const char *name, size_t n) {
    bool targets = ptx_is(p, ".branchtargets");
    if (!ptx_next(p)) return false;
    struct ptx_symbol *s = ptx_declare(p, targets ? PTX_TABLE : PTX_PROTOTYPE, name, n);
    if (!s) return false;
    if (!targets) {
        while (!ptx_is(p, ";") && p->token != PTX_END)
            if (!ptx_next(p)) return false;
        return ptx_expect(p, ";");
    }
    s->table_label = p->n_references;
    do {
        if (!ptx_grow(p, (void **)&p->references, p->n_references, &p->references_reserved, sizeof *p->references))
            return false;
        char *target = ptx_copy(p, p->start, p->length);
        if (!target) return false;
        /* op is set when a brx.idx uses the table */
        p->references[p->n_references++] =
            (struct ptx_reference){target, p->scopes[p->depth], UINT32_MAX, p->token_line, (int32_t)s->n_table};
        s->n_table++;
        if (!ptx_next(p)) return false;
    } while (ptx_accept(p, ","));
    return ptx_expect(p, ";");
}

static bool instruction(struct ptx_parser *p) {
    static _Thread_local struct ptx_instruction ins;
    ins.n_mods = ins.n_operands = ins.n_elements = ins.guard = ins.guard_xor = 0;
    ins.line = p->token_line;
    if (ptx_accept(p, "@")) {
        if (ptx_accept(p, "!")) ins.guard_xor = UINT32_MAX;
        uint32_t number;
        struct ptx_symbol *s = p->token == PTX_WORD ? ptx_find(p, p->start, p->length, &number) : NULL;
        if (!s || s->type != GPUSIM_T_PRED) return ptx_fail(p, "guard: expected a predicate");
        ins.guard = s->reg + number;
        if (!ptx_next(p)) return false;
    }
    if (p->token != PTX_WORD || p->length >= sizeof ins.text)
        return ptx_fail(p, "expected an instruction, got '%.*s'", (int)(p->length < 60 ? p->length : 60), p->start);
    memcpy(ins.text, p->start, p->length);
    ins.text[p->length] = 0;
    strcpy(ins.full, ins.text);
    for (char *dot = ins.text; (dot = strchr(dot, '.')); dot++) {
        *dot = 0;
        if (ins.n_mods == PTX_MAX_MODS) return ptx_fail(p, "%s: too many modifiers", ins.full);
        ins.mods[ins.n_mods++] = dot + 1;
    }
    return ptx_known(p, &ins) && ptx_next(p) && ptx_operands(p, &ins) && ptx_decode(p, &ins);
}

static bool directive(struct ptx_parser *p) {
    char word[32];
    if (p->length >= sizeof word) return ptx_fail(p, "unknown directive");
    memcpy(word, p->start, p->length);
    word[p->length] = 0;
    if (!strncmp(word, ".reg.", 5)) { /* .reg.b32 r; as inline assembly has it */
        p->at = p->start + 4;
        return ptx_next(p) && ptx_registers(p);
    }
    if (!ptx_next(p)) return false;
    if (!strcmp(word, ".reg")) return ptx_registers(p);
    if (!strcmp(word, ".loc")) return location(p);
    if (!strcmp(word, ".shared") || !strcmp(word, ".local") || !strcmp(word, ".param") || !strcmp(word, ".global") ||
        !strcmp(word, ".const"))
        return ptx_variable(p, word, false);
    if (!strcmp(word, ".pragma")) {
        while (!ptx_is(p, ";") && p->token != PTX_END)
            if (!ptx_next(p)) return false;
        return ptx_expect(p, ";");
    }
    return ptx_fail(p, "directive '%s' is not supported in a function", word);
}

static bool statement(struct ptx_parser *p) {
    if (p->token == PTX_WORD && p->start[0] == '.') return directive(p);
    if (p->token == PTX_WORD) { /* a label? */
        const char *name = p->start, *at = p->at;
        size_t n = p->length;
        while (at < p->end && (*at == ' ' || *at == '\t')) at++;
        if (at < p->end && *at == ':') {
            if (!ptx_next(p) || !ptx_next(p)) return false;
            if (ptx_is(p, ".branchtargets") || ptx_is(p, ".callprototype")) return table(p, name, n);
            return label(p, name, n);
        }
    }
    return ptx_accept(p, ";") || instruction(p);
}

bool ptx_body(struct ptx_parser *p) {
    uint32_t outer = p->depth;
    if (!ptx_expect(p, "{") || !ptx_open_scope(p)) return false;
    while (p->depth > outer) {
        if (p->token == PTX_END) return ptx_fail(p, "a function without its end");
        if (ptx_accept(p, "{")) {
            if (!ptx_open_scope(p)) return false;
        } else if (ptx_is(p, "}")) {
            ptx_close_scope(p);
            if (!ptx_next(p)) return false;
        } else if (!statement(p))
            return false;
    }
    return true;
}
