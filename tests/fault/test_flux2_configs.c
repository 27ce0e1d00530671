/* N2: each key of each config file of a FLUX.2 model removed and mistyped in turn, and one unknown key added. Nothing
 * is ignored but what inference does not look at, and that is listed here. */
#include "models/pipeline.h"
#include "tests/common/config_files.h"

#define SOURCE "golden/data/flux2/rich/checkpoint"

static const char *const files[] = {"model_index.json",         "scheduler/scheduler_config.json",
                                    "text_encoder/config.json", "transformer/config.json",
                                    "vae/config.json",          NULL};

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
                                    "force_upcast",
                                    NULL};

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
                                       "up_block_types",
                                       NULL};

static enum lk_code try_open(const char *folder) {
    struct lk_pipeline *p;
    enum lk_code rc = lk_pipeline_open_configs(&p, folder, LK_BF16);
    if (!rc) lk_pipeline_close(p);
    return rc;
}

static void every_key_counts(void **state) {
    (void)state;
    test_copy_files("flux2_configs", SOURCE, files);
    const struct test_keys keys = {.files = files, .inert = inert, .optional = optional, .open = try_open};
    assert_int_equal(test_every_key_counts(&keys), 138);
}

static void other_values_are_refused(void **state) {
    (void)state;
    static const char config[] = "transformer/config.json";
    static const struct test_change changes[] = {
        {config, "num_attention_heads", "0", 0, NULL},
        {config, "num_attention_heads", "-3", 0, NULL},
        {config, "num_attention_heads", "3.5", 0, NULL},
        {config, "num_attention_heads", "1e9", 0, NULL},
        {config, "axes_dims_rope", "[8, 8, 8]", 0, NULL},
        {config, "axes_dims_rope", "[8, 8, 8, 9]", 0, NULL},
        {config, "axes_dims_rope", "[8]", 0, NULL},
        {config, "out_channels", "32", 0, NULL},
        {config, "patch_size", "2", 0, NULL},
        {config, "mlp_ratio", "0", 0, NULL},
        {config, "timestep_guidance_channels", "3", 0, NULL},
        {config, "in_channels", "18", 0, NULL},
        {"vae/config.json", "block_out_channels", "[8, 8, 8, 576]", 0, "expected at most 512"},
    };
    test_copy_files("flux2_configs", SOURCE, files);
    test_changes_are_refused(try_open, changes, sizeof changes / sizeof *changes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_counts),
        cmocka_unit_test(other_values_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
