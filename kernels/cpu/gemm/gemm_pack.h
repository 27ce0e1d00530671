/* Packing rows of f32 or bf16 into a panel [k][width] of floats. */
#pragma once

#include "engine/bf16.h"
#include "engine/tensor.h"

static inline void pack_rows(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, int64_t width,
                             float *panel) {
    for (int64_t r = 0; r < rows; r++) {
        const float *f = (const float *)src + r * ld;
        const uint16_t *h = (const uint16_t *)src + r * ld;
        if (dtype == LK_BF16)
            for (int64_t i = 0; i < k; i++) panel[i * width + r] = lk_bf16_to_f32(h[i]);
        else
            for (int64_t i = 0; i < k; i++) panel[i * width + r] = f[i];
    }
    for (int64_t r = rows; r < width; r++)
        for (int64_t i = 0; i < k; i++) panel[i * width + r] = 0;
}
