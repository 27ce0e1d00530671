/* N2 for Qwen-Image's transformer: each key of its config removed and mistyped in turn, values that are not
 * implemented, the two ways in which a model says zero_cond_t, and rotary positions beyond the reference's tables. */
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "models/qwen_edit/transformer.h"
#include "tests/common/config_files.h"

#define SOURCE "golden/data/qwen_edit/edit2511/checkpoint/transformer"

static const char *const files[] = {"config.json", NULL};
/* Without meaning for inference, whatever they hold. */
static const char *const inert[] = {"_diffusers_version", "_name_or_path", "pooled_projection_dim", NULL};
/* May be absent: the default is that of the reference class. */
static const char *const optional[] = {"_class_name",           "patch_size",       "out_channels",
                                       "axes_dims_rope",        "guidance_embeds",  "zero_cond_t",
                                       "use_additional_t_cond", "use_layer3d_rope", NULL};

static char *source_text(void) { return test_read(SOURCE "/config.json", NULL); }

static enum lk_code read_text(const char *text, struct lk_qwen_transformer_config *out) {
    struct lk_config *json;
    LK_TRY(lk_config_parse(&json, text, strlen(text), "config.json"));
    return lk_qwen_transformer_config_read(out, json);
}

static enum lk_code try_open(const char *folder) {
    char path[1024];
    struct lk_config *json;
    struct lk_qwen_transformer_config config;
    snprintf(path, sizeof path, "%s/config.json", folder);
    LK_TRY(lk_config_open(&json, path));
    return lk_qwen_transformer_config_read(&config, json);
}

static void every_key_counts(void **state) {
    (void)state;
    test_copy_files("qwen_edit_configs", SOURCE, files);
    const struct test_keys keys = {.files = files, .inert = inert, .optional = optional, .open = try_open};
    assert_int_equal(test_every_key_counts(&keys), 2 * 13 + 1);
}

static void other_values_are_refused(void **state) {
    (void)state;
    static const struct test_change changes[] = {
        {"config.json", "guidance_embeds", "true", 0, NULL},
        {"config.json", "use_additional_t_cond", "true", 0, NULL},
        {"config.json", "use_layer3d_rope", "true", 0, NULL},
        {"config.json", "patch_size", "1", 0, NULL},
        {"config.json", "in_channels", "32", 0, NULL},
        {"config.json", "out_channels", "16", 0, NULL},
        {"config.json", "num_layers", "0", 0, NULL},
        {"config.json", "num_layers", "1e9", 0, NULL},
        {"config.json", "attention_head_dim", "13", 0, NULL},
        {"config.json", "num_attention_heads", "-3", 0, NULL},
        {"config.json", "num_attention_heads", "2.5", 0, NULL},
        {"config.json", "axes_dims_rope", "[4, 4]", 0, NULL},
        {"config.json", "axes_dims_rope", "[3, 3, 6]", 0, NULL},
        {"config.json", "axes_dims_rope", "[2, 4, 4]", 0, NULL},
        {"config.json", "axes_dims_rope", "[0, 6, 6]", 0, NULL},
        {"config.json", "axes_dims_rope", "[2, 2, 4, 4]", 0, NULL},
        {"config.json", "zero_cond_t", "1", 0, NULL},
        {"config.json", "_class_name", "\"FluxTransformer2DModel\"", 0, NULL},
    };
    test_copy_files("qwen_edit_configs", SOURCE, files);
    test_changes_are_refused(try_open, changes, sizeof changes / sizeof *changes);
}

/* Files of earlier models have keys that nothing looks at, and not all of today's. */
static void older_files_are_read(void **state) {
    (void)state;
    static const char text[] =
        "{\"_class_name\": \"QwenImageTransformer2DModel\", \"_diffusers_version\": \"0.34.0.dev0\", "
        "\"attention_head_dim\": 128, \"axes_dims_rope\": [16, 56, 56], \"guidance_embeds\": false, "
        "\"in_channels\": 64, \"joint_attention_dim\": 3584, \"num_attention_heads\": 24, \"num_layers\": 60, "
        "\"out_channels\": 16, \"patch_size\": 2, \"pooled_projection_dim\": 768}";
    struct lk_qwen_transformer_config config;
    assert_ok(read_text(text, &config));
    assert_int_equal(config.dim, 3072);
    assert_false(config.zero_cond_t);
}

