/* Names, scopes, virtual registers, types. */
#include "ptx/parse.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash(const char *name, size_t n) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)name[i]) * 16777619u;
    return h % PTX_BUCKETS;
}

static struct ptx_symbol *find_exact(struct ptx_parser *p, const char *name, size_t n, bool range) {
    for (struct ptx_symbol *s = p->buckets[hash(name, n)]; s; s = s->next)
        if (!strncmp(s->name, name, n) && !s->name[n] && (s->kind == PTX_REGISTER_RANGE) == range) return s;
    return NULL;
}

struct ptx_symbol *ptx_find(struct ptx_parser *p, const char *name, size_t n, uint32_t *number) {
    struct ptx_symbol *s = find_exact(p, name, n, false);
    *number = 0;
    if (s) return s;
    /* %r12 of .reg .b32 %r<100>: any split of the trailing digits will do */
    size_t digits = n;
    while (digits && name[digits - 1] >= '0' && name[digits - 1] <= '9') digits--;
    if (n - digits > 10) digits = n - 10; /* a number of a register has no more */
    for (size_t at = digits; at < n; at++) {
        uint64_t value = 0;
        for (size_t k = at; k < n && value < UINT32_MAX; k++) value = value * 10 + (uint64_t)(name[k] - '0');
        s = find_exact(p, name, at, true);
        if (s && value < s->count) {
            *number = (uint32_t)value;
            return s;
        }
    }
    return NULL;
}

struct ptx_symbol *ptx_declare(struct ptx_parser *p, enum ptx_symbol_kind kind, const char *name, size_t n) {
    struct ptx_symbol *s = gpusim_module_alloc(p->module, sizeof *s);
    if (!s || !(s->name = ptx_copy(p, name, n))) return NULL;
    s->kind = kind;
    s->vec = 1;
    s->scope = p->scopes[p->depth];
    struct ptx_symbol **bucket = &p->buckets[hash(name, n)];
    s->next = *bucket;
    *bucket = s;
    return s;
}

bool ptx_open_scope(struct ptx_parser *p) {
    if (p->depth + 1 == PTX_MAX_SCOPES_DEEP) return ptx_fail(p, "blocks nested deeper than %d", PTX_MAX_SCOPES_DEEP);
    if (!ptx_grow(p, (void **)&p->scope_parent, p->n_scopes + 1, &p->n_scope_parent, sizeof *p->scope_parent))
        return false;
    uint32_t scope = ++p->n_scopes;
    p->scope_parent[scope] = p->scopes[p->depth];
    p->scopes[++p->depth] = scope;
    return true;
}

void ptx_close_scope(struct ptx_parser *p) {
    uint32_t scope = p->scopes[p->depth--];
    for (uint32_t b = 0; b < PTX_BUCKETS; b++)
        for (struct ptx_symbol **link = &p->buckets[b]; *link;)
            if ((*link)->scope == scope)
                *link = (*link)->next;
            else
                link = &(*link)->next;
}

uint32_t ptx_new_register(struct ptx_parser *p, uint8_t type) {
    if (!ptx_grow(p, (void **)&p->registers, p->n_registers, &p->registers_reserved, sizeof *p->registers)) return 0;
    p->registers[p->n_registers] =
        (struct ptx_register){.type = type, .lane_words = ptx_lane_words(type), .first = UINT32_MAX};
    return p->n_registers++;
}

uint32_t ptx_constant(struct ptx_parser *p, uint8_t lane_words, uint64_t value) {
    if (lane_words < 2) value &= UINT32_MAX;
    uint32_t bucket = (uint32_t)((value * 0x9e3779b97f4a7c15ull) >> 56);
    for (uint32_t r = p->constants[bucket]; r; r = p->registers[r].next_constant)
        if (p->registers[r].value == value && p->registers[r].lane_words == lane_words) return r;
    uint32_t r = ptx_new_register(p, lane_words == 2 ? GPUSIM_T_B64 : lane_words ? GPUSIM_T_B32 : GPUSIM_T_PRED);
    if (!r) return 0;
    p->registers[r].constant = true;
    p->registers[r].value = value;
    p->registers[r].next_constant = p->constants[bucket];
    p->constants[bucket] = r;
    return r;
}

static const struct {
    const char *name;
    uint8_t bytes, lane_words;
} types[GPUSIM_N_TYPES] = {
    [GPUSIM_T_NONE] = {"?", 0, 0},        [GPUSIM_T_B8] = {"b8", 1, 1},         [GPUSIM_T_U8] = {"u8", 1, 1},
    [GPUSIM_T_S8] = {"s8", 1, 1},         [GPUSIM_T_B16] = {"b16", 2, 1},       [GPUSIM_T_U16] = {"u16", 2, 1},
    [GPUSIM_T_S16] = {"s16", 2, 1},       [GPUSIM_T_B32] = {"b32", 4, 1},       [GPUSIM_T_U32] = {"u32", 4, 1},
    [GPUSIM_T_S32] = {"s32", 4, 1},       [GPUSIM_T_B64] = {"b64", 8, 2},       [GPUSIM_T_U64] = {"u64", 8, 2},
    [GPUSIM_T_S64] = {"s64", 8, 2},       [GPUSIM_T_F16] = {"f16", 2, 1},       [GPUSIM_T_F16X2] = {"f16x2", 4, 1},
    [GPUSIM_T_BF16] = {"bf16", 2, 1},     [GPUSIM_T_BF16X2] = {"bf16x2", 4, 1}, [GPUSIM_T_F32] = {"f32", 4, 1},
    [GPUSIM_T_F64] = {"f64", 8, 2},       [GPUSIM_T_TF32] = {"tf32", 4, 1},     [GPUSIM_T_B128] = {"b128", 16, 0},
    [GPUSIM_T_PRED] = {"pred", 0, 0},     [GPUSIM_T_U16X2] = {"u16x2", 4, 1},   [GPUSIM_T_S16X2] = {"s16x2", 4, 1},
    [GPUSIM_T_E4M3X2] = {"e4m3x2", 2, 1}, [GPUSIM_T_E5M2X2] = {"e5m2x2", 2, 1},
};

uint8_t ptx_type(const char *name) {
    for (uint8_t t = 1; t < GPUSIM_N_TYPES; t++)
        if (!strcmp(types[t].name, name)) return t;
    return GPUSIM_T_NONE;
}
uint32_t ptx_type_bytes(uint8_t type) { return types[type].bytes; }
uint8_t ptx_lane_words(uint8_t type) { return types[type].lane_words; }
const char *ptx_type_name(uint8_t type) { return types[type].name; }
