/* Attention in f32 for one tile of query rows of one head. Included once per instruction level, which defines
 *   KERNEL   the name of the struct lk_attention_kernel
 *   LANES    floats in a vector; vec: the vector type; vec_at: the same without alignment
 *   MR, NV   rows and vectors of the register block: MR * NV accumulators
 *   SET1(x), FMA(a, b, c), MAX(a, b) (b when unordered), MAX_LANE(v)
 *
 * Layout in scratch, padded so that no inner loop has a tail (columns = head_dim rounded up to LANES):
 *   q        [groups of MR rows, head_dim, MR]   multiplied by scale * log2(e): scores are exponents of 2
 *   keys     [head_dim, BLOCK]                   this block's keys, transposed
 *   values   [BLOCK, columns]
 *   scores   [MR, BLOCK]
 *   o        [tile_rows, columns]
 *   sums     [tile_rows, LANES], max [tile_rows]
 * Keys go by in ascending blocks of BLOCK; each group of MR rows meets a block while it lies in the L1/L2 cache. Within
 * a row every sum is one chain in ascending order of head_dim or key (the sum of probabilities: LANES chains), so that
 * the bits of a row depend on its own values and the number of keys it sees, not on its place in the tile. The running
 * maximum moves only when a block exceeds it by more than 2^SLACK, decided per row. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL _Pragma("unroll")
#endif

#include <math.h>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/vector_math.h"

#define BLOCK  64
#define SLACK  8.0f
#define INLINE static inline __attribute__((always_inline))

typedef int32_t ivec __attribute__((vector_size(LANES * 4)));

struct tile {
    int64_t hd, columns, n_groups;
    float *q, *keys, *values, *scores, *o, *sums, *max;
};

static int64_t columns_of(int64_t head_dim) { return (head_dim + LANES - 1) / LANES * LANES; }

static size_t tile_place(struct tile *t, int64_t head_dim, int64_t tile_rows, float *base) {
    int64_t columns = columns_of(head_dim), place = 0;
    *t = (struct tile){.hd = head_dim, .columns = columns};
    struct {
        float **at;
        int64_t n;
    } parts[] = {{&t->q, tile_rows * head_dim}, {&t->keys, head_dim * BLOCK}, {&t->values, BLOCK * columns},
                 {&t->scores, MR * BLOCK},      {&t->o, tile_rows * columns}, {&t->sums, tile_rows * LANES},
                 {&t->max, tile_rows}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (base) *parts[i].at = base + place;
        place += (parts[i].n + 15) / 16 * 16;
    }
    return (size_t)place * sizeof(float);
}

static size_t scratch_bytes(int64_t head_dim, int64_t tile_rows) {
    struct tile t;
    return tile_place(&t, head_dim, tile_rows, NULL);
}

static void load_queries(struct tile *t, const struct lk_attention *op, int64_t head, int64_t first, int64_t n) {
    const float factor = op->scale * 1.44269504f;
    float row[512];
    t->n_groups = (n + MR - 1) / MR;
    for (int64_t i = 0; i < t->n_groups * MR; i++) {
        float *q = t->q + i / MR * MR * t->hd + i % MR;
        if (i < n) lk_cpu_load(op->q, (first + i) * op->q->ld + head * t->hd, t->hd, row);
        for (int64_t d = 0; d < t->hd; d++) q[d * MR] = i < n ? row[d] * factor : 0.0f;
        t->max[i] = -INFINITY;
    }
    memset(t->o, 0, (size_t)(t->n_groups * MR * t->columns) * sizeof *t->o);
    memset(t->sums, 0, (size_t)(t->n_groups * MR * LANES) * sizeof *t->sums);
}

/* Rows of K and V lie far apart, which the hardware does not foresee. */
static void fetch_ahead(const struct lk_tensor *t, int64_t row, int64_t column, int64_t n) {
    if (row >= t->shape[0]) return;
    const char *at = (const char *)t->data + (size_t)(row * t->ld + column) * lk_dtype_size(t->dtype);
    for (size_t i = 0; i < (size_t)n * lk_dtype_size(t->dtype); i += 64) __builtin_prefetch(at + i);
}

