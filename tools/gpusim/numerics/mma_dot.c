/* mma.sync with f16, bf16 and tf32 operands.
 *
 * The rule of Ampere's tensor cores, found by microsoft/MMA-Sim (arXiv 2511.10909) against hardware: k is taken in
 * chunks (k 16 of 16-bit types: two of 8; tf32 k 8: two of 4; smaller shapes: one). Per chunk, the accumulator and the
 * exact products are aligned to the largest of their exponents (the exponents of the factors added, no
 * normalisation), cut off towards zero after 24 fraction bits, added exactly, and the sum is rounded: to f32 towards
 * zero, to f16 to nearest. NaN is 0x7fffffff (0x7fff). A zero's exponent is -126.
 *
 * Vectors hold 16 rows of one column. While the largest exponent is within MOST_LOW..MOST_HIGH, f32 does it all
 * exactly: products have at most 22 bits (those below 2^-126 are less than the last bit kept), a product times
 * 2^(24 - largest) cut off to an integer is the aligned one, and nine of them fit 32 bits. Elsewhere, infinities and
 * NaN included, mma_chunk.c does it lane by lane. */
#include "tools/gpusim/numerics/lanes.h"
#include "tools/gpusim/numerics/mma_dot.h"
#include "tools/gpusim/numerics/mma_vectors.h"

enum { MOST_LOW = 27, MOST_HIGH = 247 };

/* [t][row] of the 32-bit words of two registers whose lane 4 g + t holds row g of the first, row g + 8 of the second.
 */
static void columns(uint32_t out[4][16], const uint32_t *x, const uint32_t *y) {
#if defined(__AVX512F__)
    const __m512i even = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(2));
    __m512i xl = _mm512_loadu_si512(x), xh = _mm512_loadu_si512(x + 16);
    __m512i yl = _mm512_loadu_si512(y), yh = _mm512_loadu_si512(y + 16);
    __m512i x01 = _mm512_permutex2var_epi32(xl, even, xh), x23 = _mm512_permutex2var_epi32(xl, odd, xh);
    __m512i y01 = _mm512_permutex2var_epi32(yl, even, yh), y23 = _mm512_permutex2var_epi32(yl, odd, yh);
    _mm512_storeu_si512(out[0], _mm512_shuffle_i64x2(x01, y01, 0x44));
    _mm512_storeu_si512(out[1], _mm512_shuffle_i64x2(x01, y01, 0xee));
    _mm512_storeu_si512(out[2], _mm512_shuffle_i64x2(x23, y23, 0x44));
    _mm512_storeu_si512(out[3], _mm512_shuffle_i64x2(x23, y23, 0xee));
#else
    for (int t = 0; t < 4; t++)
        for (int g = 0; g < 8; g++) out[t][g] = x[4 * g + t], out[t][g + 8] = y[4 * g + t];
#endif
}
static void from_columns(uint32_t *x, uint32_t *y, uint32_t in[4][16]) {
#if defined(__AVX512F__)
    const __m512i low = _mm512_setr_epi32(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(4));
    __m512i p0 = _mm512_loadu_si512(in[0]), p1 = _mm512_loadu_si512(in[1]);
    __m512i p2 = _mm512_loadu_si512(in[2]), p3 = _mm512_loadu_si512(in[3]);
    __m512i x01 = _mm512_shuffle_i64x2(p0, p1, 0x44), x23 = _mm512_shuffle_i64x2(p2, p3, 0x44);
    __m512i y01 = _mm512_shuffle_i64x2(p0, p1, 0xee), y23 = _mm512_shuffle_i64x2(p2, p3, 0xee);
    _mm512_storeu_si512(x, _mm512_permutex2var_epi32(x01, low, x23));
    _mm512_storeu_si512(x + 16, _mm512_permutex2var_epi32(x01, high, x23));
    _mm512_storeu_si512(y, _mm512_permutex2var_epi32(y01, low, y23));
    _mm512_storeu_si512(y + 16, _mm512_permutex2var_epi32(y01, high, y23));
#else
    for (int t = 0; t < 4; t++)
        for (int g = 0; g < 8; g++) x[4 * g + t] = in[t][g], y[4 * g + t] = in[t][g + 8];
#endif
}

