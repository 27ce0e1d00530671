/* N2 and W7 for Qwen2.5-VL: each key of its config removed and mistyped in turn, in the form of transformers 5 and in
 * the released one; values that make no sense; weights that are not what the config says; failing allocations. */
#include "tests/common/test.h"

#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "engine/base/alloc.h"
#include "models/text/qwen25_vl.h"

#define NESTED "golden/data/qwen25_vl/nested/checkpoint"
#define FLAT   "golden/data/qwen25_vl/flat/checkpoint"

/* Without meaning for inference, whatever they hold. */
static const char *const inert[] = {
    "architectures",     "attention_dropout", "bos_token_id",      "dtype",
    "torch_dtype",       "eos_token_id",      "initializer_range", "max_position_embeddings",
    "max_window_layers", "pad_token_id",      "sliding_window",    "tokens_per_second",
    "use_cache",         "video_token_id",    "vision_token_id",   "transformers_version"};

/* May be absent: there is one value that is implemented, or a default of the reference classes. */
static const char *const optional[] = {
    "hidden_act",          "in_channels", "in_chans",  "layer_types",        "model_type", "spatial_patch_size",
    "tie_word_embeddings", "type",        "rope_type", "use_sliding_window", "text_config"};

static bool among(const char *key, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(key, list[i])) return true;
    return false;
}
#define AMONG(key, list) among(key, list, sizeof(list) / sizeof *(list))

static enum lk_code try_read(const cJSON *root) {
    struct lk_qwen25_vl_config config;
    struct lk_config *json;
    int64_t live = lk_alloc_live();
    char *text = cJSON_PrintUnformatted(root);
    enum lk_code rc = lk_config_parse(&json, text, strlen(text), "config.json");
    cJSON_free(text);
    if (!rc) rc = lk_qwen25_vl_config_read(&config, json);
    assert_int_equal(lk_alloc_live(), live);
    return rc;
}

static void expect_refused(const cJSON *root, const char *key, const char *what) {
    enum lk_code rc = try_read(root);
    if (lk_exit_code(rc) != 3 || !strstr(lk_error_text(), key) || !strstr(lk_error_text(), "config.json"))
        fail_msg("key \"%s\" %s: expected a refusal that names it, got code %d: %s", key, what, (int)rc,
                 rc ? lk_error_text() : "(no error)");
}

static cJSON *read_json(const char *folder) {
    char path[256];
    snprintf(path, sizeof path, "%s/config.json", folder);
    char *text = test_read(path, NULL);
    cJSON *root = cJSON_Parse(text);
    free(text);
    assert_non_null(root);
    return root;
}

static cJSON *member(cJSON *object, const char *key) { return cJSON_GetObjectItemCaseSensitive(object, key); }

/* The object at "a.b" in root, root itself for "". */
static cJSON *inside(cJSON *root, const char *where) {
    char path[64];
    snprintf(path, sizeof path, "%s", where);
    for (char *rest, *key = strtok_r(path, ".", &rest); key && root; key = strtok_r(NULL, ".", &rest))
        root = member(root, key);
    assert_non_null(root);
    return root;
}

static int n_cases;

static void vary_key(const char *folder, const char *where, const char *key) {
    cJSON *root = read_json(folder), *object = inside(root, where);
    bool is_text = cJSON_IsString(member(object, key));
    cJSON_ReplaceItemInObjectCaseSensitive(object, key, is_text ? cJSON_CreateNumber(7) : cJSON_CreateString("seven"));
    expect_refused(root, key, "of the wrong type");
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    if (AMONG(key, optional) || (!strncmp(where, "vision_config", 13) && strstr(key, "rope")))
        try_read(root); /* either answer is defined; it must not crash */
    else                /* without the older form of the rope settings the newer one is looked for */
        expect_refused(root, strcmp(key, "rope_scaling") ? key : "rope_parameters", "removed");
    n_cases += 2;
    cJSON_Delete(root);
}

static void vary_object(const char *folder, const char *where) {
    cJSON *root = read_json(folder), *object = inside(root, where);
    for (const cJSON *item = object->child; item; item = item->next) {
        if (AMONG(item->string, inert)) continue;
        vary_key(folder, where, item->string);
        char deeper[64];
        snprintf(deeper, sizeof deeper, "%s%s%s", where, *where ? "." : "", item->string);
        if (cJSON_IsObject(item)) vary_object(folder, deeper);
    }
    cJSON_AddNumberToObject(object, "novel_key", 1);
    expect_refused(root, "novel_key", "added");
    n_cases++;
    cJSON_Delete(root);
}

