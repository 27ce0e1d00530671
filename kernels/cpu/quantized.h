/* lk_dequantize of engine/quantized.h, by the instruction level in force; all give the same bits. */
#pragma once

#include "engine/quantized.h"

typedef void lk_dequantize_fn(const struct lk_tensor *t, int64_t first, int64_t n, uint16_t *out);

lk_dequantize_fn lk_dequantize_avx2, lk_dequantize_avx512;
lk_dequantize_fn *lk_cpu_dequantize(void);
