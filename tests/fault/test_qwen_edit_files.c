/* Files and requests of Qwen-Image-Edit that must be refused, and what a folder is recognised as. */
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "tests/common/config_files.h"
#include "tests/common/pipeline_checks.h"

#define DATA "golden/data/qwen_edit/"

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
    "tokenizer/tokenizer.json",
    NULL,
};

static const char *copy_checkpoint(void) {
    return test_copy_files("qwen_edit_files", DATA "edit2511/checkpoint", files);
}

static enum lk_code try_open(const char *folder) {
    struct lk_pipeline *p;
    enum lk_code rc = lk_pipeline_open(&p, folder, LK_BF16);
    if (!rc) lk_pipeline_close(p);
    return rc;
}

static void names_tell_what_a_folder_holds(void **state) {
    (void)state;
    static const struct {
        const char *config, *name;
    } expected[] = {
        {"edit2511", "qwen-edit-2511"}, {"edit2509", "qwen-edit-2509"}, {"edit", "qwen-edit"}, {"text", "qwen-image"}};
    for (size_t i = 0; i < 4; i++) {
        struct lk_pipeline *p;
        char path[256];
        snprintf(path, sizeof path, DATA "%s/checkpoint", expected[i].config);
        assert_ok(lk_pipeline_open(&p, path, LK_BF16));
        assert_string_equal(lk_pipeline_family(p), expected[i].name);
        lk_pipeline_close(p);
        assert_ok(lk_pipeline_open_configs(&p, path, LK_BF16));
        assert_string_equal(lk_pipeline_family(p), expected[i].name);
        lk_pipeline_close(p);
        assert_ok(lk_pipeline_open_configs(&p, expected[i].name, LK_BF16));
        assert_string_equal(lk_pipeline_family(p), expected[i].name);
        lk_pipeline_close(p);
    }
}

static void missing_files_are_named(void **state) {
    (void)state;
    for (size_t i = 0; files[i]; i++) {
        const char *folder = copy_checkpoint();
        if (access(test_copied(files[i]), R_OK)) continue;
        assert_ok(try_open(folder));
        unlink(test_copied(files[i]));
        enum lk_code rc = try_open(folder);
        if (!strstr(files[i], "tokenizer.json")) {
            const char *component = strstr(files[i], ".safetensors") ? "safetensors" : strrchr(files[i], '/');
            if (rc != LK_E_NOT_FOUND || !strstr(lk_error_text(), component ? component : files[i]))
                fail_msg("%s removed: got code %d: %s", files[i], (int)rc, rc ? lk_error_text() : "(no error)");
        } else if (access(test_copied("processor/tokenizer.json"), R_OK) &&
                   access(test_copied("tokenizer/tokenizer.json"), R_OK)) {
            assert_fails(rc, LK_E_NOT_FOUND, "copy processor/tokenizer.json of Qwen/Qwen-Image-Edit-2511");
        }
    }
}

/* The processor's tokenizer comes first; without it the other one is read. */
static void tokenizer_of_either_folder(void **state) {
    (void)state;
    const char *folder = copy_checkpoint();
    size_t n;
    char *bytes = test_read(test_copied("processor/tokenizer.json"), &n);
    test_write(test_copied("tokenizer/tokenizer.json"), "{}", 2);
    assert_ok(try_open(folder));
    unlink(test_copied("processor/tokenizer.json"));
    assert_fails(try_open(folder), LK_E_TOKENIZER, "tokenizer/tokenizer.json");
    test_write(test_copied("tokenizer/tokenizer.json"), bytes, n);
    assert_ok(try_open(folder));
    free(bytes);
    copy_checkpoint();
    test_set_key("text_encoder/config.json", "image_token_id", "3");
    assert_fails(try_open(folder), LK_E_TOKENIZER, "<|image_pad|>");
}

