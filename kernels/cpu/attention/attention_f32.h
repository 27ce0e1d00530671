/* Attention with f32 arithmetic for one tile of rows of one key/value head. Included once per instruction level, which
 * defines KERNEL   the name of the struct lk_attention_kernel LANES    floats in a vector; vec: the vector type;
 * vec_at: the same without alignment MR, NV   rows and vectors of the register block: MR * NV accumulators SET1(x),
 * FMA(a, b, c), MAX(a, b) (b when unordered), MAX_LANE(v), FUSED(a, b, c): rounded once on every level
 *
 * Layout in scratch, padded so that no inner loop has a tail (columns = head_dim rounded up to LANES):
 *   q        [groups of MR rows, head_dim, MR]   multiplied by scale * log2(e): scores are exponents of 2
 *   keys     [blocks, head_dim, BLOCK]           this chunk's keys, transposed block by block
 *   values   [blocks, BLOCK, columns]
 *   scores   [blocks, MR, BLOCK]
 *   part     [tile_rows, width]   a row's outputs and its LANES sums of probabilities: width = columns + LANES
 *   total    [tile_rows, width]   f32: what earlier stretches of keys have added
 *   max, moved [tile_rows]        the running maximum; f32: what total is to be multiplied by when it is next added to
 * Keys go by in ascending chunks, of one block in f32 and of LK_ATTENTION_CHUNK keys in bf16; each group of MR rows
 * meets a chunk while it lies in the cache. Within a row every sum runs in ascending order of head_dim or key, so that
 * the bits of a row depend on its own values and the number of keys it sees, not on its place in the tile. In bf16 the
 * sums over keys are one chain each (the sum of probabilities: LANES chains), as torch's. In f32 a block is summed by
 * itself and added to part, and part to total every STRETCH keys: in one chain over 16,384 equal keys (a picture of one
 * colour in a VAE) every addition errs to the same side, by 4e-4 in all. The running maximum moves, decided per row: in
 * f32 only when a block exceeds it by more than 2^SLACK; in bf16 always, since the rounding of a probability depends on
 * it. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL _Pragma("unroll")
#endif

#include <math.h>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/vector_math.h"

#define BLOCK   64
#define STRETCH 1024
#define SLACK   8.0f
#define INLINE  static inline __attribute__((always_inline))

typedef int32_t ivec __attribute__((vector_size(LANES * 4)));

struct tile {
    int64_t hd, columns, width, n_groups, blocks; /* blocks of a chunk */
    float *q, *keys, *values, *scores, *part, *total, *max, *moved;
};

static int64_t columns_of(int64_t head_dim) { return (head_dim + LANES - 1) / LANES * LANES; }

static size_t tile_place(struct tile *t, const struct lk_attention *op, int64_t tile_rows, float *base) {
    int64_t hd = op->q->shape[2], columns = columns_of(hd), width = columns + LANES, place = 0;
    bool bf16 = op->q->dtype == LK_BF16;
    int64_t blocks = bf16 ? LK_ATTENTION_CHUNK / BLOCK : 1;
    *t = (struct tile){.hd = hd, .columns = columns, .width = width, .blocks = blocks};
    struct {
        float **at;
        int64_t n;
    } parts[] = {{&t->q, tile_rows * hd},
                 {&t->keys, blocks * hd * BLOCK},
                 {&t->values, blocks * BLOCK * columns},
                 {&t->scores, blocks * MR * BLOCK},
                 {&t->part, tile_rows * width},
                 {&t->total, bf16 ? 0 : tile_rows * width},
                 {&t->max, tile_rows},
                 {&t->moved, tile_rows}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (base) *parts[i].at = base + place;
        place += (parts[i].n + 15) / 16 * 16;
    }
    return (size_t)place * sizeof(float);
}

static size_t scratch_bytes(const struct lk_attention *op, int64_t tile_rows) {
    struct tile t;
    return tile_place(&t, op, tile_rows, NULL);
}