/* Eight keys at a time: each line of the transposed block is written in pieces that the store buffer can join. */
static void load_block(struct tile *t, const struct lk_attention *op, int64_t column, int64_t first, int64_t n) {
    float rows[8][512];
    for (int64_t j = 0; j < BLOCK; j += 8) {
        for (int64_t i = 0; i < 8; i++) {
            fetch_ahead(op->k, first + j + i + 16, column, t->hd);
            if (j + i < n)
                lk_cpu_load(op->k, (first + j + i) * op->k->ld + column, t->hd, rows[i]);
            else
                memset(rows[i], 0, (size_t)t->hd * sizeof(float));
        }
        for (int64_t d = 0; d < t->hd; d++) {
            float *out = t->keys + d * BLOCK + j;
            UNROLL for (int i = 0; i < 8; i++) out[i] = rows[i][d];
        }
    }
    for (int64_t j = 0; j < BLOCK; j++) {
        float *out = t->values + j * t->columns;
        fetch_ahead(op->v, first + j + 16, column, t->hd);
        if (j < n) lk_cpu_load(op->v, (first + j) * op->v->ld + column, t->hd, out);
        int64_t filled = j < n ? t->hd : 0;
        memset(out + filled, 0, (size_t)(t->columns - filled) * sizeof *out);
    }
}

/* scores[MR, BLOCK] = q[MR, head_dim] keys[head_dim, BLOCK] */
static void multiply_keys(const struct tile *t, const float *q) {
    for (int64_t strip = 0; strip < BLOCK; strip += NV * LANES) {
        vec sum[MR][NV] = {0};
        for (int64_t d = 0; d < t->hd; d++) {
            vec b[NV];
            UNROLL for (int v = 0; v < NV; v++) b[v] = *(const vec *)(t->keys + d * BLOCK + strip + v * LANES);
            UNROLL for (int r = 0; r < MR; r++) {
                vec a = SET1(q[d * MR + r]);
                UNROLL for (int v = 0; v < NV; v++) sum[r][v] = FMA(a, b[v], sum[r][v]);
            }
        }
        UNROLL for (int r = 0; r < MR; r++) UNROLL for (int v = 0; v < NV; v++) *
            (vec *)(t->scores + r * BLOCK + strip + v * LANES) = sum[r][v];
    }
}

/* o[MR, n * LANES] = o * factor + scores[MR, BLOCK] values[BLOCK, n * LANES] */
INLINE void multiply_values(const struct tile *t, float *o, int64_t column, const float *factor, const int n) {
    vec sum[MR][NV];
    UNROLL for (int r = 0; r < MR; r++) UNROLL for (int v = 0; v < n; v++) sum[r][v] =
        *(const vec *)(o + r * t->columns + column + v * LANES) * factor[r];
    for (int64_t j = 0; j < BLOCK; j++) {
        vec b[NV];
        UNROLL for (int v = 0; v < n; v++) b[v] = *(const vec *)(t->values + j * t->columns + column + v * LANES);
        UNROLL for (int r = 0; r < MR; r++) {
            vec a = SET1(t->scores[r * BLOCK + j]);
            UNROLL for (int v = 0; v < n; v++) sum[r][v] = FMA(a, b[v], sum[r][v]);
        }
    }
    UNROLL for (int r = 0; r < MR; r++) UNROLL for (int v = 0; v < n; v++) *
        (vec *)(o + r * t->columns + column + v * LANES) = sum[r][v];
}

/* 2^x within 1 ulp for x <= SLACK; 0 below -126.5. NaN stays NaN. */
INLINE vec exp2_vec(vec x) {
    x = MAX(SET1(-127.0f), x);
    vec shifted = x + 12582912.0f; /* 1.5 * 2^23: the nearest integer in the low bits */
    vec f = x - (shifted - 12582912.0f);
    vec p = FMA(SET1(0.000153458124f), f, SET1(0.00133999309f));
    p = FMA(p, f, SET1(0.00961848907f));
    p = FMA(p, f, SET1(0.0555032864f));
    p = FMA(p, f, SET1(0.240226462f));
    p = FMA(p, f, SET1(0.693147182f));
    p = FMA(p, f, SET1(1.0f));
    return p * (vec)(((ivec)shifted - (0x4b400000 - 127)) << 23);
}

