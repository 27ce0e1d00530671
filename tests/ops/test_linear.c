/* linear against a float64 oracle: random shapes with odd tails, windows, every epilogue, extreme values, every
 * instruction level; and the bits of a row, which must not depend on the rows beside it, its position or the threads.
 */
#include "tests/common/test.h"

#include <math.h>

#include "engine/base/alloc.h"
#include "engine/base/isa.h"
#include "engine/bf16.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm/gemm.h"

#define N_CASES  240
#define SENTINEL 0xff /* NaN in every dtype: what lies between rows must not be read as theirs */

/* One linear layer with its memory; every matrix is a window between sentinels. */
struct layer {
    int64_t m, n, k, rank; /* rank 0: no adapter */
    enum lk_dtype dtype, w_dtype;
    struct lk_tensor x, w, y, bias, gate, residual, low, up;
    enum lk_act act;
    bool has_bias, has_gate, has_residual, round_before_bias;
    void *blocks[8];
    size_t y_bytes;
};

static struct lk_tensor window(void **block, enum lk_dtype dtype, int64_t rows, int64_t cols, int64_t ld) {
    size_t bytes = (size_t)(rows * ld) * lk_dtype_size(dtype);
    *block = lk_malloc(bytes);
    memset(*block, SENTINEL, bytes);
    struct lk_tensor t = LK_TENSOR(*block, dtype, rows, cols);
    t.ld = ld;
    return t;
}

static void fill(struct lk_tensor *t, uint64_t *seed, double scale) {
    int64_t cols = t->n_dims == 1 ? 1 : t->shape[1];
    for (int64_t r = 0; r < t->shape[0]; r++)
        for (int64_t c = 0; c < cols; c++) lk_cpu_set(t, r * t->ld + c, (float)(scale * test_normal(seed)));
}

static int64_t pad(uint64_t *seed) { return test_random(seed) % 2 ? (int64_t)(test_random(seed) % 9) : 0; }

static void make(struct layer *l, uint64_t *seed, double scale) {
    l->x = window(&l->blocks[0], l->dtype, l->m, l->k, l->k + pad(seed));
    l->w = window(&l->blocks[1], l->w_dtype, l->n, l->k, l->k + pad(seed));
    l->y = window(&l->blocks[2], l->dtype, l->m, l->n, l->n + 1 + pad(seed));
    l->bias = window(&l->blocks[3], l->w_dtype, l->n, 1, 1);
    l->gate = window(&l->blocks[4], l->dtype, l->n, 1, 1);
    l->residual = window(&l->blocks[5], l->dtype, l->m, l->n, l->n + pad(seed));
    l->bias.n_dims = l->gate.n_dims = 1;
    fill(&l->x, seed, scale);
    fill(&l->w, seed, 1);
    fill(&l->bias, seed, scale);
    fill(&l->gate, seed, 1);
    fill(&l->residual, seed, scale);
    l->low = window(&l->blocks[6], l->dtype, l->m, l->rank, l->rank + pad(seed));
    l->up = window(&l->blocks[7], l->dtype, l->n, l->rank, l->rank + pad(seed));
    fill(&l->low, seed, scale);
    fill(&l->up, seed, 1);
    l->y_bytes = (size_t)(l->m * l->y.ld) * lk_dtype_size(l->dtype);
}

static void drop(struct layer *l) {
    for (int i = 0; i < 8; i++) lk_free(l->blocks[i]);
}

static void run(struct layer *l, int n_threads) {
    struct lk_device dev = {.kind = LK_DEVICE_CPU, .n_threads = n_threads};
    struct lk_linear op = {.y = &l->y,
                           .x = &l->x,
                           .w = &l->w,
                           .bias = l->has_bias ? &l->bias : NULL,
                           .gate = l->has_gate ? &l->gate : NULL,
                           .residual = l->has_residual ? &l->residual : NULL,
                           .low = l->rank ? &l->low : NULL,
                           .up = l->rank ? &l->up : NULL,
                           .act = l->act,
                           .round_before_bias = l->round_before_bias};
    size_t bytes = lk_cpu_linear_scratch(&dev, &op);
    void *scratch = lk_malloc(bytes);
    assert_non_null(scratch);
    memset(scratch, 0xff, bytes); /* NaN: padding must not be read before it is written */
    assert_ok(lk_cpu_linear(&dev, &op, scratch));
    lk_free(scratch);
}