static void every_key_counts(void **state) {
    (void)state;
    vary_object(NESTED, "");
    vary_object(FLAT, "");
    print_message("%d variations\n", n_cases);
    assert_true(n_cases > 100);
}

static const struct {
    const char *where, *key, *json;
} wrong_values[] = {
    {"text_config", "num_attention_heads", "0"},
    {"text_config", "num_attention_heads", "-2"},
    {"text_config", "num_attention_heads", "3"},
    {"text_config", "num_attention_heads", "32"},
    {"text_config", "num_attention_heads", "1e9"},
    {"text_config", "num_key_value_heads", "0"},
    {"text_config", "num_key_value_heads", "4"},
    {"text_config", "num_key_value_heads", "null"},
    {"text_config", "num_hidden_layers", "0"},
    {"text_config", "num_hidden_layers", "2.5"},
    {"text_config", "vocab_size", "0"},
    {"text_config", "hidden_act", "\"gelu\""},
    {"text_config", "rms_norm_eps", "-1e-6"},
    {"text_config", "use_sliding_window", "true"},
    {"text_config", "layer_types", "[\"full_attention\", \"sliding_attention\", \"full_attention\"]"},
    {"text_config", "layer_types", "[\"full_attention\"]"},
    {"text_config", "layer_types", "[1, 2, 3]"},
    {"text_config.rope_parameters", "mrope_section", "[1, 3, 5]"},
    {"text_config.rope_parameters", "mrope_section", "[8]"},
    {"text_config.rope_parameters", "mrope_section", "[4, 4]"},
    {"text_config.rope_parameters", "mrope_section", "[1, 3, 3, 1]"},
    {"text_config.rope_parameters", "mrope_section", "[-1, 5, 4]"},
    {"text_config.rope_parameters", "mrope_section", "[9007199254740991, 9007199254740991, 10]"},
    {"text_config.rope_parameters", "mrope_section", "[]"},
    {"text_config.rope_parameters", "rope_type", "\"yarn\""},
    {"text_config.rope_parameters", "rope_theta", "0"},
    {"", "image_token_id", "210"},
    {"", "image_token_id", "-1"},
    {"", "vision_start_token_id", "1e15"},
    {"", "model_type", "\"qwen2_vl\""},
    {"vision_config", "depth", "0"},
    {"vision_config", "depth", "129"},
    {"vision_config", "num_heads", "0"},
    {"vision_config", "num_heads", "5"},
    {"vision_config", "num_heads", "4"}, /* heads of 6 */
    {"vision_config", "hidden_size", "0"},
    {"vision_config", "hidden_act", "\"quick_gelu\""},
    {"vision_config", "out_hidden_size", "33"},
    {"vision_config", "patch_size", "0"},
    {"vision_config", "patch_size", "[4, 4]"},
    {"vision_config", "temporal_patch_size", "0"},
    {"vision_config", "spatial_merge_size", "0"},
    {"vision_config", "spatial_merge_size", "-2"},
    {"vision_config", "window_size", "0"},
    {"vision_config", "window_size", "7"}, /* less than a merge block */
    {"vision_config", "fullatt_block_indexes", "[4]"},
    {"vision_config", "fullatt_block_indexes", "[2, -1]"},
    {"vision_config", "fullatt_block_indexes", "[1.5]"},
    {"vision_config", "fullatt_block_indexes", "2"},
    {"vision_config.rope_parameters", "rope_type", "\"default\""},
    {"vision_config.rope_parameters", "rope_theta", "5000"},
};

static void other_values_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof wrong_values / sizeof *wrong_values; i++) {
        cJSON *root = read_json(NESTED), *object = inside(root, wrong_values[i].where);
        assert_true(cJSON_ReplaceItemInObject(object, wrong_values[i].key, cJSON_Parse(wrong_values[i].json)));
        expect_refused(root, wrong_values[i].key, wrong_values[i].json);
        cJSON_Delete(root);
    }
    /* Keys of the released form that must agree with others. */
    cJSON *root = read_json(FLAT), *vision = member(root, "vision_config");
    cJSON_ReplaceItemInObject(vision, "in_chans", cJSON_CreateNumber(4));
    expect_refused(root, "in_chans", "unlike in_channels");
    cJSON_ReplaceItemInObject(vision, "in_chans", cJSON_CreateNumber(3));
    cJSON_ReplaceItemInObject(vision, "spatial_patch_size", cJSON_CreateNumber(3));
    expect_refused(root, "spatial_patch_size", "unlike patch_size");
    cJSON_ReplaceItemInObject(vision, "spatial_patch_size", cJSON_CreateNumber(2));
    assert_ok(try_read(root));
    cJSON_AddItemToObject(root, "rope_parameters", cJSON_Parse("{\"rope_theta\": 1}"));
    expect_refused(root, "rope_parameters", "beside rope_scaling");
    cJSON_Delete(root);
}