/* One row's scores to probabilities relative to its maximum; returns what o is to be multiplied by. n_seen: keys of the
 * block that the row sees, at least 1. */
INLINE float probabilities(float *scores, int64_t n_seen, float *max, float *sums) {
    if (n_seen < BLOCK)
        for (int64_t j = n_seen; j < BLOCK; j++) scores[j] = -INFINITY;
    vec most = *(const vec *)scores;
    for (int v = 1; v < BLOCK / LANES; v++) most = MAX(*(const vec *)(scores + v * LANES), most);
    float block_max = MAX_LANE(most), factor = 1.0f;
    if (block_max > *max + SLACK) {
        float scaled[LANES];
        *(vec_at *)scaled = exp2_vec(SET1(*max - block_max));
        factor = scaled[0];
        *max = block_max;
    }
    vec sum = *(const vec *)sums * factor;
    for (int v = 0; v < BLOCK / LANES; v++) {
        vec p = exp2_vec(*(const vec *)(scores + v * LANES) - *max);
        *(vec *)(scores + v * LANES) = p;
        sum += p;
    }
    *(vec *)sums = sum;
    return factor;
}

static void attend_group(struct tile *t, int64_t group, const int64_t n_seen[MR]) {
    float *o = t->o + group * MR * t->columns, factor[MR];
    multiply_keys(t, t->q + group * MR * t->hd);
    for (int r = 0; r < MR; r++) {
        int64_t row = group * MR + r;
        factor[r] = 1.0f;
        if (n_seen[r] > 0)
            factor[r] = probabilities(t->scores + r * BLOCK, n_seen[r] < BLOCK ? n_seen[r] : BLOCK, t->max + row,
                                      t->sums + row * LANES);
        else
            memset(t->scores + r * BLOCK, 0, BLOCK * sizeof *t->scores);
    }
    int64_t column = 0;
    for (; column + NV * LANES <= t->columns; column += NV * LANES) multiply_values(t, o, column, factor, NV);
    for (; column < t->columns; column += LANES) multiply_values(t, o, column, factor, 1);
}

static void store_row(const struct tile *t, const struct lk_attention *op, int64_t head, int64_t first, int64_t i) {
    const float *o = t->o + i * t->columns;
    float sum = 0.0f, row[512];
    for (int lane = 0; lane < LANES; lane++) sum += t->sums[i * LANES + lane];
    for (int64_t d = 0; d < t->hd; d++) row[d] = o[d] / sum;
    lk_cpu_store(op->out, (first + i) * op->out->ld + head * t->hd, t->hd, row);
}

static void run_tile(const struct lk_attention *op, int64_t head, int64_t first, int64_t n, int64_t tile_rows,
                     void *scratch) {
    struct tile t;
    tile_place(&t, op->q->shape[2], tile_rows, scratch);
    load_queries(&t, op, head, first, n);
    int64_t column = lk_attention_kv_column(op, head), n_keys = lk_attention_keys(op, first + n - 1);
    for (int64_t key = 0; key < n_keys; key += BLOCK) {
        load_block(&t, op, column, key, op->k->shape[0] - key < BLOCK ? op->k->shape[0] - key : BLOCK);
        for (int64_t group = 0; group < t.n_groups; group++) {
            int64_t n_seen[MR], most = 0;
            for (int r = 0; r < MR; r++) {
                int64_t i = group * MR + r;
                n_seen[r] = i < n ? lk_attention_keys(op, first + i) - key : 0;
                if (n_seen[r] > most) most = n_seen[r];
            }
            if (most > 0) attend_group(&t, group, n_seen);
        }
    }
    for (int64_t i = 0; i < n; i++) store_row(&t, op, head, first, i);
}

const struct lk_attention_kernel KERNEL = {
    .granule = MR, .most_rows = 64 * MR, .scratch = scratch_bytes, .run = run_tile};