static double act_oracle(enum lk_act act, double x) {
    switch (act) {
    case LK_ACT_SILU:
        return x / (1 + exp(-x));
    case LK_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case LK_ACT_GELU_ERF:
        return 0.5 * x * erfc(-x / sqrt(2));
    case LK_ACT_QUICK_GELU:
        return x / (1 + exp(-1.702 * x));
    default:
        return x;
    }
}

static double rounded(enum lk_dtype dtype, double x) { return dtype == LK_BF16 ? lk_round_bf16((float)x) : x; }

static double oracle(const struct layer *l, int64_t r, int64_t c) {
    double sum = l->has_bias ? lk_cpu_get(&l->bias, c) : 0;
    for (int64_t i = 0; i < l->k; i++)
        sum += (double)lk_cpu_get(&l->x, r * l->x.ld + i) * lk_cpu_get(&l->w, c * l->w.ld + i);
    for (int64_t i = 0; i < l->rank; i++)
        sum += (double)lk_cpu_get(&l->low, r * l->low.ld + i) * lk_cpu_get(&l->up, c * l->up.ld + i);
    double v = rounded(l->dtype, act_oracle(l->act, rounded(l->dtype, sum)));
    if (l->has_gate) v = rounded(l->dtype, lk_cpu_get(&l->gate, c) * v);
    if (l->has_residual) v = rounded(l->dtype, lk_cpu_get(&l->residual, r * l->residual.ld + c) + v);
    return v;
}

/* Normalised mean square error against the oracle; checks the gaps between rows. */
static double nmse(const struct layer *l) {
    double error = 0, norm = 0;
    size_t size = lk_dtype_size(l->dtype);
    for (int64_t r = 0; r < l->m; r++) {
        for (int64_t c = 0; c < l->n; c++) {
            double expected = oracle(l, r, c), got = lk_cpu_get(&l->y, r * l->y.ld + c);
            assert_true(isfinite(got));
            error += (got - expected) * (got - expected);
            norm += expected * expected;
        }
        const unsigned char *gap = (const unsigned char *)l->y.data + (size_t)(r * l->y.ld + l->n) * size;
        for (size_t i = 0; i < (size_t)(l->y.ld - l->n) * size; i++) assert_int_equal(gap[i], SENTINEL);
    }
    return norm > 0 ? error / norm : error;
}

static void random_case(uint64_t *seed, enum lk_isa isa, double *worst_f32, double *worst_bf16) {
    static const double scales[] = {1, 1, 1, 1e-15, 1e15};
    static const int64_t large_k[] = {4096, 6143, 9001};
    struct layer l = {.m = 1 + (int64_t)(test_random(seed) % (test_random(seed) % 2 ? 20 : 130)),
                      .n = 1 + (int64_t)(test_random(seed) % (test_random(seed) % 2 ? 40 : 150)),
                      .k = 1 + (int64_t)(test_random(seed) % (test_random(seed) % 2 ? 40 : 300))};
    if (test_random(seed) % 20 == 0) {
        l.k = large_k[test_random(seed) % 3];
        l.m = 1 + l.m % 20;
        l.n = 1 + l.n % 40;
    }
    if (test_random(seed) % 2) l.rank = 1 + (int64_t)(test_random(seed) % (test_random(seed) % 2 ? 40 : 300));
    int pair = (int)(test_random(seed) % 3);
    l.dtype = pair == 2 ? LK_BF16 : LK_F32;
    l.w_dtype = pair == 0 ? LK_F32 : LK_BF16;
    double scale = scales[test_random(seed) % 5];
    if (scale == 1) l.act = (enum lk_act)(test_random(seed) % 5);
    l.has_bias = test_random(seed) % 2;
    l.has_gate = test_random(seed) % 2;
    l.has_residual = test_random(seed) % 2;
    make(&l, seed, scale);
    run(&l, 1 + (int)(test_random(seed) % 4));
    double e = nmse(&l), bar = l.dtype == LK_BF16 ? 1e-5 : 1e-10;
    double *worst = l.dtype == LK_BF16 ? worst_bf16 : worst_f32;
    if (e > *worst) *worst = e;
    if (!(e <= bar))
        fail_msg("%s: M %lld N %lld K %lld R %lld %s x %s act %d: NMSE %g", lk_cpu_isa_name(isa), (long long)l.m,
                 (long long)l.n, (long long)l.k, (long long)l.rank, lk_dtype_name(l.dtype), lk_dtype_name(l.w_dtype),
                 (int)l.act, e);
    drop(&l);
}

