/* Qwen2.5-VL-7B as released, planned without its weights: tensors and parameters are those of the released files, FLOPs
 * those of windows counted by hand. */
#include "tests/common/test.h"

#include "models/text/qwen25_vl.h"

/* What the config of Qwen-Image-Edit's text encoder says, in the released form. */
static const char released[] =
    "{\"architectures\": [\"Qwen2_5_VLForConditionalGeneration\"], \"attention_dropout\": 0.0, \"bos_token_id\": "
    "151643,"
    " \"eos_token_id\": 151645, \"hidden_act\": \"silu\", \"hidden_size\": 3584, \"image_token_id\": 151655,"
    " \"initializer_range\": 0.02, \"intermediate_size\": 18944, \"max_position_embeddings\": 128000,"
    " \"max_window_layers\": 28, \"model_type\": \"qwen2_5_vl\", \"num_attention_heads\": 28, \"num_hidden_layers\": "
    "28,"
    " \"num_key_value_heads\": 4, \"rms_norm_eps\": 1e-06, \"rope_scaling\": {\"mrope_section\": [16, 24, 24],"
    " \"rope_type\": \"default\", \"type\": \"default\"}, \"rope_theta\": 1000000.0, \"sliding_window\": 32768,"
    " \"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\", \"transformers_version\": \"4.53.1\","
    " \"use_cache\": true, \"use_sliding_window\": false, \"video_token_id\": 151656, \"vision_config\": {\"depth\": "
    "32,"
    " \"fullatt_block_indexes\": [7, 15, 23, 31], \"hidden_act\": \"silu\", \"hidden_size\": 1280, \"in_channels\": 3,"
    " \"in_chans\": 3, \"initializer_range\": 0.02, \"intermediate_size\": 3420, \"model_type\": \"qwen2_5_vl\","
    " \"num_heads\": 16, \"out_hidden_size\": 3584, \"patch_size\": 14, \"spatial_merge_size\": 2,"
    " \"spatial_patch_size\": 14, \"temporal_patch_size\": 2, \"tokens_per_second\": 2, \"window_size\": 112},"
    " \"vision_end_token_id\": 151653, \"vision_start_token_id\": 151652, \"vision_token_id\": 151654,"
    " \"vocab_size\": 152064}";

static void bind_released(struct lk_qwen25_vl *m, bool lm_head) {
    struct lk_config *json;
    struct lk_qwen25_vl_config config;
    assert_ok(lk_config_parse(&json, released, strlen(released), "config.json"));
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
    struct lk_qwen25_vl_image image = {.grid_h = 28, .grid_w = 28};
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
