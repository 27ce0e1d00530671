/* QwenImageTransformer2DModel: configuration and weights. */
#include "engine/base/alloc.h"
#include "models/common/rope_axes.h"
#include "models/qwen_edit/transformer.h"
#include "weights/quant/config.h"

#define TIME_EMBEDDING 256

/* Some files that were packed again have a tensor of this name in place of the config's zero_cond_t. */
static const char zero_cond_t_tensor[] = "__index_timestep_zero__";

static void derive(struct lk_config *json, struct lk_qwen_transformer_config *c) {
    if (c->in_channels != c->patch_size * c->patch_size * c->out_channels)
        lk_config_problem(json, "in_channels", LK_E_CONFIG_VALUE,
                          "expected patch_size^2 * out_channels = %lld: a sampler adds output to input, got %lld",
                          (long long)(c->patch_size * c->patch_size * c->out_channels), (long long)c->in_channels);
    c->dim = c->num_attention_heads * c->attention_head_dim;
}

enum lk_code lk_qwen_transformer_config_read(struct lk_qwen_transformer_config *out, struct lk_config *json) {
    struct lk_qwen_transformer_config c = {0};
    static const int released_axes[LK_QWEN_AXES] = {16, 56, 56};
    lk_config_expect_string(json, "_class_name", "QwenImageTransformer2DModel");
    lk_config_ignore(json, "_diffusers_version");
    lk_config_ignore(json, "_name_or_path");
    lk_quantization_config_read(json);
    lk_config_ignore(json, "pooled_projection_dim"); /* of older files; the class never looked at it */
    lk_config_expect_int(json, "patch_size", 2);
    c.patch_size = 2;
    lk_config_int(json, "in_channels", &c.in_channels, 4, 1 << 20);
    lk_config_int_or(json, "out_channels", &c.out_channels, 16, 1, 1 << 20);
    lk_config_int(json, "num_layers", &c.num_layers, 1, 1000);
    lk_config_int(json, "attention_head_dim", &c.attention_head_dim, 2, 512);
    lk_config_int(json, "num_attention_heads", &c.num_attention_heads, 1, 4096);
    lk_config_int(json, "joint_attention_dim", &c.joint_attention_dim, 1, 1 << 22);
    lk_read_rope_axes(json, c.axes_dims_rope, LK_QWEN_AXES, released_axes, c.attention_head_dim);
    lk_config_bool_or(json, "zero_cond_t", &c.zero_cond_t, false);
    lk_config_expect_bool(json, "guidance_embeds", false);
    lk_config_expect_bool(json, "use_additional_t_cond", false);
    lk_config_expect_bool(json, "use_layer3d_rope", false);
    derive(json, &c);
    *out = c;
    return lk_config_close(json);
}

static void bind_block(struct lk_bind *b, struct lk_mmdit_block *w, int i, const struct lk_qwen_transformer_config *c) {
    int64_t d = c->dim;
    const struct lk_layer_entry table[] = {
        {&w->img.mod, "img_mod.1", 6 * d, d},
        {&w->img.ff_in, "img_mlp.net.0.proj", 4 * d, d},
        {&w->img.ff_out, "img_mlp.net.2", d, 4 * d},
        {&w->txt.mod, "txt_mod.1", 6 * d, d},
        {&w->txt.ff_in, "txt_mlp.net.0.proj", 4 * d, d},
        {&w->txt.ff_out, "txt_mlp.net.2", d, 4 * d},
    };
    LK_BIND_LAYERS(b, table, true, "transformer_blocks", i);
    lk_mmdit_bind_attention(b, w, i, d, c->attention_head_dim, true);
}

const struct lk_rename lk_qwen_other_names[] = {
    {"transformer_blocks.%d.attn.to_out", "transformer_blocks.%d.attn.to_out.0", 0, 1, 1, false},
};
const size_t lk_qwen_n_other_names = sizeof lk_qwen_other_names / sizeof *lk_qwen_other_names;

const char *const lk_qwen_kept[] = {"time_text_embed", "img_in",   "txt_in",   "img_mod",
                                    "txt_mod",         "norm_out", "proj_out", NULL};

static void bind_all(struct lk_bind *b, struct lk_qwen_transformer *t) {
    const struct lk_qwen_transformer_config *c = &t->config;
    int64_t d = c->dim;
    const struct lk_layer_entry table[] = {
        {&t->timestep_embedder.linear_1, "time_text_embed.timestep_embedder.linear_1", d, TIME_EMBEDDING},
        {&t->timestep_embedder.linear_2, "time_text_embed.timestep_embedder.linear_2", d, d},
        {&t->img_in, "img_in", d, c->in_channels},
        {&t->txt_in, "txt_in", d, c->joint_attention_dim},
        {&t->norm_out, "norm_out.linear", 2 * d, d},
        {&t->proj_out, "proj_out", c->patch_size * c->patch_size * c->out_channels, d},
    };
    LK_BIND_LAYERS(b, table, true, "", 0);
    LK_BIND(b, &t->txt_norm, LK_SHAPE(c->joint_attention_dim), "txt_norm.weight");
    for (int i = 0; i < c->num_layers; i++) bind_block(b, &t->blocks[i], i, c);
    lk_bind_ignore(b, zero_cond_t_tensor);
}

enum lk_code lk_qwen_transformer_bind(struct lk_qwen_transformer *t, const struct lk_qwen_transformer_config *config,
                                      const struct lk_checkpoint *checkpoint, enum lk_dtype compute,
                                      enum lk_quantize quantize, struct lk_loras *loras) {
    *t = (struct lk_qwen_transformer){.config = *config};
    if (checkpoint && lk_checkpoint_find(checkpoint, zero_cond_t_tensor)) t->config.zero_cond_t = true;
    t->blocks = lk_calloc((size_t)config->num_layers, sizeof *t->blocks);
    enum lk_code rc = t->blocks ? LK_OK : lk_fail(LK_E_NOMEM, "transformer: out of memory");
    struct lk_bind *b;
    if (!rc) rc = lk_bind_begin(&b, checkpoint, "transformer", compute);
    if (!rc) {
        lk_bind_quantize(b, quantize, lk_qwen_kept);
        lk_bind_loras(b, loras, lk_qwen_other_names, lk_qwen_n_other_names);
        bind_all(b, t);
        rc = lk_bind_finish(b, &t->owned, &t->totals);
    }
    if (rc) lk_qwen_transformer_free(t);
    return rc;
}

void lk_qwen_transformer_free(struct lk_qwen_transformer *t) {
    lk_free(t->blocks);
    lk_free(t->owned);
    t->blocks = NULL;
    t->owned = NULL;
}
