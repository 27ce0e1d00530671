/* Sums that a convolution leaves for group norm on the cuda device: the bits of those taken from memory, whichever
 * kernel, tile and cut served; each slab's mean and squared deviations against float64; and the norm by them, of many
 * slabs, of one pixel, and where the mean is far from 0. */
#include <math.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/cuda.h"
#include "tests/common/cuda.h"

#define ARENA_BYTES ((size_t)64 << 20)

static struct lk_device *cuda, *cpu;

/* A picture's bf16 values, on the host. */
struct picture {
    int64_t h, w, c;
    uint16_t *values;
};

static struct picture picture_of(int64_t h, int64_t w, int64_t c, double mean, double deviation) {
    struct picture p = {h, w, c, lk_malloc((size_t)(h * w * c) * sizeof(uint16_t))};
    uint64_t seed = 11;
    for (int64_t i = 0; i < h * w * c; i++)
        p.values[i] = lk_f32_to_bf16((float)(mean + deviation * test_normal(&seed)));
    return p;
}

static struct lk_tensor put(struct lk_device *dev, const struct picture *p) {
    struct lk_tensor t;
    assert_ok(LK_NEW(&dev->arena, &t, LK_BF16, p->h, p->w, p->c));
    assert_ok(lk_upload(dev, &t, p->values));
    return t;
}

static struct lk_tensor new_sums(struct lk_device *dev, const struct lk_tensor *y, int64_t n_groups) {
    struct lk_tensor t = lk_group_sums(NULL, n_groups, y->shape[0] * y->shape[1]);
    assert_ok(lk_arena_tensor(&dev->arena, &t, t.dtype, t.n_dims, t.shape));
    return t;
}

static void *get(struct lk_device *dev, const struct lk_tensor *t) {
    void *host = lk_malloc(lk_tensor_bytes(t));
    assert_ok(lk_download(dev, host, t));
    return host;
}

struct conv {
    int64_t h, w, c_in, c_out, kernel, n_groups;
    int stride, upsample;
    bool residual;
};

/* y = conv(x) with its sums; weights as in checkpoints. */
static struct lk_tensor convolve(const struct conv *v, struct lk_tensor *sums) {
    struct picture x = picture_of(v->h, v->w, v->c_in, 0, 1);
    struct picture w = picture_of(v->c_out, v->c_in * v->kernel * v->kernel, 1, 0.02, 0.1);
    const int pad = (int)v->kernel / 2;
    const int64_t h = (v->upsample * v->h + 2 * pad - v->kernel) / v->stride + 1;
    const int64_t width = (v->upsample * v->w + 2 * pad - v->kernel) / v->stride + 1;
    struct picture residual = picture_of(h, width, v->c_out, 5, 2);
    struct lk_tensor tx = put(cuda, &x), tw = put(cuda, &w), y = put(cuda, &residual);
    tw = LK_VIEW(&tw, v->c_out, v->c_in, v->kernel, v->kernel);
    *sums = new_sums(cuda, &y, v->n_groups);
    struct lk_conv2d op = {
        .y = &y, .x = &tx, .w = &tw, .group_sums = sums, .stride = v->stride, .upsample = v->upsample};
    op.pad_top = op.pad_left = op.pad_bottom = op.pad_right = pad;
    if (v->residual) op.residual = &y;
    assert_ok(lk_conv2d(cuda, &op));
    lk_free(x.values);
    lk_free(w.values);
    lk_free(residual.values);
    return y;
}

/* Each slab's values in each group, against float64. */
static void check_slabs(const struct conv *v, const struct lk_tensor *y, const float *sums) {
    const int64_t pixels = y->shape[0] * y->shape[1], c = v->c_out, per_group = c / v->n_groups;
    const int64_t n_slabs = (pixels + LK_GROUP_SLAB - 1) / LK_GROUP_SLAB;
    uint16_t *values = get(cuda, y);
    for (int64_t i = 0; i < v->n_groups * n_slabs; i++) {
        const int64_t group = i / n_slabs, first = i % n_slabs * LK_GROUP_SLAB;
        const int64_t rows = pixels - first < LK_GROUP_SLAB ? pixels - first : LK_GROUP_SLAB, n = rows * per_group;
        double mean = 0, m2 = 0, largest = 0;
        for (int64_t k = 0; k < n; k++) {
            double x = (double)lk_bf16_to_f32(values[(first + k / per_group) * c + group * per_group + k % per_group]);
            mean += x / (double)n;
            largest = fmax(largest, fabs(x));
        }
        for (int64_t k = 0; k < n; k++) {
            double x = (double)lk_bf16_to_f32(values[(first + k / per_group) * c + group * per_group + k % per_group]);
            m2 += (x - mean) * (x - mean);
        }
        assert_true(fabs((double)sums[2 * i] - mean) <= 2e-7 * largest);
        assert_true(fabs((double)sums[2 * i + 1] - m2) <= 2e-6 * m2);
    }
    lk_free(values);
}

