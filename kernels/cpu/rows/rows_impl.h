/* The loops of rows.h. Included once per instruction level by rows.c, rows_avx2.c and rows_avx512.c, whose compile
 * flags make the difference; LK_ROWS names the set. Plain loops are left to the compiler's vectoriser; sums spell out
 * their lanes with vector types because their order is part of the contract. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#include <math.h>

#include "kernels/cpu/rows/rows.h"
#include "kernels/cpu/vector_math.h"

typedef float float_x8 __attribute__((vector_size(32), aligned(4)));
typedef double double_x8 __attribute__((vector_size(64), aligned(8)));

/* Elements are independent, also when the output is the input. */
#define EACH(i, n) _Pragma("omp simd") for (int64_t i = 0; i < (n); i++)

static void from_bf16(int64_t n, const uint16_t *restrict x, float *restrict y) {
    EACH(i, n) y[i] = lk_bf16_to_f32(x[i]);
}

static void to_bf16(int64_t n, const float *restrict x, uint16_t *restrict y) {
    EACH(i, n) y[i] = lk_f32_to_bf16(x[i]);
}

static void round_to_bf16(int64_t n, float *x) { EACH(i, n) x[i] = lk_round_bf16(x[i]); }

static void act_row(enum lk_act act, int64_t n, const float *x, float *y) {
    switch (act) {
    case LK_ACT_NONE:
        if (x != y) memmove(y, x, (size_t)n * sizeof *y);
        break;
    case LK_ACT_SILU:
        EACH(i, n) y[i] = lk_silu(x[i]);
        break;
    case LK_ACT_GELU_TANH:
        EACH(i, n) y[i] = lk_gelu_tanh(x[i]);
        break;
    case LK_ACT_QUICK_GELU:
        EACH(i, n) y[i] = lk_quick_gelu(x[i]);
        break;
    case LK_ACT_GELU_ERF:
        for (int64_t i = 0; i < n; i++) y[i] = lk_gelu_erf(x[i]);
        break;
    }
}

static void add(int64_t n, const float *a, const float *b, float *y) { EACH(i, n) y[i] = a[i] + b[i]; }

static void sub(int64_t n, const float *a, const float *b, float *y) { EACH(i, n) y[i] = a[i] - b[i]; }

static void mul(int64_t n, const float *a, const float *b, float *y) { EACH(i, n) y[i] = a[i] * b[i]; }

static void div_by(int64_t n, const float *a, const float *b, float *y) { EACH(i, n) y[i] = a[i] / b[i]; }

static void scale_by(int64_t n, const float *x, float factor, float *y) { EACH(i, n) y[i] = x[i] * factor; }

static void divide(int64_t n, const float *x, float divisor, float *y) { EACH(i, n) y[i] = x[i] / divisor; }

static void center(int64_t n, const float *x, float mean, float factor, float *y) {
    EACH(i, n) y[i] = (x[i] - mean) * factor;
}

static void affine(int64_t n, const float *x, const float *a, const float *b, float *y) {
    EACH(i, n) y[i] = x[i] * a[i] + b[i];
}

static void normalize(int64_t n, const float *x, const float *mean, const float *a, const float *b, float *y) {
    EACH(i, n) y[i] = (x[i] - mean[i]) * a[i] + b[i];
}

static void standardize(int64_t n, const float *x, const float *mean, const float *std, bool bf16, float *y) {
    if (bf16) {
        EACH(i, n) y[i] = lk_round_bf16(x[i] - mean[i]) / std[i];
    } else {
        EACH(i, n) y[i] = (x[i] - mean[i]) / std[i];
    }
}

static inline float clamp_logvar(float x) { /* NaN stays */
    float y = x < -30.0f ? -30.0f : x;
    return y > 20.0f ? 20.0f : y;
}

static void deviation(int64_t n, const float *logvar, bool bf16, float *y) {
    if (bf16) {
        EACH(i, n) y[i] = lk_round_bf16(lk_exp(lk_round_bf16(0.5f * clamp_logvar(logvar[i]))));
    } else {
        EACH(i, n) y[i] = lk_exp(0.5f * clamp_logvar(logvar[i]));
    }
}

static void modulate(int64_t n, const float *x, const float *scale, const float *shift, bool bf16, float *y) {
    if (bf16) {
        EACH(i, n) y[i] = lk_round_bf16(lk_round_bf16(1.0f + scale[i]) * lk_round_bf16(x[i])) + shift[i];
    } else {
        EACH(i, n) y[i] = (1.0f + scale[i]) * x[i] + shift[i];
    }
}

#define LK_ROTATE(STRIDE, ROUND)                                                                                       \
    EACH(i, n) {                                                                                                       \
        float u = a[i * STRIDE], v = b[i * STRIDE];                                                                    \
        a[i * STRIDE] = ROUND(u * cos[i]) - ROUND(v * sin[i]);                                                         \
        b[i * STRIDE] = ROUND(v * cos[i]) + ROUND(u * sin[i]);                                                         \
    }
static void rotate_interleaved(int64_t n, float *restrict a, const float *restrict cos, const float *restrict sin,
                               bool round_products) {
    float *b = a + 1;
    if (round_products)
        LK_ROTATE(2, lk_round_bf16)
    else
        LK_ROTATE(2, )
}
static void rotate_half(int64_t n, float *restrict a, float *restrict b, const float *restrict cos,
                        const float *restrict sin, bool round_products) {
    if (round_products)
        LK_ROTATE(1, lk_round_bf16)
    else
        LK_ROTATE(1, )
}
static void rotate(int64_t n, float *a, float *b, int stride, const float *cos, const float *sin, bool round_products) {
    if (stride == 2)
        rotate_interleaved(n, a, cos, sin, round_products);
    else
        rotate_half(n, a, b, cos, sin, round_products);
}

