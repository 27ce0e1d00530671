/* RMS norm of each head, then rotary position embedding, in place.
 * Layout: x [S, n_heads, head_dim] with a distance between positions. Thread t of a head's team has the pairs
 * [8 t, 8 t + 8), [8 (t + T), ...) ...: 16 neighbouring elements where pairs are interleaved, twice 8 elements half a
 * head apart otherwise.
 * Tile: one head of one position per team of up to 32 threads; a thread keeps up to 16 pairs, so that x is read and
 * written once. Shared memory: none. sm_80 or newer.
 * Deterministic: the sum of squares is taken in double, in an order that depends on head_dim and the pairing only. */
#include "kernels/cuda/rows.cuh"

constexpr int RUNS = 2; /* of 8 pairs that a thread has at most: head_dim up to 1024 */

struct pairs8 {
    vector8 a, b;
};

/* Both halves of pairs [first, first + WIDTH), of which `left` are the head's. */
template <class T>
__device__ __forceinline__ pairs8 load_pairs(const lk_cuda_norm_rope &args, const T *head, int first, int left) {
    pairs8 p;
    if (!args.interleaved) {
        p.a = load(head + first, left, args.vector);
        p.b = load(head + args.pairs + first, left, args.vector);
        return p;
    }
    const vector8 low = load(head + 2 * first, 2 * left, args.vector);
    const vector8 high = load(head + 2 * first + WIDTH, 2 * left - WIDTH, args.vector);
#pragma unroll
    for (int i = 0; i < WIDTH / 2; i++) {
        p.a.v[i] = low.v[2 * i], p.b.v[i] = low.v[2 * i + 1];
        p.a.v[i + WIDTH / 2] = high.v[2 * i], p.b.v[i + WIDTH / 2] = high.v[2 * i + 1];
    }
    return p;
}

template <class T>
__device__ __forceinline__ void store_pairs(const lk_cuda_norm_rope &args, T *head, int first, int left,
                                            const pairs8 &p) {
    if (!args.interleaved) {
        store(head + first, left, args.vector, p.a);
        store(head + args.pairs + first, left, args.vector, p.b);
        return;
    }
    vector8 low, high;
#pragma unroll
    for (int i = 0; i < WIDTH / 2; i++) {
        low.v[2 * i] = p.a.v[i], low.v[2 * i + 1] = p.b.v[i];
        high.v[2 * i] = p.a.v[i + WIDTH / 2], high.v[2 * i + 1] = p.b.v[i + WIDTH / 2];
    }
    store(head + 2 * first, 2 * left, args.vector, low);
    store(head + 2 * first + WIDTH, 2 * left - WIDTH, args.vector, high);
}

/* The weights of the same elements, in pairs. */
__device__ __forceinline__ pairs8 load_weight_pairs(const lk_cuda_norm_rope &args, int first, int left) {
    return args.w_bf16 ? load_pairs(args, (const bf16 *)args.norm_w, first, left)
                       : load_pairs(args, (const float *)args.norm_w, first, left);
}

template <class T>
__device__ __forceinline__ float normed(const lk_cuda_norm_rope &args, float x, float factor, float w) {
    float y = x * factor;
    if (args.round_before_weight) y = rounded<T>(y);
    y = y * w;
    return args.cos ? rounded<T>(y) : y;
}

template <class T>
__device__ __forceinline__ void rotate(const lk_cuda_norm_rope &args, pairs8 &p, const vector8 &cos,
                                       const vector8 &sin) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const float a = p.a.v[i], b = p.b.v[i];
        float ac = a * cos.v[i], bs = b * sin.v[i], bc = b * cos.v[i], as = a * sin.v[i];
        if (args.round_products) ac = rounded<T>(ac), bs = rounded<T>(bs), bc = rounded<T>(bc), as = rounded<T>(as);
        p.a.v[i] = ac - bs;
        p.b.v[i] = bc + as;
    }
}

template <class T> __device__ __forceinline__ void norm_rope(const lk_cuda_norm_rope &args) {
    const team_row r = my_row(args.n_rows * args.n_heads);
    const int64_t position = r.row / args.n_heads, head = r.row - position * args.n_heads;
    T *x = (T *)args.x + position * args.ld_x + head * 2 * args.pairs;
    pairs8 kept[RUNS];
    double sum = 0.0;
#pragma unroll
    for (int k = 0; k < RUNS; k++) {
        const int first = (k * r.team + r.lane) * WIDTH;
        kept[k] = load_pairs(args, x, first, r.present ? args.pairs - first : 0);
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            sum += (double)kept[k].a.v[i] * (double)kept[k].a.v[i] + (double)kept[k].b.v[i] * (double)kept[k].b.v[i];
    }
    float factor = 1.0f;
    if (args.norm_w) factor = (float)(1.0 / sqrt(team_sum(sum) / (double)(2 * args.pairs) + (double)args.eps));
#pragma unroll
    for (int k = 0; k < RUNS; k++) {
        const int first = (k * r.team + r.lane) * WIDTH, left = args.pairs - first;
        if (!r.present || left <= 0) continue;
        if (args.norm_w) {
            const pairs8 w = load_weight_pairs(args, first, left);
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                kept[k].a.v[i] = normed<T>(args, kept[k].a.v[i], factor, w.a.v[i]);
                kept[k].b.v[i] = normed<T>(args, kept[k].b.v[i], factor, w.b.v[i]);
            }
        }
        if (args.cos) {
            const vector8 cos = load(args.cos + position * args.ld_table + first, left, args.vector);
            const vector8 sin = load(args.sin + position * args.ld_table + first, left, args.vector);
            rotate<T>(args, kept[k], cos, sin);
        }
        store_pairs(args, x, first, left, kept[k]);
    }
}
LK_VARIANTS(norm_rope, lk_cuda_norm_rope)