/* n words of operands to values and exponents [h][n]. */
INLINE void unpack(float *value, int32_t *exponent, int stride, const uint32_t *words, int n, int32_t bias,
                   enum gpusim_num_type type) {
    for (int i = 0; i < n; i++) {
        uint32_t low = type == GPUSIM_NUM_TF32 ? words[i] : words[i] & 0xffff;
        value[i] = mma_value(low, type);
        exponent[i] = mma_exponent(low, type) - bias;
    }
    if (type == GPUSIM_NUM_TF32) return;
    for (int i = 0; i < n; i++) {
        value[stride + i] = mma_value(words[i] >> 16, type);
        exponent[stride + i] = mma_exponent(words[i] >> 16, type) - bias;
    }
}

INLINE void unpack_operands(struct mma_operands *o, const void *const *a, const void *const *b, int chunks,
                            enum gpusim_num_type type) {
    for (int r = 0; r < chunks; r++) {
        uint32_t words[4][16];
        columns(words, a[2 * r], a[2 * r + 1]);
        unpack(&o->a[r][0][0][0], &o->exponent_a[r][0][0][0], 64, &words[0][0], 64, 0, type);
        unpack(o->b[r][0], o->exponent_b[r][0], 32, b[r], 32, 127, type);
    }
}

/* The lanes of `which` again, lane by lane. */
static void patch(float *d, const float *c, uint32_t which, const struct mma_operands *o, int r, int halves, int row0,
                  int column, int half) {
    for (; which; which &= which - 1) {
        int i = __builtin_ctz(which), n = 0;
        uint32_t a[8], b[8];
        int32_t ea[8], eb[8];
        for (int h = 0; h < halves; h++)
            for (int t = 0; t < 4; t++, n++) {
                a[n] = bits_f32(o->a[r][h][t][row0 + i]), b[n] = bits_f32(o->b[r][h][4 * column + t]);
                ea[n] = o->exponent_a[r][h][t][row0 + i], eb[n] = o->exponent_b[r][h][4 * column + t];
            }
        d[i] = f32_of(num_mma_chunk(bits_f32(c[i]), a, b, ea, eb, n, half));
    }
}

/* The exponent of an f16 accumulator that is held as f32. */
INLINE vi half_exponent(vf acc) {
    float c[W];
    int32_t e[W];
    vf_store(c, acc);
    for (int i = 0; i < W; i++) {
        int32_t field = bits_f32(c[i]) >> 23 & 255;
        e[i] = field == 0 ? 1 : field < 113 ? 113 : field;
    }
    return vi_load(e);
}

/* The sum of f16 accumulation, |s| < 2^30 times 2^(power - 127), to nearest; no -0. Other s give anything. */
INLINE vf round_half(vi s, vi power) {
    int32_t sum[W], field[W];
    float r[W];
    vi_store(sum, s), vi_store(field, power);
    for (int i = 0; i < W; i++) {
        int32_t x = sum[i] > -(1 << 30) && sum[i] < 1 << 30 ? sum[i] : 0;
        float nearest = (float)x;
        int32_t back = (int32_t)nearest, size = x < 0 ? -x : x, near = back < 0 ? -back : back;
        uint32_t odd = (bits_f32(nearest) - (near > size)) | (near != size);
        float scaled = f32_of(odd) * f32_of((uint32_t)field[i] << 23);
        r[i] = f32_of(f32_from_f16(f16_from_f32(bits_f32(scaled), GPUSIM_NUM_RN))) + 0.0f;
    }
    return vf_load(r);
}

/* Which lanes have a term that is not zero. The factors are scaled so that no product becomes zero. */
INLINE uint32_t any_term(vf acc, const struct mma_operands *o, int r, int halves, int row0, int column) {
    vf up = vf_all(0x1p64f);
    vi bits = vi_or(vi_all(0), vf_add(acc, vf_all(0))); /* -0 becomes 0 */
    for (int h = 0; h < halves; h++)
        for (int t = 0; t < 4; t++) {
            vf b = vf_all(o->b[r][h][4 * column + t] * 0x1p64f);
            bits = vi_or(bits, vf_add(vf_mul(vf_mul(vf_load(&o->a[r][h][t][row0]), up), b), vf_all(0)));
        }
    return vi_outside(bits, 0, 0);
}

