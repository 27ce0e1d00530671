/* Step1XEditTransformer2DModel: configuration and weights. */
#include "engine/base/alloc.h"
#include "models/common/rope_axes.h"
#include "models/step1x/transformer.h"
#include "weights/quant/config.h"

static void derive(struct lk_config *json, struct lk_step1x_transformer_config *c, int64_t joint_attention_dim) {
    if (c->connector_heads_num && c->connector_hidden_size % c->connector_heads_num)
        lk_config_problem(json, "connector_heads_num", LK_E_CONFIG_VALUE,
                          "expected a divisor of connector_hidden_size = %lld, got %lld",
                          (long long)c->connector_hidden_size, (long long)c->connector_heads_num);
    if (joint_attention_dim != c->connector_hidden_size)
        lk_config_problem(json, "joint_attention_dim", LK_E_CONFIG_VALUE,
                          "expected connector_hidden_size = %lld, got %lld", (long long)c->connector_hidden_size,
                          (long long)joint_attention_dim);
    if (c->in_channels % 4) lk_config_problem(json, "in_channels", LK_E_CONFIG_VALUE, "expected a multiple of 4");
    if (c->out_channels != c->in_channels)
        lk_config_problem(json, "out_channels", LK_E_CONFIG_VALUE,
                          "expected null or in_channels: a sampler adds output to input");
    c->dim = c->num_attention_heads * c->attention_head_dim;
}

enum lk_code lk_step1x_transformer_config_read(struct lk_step1x_transformer_config *out, struct lk_config *json) {
    struct lk_step1x_transformer_config c = {0};
    int64_t joint_attention_dim = 0;
    lk_config_expect_string(json, "_class_name", "Step1XEditTransformer2DModel");
    lk_config_ignore(json, "_diffusers_version");
    lk_config_ignore(json, "_name_or_path");
    lk_quantization_config_read(json);
    lk_config_expect_int(json, "patch_size", 1);
    lk_config_expect_int(json, "timestep_in_dim", LK_STEP1X_TIMESTEP_DIM);
    lk_config_expect_int(json, "vector_in_dim", LK_STEP1X_POOLED_DIM);
    lk_config_expect_bool(json, "guidance_embeds", false);
    lk_config_int(json, "in_channels", &c.in_channels, 4, 1 << 20);
    lk_config_int_or(json, "out_channels", &c.out_channels, c.in_channels, 1, 1 << 20);
    lk_config_int(json, "num_layers", &c.num_layers, 0, 1000);
    lk_config_int(json, "num_single_layers", &c.num_single_layers, 0, 1000);
    lk_config_int(json, "attention_head_dim", &c.attention_head_dim, 2, 512);
    lk_config_int(json, "num_attention_heads", &c.num_attention_heads, 1, 4096);
    lk_config_int(json, "joint_attention_dim", &joint_attention_dim, 1, 1 << 22);
    lk_config_int(json, "connector_in_channels", &c.connector_in_channels, 1, 1 << 22);
    lk_config_int(json, "connector_hidden_size", &c.connector_hidden_size, 1, 1 << 22);
    lk_config_int(json, "connector_heads_num", &c.connector_heads_num, 1, 4096);
    lk_config_int(json, "connector_depth", &c.connector_depth, 0, 1000);
    lk_read_rope_axes(json, c.axes_dims_rope, LK_STEP1X_AXES, NULL, c.attention_head_dim);
    c.has_enable_text_token_mapping = lk_config_has(json, "enable_text_token_mapping");
    lk_config_bool_or(json, "enable_text_token_mapping", &c.enable_text_token_mapping, false);
    derive(json, &c, joint_attention_dim);
    *out = c;
    return lk_config_close(json);
}

static void bind_connector(struct lk_bind *b, struct lk_step1x_connector *w,
                           const struct lk_step1x_transformer_config *c) {
    int64_t in = c->connector_in_channels, h = c->connector_hidden_size;
    const struct lk_layer_entry table[] = {
        {&w->global_proj_out, "connector.global_proj_out", LK_STEP1X_POOLED_DIM, in},
        {&w->input_embedder, "connector.S.input_embedder", h, in},
        {&w->t_embedder.linear_1, "connector.S.t_embedder.mlp.0", h, LK_STEP1X_TIMESTEP_DIM},
        {&w->t_embedder.linear_2, "connector.S.t_embedder.mlp.2", h, h},
        {&w->c_embedder.linear_1, "connector.S.c_embedder.linear_1", h, in},
        {&w->c_embedder.linear_2, "connector.S.c_embedder.linear_2", h, h},
    };
    LK_BIND_LAYERS(b, table, true, "", 0);
    for (int i = 0; i < c->connector_depth; i++) {
        struct lk_step1x_refiner_block *block = &w->blocks[i];
        const struct lk_layer_entry blocks[] = {
            {&block->norm1, "norm1", h, 0},
            {&block->norm2, "norm2", h, 0},
            {&block->self_attn_qkv, "self_attn_qkv", 3 * h, h},
            {&block->self_attn_proj, "self_attn_proj", h, h},
            {&block->mlp_fc1, "mlp.fc1", 4 * h, h},
            {&block->mlp_fc2, "mlp.fc2", h, 4 * h},
            {&block->adaln_modulation, "adaLN_modulation.1", 2 * h, h},
        };
        LK_BIND_LAYERS(b, blocks, true, "connector.S.individual_token_refiner.blocks", i);
    }
}