/* transformers 4.52 to 4.57 write the language model's keys twice: at the top and in "text_config", which counts. */
static void text_config_counts_before_the_top(void **state) {
    (void)state;
    cJSON *root = read_json(NESTED), *text = member(root, "text_config");
    for (const cJSON *item = text->child; item; item = item->next)
        if (!member(root, item->string)) cJSON_AddItemToObject(root, item->string, cJSON_Duplicate(item, true));
    cJSON_ReplaceItemInObject(root, "hidden_size", cJSON_CreateNumber(4));
    cJSON_AddNullToObject(text, "image_token_id");
    cJSON_AddNullToObject(text, "video_token_id");
    cJSON_AddNumberToObject(text, "vision_start_token_id", 9);
    cJSON_AddStringToObject(text, "torch_dtype", "bfloat16");
    cJSON_DeleteItemFromObject(root, "tie_word_embeddings");
    cJSON_AddTrueToObject(text, "tie_word_embeddings");
    struct lk_config *json;
    struct lk_qwen25_vl_config config;
    char *printed = cJSON_PrintUnformatted(root);
    assert_ok(lk_config_parse(&json, printed, strlen(printed), "config.json"));
    assert_ok(lk_qwen25_vl_config_read(&config, json));
    assert_int_equal(config.hidden_size, 32);
    assert_int_equal(config.vision_start_token_id, 204);
    assert_true(config.tie_word_embeddings);
    cJSON_free(printed);
    cJSON_Delete(root);
}

static struct lk_qwen25_vl_config read_config(const char *folder) {
    char path[256];
    struct lk_config *json;
    struct lk_qwen25_vl_config config;
    snprintf(path, sizeof path, "%s/config.json", folder);
    assert_ok(lk_config_open(&json, path));
    assert_ok(lk_qwen25_vl_config_read(&config, json));
    return config;
}

static enum lk_code try_bind(const char *folder, const struct lk_qwen25_vl_config *config, bool lm_head) {
    struct lk_qwen25_vl m;
    struct lk_checkpoint checkpoint;
    int64_t live = lk_alloc_live();
    assert_ok(lk_checkpoint_open(&checkpoint, folder, "model"));
    enum lk_code rc = lk_qwen25_vl_bind(&m, config, lm_head, &checkpoint, LK_BF16);
    if (!rc) lk_qwen25_vl_free(&m);
    lk_checkpoint_close(&checkpoint);
    assert_int_equal(lk_alloc_live(), live);
    return rc;
}

static void weights_must_fit_the_config(void **state) {
    (void)state;
    struct lk_qwen25_vl_config right = read_config(NESTED), c = right;
    assert_ok(try_bind(NESTED, &c, true));
    c.num_hidden_layers++;
    assert_fails(try_bind(NESTED, &c, true), LK_E_BIND, "model.language_model.layers.3.input_layernorm.weight");
    c = right;
    c.num_hidden_layers--;
    assert_fails(try_bind(NESTED, &c, true), LK_E_BIND, "not expected: model.language_model.layers.2.");
    c = right;
    c.vision.depth--;
    assert_fails(try_bind(NESTED, &c, true), LK_E_BIND, "not expected: model.visual.blocks.3.");
    c = right;
    c.vocab_size++;
    assert_fails(try_bind(NESTED, &c, true), LK_E_BIND, "embed_tokens.weight: expected");
    c = right;
    c.vision.temporal_patch_size = 1;
    assert_fails(try_bind(NESTED, &c, true), LK_E_BIND, "model.visual.patch_embed.proj.weight: expected");
    c = right;
    c.tie_word_embeddings = false;
    assert_fails(try_bind(NESTED, &c, true), LK_E_BIND, "1 missing: lm_head.weight");
    assert_ok(try_bind(NESTED, &c, false));
}

/* The flat checkpoint without the tensors whose names begin with `without`. */
static enum lk_code bind_without(const char *without) {
    struct lk_checkpoint checkpoint;
    struct lk_st_named kept[256];
    size_t n = 0;
    assert_ok(lk_checkpoint_open(&checkpoint, FLAT, "model"));
    for (size_t i = 0; i < checkpoint.n_tensors; i++) {
        const struct lk_st_tensor *t = checkpoint.tensors[i].tensor;
        if (!strncmp(t->name, without, strlen(without))) continue;
        kept[n].name = t->name;
        kept[n++].tensor = t->tensor;
    }
    assert_true(n > 0 && n < checkpoint.n_tensors);
    const char *folder = test_path("qwen25_vl_weights");
    mkdir(folder, 0777);
    char path[1100];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_ok(lk_safetensors_write(path, kept, n, NULL));
    lk_checkpoint_close(&checkpoint);
    struct lk_qwen25_vl_config config = read_config(FLAT);
    return try_bind(folder, &config, true);
}