static void load_queries(struct tile *t, const struct lk_attention *op, int64_t kv_head, int64_t first, int64_t n) {
    const float factor = op->q->dtype == LK_BF16 ? 1.0f : op->scale * 1.44269504f;
    float row[512];
    t->n_groups = (n + MR - 1) / MR;
    for (int64_t i = 0; i < t->n_groups * MR; i++) {
        float *q = t->q + i / MR * MR * t->hd + i % MR;
        if (i < n) lk_cpu_load(op->q, lk_attention_place(op, op->q, kv_head, first + i), t->hd, row);
        for (int64_t d = 0; d < t->hd; d++) q[d * MR] = i < n ? row[d] * factor : 0.0f;
        t->max[i] = -INFINITY;
        t->moved[i] = 1.0f;
    }
    size_t state = (size_t)(t->n_groups * MR * t->width) * sizeof *t->part;
    memset(t->part, 0, state);
    if (op->q->dtype != LK_BF16) memset(t->total, 0, state);
}

/* Rows of K and V lie far apart, which the hardware does not foresee. */
static void fetch_ahead(const struct lk_tensor *t, int64_t row, int64_t column, int64_t n) {
    if (row >= t->shape[0]) return;
    const char *at = (const char *)t->data + (size_t)(row * t->ld + column) * lk_dtype_size(t->dtype);
    for (size_t i = 0; i < (size_t)n * lk_dtype_size(t->dtype); i += 64) __builtin_prefetch(at + i);
}

/* Eight keys at a time: each line of the transposed block is written in pieces that the store buffer can join. */
static void load_block(struct tile *t, const struct lk_attention *op, int64_t column, int64_t first, int64_t n,
                       int64_t block) {
    float rows[8][512], *keys = t->keys + block * t->hd * BLOCK, *values = t->values + block * BLOCK * t->columns;
    for (int64_t j = 0; j < BLOCK; j += 8) {
        for (int64_t i = 0; i < 8; i++) {
            fetch_ahead(op->k, first + j + i + 16, column, t->hd);
            if (j + i < n)
                lk_cpu_load(op->k, (first + j + i) * op->k->ld + column, t->hd, rows[i]);
            else
                memset(rows[i], 0, (size_t)t->hd * sizeof(float));
        }
        for (int64_t d = 0; d < t->hd; d++) {
            float *out = keys + d * BLOCK + j;
            UNROLL for (int i = 0; i < 8; i++) out[i] = rows[i][d];
        }
    }
    for (int64_t j = 0; j < BLOCK; j++) {
        float *out = values + j * t->columns;
        fetch_ahead(op->v, first + j + 16, column, t->hd);
        if (j < n) lk_cpu_load(op->v, (first + j) * op->v->ld + column, t->hd, out);
        int64_t filled = j < n ? t->hd : 0;
        memset(out + filled, 0, (size_t)(t->columns - filled) * sizeof *out);
    }
}

/* scores[MR, BLOCK] = q[MR, head_dim] keys[head_dim, BLOCK] */
static void multiply_keys(const struct tile *t, const float *q, int64_t block) {
    const float *keys = t->keys + block * t->hd * BLOCK;
    float *scores = t->scores + block * MR * BLOCK;
    for (int64_t strip = 0; strip < BLOCK; strip += NV * LANES) {
        vec sum[MR][NV] = {0};
        for (int64_t d = 0; d < t->hd; d++) {
            vec b[NV];
            UNROLL for (int v = 0; v < NV; v++) b[v] = *(const vec *)(keys + d * BLOCK + strip + v * LANES);
            UNROLL for (int r = 0; r < MR; r++) {
                vec a = SET1(q[d * MR + r]);
                UNROLL for (int v = 0; v < NV; v++) sum[r][v] = FMA(a, b[v], sum[r][v]);
            }
        }
        UNROLL for (int r = 0; r < MR; r++) UNROLL for (int v = 0; v < NV; v++) *
            (vec *)(scores + r * BLOCK + strip + v * LANES) = sum[r][v];
    }
}

/* o[MR, n * LANES] = o * factor + the chunk's scores[MR, keys] values[keys, n * LANES]; apart: the product is summed
 * before it meets o. */
