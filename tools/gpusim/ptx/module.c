/* A module: its directives and functions. */
#include "ptx/parse.h"
#include "exec/memory.h"

#include <stdlib.h>
#include <string.h>

void *gpusim_module_alloc(struct gpusim_module *module, size_t bytes) {
    if (module->n_blocks == module->n_blocks_reserved) {
        uint32_t reserved = module->n_blocks_reserved ? module->n_blocks_reserved * 2 : 1024;
        void **blocks = realloc(module->blocks, reserved * sizeof *blocks);
        if (!blocks) return NULL;
        module->blocks = blocks;
        module->n_blocks_reserved = reserved;
    }
    void *block = calloc(1, bytes ? bytes : 1);
    if (block) module->blocks[module->n_blocks++] = block;
    return block;
}

void gpusim_module_free(struct gpusim_module *module) {
    if (!module) return;
    for (uint32_t v = 0; v < module->n_variables; v++)
        gpusim_memory_free(gpusim_memory_find(module->variables[v].address));
    for (uint32_t b = 0; b < module->n_blocks; b++) free(module->blocks[b]);
    free(module->blocks);
    free(module->variables);
    free(module->functions);
    free(module->files);
    free(module);
}

static bool skip_to(struct ptx_parser *p, const char *end) {
    while (!ptx_is(p, end) && p->token != PTX_END)
        if (!ptx_next(p)) return false;
    return ptx_expect(p, end);
}

static bool file(struct ptx_parser *p) { /* .file N "name" [, time, size] */
    struct gpusim_module *m = p->module;
    uint64_t index, unused;
    double real;
    bool is_float;
    if (!ptx_number(p, &index, &real, &is_float)) return false;
    if (p->token != PTX_STRING || index > 65535) return ptx_fail(p, ".file: expected a number and a name");
    if (index >= m->n_files) {
        char **grown = realloc(m->files, (index + 1) * sizeof *grown);
        if (!grown) return ptx_fail(p, "out of memory");
        memset(grown + m->n_files, 0, (index + 1 - m->n_files) * sizeof *grown);
        m->files = grown;
        m->n_files = (uint32_t)index + 1;
    }
    if (!(m->files[index] = ptx_copy(p, p->start + 1, p->length - 2)) || !ptx_next(p)) return false;
    while (ptx_accept(p, ","))
        if (!ptx_number(p, &unused, &real, &is_float)) return false;
    return true;
}

static bool launch_bounds(struct ptx_parser *p, uint32_t *out, int n) {
    double real;
    bool is_float;
    for (int i = 0; i < n; i++) {
        uint64_t value = 1;
        if (i && !ptx_accept(p, ",")) {
            out[i] = 1;
            continue;
        }
        if (!ptx_number(p, &value, &real, &is_float)) return false;
        out[i] = (uint32_t)value;
    }
    return true;
}

static bool performance(struct ptx_parser *p, struct gpusim_function *f) {
    uint32_t ignored[3];
    for (;;) {
        if (ptx_accept(p, ".maxntid")) {
            if (!launch_bounds(p, f->max_ntid, 3)) return false;
        } else if (ptx_accept(p, ".reqntid")) {
            if (!launch_bounds(p, f->req_ntid, 3)) return false;
        } else if (ptx_accept(p, ".minnctapersm")) {
            if (!launch_bounds(p, &f->min_nctapersm, 1)) return false;
        } else if (ptx_accept(p, ".maxnreg") || ptx_accept(p, ".maxnctapersm")) {
            if (!launch_bounds(p, ignored, 1)) return false;
        } else if (ptx_accept(p, ".noreturn")) {
            continue;
        } else if (ptx_accept(p, ".pragma")) {
            if (!skip_to(p, ";")) return false;
        } else
            return true;
    }
}

static uint8_t builtin(const char *name) {
    if (!strcmp(name, "vprintf")) return GPUSIM_BUILTIN_VPRINTF;
    if (!strcmp(name, "__assertfail")) return GPUSIM_BUILTIN_ASSERTFAIL;
    if (!strcmp(name, "malloc")) return GPUSIM_BUILTIN_MALLOC;
    if (!strcmp(name, "free")) return GPUSIM_BUILTIN_FREE;
    return GPUSIM_BUILTIN_NONE;
}

static struct gpusim_function *declare(struct ptx_parser *p, const char *name, size_t n, bool kernel) {
    uint32_t number;
    struct ptx_symbol *s = ptx_find(p, name, n, &number);
    if (s && s->kind == PTX_FUNCTION) {
        if (s->function->defined) return ptx_fail(p, "function %s is defined twice", s->name), NULL;
        return s->function;
    }
    struct gpusim_module *m = p->module;
    struct gpusim_function **grown = realloc(m->functions, (m->n_functions + 1) * sizeof *grown);
    if (grown) m->functions = grown;
    struct gpusim_function *f = gpusim_module_alloc(m, sizeof *f);
    if (!grown || !f || !(s = ptx_declare(p, PTX_FUNCTION, name, n))) return ptx_fail(p, "out of memory"), NULL;
    m->functions[m->n_functions++] = f;
    s->function = f;
    f->name = s->name;
    f->module = m;
    f->kernel = kernel;
    f->builtin = builtin(f->name);
    return f;
}