/* The weights with one more tensor, without elements, that says zero_cond_t. */
static void mark_weights(const char *path) {
    size_t n;
    char *bytes = test_read(SOURCE "/diffusion_pytorch_model.safetensors", &n);
    uint64_t header;
    memcpy(&header, bytes, sizeof header);
    char added[160];
    int m = snprintf(added, sizeof added,
                     "{\"__index_timestep_zero__\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[%zu,%zu]},",
                     n - 8 - (size_t)header, n - 8 - (size_t)header);
    while ((header + (uint64_t)m - 1) % 8) added[m++] = ' ';
    char *marked = malloc(n + sizeof added);
    assert_non_null(marked);
    uint64_t longer = header + (uint64_t)m - 1;
    memcpy(marked, &longer, 8);
    memcpy(marked + 8, added, (size_t)m);
    memcpy(marked + 8 + m, bytes + 9, n - 9);
    test_write(path, marked, n + (size_t)m - 1);
    free(marked);
    free(bytes);
}

static bool bound_zero_cond_t(const char *folder, const struct lk_qwen_transformer_config *config) {
    struct lk_checkpoint checkpoint;
    struct lk_qwen_transformer t;
    assert_ok(lk_checkpoint_open(&checkpoint, folder, "diffusion_pytorch_model"));
    assert_ok(lk_qwen_transformer_bind(&t, config, &checkpoint, LK_BF16, LK_QUANTIZE_NONE, NULL));
    bool result = t.config.zero_cond_t;
    lk_qwen_transformer_free(&t);
    lk_checkpoint_close(&checkpoint);
    return result;
}

static void zero_cond_t_by_config_or_tensor(void **state) {
    (void)state;
    struct lk_qwen_transformer_config config;
    char *text = source_text();
    assert_ok(read_text(text, &config));
    free(text);
    assert_true(config.zero_cond_t);
    assert_true(bound_zero_cond_t(SOURCE, &config));
    config.zero_cond_t = false;
    assert_false(bound_zero_cond_t(SOURCE, &config));
    const char *folder = test_path("qwen_edit_marked");
    char path[1024];
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/diffusion_pytorch_model.safetensors", folder);
    mark_weights(path);
    assert_true(bound_zero_cond_t(folder, &config));
}

static void positions_beyond_the_tables_are_refused(void **state) {
    (void)state;
    const struct lk_qwen_transformer_config config = {.axes_dims_rope = {2, 2, 2}};
    struct lk_qwen_grid grids[2] = {{1, 3}, {2, 1}};
    size_t n = 3 * (4096 + 5);
    float *table = malloc(2 * n * sizeof *table);
    assert_non_null(table);
    assert_ok(lk_qwen_rope(&config, 4095, grids, 2, table, table + n));
    assert_fails(lk_qwen_rope(&config, 4096, grids, 2, table, table + n), LK_E_IMAGE_SIZE, "4096");
    int64_t live = lk_alloc_live();
    lk_alloc_fail_at(1);
    assert_fails(lk_qwen_rope(&config, 4, grids, 2, table, table + n), LK_E_NOMEM, "memory");
    assert_int_equal(lk_alloc_live(), live);
    free(table);
}

static void failing_allocations_of_bind_are_errors(void **state) {
    (void)state;
    struct lk_qwen_transformer_config config;
    struct lk_checkpoint checkpoint;
    struct lk_qwen_transformer t;
    char *text = source_text();
    assert_ok(read_text(text, &config));
    free(text);
    assert_ok(lk_checkpoint_open(&checkpoint, SOURCE, "diffusion_pytorch_model"));
    int64_t live = lk_alloc_live(), before = lk_alloc_count();
    assert_ok(lk_qwen_transformer_bind(&t, &config, &checkpoint, LK_F32, LK_QUANTIZE_NONE, NULL));
    lk_qwen_transformer_free(&t);
    int64_t total = lk_alloc_count() - before;
    for (int64_t n = 1; n <= total; n++) {
        lk_alloc_fail_at(n);
        enum lk_code rc = lk_qwen_transformer_bind(&t, &config, &checkpoint, LK_F32, LK_QUANTIZE_NONE, NULL);
        lk_alloc_fail_at(0);
        assert_int_equal(rc, LK_E_NOMEM);
        assert_int_equal(lk_alloc_live(), live);
    }
    lk_checkpoint_close(&checkpoint);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_counts),
        cmocka_unit_test(other_values_are_refused),
        cmocka_unit_test(older_files_are_read),
        cmocka_unit_test(zero_cond_t_by_config_or_tensor),
        cmocka_unit_test(positions_beyond_the_tables_are_refused),
        cmocka_unit_test(failing_allocations_of_bind_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
