/* Attention in bf16 with AMX tiles for one tile of rows of one key/value head.
 *
 * Everything is transposed: S^T = K Q^T [keys, queries], O^T = V^T P^T [head_dim, queries]. A query is then a lane of
 * the vector registers: maxima and sums over keys run down the rows without crossing lanes, and K is an operand as it
 * lies in memory. Probabilities are rounded to bf16 before the second product; the rest is f32.
 *
 * Units of 1 KB (an AMX tile: 16 rows of 64 bytes), head_dim padded with zeros to `steps` times 32:
 *   q       [groups, steps, 2 halves]     pairs of head_dim x 16 queries
 *   keys    [CHUNK / 16, steps]           16 keys x 32 of head_dim
 *   values  [CHUNK / 32, 2 steps]         16 of head_dim x 32 keys
 *   p       [CHUNK / 32, 2 halves]        pairs of keys x 16 queries
 *   scores  f32 [2][CHUNK, GROUP], o f32 [groups, 32 steps, GROUP], max and sums f32 [groups, GROUP]
 * A group of 32 queries meets a whole chunk of keys at once, since probabilities are relative to the maximum over
 * chunks. Its exponentials are taken between the tile products of the next group with the keys (exp_pairs), so that
 * vector and tile units work at the same time.
 *
 * Deterministic: a query's sums run over its own lane in ascending order of keys. */
#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* unrolls the loops over arrays of registers */
#endif

#include <immintrin.h>
#include <math.h>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/gemm/tile_config.h"
#include "kernels/cpu/attention/transpose_avx512.h"
#include "kernels/cpu/vector_math.h"

#define BLOCK 64
#define GROUP 32
#define CHUNK LK_ATTENTION_CHUNK
#define PAIRS (BLOCK / 2)
#define AHEAD 32 /* rows of K and V fetched in advance: they lie far apart, which the hardware does not foresee */
#define UNIT  1024

/* The compiler does not know that tile loads read memory. */
#define READ_BY_TILES __asm__ volatile("" ::: "memory")

#define INLINE        static inline __attribute__((always_inline))

struct tile {
    int64_t hd, steps, n_groups;
    char *q, *keys, *values, *p;
    float *scores, *o, *max, *sums;
};

static size_t tile_place(struct tile *t, const struct lk_attention *op, int64_t tile_rows, char *base) {
    int64_t head_dim = op->q->shape[2], steps = (head_dim + 31) / 32, groups = (tile_rows + GROUP - 1) / GROUP;
    size_t q = (size_t)(groups * steps * 2) * UNIT, keys = (size_t)(CHUNK / 16 * steps) * UNIT, p = CHUNK / 16 * UNIT;
    size_t scores = 2 * CHUNK * GROUP * sizeof(float), o = (size_t)(groups * steps * 32 * GROUP) * sizeof(float);
    size_t lanes = (size_t)(groups * GROUP) * sizeof(float);
    if (base) {
        *t = (struct tile){.hd = head_dim, .steps = steps, .q = base, .keys = base + q, .values = base + q + keys};
        t->p = t->values + keys;
        t->scores = (float *)(t->p + p);
        t->o = (float *)(t->p + p + scores);
        t->max = (float *)(t->p + p + scores + o);
        t->sums = (float *)(t->p + p + scores + o + lanes);
    }
    return q + 2 * keys + p + scores + o + 2 * lanes;
}

static size_t scratch_bytes(const struct lk_attention *op, int64_t tile_rows) {
    return tile_place(NULL, op, tile_rows, NULL);
}

/* 32 values of a row from column d on, zero from head_dim on. */
INLINE __m512i load_32(const uint16_t *row, int64_t d, int64_t hd) {
    return hd - d >= 32 ? _mm512_loadu_si512(row + d)
                        : _mm512_maskz_loadu_epi16((__mmask32)((1u << (hd - d)) - 1u), row + d);
}

