/* N2 and W7 for Step1X-Edit's transformer: each key of its config removed and mistyped in turn; values that make no
 * sense; whether there is a text_token_mapping; weights that are not what the config says; failing allocations. */
#include "engine/base/alloc.h"
#include "models/step1x/transformer.h"
#include "tests/common/config_files.h"

#define RICH  "golden/data/step1x/rich/checkpoint/transformer"
#define PLAIN "golden/data/step1x/plain/checkpoint/transformer"
#define STEM  "diffusion_pytorch_model"

static const char *const files[] = {"config.json", NULL};
static const char *const inert[] = {"_diffusers_version", NULL};
/* There is one value that is implemented, a default, or the checkpoint says it. */
static const char *const optional[] = {
    "_class_name",     "patch_size", "out_channels", "vector_in_dim", "guidance_embeds", "enable_text_token_mapping",
    "timestep_in_dim", NULL};

static enum lk_code read_folder(const char *folder, struct lk_step1x_transformer_config *config) {
    char path[1024];
    struct lk_config *json;
    snprintf(path, sizeof path, "%s/config.json", folder);
    LK_TRY(lk_config_open(&json, path));
    return lk_step1x_transformer_config_read(config, json);
}

static enum lk_code try_open(const char *folder) {
    struct lk_step1x_transformer_config config;
    return read_folder(folder, &config);
}

static void every_key_counts(void **state) {
    (void)state;
    test_copy_files("step1x_configs", RICH, files);
    const struct test_keys keys = {files, inert, optional, .optional_open = true, .open = try_open};
    assert_int_equal(test_every_key_counts(&keys), 2 * 18 + 1);
}

static void wrong_values_are_refused(void **state) {
    (void)state;
    static const struct test_change changes[] = {
        {"config.json", "_class_name", "\"FluxTransformer2DModel\"", 0, NULL},
        {"config.json", "patch_size", "2", 0, NULL},
        {"config.json", "timestep_in_dim", "128", 0, NULL},
        {"config.json", "vector_in_dim", "767", 0, NULL},
        {"config.json", "guidance_embeds", "true", 0, NULL},
        {"config.json", "in_channels", "0", 0, NULL},
        {"config.json", "in_channels", "18", 0, NULL},
        {"config.json", "in_channels", "2.5", 0, NULL},
        {"config.json", "out_channels", "8", 0, NULL},
        {"config.json", "num_layers", "-1", 0, NULL},
        {"config.json", "num_single_layers", "1e9", 0, NULL},
        {"config.json", "attention_head_dim", "0", 0, NULL},
        {"config.json", "attention_head_dim", "16", 0, NULL},
        {"config.json", "num_attention_heads", "0", 0, NULL},
        {"config.json", "num_attention_heads", "1e30", 0, NULL},
        {"config.json", "joint_attention_dim", "24", 0, NULL},
        {"config.json", "connector_in_channels", "0", 0, NULL},
        {"config.json", "connector_hidden_size", "0", 0, NULL},
        {"config.json", "connector_hidden_size", "21", 0, NULL},
        {"config.json", "connector_heads_num", "0", 0, NULL},
        {"config.json", "connector_heads_num", "3", 0, NULL},
        {"config.json", "connector_depth", "-1", 0, NULL},
        {"config.json", "axes_dims_rope", "[10]", 0, NULL},
        {"config.json", "axes_dims_rope", "[2, 2, 2, 4]", 0, NULL},
        {"config.json", "axes_dims_rope", "[2, 3, 5]", 0, NULL},
        {"config.json", "axes_dims_rope", "[0, 4, 6]", 0, NULL},
        {"config.json", "axes_dims_rope", "[-2, 6, 6]", 0, NULL},
        {"config.json", "axes_dims_rope", "[2, 2, 8]", 0, NULL},
        {"config.json", "axes_dims_rope", "[2, 2, 1e300]", 0, NULL},
        {"config.json", "axes_dims_rope", "[]", 0, NULL},
    };
    test_copy_files("step1x_configs", RICH, files);
    test_changes_are_refused(try_open, changes, sizeof changes / sizeof *changes);
}

