/* NF4 weights of bitsandbytes: WEIGHT (two codes a byte), WEIGHT.absmax, .quant_map, .quant_state.bitsandbytes__nf4
 * (JSON), and where the scales are quantised too .nested_absmax and .nested_quant_map. */
#include <string.h>

#include "engine/base/json.h"
#include "engine/quantized.h"
#include "weights/quant/bnb.h"
#include "weights/quant/source.h"

#define NESTED_BLOCK 256
#define MOST_STATE   ((size_t)4096) /* bytes of JSON */

static bool read_shape(struct lk_json *j, struct lk_bnb_state *out) {
    if (lk_json_peek(j) != '[') return lk_json_fail(j, LK_E_BIND, "field \"shape\": expected an array");
    lk_json_enter(j, '[');
    while (lk_json_next(j)) {
        uint64_t n;
        if (!lk_json_u64(j, &n)) return false;
        if (n < 1 || n > INT32_MAX || out->n_dims == 2)
            return lk_json_fail(j, LK_E_BIND, "field \"shape\": expected two numbers from 1 to 2^31 - 1");
        out->shape[out->n_dims++] = (int64_t)n;
    }
    return !j->rc;
}

static bool read_text(struct lk_json *j, const char *key, const char *const *allowed) {
    const char *text;
    if (lk_json_peek(j) != '"') return lk_json_fail(j, LK_E_BIND, "field \"%s\": expected a string", key);
    if (!lk_json_string(j, &text)) return false;
    for (int i = 0; allowed[i]; i++)
        if (!strcmp(text, allowed[i])) return true;
    return lk_json_fail(j, LK_E_BIND, "field \"%s\": expected \"%s\", got \"%.40s\"", key, allowed[0], text);
}

static bool read_member(struct lk_json *j, const char *key, struct lk_bnb_state *out) {
    static const char *const nf4[] = {"nf4", NULL}, *const f32[] = {"float32", NULL};
    static const char *const dtypes[] = {"bfloat16", "float16", "float32", NULL};
    double offset;
    if (!strcmp(key, "quant_type")) return read_text(j, key, nf4);
    if (!strcmp(key, "dtype")) return read_text(j, key, dtypes);
    if (!strcmp(key, "nested_dtype")) return read_text(j, key, f32);
    if (!strcmp(key, "shape")) return read_shape(j, out);
    if (!strcmp(key, "blocksize")) return lk_json_u64(j, &out->block);
    if (!strcmp(key, "nested_blocksize")) return lk_json_u64(j, &out->nested_block);
    if (!strcmp(key, "nested_offset")) {
        if (!lk_json_number(j, &offset)) return false;
        out->nested_offset = (float)offset;
        if (out->nested_offset - out->nested_offset == 0) return true;
        return lk_json_fail(j, LK_E_BIND, "field \"nested_offset\": %g is beyond the range of a float", offset);
    }
    return lk_json_fail(j, LK_E_BIND, "unknown field \"%.40s\"", key);
}

enum lk_code lk_bnb_state_parse(struct lk_bnb_state *out, const void *text, size_t n_bytes, const char *name) {
    static const char *const members[] = {"quant_type",       "blocksize",    "dtype",        "shape",
                                          "nested_blocksize", "nested_dtype", "nested_offset"};
    enum { N_MEMBERS = sizeof members / sizeof *members, PLAIN = 15, NESTED = 127 };
    struct lk_json j;
    const char *key;
    unsigned seen = 0;
    *out = (struct lk_bnb_state){0};
    lk_json_init(&j, text, n_bytes, name);
    lk_json_enter(&j, '{');
    while (lk_json_next(&j)) {
        if (!lk_json_key(&j, &key)) break;
        for (unsigned i = 0; i < N_MEMBERS; i++)
            if (!strcmp(key, members[i])) seen |= 1u << i;
        if (!read_member(&j, key, out)) break;
    }
    lk_json_end(&j);
    for (unsigned i = 0; i < N_MEMBERS; i++)
        if (!(seen >> i & 1) && (i < 4 || seen > PLAIN))
            lk_json_fail(&j, LK_E_BIND, "field \"%s\" is missing", members[i]);
    out->nested = seen > PLAIN;
    if (out->n_dims != 2) lk_json_fail(&j, LK_E_BIND, "field \"shape\": expected two numbers");
    if (out->block != 32 && out->block != 64 && out->block != 128 && out->block != 256)
        lk_json_fail(&j, LK_E_BIND, "field \"blocksize\": expected 32, 64, 128 or 256, got %llu",
                     (unsigned long long)out->block);
    if (out->nested && out->nested_block != NESTED_BLOCK)
        lk_json_fail(&j, LK_E_BIND, "field \"nested_blocksize\": expected %d, got %llu", NESTED_BLOCK,
                     (unsigned long long)out->nested_block);
    return lk_json_finish(&j);
}

/* The companions by their names' last part. */
struct companions {
    const struct lk_tensor *absmax, *quant_map, *state, *nested_absmax, *nested_quant_map;
    const char *state_name;
};