static void load_queries(struct tile *t, const struct lk_attention *op, int64_t kv_head, int64_t first, int64_t n) {
    t->n_groups = (n + GROUP - 1) / GROUP;
    for (int64_t half = 0; half < 2 * t->n_groups; half++)
        for (int64_t step = 0; step < t->steps; step++) {
            __m512i r[16];
            for (int64_t i = 0; i < 16; i++) {
                int64_t row = half * 16 + i;
                const uint16_t *q = (const uint16_t *)op->q->data + lk_attention_place(op, op->q, kv_head, first + row);
                r[i] = row < n ? load_32(q, step * 32, t->hd) : _mm512_setzero_si512();
            }
            lk_transpose16(r);
            char *out = t->q + ((half / 2 * t->steps + step) * 2 + half % 2) * UNIT;
            for (int i = 0; i < 16; i++) _mm512_store_si512(out + i * 64, r[i]);
        }
    for (int64_t i = 0; i < t->n_groups * GROUP; i++) t->max[i] = -INFINITY, t->sums[i] = 0.0f;
    memset(t->o, 0, (size_t)(t->n_groups * t->steps * 32 * GROUP) * sizeof(float));
}

/* n keys from `first`, the last block filled up with zeros. */
static void load_keys(struct tile *t, const struct lk_attention *op, int64_t column, int64_t first, int64_t n) {
    int64_t padded = (n + BLOCK - 1) / BLOCK * BLOCK;
    for (int64_t j = 0; j < padded; j++) {
        const uint16_t *k = (const uint16_t *)op->k->data + (first + j) * op->k->ld + column;
        for (int64_t d = 0; d < t->hd && j + AHEAD < n; d += 32)
            _mm_prefetch((const char *)(k + AHEAD * op->k->ld + d), _MM_HINT_T0);
        char *out = t->keys + j / 16 * t->steps * UNIT + j % 16 * 64;
        for (int64_t step = 0; step < t->steps; step++)
            _mm512_store_si512(out + step * UNIT, j < n ? load_32(k, step * 32, t->hd) : _mm512_setzero_si512());
    }
}