static bool begin(struct ptx_parser *p) {
    p->n_ops = p->n_registers = p->n_labels = p->n_references = 0;
    p->local_bytes = p->source = 0;
    p->shared_bytes = p->shared_module_bytes;
    memset(p->constants, 0, sizeof p->constants);
    uint32_t always = ptx_new_register(p, GPUSIM_T_PRED), carry;
    if (p->n_registers != 1 || always) return false;
    carry = ptx_new_register(p, GPUSIM_T_PRED);
    p->sink_pred = ptx_new_register(p, GPUSIM_T_PRED);
    p->sink32 = ptx_new_register(p, GPUSIM_T_B32);
    p->sink64 = ptx_new_register(p, GPUSIM_T_B64);
    return carry && p->sink_pred && p->sink32 && p->sink64;
}

static bool same_params(const struct gpusim_param *a, uint32_t n_a, const struct gpusim_param *b, uint32_t n_b) {
    bool same = n_a == n_b;
    for (uint32_t k = 0; same && k < n_a; k++)
        same = a[k].bytes == b[k].bytes && a[k].offset == b[k].offset && a[k].lane_words == b[k].lane_words;
    return same;
}

static bool function(struct ptx_parser *p, bool kernel) {
    if (!begin(p) || !ptx_open_scope(p)) return ptx_fail(p, "out of memory");
    struct gpusim_function unnamed = {.kernel = kernel}, *f;
    p->function = &unnamed;
    struct gpusim_param *returns = NULL, *params = NULL;
    uint32_t n_returns = 0, n_params = 0;
    if (ptx_accept(p, "(") && !ptx_params(p, &unnamed, true, &returns, &n_returns)) return false;
    if (p->token != PTX_WORD) return ptx_fail(p, "function without a name");
    const char *name = p->start;
    size_t n = p->length;
    if (!ptx_next(p)) return false;
    if (ptx_accept(p, "(") && !ptx_params(p, &unnamed, false, &params, &n_params)) return false;
    /* The name belongs to the module, not to the scope of its parameters. */
    uint32_t depth = p->depth, number;
    p->depth = 0;
    bool before = ptx_find(p, name, n, &number);
    f = declare(p, name, n, kernel);
    p->depth = depth;
    if (!f || !performance(p, f)) return false;
    if (before && (f->kernel != kernel || !same_params(f->returns, f->n_returns, returns, n_returns) ||
                   !same_params(f->params, f->n_params, params, n_params)))
        return ptx_fail(p, "function %s: its declarations differ", f->name); /* calls were decoded by the first */
    f->returns = returns, f->n_returns = n_returns;
    f->params = params, f->n_params = n_params, f->param_bytes = unnamed.param_bytes;
    p->function = f;
    bool ok = true;
    if (ptx_is(p, "{")) {
        f->defined = true;
        ok = ptx_body(p) && ptx_finish(p);
    } else
        ok = ptx_expect(p, ";");
    p->function = NULL;
    if (ok) ptx_close_scope(p);
    return ok;
}

static bool top(struct ptx_parser *p) {
    bool external = false;
    while (ptx_is(p, ".extern") || ptx_is(p, ".visible") || ptx_is(p, ".weak") || ptx_is(p, ".common")) {
        external |= ptx_is(p, ".extern");
        if (!ptx_next(p)) return false;
    }
    char word[32] = "";
    if (p->token == PTX_WORD && p->length < sizeof word) memcpy(word, p->start, p->length);
    if (ptx_accept(p, ";")) return true;
    if (!ptx_next(p)) return false;
    if (!strcmp(word, ".entry")) return function(p, true);
    if (!strcmp(word, ".func")) {
        while (ptx_accept(p, ".noreturn")) {
        }
        return function(p, false);
    }
    if (!strcmp(word, ".global") || !strcmp(word, ".const") || !strcmp(word, ".shared"))
        return ptx_variable(p, word, external);
    if (!strcmp(word, ".file")) return file(p);
    if (!strcmp(word, ".version") || !strcmp(word, ".address_size")) return ptx_next(p);
    if (!strcmp(word, ".target")) {
        do {
            if (ptx_is(p, "debug")) continue;
        } while (ptx_next(p) && ptx_accept(p, ","));
        return true;
    }
    if (!strcmp(word, ".section"))
        return (p->token != PTX_WORD || ptx_next(p)) && ptx_expect(p, "{") && skip_to(p, "}");
    if (!strcmp(word, ".alias") || !strcmp(word, ".pragma")) {
        if (word[1] == 'a') return ptx_fail(p, ".alias is not supported");
        return skip_to(p, ";");
    }
    return ptx_fail(p, "'%s' is not supported at module level", word[0] ? word : "this");
}

struct gpusim_module *gpusim_module_load(const char *text, size_t n, int device, struct gpusim_message *message) {
    struct gpusim_module *m = calloc(1, sizeof *m);
    struct ptx_parser *p = calloc(1, sizeof *p);
    message->text[0] = 0;
    bool ok = m && p && (m->text = gpusim_module_alloc(m, n + 1));
    if (ok) {
        memcpy(m->text, text, n);
        m->text_bytes = n;
        m->device = device;
        p->module = m;
        p->message = message;
        p->at = m->text;
        p->end = m->text + n;
        p->line = 1;
        ok = ptx_grow(p, (void **)&p->scope_parent, 0, &p->n_scope_parent, sizeof *p->scope_parent) && ptx_next(p);
        if (ok) p->scope_parent[0] = 0;
        while (ok && p->token != PTX_END) ok = top(p);
        free(p->ops), free(p->list_kinds), free(p->registers), free(p->labels), free(p->references),
            free(p->scope_parent);
    } else
        gpusim_set(message, "out of memory");
    free(p);
    if (ok) return m;
    if (m) gpusim_module_free(m);
    return NULL;
}