static void nonsense_in_configs_is_refused(void **state) {
    (void)state;
    static const struct test_change changes[] = {
        {"model_index.json", "vae", "[\"diffusers\",\"AutoencoderKL\"]", LK_E_CONFIG_VALUE, "AutoencoderKLQwenImage"},
        {"model_index.json", "text_encoder", "[\"transformers\",\"T5EncoderModel\"]", LK_E_CONFIG_VALUE, "Qwen2_5_VL"},
        {"model_index.json", "transformer", NULL, LK_E_CONFIG_KEY, "transformer"},
        {"model_index.json", "image_encoder", "[\"a\",\"b\"]", LK_E_CONFIG_KEY, "image_encoder"},
        {"model_index.json", "_class_name", "\"QwenImageInpaintPipeline\"", LK_E_MODEL_UNKNOWN, "QwenImageInpaint"},
        {"scheduler/scheduler_config.json", "use_karras_sigmas", "true", LK_E_CONFIG_VALUE, "use_karras_sigmas"},
        {"scheduler/scheduler_config.json", "max_image_seq_len", "256", LK_E_CONFIG_VALUE, "max_image_seq_len"},
        {"transformer/config.json", "joint_attention_dim", "40", LK_E_CONFIG_VALUE, "joint_attention_dim"},
        {"vae/config.json", "z_dim", "0", LK_E_CONFIG_VALUE, "z_dim"},
        {"vae/config.json", "z_dim", "65", LK_E_CONFIG_VALUE, "z_dim"},
        {"vae/config.json", "base_dim", "\"96\"", LK_E_CONFIG_TYPE, "base_dim"},
        {"vae/config.json", "base_dim", "10", LK_E_BIND, "vae"},
        {"vae/config.json", "base_dim", "4096", LK_E_CONFIG_VALUE, "expected at most 512"},
        {"vae/config.json", "dim_mult", "[1]", LK_E_CONFIG_VALUE, "dim_mult"},
        {"vae/config.json", "dim_mult", "[1,0,4,4]", LK_E_CONFIG_VALUE, "entry 1 is 0"},
        {"vae/config.json", "dim_mult", "[1,2,2,2,2,2,2,2,2]", LK_E_CONFIG_VALUE, "at most 8"},
        {"vae/config.json", "num_res_blocks", "9", LK_E_CONFIG_VALUE, "num_res_blocks"},
        {"vae/config.json", "temperal_downsample", "[false]", LK_E_CONFIG_VALUE, "temperal_downsample"},
        {"vae/config.json", "temperal_downsample", "[1,1,1]", LK_E_CONFIG_TYPE, "temperal_downsample"},
        {"vae/config.json", "attn_scales", "[0.5]", LK_E_CONFIG_VALUE, "attn_scales"},
        {"vae/config.json", "is_residual", "true", LK_E_CONFIG_VALUE, "is_residual"},
        {"vae/config.json", "input_channels", "12", LK_E_CONFIG_VALUE, "input_channels"},
        {"vae/config.json", "latents_std", "[1,1]", LK_E_CONFIG_VALUE, "latents_std"},
        {"vae/config.json", "latents_mean", "null", LK_E_CONFIG_TYPE, "latents_mean"},
        {"vae/config.json", "latents_mean", NULL, LK_E_CONFIG_KEY, "latents_mean"},
        {"vae/config.json", "surprise", "1", LK_E_CONFIG_KEY, "surprise"},
        {"processor/preprocessor_config.json", "patch_size", "16", LK_E_CONFIG_VALUE, "patches of 16 pixels"},
    };
    copy_checkpoint();
    test_changes_are_refused(try_open, changes, sizeof changes / sizeof *changes);
}

static void zero_std_is_refused(void **state) {
    (void)state;
    const char *folder = copy_checkpoint();
    size_t n;
    char *text = test_read(test_copied("vae/config.json"), &n);
    cJSON *root = cJSON_ParseWithLength(text, n);
    cJSON_ReplaceItemInArray(cJSON_GetObjectItem(root, "latents_std"), 1, cJSON_CreateNumber(0));
    char *changed = cJSON_Print(root);
    test_write(test_copied("vae/config.json"), changed, strlen(changed));
    assert_fails(try_open(folder), LK_E_CONFIG_VALUE, "number 1 is 0: expected a positive one");
    cJSON_free(changed);
    cJSON_Delete(root);
    free(text);
}