INLINE void multiply_values(const struct tile *t, float *o, int64_t column, const float *factor, const int n,
                            const bool apart) {
    vec sum[MR][NV] = {0};
    if (!apart)
        UNROLL for (int r = 0; r < MR; r++) UNROLL for (int v = 0; v < n; v++) sum[r][v] =
            *(const vec *)(o + r * t->width + column + v * LANES) * factor[r];
    for (int64_t j = 0; j < t->blocks * BLOCK; j++) {
        const float *scores = t->scores + j / BLOCK * MR * BLOCK + j % BLOCK;
        vec b[NV];
        UNROLL for (int v = 0; v < n; v++) b[v] = *(const vec *)(t->values + j * t->columns + column + v * LANES);
        UNROLL for (int r = 0; r < MR; r++) {
            vec a = SET1(scores[r * BLOCK]);
            UNROLL for (int v = 0; v < n; v++) sum[r][v] = FMA(a, b[v], sum[r][v]);
        }
    }
    UNROLL for (int r = 0; r < MR; r++) UNROLL for (int v = 0; v < n; v++) {
        vec *at = (vec *)(o + r * t->width + column + v * LANES);
        *at = apart ? FMA(*at, SET1(factor[r]), sum[r][v]) : sum[r][v];
    }
}

/* All columns of a group. */
INLINE void multiply_all_values(const struct tile *t, float *o, const float *factor, const bool apart) {
    int64_t column = 0;
    for (; column + NV * LANES <= t->columns; column += NV * LANES) multiply_values(t, o, column, factor, NV, apart);
    for (; column < t->columns; column += LANES) multiply_values(t, o, column, factor, 1, apart);
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
    vec sum = SET1(0.0f);
    for (int v = 0; v < BLOCK / LANES; v++) {
        vec p = exp2_vec(*(const vec *)(scores + v * LANES) - *max);
        *(vec *)(scores + v * LANES) = p;
        sum += p;
    }
    *(vec *)sums = *(const vec *)sums * factor + sum;
    return factor;
}

/* e^x for x <= 0 as ops.h has it for bf16; NaN stays NaN. */
INLINE vec fast_exp(vec x) {
    const vec least = SET1(LK_FAST_EXP_LEAST), power = SET1(8388608.0f); /* 2^23 */
    vec s = MAX(least, x) * LK_FAST_EXP_LOG2E;
    vec whole = __builtin_convertvector(__builtin_convertvector(s, ivec), vec); /* towards zero; down is wanted */
    whole = whole + __builtin_convertvector(whole > s, vec);                    /* true is -1 */
    vec f = s - whole;
    vec p = FUSED(f, SET1(LK_FAST_EXP_C3), SET1(LK_FAST_EXP_C2));
    p = FUSED(f, p, SET1(LK_FAST_EXP_C1));
    p = FUSED(f, p, SET1(LK_FAST_EXP_C0));
    vec bits = FUSED(power, s - p, power * 127.0f);
    ivec e = __builtin_convertvector(bits, ivec) & ~(ivec)(x < least);
    ivec unordered = (ivec)(x != x);
    return (vec)((e & ~unordered) | ((ivec)x & unordered));
}

/* Nearest bf16, ties to even, of values that are not NaN; NaN stays NaN. */
INLINE vec round_to_bf16(vec x) {
    ivec bits = (ivec)x, odd = (bits >> 16) & 1;
    ivec rounded = (bits + 0x7fff + odd) & ~0xffff;
    ivec unordered = (ivec)(x != x);
    return (vec)((rounded & ~unordered) | (bits & unordered));
}

/* As probabilities, over a chunk, with the rounding points of bf16. scores: of the row in the first block. */
INLINE float rounded_probabilities(const struct tile *t, float *scores, int64_t n_seen, float scale, float *max,
                                   float *sums) {
    vec most = SET1(-INFINITY);
    for (int64_t b = 0; b < t->blocks; b++)
        for (int64_t j = 0; j < BLOCK; j += LANES) {
            float *at = scores + b * MR * BLOCK + j;
            vec s = *(vec *)at * scale;
            *(vec *)at = s;
            for (int64_t i = n_seen - b * BLOCK - j < 0 ? 0 : n_seen - b * BLOCK - j; i < LANES; i++) at[i] = -INFINITY;
            most = MAX(*(const vec *)at, most);
        }
    float chunk_max = MAX_LANE(most), before = *max;
    if (chunk_max > before) *max = chunk_max;
    float factor = lk_exp(before - *max);
    vec sum = *(const vec *)sums * factor;
    for (int64_t b = 0; b < t->blocks; b++)
        for (int64_t j = 0; j < BLOCK; j += LANES) {
            vec *at = (vec *)(scores + b * MR * BLOCK + j);
            vec p = fast_exp(*at - *max);
            sum += p;
            *at = round_to_bf16(p);
        }
    *(vec *)sums = sum;
    return factor;
}