/* A macro, since returning a vector wider than the level's registers would change the calling convention. */
#define WIDEN(x) __builtin_convertvector(*(const float_x8 *)(x), double_x8)

static void sum(int64_t n, const float *x, double lanes[LK_LANES]) {
    double_x8 *acc = (double_x8 *)lanes;
    double_x8 a0 = acc[0], a1 = acc[1], a2 = acc[2], a3 = acc[3];
    int64_t i = 0;
    for (; i + LK_LANES <= n; i += LK_LANES) {
        a0 += WIDEN(x + i);
        a1 += WIDEN(x + i + 8);
        a2 += WIDEN(x + i + 16);
        a3 += WIDEN(x + i + 24);
    }
    acc[0] = a0, acc[1] = a1, acc[2] = a2, acc[3] = a3;
    for (; i < n; i++) lanes[i % LK_LANES] += (double)x[i];
}

static void sum_squares(int64_t n, const float *x, double mean, double lanes[LK_LANES]) {
    double_x8 *acc = (double_x8 *)lanes;
    double_x8 a0 = acc[0], a1 = acc[1], a2 = acc[2], a3 = acc[3];
    int64_t i = 0;
    for (; i + LK_LANES <= n; i += LK_LANES) {
        double_x8 d0 = WIDEN(x + i) - mean, d1 = WIDEN(x + i + 8) - mean;
        double_x8 d2 = WIDEN(x + i + 16) - mean, d3 = WIDEN(x + i + 24) - mean;
        a0 += d0 * d0;
        a1 += d1 * d1;
        a2 += d2 * d2;
        a3 += d3 * d3;
    }
    acc[0] = a0, acc[1] = a1, acc[2] = a2, acc[3] = a3;
    for (; i < n; i++) {
        double d = (double)x[i] - mean;
        lanes[i % LK_LANES] += d * d;
    }
}

static void accumulate(int64_t n, const float *x, double *sums) { EACH(i, n) sums[i] += (double)x[i]; }

/* Eight channels at a time down the rows, so that the accumulators stay in registers. */
static void channel_sums(int64_t n_rows, int64_t n, const float *x, int64_t ld, const double *shift, double *sums,
                         double *squares) {
    int64_t c = 0;
    for (; c + 16 <= n; c += 16) {
        double_x8 s0 = *(double_x8 *)(sums + c), s1 = *(double_x8 *)(sums + c + 8);
        double_x8 q0 = *(double_x8 *)(squares + c), q1 = *(double_x8 *)(squares + c + 8);
        double_x8 shift0 = *(const double_x8 *)(shift + c), shift1 = *(const double_x8 *)(shift + c + 8);
        for (int64_t r = 0; r < n_rows; r++) {
            double_x8 d0 = WIDEN(x + r * ld + c) - shift0, d1 = WIDEN(x + r * ld + c + 8) - shift1;
            s0 += d0, s1 += d1;
            q0 += d0 * d0, q1 += d1 * d1;
        }
        *(double_x8 *)(sums + c) = s0, *(double_x8 *)(sums + c + 8) = s1;
        *(double_x8 *)(squares + c) = q0, *(double_x8 *)(squares + c + 8) = q1;
    }
    for (; c < n; c++)
        for (int64_t r = 0; r < n_rows; r++) {
            double d = (double)x[r * ld + c] - shift[c];
            sums[c] += d;
            squares[c] += d * d;
        }
}

static int64_t nonfinite(int64_t n, const float *x) {
    int64_t total = 0;
    for (int64_t first = 0; first < n; first += LK_CHUNK) { /* 32-bit counts inside a chunk vectorise better */
        int32_t count = 0;
        int64_t end = n - first < LK_CHUNK ? n : first + LK_CHUNK;
        for (int64_t i = first; i < end; i++) count += (lk_f32_bits(x[i]) & 0x7f800000u) == 0x7f800000u;
        total += count;
    }
    return total;
}

static int64_t nonfinite_bf16(int64_t n, const uint16_t *x) {
    int64_t total = 0;
    for (int64_t first = 0; first < n; first += LK_CHUNK) {
        int32_t count = 0;
        int64_t end = n - first < LK_CHUNK ? n : first + LK_CHUNK;
        for (int64_t i = first; i < end; i++) count += (x[i] & 0x7f80u) == 0x7f80u;
        total += count;
    }
    return total;
}

const struct lk_rows LK_ROWS = {
    .from_bf16 = from_bf16,
    .to_bf16 = to_bf16,
    .round = round_to_bf16,
    .act = act_row,
    .add = add,
    .sub = sub,
    .mul = mul,
    .div = div_by,
    .scale = scale_by,
    .divide = divide,
    .center = center,
    .affine = affine,
    .normalize = normalize,
    .standardize = standardize,
    .deviation = deviation,
    .modulate = modulate,
    .rotate = rotate,
    .sum = sum,
    .sum_squares = sum_squares,
    .accumulate = accumulate,
    .channel_sums = channel_sums,
    .nonfinite = nonfinite,
    .nonfinite_bf16 = nonfinite_bf16,
};
