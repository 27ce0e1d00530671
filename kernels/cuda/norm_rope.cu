/* RMS norm of each head, then rotary position embedding, in place.
 * Layout: x [S, n_heads, head_dim] with a distance between positions. A thread takes vectors of 16 bytes of x: pairs
 * beside each other where they are interleaved, twice 8 bytes half a head apart otherwise; and of the tables the same
 * pairs. Thread t of a head's team has vectors t, t + T, ...
 * Tile: one head of one position per team of up to 32 threads; a thread keeps up to 16 pairs, so that x is read and
 * written once. Shared memory: none. sm_80 or newer.
 * Deterministic: the sum of squares is taken in double, in an order that depends on head_dim and the pairing only. */
#include "kernels/cuda/rows.cuh"

template <class T> constexpr int PAIRS = width<T> / 2; /* of a vector */

template <int N> struct pairs { elements<N> a, b; };

/* Both halves of pairs [first, first + N), of which `left` are the head's. */
template <bool WHOLE, int N, class From>
__device__ __forceinline__ pairs<N> load_pairs(const lk_cuda_norm_rope &args, const From *head, int first, int left) {
    pairs<N> p;
    if (!args.interleaved) {
        p.a = load<N>(head + first, WHOLE ? N : left, WHOLE);
        p.b = load<N>(head + args.pairs + first, WHOLE ? N : left, WHOLE);
        return p;
    }
    const elements<2 *N> all = load<2 * N>(head + 2 * first, WHOLE ? 2 * N : 2 * left, WHOLE);
#pragma unroll
    for (int i = 0; i < N; i++) p.a.v[i] = all.v[2 * i], p.b.v[i] = all.v[2 * i + 1];
    return p;
}

template <bool WHOLE, int N, class T>
__device__ __forceinline__ void store_pairs(const lk_cuda_norm_rope &args, T *head, int first, int left,
                                            const pairs<N> &p) {
    if (!args.interleaved) {
        store(head + first, WHOLE ? N : left, WHOLE, p.a);
        store(head + args.pairs + first, WHOLE ? N : left, WHOLE, p.b);
        return;
    }
    elements<2 * N> all;
#pragma unroll
    for (int i = 0; i < N; i++) all.v[2 * i] = p.a.v[i], all.v[2 * i + 1] = p.b.v[i];
    store(head + 2 * first, WHOLE ? 2 * N : 2 * left, WHOLE, all);
}

template <class T, int N>
__device__ __forceinline__ void scale(const lk_cuda_norm_rope &args, elements<N> &x, float factor,
                                      const elements<N> &w) {
#pragma unroll
    for (int i = 0; i < N; i++) x.v[i] = x.v[i] * factor;
    if (args.round_before_weight) {
#pragma unroll
        for (int i = 0; i < N; i++) x.v[i] = rounded<T>(x.v[i]);
    }
#pragma unroll
    for (int i = 0; i < N; i++) x.v[i] = x.v[i] * w.v[i];
    if (args.cos) {
#pragma unroll
        for (int i = 0; i < N; i++) x.v[i] = rounded<T>(x.v[i]);
    }
}

template <class T, int N, bool ROUND>
__device__ __forceinline__ void rotate(pairs<N> &p, const elements<N> &cos, const elements<N> &sin) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        const float a = p.a.v[i], b = p.b.v[i];
        float ac = a * cos.v[i], bs = b * sin.v[i], bc = b * cos.v[i], as = a * sin.v[i];
        if (ROUND) ac = rounded<T>(ac), bs = rounded<T>(bs), bc = rounded<T>(bc), as = rounded<T>(as);
        p.a.v[i] = ac - bs;
        p.b.v[i] = bc + as;
    }
}

template <bool WHOLE, class T> __device__ __forceinline__ void norm_rope(const lk_cuda_norm_rope &args) {
    constexpr int N = PAIRS<T>, MOST = kept_vectors<T>;
    const team_row r = my_row(args.n_rows * args.n_heads, args.pairs); /* r.n: pairs */
    const unsigned position = (unsigned)r.row / (unsigned)args.n_heads;
    const unsigned head = (unsigned)r.row - position * (unsigned)args.n_heads;
    T *x = (T *)args.x + position * args.ld_x + (int64_t)head * 2 * args.pairs;
    pairs<N> kept[MOST];
    double sum = 0.0;
#pragma unroll
    for (int k = 0; k < MOST; k++) {
        const int first = (k * r.team + r.lane) * N;
        kept[k] = {};
        if (first < r.n) kept[k] = load_pairs<WHOLE, N>(args, x, first, r.n - first);
    }
    float factor = 1.0f;
    if (args.norm_w) {
#pragma unroll
        for (int k = 0; k < MOST; k++) {
            if ((k * r.team + r.lane) * N >= r.n) continue;
#pragma unroll
            for (int i = 0; i < N; i++) { /* exact squares */
                sum = fma((double)kept[k].a.v[i], (double)kept[k].a.v[i], sum);
                sum = fma((double)kept[k].b.v[i], (double)kept[k].b.v[i], sum);
            }
        }
        factor = (float)(1.0 / sqrt(team_sum(sum) / (double)(2 * args.pairs) + (double)args.eps));
    }
#pragma unroll
    for (int k = 0; k < MOST; k++) {
        const int first = (k * r.team + r.lane) * N, left = r.n - first;
        if (left <= 0) continue;
        if (args.norm_w) {
            const pairs<N> w = args.w_bf16 ? load_pairs<WHOLE, N>(args, (const bf16 *)args.norm_w, first, left)
                                           : load_pairs<WHOLE, N>(args, (const float *)args.norm_w, first, left);
            scale<T>(args, kept[k].a, factor, w.a);
            scale<T>(args, kept[k].b, factor, w.b);
        }
        if (args.cos) {
            const elements<N> cos = load<N>(args.cos + position * args.ld_table + first, WHOLE ? N : left, WHOLE);
            const elements<N> sin = load<N>(args.sin + position * args.ld_table + first, WHOLE ? N : left, WHOLE);
            if (args.round_products)
                rotate<T, N, true>(kept[k], cos, sin);
            else
                rotate<T, N, false>(kept[k], cos, sin);
        }
        store_pairs<WHOLE, N>(args, x, first, left, kept[k]);
    }
}
LK_ROW_VARIANTS(norm_rope, lk_cuda_norm_rope)
