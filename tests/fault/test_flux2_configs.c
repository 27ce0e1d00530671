/* N2: each key of each config file of a FLUX.2 model removed and mistyped in turn, and one unknown key added. Nothing
 * is ignored but what inference does not look at, and that is listed here. */
#include "tests/common/test.h"

#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "models/pipeline.h"

#define SOURCE "golden/data/flux2/rich/checkpoint"

static const char *const files[] = {"model_index.json", "scheduler/scheduler_config.json", "text_encoder/config.json",
                                    "transformer/config.json", "vae/config.json"};

/* Without meaning for inference, whatever they hold. */
static const char *const inert[] = {"_diffusers_version",
                                    "architectures",
                                    "dtype",
                                    "image_token_index",
                                    "multimodal_projector_bias",
                                    "projector_hidden_act",
                                    "spatial_merge_size",
                                    "tie_word_embeddings",
                                    "transformers_version",
                                    "vision_config",
                                    "vision_feature_layer",
                                    "attention_dropout",
                                    "bos_token_id",
                                    "eos_token_id",
                                    "pad_token_id",
                                    "initializer_range",
                                    "max_position_embeddings",
                                    "use_cache",
                                    "batch_norm_momentum",
                                    "tokenizer",
                                    "force_upcast"};

/* May be absent: the default is that of the reference classes. */
static const char *const optional[] = {"base_image_seq_len",
                                       "base_shift",
                                       "invert_sigmas",
                                       "max_image_seq_len",
                                       "max_shift",
                                       "num_train_timesteps",
                                       "shift",
                                       "shift_terminal",
                                       "stochastic_sampling",
                                       "time_shift_type",
                                       "use_beta_sigmas",
                                       "use_dynamic_shifting",
                                       "use_exponential_sigmas",
                                       "use_karras_sigmas",
                                       "_class_name",
                                       "model_type",
                                       "hidden_act",
                                       "sliding_window",
                                       "rope_type",
                                       "head_dim",
                                       "num_key_value_heads",
                                       "rms_norm_eps",
                                       "patch_size",
                                       "out_channels",
                                       "mlp_ratio",
                                       "rope_theta",
                                       "eps",
                                       "guidance_embeds",
                                       "timestep_guidance_channels",
                                       "act_fn",
                                       "decoder_block_out_channels",
                                       "sample_size",
                                       "use_quant_conv",
                                       "use_post_quant_conv",
                                       "mid_block_add_attention",
                                       "batch_norm_eps",
                                       "down_block_types",
                                       "up_block_types"};

static bool among(const char *key, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(key, list[i])) return true;
    return false;
}
#define AMONG(key, list) among(key, list, sizeof(list) / sizeof *(list))

static const char *folder;

static void put(const char *file, const char *text) {
    char path[2048];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    test_write(path, text, strlen(text));
}

static void put_json(const char *file, const cJSON *json) {
    char *text = cJSON_Print(json);
    put(file, text);
    cJSON_free(text);
}

static enum lk_code try_open(void) {
    struct lk_pipeline *p;
    enum lk_code rc = lk_pipeline_open_configs(&p, folder, LK_BF16);
    if (!rc) lk_pipeline_close(p);
    return rc;
}

static cJSON *wrong_type(const cJSON *value) {
    return cJSON_IsString(value) ? cJSON_CreateNumber(7) : cJSON_CreateString("seven");
}

/* Opens with `object` changed; gives the code, and whether the message names file and key. */
static void expect_refused(const char *file, const cJSON *root, const char *key, const char *what) {
    put_json(file, root);
    enum lk_code rc = try_open();
    if (lk_exit_code(rc) != 3 || !strstr(lk_error_text(), key) ||
        !strstr(lk_error_text(), strrchr(file, '/') ? strrchr(file, '/') + 1 : file))
        fail_msg("%s: key \"%s\" %s: expected a refusal that names both, got code %d: %s", file, key, what, (int)rc,
                 rc ? lk_error_text() : "(no error)");
}

static int n_cases;

/* A fresh parse of `text`; *object is the root, or the member named `inside`. */
static cJSON *parse(const char *text, const char *inside, cJSON **object) {
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    *object = inside ? cJSON_GetObjectItemCaseSensitive(root, inside) : root;
    return root;
}

static void vary_key(const char *file, const char *text, const char *inside, const char *key) {
    cJSON *object, *root = parse(text, inside, &object);
    cJSON_ReplaceItemInObjectCaseSensitive(object, key, wrong_type(cJSON_GetObjectItemCaseSensitive(object, key)));
    expect_refused(file, root, key, "of the wrong type");
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    if (!AMONG(key, optional)) {
        /* Without the newer form of the rope settings the older one is looked for. */
        expect_refused(file, root, strcmp(key, "rope_parameters") ? key : "rope_theta", "removed");
    } else {
        put_json(file, root);
        try_open(); /* either answer is defined; it must not crash */
    }
    n_cases += 2;
    cJSON_Delete(root);
}

static void vary_object(const char *file, const char *text, const char *inside) {
    cJSON *object, *root = parse(text, inside, &object);
    for (const cJSON *item = object->child; item; item = item->next) {
        if (AMONG(item->string, inert)) continue;
        if (cJSON_IsObject(item) && !inside) vary_object(file, text, item->string);
        vary_key(file, text, inside, item->string);
    }
    cJSON_AddNumberToObject(object, "novel_key", 1);
    expect_refused(file, root, "novel_key", "added");
    n_cases++;
    cJSON_Delete(root);
}

static void every_key_counts(void **state) {
    (void)state;
    folder = test_path("flux2_configs");
    mkdir(folder, 0777);
    char *texts[sizeof files / sizeof *files];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[2048];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        *strrchr(path, '/') = 0;
        mkdir(path, 0777);
        snprintf(path, sizeof path, "%s/%s", SOURCE, files[i]);
        texts[i] = test_read(path, NULL);
        put(files[i], texts[i]);
    }
    assert_ok(try_open());
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        vary_object(files[i], texts[i], NULL);
        put(files[i], texts[i]);
        assert_ok(try_open());
        free(texts[i]);
    }
    print_message("%d variations\n", n_cases);
    assert_true(n_cases > 100);
}

static void other_values_are_refused(void **state) {
    (void)state;
    const struct {
        const char *key, *json;
    } cases[] = {
        {"num_attention_heads", "0"},
        {"num_attention_heads", "-3"},
        {"num_attention_heads", "3.5"},
        {"num_attention_heads", "1e9"},
        {"axes_dims_rope", "[8, 8, 8]"},
        {"axes_dims_rope", "[8, 8, 8, 9]"},
        {"axes_dims_rope", "[8]"},
        {"out_channels", "32"},
        {"patch_size", "2"},
        {"mlp_ratio", "0"},
        {"timestep_guidance_channels", "3"},
        {"in_channels", "18"},
    };
    char path[2048];
    snprintf(path, sizeof path, "%s/transformer/config.json", SOURCE);
    char *text = test_read(path, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cJSON *root = cJSON_Parse(text);
        cJSON_ReplaceItemInObject(root, cases[i].key, cJSON_Parse(cases[i].json));
        expect_refused("transformer/config.json", root, cases[i].key, cases[i].json);
        cJSON_Delete(root);
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_counts),
        cmocka_unit_test(other_values_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
