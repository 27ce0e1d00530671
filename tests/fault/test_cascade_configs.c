/* Each key of each config file of both repositories of Stable Cascade removed and mistyped in turn, one unknown key
 * added, and networks that do not fit each other. */
#include "models/pipeline.h"
#include "tests/common/config_files.h"

#define SOURCE  "golden/data/cascade/checkpoint"
#define PRIOR   "stable-cascade-prior/"
#define DECODER "stable-cascade/"

static const char *const files[] = {
    DECODER "model_index.json",       PRIOR "model_index.json",    DECODER "scheduler/scheduler_config.json",
    DECODER "decoder/config.json",    DECODER "vqgan/config.json", PRIOR "scheduler/scheduler_config.json",
    PRIOR "text_encoder/config.json", PRIOR "prior/config.json",   NULL};

/* Without meaning for inference, whatever they hold; a decoder's text encoder is looked at where it is. */
static const char *const inert[] = {"_diffusers_version",
                                    "architectures",
                                    "attention_dropout",
                                    "bos_token_id",
                                    "dropout",
                                    "dtype",
                                    "feature_extractor",
                                    "image_encoder",
                                    "initializer_factor",
                                    "initializer_range",
                                    "num_vq_embeddings",
                                    "pad_token_id",
                                    "tokenizer",
                                    "transformers_version",
                                    NULL};

/* May be absent: the default is that of the reference classes. */
static const char *const optional[] = {"resolution_multiple",
                                       "latent_dim_scale",
                                       "s",
                                       "scaler",
                                       "_class_name",
                                       "model_type",
                                       "bottleneck_blocks",
                                       "embed_dim",
                                       "in_channels",
                                       "latent_channels",
                                       "levels",
                                       "out_channels",
                                       "scale_factor",
                                       "up_down_scale_factor",
                                       "clip_image_in_channels",
                                       "clip_text_in_channels",
                                       "effnet_in_channels",
                                       "pixel_mapper_in_channels",
                                       "switch_level",
                                       "timestep_ratio_embedding_dim",
                                       "clip_seq",
                                       "kernel_size",
                                       "self_attn",
                                       "eos_token_id",
                                       "hidden_act",
                                       "hidden_size",
                                       "intermediate_size",
                                       "layer_norm_eps",
                                       "max_position_embeddings",
                                       "num_attention_heads",
                                       "num_hidden_layers",
                                       "projection_dim",
                                       "vocab_size",
                                       NULL};

static enum lk_code try_open(const char *folder) {
    struct lk_pipeline *p;
    enum lk_code rc = lk_pipeline_open_configs(&p, folder, LK_BF16);
    if (!rc) lk_pipeline_close(p);
    return rc;
}

static void every_key_counts(void **state) {
    (void)state;
    test_copy_files("cascade_configs", SOURCE, files);
    const struct test_keys keys = {.files = files, .inert = inert, .optional = optional, .open = try_open};
    assert_int_equal(test_every_key_counts(&keys), 174);
}

static void other_values_are_refused(void **state) {
    (void)state;
    static const char prior[] = PRIOR "prior/config.json", decoder[] = DECODER "decoder/config.json";
    static const struct test_change changes[] = {
        {prior, "clip_text_in_channels", "48", 0, "clip_text_in_channels: expected 40"},
        {prior, "clip_text_pooled_in_channels", "32", 0, "clip_text_pooled_in_channels: expected 24"},
        {prior, "in_channels", "4", 0, NULL},
        {prior, "patch_size", "2", 0, "patch_size: expected 1 as a prior has, got 2"},
        {prior, "switch_level", "null", 0, NULL},
        {decoder, "clip_text_pooled_in_channels", "32", 0, "clip_text_pooled_in_channels: expected 24"},
        {decoder, "effnet_in_channels", "8", 0, "effnet_in_channels: expected 16"},
        {decoder, "effnet_in_channels", "null", 0, "effnet_in_channels: expected 16"},
        {decoder, "out_channels", "8", 0, "in_channels: expected 8"},
        {decoder, "switch_level", "[false]", 0, NULL},
        {DECODER "vqgan/config.json", "latent_channels", "3", 0, "latent_channels: expected 4"},
        {PRIOR "scheduler/scheduler_config.json", "s", "0.01", 0, NULL},
        {PRIOR "scheduler/scheduler_config.json", "_class_name", "\"DDPMScheduler\"", 0, NULL},
        {DECODER "scheduler/scheduler_config.json", "scaler", "2", 0, NULL},
        {DECODER "model_index.json", "vqgan", "[\"diffusers\", \"AutoencoderKL\"]", 0, "expected class PaellaVQModel"},
        {DECODER "model_index.json", "latent_dim_scale", "10", 0, NULL},
        {PRIOR "model_index.json", "prior", "[\"diffusers\", \"WuerstchenPrior\"]", 0,
         "expected class StableCascadeUNet, got WuerstchenPrior"},
        {PRIOR "text_encoder/config.json", "projection_dim", "48", 0,
         "prior/config.json: clip_text_pooled_in_channels"},
    };
    test_copy_files("cascade_configs", SOURCE, files);
    test_changes_are_refused(try_open, changes, sizeof changes / sizeof *changes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_key_counts), cmocka_unit_test(other_values_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
