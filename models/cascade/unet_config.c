#include <string.h>

#include "models/cascade/unet.h"

static void ints(struct lk_config *json, const char *key, int64_t *out, int n_levels) {
    size_t n = 0;
    lk_config_ints(json, key, out, LK_CASCADE_MAX_LEVELS, &n);
    if (n && (int)n != n_levels)
        lk_config_problem(json, key, LK_E_CONFIG_VALUE, "expected %d numbers, one a level, got %zu", n_levels, n);
}

/* Residual and timestep blocks in every level, attention where it is listed: elsewhere heads mean nothing. */
static void read_types(struct lk_config *json, struct lk_cascade_config *c) {
    static const char *const known[] = {"SDCascadeResBlock", "SDCascadeTimestepBlock", "SDCascadeAttnBlock"};
    const char *key = "block_types_per_layer", *types[3];
    for (int i = 0; i < c->n_levels; i++) {
        size_t n = 0;
        lk_config_string_list(json, key, (size_t)i, types, 3, &n);
        bool alike = n >= 2;
        for (size_t k = 0; k < n && alike; k++) alike = !strcmp(types[k], known[k]);
        if (!alike || (n == 3 && !c->n_heads[i]))
            lk_config_problem(json, key, LK_E_CONFIG_VALUE,
                              "level %d: expected SDCascadeResBlock, SDCascadeTimestepBlock and, where "
                              "num_attention_heads is not 0, SDCascadeAttnBlock",
                              i);
        if (n < 3) c->n_heads[i] = 0;
    }
}

static void read_conditions(struct lk_config *json, struct lk_cascade_config *c) {
    const char *conds[3];
    size_t n = 0;
    lk_config_strings(json, "timestep_conditioning_type", conds, 3, &n);
    c->n_conds = (int)n;
    if (n && (n > 2 || strcmp(conds[0], "sca") || (n == 2 && strcmp(conds[1], "crp"))))
        lk_config_problem(json, "timestep_conditioning_type", LK_E_CONFIG_VALUE,
                          "expected [\"sca\"] or [\"sca\", \"crp\"]");
}

static int64_t optional(struct lk_config *json, const char *key) {
    int64_t value = 0;
    lk_config_int_or(json, key, &value, 0, 1, 1 << 16);
    return value;
}

static void read_levels(struct lk_config *json, struct lk_cascade_config *c) {
    int64_t once[LK_CASCADE_MAX_LEVELS] = {1, 1, 1, 1};
    size_t n = 0;
    lk_config_ints(json, "block_out_channels", c->channels, LK_CASCADE_MAX_LEVELS, &n);
    c->n_levels = (int)n;
    ints(json, "num_attention_heads", c->n_heads, c->n_levels);
    ints(json, "down_num_layers_per_block", c->down_layers, c->n_levels);
    ints(json, "up_num_layers_per_block", c->up_layers, c->n_levels);
    ints(json, "up_blocks_repeat_mappers", c->up_repeats, c->n_levels);
    ints(json, "down_blocks_repeat_mappers", once, c->n_levels);
    for (int i = 0; i < c->n_levels; i++) {
        if (once[i] != 1)
            lk_config_problem(json, "down_blocks_repeat_mappers", LK_E_CONFIG_VALUE,
                              "expected 1 in every level: no other is implemented");
        if (c->channels[i] < 1 || c->channels[i] > 1 << 16 || c->n_heads[i] < 0 ||
            (c->n_heads[i] && c->channels[i] % c->n_heads[i]))
            lk_config_problem(json, "num_attention_heads", LK_E_CONFIG_VALUE,
                              "expected heads that divide the channels");
        if (c->down_layers[i] < 1 || c->down_layers[i] > 100 || c->up_layers[i] < 1 || c->up_layers[i] > 100)
            lk_config_problem(json, "up_num_layers_per_block", LK_E_CONFIG_VALUE, "expected 1 to 100 layers");
        if (c->up_repeats[i] < 1 || c->up_repeats[i] > LK_CASCADE_MAX_REPEATS)
            lk_config_problem(json, "up_blocks_repeat_mappers", LK_E_CONFIG_VALUE, "expected 1 to %d",
                              LK_CASCADE_MAX_REPEATS);
    }
}

enum lk_code lk_cascade_config_read(struct lk_cascade_config *out, struct lk_config *json) {
    struct lk_cascade_config c = {0};
    bool switches[LK_CASCADE_MAX_LEVELS];
    size_t n = 0;
    lk_config_expect_string(json, "_class_name", "StableCascadeUNet");
    lk_config_ignore(json, "_diffusers_version");
    lk_config_ignore(json, "dropout");
    lk_config_int(json, "in_channels", &c.in_channels, 1, 1 << 10);
    lk_config_int(json, "out_channels", &c.out_channels, 1, 1 << 10);
    lk_config_int(json, "patch_size", &c.patch_size, 1, 2);
    lk_config_int(json, "conditioning_dim", &c.conditioning_dim, 1, 1 << 16);
    lk_config_expect_int(json, "timestep_ratio_embedding_dim", LK_CASCADE_TIME);
    lk_config_expect_int(json, "clip_seq", LK_CASCADE_CLIP_SEQ);
    lk_config_expect_int(json, "kernel_size", 3);
    lk_config_expect_bool(json, "self_attn", true);
    read_levels(json, &c);
    read_types(json, &c);
    read_conditions(json, &c);
    c.text_dim = optional(json, "clip_text_in_channels");
    lk_config_int(json, "clip_text_pooled_in_channels", &c.pooled_dim, 1, 1 << 16);
    c.image_dim = optional(json, "clip_image_in_channels");
    c.effnet_dim = optional(json, "effnet_in_channels");
    c.pixels_dim = optional(json, "pixel_mapper_in_channels");
    if (lk_config_has(json, "switch_level")) {
        lk_config_bools(json, "switch_level", switches, LK_CASCADE_MAX_LEVELS, &n);
        c.keeps_size = true;
        for (size_t i = 0; i < n; i++)
            if (switches[i])
                lk_config_problem(json, "switch_level", LK_E_CONFIG_VALUE,
                                  "expected false: levels of other sizes are not implemented");
    } else {
        lk_config_ignore(json, "switch_level");
    }
    if (!c.text_dim != !c.image_dim)
        lk_config_problem(json, "clip_image_in_channels", LK_E_CONFIG_VALUE,
                          "expected with clip_text_in_channels, and not without");
    *out = c;
    return lk_config_close(json);
}
