/* bf16 products with AMX tiles: 16 x 16 f32 sums, 32 of K per TDPBF16PS.
 *
 * The hardware wants one operand with K running along a tile row and the other with pairs of K interleaved. Weights (B
 * here, usually the larger matrix and used once) take the plain role, so that packing them is a copy; activations are
 * packed once and take the interleaved role, which costs a transposition. Sums are then C transposed, 16 columns of C
 * by 16 rows, and are turned when a block is stored.
 *
 *   A panel: 32 rows; per 32 of K and part, two tiles [16 pairs of k][16 rows][2]
 *   B panel: 32 rows; per 32 of K, two tiles [16 rows][32 k]
 *   micro-tile: four tiles [16 columns of C][16 rows of C], in the order (B tile, A tile)
 *
 * A B panel of one K block (16 KB) stays in L1 and A panels stream from L2.
 *
 * f32 activations with bf16 weights run here as well: an f32 has 24 significant bits and is exactly the sum of three
 * bf16 values, so three tile products give f32 accuracy at several times the speed of FMA. AMX takes subnormal numbers
 * as zero, so this holds for activations above 2^-110. */
#include <immintrin.h>

#include "kernels/cpu/gemm/gemm_kernel.h"
#include "kernels/cpu/gemm/tile_config.h"
#include "kernels/cpu/attention/transpose_avx512.h"

#define MR         32
#define NR         32
#define K_STEP     32
#define TILE_BYTES 1024

static void begin(void) { _tile_loadconfig(&lk_tile_config); }

static void end(void) { _tile_release(); }

/* How far to go ahead at each K step. */
struct pace {
    struct lk_gemm_ahead a, b;
    int64_t a_lines, b_lines;
};

static inline struct pace pace_start(const struct lk_gemm_ahead ahead[2], int64_t steps) {
    return (struct pace){ahead[0], ahead[1], (lk_gemm_ahead_lines(&ahead[0]) + steps - 1) / steps,
                         (lk_gemm_ahead_lines(&ahead[1]) + steps - 1) / steps};
}

static inline void pace_step(struct pace *p) {
    lk_gemm_ahead_go(&p->a, p->a_lines);
    lk_gemm_ahead_go(&p->b, p->b_lines);
}

/* 32 x 32 of C: `parts` A tile pairs for each B tile pair. */
static inline __attribute__((always_inline)) void tile_32(const char *a, const char *b, float *c, int64_t k, bool first,
                                                          const int parts, struct pace *pace) {
    if (first) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, c, 64);
        _tile_loadd(1, c + 256, 64);
        _tile_loadd(2, c + 512, 64);
        _tile_loadd(3, c + 768, 64);
    }
    for (; k > 0; k -= K_STEP, b += 2 * TILE_BYTES) {
        _tile_loadd(4, b, 64);
        _tile_loadd(5, b + TILE_BYTES, 64);
        for (int part = 0; part < parts; part++, a += 2 * TILE_BYTES) {
            _tile_loadd(6, a, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(2, 5, 6);
            _tile_loadd(7, a + TILE_BYTES, 64);
            _tile_dpbf16ps(1, 4, 7);
            _tile_dpbf16ps(3, 5, 7);
        }
        pace_step(pace);
    }
    _tile_stored(0, c, 64);
    _tile_stored(1, c + 256, 64);
    _tile_stored(2, c + 512, 64);
    _tile_stored(3, c + 768, 64);
}