static void against_float64(void **state) {
    (void)state;
    for (int isa = LK_ISA_PORTABLE; isa <= LK_ISA_AMX; isa++) {
        if (lk_cpu_isa_set((enum lk_isa)isa) != (enum lk_isa)isa) continue;
        uint64_t seed = 7 + (uint64_t)isa;
        double worst_f32 = 0, worst_bf16 = 0;
        for (int i = 0; i < N_CASES; i++) random_case(&seed, (enum lk_isa)isa, &worst_f32, &worst_bf16);
        print_message("%s: worst NMSE f32 %.2g, bf16 %.2g\n", lk_cpu_isa_name((enum lk_isa)isa), worst_f32, worst_bf16);
    }
}

/* No tile is multiplied that holds nothing but zeros, nor twice: 16 rows of x at a time, 32 of w, 32 of K. */
static void tiles_of_a_product(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{1, 32, 32}, {16, 40, 64}, {17, 64, 300}, {50, 96, 1000}, {800, 70, 513}};
    const enum lk_isa most = lk_cpu_isa();
    if (lk_cpu_isa_set(LK_ISA_AMX) != LK_ISA_AMX || test_tiles_multiplied() < 0) {
        lk_cpu_isa_set(most);
        printf("SKIP: tile instructions: nobody counts the machine's own, and without AVX512_BF16 none can run\n");
        skip();
    }
    for (int i = 0; i < 10; i++) {
        const int64_t *shape = shapes[i / 2], parts = i % 2 ? 3 : 1; /* an f32 is three bf16 */
        struct layer l = {.m = shape[0], .n = shape[1], .k = shape[2], .w_dtype = LK_BF16};
        l.dtype = i % 2 ? LK_F32 : LK_BF16;
        uint64_t seed = 4;
        make(&l, &seed, 1);
        const int64_t before = test_tiles_multiplied();
        run(&l, 2);
        const int64_t rows = (l.m + 15) / 16, columns = (l.n + 31) / 32 * 2, steps = (l.k + 31) / 32;
        assert_int_equal(test_tiles_multiplied() - before, rows * columns * steps * parts);
        drop(&l);
    }
    lk_cpu_isa_set(most);
}

/* y may be the residual. */
static void in_place_residual(void **state) {
    (void)state;
    uint64_t seed = 3;
    struct layer a = {.m = 33, .n = 70, .k = 50, .has_residual = true, .has_gate = true};
    make(&a, &seed, 1);
    run(&a, 2);
    struct lk_tensor apart = a.y;
    a.y = a.residual;
    run(&a, 2);
    for (int64_t r = 0; r < a.m; r++)
        assert_memory_equal((float *)apart.data + r * apart.ld, (float *)a.y.data + r * a.y.ld,
                            (size_t)a.n * sizeof(float));
    drop(&a);
}