static void bind_double(struct lk_bind *b, struct lk_mmdit_block *w, int i,
                        const struct lk_step1x_transformer_config *c) {
    int64_t d = c->dim;
    const struct lk_layer_entry table[] = {
        {&w->img.mod, "norm1.linear", 6 * d, d},
        {&w->img.ff_in, "ff.net.0.proj", 4 * d, d},
        {&w->img.ff_out, "ff.net.2", d, 4 * d},
        {&w->txt.mod, "norm1_context.linear", 6 * d, d},
        {&w->txt.ff_in, "ff_context.net.0.proj", 4 * d, d},
        {&w->txt.ff_out, "ff_context.net.2", d, 4 * d},
    };
    LK_BIND_LAYERS(b, table, true, "transformer_blocks", i);
    lk_mmdit_bind_attention(b, w, i, d, c->attention_head_dim, true);
}

static void bind_single(struct lk_bind *b, struct lk_step1x_single_block *w, int i,
                        const struct lk_step1x_transformer_config *c) {
    int64_t d = c->dim, h = c->attention_head_dim;
    const struct lk_layer_entry table[] = {
        {&w->norm, "norm.linear", 3 * d, d}, {&w->to_q, "attn.to_q", d, d},        {&w->to_k, "attn.to_k", d, d},
        {&w->to_v, "attn.to_v", d, d},       {&w->proj_mlp, "proj_mlp", 4 * d, d}, {&w->proj_out, "proj_out", d, 5 * d},
    };
    LK_BIND_LAYERS(b, table, true, "single_transformer_blocks", i);
    LK_BIND(b, &w->norm_q, LK_SHAPE(h), "single_transformer_blocks.%d.attn.norm_q.weight", i);
    LK_BIND(b, &w->norm_k, LK_SHAPE(h), "single_transformer_blocks.%d.attn.norm_k.weight", i);
}

const char *const lk_step1x_kept[] = {"x_embedder",
                                      "context_embedder",
                                      "time_embed",
                                      "vec_embed",
                                      "text_token_mapping",
                                      "connector",
                                      "norm1",
                                      "norm1_context",
                                      "norm",
                                      "norm_out",
                                      NULL};

static void bind_all(struct lk_bind *b, struct lk_step1x_transformer *t) {
    const struct lk_step1x_transformer_config *c = &t->config;
    int64_t d = c->dim;
    const struct lk_layer_entry table[] = {
        {&t->x_embedder, "x_embedder", d, c->in_channels},
        {&t->context_embedder, "context_embedder", d, c->connector_hidden_size},
        {&t->time_embed.linear_1, "time_embed.in_layer", d, LK_STEP1X_TIMESTEP_DIM},
        {&t->time_embed.linear_2, "time_embed.out_layer", d, d},
        {&t->vec_embed.linear_1, "vec_embed.in_layer", d, LK_STEP1X_POOLED_DIM},
        {&t->vec_embed.linear_2, "vec_embed.out_layer", d, d},
        {&t->norm_out, "norm_out.linear", 2 * d, d},
        {&t->proj_out, "proj_out", c->out_channels, d},
    };
    LK_BIND_LAYERS(b, table, true, "", 0);
    if (c->enable_text_token_mapping) {
        const struct lk_layer_entry mapping[] = {
            {&t->text_token_mapping, "text_token_mapping", c->connector_hidden_size, c->connector_in_channels}};
        LK_BIND_LAYERS(b, mapping, true, "", 0);
    }
    bind_connector(b, &t->connector, c);
    for (int i = 0; i < c->num_layers; i++) bind_double(b, &t->double_blocks[i], i, c);
    for (int i = 0; i < c->num_single_layers; i++) bind_single(b, &t->single_blocks[i], i, c);
}

enum lk_code lk_step1x_transformer_bind(struct lk_step1x_transformer *t,
                                        const struct lk_step1x_transformer_config *config,
                                        const struct lk_checkpoint *checkpoint, enum lk_dtype compute,
                                        enum lk_quantize quantize, struct lk_loras *loras) {
    *t = (struct lk_step1x_transformer){.config = *config};
    if (!config->has_enable_text_token_mapping && checkpoint)
        t->config.enable_text_token_mapping = lk_checkpoint_find(checkpoint, "text_token_mapping.weight") != NULL;
    t->connector.blocks = lk_calloc((size_t)config->connector_depth + 1, sizeof *t->connector.blocks);
    t->double_blocks = lk_calloc((size_t)config->num_layers + 1, sizeof *t->double_blocks);
    t->single_blocks = lk_calloc((size_t)config->num_single_layers + 1, sizeof *t->single_blocks);
    enum lk_code rc = LK_OK;
    if (!t->connector.blocks || !t->double_blocks || !t->single_blocks)
        rc = lk_fail(LK_E_NOMEM, "transformer: out of memory");
    struct lk_bind *b;
    if (!rc) rc = lk_bind_begin(&b, checkpoint, "transformer", compute);
    if (!rc) {
        lk_bind_quantize(b, quantize, lk_step1x_kept);
        lk_bind_loras(b, loras, lk_step1x_other_names, lk_step1x_n_other_names);
        bind_all(b, t);
        rc = lk_bind_finish(b, &t->owned, &t->totals);
    }
    if (rc) lk_step1x_transformer_free(t);
    return rc;
}

void lk_step1x_transformer_free(struct lk_step1x_transformer *t) {
    lk_free(t->connector.blocks);
    lk_free(t->double_blocks);
    lk_free(t->single_blocks);
    lk_free(t->owned);
    t->connector.blocks = NULL;
    t->double_blocks = NULL;
    t->single_blocks = NULL;
    t->owned = NULL;
}
