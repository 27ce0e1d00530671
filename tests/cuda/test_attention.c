/* Attention on the cuda device against float64, kernel by kernel; and that a query's bits depend neither on the other
 * queries nor on which kernel took it. */
#include <math.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/ops.h"
#include "kernels/cuda/cuda.h"
#include "tests/common/cuda.h"

#define ARENA    ((size_t)64 << 20)
#define SENTINEL 123.0f /* before, between and after the rows of outputs */

static struct lk_device *cuda;

struct problem {
    const char *kernel; /* that takes it, and attention of any alignment */
    int64_t n_q, n_k, n_heads, n_kv_heads, head_dim;
    bool causal;
    double scale; /* times 1 / sqrt(head_dim) */
};

/* Host copies, dense. */
struct values {
    float *q, *k, *v, *out;
};

/* A window in the arena: rows `gap` elements apart, from element `gap` of a block on. */
struct window {
    struct lk_tensor block, t;
    int64_t gap;
};

static float stored(enum lk_dtype dtype, float x) { return dtype == LK_BF16 ? lk_round_bf16(x) : x; }

static void put(const struct window *w, const float *rows) {
    int64_t n = w->block.shape[0], row = lk_tensor_row_numel(&w->t);
    unsigned char *bytes = malloc((size_t)n * 4);
    assert_non_null(bytes);
    for (int64_t i = 0; i < n; i++) {
        int64_t r = (i - w->gap) / w->t.ld, c = (i - w->gap) % w->t.ld;
        bool inside = rows && i >= w->gap && r < w->t.shape[0] && c < row;
        float x = inside ? rows[r * row + c] : SENTINEL;
        if (w->t.dtype == LK_BF16)
            ((uint16_t *)(void *)bytes)[i] = lk_f32_to_bf16(x);
        else
            ((float *)(void *)bytes)[i] = x;
    }
    assert_ok(lk_upload(cuda, &w->block, bytes));
    free(bytes);
}

/* Rows into `rows`; everything around them must be as put() left it. */
static void take(const struct window *w, float *rows) {
    int64_t n = w->block.shape[0], row = lk_tensor_row_numel(&w->t);
    unsigned char *bytes = malloc((size_t)n * 4);
    assert_non_null(bytes);
    assert_ok(lk_download(cuda, bytes, &w->block));
    for (int64_t i = 0; i < n; i++) {
        int64_t r = (i - w->gap) / w->t.ld, c = (i - w->gap) % w->t.ld;
        float x = w->t.dtype == LK_BF16 ? lk_bf16_to_f32(((uint16_t *)(void *)bytes)[i]) : ((float *)(void *)bytes)[i];
        if (i >= w->gap && r < w->t.shape[0] && c < row)
            rows[r * row + c] = x;
        else if (x != SENTINEL)
            fail_msg("element %lld, outside of the rows, was written", (long long)i);
    }
    free(bytes);
}

static void make(struct window *w, enum lk_dtype dtype, int64_t gap, int64_t rows, int64_t heads, int64_t head_dim) {
    int64_t ld = heads * head_dim + gap;
    w->gap = gap;
    assert_ok(LK_NEW(&cuda->arena, &w->block, dtype, gap + rows * ld));
    w->t = LK_TENSOR((char *)w->block.data + (size_t)gap * lk_dtype_size(dtype), dtype, rows, heads, head_dim);
    w->t.ld = ld;
}

/* Queries [first, first + n) of p, with the keys that p gives the last of them. gap 8 leaves rows aligned to 16 bytes,
 * 3 does not. */
static void run(const struct problem *p, const struct values *x, enum lk_dtype dtype, int64_t gap, int64_t first,
                int64_t n, float *out) {
    size_t mark = lk_arena_mark(&cuda->arena);
    int64_t n_k = p->causal ? p->n_k - p->n_q + first + n : p->n_k;
    struct window q, k, v, y;
    make(&q, dtype, gap, n, p->n_heads, p->head_dim);
    make(&k, dtype, gap, n_k, p->n_kv_heads, p->head_dim);
    make(&v, dtype, gap, n_k, p->n_kv_heads, p->head_dim);
    make(&y, dtype, gap, n, p->n_heads, p->head_dim);
    put(&q, x->q + first * p->n_heads * p->head_dim);
    put(&k, x->k);
    put(&v, x->v);
    put(&y, NULL);
    struct lk_attention op = {&y.t, &q.t, &k.t, &v.t, (float)(p->scale / sqrt((double)p->head_dim)), p->causal};
    assert_ok(lk_attention(cuda, &op));
    take(&y, out);
    lk_arena_release(&cuda->arena, mark);
}

