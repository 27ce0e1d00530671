/* AutoencoderKLQwenImage at one frame against diffusers' (generate_qwen_vae.py). */
#include "models/common/files.h"
#include "models/vae/autoencoder_kl_qwen_image.h"
#include "tests/common/golden.h"
#include "tests/common/test.h"

#include "engine/bf16.h"

#define FOLDER "golden/data/qwen_vae"

struct vae_case {
    const char *config;
    enum golden_mode mode;
};

/* An input of the golden on the device, in the compute dtype. */
static void upload(const struct golden *golden, struct lk_device *dev, const char *name, enum lk_dtype dtype,
                   struct lk_tensor *out) {
    size_t n;
    float *values = golden_values(golden, name, &n);
    const struct lk_tensor *shape = &lk_safetensors_find(&golden->st, name)->tensor;
    assert_ok(lk_arena_tensor(&dev->arena, out, dtype, shape->n_dims, shape->shape));
    uint16_t *rounded = malloc(n * sizeof *rounded);
    assert_non_null(rounded);
    for (size_t i = 0; i < n; i++) rounded[i] = lk_f32_to_bf16(values[i]);
    assert_ok(lk_upload(dev, out, dtype == LK_BF16 ? (void *)rounded : (void *)values));
    free(rounded);
    free(values);
}

/* Mean, std and 1 / std of the latents, to the bit: their last bits are lost in the errors of a whole edit. */
static void check_statistics(const struct lk_qwen_vae *vae, const struct golden *golden, enum lk_dtype dtype) {
    const struct lk_tensor *ours[] = {&vae->latents_mean, &vae->latents_std, &vae->latents_inverse_std};
    size_t n, c = (size_t)vae->config.z_dim;
    float *expected = golden_values(golden, dtype == LK_BF16 ? "f32.statistics_bf16" : "f32.statistics", &n);
    assert_int_equal(n, 3 * c);
    for (size_t i = 0; i < n; i++) {
        const void *data = ours[i / c]->data;
        float value = dtype == LK_BF16 ? lk_bf16_to_f32(((const uint16_t *)data)[i % c]) : ((const float *)data)[i % c];
        if (value != expected[i])
            fail_msg("statistic %zu of channel %zu: expected %.9g, got %.9g", i / c, i % c, (double)expected[i],
                     (double)value);
    }
    free(expected);
}

static void run(struct lk_device *dev, const struct lk_qwen_vae *vae, const struct golden *golden, enum lk_dtype dtype,
                struct golden_check *check) {
    struct lk_tensor pixels, latents, mean, decoded;
    upload(golden, dev, "f32.pixels", dtype, &pixels);
    upload(golden, dev, "f32.latents", dtype, &latents);
    assert_ok(LK_NEW(&dev->arena, &mean, dtype, latents.shape[0], latents.shape[1], latents.shape[2]));
    assert_ok(LK_NEW(&dev->arena, &decoded, dtype, pixels.shape[0], pixels.shape[1], 3));
    assert_ok(lk_qwen_vae_encode(dev, vae, &pixels, &mean, 0));
    assert_ok(golden_check_trace(check, dev, "mean", &mean));
    assert_ok(lk_qwen_vae_decode(dev, vae, &latents, &decoded, 0));
    assert_ok(golden_check_trace(check, dev, "decoded", &decoded));
}

static void test_case(void **state) {
    const struct vae_case *item = *state;
    enum lk_dtype dtype = item->mode == GOLDEN_BF16 ? LK_BF16 : LK_F32;
    char path[256];
    snprintf(path, sizeof path, FOLDER "/%s/cases.safetensors", item->config);
    struct golden golden;
    struct golden_check check;
    golden_open(&golden, path, item->config);
    golden_check_begin(&check, &golden, item->mode);

    struct lk_config *json;
    struct lk_qwen_vae_config config;
    struct lk_checkpoint checkpoint;
    struct lk_qwen_vae vae;
    struct lk_device *dev;
    snprintf(path, sizeof path, "%s/config.json", item->config);
    assert_ok(lk_component_config(&json, FOLDER, path, NULL));
    assert_ok(lk_qwen_vae_config_read(&config, json));
    assert_ok(lk_component_open(&checkpoint, FOLDER, item->config, "diffusion_pytorch_model"));
    assert_ok(lk_qwen_vae_bind(&vae, &config, &checkpoint, dtype));
    assert_ok(lk_device_cpu_create(1, &dev));
    assert_ok(lk_device_prepare(dev, (size_t)16 << 20));
    dev->trace = golden_check_trace;
    dev->trace_context = &check;
    check_statistics(&vae, &golden, dtype);
    run(dev, &vae, &golden, dtype, &check);
    lk_device_free(dev);
    lk_qwen_vae_free(&vae);
    lk_checkpoint_close(&checkpoint);
    golden_check_end(&check);
}

int main(void) {
    static struct vae_case cases[] = {
        {"released", GOLDEN_F32}, {"released", GOLDEN_BF16}, {"small", GOLDEN_F32}, {"small", GOLDEN_BF16}};
    const struct CMUnitTest tests[] = {
        {.name = "released f32", .test_func = test_case, .initial_state = &cases[0]},
        {.name = "released bf16", .test_func = test_case, .initial_state = &cases[1]},
        {.name = "small f32", .test_func = test_case, .initial_state = &cases[2]},
        {.name = "small bf16", .test_func = test_case, .initial_state = &cases[3]},
    };
    int failed = cmocka_run_group_tests_name("Qwen-Image VAE goldens", tests, NULL, NULL);
    golden_print_table();
    return failed;
}