/* Row `from` of the reference's x, computed as row `at` of a product with m rows. */
static void check_row(const struct layer *reference, int64_t from, int64_t m, int64_t at, int n_threads,
                      uint64_t *seed) {
    struct layer l = *reference;
    size_t size = lk_dtype_size(l.dtype);
    l.m = m;
    l.x = window(&l.blocks[0], l.dtype, m, l.k, l.k + 3);
    l.y = window(&l.blocks[2], l.dtype, m, l.n, l.n + 1);
    l.residual = window(&l.blocks[5], l.dtype, m, l.n, l.n);
    l.low = window(&l.blocks[6], l.dtype, m, l.rank, l.rank);
    fill(&l.x, seed, 1);
    fill(&l.low, seed, 1);
    memcpy((char *)l.low.data + (size_t)(at * l.low.ld) * size,
           (char *)reference->low.data + (size_t)(from * reference->low.ld) * size, (size_t)l.rank * size);
    fill(&l.residual, seed, 1);
    memcpy((char *)l.x.data + (size_t)(at * l.x.ld) * size,
           (char *)reference->x.data + (size_t)(from * reference->x.ld) * size, (size_t)l.k * size);
    memcpy((char *)l.residual.data + (size_t)(at * l.residual.ld) * size,
           (char *)reference->residual.data + (size_t)(from * reference->residual.ld) * size, (size_t)l.n * size);
    run(&l, n_threads);
    assert_memory_equal((char *)l.y.data + (size_t)(at * l.y.ld) * size,
                        (char *)reference->y.data + (size_t)(from * reference->y.ld) * size, (size_t)l.n * size);
    lk_free(l.blocks[0]);
    lk_free(l.blocks[2]);
    lk_free(l.blocks[5]);
    lk_free(l.blocks[6]);
}

static void rows_of_pair(enum lk_dtype dtype, enum lk_dtype w_dtype, int64_t n, int64_t k, int64_t rank) {
    static const int64_t ms[] = {1, 2, 3, 9, 16, 17, 100, 1000};
    static const int threads[] = {1, 2, 3, 16};
    uint64_t seed = 11;
    struct layer l = {.m = 37, .n = n, .k = k, .rank = rank, .dtype = dtype, .w_dtype = w_dtype};
    l.act = LK_ACT_SILU;
    l.has_bias = l.has_gate = l.has_residual = true;
    make(&l, &seed, 1);
    run(&l, 2);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 4; j++) {
            int64_t from = (int64_t)(test_random(&seed) % 37), at = (int64_t)(test_random(&seed) % (uint64_t)ms[i]);
            if (ms[i] * k > 1000000 && j != i % 4) continue;
            check_row(&l, from, ms[i], at, threads[j], &seed);
        }
    drop(&l);
}

static void row_bits(void **state) {
    (void)state;
    for (int isa = LK_ISA_PORTABLE; isa <= LK_ISA_AMX; isa++) {
        if (lk_cpu_isa_set((enum lk_isa)isa) != (enum lk_isa)isa) continue;
        rows_of_pair(LK_F32, LK_F32, 67, 1111, 0);
        rows_of_pair(LK_F32, LK_BF16, 67, 1111, 0);
        rows_of_pair(LK_BF16, LK_BF16, 67, 1111, 0);
        rows_of_pair(LK_F32, LK_F32, 67, 1111, 96);
        rows_of_pair(LK_F32, LK_BF16, 67, 300, 64);
        rows_of_pair(LK_BF16, LK_BF16, 67, 1111, 96);
        rows_of_pair(LK_BF16, LK_BF16, 530, 77, 300);
        rows_of_pair(LK_F32, LK_BF16, 530, 77, 0);
        rows_of_pair(LK_BF16, LK_BF16, 530, 77, 0);
        rows_of_pair(LK_BF16, LK_BF16, 9, 17000, 0); /* more than one long K block */
        rows_of_pair(LK_F32, LK_BF16, 50, 17000, 0); /* few rows that do not stay in L2: several panels a block */
    }
}

