/* Files and requests of Step1X-Edit that must be refused, and what a folder is recognised as. */
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "tests/common/config_files.h"
#include "tests/common/pipeline_checks.h"
#include "weights/safetensors.h"

#define DATA "golden/data/step1x/"

static const char *const files[] = {
    "model_index.json",
    "scheduler/scheduler_config.json",
    "text_encoder/config.json",
    "text_encoder/model.safetensors",
    "transformer/config.json",
    "transformer/diffusion_pytorch_model.safetensors",
    "vae/config.json",
    "vae/diffusion_pytorch_model.safetensors",
    "processor/preprocessor_config.json",
    "processor/tokenizer.json",
    NULL,
};

/* A copy of the checkpoint whose config does not speak of the mapping of quoted tokens. */
static const char *copy_checkpoint(void) { return test_copy_files("step1x_files", DATA "plain/checkpoint", files); }

static enum lk_code try_open(const char *folder) {
    struct lk_pipeline *p;
    enum lk_code rc = lk_pipeline_open(&p, folder, LK_BF16);
    if (!rc) lk_pipeline_close(p);
    return rc;
}

/* Takes the mapping of quoted tokens out of the transformer. */
static void drop_mapping(void) {
    struct lk_safetensors st;
    size_t n = 0;
    char path[2048], changed[2048];
    snprintf(path, sizeof path, "%s", test_copied("transformer/diffusion_pytorch_model.safetensors"));
    snprintf(changed, sizeof changed, "%s", test_copied("transformer/changed"));
    assert_ok(lk_safetensors_open(&st, path));
    struct lk_st_named *kept = calloc(st.n_tensors, sizeof *kept);
    for (size_t i = 0; i < st.n_tensors; i++)
        if (strncmp(st.tensors[i].name, "text_token_mapping.", strlen("text_token_mapping.")))
            kept[n++] = (struct lk_st_named){st.tensors[i].name, st.tensors[i].tensor};
    assert_int_equal(n, st.n_tensors - 2);
    assert_ok(lk_safetensors_write(changed, kept, n, NULL));
    free(kept);
    lk_safetensors_close(&st);
    assert_int_equal(rename(changed, path), 0);
}

static void expect_name(const char *model, const char *name) {
    struct lk_pipeline *p;
    assert_ok(lk_pipeline_open_configs(&p, model, LK_BF16));
    assert_string_equal(lk_pipeline_family(p), name);
    lk_pipeline_close(p);
}

/* A mapping of quoted tokens makes a v1p2, whatever the class; so does the class that names v1p2. */
static void versions_are_told_apart(void **state) {
    (void)state;
    expect_name("step1x-v1p2", "step1x-v1p2");
    expect_name("step1x-v1p1", "step1x-v1p1");
    expect_name(DATA "rich/checkpoint", "step1x-v1p2");
    expect_name(DATA "plain/checkpoint", "step1x-v1p2");
    const char *folder = copy_checkpoint();
    test_set_key("model_index.json", "_class_name", "\"Step1XEditPipeline\"");
    expect_name(folder, "step1x-v1p2");
    drop_mapping();
    expect_name(folder, "step1x-v1p1");
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request request;
    struct lk_result result;
    struct lk_plan plan;
    assert_ok(lk_pipeline_open(&p, folder, LK_BF16));
    assert_ok(lk_device_cpu_create(1, &dev));
    lk_request_init(&request, p);
    request.num_inference_steps = 1;
    assert_ok(lk_pipeline_plan(p, dev, &request, &plan));
    assert_int_equal(plan.n_tokens, 4096 + 640);
    assert_fails(lk_pipeline_edit(p, dev, &request, &result), LK_E_CONFIG_VALUE, "Step1X-Edit-v1p1");
    lk_device_free(dev);
    lk_pipeline_close(p);
}

static void missing_files_are_named(void **state) {
    (void)state;
    const char *folder = copy_checkpoint();
    for (size_t i = 0; files[i]; i++) {
        copy_checkpoint();
        assert_ok(try_open(folder));
        unlink(test_copied(files[i]));
        const char *part = strstr(files[i], ".safetensors")   ? "safetensors"
                           : strstr(files[i], "preprocessor") ? "processor_config.json"
                                                              : files[i];
        enum lk_code rc = try_open(folder);
        if (rc != LK_E_NOT_FOUND || !strstr(lk_error_text(), part))
            fail_msg("%s removed: got code %d: %s", files[i], (int)rc, rc ? lk_error_text() : "(no error)");
    }
    copy_checkpoint(); /* transformers 5 writes the processor's config under another name */
    assert_int_equal(rename(test_path("step1x_files/processor/preprocessor_config.json"),
                            test_path("step1x_files/processor/processor_config.json")),
                     0);
    assert_ok(try_open(folder));
    unlink(test_copied("processor/processor_config.json"));
}