static float *random_values(uint64_t *state, enum lk_dtype dtype, int64_t n) {
    float *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) x[i] = stored(dtype, (float)test_normal(state));
    return x;
}

static struct values values_of(const struct problem *p, enum lk_dtype dtype) {
    uint64_t state = 7;
    int64_t n_q = p->n_q * p->n_heads * p->head_dim, n_k = p->n_k * p->n_kv_heads * p->head_dim;
    struct values x = {random_values(&state, dtype, n_q), random_values(&state, dtype, n_k),
                       random_values(&state, dtype, n_k), malloc((size_t)n_q * sizeof(float))};
    assert_non_null(x.out);
    return x;
}

static void values_free(struct values *x) {
    free(x->q);
    free(x->k);
    free(x->v);
    free(x->out);
}

/* Squared error and norm of query i of a head in double. */
static void oracle(const struct problem *p, const struct values *x, int64_t i, int64_t head, double sums[2]) {
    int64_t hd = p->head_dim, kv = head / (p->n_heads / p->n_kv_heads),
            n = p->causal ? p->n_k - p->n_q + i + 1 : p->n_k;
    const float *q = x->q + (i * p->n_heads + head) * hd, *got = x->out + (i * p->n_heads + head) * hd;
    double *weights = malloc((size_t)n * sizeof *weights), most = -INFINITY, sum = 0.0;
    assert_non_null(weights);
    for (int64_t j = 0; j < n; j++) {
        const float *k = x->k + (j * p->n_kv_heads + kv) * hd;
        weights[j] = 0.0;
        for (int64_t d = 0; d < hd; d++) weights[j] += (double)q[d] * (double)k[d];
        weights[j] *= (double)(float)(p->scale / sqrt((double)hd));
        most = fmax(most, weights[j]);
    }
    for (int64_t j = 0; j < n; j++) sum += weights[j] = exp(weights[j] - most);
    for (int64_t d = 0; d < hd; d++) {
        double want = 0.0;
        for (int64_t j = 0; j < n; j++) want += weights[j] / sum * (double)x->v[(j * p->n_kv_heads + kv) * hd + d];
        sums[0] += (want - (double)got[d]) * (want - (double)got[d]);
        sums[1] += want * want;
    }
    free(weights);
}

static double nmse(const struct problem *p, const struct values *x) {
    double sums[2] = {0.0, 0.0};
    for (int64_t i = 0; i < p->n_q; i++)
        for (int64_t h = 0; h < p->n_heads; h++) oracle(p, x, i, h, sums);
    return sums[0] / sums[1];
}

/* The same bits of all of p and of n of its queries. */
static void same_alone(const struct problem *p, const struct values *x, enum lk_dtype dtype, int64_t gap, int64_t first,
                       int64_t n) {
    int64_t row = p->n_heads * p->head_dim;
    float *part = malloc((size_t)(n * row) * sizeof *part);
    assert_non_null(part);
    run(p, x, dtype, gap, first, n, part);
    for (int64_t i = 0; i < n * row; i++)
        if (memcmp(&part[i], &x->out[first * row + i], sizeof *part))
            fail_msg("%s: query %lld of %lld, taken by %s with %lld queries: column %lld is %.9g instead of %.9g",
                     p->kernel, (long long)(first + i / row), (long long)p->n_q, lk_cuda_device_of(cuda)->last_kernel,
                     (long long)n, (long long)(i % row), (double)part[i], (double)x->out[first * row + i]);
    free(part);
}