/* An adapter is more of K: the bits are those of the product of [x low] and [w up], where K ends with a step of every
 * kernel. */
static void an_adapter_is_more_of_k(void **state) {
    (void)state;
    for (int isa = LK_ISA_PORTABLE; isa <= LK_ISA_AMX; isa++)
        for (int i = 0; i < 12; i++) {
            if (lk_cpu_isa_set((enum lk_isa)isa) != (enum lk_isa)isa) continue;
            static const int64_t ms[] = {1, 5, 12, 40, 150}, ks[] = {32, 544, 4096}, ranks[] = {32, 96, 256};
            uint64_t seed = 20 + (uint64_t)i;
            struct layer l = {.m = ms[i % 5], .n = i % 4 ? 70 : 300, .k = ks[i % 3], .rank = ranks[i / 3 % 3]};
            l.dtype = l.w_dtype = i % 2 ? LK_BF16 : LK_F32;
            l.act = LK_ACT_GELU_TANH;
            l.has_bias = l.has_gate = l.has_residual = true;
            l.round_before_bias = i % 5 == 1;
            make(&l, &seed, 1);
            run(&l, 2);
            struct layer joined = l;
            const size_t size = lk_dtype_size(l.dtype);
            joined.k += l.rank;
            joined.rank = 0;
            joined.x = window(&joined.blocks[0], l.dtype, l.m, joined.k, joined.k);
            joined.w = window(&joined.blocks[1], l.dtype, l.n, joined.k, joined.k);
            joined.y = window(&joined.blocks[2], l.dtype, l.m, l.n, l.y.ld);
            const struct {
                const struct lk_tensor *to, *first, *then;
            } pairs[] = {{&joined.x, &l.x, &l.low}, {&joined.w, &l.w, &l.up}};
            for (int p = 0; p < 2; p++)
                for (int64_t row = 0; row < pairs[p].to->shape[0]; row++) {
                    char *to = (char *)pairs[p].to->data + (size_t)(row * joined.k) * size;
                    memcpy(to, (char *)pairs[p].first->data + (size_t)(row * pairs[p].first->ld) * size,
                           (size_t)l.k * size);
                    memcpy(to + (size_t)l.k * size,
                           (char *)pairs[p].then->data + (size_t)(row * pairs[p].then->ld) * size,
                           (size_t)l.rank * size);
                }
            run(&joined, 2);
            assert_memory_equal(joined.y.data, l.y.data, l.y_bytes);
            for (int b = 0; b < 3; b++) lk_free(joined.blocks[b]);
            drop(&l);
        }
}

/* A NaN or Inf in x or w reaches exactly the outputs that it should. */
static void nonfinite(void **state) {
    (void)state;
    for (int isa = LK_ISA_PORTABLE; isa <= LK_ISA_AMX; isa++)
        for (int pair = 0; pair < 3; pair++) {
            if (lk_cpu_isa_set((enum lk_isa)isa) != (enum lk_isa)isa) continue;
            uint64_t seed = 5;
            struct layer l = {.m = 40, .n = 70, .k = 75};
            l.dtype = pair == 2 ? LK_BF16 : LK_F32;
            l.w_dtype = pair == 0 ? LK_F32 : LK_BF16;
            make(&l, &seed, 1);
            lk_cpu_set(&l.x, 7 * l.x.ld + 74, NAN);
            lk_cpu_set(&l.x, 9 * l.x.ld + 3, INFINITY);
            lk_cpu_set(&l.w, 33 * l.w.ld + 74, -INFINITY);
            run(&l, 2);
            for (int64_t r = 0; r < l.m; r++)
                for (int64_t c = 0; c < l.n; c++) {
                    float v = lk_cpu_get(&l.y, r * l.y.ld + c);
                    if (r == 7)
                        assert_true(isnan(v));
                    else if (r == 9 || c == 33)
                        assert_true(isinf(v) || (r == 9 && c == 33));
                    else
                        assert_true(isfinite(v));
                }
            drop(&l);
        }
}

