/* n = r(x / max(||x||, 1e-12)); y = r(act(r(r(n sqrt(D)) w))) over the last dimension.
 * Layout: groups of rows with a distance each; a team of threads has a row (rows.h).
 * Tile: one row per team; up to 32 elements of a thread stay in registers. Shared memory: 256 bytes. sm_80 or newer.
 * Rows of bf16 of which each thread has three vectors, as the VAEs' all are, have a form of their own, in pairs where
 * the arithmetic allows it: what remains of it is the instructions of SiLU.
 * Deterministic: the sum of squares is taken in double in an order that depends on the row's length only. */
#include "kernels/cuda/activate.cuh"
#include "kernels/cuda/rows.cuh"

/* x / norm for a norm whose rounded inverse is known, as the division rounds it. For x of bf16 one correction of the
 * product does for each of 2^7 significands of x and 2^23 of the norm; otherwise one brings it within one unit in the
 * last place, and a second to the nearest value (Markstein). */
template <class T> __device__ __forceinline__ float quotient(float x, float minus_norm, float inverse) {
    float q = x * inverse;
    q = fmaf(fmaf(q, minus_norm, x), inverse, q);
    return sizeof(T) == sizeof(bf16) ? q : fmaf(fmaf(q, minus_norm, x), inverse, q);
}

/* Norms and elements for which no step of it leaves the normal numbers. A zero would lose its sign. */
constexpr float LEAST_NORM = 0x1p-20f, MOST_NORM = 0x1p20f, LEAST_ELEMENT = 0x1p-100f;

template <int N> __device__ __forceinline__ bool divisible(const elements<N> &x) {
    float least = fabsf(x.v[0]);
#pragma unroll
    for (int i = 1; i < N; i++) least = fminf(least, fabsf(x.v[i]));
    return least >= LEAST_ELEMENT;
}

/* r(r(n sqrt(D)) w), rounded once more where an activation follows. */
template <class T, int N>
__device__ __forceinline__ void weigh(elements<N> &n, const lk_cuda_row_norm &args, const elements<N> &w) {
#pragma unroll
    for (int i = 0; i < N; i++) n.v[i] = rounded<T>(rounded<T>(rounded<T>(n.v[i]) * args.gain) * w.v[i]);
}

/* The vectors that the usual way does not serve: those whose bits are set in left_over, and those not kept. */
template <bool WHOLE, class T>
__device__ __forceinline__ void divide(const lk_cuda_row_norm &args, const team_row &r, const T *from, T *to,
                                       float norm, unsigned left_over) {
    constexpr int N = width<T>;
    int k = 0;
#pragma unroll 1
    for (int first = r.lane * N; first < r.n; first += r.team * N, k++) {
        if (k < kept_vectors<T> && !(left_over >> k & 1)) continue;
        const int left = r.n - first;
        elements<N> y = load_vector<WHOLE>(from + first, left);
#pragma unroll
        for (int i = 0; i < N; i++) y.v[i] = y.v[i] / norm;
        weigh<T>(y, args, load_weight_vector<WHOLE, T>(args.w, first, left, args.w_bf16));
        if (args.act != LK_ACT_NONE) {
#pragma unroll
            for (int i = 0; i < N; i++) y.v[i] = act(args.act, y.v[i]);
        }
        store_vector<WHOLE>(to + first, left, y);
    }
}

template <bool WHOLE, class T> __device__ __forceinline__ void l2_norm(const lk_cuda_row_norm &args) {
    constexpr int N = width<T>;
    const team_row r = my_row(args.n_rows * args.per_row, args.n);
    const int64_t group = group_of(args, r.row), head = r.row - group * args.per_row;
    const T *from = (const T *)args.x + group * args.ld_x + head * args.n;
    T *to = (T *)args.y + group * args.ld_y + head * args.n;
    const kept_row<T> kept = keep<WHOLE>(r, from);
    float norm = (float)sqrt(team_sum_squares<WHOLE>(r, from, kept));
    norm = norm < 1e-12f ? 1e-12f : norm; /* NaN stays */
    const float inverse = 1.0f / norm;
    const bool usual = norm >= LEAST_NORM && norm <= MOST_NORM && (args.act == LK_ACT_NONE || args.act == LK_ACT_SILU);
    unsigned left_over = 0; /* vectors that the usual way does not serve; divide() does */
#pragma unroll
    for (int k = 0; k < kept_vectors<T>; k++) {
        const int first = (k * r.team + r.lane) * N, left = r.n - first;
        if (left <= 0) continue;
        left_over |= 1u << k;
        if (!usual || !divisible(kept.of[k])) continue;
        elements<N> y;
#pragma unroll
        for (int i = 0; i < N; i++) y.v[i] = quotient<T>(kept.of[k].v[i], -norm, inverse);
        weigh<T>(y, args, load_weight_vector<WHOLE, T>(args.w, first, left, args.w_bf16));
        if (args.act == LK_ACT_SILU && (sizeof(T) != sizeof(bf16) || !try_short<LK_ACT_SILU>(y))) continue;
        store_vector<WHOLE>(to + first, left, y);
        left_over &= ~(1u << k);
    }
    divide<WHOLE>(args, r, from, to, norm, left_over);
}

