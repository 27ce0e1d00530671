#include "weights/quant/source.h"

#include <string.h>

#include "engine/bf16.h"

size_t lk_quant_companions(const struct lk_checkpoint *cp, const char *name, size_t *first) {
    const size_t length = strlen(name);
    size_t low = 0, high = cp->n_tensors, n = 0;
    while (low < high) { /* the first that is not before "NAME." */
        size_t middle = low + (high - low) / 2;
        const char *other = cp->tensors[middle].tensor->name;
        int order = strncmp(other, name, length);
        if (order < 0 || (!order && (unsigned char)other[length] < '.'))
            low = middle + 1;
        else
            high = middle;
    }
    *first = low;
    while (low + n < cp->n_tensors && !strncmp(cp->tensors[low + n].tensor->name, name, length) &&
           cp->tensors[low + n].tensor->name[length] == '.')
        n++;
    return n;
}

static float f32_at(const unsigned char *data, int64_t i) {
    float value;
    memcpy(&value, data + 4 * i, sizeof value);
    return value;
}

#define NESTED_BLOCK 256

static float scale_at(const struct lk_quant_source *s, int64_t i) {
    if (!s->nested_map) return f32_at(s->scales, i);
    const float inner = f32_at(s->nested_map, s->scales[i]) * f32_at(s->nested_scales, i / NESTED_BLOCK);
    return inner + s->nested_offset;
}

enum lk_code lk_quant_source_scale_dtype(struct lk_quant_source *s, const char *name) {
    s->tensor.scales.dtype = LK_BF16;
    for (int64_t i = 0; i < s->n_scales; i++) {
        const float scale = scale_at(s, i);
        if (scale - scale != 0)
            return lk_fail(LK_E_BIND, "%s: scale %lld is NaN or Inf; download the file again", name, (long long)i);
        if (lk_round_bf16(scale) != scale) s->tensor.scales.dtype = LK_F32;
    }
    return LK_OK;
}

void lk_quant_source_scales(const struct lk_quant_source *s, void *out) {
    for (int64_t i = 0; i < s->n_scales; i++) {
        const float scale = scale_at(s, i);
        if (s->tensor.scales.dtype == LK_BF16)
            ((uint16_t *)out)[i] = lk_f32_to_bf16(scale);
        else
            ((float *)out)[i] = scale;
    }
}