/* Products that stay inside f32 while operands lie at the ends of its range. */
static void extreme_values(void **state) {
    (void)state;
    for (int isa = LK_ISA_PORTABLE; isa <= LK_ISA_AMX; isa++)
        for (int pair = 0; pair < 3; pair++) {
            if (lk_cpu_isa_set((enum lk_isa)isa) != (enum lk_isa)isa) continue;
            uint64_t seed = 6;
            struct layer l = {.m = 20, .n = 40, .k = 64};
            l.dtype = pair == 2 ? LK_BF16 : LK_F32;
            l.w_dtype = pair == 0 ? LK_F32 : LK_BF16;
            make(&l, &seed, 1);
            for (int64_t r = 0; r < l.m; r++)
                for (int64_t i = 0; i < l.k; i++)
                    lk_cpu_set(&l.x, r * l.x.ld + i, r % 2 ? 3.3e38f * (float)(2 * test_uniform(&seed) - 1) : 1.2e-30f);
            for (int64_t r = 0; r < l.n; r++)
                for (int64_t i = 0; i < l.k; i++)
                    lk_cpu_set(&l.w, r * l.w.ld + i, r % 2 ? 1e-3f : 1e-3f * (float)test_normal(&seed));
            run(&l, 2);
            assert_true(nmse(&l) <= (l.dtype == LK_BF16 ? 1e-5 : 1e-10));
            drop(&l);
        }
}

/* 1.0078125^2 + 2^-8 lies just above a tie of bf16; rounded before the bias is added, exactly on it. */
static void rounds_before_the_bias_when_asked(void **state) {
    (void)state;
    enum lk_isa most = lk_cpu_isa();
    for (enum lk_isa isa = LK_ISA_PORTABLE; isa <= most; isa++) {
        lk_cpu_isa_set(isa);
        for (int before = 0; before < 2; before++) {
            struct layer l = {.m = 3, .n = 5, .k = 1, .dtype = LK_BF16, .w_dtype = LK_BF16};
            l.has_bias = true;
            l.round_before_bias = before;
            uint64_t seed = 1;
            make(&l, &seed, 1);
            for (int64_t r = 0; r < l.m; r++) lk_cpu_set(&l.x, r * l.x.ld, 1.0078125f);
            for (int64_t c = 0; c < l.n; c++) {
                lk_cpu_set(&l.w, c * l.w.ld, 1.0078125f);
                lk_cpu_set(&l.bias, c, 0x1p-8f);
            }
            run(&l, 1);
            for (int64_t r = 0; r < l.m; r++)
                for (int64_t c = 0; c < l.n; c++)
                    assert_true(lk_cpu_get(&l.y, r * l.y.ld + c) == (before ? 1.015625f : 1.0234375f));
            drop(&l);
        }
    }
    lk_cpu_isa_set(most);
}

/* An element of C as the instructions' manuals define it. FMA: in the order of K. AVX512-BF16: of two elements the
 * later first, rounded after each; subnormal numbers, read or made, are zero. */
static float without_subnormal(float v) { return fabsf(v) < 0x1p-126f ? copysignf(0, v) : v; }

static float by_the_manual(enum lk_isa isa, const uint16_t *x, const uint16_t *w, int64_t k) {
    const bool pairs = isa == LK_ISA_AVX512_BF16;
    float sum = 0;
    for (int64_t i = 0; i < k + pairs; i++) {
        const int64_t at = pairs ? i ^ 1 : i;
        if (at >= k) continue;
        const float a = lk_bf16_to_f32(x[at]), b = lk_bf16_to_f32(w[at]);
        sum = pairs ? without_subnormal(fmaf(without_subnormal(a), without_subnormal(b), sum)) : fmaf(a, b, sum);
    }
    return sum;
}