/* The lanes that dot_chunk's way does not serve. Zero rows, which padding makes, must not be slow. */
static __attribute__((noinline)) vf outside_lanes(vf d, vf acc, uint32_t outside, const struct mma_operands *o, int r,
                                                  int halves, int row0, int column, int half) {
    float before[W], after[W];
    uint32_t zero = outside & ~any_term(acc, o, r, halves, row0, column);
    vf_store(before, acc), vf_store(after, d);
    for (int i = 0; i < W; i++) after[i] = zero >> i & 1 ? 0 : after[i];
    patch(after, before, outside & ~zero, o, r, halves, row0, column, half);
    return vf_load(after);
}

INLINE vf dot_chunk(vf acc, const struct mma_operands *o, int r, int halves, int row0, int column, int half) {
    vi most = half ? half_exponent(acc) : vi_max(vi_field(acc), vi_all(1));
    for (int h = 0; h < halves; h++)
        for (int t = 0; t < 4; t++)
            most = vi_max(most,
                          vi_add(vi_load(&o->exponent_a[r][h][t][row0]), vi_all(o->exponent_b[r][h][4 * column + t])));
    vf scale = vf_power(vi_sub(vi_all(127 + 24 + 127), most));
    vi s = vi_truncated(vf_mul(acc, scale));
    for (int h = 0; h < halves; h++)
        for (int t = 0; t < 4; t++) {
            vf p = vf_mul(vf_load(&o->a[r][h][t][row0]), vf_all(o->b[r][h][4 * column + t]));
            s = vi_add(s, vi_truncated(vf_mul(p, scale)));
        }
    vi power = vi_sub(most, vi_all(24));
    vf d = half ? round_half(s, power) : vf_mul(vf_from(s), vf_power(power));
    uint32_t outside = vi_outside(most, MOST_LOW, MOST_HIGH);
    if (__builtin_expect(outside != 0, 0)) d = outside_lanes(d, acc, outside, o, r, halves, row0, column, half);
    return d;
}

INLINE vf dot_fast(vf acc, const struct mma_operands *o, int r, int halves, int row0, int column) {
    for (int t = 0; t < 4; t++)
        for (int h = 0; h < halves; h++)
            acc = vf_add(acc, vf_mul(vf_load(&o->a[r][h][t][row0]), vf_all(o->b[r][h][4 * column + t])));
    return acc;
}

INLINE void dots(uint32_t c[2][4][16], const struct mma_operands *o, int chunks, int halves, int half, int fast) {
    for (int column = 0; column < 8; column++)
        for (int row = 0; row < 16; row += W) {
            float *element = (float *)&c[column & 1][column >> 1][row];
            vf acc = vf_load(element);
            for (int r = 0; r < chunks; r++)
                acc = fast ? dot_fast(acc, o, r, halves, row, column) : dot_chunk(acc, o, r, halves, row, column, half);
            vf_store(element, acc);
        }
}

/* What is NaN becomes the canonical one; fast sums have the host's. */
INLINE void mma_f32(void *const *d, const void *const *a, const void *const *b, const void *const *c, int chunks,
                    enum gpusim_num_type type, int fast) {
    struct mma_operands o;
    uint32_t sums[2][4][16]; /* [column & 1][column / 2][row] */
    unpack_operands(&o, a, b, chunks, type);
    columns(sums[0], c[0], c[2]);
    columns(sums[1], c[1], c[3]);
    dots(sums, &o, chunks, type == GPUSIM_NUM_TF32 ? 1 : 2, 0, fast);
    if (fast)
        for (int i = 0; i < 128; i++) {
            uint32_t *x = &sums[0][0][0] + i;
            *x = is_nan_f32(*x) ? NAN_F32 : *x;
        }
    from_columns(d[0], d[2], sums[0]);
    from_columns(d[1], d[3], sums[1]);
}