static enum lk_code bind(const char *folder, const struct lk_step1x_transformer_config *config,
                         struct lk_step1x_transformer *t) {
    struct lk_checkpoint checkpoint;
    LK_TRY(lk_checkpoint_open(&checkpoint, folder, STEM));
    enum lk_code rc = lk_step1x_transformer_bind(t, config, &checkpoint, LK_BF16, LK_QUANTIZE_NONE, NULL);
    lk_checkpoint_close(&checkpoint);
    return rc;
}

/* The config decides where it speaks of the mapping; where it does not, the weights do. */
static void the_mapping_is_found(void **state) {
    (void)state;
    struct lk_step1x_transformer_config said, unsaid;
    struct lk_step1x_transformer t;
    assert_ok(read_folder(RICH, &said));
    assert_ok(read_folder(PLAIN, &unsaid));
    assert_true(said.has_enable_text_token_mapping && said.enable_text_token_mapping);
    assert_false(unsaid.has_enable_text_token_mapping || unsaid.enable_text_token_mapping);
    assert_ok(bind(PLAIN, &unsaid, &t));
    assert_true(t.config.enable_text_token_mapping);
    assert_int_equal(t.text_token_mapping.weight.shape[0], unsaid.connector_hidden_size);
    uint64_t parameters = t.totals.parameters;
    lk_step1x_transformer_free(&t);

    unsaid.has_enable_text_token_mapping = true; /* and says that there is none */
    assert_fails(bind(PLAIN, &unsaid, &t), LK_E_BIND, "text_token_mapping");
    assert_ok(lk_step1x_transformer_bind(&t, &unsaid, NULL, LK_BF16, LK_QUANTIZE_NONE, NULL));
    uint64_t mapping = (uint64_t)(unsaid.connector_hidden_size * (unsaid.connector_in_channels + 1));
    assert_int_equal(t.totals.parameters + mapping, parameters);
    lk_step1x_transformer_free(&t);
}

/* The sizes of the released model: parameters, bytes and tensors with and without the mapping. */
static void released_sizes(void **state) {
    (void)state;
    static const char *const released[][2] = {{"in_channels", "64"},
                                              {"num_layers", "19"},
                                              {"num_single_layers", "38"},
                                              {"attention_head_dim", "128"},
                                              {"num_attention_heads", "24"},
                                              {"joint_attention_dim", "4096"},
                                              {"connector_in_channels", "3584"},
                                              {"connector_heads_num", "32"},
                                              {"connector_hidden_size", "4096"},
                                              {"out_channels", "null"},
                                              {"axes_dims_rope", "[16, 56, 56]"}};
    const char *folder = test_copy_files("step1x_configs", RICH, files);
    for (size_t i = 0; i < sizeof released / sizeof *released; i++)
        test_set_key("config.json", released[i][0], released[i][1]);
    struct lk_step1x_transformer_config config;
    struct lk_step1x_transformer t;
    assert_ok(read_folder(folder, &config));
    assert_ok(lk_step1x_transformer_bind(&t, &config, NULL, LK_BF16, LK_QUANTIZE_NONE, NULL));
    assert_int_equal(t.totals.n_tensors, 1198);
    assert_int_equal(t.totals.parameters, 12442484544);
    assert_int_equal(t.totals.weight_bytes, 24884969088);
    lk_step1x_transformer_free(&t);
    config.enable_text_token_mapping = false;
    assert_ok(lk_step1x_transformer_bind(&t, &config, NULL, LK_BF16, LK_QUANTIZE_NONE, NULL));
    assert_int_equal(t.totals.n_tensors, 1196);
    assert_int_equal(t.totals.parameters, 12427800384);
    lk_step1x_transformer_free(&t);
}

static void weights_must_fit(void **state) {
    (void)state;
    struct lk_step1x_transformer_config config, given;
    struct lk_step1x_transformer t;
    int64_t live = lk_alloc_live();
    assert_ok(read_folder(RICH, &given));
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
    assert_ok(read_folder(PLAIN, &config));
    assert_ok(lk_checkpoint_open(&checkpoint, PLAIN, STEM));
    int64_t live = lk_alloc_live();
    for (;; n++) {
        lk_alloc_fail_at(n);
        enum lk_code rc = lk_step1x_transformer_bind(&t, &config, &checkpoint, LK_BF16, LK_QUANTIZE_NONE, NULL);
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