static void tiles_leave_what_memory_holds(void **state) {
    (void)state;
    static const struct conv cases[] = {
        {9, 11, 8, 32, 3, 8, 1, 1, true},      {17, 9, 16, 64, 1, 2, 1, 1, false}, {8, 8, 8, 128, 3, 32, 1, 1, true},
        {11, 13, 24, 256, 3, 16, 1, 1, false}, {7, 6, 16, 128, 3, 4, 1, 2, true},  {19, 23, 8, 96, 3, 12, 2, 1, false},
        {10, 13, 3, 128, 3, 32, 1, 1, false},  {12, 7, 3, 40, 3, 5, 1, 1, false},  {1, 1, 8, 32, 3, 4, 1, 1, false},
        {6, 5, 5, 20, 1, 5, 1, 1, true},       {9, 7, 8, 8, 3, 2, 1, 1, true},     {5, 13, 8, 12, 3, 3, 1, 1, false},
        {3, 64, 3, 128, 3, 32, 1, 1, false},   {6, 192, 3, 40, 3, 5, 1, 1, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t mark = lk_arena_mark(&cuda->arena);
        struct lk_tensor sums, y = convolve(&cases[i], &sums), again = new_sums(cuda, &y, cases[i].n_groups);
        assert_ok(lk_cuda_group_sums(cuda, &y, &again));
        float *fused = get(cuda, &sums), *from_memory = get(cuda, &again);
        assert_memory_equal(fused, from_memory, lk_tensor_bytes(&sums));
        check_slabs(&cases[i], &y, fused);
        lk_free(fused);
        lk_free(from_memory);
        lk_arena_release(&cuda->arena, mark);
    }
}

/* Group norm of a picture by sums that a convolution has left, which adds nothing to it. */
static uint16_t *norm(struct lk_device *dev, const struct picture *p, int n_groups) {
    size_t mark = lk_arena_mark(&dev->arena);
    struct picture gain = picture_of(1, 1, p->c, 1, 0.1), zeros = picture_of(p->c, 1, 8, 0, 0);
    struct picture zero = picture_of(p->h, p->w, 8, 0, 0);
    struct lk_tensor x = put(dev, p), w = put(dev, &gain), filters = put(dev, &zeros), none = put(dev, &zero);
    struct lk_tensor sums = new_sums(dev, &x, n_groups);
    w = LK_VIEW(&w, p->c);
    filters = LK_VIEW(&filters, p->c, 8, 1, 1);
    assert_ok(lk_conv2d(
        dev, &(struct lk_conv2d){
                 .y = &x, .x = &none, .w = &filters, .residual = &x, .group_sums = &sums, .stride = 1, .upsample = 1}));
    assert_ok(
        lk_group_norm(dev, &(struct lk_group_norm){
                               .y = &x, .x = &x, .w = &w, .b = &w, .sums = &sums, .n_groups = n_groups, .eps = 1e-6f}));
    uint16_t *out = get(dev, &x);
    lk_free(gain.values);
    lk_free(zeros.values);
    lk_free(zero.values);
    lk_arena_release(&dev->arena, mark);
    return out;
}

static void norms(void **state) {
    (void)state;
    static const struct {
        int64_t h, w, c;
        int n_groups;
        double mean, deviation;
    } cases[] = {
        {200, 211, 8, 2, 3, 8},   /* more slabs than threads that combine them */
        {1, 1, 64, 4, 0, 1},      /* one pixel */
        {1, 65, 32, 8, 0, 1},     /* a slab of one */
        {40, 33, 16, 4, 4096, 16} /* each value one of few next to the mean */
    };
    double worst = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct picture p = picture_of(cases[i].h, cases[i].w, cases[i].c, cases[i].mean, cases[i].deviation);
        uint16_t *got = norm(cuda, &p, cases[i].n_groups), *expected = norm(cpu, &p, cases[i].n_groups);
        double error = 0, squares = 0;
        for (int64_t k = 0; k < p.h * p.w * p.c; k++) {
            double e = (double)lk_bf16_to_f32(expected[k]), d = (double)lk_bf16_to_f32(got[k]) - e;
            error += d * d;
            squares += e * e;
        }
        if (!(error <= 1e-7 * squares)) fail_msg("case %zu: NMSE %g", i, error / squares);
        worst = fmax(worst, error / squares);
        lk_free(got);
        lk_free(expected);
        lk_free(p.values);
    }
    print_message("NMSE %.2g\n", worst);
}

/* The plan's walk and a device's agree on who keeps sums, so by shapes and dtype only. */
static void kept_by_shape(void **state) {
    (void)state;
    static const struct {
        int64_t channels, n_groups;
        bool kept;
    } cases[] = {{128, 32, true}, {512, 32, true}, {64, 2, true}, {64, 1, false}, {60, 20, false}, {96, 16, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_tensor y = LK_TENSOR(NULL, LK_BF16, 3, 5, cases[i].channels);
        struct lk_tensor sums = lk_group_sums(NULL, cases[i].n_groups, 15);
        assert_int_equal(lk_cuda_keeps_group_sums(&y, &sums), cases[i].kept);
        assert_false(lk_cuda_keeps_group_sums(&y, NULL));
        y.dtype = LK_F32;
        assert_false(lk_cuda_keeps_group_sums(&y, &sums));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_leave_what_memory_holds),
        cmocka_unit_test(norms),
        cmocka_unit_test(kept_by_shape),
    };
    cuda = test_cuda_open();
    lk_cuda_device_of(cuda)->n_multiprocessors = 1; /* the usual tiles for small problems too */
    if (lk_device_prepare(cuda, ARENA_BYTES) || lk_device_cpu_create(1, &cpu) || lk_device_prepare(cpu, ARENA_BYTES))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    lk_device_free(cuda);
    lk_device_free(cpu);
    return failed;
}
