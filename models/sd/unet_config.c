#include <string.h>

#include "models/sd/unet.h"

/* Known keys at the one value that is implemented, which is the class's default too where it is absent. */
static void expect_defaults(struct lk_config *json) {
    static const char *const nulls[] = {"class_embed_type",
                                        "cross_attention_norm",
                                        "encoder_hid_dim",
                                        "encoder_hid_dim_type",
                                        "num_attention_heads",
                                        "num_class_embeds",
                                        "time_cond_proj_dim",
                                        "time_embedding_act_fn",
                                        "time_embedding_dim",
                                        "timestep_post_act",
                                        "reverse_transformer_layers_per_block"};
    static const char *const off[] = {"center_input_sample", "resnet_skip_time_act", "dual_cross_attention",
                                      "only_cross_attention", "class_embeddings_concat"};
    static const char *const off_or_null[] = {"mid_block_only_cross_attention", "upcast_attention"};
    static const char *const inert[] = {"_diffusers_version", "_name_or_path", "addition_embed_type_num_heads",
                                        "dropout"};
    for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++) lk_config_expect_null(json, nulls[i]);
    for (size_t i = 0; i < sizeof off / sizeof *off; i++) lk_config_expect_bool(json, off[i], false);
    for (size_t i = 0; i < sizeof off_or_null / sizeof *off_or_null; i++) {
        if (lk_config_has(json, off_or_null[i])) lk_config_expect_bool(json, off_or_null[i], false);
        lk_config_ignore(json, off_or_null[i]);
    }
    for (size_t i = 0; i < sizeof inert / sizeof *inert; i++) lk_config_ignore(json, inert[i]);
    lk_config_expect_string(json, "_class_name", "UNet2DConditionModel");
    lk_config_expect_string(json, "act_fn", "silu");
    lk_config_expect_string(json, "mid_block_type", "UNetMidBlock2DCrossAttn");
    lk_config_expect_string(json, "time_embedding_type", "positional");
    lk_config_expect_string(json, "resnet_time_scale_shift", "default");
    lk_config_expect_string(json, "attention_type", "default");
    lk_config_expect_int(json, "downsample_padding", 1);
    lk_config_expect_int(json, "mid_block_scale_factor", 1);
    lk_config_expect_int(json, "resnet_out_scale_factor", 1);
    lk_config_expect_int(json, "conv_in_kernel", 3);
    lk_config_expect_int(json, "conv_out_kernel", 3);
    lk_config_expect_int(json, "freq_shift", 0);
    lk_config_expect_bool(json, "flip_sin_to_cos", true);
}

/* One number for all levels, or one each. */
static void read_levels(struct lk_config *json, const char *key, int n_levels, int64_t otherwise, int64_t *out) {
    size_t n = 0;
    if (lk_config_has(json, key)) {
        lk_config_int_or_ints(json, key, out, LK_UNET_MAX_LEVELS, &n);
        if (n > 1 && n != (size_t)n_levels)
            lk_config_problem(json, key, LK_E_CONFIG_VALUE, "expected one number or %d, as block_out_channels, got %zu",
                              n_levels, n);
    } else {
        lk_config_ignore(json, key);
        out[0] = otherwise;
    }
    for (int i = 1; n < 2 && i < n_levels; i++) out[i] = out[0];
}

static void read_types(struct lk_config *json, const char *key, const char *plain, const char *attends, int n_levels,
                       bool *out) {
    const char *types[LK_UNET_MAX_LEVELS];
    size_t n = 0;
    lk_config_strings(json, key, types, LK_UNET_MAX_LEVELS, &n);
    if (n != (size_t)n_levels)
        lk_config_problem(json, key, LK_E_CONFIG_VALUE, "expected %d entries, as block_out_channels, got %zu", n_levels,
                          n);
    for (size_t i = 0; i < n; i++) {
        out[i] = !strcmp(types[i], attends);
        if (!out[i] && strcmp(types[i], plain))
            lk_config_problem(json, key, LK_E_CONFIG_VALUE, "expected only \"%s\" and \"%s\", got \"%s\"", plain,
                              attends, types[i]);
    }
}

