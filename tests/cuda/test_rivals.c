/* cuBLASLt and cuDNN behind linear and conv2d, played by stand-ins (tests/cuda/rivals) that compute on the host. Values
 * are small integers over 8, whose sums are exact in any order, so that the bits must be those of our kernels. */
#include "engine/base/alloc.h"
#include "engine/ops.h"
#include "kernels/cuda/runtime/rivals.h"
#include "tests/common/cuda.h"

static struct lk_device *cuda;
static uint32_t state_of_values;

static struct lk_tensor make(enum lk_dtype dtype, int n_dims, const int64_t *shape) {
    struct lk_tensor t;
    assert_ok(lk_arena_tensor(&cuda->arena, &t, dtype, n_dims, shape));
    const size_t n = (size_t)lk_tensor_numel(&t);
    float *values = lk_malloc(n * sizeof *values);
    uint16_t *halves = lk_malloc(n * sizeof *halves);
    for (size_t i = 0; i < n; i++) {
        state_of_values = state_of_values * 1664525u + 1013904223u;
        values[i] = (float)((int)(state_of_values >> 24) % 17 - 8) / 8.0f;
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        halves[i] = (uint16_t)(bits >> 16);
    }
    assert_ok(lk_upload(cuda, &t, dtype == LK_BF16 ? (void *)halves : (void *)values));
    lk_free(values);
    lk_free(halves);
    return t;
}
#define MAKE(dtype, ...)                                                                                               \
    make((dtype), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/* All bytes of t's block: what lies between its rows as well. */
static unsigned char *bytes_of(const struct lk_tensor *whole) {
    unsigned char *out = lk_malloc(lk_tensor_bytes(whole));
    assert_ok(lk_download(cuda, out, whole));
    return out;
}

/* What a case has, whether the library takes it, and whether that is true of the stand-in alone. */
enum { BIAS = 1, GATE = 2, RESIDUAL = 4, IN_PLACE = 8, ROUND = 16, TEMPORAL = 32, TAKEN = 64, STAND_IN = 128 };

/* The real libraries have more algorithms, and do not fail when asked to: tests/CMakeLists.txt says which they are. */
static bool is_stand_in(void) { return getenv("TEST_STAND_INS") != NULL; }
static bool is_tried(int flags) { return !(flags & STAND_IN) || is_stand_in(); }

struct linear_case {
    int64_t m, n, k, pad; /* pad: elements between rows of x and y */
    enum lk_dtype dtype;
    enum lk_act act;
    int flags;
};

/* The output's bytes of one call. */
static unsigned char *run_linear(const struct linear_case *c, size_t *bytes) {
    state_of_values = 7;
    size_t mark = lk_arena_mark(&cuda->arena);
    struct lk_tensor x_all = MAKE(c->dtype, c->m, c->k + c->pad), w = MAKE(c->dtype, c->n, c->k);
    struct lk_tensor y_all = MAKE(c->dtype, c->m, c->n + c->pad), residual = MAKE(c->dtype, c->m, c->n);
    struct lk_tensor bias = MAKE(c->dtype, c->n), gate = MAKE(c->dtype, c->n);
    struct lk_tensor x = lk_tensor_cols(&x_all, 0, c->k), y = lk_tensor_cols(&y_all, 0, c->n);
    const struct lk_linear op = {.y = &y,
                                 .x = &x,
                                 .w = &w,
                                 .bias = c->flags & BIAS ? &bias : NULL,
                                 .gate = c->flags & GATE ? &gate : NULL,
                                 .residual = c->flags & RESIDUAL ? c->flags & IN_PLACE ? &y : &residual : NULL,
                                 .act = c->act,
                                 .round_before_bias = c->flags & ROUND};
    assert_ok(lk_linear(cuda, &op));
    unsigned char *out = bytes_of(&y_all);
    *bytes = lk_tensor_bytes(&y_all);
    lk_arena_release(&cuda->arena, mark);
    return out;
}

static const struct linear_case linears[] = {
    {5, 24, 16, 0, LK_BF16, LK_ACT_NONE, TAKEN},
    {5, 24, 16, 0, LK_F32, LK_ACT_NONE, TAKEN},
    {33, 40, 64, 8, LK_BF16, LK_ACT_NONE, BIAS | TAKEN},
    {33, 40, 64, 8, LK_F32, LK_ACT_NONE, BIAS | TAKEN},
    {33, 40, 64, 0, LK_BF16, LK_ACT_NONE, BIAS | ROUND | TAKEN},
    {9, 48, 32, 8, LK_BF16, LK_ACT_GELU_TANH, BIAS | TAKEN},
    {9, 48, 32, 0, LK_BF16, LK_ACT_NONE, GATE | RESIDUAL | TAKEN},
    {9, 48, 32, 8, LK_BF16, LK_ACT_NONE, GATE | RESIDUAL | IN_PLACE | TAKEN},
    {9, 48, 32, 0, LK_F32, LK_ACT_SILU, BIAS | GATE | RESIDUAL | TAKEN},
    {1, 56, 80, 0, LK_BF16, LK_ACT_SILU, BIAS | RESIDUAL | IN_PLACE | TAKEN},
    {4, 20, 16, 0, LK_BF16, LK_ACT_NONE, RESIDUAL | TAKEN}, /* rows of 40 bytes */
    {4, 20, 16, 0, LK_BF16, LK_ACT_NONE, 0},                /* y's rows are not aligned */
    {4, 24, 20, 0, LK_BF16, LK_ACT_NONE, 0},                /* those of x are not */
    {4, 24, 104, 0, LK_BF16, LK_ACT_NONE, BIAS | STAND_IN}, /* no algorithm */
};

static void test_linear(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof linears / sizeof *linears; i++)
        for (int repeat = 0; repeat < 2 && is_tried(linears[i].flags); repeat++) { /* then the algorithm is known */
            size_t n;
            assert_ok(lk_cuda_choose(cuda, "own", NULL));
            unsigned char *own = run_linear(&linears[i], &n);
            assert_int_equal(lk_cuda_cublaslt_counts(cuda).taken, 0);
            assert_ok(lk_cuda_choose(cuda, "cublaslt", NULL));
            if (repeat) lk_free(run_linear(&linears[i], &n));
            unsigned char *got = run_linear(&linears[i], &n);
            const struct lk_cuda_rival_counts counts = lk_cuda_cublaslt_counts(cuda);
            if (counts.taken != (linears[i].flags & TAKEN ? repeat + 1 : 0) ||
                counts.taken + counts.declined != repeat + 1)
                fail_msg("case %zu: %lld taken, %lld declined", i, (long long)counts.taken, (long long)counts.declined);
            if (memcmp(own, got, n)) fail_msg("case %zu: other bits than from our kernel", i);
            lk_free(own);
            lk_free(got);
        }
    assert_ok(lk_cuda_choose(cuda, "own", NULL));
}

