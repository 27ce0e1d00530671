/* Eight lanes of xoshiro256** in one register per state word. A bound below 2^32 takes two products of 32 bits: the
 * high word of x * n is (x_high * n + (x_low * n >> 32)) >> 32, and the low word is below n only where the lower half
 * of that sum is 0. */
#include "eval/stats/resampling/draws.h"

#if defined(__x86_64__)
#include <immintrin.h>

bool lk_lanes_draw_avx512(struct lk_lanes *lanes, uint32_t n, uint32_t step, size_t count, uint32_t *draws) {
    __m512i s0 = _mm512_load_si512(lanes->state[0]), s1 = _mm512_load_si512(lanes->state[1]);
    __m512i s2 = _mm512_load_si512(lanes->state[2]), s3 = _mm512_load_si512(lanes->state[3]);
    __m512i bound = _mm512_set1_epi64(n), less = _mm512_set1_epi64(step), least = _mm512_set1_epi32(-1);
    for (size_t i = 0; i < count; i++) {
        __m512i x = _mm512_rol_epi64(_mm512_add_epi64(s1, _mm512_slli_epi64(s1, 2)), 7);
        x = _mm512_add_epi64(x, _mm512_slli_epi64(x, 3));
        __m512i t = _mm512_slli_epi64(s1, 17);
        s2 = _mm512_xor_si512(s2, s0);
        s3 = _mm512_xor_si512(s3, s1);
        s1 = _mm512_xor_si512(s1, s2);
        s0 = _mm512_xor_si512(s0, s3);
        s2 = _mm512_xor_si512(s2, t);
        s3 = _mm512_rol_epi64(s3, 45);
        __m512i low = _mm512_mul_epu32(x, bound), high = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), bound);
        __m512i sum = _mm512_add_epi64(high, _mm512_srli_epi64(low, 32));
        least = _mm512_min_epu32(least, sum);
        _mm256_storeu_si256((__m256i *)(void *)(draws + i * LK_DRAW_LANES),
                            _mm512_cvtepi64_epi32(_mm512_srli_epi64(sum, 32)));
        bound = _mm512_sub_epi64(bound, less);
    }
    _mm512_store_si512(lanes->state[0], s0);
    _mm512_store_si512(lanes->state[1], s1);
    _mm512_store_si512(lanes->state[2], s2);
    _mm512_store_si512(lanes->state[3], s3);
    return !_mm512_mask_testn_epi32_mask(0x5555, least, least);
}
#endif
