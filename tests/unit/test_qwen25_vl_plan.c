/* Qwen2.5-VL-7B as released, planned without its weights: tensors and parameters are those of the released files, FLOPs
 * those of windows counted by hand. */
#include "tests/common/test.h"

#include "models/text/qwen25_vl.h"

/* As transformers 4.53.1 wrote it for Qwen-Image-Edit's text encoder (rebuilt from its keys, of the listed size): the
 * language model at the top, where nothing reads it, and in text_config. */
#define CONFIG "data/qwen25_vl_7b_config.json"

static void bind_released(struct lk_qwen25_vl *m, bool lm_head) {
    struct lk_config *json;
    struct lk_qwen25_vl_config config;
    assert_ok(lk_config_open(&json, CONFIG));
    assert_ok(lk_qwen25_vl_config_read(&config, json));
    assert_ok(lk_qwen25_vl_bind(m, &config, lm_head, NULL, LK_BF16));
}

static void parameters_are_those_of_the_release(void **state) {
    (void)state;
    struct lk_qwen25_vl m;
    bind_released(&m, true);
    assert_int_equal(m.totals.n_tensors, 729);
    assert_int_equal(m.totals.parameters, 8292166656);
    assert_int_equal(m.totals.weight_bytes, 2 * 8292166656);
    assert_int_equal(m.vision_totals.n_tensors, 390);
    assert_int_equal(m.vision_totals.parameters, 676550144);
    assert_int_equal(m.vision_totals.weight_bytes, 2 * 676550144);
    assert_int_equal(m.lm_head.shape[0], 152064);
    lk_qwen25_vl_free(&m);
    bind_released(&m, false);
    assert_int_equal(m.totals.parameters, 8292166656 - 544997376);
    assert_int_equal(m.lm_head.n_dims, 0);
    lk_qwen25_vl_free(&m);
}

/* 392 x 392 pixels: 14 x 14 merge blocks, so windows of 4 x 4 blocks, of 4 x 2 at two edges, and one of 2 x 2. */
static void vision_is_counted_by_window(void **state) {
    (void)state;
    const uint64_t n = 28 * 28, d = 1280, f = 3420;
    const uint64_t window_pairs = 9 * 64 * 64 + 6 * 32 * 32 + 16 * 16;
    uint64_t linear = 2 * n * (1176 * d + 32 * (4 * d * d + 3 * d * f)) + 2 * n / 4 * (4 * d * 4 * d + 4 * d * 3584);
    uint64_t attention = 4 * d * (28 * window_pairs + 4 * n * n);
    struct lk_qwen25_vl m;
    struct lk_device *cpu, *plan;
    bind_released(&m, false);
    assert_ok(lk_device_cpu_create(1, &cpu));
    assert_ok(lk_device_plan_create(cpu, &plan));
    struct lk_vlm_image image = {.grid_h = 28, .grid_w = 28};
    struct lk_tensor features;
    assert_ok(LK_NEW(&plan->arena, &features, LK_BF16, lk_qwen25_vl_image_tokens(&m.config, &image), 3584));
    assert_ok(lk_qwen25_vl_vision(plan, &m, &image, 0, &features));
    assert_int_equal(plan->cost.flops, linear + attention);
    assert_true(plan->arena.peak < 64 << 20);
    lk_device_free(plan);
    lk_device_free(cpu);
    lk_qwen25_vl_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_those_of_the_release),
        cmocka_unit_test(vision_is_counted_by_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
