/* 16 x 16 transposition of 32-bit elements in registers. Include from files compiled for AVX-512 only. */
#pragma once

#include <immintrin.h>

/* Loops over registers must be unrolled, or the registers become an array in memory. */
#if defined(__clang__)
#define LK_UNROLL16 _Pragma("unroll")
#else
#define LK_UNROLL16 _Pragma("GCC unroll 16")
#endif

static inline __attribute__((always_inline)) void lk_transpose16(__m512i r[16]) {
    __m512i t[16];
    LK_UNROLL16 for (int i = 0; i < 16; i += 2) { /* pairs of rows: elements 2 x 2 */
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    LK_UNROLL16 for (int i = 0; i < 16; i += 4) { /* 4 x 4 inside each 128-bit lane: r[i + j] holds columns j, j + 4, j
                                                   * + 8, j + 12
                                                   */
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    LK_UNROLL16 for (int j = 0; j < 4; j++) { /* lanes of four groups of rows */
        __m512i a = _mm512_shuffle_i32x4(r[j], r[j + 4], 0x88), b = _mm512_shuffle_i32x4(r[j + 8], r[j + 12], 0x88);
        __m512i c = _mm512_shuffle_i32x4(r[j], r[j + 4], 0xdd), d = _mm512_shuffle_i32x4(r[j + 8], r[j + 12], 0xdd);
        t[j] = _mm512_shuffle_i32x4(a, b, 0x88);
        t[j + 8] = _mm512_shuffle_i32x4(a, b, 0xdd);
        t[j + 4] = _mm512_shuffle_i32x4(c, d, 0x88);
        t[j + 12] = _mm512_shuffle_i32x4(c, d, 0xdd);
    }
    LK_UNROLL16 for (int i = 0; i < 16; i++) r[i] = t[i];
}
