/* Products of fragments as tensor cores make them. This version sums in float in ascending k; matrices are row-major.
 */
#pragma once

#include <stdint.h>

/* d[16][8] += a[16][k] * b[k][8] */
static inline void num_mma_f32(int k, const float *a, const float *b, float *d) {
    for (int row = 0; row < 16; row++) {
        float sum[8];
        for (int n = 0; n < 8; n++) sum[n] = d[row * 8 + n];
        for (int i = 0; i < k; i++)
            for (int n = 0; n < 8; n++) sum[n] += a[row * k + i] * b[i * 8 + n];
        for (int n = 0; n < 8; n++) d[row * 8 + n] = sum[n];
    }
}

/* The same in integers that wrap; saturate clamps each sum. */
static inline void num_mma_s32(int k, const int32_t *a, const int32_t *b, int32_t *d, int saturate) {
    for (int row = 0; row < 16; row++)
        for (int n = 0; n < 8; n++) {
            int64_t sum = d[row * 8 + n];
            for (int i = 0; i < k; i++) sum += (int64_t)a[row * k + i] * b[i * 8 + n];
            if (saturate) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
            d[row * 8 + n] = (int32_t)sum;
        }
}
