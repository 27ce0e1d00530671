/* What AVX2 and AVX-512 share: fp8 codes as floats by way of f16, whose conversion takes subnormal numbers in its
 * stride, and nibbles apart. */
#pragma once

#include <immintrin.h>

#include "engine/quantized.h"

static inline void floats_f16c(enum lk_dtype dtype, const uint8_t code[32], float out[32]) {
    for (int i = 0; i < 32; i += 8) {
        const __m128i bytes = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(code + i)));
        if (dtype == LK_F8_E5M2) {
            _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_slli_epi16(bytes, 8)));
            continue;
        }
        const __m128i rest = _mm_and_si128(bytes, _mm_set1_epi16(0x7f));
        const __m128i sign = _mm_slli_epi16(_mm_andnot_si128(_mm_set1_epi16(0x7f), bytes), 8);
        const __m128i half = _mm_or_si128(sign, _mm_slli_epi16(rest, 7)); /* its exponent is 8 too small */
        const __m256 value = _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256));
        const __m256i is_nan = _mm256_cvtepi16_epi32(_mm_cmpeq_epi16(rest, _mm_set1_epi16(0x7f)));
        const __m256i nan = _mm256_and_si256(is_nan, _mm256_set1_epi32(0x7fc00000));
        const __m256i number = _mm256_andnot_si256(_mm256_srli_epi32(is_nan, 1), _mm256_castps_si256(value));
        _mm256_storeu_ps(out + i, _mm256_castsi256_ps(_mm256_or_si256(number, nan)));
    }
}
#define FLOATS floats_f16c

static inline void nibbles_sse2(const unsigned char bytes[16], uint8_t code[32]) {
    const __m128i all = _mm_loadu_si128((const __m128i *)bytes), low = _mm_set1_epi8(15);
    const __m128i first = _mm_and_si128(_mm_srli_epi16(all, 4), low), second = _mm_and_si128(all, low);
    _mm_storeu_si128((__m128i *)code, _mm_unpacklo_epi8(first, second));
    _mm_storeu_si128((__m128i *)(code + 16), _mm_unpackhi_epi8(first, second));
}
#define NIBBLES nibbles_sse2

/* Less 8, the low nibbles first. */
static inline void halves_avx2(const unsigned char bytes[16], uint8_t code[32]) {
    const __m128i all = _mm_loadu_si128((const __m128i *)bytes);
    const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(all), _mm_srli_epi16(all, 4), 1);
    const __m256i code_8 = _mm256_sub_epi8(_mm256_and_si256(both, _mm256_set1_epi8(15)), _mm256_set1_epi8(8));
    _mm256_storeu_si256((__m256i *)code, code_8); /* one store: the codes are read as one */
}
#define HALVES halves_avx2