static void missing_tensors_are_named(void **state) {
    (void)state;
    assert_fails(bind_without("model.layers.1.self_attn.k_proj.bias"), LK_E_BIND,
                 "1 missing: model.layers.1.self_attn.k_proj.bias");
    assert_fails(bind_without("visual.merger.mlp.2.weight"), LK_E_BIND, "1 missing: visual.merger.mlp.2.weight");
    assert_fails(bind_without("lm_head.weight"), LK_E_BIND, "1 missing: lm_head.weight");
    assert_fails(bind_without("model.embed_tokens.weight"), LK_E_BIND, "embed_tokens.weight");
    assert_fails(bind_without("visual."), LK_E_BIND, "patch_embed.proj.weight");
}

/* Config, weights and one image. */
static enum lk_code use_model(struct lk_device *dev, const struct lk_checkpoint *checkpoint, const float *rows) {
    struct lk_config *json;
    struct lk_qwen25_vl_config config;
    struct lk_qwen25_vl m;
    LK_TRY(lk_config_open(&json, FLAT "/config.json"));
    LK_TRY(lk_qwen25_vl_config_read(&config, json));
    LK_TRY(lk_qwen25_vl_bind(&m, &config, true, checkpoint, LK_BF16));
    struct lk_vlm_image image = {.grid_h = 4, .grid_w = 8, .rows = rows};
    struct lk_tensor features;
    size_t mark = lk_arena_mark(&dev->arena);
    enum lk_code rc = LK_NEW(&dev->arena, &features, LK_BF16, 8, 24);
    if (!rc) rc = lk_qwen25_vl_vision(dev, &m, &image, 0, &features);
    lk_arena_release(&dev->arena, mark);
    lk_qwen25_vl_free(&m);
    return rc;
}

static void failing_allocations_are_errors(void **state) {
    (void)state;
    static float rows[4 * 8 * 12];
    struct lk_device *dev;
    struct lk_checkpoint checkpoint;
    assert_ok(lk_device_cpu_create(1, &dev));
    assert_ok(lk_device_prepare(dev, 1 << 20));
    assert_ok(lk_checkpoint_open(&checkpoint, FLAT, "model"));
    int64_t live = lk_alloc_live(), before = lk_alloc_count();
    assert_ok(use_model(dev, &checkpoint, rows));
    int64_t total = lk_alloc_count() - before;
    assert_true(total > 20);
    for (int64_t n = 1; n <= total; n++) {
        lk_alloc_fail_at(n);
        enum lk_code rc = use_model(dev, &checkpoint, rows);
        lk_alloc_fail_at(0);
        if (rc != LK_E_NOMEM)
            fail_msg("allocation %lld of %lld: got %d: %s", (long long)n, (long long)total, (int)rc, lk_error_text());
        assert_int_equal(lk_alloc_live(), live);
    }
    lk_checkpoint_close(&checkpoint);
    lk_device_free(dev);
}

static void grids_that_do_not_merge_are_refused(void **state) {
    (void)state;
    static const int grids[][2] = {{0, 4}, {4, 0}, {-2, 4}, {3, 4}, {4, 5}, {1 << 20, 1 << 20}};
    struct lk_qwen25_vl_config config = read_config(FLAT);
    struct lk_qwen25_vl m;
    struct lk_device *dev;
    assert_ok(lk_qwen25_vl_bind(&m, &config, false, NULL, LK_F32));
    assert_ok(lk_device_cpu_create(1, &dev));
    struct lk_tensor features = LK_TENSOR(NULL, LK_F32, 4, 24);
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        struct lk_vlm_image image = {.grid_h = grids[i][0], .grid_w = grids[i][1]};
        assert_fails(lk_qwen25_vl_vision(dev, &m, &image, 3, &features), LK_E_INTERNAL, "image 3: a grid of");
    }
    lk_device_free(dev);
    lk_qwen25_vl_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_counts),
        cmocka_unit_test(other_values_are_refused),
        cmocka_unit_test(text_config_counts_before_the_top),
        cmocka_unit_test(weights_must_fit_the_config),
        cmocka_unit_test(missing_tensors_are_named),
        cmocka_unit_test(failing_allocations_are_errors),
        cmocka_unit_test(grids_that_do_not_merge_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
