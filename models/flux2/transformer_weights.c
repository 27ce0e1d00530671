/* Flux2Transformer2DModel: configuration and weights. */
#include "engine/base/alloc.h"
#include "models/common/rope_axes.h"
#include "models/flux2/transformer.h"
#include "weights/quant/config.h"

static void derive(struct lk_config *json, struct lk_flux2_transformer_config *c) {
    if (c->timestep_guidance_channels % 2)
        lk_config_problem(json, "timestep_guidance_channels", LK_E_CONFIG_VALUE, "expected an even number");
    if (c->in_channels % 4) lk_config_problem(json, "in_channels", LK_E_CONFIG_VALUE, "expected a multiple of 4");
    c->dim = c->num_attention_heads * c->attention_head_dim;
    c->mlp_dim = (int64_t)((double)c->dim * c->mlp_ratio);
    if (c->mlp_dim < 1) lk_config_problem(json, "mlp_ratio", LK_E_CONFIG_VALUE, "gives an MLP of no width");
}

enum lk_code lk_flux2_transformer_config_read(struct lk_flux2_transformer_config *out, struct lk_config *json) {
    struct lk_flux2_transformer_config c = {0};
    lk_config_expect_string(json, "_class_name", "Flux2Transformer2DModel");
    lk_config_ignore(json, "_diffusers_version");
    lk_config_ignore(json, "_name_or_path");
    lk_quantization_config_read(json);
    lk_config_expect_int(json, "patch_size", 1);
    lk_config_int(json, "in_channels", &c.in_channels, 4, 1 << 20);
    lk_config_int_or(json, "out_channels", &c.out_channels, c.in_channels, 1, 1 << 20);
    lk_config_int(json, "num_layers", &c.num_layers, 0, 1000);
    lk_config_int(json, "num_single_layers", &c.num_single_layers, 0, 1000);
    lk_config_int(json, "attention_head_dim", &c.attention_head_dim, 2, 512);
    lk_config_int(json, "num_attention_heads", &c.num_attention_heads, 1, 4096);
    lk_config_int(json, "joint_attention_dim", &c.joint_attention_dim, 1, 1 << 22);
    lk_config_int_or(json, "timestep_guidance_channels", &c.timestep_guidance_channels, 256, 2, LK_FLUX2_MAX_EMBEDDING);
    lk_read_rope_axes(json, c.axes_dims_rope, LK_FLUX2_AXES, NULL, c.attention_head_dim);
    lk_config_number_or(json, "mlp_ratio", &c.mlp_ratio, 3.0, 0.01, 64);
    lk_config_number_or(json, "rope_theta", &c.rope_theta, 2000, 1, 1e12);
    lk_config_number_or(json, "eps", &c.eps, 1e-6, 0, 1);
    lk_config_bool_or(json, "guidance_embeds", &c.guidance_embeds, true);
    derive(json, &c);
    if (c.out_channels != c.in_channels)
        lk_config_problem(json, "out_channels", LK_E_CONFIG_VALUE,
                          "expected null or in_channels: a sampler adds output to input");
    *out = c;
    return lk_config_close(json);
}

static void bind_double(struct lk_bind *b, struct lk_mmdit_block *w, int i,
                        const struct lk_flux2_transformer_config *c) {
    int64_t d = c->dim, m = c->mlp_dim;
    const struct lk_layer_entry table[] = {
        {&w->img.ff_in, "ff.linear_in", 2 * m, d},
        {&w->img.ff_out, "ff.linear_out", d, m},
        {&w->txt.ff_in, "ff_context.linear_in", 2 * m, d},
        {&w->txt.ff_out, "ff_context.linear_out", d, m},
    };
    lk_mmdit_bind_attention(b, w, i, d, c->attention_head_dim, false);
    LK_BIND_LAYERS(b, table, false, "transformer_blocks", i);
}

