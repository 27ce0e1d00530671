#include <immintrin.h>

#include "kernels/cpu/quantized.h"
#include "kernels/cpu/quantized_avx.h"

static inline void levels_avx512(const uint8_t code[32], float out[32]) {
    const __m512 table = _mm512_loadu_ps(lk_nf4_levels);
    for (int i = 0; i < 32; i += 16) {
        const __m512i index = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(code + i)));
        _mm512_storeu_ps(out + i, _mm512_permutexvar_ps(index, table));
    }
}
#define LEVELS levels_avx512

static inline void scaled_avx512(const float v[16], float scale, float minimum, uint16_t out[16]) {
    /* Read as it was written, 8 floats at a time: 16 would wait until both stores have left the store buffer. */
    const __m512 low = _mm512_castps256_ps512(_mm256_loadu_ps(v));
    const __m512 all_v = _mm512_insertf32x8(low, _mm256_loadu_ps(v + 8), 1);
    const __m512 x = _mm512_sub_ps(_mm512_mul_ps(all_v, _mm512_set1_ps(scale)), _mm512_set1_ps(minimum));
    const __m512i bits = _mm512_castps_si512(x), quiet = _mm512_set1_epi32(0x00400000);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i nearest = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i all = _mm512_mask_or_epi32(nearest, nan, bits, quiet);
    _mm256_storeu_si256((__m256i *)out, _mm512_cvtepi32_epi16(_mm512_srli_epi32(all, 16)));
}
#define SCALED scaled_avx512
#include "engine/quantized_units.h"

void lk_dequantize_avx512(const struct lk_tensor *t, int64_t first, int64_t n, uint16_t *out) {
    dequantize(t, first, n, out);
}