/* Keys 2 i and 2 i + 1 side by side in 32 bits, for 16 of head_dim; then transposed. */
static void load_values(struct tile *t, const struct lk_attention *op, int64_t column, int64_t first, int64_t n) {
    int64_t padded = (n + BLOCK - 1) / BLOCK * BLOCK, ld = op->v->ld;
    for (int64_t j = 0; j < padded; j += 32)
        for (int64_t d = 0; d < 2 * t->steps; d++) {
            const uint16_t *v = (const uint16_t *)op->v->data + (first + j) * ld + column + d * 16;
            int64_t width = t->hd - d * 16 < 0 ? 0 : t->hd - d * 16;
            __mmask16 mask = width >= 16 ? 0xffff : (__mmask16)((1u << width) - 1u);
            __m512i r[16];
            for (int64_t i = 0; i < 16; i++) {
                __m256i even = _mm256_maskz_loadu_epi16(j + 2 * i < n ? mask : 0, v + 2 * i * ld);
                if (j + AHEAD + 2 * i + 1 < n) {
                    _mm_prefetch((const char *)(v + (AHEAD + 2 * i) * ld), _MM_HINT_T0);
                    _mm_prefetch((const char *)(v + (AHEAD + 2 * i + 1) * ld), _MM_HINT_T0);
                }
                __m256i odd = _mm256_maskz_loadu_epi16(j + 2 * i + 1 < n ? mask : 0, v + (2 * i + 1) * ld);
                r[i] = _mm512_or_si512(_mm512_cvtepu16_epi32(even), _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
            }
            lk_transpose16(r);
            char *out = t->values + (j / 32 * 2 * t->steps + d) * UNIT;
            for (int i = 0; i < 16; i++) _mm512_store_si512(out + i * 64, r[i]);
        }
}

/* e^x for x <= 0 as ops.h has it for bf16. */
INLINE __m512 fast_exp(__m512 x) {
    __mmask16 seen = _mm512_cmp_ps_mask(x, _mm512_set1_ps(LK_FAST_EXP_LEAST), _CMP_GE_OQ);
    __m512 s = _mm512_mul_ps(x, _mm512_set1_ps(LK_FAST_EXP_LOG2E));
    __m512 f = _mm512_sub_ps(s, _mm512_roundscale_ps(s, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
    __m512 p = _mm512_fmadd_ps(f, _mm512_set1_ps(LK_FAST_EXP_C3), _mm512_set1_ps(LK_FAST_EXP_C2));
    p = _mm512_fmadd_ps(f, p, _mm512_set1_ps(LK_FAST_EXP_C1));
    p = _mm512_fmadd_ps(f, p, _mm512_set1_ps(LK_FAST_EXP_C0));
    __m512 bits = _mm512_fmadd_ps(_mm512_set1_ps(0x1p23f), _mm512_sub_ps(s, p), _mm512_set1_ps(127 * 0x1p23f));
    return (__m512)_mm512_maskz_cvttps_epi32(seen, bits);
}

/* The exponentials of one block, taken pair of keys by pair of keys. */
struct softmax {
    const float *scores;
    char *p;
    int next, end;                        /* pairs of keys */
    __m512 scale, max0, max1, sum0, sum1; /* 0, 1: halves of the group */
    __m512i order;                        /* interleaves the two halves of 32 words */
};

/* Two keys of 16 queries: probabilities to out, their sum to *sum. */
INLINE void exp_pair(const struct softmax *s, const float *row, __m512 max, __m512 *sum, char *out) {
    __m512 a = fast_exp(_mm512_sub_ps(_mm512_mul_ps(_mm512_load_ps(row), s->scale), max));
    __m512 b = fast_exp(_mm512_sub_ps(_mm512_mul_ps(_mm512_load_ps(row + GROUP), s->scale), max));
    *sum = _mm512_add_ps(*sum, _mm512_add_ps(a, b));
    __m512i words = (__m512i)_mm512_cvtne2ps_pbh(b, a);
    _mm512_store_si512(out, _mm512_permutexvar_epi16(s->order, words));
}

INLINE void exp_pairs(struct softmax *s, int n) {
    for (int end = s->next + n < s->end ? s->next + n : s->end; s->next < end; s->next++) {
        const float *row = s->scores + s->next * 2 * GROUP;
        char *out = s->p + s->next / 16 * 2 * UNIT + s->next % 16 * 64;
        exp_pair(s, row, s->max0, &s->sum0, out);
        exp_pair(s, row + 16, s->max1, &s->sum1, out + UNIT);
    }
}

/* scores[BLOCK, GROUP] = keys q; `n` pairs of s between the tile products. */
INLINE void multiply_keys(const struct tile *t, const char *q, int64_t block, float *scores, struct softmax *s, int n) {
    READ_BY_TILES;
    for (int64_t i = 0; i < BLOCK / 32; i++) {
        const char *k = t->keys + (block * (BLOCK / 16) + 2 * i) * t->steps * UNIT;
        float *out = scores + i * 32 * GROUP;
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        for (int64_t step = 0; step < t->steps; step++) {
            _tile_stream_loadd(4, k + step * UNIT, 64);
            _tile_loadd(6, q + step * 2 * UNIT, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, q + step * 2 * UNIT + UNIT, 64);
            _tile_dpbf16ps(1, 4, 7);
            _tile_stream_loadd(5, k + (t->steps + step) * UNIT, 64);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
            exp_pairs(s, n);
        }
        _tile_stored(0, out, GROUP * 4);
        _tile_stored(1, out + 16, GROUP * 4);
        _tile_stored(2, out + 16 * GROUP, GROUP * 4);
        _tile_stored(3, out + 16 * GROUP + 16, GROUP * 4);
    }
}

/* o[32 steps, GROUP] += values p for `n_blocks` blocks. */
static void multiply_values(const struct tile *t, float *o, int64_t n_blocks) {
    READ_BY_TILES;
    for (int64_t step = 0; step < t->steps; step++) {
        float *out = o + step * 32 * GROUP;
        _tile_loadd(0, out, GROUP * 4);
        _tile_loadd(1, out + 16, GROUP * 4);
        _tile_loadd(2, out + 16 * GROUP, GROUP * 4);
        _tile_loadd(3, out + 16 * GROUP + 16, GROUP * 4);
        for (int64_t i = 0; i < n_blocks * (BLOCK / 32); i++) {
            const char *v = t->values + (i * 2 * t->steps + 2 * step) * UNIT, *p = t->p + i * 2 * UNIT;
            _tile_stream_loadd(4, v, 64);
            _tile_loadd(6, p, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, p + UNIT, 64);
            _tile_dpbf16ps(1, 4, 7);
            _tile_stream_loadd(5, v + UNIT, 64);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
        _tile_stored(0, out, GROUP * 4);
        _tile_stored(1, out + 16, GROUP * 4);
        _tile_stored(2, out + 16 * GROUP, GROUP * 4);
        _tile_stored(3, out + 16 * GROUP + 16, GROUP * 4);
    }
}

/* Keys that a query does not see get -infinity. seen: keys of the chunk that each query sees. */
static void hide(float *scores, const int32_t seen[GROUP], int64_t first, int64_t end) {
    const __m512 hidden = _mm512_set1_ps(-INFINITY);
    for (int half = 0; half < 2; half++) {
        __m512i limit = _mm512_loadu_si512(seen + half * 16);
        for (int64_t j = first; j < end; j++) {
            __mmask16 beyond = _mm512_cmple_epi32_mask(limit, _mm512_set1_epi32((int)j));
            _mm512_mask_store_ps(scores + j * GROUP + half * 16, beyond, hidden);
        }
    }
}

/* The running maximum of each query with n more keys. A NaN among the scores makes it NaN. o and sums are brought to
 * the new maximum. */
static void update_max(const struct tile *t, int64_t group, const float *scores, int64_t n, float scale) {
    float *max = t->max + group * GROUP, *sums = t->sums + group * GROUP, *o = t->o + group * t->steps * 32 * GROUP;
    float factor[GROUP] __attribute__((aligned(64)));
    bool moved = false;
    for (int half = 0; half < 2; half++) {
        __m512 most[4];
        __mmask16 unordered = 0;
        for (int i = 0; i < 4; i++) most[i] = _mm512_load_ps(scores + i * GROUP + half * 16);
        for (int64_t j = 0; j < n; j += 4)
            for (int i = 0; i < 4; i++) {
                __m512 s = _mm512_load_ps(scores + (j + i) * GROUP + half * 16);
                most[i] = _mm512_max_ps(s, most[i]);
                unordered |= _mm512_cmp_ps_mask(s, s, _CMP_UNORD_Q);
            }
        most[0] = _mm512_max_ps(_mm512_max_ps(most[0], most[1]), _mm512_max_ps(most[2], most[3]));
        most[0] = _mm512_mul_ps(most[0], _mm512_set1_ps(scale));
        __m512 old = _mm512_load_ps(max + half * 16), now = _mm512_max_ps(most[0], old);
        now = _mm512_mask_mov_ps(now, unordered, _mm512_set1_ps(NAN));
        _mm512_store_ps(max + half * 16, now);
        _mm512_store_ps(factor + half * 16, _mm512_sub_ps(old, now));
        moved = moved || _mm512_cmp_ps_mask(old, now, _CMP_NEQ_UQ);
    }
    if (!moved) return;
    for (int i = 0; i < GROUP; i++) factor[i] = lk_exp(factor[i]);
    for (int i = 0; i < GROUP; i++) sums[i] *= factor[i];
    for (int64_t d = 0; d < t->steps * 32; d++)
        for (int half = 0; half < 2; half++) {
            float *at = o + d * GROUP + half * 16;
            _mm512_store_ps(at, _mm512_mul_ps(_mm512_load_ps(at), _mm512_load_ps(factor + half * 16)));
        }
}

/* What one group sees of a chunk. */
struct view {
    int32_t seen[GROUP]; /* keys of the chunk */
    int64_t least, n_blocks;
};

static void look(struct view *w, const struct tile *t, const struct lk_attention *op, int64_t group, int64_t first,
                 int64_t n, int64_t key) {
    *w = (struct view){.least = CHUNK};
    int64_t most = 0;
    for (int64_t i = 0; i < GROUP && group < t->n_groups; i++) {
        int64_t row = group * GROUP + i < n ? group * GROUP + i : n - 1;
        int64_t count = lk_attention_keys(op, first + row) - key;
        count = count < 0 ? 0 : count > CHUNK ? CHUNK : count;
        w->seen[i] = (int32_t)count;
        if (count < w->least) w->least = count;
        if (count > most) most = count;
    }
    w->n_blocks = (most + BLOCK - 1) / BLOCK;
}

/* All groups against the chunk's keys. While a group's exponentials are taken, the next group is multiplied with the
 * keys. */
static void attend_chunk(const struct tile *t, const struct lk_attention *op, int64_t first, int64_t n, int64_t key) {
    static const uint16_t interleave[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                            8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const int pairs_a_step = (int)(16 / t->steps + 1);
    struct softmax s = {.scale = _mm512_set1_ps(op->scale), .p = t->p, .order = _mm512_loadu_si512(interleave)};
    struct view now, next;
    look(&now, t, op, 0, first, n, key);
    for (int64_t b = 0; b < now.n_blocks; b++) multiply_keys(t, t->q, b, t->scores + b * BLOCK * GROUP, &s, 0);
    for (int64_t group = 0; group < t->n_groups; group++, now = next) {
        float *scores = t->scores + group % 2 * CHUNK * GROUP, *others = t->scores + (group + 1) % 2 * CHUNK * GROUP;
        look(&next, t, op, group + 1, first, n, key);
        int64_t n_keys = now.n_blocks * BLOCK;
        if (now.least < n_keys) hide(scores, now.seen, now.least, n_keys);
        if (n_keys) update_max(t, group, scores, n_keys, op->scale);
        s.scores = scores;
        s.next = 0;
        s.end = (int)now.n_blocks * PAIRS;
        s.max0 = _mm512_load_ps(t->max + group * GROUP);
        s.max1 = _mm512_load_ps(t->max + group * GROUP + 16);
        s.sum0 = s.sum1 = _mm512_setzero_ps();
        const char *q = t->q + (group + 1) * t->steps * 2 * UNIT;
        for (int64_t b = 0; b < next.n_blocks; b++)
            multiply_keys(t, q, b, others + b * BLOCK * GROUP, &s, pairs_a_step);
        exp_pairs(&s, s.end);
        float *sums = t->sums + group * GROUP;
        _mm512_store_ps(sums, _mm512_add_ps(_mm512_load_ps(sums), s.sum0));
        _mm512_store_ps(sums + 16, _mm512_add_ps(_mm512_load_ps(sums + 16), s.sum1));
        if (n_keys) multiply_values(t, t->o + group * t->steps * 32 * GROUP, now.n_blocks);
    }
}

static void store_group(const struct tile *t, const struct lk_attention *op, int64_t kv_head, int64_t first, int64_t n,
                        int64_t group) {
    float rows[GROUP][512];
    const float *o = t->o + group * t->steps * 32 * GROUP;
    for (int half = 0; half < 2; half++) {
        __m512 inverse = _mm512_div_ps(_mm512_set1_ps(1.0f), _mm512_load_ps(t->sums + group * GROUP + half * 16));
        for (int64_t d = 0; d < t->steps * 32; d += 16) {
            __m512i r[16];
            for (int i = 0; i < 16; i++)
                r[i] = (__m512i)_mm512_mul_ps(_mm512_load_ps(o + (d + i) * GROUP + half * 16), inverse);
            lk_transpose16(r);
            for (int i = 0; i < 16; i++) _mm512_storeu_si512(rows[half * 16 + i] + d, r[i]);
        }
    }
    for (int64_t i = 0; i < GROUP && group * GROUP + i < n; i++)
        lk_cpu_store(op->out, lk_attention_place(op, op->out, kv_head, first + group * GROUP + i), t->hd, rows[i]);
}

static void run_tile(const struct lk_attention *op, int64_t kv_head, int64_t first, int64_t n, int64_t tile_rows,
                     void *scratch) {
    struct tile t = {0};
    tile_place(&t, op, tile_rows, scratch);
    load_queries(&t, op, kv_head, first, n);
    int64_t column = kv_head * t.hd, n_keys = lk_attention_keys(op, first + n - 1);
    _tile_loadconfig(&lk_tile_config);
    for (int64_t key = 0; key < n_keys; key += CHUNK) {
        int64_t n_chunk = n_keys - key < CHUNK ? n_keys - key : CHUNK;
        load_keys(&t, op, column, key, n_chunk);
        load_values(&t, op, column, key, n_chunk);
        attend_chunk(&t, op, first, n, key);
    }
    _tile_release();
    for (int64_t group = 0; group < t.n_groups; group++) store_group(&t, op, kv_head, first, n, group);
}

const struct lk_attention_kernel lk_attention_amx = {
    .granule = GROUP, .most_rows = 1024, .scratch = scratch_bytes, .run = run_tile};
#endif