static void check_values(const struct problem *p, struct values x, enum lk_dtype dtype, double bound) {
    run(p, &x, dtype, 8, 0, p->n_q, x.out);
    assert_string_equal(lk_cuda_device_of(cuda)->last_kernel, p->kernel);
    double error = nmse(p, &x);
    printf("%-22s %3lld x %3lld, %2lld/%lld heads of %3lld%s: NMSE %.1e\n", p->kernel, (long long)p->n_q,
           (long long)p->n_k, (long long)p->n_heads, (long long)p->n_kv_heads, (long long)p->head_dim,
           p->causal ? ", causal" : "", error);
    if (!(error <= bound)) fail_msg("NMSE %g exceeds %g", error, bound);
    same_alone(p, &x, dtype, 3, 0, p->n_q);
    same_alone(p, &x, dtype, 8, 0, 1);
    same_alone(p, &x, dtype, 8, p->n_q - 1, 1);
    same_alone(p, &x, dtype, 3, p->n_q / 2, 1);
    same_alone(p, &x, dtype, 8, p->n_q / 3, (p->n_q + 1) / 2);
    values_free(&x);
}

static void check(const struct problem *p, enum lk_dtype dtype, double bound) {
    check_values(p, values_of(p, dtype), dtype, bound);
}

/* The kernels of a GPU whose blocks get 99 KiB of shared memory have the bits of an A100's. */
static void test_less_shared_memory(void **state) {
    (void)state;
    static const struct {
        struct problem problem;
        const char *usual;
    } cases[] = {{{"attention_512_few_bf16", 9, 70, 1, 1, 512, false, 1.0}, "attention_512_bf16"},
                 {{"attention_512_few_bf16", 70, 200, 4, 2, 512, true, 0.5}, "attention_512_bf16"},
                 {{"attention_512_few_bf16", 100, 321, 1, 1, 512, false, 1.0}, "attention_512_bf16"},
                 {{"attention_any_128_bf16", 70, 70, 1, 1, 512, true, -1.0}, "attention_any_128_bf16"}};
    struct lk_cuda_device *device = lk_cuda_device_of(cuda);
    const size_t most = device->most_shared;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct problem *p = &cases[i].problem;
        struct values x = values_of(p, LK_BF16);
        const size_t bytes = (size_t)(p->n_q * p->n_heads * p->head_dim) * sizeof *x.out;
        float *usual = malloc(bytes);
        assert_non_null(usual);
        device->most_shared = 163 << 10;
        run(p, &x, LK_BF16, 8, 0, p->n_q, usual);
        assert_string_equal(device->last_kernel, cases[i].usual);
        device->most_shared = 99 << 10;
        run(p, &x, LK_BF16, 8, 0, p->n_q, x.out);
        assert_memory_equal(x.out, usual, bytes);
        free(usual);
        check_values(p, x, LK_BF16, 1e-5);
    }
    device->most_shared = most;
}

/* Many heads where the tiles of 128 rows shall take it: there are enough of them for all multiprocessors of an A100,
 * for which a larger GPU is taken too. */
