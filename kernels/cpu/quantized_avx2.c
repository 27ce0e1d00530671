#include <immintrin.h>

#include "kernels/cpu/quantized.h"
#include "kernels/cpu/quantized_avx.h"

static inline void levels_avx2(const uint8_t code[32], float out[32]) {
    const __m256 low = _mm256_loadu_ps(lk_nf4_levels), high = _mm256_loadu_ps(lk_nf4_levels + 8);
    for (int i = 0; i < 32; i += 8) {
        const __m256i index = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(code + i)));
        const __m256 is_high = _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)); /* bit 3 as the sign */
        _mm256_storeu_ps(out + i, _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, index),
                                                   _mm256_permutevar8x32_ps(high, index), is_high));
    }
}
#define LEVELS levels_avx2

static inline __m256i nearest_avx2(const float *v, float scale, float minimum) {
    const __m256 x = _mm256_sub_ps(_mm256_mul_ps(_mm256_loadu_ps(v), _mm256_set1_ps(scale)), _mm256_set1_ps(minimum));
    const __m256i bits = _mm256_castps_si256(x), quiet = _mm256_set1_epi32(0x00400000);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i nearest = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    return _mm256_srli_epi32(_mm256_blendv_epi8(nearest, _mm256_or_si256(bits, quiet), nan), 16);
}

static inline void scaled_avx2(const float v[16], float scale, float minimum, uint16_t out[16]) {
    const __m256i both = _mm256_packus_epi32(nearest_avx2(v, scale, minimum), nearest_avx2(v + 8, scale, minimum));
    _mm256_storeu_si256((__m256i *)out, _mm256_permute4x64_epi64(both, 0xd8));
}
#define SCALED scaled_avx2
#include "engine/quantized_units.h"

void lk_dequantize_avx2(const struct lk_tensor *t, int64_t first, int64_t n, uint16_t *out) {
    dequantize(t, first, n, out);
}
