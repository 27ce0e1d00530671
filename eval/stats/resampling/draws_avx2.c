/* As draws_avx512.c, four lanes to a register. */
#include "eval/stats/resampling/draws.h"

#if defined(__x86_64__)
#include <immintrin.h>

static inline __m256i rotate_left(__m256i x, int by) {
    return _mm256_or_si256(_mm256_slli_epi64(x, by), _mm256_srli_epi64(x, 64 - by));
}

static inline __m256i next(__m256i s[4]) {
    __m256i x = rotate_left(_mm256_add_epi64(s[1], _mm256_slli_epi64(s[1], 2)), 7);
    __m256i t = _mm256_slli_epi64(s[1], 17);
    s[2] = _mm256_xor_si256(s[2], s[0]);
    s[3] = _mm256_xor_si256(s[3], s[1]);
    s[1] = _mm256_xor_si256(s[1], s[2]);
    s[0] = _mm256_xor_si256(s[0], s[3]);
    s[2] = _mm256_xor_si256(s[2], t);
    s[3] = rotate_left(s[3], 45);
    return _mm256_add_epi64(x, _mm256_slli_epi64(x, 3));
}

/* The high word of x * bound in the upper halves, 0 in the lower ones where the low word may be below bound. */
static inline __m256i high_word(__m256i x, __m256i bound) {
    __m256i low = _mm256_mul_epu32(x, bound), high = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), bound);
    return _mm256_add_epi64(high, _mm256_srli_epi64(low, 32));
}

bool lk_lanes_draw_avx2(struct lk_lanes *lanes, uint32_t n, uint32_t step, size_t count, uint32_t *draws) {
    __m256i a[4], b[4];
    for (int w = 0; w < 4; w++) {
        a[w] = _mm256_load_si256((const __m256i *)(const void *)lanes->state[w]);
        b[w] = _mm256_load_si256((const __m256i *)(const void *)(lanes->state[w] + 4));
    }
    __m256i bound = _mm256_set1_epi64x(n), less = _mm256_set1_epi64x(step), least = _mm256_set1_epi32(-1);
    const __m256i in_order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    for (size_t i = 0; i < count; i++) {
        __m256i x = high_word(next(a), bound), y = high_word(next(b), bound);
        least = _mm256_min_epu32(least, _mm256_min_epu32(x, y));
        /* lanes 0 4 1 5 2 6 3 7 */
        __m256i both = _mm256_blend_epi32(_mm256_srli_epi64(x, 32), y, 0xaa);
        _mm256_storeu_si256((__m256i *)(void *)(draws + i * LK_DRAW_LANES),
                            _mm256_permutevar8x32_epi32(both, in_order));
        bound = _mm256_sub_epi64(bound, less);
    }
    for (int w = 0; w < 4; w++) {
        _mm256_store_si256((__m256i *)(void *)lanes->state[w], a[w]);
        _mm256_store_si256((__m256i *)(void *)(lanes->state[w] + 4), b[w]);
    }
    __m256i zero = _mm256_cmpeq_epi32(least, _mm256_setzero_si256());
    return !(_mm256_movemask_epi8(zero) & 0x0f0f0f0f);
}
#endif