static void test_bf16(void **state) {
    (void)state;
    struct lk_cuda_device *device = lk_cuda_device_of(cuda);
    const int n_multiprocessors = device->n_multiprocessors;
    static const struct problem problems[] = {
        {"attention_128_bf16", 65, 67, 108, 108, 128, false, 1.0},
        {"attention_80_bf16", 65, 67, 108, 108, 80, true, 1.0},
        {"attention_64_bf16", 130, 131, 54, 54, 64, true, 1.0},
        {"attention_128_bf16", 130, 190, 108, 54, 128, true, 0.5},
        {"attention_128_few_bf16", 150, 150, 1, 1, 128, true, 1.0},
        {"attention_128_few_bf16", 37, 300, 7, 1, 128, true, 1.0},
        {"attention_128_few_bf16", 1, 1, 2, 1, 128, true, 1.0},
        {"attention_128_few_bf16", 16, 8704, 1, 1, 128, false, 1.0},
        {"attention_64_few_bf16", 70, 129, 2, 2, 64, false, 2.0},
        {"attention_80_few_bf16", 64, 64, 2, 2, 80, false, 1.0},
        {"attention_40_bf16", 65, 190, 108, 108, 40, false, 1.0},
        {"attention_40_bf16", 130, 131, 54, 54, 40, true, 1.0},
        {"attention_40_few_bf16", 70, 77, 2, 2, 40, false, 1.0},
        {"attention_160_few_bf16", 65, 67, 108, 108, 160, false, 1.0},
        {"attention_160_few_bf16", 130, 77, 4, 2, 160, false, 0.5},
        {"attention_160_few_bf16", 70, 129, 2, 2, 160, true, 1.0},
        {"attention_any_32_bf16", 20, 70, 2, 1, 24, true, 1.0},
        {"attention_any_32_bf16", 3, 9, 2, 1, 1, false, 1.0},
        {"attention_any_128_bf16", 33, 65, 2, 1, 72, true, 1.0},
        {"attention_any_128_bf16", 70, 70, 1, 1, 384, false, 1.0},
        {"attention_any_128_bf16", 66, 130, 1, 1, 200, true, 1.0},
        {"attention_any_128_bf16", 9, 70, 1, 1, 512, false, -1.0},
        {"attention_512_bf16", 9, 70, 1, 1, 512, false, 1.0},
        {"attention_512_bf16", 130, 65, 1, 1, 512, false, 1.0},
        {"attention_512_bf16", 70, 200, 4, 2, 512, true, 0.5},
        {"attention_512_bf16", 200, 321, 1, 1, 512, false, 1.0},
        {"attention_any_128_bf16", 66, 66, 1, 1, 128, true, -1.0},
        {"attention_any_128_bf16", 66, 66, 1, 1, 64, true, 0.0},
    };
    device->n_multiprocessors = 108;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) check(&problems[i], LK_BF16, 1e-5);
    device->n_multiprocessors = n_multiprocessors;
}

static void test_f32(void **state) {
    (void)state;
    static const struct problem problems[] = {
        {"attention_128_f32", 21, 70, 4, 2, 128, true, 1.0}, {"attention_128_f32", 1, 1, 2, 1, 80, false, 1.0},
        {"attention_128_f32", 17, 33, 2, 2, 24, true, -1.0}, {"attention_512_f32", 20, 40, 1, 1, 384, false, 1.0},
        {"attention_512_f32", 20, 40, 1, 1, 512, true, 0.0},
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) check(&problems[i], LK_F32, 1e-10);
}

/* A picture of one colour in a VAE: long sums of values that hardly differ may err to one side. */
static void test_flat_values(void **state) {
    (void)state;
    static const struct problem p = {"attention_128_f32", 3, 16390, 1, 1, 20, true, 1.0};
    struct values x = values_of(&p, LK_F32);
    for (int64_t i = 0; i < p.n_k * p.head_dim; i++) {
        x.k[i] = 0.3f + 1e-3f * (float)(i % 7);
        x.v[i] = 0.1f + 0.037f * (float)(i % p.head_dim) + 1e-4f * (float)(i % 3);
    }
    check_values(&p, x, LK_F32, 4e-12);
}

/* NaN in a key or value reaches the queries that see it, and none far before it. */
static void test_nan_spreads(void **state) {
    (void)state;
    static const struct problem p = {"", 100, 100, 1, 1, 64, true, 1.0};
    for (int dtype = LK_F32; dtype <= LK_BF16; dtype++)
        for (int in_values = 0; in_values < 2; in_values++) {
            struct values x = values_of(&p, (enum lk_dtype)dtype);
            (in_values ? x.v : x.k)[70 * p.head_dim + 5] = NAN;
            run(&p, &x, (enum lk_dtype)dtype, 8, 0, p.n_q, x.out);
            for (int64_t i = 0; i < p.n_q; i++)
                if (i < 64 || i >= 70) assert_int_equal(isnan(x.out[i * p.head_dim + 5]) != 0, i >= 70);
            values_free(&x);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bf16), cmocka_unit_test(test_less_shared_memory),
                                       cmocka_unit_test(test_f32), cmocka_unit_test(test_flat_values),
                                       cmocka_unit_test(test_nan_spreads)};
    cuda = test_cuda_open();
    if (lk_device_prepare(cuda, ARENA)) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    lk_device_free(cuda);
    return failed;
}