static void attend_group(struct tile *t, const struct lk_attention *op, int64_t group, const int64_t n_seen[MR]) {
    float *part = t->part + group * MR * t->width, factor[MR];
    const bool bf16 = op->q->dtype == LK_BF16;
    for (int64_t b = 0; b < t->blocks; b++) multiply_keys(t, t->q + group * MR * t->hd, b);
    for (int r = 0; r < MR; r++) {
        int64_t row = group * MR + r;
        float *scores = t->scores + r * BLOCK, *max = t->max + row, *sums = part + r * t->width + t->columns;
        factor[r] = 1.0f;
        if (n_seen[r] <= 0)
            for (int64_t b = 0; b < t->blocks; b++) memset(scores + b * MR * BLOCK, 0, BLOCK * sizeof *scores);
        else if (bf16)
            factor[r] = rounded_probabilities(t, scores, n_seen[r], op->scale, max, sums);
        else
            factor[r] = probabilities(scores, n_seen[r] < BLOCK ? n_seen[r] : BLOCK, max, sums);
        t->moved[row] *= factor[r];
    }
    if (bf16)
        multiply_all_values(t, part, factor, false);
    else
        multiply_all_values(t, part, factor, true);
}

/* The end of a stretch of keys for row i. */
static void add_part(const struct tile *t, int64_t i) {
    float *part = t->part + i * t->width, *total = t->total + i * t->width;
    for (int64_t column = 0; column < t->width; column += LANES) {
        vec *at = (vec *)(part + column), *sum = (vec *)(total + column);
        *sum = *sum * t->moved[i] + *at;
        *at = SET1(0.0f);
    }
    t->moved[i] = 1.0f;
}

static void store_row(const struct tile *t, const struct lk_attention *op, int64_t kv_head, int64_t first, int64_t i) {
    bool rounded = op->q->dtype == LK_BF16;
    if (!rounded) add_part(t, i);
    const float *o = (rounded ? t->part : t->total) + i * t->width;
    float sum = 0.0f, row[512];
    for (int lane = 0; lane < LANES; lane++) sum += o[t->columns + lane];
    float inverse = 1.0f / sum;
    for (int64_t d = 0; d < t->hd; d++) row[d] = rounded ? o[d] * inverse : o[d] / sum;
    lk_cpu_store(op->out, lk_attention_place(op, op->out, kv_head, first + i), t->hd, row);
}

static void run_tile(const struct lk_attention *op, int64_t kv_head, int64_t first, int64_t n, int64_t tile_rows,
                     void *scratch) {
    struct tile t;
    tile_place(&t, op, tile_rows, scratch);
    load_queries(&t, op, kv_head, first, n);
    int64_t column = kv_head * t.hd, n_keys = lk_attention_keys(op, first + n - 1);
    int64_t chunk = t.blocks * BLOCK;
    for (int64_t key = 0; key < n_keys; key += chunk) {
        t.blocks = n_keys - key < chunk ? (n_keys - key + BLOCK - 1) / BLOCK : chunk / BLOCK;
        for (int64_t b = 0; b < t.blocks; b++) {
            int64_t at = key + b * BLOCK, left = op->k->shape[0] - at;
            load_block(&t, op, column, at, left < BLOCK ? left : BLOCK, b);
        }
        for (int64_t group = 0; group < t.n_groups; group++) {
            int64_t n_seen[MR], most = 0;
            for (int r = 0; r < MR; r++) {
                int64_t i = group * MR + r;
                n_seen[r] = i < n ? lk_attention_keys(op, first + i) - key : 0;
                if (n_seen[r] > most) most = n_seen[r];
            }
            if (most > 0) attend_group(&t, op, group, n_seen);
        }
        if ((key + chunk) % STRETCH == 0 && op->q->dtype != LK_BF16) /* a row with no keys beyond does it at its end */
            for (int64_t i = 0; i < n; i++)
                if (lk_attention_keys(op, first + i) > key + chunk) add_part(&t, i);
    }
    for (int64_t i = 0; i < n; i++) store_row(&t, op, kv_head, first, i);
}

const struct lk_attention_kernel KERNEL = {
    .granule = MR, .most_rows = 64 * MR, .scratch = scratch_bytes, .run = run_tile};
