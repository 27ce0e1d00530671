/* N2 and W7 for Step1X-Edit's transformer: each key of its config removed and mistyped in turn; values that make no
 * sense; whether there is a text_token_mapping; weights that are not what the config says; failing allocations. */
#include "tests/common/test.h"

#include <cjson/cJSON.h>

#include "engine/base/alloc.h"
#include "models/step1x/transformer.h"

#define RICH  "golden/data/step1x/rich/checkpoint/transformer"
#define PLAIN "golden/data/step1x/plain/checkpoint/transformer"
#define STEM  "diffusion_pytorch_model"

static cJSON *read_json(const char *folder) {
    char path[256];
    snprintf(path, sizeof path, "%s/config.json", folder);
    char *text = test_read(path, NULL);
    cJSON *root = cJSON_Parse(text);
    free(text);
    assert_non_null(root);
    return root;
}

static enum lk_code try_read(const cJSON *root, struct lk_step1x_transformer_config *config) {
    struct lk_config *json;
    int64_t live = lk_alloc_live();
    char *text = cJSON_PrintUnformatted(root);
    enum lk_code rc = lk_config_parse(&json, text, strlen(text), "config.json");
    cJSON_free(text);
    if (!rc) rc = lk_step1x_transformer_config_read(config, json);
    assert_int_equal(lk_alloc_live(), live);
    return rc;
}

static void expect_refused(const cJSON *root, const char *key, const char *what) {
    struct lk_step1x_transformer_config config;
    enum lk_code rc = try_read(root, &config);
    if (lk_exit_code(rc) != 3 || !strstr(lk_error_text(), key) || !strstr(lk_error_text(), "config.json"))
        fail_msg("key \"%s\" %s: expected a refusal that names it, got code %d: %s", key, what, (int)rc,
                 rc ? lk_error_text() : "(no error)");
}

/* May be absent: there is one value that is implemented, a default, or the checkpoint says it. */
static bool is_optional(const char *key) {
    static const char *const optional[] = {"_class_name",    "patch_size",      "out_channels",
                                           "vector_in_dim",  "guidance_embeds", "enable_text_token_mapping",
                                           "timestep_in_dim"};
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        if (!strcmp(key, optional[i])) return true;
    return false;
}

static void every_key_counts(void **state) {
    (void)state;
    cJSON *given = read_json(RICH);
    int n_keys = 0;
    for (const cJSON *item = given->child; item; item = item->next) {
        const char *key = item->string;
        struct lk_step1x_transformer_config config;
        if (!strcmp(key, "_diffusers_version")) continue;
        cJSON *root = read_json(RICH);
        bool is_text = cJSON_IsString(item);
        cJSON_ReplaceItemInObjectCaseSensitive(root, key,
                                               is_text ? cJSON_CreateNumber(7) : cJSON_CreateString("seven"));
        expect_refused(root, key, "of the wrong type");
        cJSON_DeleteItemFromObjectCaseSensitive(root, key);
        if (is_optional(key))
            assert_ok(try_read(root, &config));
        else
            expect_refused(root, key, "removed");
        cJSON_Delete(root);
        n_keys++;
    }
    assert_int_equal(n_keys, 18);
    cJSON_AddNumberToObject(given, "novel_key", 1);
    expect_refused(given, "novel_key", "added");
    cJSON_Delete(given);
}

static const struct {
    const char *key, *json;
} wrong_values[] = {
    {"_class_name", "\"FluxTransformer2DModel\""},
    {"patch_size", "2"},
    {"timestep_in_dim", "128"},
    {"vector_in_dim", "767"},
    {"guidance_embeds", "true"},
    {"in_channels", "0"},
    {"in_channels", "18"},
    {"in_channels", "2.5"},
    {"out_channels", "8"},
    {"num_layers", "-1"},
    {"num_single_layers", "1e9"},
    {"attention_head_dim", "0"},
    {"attention_head_dim", "16"},
    {"num_attention_heads", "0"},
    {"num_attention_heads", "1e30"},
    {"joint_attention_dim", "24"},
    {"connector_in_channels", "0"},
    {"connector_hidden_size", "0"},
    {"connector_hidden_size", "21"},
    {"connector_heads_num", "0"},
    {"connector_heads_num", "3"},
    {"connector_depth", "-1"},
    {"axes_dims_rope", "[10]"},
    {"axes_dims_rope", "[2, 2, 2, 4]"},
    {"axes_dims_rope", "[2, 3, 5]"},
    {"axes_dims_rope", "[0, 4, 6]"},
    {"axes_dims_rope", "[-2, 6, 6]"},
    {"axes_dims_rope", "[2, 2, 8]"},
    {"axes_dims_rope", "[2, 2, 1e300]"},
    {"axes_dims_rope", "[]"},
};

static void wrong_values_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof wrong_values / sizeof *wrong_values; i++) {
        cJSON *root = read_json(RICH);
        cJSON_DeleteItemFromObjectCaseSensitive(root, wrong_values[i].key);
        cJSON_AddItemToObject(root, wrong_values[i].key, cJSON_Parse(wrong_values[i].json));
        struct lk_step1x_transformer_config config;
        enum lk_code rc = try_read(root, &config);
        if (lk_exit_code(rc) != 3)
            fail_msg("%s = %s: expected a refusal, got code %d: %s", wrong_values[i].key, wrong_values[i].json, (int)rc,
                     rc ? lk_error_text() : "(no error)");
        cJSON_Delete(root);
    }
}

static void read_config(const char *folder, struct lk_step1x_transformer_config *config) {
    cJSON *root = read_json(folder);
    assert_ok(try_read(root, config));
    cJSON_Delete(root);
}