static enum lk_code sort_companions(struct companions *c, const char *weight, const struct lk_checkpoint *cp,
                                    size_t first, size_t n) {
    for (size_t i = first; i < first + n; i++) {
        const struct lk_st_tensor *t = cp->tensors[i].tensor;
        const char *part = t->name + strlen(weight) + 1;
        if (!strcmp(part, "absmax")) {
            c->absmax = &t->tensor;
        } else if (!strcmp(part, "quant_map")) {
            c->quant_map = &t->tensor;
        } else if (!strcmp(part, "nested_absmax")) {
            c->nested_absmax = &t->tensor;
        } else if (!strcmp(part, "nested_quant_map")) {
            c->nested_quant_map = &t->tensor;
        } else if (!strcmp(part, "quant_state.bitsandbytes__nf4")) {
            c->state = &t->tensor;
            c->state_name = t->name;
        } else if (!strncmp(part, "quant_state.", 12)) {
            return lk_fail(LK_E_BIND,
                           "%s: bitsandbytes' NF4 is read, its other types are not; quantise the model again with "
                           "bnb_4bit_quant_type=\"nf4\"",
                           t->name);
        } else {
            return lk_fail(LK_E_BIND, "%s: no companion of a weight that bitsandbytes quantised", t->name);
        }
    }
    if (!c->state || !c->absmax || !c->quant_map)
        return lk_fail(LK_E_BIND, "%s: its companion .%s is missing", weight,
                       !c->absmax      ? "absmax"
                       : !c->quant_map ? "quant_map"
                                       : "quant_state.bitsandbytes__nf4");
    return LK_OK;
}

static enum lk_code expect(const struct lk_tensor *t, const char *weight, const char *part, enum lk_dtype dtype,
                           int64_t n) {
    char have[96];
    if (!t) return lk_fail(LK_E_BIND, "%s: its companion .%s is missing", weight, part);
    if (t->dtype == dtype && t->n_dims == 1 && t->shape[0] == n) return LK_OK;
    return lk_fail(LK_E_BIND, "%s.%s: expected %s [%lld], got %s", weight, part, lk_dtype_name(dtype), (long long)n,
                   lk_tensor_describe(t, have));
}

enum lk_code lk_bnb_read(struct lk_quant_source *out, const struct lk_st_tensor *weight, const struct lk_checkpoint *cp,
                         size_t first, size_t n) {
    struct companions c = {0};
    struct lk_bnb_state state;
    const char *name = weight->name;
    char have[96];
    LK_TRY(sort_companions(&c, name, cp, first, n));
    if (c.state->dtype != LK_U8 || c.state->n_dims != 1 || (size_t)c.state->shape[0] > MOST_STATE)
        return lk_fail(LK_E_BIND, "%s: expected u8 [at most %zu], got %s", c.state_name, MOST_STATE,
                       lk_tensor_describe(c.state, have));
    LK_TRY(lk_bnb_state_parse(&state, c.state->data, (size_t)c.state->shape[0], c.state_name));
    const int64_t elements = state.shape[0] * state.shape[1]; /* below 2^62 */
    const int64_t n_scales = (elements + (int64_t)state.block - 1) / (int64_t)state.block;
    if (lk_tensor_bytes(&weight->tensor) != (size_t)(elements + 1) / 2)
        return lk_fail(LK_E_BIND, "%s: expected %lld bytes for the shape [%lld, %lld] of its quant_state, got %s", name,
                       (long long)(elements + 1) / 2, (long long)state.shape[0], (long long)state.shape[1],
                       lk_tensor_describe(&weight->tensor, have));
    LK_TRY(expect(c.absmax, name, "absmax", state.nested ? LK_U8 : LK_F32, n_scales));
    LK_TRY(expect(c.quant_map, name, "quant_map", LK_F32, 16));
    if (memcmp(c.quant_map->data, lk_nf4_levels, sizeof lk_nf4_levels) != 0)
        return lk_fail(LK_E_BIND, "%s.quant_map: these are not the levels of NF4", name);
    *out = (struct lk_quant_source){.tensor = LK_TENSOR(weight->tensor.data, LK_NF4, state.shape[0], state.shape[1]),
                                    .n_scales = n_scales,
                                    .scales = c.absmax->data};
    out->tensor.scales.block = (int32_t)state.block;
    if (!state.nested) {
        const char *extra = c.nested_absmax ? "nested_absmax" : c.nested_quant_map ? "nested_quant_map" : NULL;
        return extra ? lk_fail(LK_E_BIND, "%s.%s: the quant_state says nothing of it", name, extra) : LK_OK;
    }
    LK_TRY(expect(c.nested_absmax, name, "nested_absmax", LK_F32, (n_scales + NESTED_BLOCK - 1) / NESTED_BLOCK));
    LK_TRY(expect(c.nested_quant_map, name, "nested_quant_map", LK_F32, 256));
    out->nested_map = c.nested_quant_map->data;
    out->nested_scales = c.nested_absmax->data;
    out->nested_offset = state.nested_offset;
    return LK_OK;
}
