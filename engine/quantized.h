/* Quantised weights: what their packed elements mean (enum lk_dtype of engine/tensor.h).
 *
 * An element's value is one f32 expression, rounded once to bf16, nearest even:
 *   f8_e4m3, f8_e5m2   value of the code * scale         one scale for the matrix, or none; e4m3 has NaN at 7f and ff
 * and no infinity nf4                level[code] * scale               bitsandbytes' 4-bit NormalFloat; element 2i is
 * the high nibble of byte i q8                 code * scale                      our own: i8, a bf16 scale for 64
 * elements q8_0               d * code                          those of GGUF files; d, dmin f16 in the block itself
 *   q4_0               d * (code - 8)
 *   q4_k, q5_k         (d * sc) * code - (dmin * m)      sc, m: 6 bits for 32 elements
 *   q6_k               (d * sc) * (code - 32)            sc: i8 for 16 elements
 * Products and sums round where they are written. */
#pragma once

#include "engine/tensor.h"

extern const float lk_nf4_levels[16];
extern const float lk_nf4_thresholds[15]; /* midpoints; the code of x is the number of thresholds below x */

/* Elements [first, first + n) of a matrix of the format, counted row by row from its first, as bf16. */
void lk_dequantize(const struct lk_tensor *t, int64_t first, int64_t n, uint16_t *out);

/* The value of an fp8 code without its scale. */
float lk_f8_value(enum lk_dtype dtype, uint8_t code);
/* The scale of an element; 1 where there is none. */
float lk_scale_of(const struct lk_scales *scales, int64_t element);