static void test_many_shapes(void **state) {
    (void)state;
    assert_ok(lk_cuda_choose(cuda, "cublaslt", NULL));
    for (int round = 0; round < 2; round++)
        for (int m = 1; m <= 70; m++) { /* more than are kept */
            size_t n;
            lk_free(run_linear(&(struct linear_case){.m = m, .n = 8, .k = 8, .dtype = LK_BF16}, &n));
        }
    assert_int_equal(lk_cuda_cublaslt_counts(cuda).taken, 140);
    assert_ok(lk_cuda_choose(cuda, "own", NULL));
}

struct conv_case {
    int64_t h, w, c_in, c_out, kernel;
    int stride, upsample, pad_top, pad_bottom;
    enum lk_dtype dtype;
    int flags;
};

/* The output's bytes, after a group norm by the sums that were left for it where channels can be so grouped. */
static unsigned char *run_conv(const struct conv_case *c, size_t *bytes) {
    state_of_values = 11;
    size_t mark = lk_arena_mark(&cuda->arena);
    const int64_t h = (c->upsample * c->h + c->pad_top + c->pad_bottom - c->kernel) / c->stride + 1;
    const int64_t w = (c->upsample * c->w + c->pad_top + c->pad_bottom - c->kernel) / c->stride + 1;
    struct lk_tensor x = MAKE(c->dtype, c->h, c->w, c->c_in), y = MAKE(c->dtype, h, w, c->c_out);
    struct lk_tensor filters = c->flags & TEMPORAL ? MAKE(c->dtype, c->c_out, c->c_in, 3, c->kernel, c->kernel)
                                                   : MAKE(c->dtype, c->c_out, c->c_in, c->kernel, c->kernel);
    struct lk_tensor bias = MAKE(c->dtype, c->c_out), residual = MAKE(c->dtype, h, w, c->c_out);
    const int n_groups = c->c_out % 4 ? 0 : (int)c->c_out / 4;
    struct lk_tensor sums = lk_group_sums(NULL, n_groups, h * w);
    if (n_groups) { /* not those of the run before */
        void *zeros = lk_calloc(1, lk_tensor_bytes(&sums));
        assert_ok(lk_arena_tensor(&cuda->arena, &sums, sums.dtype, sums.n_dims, sums.shape));
        assert_ok(lk_upload(cuda, &sums, zeros));
        lk_free(zeros);
    }
    const struct lk_conv2d op = {.y = &y,
                                 .x = &x,
                                 .group_sums = n_groups ? &sums : NULL,
                                 .w = &filters,
                                 .bias = c->flags & BIAS ? &bias : NULL,
                                 .residual = c->flags & RESIDUAL ? c->flags & IN_PLACE ? &y : &residual : NULL,
                                 .stride = c->stride,
                                 .upsample = c->upsample,
                                 .pad_top = c->pad_top,
                                 .pad_left = c->pad_top,
                                 .pad_bottom = c->pad_bottom,
                                 .pad_right = c->pad_bottom};
    const struct lk_group_norm norm = {
        .y = &y, .x = &y, .w = &bias, .b = &bias, .sums = &sums, .n_groups = n_groups, .eps = 1e-6f};
    assert_ok(lk_conv2d(cuda, &op));
    if (n_groups) assert_ok(lk_group_norm(cuda, &norm));
    unsigned char *out = bytes_of(&y);
    *bytes = lk_tensor_bytes(&y);
    lk_arena_release(&cuda->arena, mark);
    return out;
}