static enum lk_code bind(const char *folder, const struct lk_step1x_transformer_config *config,
                         struct lk_step1x_transformer *t) {
    struct lk_checkpoint checkpoint;
    LK_TRY(lk_checkpoint_open(&checkpoint, folder, STEM));
    enum lk_code rc = lk_step1x_transformer_bind(t, config, &checkpoint, LK_BF16);
    lk_checkpoint_close(&checkpoint);
    return rc;
}

/* The config decides where it speaks of the mapping; where it does not, the weights do. */
static void the_mapping_is_found(void **state) {
    (void)state;
    struct lk_step1x_transformer_config said, unsaid;
    struct lk_step1x_transformer t;
    read_config(RICH, &said);
    read_config(PLAIN, &unsaid);
    assert_true(said.has_enable_text_token_mapping && said.enable_text_token_mapping);
    assert_false(unsaid.has_enable_text_token_mapping || unsaid.enable_text_token_mapping);
    assert_ok(bind(PLAIN, &unsaid, &t));
    assert_true(t.config.enable_text_token_mapping);
    assert_int_equal(t.text_token_mapping.weight.shape[0], unsaid.connector_hidden_size);
    uint64_t parameters = t.totals.parameters;
    lk_step1x_transformer_free(&t);

    unsaid.has_enable_text_token_mapping = true; /* and says that there is none */
    assert_fails(bind(PLAIN, &unsaid, &t), LK_E_BIND, "text_token_mapping");
    assert_ok(lk_step1x_transformer_bind(&t, &unsaid, NULL, LK_BF16));
    uint64_t mapping = (uint64_t)(unsaid.connector_hidden_size * (unsaid.connector_in_channels + 1));
    assert_int_equal(t.totals.parameters + mapping, parameters);
    lk_step1x_transformer_free(&t);
}

/* The sizes of the released model: parameters, bytes and tensors with and without the mapping. */
static void released_sizes(void **state) {
    (void)state;
    static const char *const keys[] = {"in_channels",           "num_layers",          "num_single_layers",
                                       "attention_head_dim",    "num_attention_heads", "joint_attention_dim",
                                       "connector_in_channels", "connector_heads_num", "connector_hidden_size"};
    static const double values[] = {64, 19, 38, 128, 24, 4096, 3584, 32, 4096};
    cJSON *root = read_json(RICH);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        cJSON_ReplaceItemInObjectCaseSensitive(root, keys[i], cJSON_CreateNumber(values[i]));
    cJSON_ReplaceItemInObjectCaseSensitive(root, "out_channels", cJSON_CreateNull());
    cJSON_ReplaceItemInObjectCaseSensitive(root, "axes_dims_rope", cJSON_Parse("[16, 56, 56]"));
    struct lk_step1x_transformer_config config;
    struct lk_step1x_transformer t;
    assert_ok(try_read(root, &config));
    cJSON_Delete(root);
    assert_ok(lk_step1x_transformer_bind(&t, &config, NULL, LK_BF16));
    assert_int_equal(t.totals.n_tensors, 1198);
    assert_int_equal(t.totals.parameters, 12442484544);
    assert_int_equal(t.totals.weight_bytes, 24884969088);
    lk_step1x_transformer_free(&t);
    config.enable_text_token_mapping = false;
    assert_ok(lk_step1x_transformer_bind(&t, &config, NULL, LK_BF16));
    assert_int_equal(t.totals.n_tensors, 1196);
    assert_int_equal(t.totals.parameters, 12427800384);
    lk_step1x_transformer_free(&t);
}

static void weights_must_fit(void **state) {
    (void)state;
    struct lk_step1x_transformer_config config, given;
    struct lk_step1x_transformer t;
    int64_t live = lk_alloc_live();
    read_config(RICH, &given);
    config = given;
    config.num_layers++;
    assert_fails(bind(RICH, &config, &t), LK_E_BIND, "transformer_blocks.2");
    config = given;
    config.num_single_layers--;
    assert_fails(bind(RICH, &config, &t), LK_E_BIND, "single_transformer_blocks.1");
    config = given;
    config.connector_depth--;
    assert_fails(bind(RICH, &config, &t), LK_E_BIND, "individual_token_refiner.blocks.1");
    config = given;
    config.connector_in_channels++;
    assert_fails(bind(RICH, &config, &t), LK_E_BIND, "connector.S.input_embedder.weight");
    config = given;
    config.in_channels += 4;
    assert_fails(bind(RICH, &config, &t), LK_E_BIND, "x_embedder.weight");
    assert_int_equal(lk_alloc_live(), live);
}

/* Every allocation of a bind fails in turn: out of memory is said, nothing leaks. */
static void allocations_fail(void **state) {
    (void)state;
    struct lk_step1x_transformer_config config;
    struct lk_checkpoint checkpoint;
    struct lk_step1x_transformer t;
    int64_t before = lk_alloc_live(), n = 1;
    read_config(PLAIN, &config);
    assert_ok(lk_checkpoint_open(&checkpoint, PLAIN, STEM));
    int64_t live = lk_alloc_live();
    for (;; n++) {
        lk_alloc_fail_at(n);
        enum lk_code rc = lk_step1x_transformer_bind(&t, &config, &checkpoint, LK_BF16);
        lk_alloc_fail_at(0);
        if (!rc) break;
        assert_int_equal(rc, LK_E_NOMEM);
        assert_int_equal(lk_alloc_live(), live);
    }
    assert_true(n > 4);
    lk_step1x_transformer_free(&t);
    lk_checkpoint_close(&checkpoint);
    assert_int_equal(lk_alloc_live(), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_counts),     cmocka_unit_test(wrong_values_are_refused),
        cmocka_unit_test(the_mapping_is_found), cmocka_unit_test(released_sizes),
        cmocka_unit_test(weights_must_fit),     cmocka_unit_test(allocations_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