/* Both halves of pairs of bf16. The product of two is exact in f32 and rounded once, as by r(.). */
__device__ __forceinline__ unsigned multiply_pairs(unsigned a, unsigned b) {
    unsigned product;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(product) : "r"(a), "r"(b), "r"(0x80008000u)); /* + -0 */
    return product;
}
__device__ __forceinline__ unsigned least_magnitudes(unsigned a, unsigned b) {
    unsigned least;
    asm("{.reg .b32 t; abs.bf16x2 t, %2; min.bf16x2 %0, %1, t;}" : "=r"(least) : "r"(a), "r"(b));
    return least;
}
__device__ __forceinline__ unsigned most_magnitudes(unsigned a, unsigned b) {
    unsigned most;
    asm("{.reg .b32 t; abs.bf16x2 t, %2; max.bf16x2 %0, %1, t;}" : "=r"(most) : "r"(a), "r"(b));
    return most;
}
/* Whether one half of a, without signs, is greater than the number of the bits `limit`. */
__device__ __forceinline__ bool any_above(unsigned a, unsigned limit) {
    return (a + (0x7fff - limit) * 0x10001) & 0x80008000;
}

constexpr int PACKED = 3; /* vectors of a thread */
/* In bf16, as bits. If n sqrt(D) reaches 2^-60 then x reaches LEAST_ELEMENT. */
constexpr unsigned LEAST_SCALED = 0x2180, MOST_SILU = 0x42a0, MOST_FINITE = 0x7f7f;

__device__ __forceinline__ bool is_packed(const lk_cuda_row_norm &args) {
    return args.vector && args.w_bf16 && args.n == PACKED * width<bf16> * (int64_t)blockDim.x &&
           (args.act == LK_ACT_NONE || args.act == LK_ACT_SILU);
}

__device__ __forceinline__ void l2_norm_packed(const lk_cuda_row_norm &args) {
    constexpr int N = width<bf16>;
    const int64_t n_rows = args.n_rows * args.per_row;
    const team_row r = my_row(n_rows, args.n);
    const int64_t row = min(r.row, n_rows - 1), group = group_of(args, row), head = row - group * args.per_row;
    const bf16 *from = (const bf16 *)args.x + group * args.ld_x + head * args.n;
    const int first = r.lane * N, next = r.team * N;
    elements<N> x[PACKED];
#pragma unroll
    for (int k = 0; k < PACKED; k++) x[k] = load_whole<N>(from + first + k * next);
    double sum = 0.0;
#pragma unroll
    for (int i = 0; i < PACKED * N; i++) sum = fma((double)x[i / N].v[i % N], (double)x[i / N].v[i % N], sum);
    const float root = (float)sqrt(team_sum(sum)), norm = root < 1e-12f ? 1e-12f : root; /* NaN stays */
    if (!r.n) return;
    bf16 *to = (bf16 *)args.y + group * args.ld_y + head * args.n;
    const float inverse = 1.0f / norm;
    const unsigned limit = args.act == LK_ACT_SILU ? MOST_SILU : MOST_FINITE;
    unsigned left_over = (1u << PACKED) - 1;
    if (norm >= LEAST_NORM && norm <= MOST_NORM) {
#pragma unroll
        for (int k = 0; k < PACKED; k++) {
            const uint4 w = *(const uint4 *)((const bf16 *)args.w + first + k * next);
            const unsigned weights[N / 2] = {w.x, w.y, w.z, w.w};
            unsigned y[N / 2], least = MOST_FINITE * 0x10001, most = 0;
#pragma unroll
            for (int i = 0; i < N / 2; i++) {
                float scaled[2];
#pragma unroll
                for (int e = 0; e < 2; e++)
                    scaled[e] = rounded<bf16>(quotient<bf16>(x[k].v[2 * i + e], -norm, inverse)) * args.gain;
                y[i] = pack_bf16(scaled[0], scaled[1]);
                least = least_magnitudes(least, y[i]);
                y[i] = multiply_pairs(y[i], weights[i]);
                most = most_magnitudes(most, y[i]);
            }
            if (any_above(0x7fff7fff - least, 0x7fff - LEAST_SCALED) || any_above(most, limit)) continue;
            if (args.act == LK_ACT_SILU) {
#pragma unroll
                for (int i = 0; i < N / 2; i++) {
                    const float low = __uint_as_float(y[i] << 16), high = __uint_as_float(y[i] & 0xffff0000u);
                    y[i] = pack_bf16(short_swish<LK_ACT_SILU>(low, low), short_swish<LK_ACT_SILU>(high, high));
                }
            }
            store_words(to + first + k * next, y);
            left_over &= ~(1u << k);
        }
    }
    if (left_over) divide<true>(args, r, from, to, norm, left_over);
}

extern "C" __global__ void l2_norm_bf16(const lk_cuda_row_norm a) {
    if (is_packed(a))
        l2_norm_packed(a);
    else if (a.vector)
        l2_norm<true, bf16>(a);
    else
        l2_norm<false, bf16>(a);
}
extern "C" __global__ void l2_norm_f32(const lk_cuda_row_norm a) {
    if (a.vector)
        l2_norm<true, float>(a);
    else
        l2_norm<false, float>(a);
}