static void nonsense_in_configs_is_refused(void **state) {
    (void)state;
    static const struct test_change changes[] = {
        {"model_index.json", "vae", "[\"diffusers\", \"AutoencoderKLFlux2\"]", 0, "AutoencoderKL"},
        {"model_index.json", "transformer", "[\"diffusers\", \"FluxTransformer2DModel\"]", 0, "transformer"},
        {"model_index.json", "text_encoder", "[\"transformers\", \"Qwen2VLModel\"]", 0, "text_encoder"},
        {"model_index.json", "scheduler", "[\"diffusers\", \"DDIMScheduler\"]", 0, "scheduler"},
        {"model_index.json", "processor", "[\"transformers\", \"CLIPProcessor\"]", 0, "processor"},
        {"model_index.json", "tokenizer", "[\"transformers\", \"Qwen2Tokenizer\"]", 0, "tokenizer"},
        {"scheduler/scheduler_config.json", "_class_name", "\"DDIMScheduler\"", 0, "_class_name"},
        {"vae/config.json", "_class_name", "\"AutoencoderKLFlux2\"", 0, "_class_name"},
        {"vae/config.json", "scaling_factor", NULL, 0, "scaling_factor"},
        {"vae/config.json", "scaling_factor", "0", 0, "scaling_factor"},
        {"vae/config.json", "scaling_factor", "\"0.3611\"", 0, "scaling_factor"},
        {"vae/config.json", "shift_factor", "null", 0, "shift_factor"},
        {"vae/config.json", "shift_factor", "1e9", 0, "shift_factor"},
        {"vae/config.json", "latents_mean", "[0, 0, 0, 0]", 0, "latents_mean"},
        {"vae/config.json", "latents_std", "[1, 1, 1, 1]", 0, "latents_std"},
        {"vae/config.json", "batch_norm_eps", "0.0001", 0, "batch_norm_eps"},
        {"vae/config.json", "patch_size", "[2, 2]", 0, "patch_size"},
        {"vae/config.json", "use_quant_conv", "true", 0, "quant_conv"},
        {"vae/config.json", "use_post_quant_conv", "true", 0, "post_quant_conv"},
        {"vae/config.json", "latent_channels", "8", 0, "latent_channels"},
        {"vae/config.json", "latent_channels", "0", 0, "latent_channels"},
        {"vae/config.json", "act_fn", "\"relu\"", 0, "act_fn"},
        {"vae/config.json", "norm_num_groups", "3", 0, "norm_num_groups"},
        {"vae/config.json", "block_out_channels", "[]", 0, "block_out_channels"},
        {"vae/config.json", "block_out_channels", "[4, 4, 4]", 0, "block_types"},
        {"vae/config.json", "block_out_channels", "[4, 4, 4, 576]", 0, "expected at most 512"},
        {"vae/config.json", "down_block_types", "[\"A\", \"A\", \"A\", \"A\"]", 0, "down_block_types"},
        {"transformer/config.json", "connector_in_channels", "32", 0, "connector_in_channels"},
        {"transformer/config.json", "in_channels", "64", 0, "in_channels"},
        {"transformer/config.json", "out_channels", "32", 0, "out_channels"},
        {"transformer/config.json", "guidance_embeds", "true", 0, "guidance_embeds"},
        {"transformer/config.json", "enable_text_token_mapping", "7", 0, "text_token_mapping"},
        {"text_encoder/config.json", "image_token_id", "3", 0, "<|image_pad|>"},
        {"processor/preprocessor_config.json", "patch_size", "16", 0, "patch_size"},
        {"processor/preprocessor_config.json", "merge_size", "1", 0, "merge_size"},
        {"processor/preprocessor_config.json", "temporal_patch_size", "1", 0, "temporal_patch_size"},
    };
    copy_checkpoint();
    test_changes_are_refused(try_open, changes, sizeof changes / sizeof *changes);
}

static void bad_requests_are_refused(void **state) {
    (void)state;
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request good;
    struct lk_result result;
    struct lk_image images[2];
    assert_ok(lk_pipeline_open(&p, DATA "plain/checkpoint", LK_F32));
    assert_ok(lk_device_cpu_create(1, &dev));
    for (int i = 0; i < 2; i++) assert_ok(lk_image_new(&images[i], 40, 30, 3));
    lk_request_init(&good, p);
    assert_int_equal(good.num_inference_steps, 28);
    assert_true(good.true_cfg_scale == 6 && good.guidance_scale == 0);
    assert_int_equal(good.seed, 42);
    assert_int_equal(good.size_level, 1024);
    good.images = images;
    good.n_images = 1;
    good.num_inference_steps = 1;
    good.size_level = 32;
    TEST_REFUSED(bad.n_images = 2, LK_E_USAGE, "one image, got 2");
    TEST_REFUSED(bad.size_level = 15, LK_E_USAGE, "size_level: expected 16 to 8192, got 15");
    TEST_REFUSED(bad.size_level = 8193, LK_E_USAGE, "size_level");
    TEST_REFUSED(bad.prompt = "a \xff", LK_E_PROMPT, "prompt: byte 2");
    TEST_REFUSED(bad.negative_prompt = "\xff", LK_E_PROMPT, "prompt: byte 0");
    TEST_REFUSED(bad.prompt = "an <|image_pad|>", LK_E_PROMPT, "<|image_pad|>");
    TEST_REFUSED((bad.n_images = 0, bad.width = 15), LK_E_USAGE, "output size");
    TEST_REFUSED(bad.thinking_mode = true, LK_E_USAGE, "prompts_file");
    TEST_REFUSED(bad.reflection_mode = true, LK_E_USAGE, "prompts_file");
    TEST_REFUSED((bad.reflection_mode = true, bad.prompts_file = DATA "plain/checkpoint/model_index.json"),
                 LK_E_CONFIG_KEY, "rewrite_system");
    images[0].width = 40 * 30;
    images[0].height = 1;
    TEST_REFUSED((void)bad, LK_E_IMAGE_SIZE, "1200x1");
    assert_ok(lk_pipeline_edit(
        p, dev,
        &(struct lk_request){.num_inference_steps = 1, .size_level = 32, .max_sequence_length = 1, .max_try_cnt = 1},
        &result)); /* no prompt is an empty one */
    assert_int_equal(result.image.width, 32);
    lk_result_free(&result);
    for (int i = 0; i < 2; i++) lk_image_free(&images[i]);
    lk_device_free(dev);
    lk_pipeline_close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_told_apart),
        cmocka_unit_test(missing_files_are_named),
        cmocka_unit_test(nonsense_in_configs_is_refused),
        cmocka_unit_test(bad_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