/* The same where the A panel holds 16 rows or fewer. */
static inline __attribute__((always_inline)) void tile_16(const char *a, const char *b, float *c, int64_t k, bool first,
                                                          const int parts, struct pace *pace) {
    if (first) {
        _tile_zero(0);
        _tile_zero(2);
    } else {
        _tile_loadd(0, c, 64);
        _tile_loadd(2, c + 512, 64);
    }
    for (; k > 0; k -= K_STEP, b += 2 * TILE_BYTES) {
        _tile_loadd(4, b, 64);
        _tile_loadd(5, b + TILE_BYTES, 64);
        for (int part = 0; part < parts; part++, a += 2 * TILE_BYTES) {
            _tile_loadd(6, a, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(2, 5, 6);
        }
        pace_step(pace);
    }
    _tile_stored(0, c, 64);
    _tile_stored(2, c + 512, 64);
}

static inline __attribute__((always_inline)) void multiply_parts(const void *a, const void *b, float *c, int64_t rows,
                                                                 int64_t a_stride, int64_t k, bool first,
                                                                 const int parts, const struct lk_gemm_ahead ahead[2]) {
    struct pace pace = pace_start(ahead, (rows + MR - 1) / MR * (k / K_STEP));
    const char *panel = a;
    for (; rows > 16; rows -= MR, panel += a_stride, c += MR * NR) tile_32(panel, b, c, k, first, parts, &pace);
    if (rows > 0) tile_16(panel, b, c, k, first, parts, &pace);
}

static void multiply_bf16(const void *a, const void *b, float *c, int64_t rows, int64_t a_stride, int64_t cols,
                          int64_t k, bool first, const struct lk_gemm_ahead ahead[2]) {
    (void)cols;
    multiply_parts(a, b, c, rows, a_stride, k, first, 1, ahead);
}

static void multiply_split(const void *a, const void *b, float *c, int64_t rows, int64_t a_stride, int64_t cols,
                           int64_t k, bool first, const struct lk_gemm_ahead ahead[2]) {
    (void)cols;
    multiply_parts(a, b, c, rows, a_stride, k, first, 3, ahead);
}

/* 32 bf16 from src, zero from `valid` on. */
static inline __m512i load_row(const uint16_t *src, int64_t valid) {
    if (valid >= K_STEP) return _mm512_loadu_si512(src);
    return _mm512_maskz_loadu_epi16((__mmask32)((1u << valid) - 1), src);
}

static void pack_b(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    (void)dtype;
    for (int64_t r = 0; r < NR; r++) {
        char *to = (char *)panel + r * 64;
        if (r >= rows) {
            for (int64_t i = 0; i < k; i += K_STEP, to += 2 * TILE_BYTES)
                _mm512_store_si512(to, _mm512_setzero_si512());
            continue;
        }
        const uint16_t *from = (const uint16_t *)src + r * ld;
        for (int64_t i = 0; i < k; i += K_STEP, to += 2 * TILE_BYTES) _mm512_store_si512(to, load_row(from + i, k - i));
    }
}

static void pack_a_bf16(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    (void)dtype;
    char *to = panel;
    for (int64_t i = 0; i < k; i += K_STEP)
        for (int64_t half = 0; half < MR; half += 16, to += TILE_BYTES) {
            __m512i t[16];
            LK_UNROLL16 for (int r = 0; r < 16; r++) t[r] =
                half + r < rows ? load_row((const uint16_t *)src + (half + r) * ld + i, k - i) : _mm512_setzero_si512();
            lk_transpose16(t);
            LK_UNROLL16 for (int r = 0; r < 16; r++) _mm512_store_si512(to + r * 64, t[r]);
        }
}

/* 16 f32 from src, zero from `valid` on. */
static inline __m512 load_16(const float *src, int64_t valid) {
    if (valid >= 16) return _mm512_loadu_ps(src);
    if (valid <= 0) return _mm512_setzero_ps();
    return _mm512_maskz_loadu_ps((__mmask16)((1u << valid) - 1), src);
}

/* Takes the upper bf16 off x by truncation; what is left of a finite x is exact. A NaN keeps a bit in the upper half.
 */
static inline __m512i take_part(__m512 *x) {
    __m512i bits = _mm512_castps_si512(*x);
    __mmask16 nan = _mm512_cmp_ps_mask(*x, *x, _CMP_UNORD_Q);
    bits = _mm512_mask_or_epi32(bits, nan, bits, _mm512_set1_epi32(0x00400000));
    bits = _mm512_and_si512(bits, _mm512_set1_epi32((int)0xffff0000));
    __m512 part = _mm512_castsi512_ps(bits);
    __mmask16 finite = _mm512_cmp_ps_mask(_mm512_abs_ps(part), _mm512_set1_ps(__builtin_inff()), _CMP_LT_OQ);
    *x = _mm512_maskz_sub_ps(finite, *x, part);
    return bits;
}

static void pack_a_split(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    (void)dtype;
    static const uint16_t upper_halves[32]
        __attribute__((aligned(64))) = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                        33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    const __m512i index = _mm512_load_si512(upper_halves);
    char *to = panel;
    for (int64_t i = 0; i < k; i += K_STEP, to += 6 * TILE_BYTES)
        for (int64_t half = 0; half < 2; half++) {
            __m512i t[3][16];
            for (int64_t r = 0; r < 16; r++) {
                int64_t row = 16 * half + r;
                const float *from = (const float *)src + row * ld + i;
                __m512 low = row < rows ? load_16(from, k - i) : _mm512_setzero_ps();
                __m512 high = row < rows ? load_16(from + 16, k - i - 16) : _mm512_setzero_ps();
                for (int part = 0; part < 3; part++)
                    t[part][r] = _mm512_permutex2var_epi16(take_part(&low), index, take_part(&high));
            }
            for (int part = 0; part < 3; part++) {
                lk_transpose16(t[part]);
                LK_UNROLL16 for (int r = 0; r < 16; r++)
                    _mm512_store_si512(to + (2 * part + half) * TILE_BYTES + r * 64, t[part][r]);
            }
        }
}

static void unpack(const float *tile, float *out) {
    for (int b = 0; b < 2; b++)
        for (int a = 0; a < 2; a++, tile += 256) {
            __m512i t[16];
            LK_UNROLL16 for (int r = 0; r < 16; r++) t[r] = _mm512_load_si512(tile + 16 * r);
            lk_transpose16(t);
            LK_UNROLL16 for (int r = 0; r < 16; r++) _mm512_store_si512(out + (16 * a + r) * NR + 16 * b, t[r]);
        }
}

const struct lk_gemm_kernel lk_gemm_amx = {
    .mr = MR,
    .nr = NR,
    .kr = K_STEP,
    .kc = 256,
    .mc = 768,
    .nc = 256,
    .a_bytes = 2,
    .b_bytes = 2,
    .pack_a = pack_a_bf16,
    .pack_b = pack_b,
    .multiply = multiply_bf16,
    .unpack = unpack,
    .begin = begin,
    .end = end,
};

const struct lk_gemm_kernel lk_gemm_amx_split = {
    .mr = MR,
    .nr = NR,
    .kr = K_STEP,
    .kc = 128,
    .mc = 512,
    .nc = 384,
    .a_bytes = 6,
    .b_bytes = 2,
    .pack_a = pack_a_split,
    .pack_b = pack_b,
    .multiply = multiply_split,
    .unpack = unpack,
    .begin = begin,
    .end = end,
};
