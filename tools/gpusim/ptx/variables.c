/* Declarations: .reg, variables of all spaces with initialisers, parameters. */
#include "ptx/parse.h"
#include "exec/memory.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SHARED = 1 << 20, MAX_LOCAL = 512 << 10, MAX_PARAMS = 32764, MAX_REGISTERS = 1 << 20, MAX_BRACES = 16 };

static uint64_t round_up(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

/* Words like ".align", ".b8", ".v2" before the name; a word may hold several (".reg.b32"). */
struct attributes {
    uint64_t align;
    uint8_t type, vec;
    bool pointer; /* .ptr of kernel parameters */
};

static bool attribute(struct ptx_parser *p, const char *text, struct attributes *a) {
    uint8_t type = ptx_type(text);
    if (type)
        a->type = type;
    else if (!strcmp(text, "v2"))
        a->vec = 2;
    else if (!strcmp(text, "v4"))
        a->vec = 4;
    else if (!strcmp(text, "ptr"))
        a->pointer = true;
    else if (!strcmp(text, "global") || !strcmp(text, "shared") || !strcmp(text, "local") || !strcmp(text, "const") ||
             !strcmp(text, "noreturn"))
        return true;
    else
        return ptx_fail(p, "declaration: '.%s' is not supported", text);
    return true;
}

static bool attributes(struct ptx_parser *p, struct attributes *a) {
    *a = (struct attributes){.vec = 1};
    while (p->token == PTX_WORD && p->start[0] == '.') {
        char word[64];
        if (p->length >= sizeof word) return ptx_fail(p, "declaration: word too long");
        memcpy(word, p->start, p->length);
        word[p->length] = 0;
        if (!ptx_next(p)) return false;
        if (!strcmp(word, ".align")) {
            double real;
            bool is_float;
            if (!ptx_number(p, &a->align, &real, &is_float)) return false;
            if (!a->align || a->align & (a->align - 1) || a->align > 4096)
                return ptx_fail(p, ".align: expected a power of two");
            if (a->pointer) a->align = 0; /* what the pointer points to */
            continue;
        }
        for (char *save = NULL, *part = strtok_r(word, ".", &save); part; part = strtok_r(NULL, ".", &save))
            if (!attribute(p, part, a)) return false;
    }
    if (!a->type) return ptx_fail(p, "declaration without a type");
    if (!a->align) a->align = ptx_type_bytes(a->type) * a->vec;
    return true;
}

bool ptx_registers(struct ptx_parser *p) {
    struct attributes a;
    if (!attributes(p, &a)) return false;
    bool pair = a.type == GPUSIM_T_B128; /* two registers of 64 bits, low half first */
    if (pair && a.vec > 1) return ptx_fail(p, ".reg: vector of .b128");
    if (pair) a.vec = 2;
    do {
        if (p->token != PTX_WORD) return ptx_fail(p, ".reg: expected a name");
        const char *name = p->start;
        size_t n = p->length;
        uint64_t count = 1;
        bool range = false;
        if (!ptx_next(p)) return false;
        if (ptx_accept(p, "<")) {
            double real;
            bool is_float;
            range = true;
            if (!ptx_number(p, &count, &real, &is_float) || !ptx_expect(p, ">")) return false;
        }
        if (count > MAX_REGISTERS || p->n_registers + count * a.vec > MAX_REGISTERS)
            return ptx_fail(p, ".reg: more than %d registers in a function", MAX_REGISTERS);
        struct ptx_symbol *s = ptx_declare(p, range ? PTX_REGISTER_RANGE : PTX_REGISTER, name, n);
        if (!s) return false;
        s->type = a.type;
        s->vec = a.vec;
        s->count = (uint32_t)count;
        s->reg = p->n_registers;
        for (uint64_t i = 0; i < count * a.vec; i++)
            if (!ptx_new_register(p, pair ? GPUSIM_T_B64 : a.type)) return false;
    } while (ptx_accept(p, ","));
    return ptx_expect(p, ";");
}

/* [N][M]... ; *elements gets the product, 0 for []. */
static bool dimensions(struct ptx_parser *p, uint64_t *elements, bool *array) {
    *elements = 1;
    *array = false;
    while (ptx_accept(p, "[")) {
        *array = true;
        uint64_t n = 0;
        double real;
        bool is_float;
        if (!ptx_is(p, "]") && !ptx_number(p, &n, &real, &is_float)) return false;
        if (n > (1ull << 40) || (n && *elements > (1ull << 40) / n)) return ptx_fail(p, "array too large");
        *elements *= n;
        if (!ptx_expect(p, "]")) return false;
    }
    return true;
}

struct initialiser {
    uint8_t *bytes;
    uint64_t n, at;
    uint8_t type;
    int depth; /* of braces */
};

static bool put(struct ptx_parser *p, struct initialiser *init, uint64_t bits, double real, bool is_float,
                bool literal_f32) {
    uint32_t size = ptx_type_bytes(init->type);
    if (size > sizeof bits) return ptx_fail(p, "initialiser: values of 128 bits are not supported");
    if (init->at + size > init->n) return ptx_fail(p, "initialiser: more values than the variable has");
    if (is_float && init->type == GPUSIM_T_F32 && !literal_f32) {
        float value = (float)real;
        memcpy(&bits, &value, 4);
    }
    if (is_float && init->type == GPUSIM_T_F64) memcpy(&bits, &real, 8);
    memcpy(init->bytes + init->at, &bits, size);
    init->at += size;
    return true;
}

static bool value(struct ptx_parser *p, struct initialiser *init) {
    if (ptx_accept(p, "{")) {
        if (++init->depth > MAX_BRACES) return ptx_fail(p, "initialiser: braces nested deeper than %d", MAX_BRACES);
        while (!ptx_is(p, "}"))
            if (!value(p, init) || (!ptx_is(p, "}") && !ptx_expect(p, ","))) return false;
        init->depth--;
        return ptx_expect(p, "}");
    }
    bool minus = ptx_accept(p, "-"), is_float = false, f32 = false;
    uint64_t bits = 0, offset;
    double real = 0;
    if (p->token == PTX_NUMBER) {
        f32 = p->length > 1 && (p->start[1] | 32) == 'f' && p->start[0] == '0';
        if (!ptx_number(p, &bits, &real, &is_float)) return false;
        if (minus) bits = is_float ? bits ^ (f32 ? 0x80000000u : 1ull << 63) : 0 - bits, real = -real;
        return put(p, init, bits, real, is_float, f32);
    }
    bool generic = ptx_accept(p, "generic") && ptx_expect(p, "(");
    uint32_t number;
    struct ptx_symbol *s = p->token == PTX_WORD ? ptx_find(p, p->start, p->length, &number) : NULL;
    if (!s || (s->kind != PTX_VARIABLE && s->kind != PTX_FUNCTION))
        return ptx_fail(p, "initialiser: expected a number or a variable, got '%.*s'", (int)p->length, p->start);
    bits = s->kind == PTX_FUNCTION ? (uint64_t)(uintptr_t)s->function : s->address;
    if (!ptx_next(p) || (generic && !ptx_expect(p, ")"))) return false;
    if (ptx_accept(p, "+")) {
        if (!ptx_number(p, &offset, &real, &is_float)) return false;
        bits += offset;
    }
    return put(p, init, bits, 0, false, false);
}

static bool place_global(struct ptx_parser *p, struct ptx_symbol *s, bool constant) {
    struct gpusim_module *m = p->module;
    if (!s->bytes) return ptx_fail(p, "variable %s: expected its number of elements", s->name);
    struct gpusim_variable *grown = realloc(m->variables, (m->n_variables + 1) * sizeof *grown);
    if (!grown) return ptx_fail(p, "out of memory");
    m->variables = grown;
    struct gpusim_allocation *r =
        gpusim_memory_new(constant ? GPUSIM_MEMORY_CONSTANT : GPUSIM_MEMORY_VARIABLE, m->device, s->bytes, NULL);
    if (!r) return ptx_fail(p, "variable %s: no device memory for %llu bytes", s->name, (unsigned long long)s->bytes);
    r->name = s->name;
    s->address = r->base;
    s->space = constant ? GPUSIM_CONST : GPUSIM_GLOBAL;
    m->variables[m->n_variables++] = (struct gpusim_variable){s->name, r->base, s->bytes, constant};
    return true;
}

static bool place(struct ptx_parser *p, struct ptx_symbol *s, const char *directive, uint64_t align, bool external) {
    if (!strcmp(directive, ".shared")) {
        s->space = GPUSIM_SHARED;
        if (external || !s->bytes) {
            s->base = GPUSIM_BASE_DYNAMIC_SHARED;
            return true;
        }
        uint32_t *used = p->function && p->function->kernel ? &p->shared_bytes : &p->shared_module_bytes;
        s->address = round_up(*used, align);
        if (s->bytes > MAX_SHARED || s->address + s->bytes > MAX_SHARED)
            return ptx_fail(p, "shared variable %s: too large", s->name);
        *used = (uint32_t)(s->address + s->bytes);
        return true;
    }
    if (!strcmp(directive, ".local") || !strcmp(directive, ".param")) {
        s->space = GPUSIM_LOCAL;
        s->base = GPUSIM_BASE_FRAME;
        s->address = round_up(p->local_bytes, align < 4 ? 4 : align);
        if (s->bytes > MAX_LOCAL || s->address + s->bytes > MAX_LOCAL)
            return ptx_fail(p, "local variable %s: too large", s->name);
        p->local_bytes = (uint32_t)(s->address + s->bytes);
        return true;
    }
    if (external)
        return ptx_fail(p, "variable %s: .extern is defined in another module, and modules are not linked", s->name);
    return place_global(p, s, !strcmp(directive, ".const"));
}

bool ptx_variable(struct ptx_parser *p, const char *directive, bool external) {
    struct attributes a;
    if (!attributes(p, &a)) return false;
    do {
        uint64_t elements;
        bool array;
        if (p->token != PTX_WORD) return ptx_fail(p, "%s: expected a name", directive);
        struct ptx_symbol *s = ptx_declare(p, PTX_VARIABLE, p->start, p->length);
        if (!s || !ptx_next(p) || !dimensions(p, &elements, &array)) return false;
        if (!a.align) return ptx_fail(p, "variable %s: a predicate has no memory", s->name);
        s->type = a.type;
        s->vec = a.vec;
        s->bytes = elements * ptx_type_bytes(a.type) * a.vec;
        if (!place(p, s, directive, a.align, external)) return false;
        if (!ptx_accept(p, "=")) continue;
        uint8_t *host = gpusim_memory_at(s->address, s->bytes);
        if (!host) return ptx_fail(p, "variable %s: only .global and .const variables have initialisers", s->name);
        struct initialiser init = {host, s->bytes, 0, a.type, 0};
        if (!value(p, &init)) return false;
    } while (ptx_accept(p, ","));
    return ptx_expect(p, ";");
}

bool ptx_params(struct ptx_parser *p, struct gpusim_function *function, bool returns, struct gpusim_param **params,
                uint32_t *n) {
    uint32_t reserved = 0;
    struct gpusim_param *list = NULL;
    *n = 0;
    while (!ptx_is(p, ")")) {
        struct attributes a;
        uint64_t elements = 1;
        bool array, reg = ptx_is(p, ".reg");
        if (!reg && !ptx_is(p, ".param")) return ptx_fail(p, "parameter: expected .param or .reg");
        if (!ptx_next(p) || !attributes(p, &a) || p->token != PTX_WORD)
            return ptx_fail(p, "parameter: expected a type and a name");
        struct ptx_symbol *s = ptx_declare(p, reg ? PTX_REGISTER : PTX_VARIABLE, p->start, p->length);
        if (!s || !ptx_next(p) || !dimensions(p, &elements, &array)) return false;
        if (*n == reserved) {
            struct gpusim_param *grown = gpusim_module_alloc(p->module, (reserved + 32) * sizeof *grown);
            if (!grown) return ptx_fail(p, "out of memory");
            if (list) memcpy(grown, list, *n * sizeof *grown);
            list = grown;
            reserved += 32;
        }
        if (elements > MAX_PARAMS) return ptx_fail(p, "parameter %s: too large", s->name);
        if (!reg && !a.align) return ptx_fail(p, "parameter %s: a predicate has no memory", s->name);
        struct gpusim_param *param = &list[(*n)++];
        *param = (struct gpusim_param){.bytes = (uint32_t)(elements * ptx_type_bytes(a.type) * a.vec),
                                       .align = (uint32_t)a.align};
        s->type = a.type;
        s->bytes = param->bytes;
        if (reg) {
            s->reg = param->reg = ptx_new_register(p, a.type);
            param->lane_words = ptx_lane_words(a.type);
            if (!s->reg || !param->lane_words) return ptx_fail(p, "parameter %s: this type is not supported", s->name);
        } else if (function->kernel && !returns) {
            param->offset = (uint32_t)round_up(function->param_bytes, a.align);
            if (param->bytes > MAX_PARAMS || param->offset + param->bytes > MAX_PARAMS)
                return ptx_fail(p, "parameters of more than %d bytes", MAX_PARAMS);
            function->param_bytes = param->offset + param->bytes;
            s->space = GPUSIM_PARAM;
            s->address = param->offset;
        } else {
            if (!place(p, s, ".param", a.align, false)) return false;
            param->offset = (uint32_t)s->address;
        }
        if (!ptx_is(p, ")") && !ptx_expect(p, ",")) return false;
    }
    *params = list;
    return ptx_expect(p, ")");
}