INLINE void mma_f16(void *const *d, const void *const *a, const void *const *b, const void *const *c, int chunks,
                    int fast) {
    struct mma_operands o;
    uint32_t words[4][16], sums[2][4][16];
    unpack_operands(&o, a, b, chunks, GPUSIM_NUM_F16);
    columns(words, c[0], c[1]);
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 16; i++) {
            sums[0][t][i] = f32_from_f16(words[t][i] & 0xffff);
            sums[1][t][i] = f32_from_f16(words[t][i] >> 16);
        }
    dots(sums, &o, chunks, 2, 1, fast);
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 16; i++)
            words[t][i] = f16_from_f32(sums[0][t][i], GPUSIM_NUM_RN) | f16_from_f32(sums[1][t][i], GPUSIM_NUM_RN) << 16;
    from_columns(d[0], d[1], words);
}

#define MMA_F32(NAME, CHUNKS, TYPE, FAST)                                                                              \
    static void NAME(void *const *d, const void *const *a, const void *const *b, const void *const *c) {               \
        mma_f32(d, a, b, c, CHUNKS, TYPE, FAST);                                                                       \
    }
#define MMA_F16(NAME, CHUNKS, FAST)                                                                                    \
    static void NAME(void *const *d, const void *const *a, const void *const *b, const void *const *c) {               \
        mma_f16(d, a, b, c, CHUNKS, FAST);                                                                             \
    }
MMA_F32(f16_1, 1, GPUSIM_NUM_F16, 0)
MMA_F32(f16_2, 2, GPUSIM_NUM_F16, 0)
MMA_F32(bf16_1, 1, GPUSIM_NUM_BF16, 0)
MMA_F32(bf16_2, 2, GPUSIM_NUM_BF16, 0)
MMA_F32(tf32_1, 1, GPUSIM_NUM_TF32, 0)
MMA_F32(tf32_2, 2, GPUSIM_NUM_TF32, 0)
MMA_F32(f16_1_fast, 1, GPUSIM_NUM_F16, 1)
MMA_F32(f16_2_fast, 2, GPUSIM_NUM_F16, 1)
MMA_F32(bf16_1_fast, 1, GPUSIM_NUM_BF16, 1)
MMA_F32(bf16_2_fast, 2, GPUSIM_NUM_BF16, 1)
MMA_F32(tf32_1_fast, 1, GPUSIM_NUM_TF32, 1)
MMA_F32(tf32_2_fast, 2, GPUSIM_NUM_TF32, 1)
MMA_F16(half_1, 1, 0)
MMA_F16(half_2, 2, 0)
MMA_F16(half_1_fast, 1, 1)
MMA_F16(half_2_fast, 2, 1)

gpusim_num_mma_fn *ISA(num_mma_dot)(const struct gpusim_num_mma *mma);
gpusim_num_mma_fn *ISA(num_mma_dot)(const struct gpusim_num_mma *mma) {
    static gpusim_num_mma_fn *const f32[3][2][2] = {{{f16_1, f16_1_fast}, {f16_2, f16_2_fast}},
                                                    {{bf16_1, bf16_1_fast}, {bf16_2, bf16_2_fast}},
                                                    {{tf32_1, tf32_1_fast}, {tf32_2, tf32_2_fast}}};
    static gpusim_num_mma_fn *const half[2][2] = {{half_1, half_1_fast}, {half_2, half_2_fast}};
    int tf32 = mma->a == GPUSIM_NUM_TF32, two = mma->k == (tf32 ? 8 : 16);
    if (mma->m != 16 || mma->n != 8 || mma->a != mma->b || mma->c != mma->d || mma->a_column || mma->b_row) return NULL;
    if (mma->satfinite || (!two && mma->k != (tf32 ? 4 : 8))) return NULL;
    if (mma->d == GPUSIM_NUM_F16 && mma->a == GPUSIM_NUM_F16) return half[two][mma->fast];
    if (mma->d != GPUSIM_NUM_F32) return NULL;
    if (mma->a == GPUSIM_NUM_F16) return f32[0][two][mma->fast];
    if (mma->a == GPUSIM_NUM_BF16) return f32[1][two][mma->fast];
    return tf32 ? f32[2][two][mma->fast] : NULL;
}