static void bind_single(struct lk_bind *b, struct lk_flux2_single_block *w, int i,
                        const struct lk_flux2_transformer_config *c) {
    int64_t d = c->dim, m = c->mlp_dim, h = c->attention_head_dim;
    const struct lk_layer_entry table[] = {
        {&w->to_qkv_mlp_proj, "attn.to_qkv_mlp_proj", 3 * d + 2 * m, d},
        {&w->to_out, "attn.to_out", d, d + m},
    };
    LK_BIND_LAYERS(b, table, false, "single_transformer_blocks", i);
    LK_BIND(b, &w->norm_q, LK_SHAPE(h), "single_transformer_blocks.%d.attn.norm_q.weight", i);
    LK_BIND(b, &w->norm_k, LK_SHAPE(h), "single_transformer_blocks.%d.attn.norm_k.weight", i);
}

const char *const lk_flux2_kept[] = {"x_embedder",
                                     "context_embedder",
                                     "time_guidance_embed",
                                     "double_stream_modulation_img",
                                     "double_stream_modulation_txt",
                                     "single_stream_modulation",
                                     "norm_out",
                                     "proj_out",
                                     NULL};

static void bind_all(struct lk_bind *b, struct lk_flux2_transformer *t) {
    const struct lk_flux2_transformer_config *c = &t->config;
    int64_t d = c->dim, e = c->timestep_guidance_channels;
    const struct lk_layer_entry table[] = {
        {&t->x_embedder, "x_embedder", d, c->in_channels},
        {&t->context_embedder, "context_embedder", d, c->joint_attention_dim},
        {&t->timestep_embedder.linear_1, "time_guidance_embed.timestep_embedder.linear_1", d, e},
        {&t->timestep_embedder.linear_2, "time_guidance_embed.timestep_embedder.linear_2", d, d},
        {&t->double_stream_modulation_img, "double_stream_modulation_img.linear", 6 * d, d},
        {&t->double_stream_modulation_txt, "double_stream_modulation_txt.linear", 6 * d, d},
        {&t->single_stream_modulation, "single_stream_modulation.linear", 3 * d, d},
        {&t->norm_out, "norm_out.linear", 2 * d, d},
        {&t->proj_out, "proj_out", c->out_channels, d},
    };
    LK_BIND_LAYERS(b, table, false, "", 0);
    if (c->guidance_embeds) {
        const struct lk_layer_entry guidance[] = {
            {&t->guidance_embedder.linear_1, "time_guidance_embed.guidance_embedder.linear_1", d, e},
            {&t->guidance_embedder.linear_2, "time_guidance_embed.guidance_embedder.linear_2", d, d},
        };
        LK_BIND_LAYERS(b, guidance, false, "", 0);
    }
    for (int i = 0; i < c->num_layers; i++) bind_double(b, &t->double_blocks[i], i, c);
    for (int i = 0; i < c->num_single_layers; i++) bind_single(b, &t->single_blocks[i], i, c);
}

enum lk_code lk_flux2_transformer_bind(struct lk_flux2_transformer *t, const struct lk_flux2_transformer_config *config,
                                       const struct lk_checkpoint *checkpoint, enum lk_dtype compute,
                                       enum lk_quantize quantize, struct lk_loras *loras) {
    *t = (struct lk_flux2_transformer){.config = *config};
    t->double_blocks = lk_calloc((size_t)config->num_layers + 1, sizeof *t->double_blocks);
    t->single_blocks = lk_calloc((size_t)config->num_single_layers + 1, sizeof *t->single_blocks);
    enum lk_code rc = t->double_blocks && t->single_blocks ? LK_OK : lk_fail(LK_E_NOMEM, "transformer: out of memory");
    struct lk_bind *b;
    if (!rc) rc = lk_bind_begin(&b, checkpoint, "transformer", compute);
    if (!rc) {
        lk_bind_quantize(b, quantize, lk_flux2_kept);
        lk_bind_loras(b, loras, lk_flux2_other_names, lk_flux2_n_other_names);
        bind_all(b, t);
        rc = lk_bind_finish(b, &t->owned, &t->totals);
    }
    if (rc) lk_flux2_transformer_free(t);
    return rc;
}

void lk_flux2_transformer_free(struct lk_flux2_transformer *t) {
    lk_free(t->double_blocks);
    lk_free(t->single_blocks);
    lk_free(t->owned);
    t->double_blocks = NULL;
    t->single_blocks = NULL;
    t->owned = NULL;
}