static void keep(const void *context, int64_t m, int64_t n_m, int64_t n, int64_t n_n, const float *c, int64_t ldc) {
    const struct lk_tensor *out = context;
    for (int64_t i = 0; i < n_m; i++)
        memcpy((float *)out->data + (m + i) * out->ld + n, c + i * ldc, (size_t)n_n * sizeof *c);
}

/* So a picture of this architecture has one hash on the processors of every maker. */
static void bits_of_the_manual(void **state) {
    (void)state;
    const enum lk_isa most = lk_cpu_isa();
    for (enum lk_isa isa = LK_ISA_AVX2; isa <= LK_ISA_AVX512_BF16; isa++) {
        if (lk_cpu_isa_set(isa) != isa) continue;
        uint64_t seed = 11;
        const enum lk_isa other = isa == LK_ISA_AVX512_BF16 ? LK_ISA_AVX512 : LK_ISA_AVX512_BF16;
        int apart = 0;
        for (int i = 0; i < 12; i++) {
            const int64_t m = i < 6 ? 1 : 2 + (int64_t)(test_random(&seed) % 40),
                          n = 1 + (int64_t)(test_random(&seed) % 70);
            const int64_t k = 1 + (int64_t)(test_random(&seed) % 1700);
            struct layer l = {.m = m, .n = n, .k = k, .dtype = LK_BF16, .w_dtype = LK_BF16};
            make(&l, &seed, i % 2 ? 1 : 0x1p-126f); /* of these two thirds are subnormal */
            for (int64_t r = 0; i % 2 == 0 && r < n; r++)
                for (int64_t j = 0; j < k; j++)
                    lk_cpu_set(&l.w, r * l.w.ld + j, 0x1p20f * lk_cpu_get(&l.w, r * l.w.ld + j));
            float *out = lk_malloc((size_t)(m * n) * sizeof *out);
            const struct lk_tensor c = LK_TENSOR(out, LK_F32, m, n);
            const struct lk_gemm g = {.m = m,
                                      .n = n,
                                      .k = k,
                                      .a = {.dtype = LK_BF16, .data = l.x.data, .ld = l.x.ld},
                                      .b = {.dtype = LK_BF16, .data = l.w.data, .ld = l.w.ld},
                                      .store = keep,
                                      .store_context = &c};
            void *scratch = lk_malloc(lk_gemm_scratch(&g, 2));
            lk_gemm_run(&g, 2, scratch);
            for (int64_t r = 0; r < m; r++)
                for (int64_t j = 0; j < n; j++) {
                    const uint16_t *x = (uint16_t *)l.x.data + r * l.x.ld, *w = (uint16_t *)l.w.data + j * l.w.ld;
                    const float expected = by_the_manual(isa, x, w, k);
                    apart += expected != by_the_manual(other, x, w, k);
                    if (memcmp(&expected, out + r * n + j, sizeof expected))
                        fail_msg("%s: %lld x %lld x %lld, row %lld, column %lld: %a, expected %a", lk_cpu_isa_name(isa),
                                 (long long)m, (long long)n, (long long)k, (long long)r, (long long)j,
                                 (double)out[r * n + j], (double)expected);
                }
            lk_free(scratch);
            lk_free(out);
            drop(&l);
        }
        print_message("%s: %d elements that %s would have otherwise\n", lk_cpu_isa_name(isa), apart,
                      lk_cpu_isa_name(other));
        assert_true(apart > 0);
    }
    lk_cpu_isa_set(most);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_of_a_product),      cmocka_unit_test(against_float64),
        cmocka_unit_test(in_place_residual),       cmocka_unit_test(row_bits),
        cmocka_unit_test(an_adapter_is_more_of_k), cmocka_unit_test(nonfinite),
        cmocka_unit_test(extreme_values),          cmocka_unit_test(rounds_before_the_bias_when_asked),
        cmocka_unit_test(bits_of_the_manual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