static const struct conv_case convs[] = {
    {6, 5, 8, 16, 3, 1, 1, 1, 1, LK_BF16, BIAS | TAKEN},
    {6, 5, 8, 12, 3, 1, 1, 1, 1, LK_F32, RESIDUAL | TAKEN},
    {6, 5, 8, 16, 3, 1, 1, 1, 1, LK_BF16, BIAS | RESIDUAL | IN_PLACE | TAKEN},
    {6, 6, 8, 16, 1, 1, 1, 0, 0, LK_BF16, BIAS | TAKEN},
    {6, 6, 8, 16, 3, 1, 1, 1, 1, LK_BF16, TEMPORAL | TAKEN},
    {7, 7, 8, 8, 3, 2, 1, 1, 1, LK_BF16, TAKEN},
    {6, 6, 8, 8, 3, 2, 1, 0, 1, LK_BF16, 0},                   /* padded on one side */
    {4, 4, 8, 8, 3, 1, 2, 1, 1, LK_BF16, 0},                   /* enlarged */
    {6, 6, 3, 8, 3, 1, 1, 1, 1, LK_BF16, BIAS},                /* filters with gaps */
    {6, 6, 8, 8, 5, 1, 1, 2, 2, LK_BF16, RESIDUAL | STAND_IN}, /* not supported */
};

static void test_conv2d(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++) {
        size_t n;
        if (!is_tried(convs[i].flags)) continue;
        assert_ok(lk_cuda_choose(cuda, NULL, "own"));
        unsigned char *own = run_conv(&convs[i], &n);
        assert_ok(lk_cuda_choose(cuda, NULL, "cudnn"));
        unsigned char *got = run_conv(&convs[i], &n);
        const struct lk_cuda_rival_counts counts = lk_cuda_cudnn_counts(cuda);
        if (counts.taken != (convs[i].flags & TAKEN ? 1 : 0) || counts.taken + counts.declined != 1)
            fail_msg("case %zu: %lld taken, %lld declined", i, (long long)counts.taken, (long long)counts.declined);
        if (memcmp(own, got, n)) fail_msg("case %zu: other bits than from our kernel", i);
        lk_free(own);
        lk_free(got);
    }
    assert_ok(lk_cuda_choose(cuda, NULL, "own"));
}