static void check_levels(struct lk_config *json, const struct lk_unet_config *c) {
    for (int i = 0; i < c->n_levels; i++) {
        const int64_t channels = c->block_out_channels[i];
        if (channels < 1 || channels > 1 << 16 || c->norm_num_groups < 1 || channels % c->norm_num_groups) {
            lk_config_problem(json, "block_out_channels", LK_E_CONFIG_VALUE,
                              "entry %d is %lld: expected a multiple of norm_num_groups", i, (long long)channels);
            continue;
        }
        const bool attends = c->attends_down[i] || c->attends_up[c->n_levels - 1 - i] || i + 1 == c->n_levels;
        if (c->n_heads[i] < 1 || (attends && (channels % c->n_heads[i] || channels / c->n_heads[i] > 512)))
            lk_config_problem(json, "attention_head_dim", LK_E_CONFIG_VALUE,
                              "entry %d is %lld, the number of heads: expected a divisor of %lld channels, heads of at "
                              "most 512",
                              i, (long long)c->n_heads[i], (long long)channels);
        if (c->depth[i] < 1 || c->depth[i] > LK_UNET_MAX_DEPTH)
            lk_config_problem(json, "transformer_layers_per_block", LK_E_CONFIG_VALUE,
                              "entry %d: expected 1 to %d, got %lld", i, LK_UNET_MAX_DEPTH, (long long)c->depth[i]);
    }
}

static void read_addition(struct lk_config *json, struct lk_unet_config *c) {
    int64_t width = 0;
    if (lk_config_has(json, "addition_embed_type")) {
        lk_config_expect_string(json, "addition_embed_type", "text_time");
        lk_config_int(json, "addition_time_embed_dim", &c->addition_time_embed_dim, 2, 1 << 16);
        lk_config_int(json, "projection_class_embeddings_input_dim", &width, 1, 1 << 20);
        c->pooled_dim = width - LK_UNET_SIZE_IDS * c->addition_time_embed_dim;
        if (c->addition_time_embed_dim % 2 || c->pooled_dim < 1)
            lk_config_problem(json, "projection_class_embeddings_input_dim", LK_E_CONFIG_VALUE,
                              "expected more than 6 x addition_time_embed_dim, an even number");
    } else {
        lk_config_expect_null(json, "addition_embed_type");
        lk_config_expect_null(json, "addition_time_embed_dim");
        lk_config_expect_null(json, "projection_class_embeddings_input_dim");
    }
}

enum lk_code lk_unet_config_read(struct lk_unet_config *out, struct lk_config *json) {
    struct lk_unet_config c = {0};
    size_t n_levels = 0;
    expect_defaults(json);
    lk_config_int(json, "in_channels", &c.in_channels, 1, 1024);
    if (c.in_channels && c.in_channels != 4)
        lk_config_problem(json, "in_channels", LK_E_CONFIG_VALUE,
                          "expected 4, got %lld: models for inpainting (9) and InstructPix2Pix (8) are not implemented",
                          (long long)c.in_channels);
    lk_config_int(json, "out_channels", &c.out_channels, 4, 4);
    lk_config_ints(json, "block_out_channels", c.block_out_channels, LK_UNET_MAX_LEVELS, &n_levels);
    c.n_levels = (int)n_levels;
    if (n_levels == 1)
        lk_config_problem(json, "block_out_channels", LK_E_CONFIG_VALUE, "expected 2 to %d levels", LK_UNET_MAX_LEVELS);
    lk_config_int_or(json, "layers_per_block", &c.layers_per_block, 2, 1, LK_UNET_MAX_RESNETS - 1);
    lk_config_int(json, "cross_attention_dim", &c.cross_attention_dim, 1, 1 << 16);
    lk_config_int_or(json, "norm_num_groups", &c.norm_num_groups, 32, 1, 1024);
    lk_config_int_or(json, "sample_size", &c.sample_size, 64, 1, 4096);
    lk_config_number_or(json, "norm_eps", &c.norm_eps, 1e-5, 0, 1);
    lk_config_bool_or(json, "use_linear_projection", &c.use_linear_projection, false);
    read_levels(json, "attention_head_dim", c.n_levels, 8, c.n_heads);
    read_levels(json, "transformer_layers_per_block", c.n_levels, 1, c.depth);
    read_types(json, "down_block_types", "DownBlock2D", "CrossAttnDownBlock2D", c.n_levels, c.attends_down);
    read_types(json, "up_block_types", "UpBlock2D", "CrossAttnUpBlock2D", c.n_levels, c.attends_up);
    check_levels(json, &c);
    read_addition(json, &c);
    *out = c;
    return lk_config_close(json);
}