static enum lk_code count(void *context, const char *stage, int step, int n_steps) {
    (void)stage, (void)step, (void)n_steps;
    ++*(int *)context;
    return LK_OK;
}

static void bad_requests_are_refused(void **state) {
    (void)state;
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request good;
    struct lk_result result;
    struct lk_image images[2];
    assert_ok(lk_device_cpu_create(1, &dev));
    for (int i = 0; i < 2; i++) assert_ok(lk_image_new(&images[i], 40, 30, 3));
    assert_ok(lk_pipeline_open(&p, DATA "edit2511/checkpoint", LK_F32));
    lk_request_init(&good, p);
    assert_int_equal(good.num_inference_steps, 40);
    assert_true(good.true_cfg_scale == 4.0 && good.seed == 0 && !strcmp(good.negative_prompt, " "));
    good.prompt = "x";
    good.images = images;
    good.n_images = 1;
    good.vae_area = good.condition_area = 64 * 64;
    good.width = good.height = 32;
    TEST_REFUSED(bad.n_images = 0, LK_E_USAGE, "edits images, got none");
    TEST_REFUSED(bad.width = 4, LK_E_IMAGE_SIZE, "output");
    TEST_REFUSED(bad.max_sequence_length = 1025, LK_E_USAGE, "max_sequence_length");
    TEST_REFUSED(bad.num_inference_steps = 1, LK_E_CONFIG_VALUE, "shift_terminal");
    TEST_REFUSED(bad.prompt = "a \xff", LK_E_PROMPT, "prompt: byte 2");
    TEST_REFUSED(bad.negative_prompt = "\xc0", LK_E_PROMPT, "prompt: byte 0");
    TEST_REFUSED(bad.prompt = "put <|image_pad|> here", LK_E_PROMPT, "<|image_pad|>");
    TEST_REFUSED(bad.prompt = "<|video_pad|>", LK_E_PROMPT, "<|video_pad|>");
    static char long_prompt[20001];
    int n_stages = 0;
    for (size_t i = 0; i + 1 < sizeof long_prompt; i++) long_prompt[i] = i % 2 ? ' ' : 'x';
    good.progress = count;
    good.progress_context = &n_stages;
    TEST_REFUSED(bad.prompt = long_prompt, LK_E_IMAGE_SIZE, "shorter prompt");
    TEST_REFUSED(bad.negative_prompt = long_prompt, LK_E_IMAGE_SIZE, "shorter prompt");
    assert_int_equal(n_stages, 0); /* said before anything is encoded */
    good.progress = NULL;
    TEST_REFUSED(images[0].width = 40000, LK_E_IMAGE_SIZE, "image 1");
    images[0].width = 40;
    lk_pipeline_close(p);
    assert_ok(lk_pipeline_open(&p, DATA "edit/checkpoint", LK_F32));
    TEST_REFUSED(bad.n_images = 2, LK_E_USAGE, "edits one image, got 2");
    lk_pipeline_close(p);
    assert_ok(lk_pipeline_open(&p, DATA "text/checkpoint", LK_F32));
    TEST_REFUSED((void)0, LK_E_USAGE, "from text alone, got 1");
    lk_pipeline_close(p);
    for (int i = 0; i < 2; i++) lk_image_free(&images[i]);
    lk_device_free(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_tell_what_a_folder_holds),
        cmocka_unit_test(missing_files_are_named),
        cmocka_unit_test(tokenizer_of_either_folder),
        cmocka_unit_test(nonsense_in_configs_is_refused),
        cmocka_unit_test(zero_std_is_refused),
        cmocka_unit_test(bad_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