/* What a plan says is what the calls take. */
static void test_plan(void **state) {
    (void)state;
    struct lk_device *plan;
    assert_ok(lk_cuda_choose(cuda, "cublaslt", "cudnn"));
    assert_ok(lk_device_plan_create(cuda, &plan));
    for (int i = 0; i < 2; i++) {
        struct lk_device *dev = i ? plan : cuda;
        struct lk_tensor x, w, y;
        const size_t mark = lk_arena_mark(&dev->arena);
        dev->arena.peak = 0;
        assert_ok(LK_NEW(&dev->arena, &x, LK_BF16, 16, 64));
        assert_ok(LK_NEW(&dev->arena, &w, LK_BF16, 32, 64));
        assert_ok(LK_NEW(&dev->arena, &y, LK_BF16, 16, 32));
        if (!i) {
            const uint16_t zeros[32 * 64] = {0};
            assert_ok(lk_upload(dev, &x, zeros));
            assert_ok(lk_upload(dev, &w, zeros));
            assert_ok(lk_upload(dev, &y, zeros));
        }
        assert_ok(lk_linear(dev, &(struct lk_linear){.y = &y, .x = &x, .w = &w, .residual = &y}));
        lk_arena_release(&dev->arena, mark);
    }
    assert_int_equal(cuda->arena.peak, plan->arena.peak);
    lk_device_free(plan);
    assert_ok(lk_cuda_choose(cuda, "own", "own"));
}

static void test_errors(void **state) {
    (void)state;
    struct lk_device *cpu;
    assert_ok(lk_device_cpu_create(1, &cpu));
    assert_ok(lk_cuda_choose(cpu, "own", "own"));
    assert_fails(lk_cuda_choose(cpu, "cublaslt", NULL), LK_E_USAGE, "cuda device");
    assert_fails(lk_cuda_choose(cpu, NULL, "cudnn"), LK_E_USAGE, "cuda device");
    lk_device_free(cpu);
    assert_fails(lk_cuda_choose(cuda, "cutlass", NULL), LK_E_USAGE, "expected own or cublaslt");
    assert_fails(lk_cuda_choose(cuda, NULL, "mkl"), LK_E_USAGE, "expected own or cudnn");
    if (!is_stand_in()) return;
    assert_ok(lk_cuda_choose(cuda, "cublaslt", NULL));
    struct lk_tensor x, w, y;
    const size_t mark = lk_arena_mark(&cuda->arena);
    assert_ok(LK_NEW(&cuda->arena, &x, LK_BF16, 4, 8));
    assert_ok(LK_NEW(&cuda->arena, &w, LK_BF16, 1000, 8));
    assert_ok(LK_NEW(&cuda->arena, &y, LK_BF16, 4, 1000));
    assert_fails(lk_linear(cuda, &(struct lk_linear){.y = &y, .x = &x, .w = &w}), LK_E_DEVICE, "stand-in failure");
    lk_arena_release(&cuda->arena, mark);
    assert_ok(lk_cuda_choose(cuda, "own", NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_linear), cmocka_unit_test(test_many_shapes),
                                       cmocka_unit_test(test_conv2d), cmocka_unit_test(test_plan),
                                       cmocka_unit_test(test_errors)};
    cuda = test_cuda_open();
    if (lk_cuda_choose(cuda, "cublaslt", "cudnn")) {
        printf("SKIP: %s\n", lk_error_text());
        lk_device_free(cuda);
        return TEST_SKIPPED;
    }
    assert_ok(lk_cuda_choose(cuda, "own", "own"));
    assert_ok(lk_device_prepare(cuda, (size_t)64 << 20));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    lk_device_free(cuda);
    return failed;
}
