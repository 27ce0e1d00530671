/* The rounding points of engine/ops.h against torch, diffusers and transformers in bf16 (golden/generate_ops.py). What
 * is left are values within f32's error of a tie between two bf16 values. */
#include <math.h>

#include "engine/bf16.h"
#include "engine/ops.h"
#include "tests/common/test.h"

static char *file;
static size_t place, size;
static struct lk_device *dev;

/* The next array of the file. */
static void *next(size_t n_expected) {
    uint32_t n;
    assert_true(place + sizeof n <= size);
    memcpy(&n, file + place, sizeof n);
    place += sizeof n;
    assert_int_equal(n, n_expected);
    assert_true(place + 2 * n <= size);
    void *at = file + place;
    place += 2 * n;
    return at;
}
#define NEXT(...)                                                                                                      \
    LK_TENSOR(next(count_of((int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / 8)), LK_BF16, __VA_ARGS__)

static size_t count_of(const int64_t *shape, size_t n_dims) {
    size_t n = 1;
    for (size_t i = 0; i < n_dims; i++) n *= (size_t)shape[i];
    return n;
}

static struct lk_tensor output(const struct lk_tensor *like) {
    static uint16_t memory[16384];
    assert_true(lk_tensor_numel(like) <= 16384);
    return lk_tensor_make(memory, LK_BF16, like->n_dims, like->shape);
}

/* At most this share of values may have other bits. */
static void compare(const char *what, const struct lk_tensor *got, const struct lk_tensor *want, double share) {
    int64_t n = lk_tensor_numel(want), differ = 0;
    const uint16_t *a = got->data, *b = want->data;
    for (int64_t i = 0; i < n; i++) {
        double x = lk_bf16_to_f32(a[i]), y = lk_bf16_to_f32(b[i]);
        differ += a[i] != b[i] && x != y;
        if (fabs(x - y) > fabs(y) / 64 + 0.004)
            fail_msg("%s: value %lld: expected %g, got %g", what, (long long)i, y, x);
    }
    print_message("%s: %lld of %lld differ\n", what, (long long)differ, (long long)n);
    if ((double)differ > share * (double)n)
        fail_msg("%s: %lld of %lld values differ", what, (long long)differ, (long long)n);
}

static void check_norms(void) {
    struct lk_tensor x = NEXT(4, 192), scale = NEXT(192), shift = NEXT(192), want = NEXT(4, 192), y = output(&x);
    assert_ok(
        lk_layer_norm(dev, &(struct lk_layer_norm){.y = &y, .x = &x, .shift = &shift, .scale = &scale, .eps = 1e-6f}));
    compare("layer norm, modulated", &y, &want, 0.002);
    struct lk_tensor weight = NEXT(192), bias = NEXT(192);
    want = NEXT(4, 192);
    assert_ok(
        lk_layer_norm(dev, &(struct lk_layer_norm){.y = &y, .x = &x, .weight = &weight, .bias = &bias, .eps = 1e-6f}));
    compare("layer norm, weight and bias", &y, &want, 0.002);
    want = NEXT(4, 192);
    assert_ok(lk_rms_norm(dev, &(struct lk_rms_norm){&y, &x, &weight, 1e-5f, true}));
    compare("rms norm, Mistral", &y, &want, 0.002);
    want = NEXT(4, 192);
    assert_ok(lk_rms_norm(dev, &(struct lk_rms_norm){&y, &x, &weight, 1e-6f, false}));
    compare("rms norm, torch", &y, &want, 0.002);
    struct lk_tensor image = NEXT(6, 6, 32), gain = NEXT(32), offset = NEXT(32);
    want = NEXT(6, 6, 32);
    y = output(&image);
    struct lk_group_norm op = {.y = &y, .x = &image, .w = &gain, .b = &offset, .n_groups = 8, .eps = 1e-6f};
    assert_ok(lk_group_norm(dev, &op));
    compare("group norm", &y, &want, 0.002);
    want = NEXT(6, 6, 32);
    op.act = LK_ACT_SILU;
    assert_ok(lk_group_norm(dev, &op));
    compare("group norm, SiLU", &y, &want, 0.002);
}

static void check_elementwise(void) {
    struct lk_tensor x = NEXT(512), y = output(&x), want;
    const enum lk_act acts[] = {LK_ACT_SILU, LK_ACT_GELU_TANH, LK_ACT_GELU_ERF};
    for (int i = 0; i < 3; i++) {
        want = NEXT(512);
        assert_ok(lk_activation(dev, &(struct lk_activation){&y, &x, acts[i]}));
        /* Below -2, torch's 1 + tanh (and 1 + erf with another erf) cancels in f32. */
        compare((const char *[]){"SiLU", "GELU, tanh", "GELU"}[i], &y, &want, i > 0 ? 0.12 : 0.002);
    }
    struct lk_tensor query = NEXT(16, 2, 32);
    struct lk_tensor cosines = LK_TENSOR(next(16 * 16 * 2), LK_F32, 16, 16);
    struct lk_tensor sines = LK_TENSOR(next(16 * 16 * 2), LK_F32, 16, 16);
    want = NEXT(16, 2, 32);
    assert_ok(lk_norm_rope(dev, &(struct lk_norm_rope){.x = &query, .cos = &cosines, .sin = &sines}));
    compare("rope, interleaved", &query, &want, 0.0);
    struct lk_tensor sample = NEXT(16, 64), velocity = NEXT(16, 64);
    float dt;
    memcpy(&dt, next(2), sizeof dt);
    want = NEXT(16, 64);
    assert_ok(lk_euler_step(dev, &(struct lk_euler_step){&sample, &velocity, dt}));
    compare("Euler step", &sample, &want, 0.0);
}

/* torch rounds probabilities to bf16, which the f32 kernels do not, and takes them relative to another maximum than the
 * AMX kernel does; both kernels are about as near to the exact result, so that many last bits differ. */
static void check_attention(void) {
    struct lk_tensor q = NEXT(80, 1, 32), k = NEXT(80, 1, 32), v = NEXT(80, 1, 32), y = output(&q);
    for (int causal = 0; causal < 2; causal++) {
        struct lk_tensor want = NEXT(80, 1, 32);
        assert_ok(lk_attention(dev, &(struct lk_attention){&y, &q, &k, &v, 1.0f / sqrtf(32.0f), causal}));
        compare(causal ? "attention, causal" : "attention", &y, &want, 0.6);
    }
}

static void check_channel_norm(void) {
    struct lk_tensor x = NEXT(12, 96), w = NEXT(96, 1, 1, 1), want = NEXT(12, 96), y = output(&x);
    assert_ok(lk_l2_norm(dev, &(struct lk_l2_norm){&y, &x, &w, LK_ACT_NONE}));
    compare("l2 norm", &y, &want, 0.002);
    want = NEXT(12, 96);
    assert_ok(lk_l2_norm(dev, &(struct lk_l2_norm){&y, &x, &w, LK_ACT_SILU}));
    compare("l2 norm, SiLU", &y, &want, 0.002);
}

static void check_latents(void) {
    struct lk_tensor tokens = NEXT(257, 8), want = NEXT(1, 8), y = output(&want);
    assert_ok(lk_mean_rows(dev, &(struct lk_mean_rows){&y, &tokens}));
    compare("mean of rows", &y, &want, 0.0);
    struct lk_tensor moments = NEXT(5, 7, 32), noise = NEXT(5, 7, 16);
    want = NEXT(5, 7, 16);
    y = output(&want);
    assert_ok(lk_posterior_sample(dev, &(struct lk_posterior_sample){&y, &moments, &noise}));
    compare("posterior sample", &y, &want, 0.002);
    float shifts[16], scales[16];
    for (int i = 0; i < 16; i++) shifts[i] = 0.1159f, scales[i] = 0.3611f;
    struct lk_tensor x = NEXT(16, 16), mean = LK_TENSOR(shifts, LK_F32, 16), std = LK_TENSOR(scales, LK_F32, 16);
    y = output(&x);
    struct lk_channel_affine op = {&y, &x, &mean, &std, true, true};
    want = NEXT(16, 16);
    assert_ok(lk_channel_affine(dev, &op));
    compare("(z - shift) * scale", &y, &want, 0.0);
    op.normalize = false;
    want = NEXT(16, 16);
    assert_ok(lk_channel_affine(dev, &op));
    compare("z / scale + shift", &y, &want, 0.0);
    mean = NEXT(16), std = NEXT(16);
    struct lk_tensor inverse = NEXT(16);
    want = NEXT(16, 16);
    assert_ok(lk_channel_affine(dev, &(struct lk_channel_affine){&y, &x, &mean, &std, true, false}));
    compare("(z - mean) / std", &y, &want, 0.0);
    want = NEXT(16, 16);
    assert_ok(lk_channel_affine(dev, &(struct lk_channel_affine){&y, &x, &mean, &inverse, false, true}));
    compare("z / inverse + mean", &y, &want, 0.0);
}

static void check_guidance(void) {
    struct lk_tensor cond = NEXT(24, 64), uncond = NEXT(24, 64), y = output(&cond);
    struct lk_guidance op = {&y, &cond, &uncond, LK_GUIDANCE_RESCALE, 4.3f, 0.4f};
    for (int i = 0; i < 3; i++) {
        struct lk_tensor want = NEXT(24, 64);
        assert_ok(lk_guidance(dev, &op));
        compare((const char *[]){"guidance, rescaled", "guidance, limited", "guidance"}[i], &y, &want, 0.0);
        op.kind = LK_GUIDANCE_LIMIT;
        if (i == 1) op.power = 0.0f;
    }
}

static void test_rounding_points(void **state) {
    (void)state;
    file = test_read("golden/data/ops.bin", &size);
    place = 0;
    assert_ok(lk_device_cpu_create(1, &dev));
    assert_ok(lk_device_prepare(dev, (size_t)8 << 20));
    check_norms();
    check_elementwise();
    check_attention();
    check_channel_norm();
    check_latents();
    check_guidance();
    assert_int_equal(place, size);
    lk_device_free(dev);
    free(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounding_points)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
