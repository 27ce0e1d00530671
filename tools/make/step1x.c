/* A Step1X-Edit-v1p2 checkpoint of any size. */
#include <stdio.h>
#include <string.h>

#include "tools/make/family.h"

struct make_step1x {
    int n_double, n_single, head_dim, n_heads, axes[3];
    int connector_hidden, connector_heads, connector_depth;
    struct make_autoencoder_kl vae;
    struct make_qwen25_vl text;
};

static enum lk_code choose(void *size, const char *preset, bool released_vae) {
    static const struct make_step1x tiny = {
        2, 2, 32, 4, {8, 12, 12}, 64, 4, 1, {4, {8, 16, 16, 16}, 2, 4, false, false}, {0}};
    static const struct make_step1x small = {
        3, 6, 64, 8, {16, 24, 24}, 256, 8, 2, {16, {32, 64, 128, 128}, 2, 8, false, false}, {0}};
    static const struct make_step1x wide = {
        1, 2, 128, 24, {16, 56, 56}, 4096, 32, 1, {16, {8, 16, 16, 16}, 2, 4, false, false}, {0}};
    struct make_step1x *out = size;
    *out = !strcmp(preset, "tiny") ? tiny : !strcmp(preset, "small") ? small : wide;
    make_qwen25_vl_choose(&out->text, preset);
    if (!released_vae) return LK_OK;
    if (out->vae.latent_channels != 16)
        return lk_fail(LK_E_USAGE, "--released-vae: needs 16 latent channels: preset small or wide");
    out->vae = (struct make_autoencoder_kl){16, {128, 256, 512, 512}, 2, 32, false, false};
    return LK_OK;
}

static cJSON *model_index(const void *size) {
    (void)size;
    return cJSON_Parse("{\"_class_name\":\"Step1XEditPipelineV1P2\",\"_diffusers_version\":\"0.36.0.dev0\","
                       "\"processor\":[\"transformers\",\"Qwen2_5_VLProcessor\"],"
                       "\"scheduler\":[\"diffusers\",\"FlowMatchEulerDiscreteScheduler\"],"
                       "\"text_encoder\":[\"transformers\",\"Qwen2_5_VLForConditionalGeneration\"],"
                       "\"transformer\":[\"diffusers\",\"Step1XEditTransformer2DModel\"],"
                       "\"vae\":[\"diffusers\",\"AutoencoderKL\"]}");
}

static cJSON *scheduler(const void *size) {
    (void)size;
    return make_scheduler_config(3.0, 1.15, 4096, 0);
}

static cJSON *transformer_config(const void *size) {
    const struct make_step1x *f = size;
    cJSON *c = cJSON_Parse("{\"_class_name\":\"Step1XEditTransformer2DModel\",\"_diffusers_version\":\"0.36.0.dev0\","
                           "\"enable_text_token_mapping\":true,\"guidance_embeds\":false,\"patch_size\":1,"
                           "\"timestep_in_dim\":256,\"vector_in_dim\":768}");
    make_number(c, "attention_head_dim", f->head_dim);
    make_numbers(c, "axes_dims_rope", f->axes, 3);
    make_number(c, "connector_depth", f->connector_depth);
    make_number(c, "connector_heads_num", f->connector_heads);
    make_number(c, "connector_hidden_size", f->connector_hidden);
    make_number(c, "connector_in_channels", f->text.hidden);
    make_number(c, "in_channels", 4 * f->vae.latent_channels);
    make_number(c, "joint_attention_dim", f->connector_hidden);
    make_number(c, "num_attention_heads", f->n_heads);
    make_number(c, "num_layers", f->n_double);
    make_number(c, "num_single_layers", f->n_single);
    make_number(c, "out_channels", 4 * f->vae.latent_channels);
    return c;
}

static cJSON *vae_config(const void *size) {
    const struct make_step1x *f = size;
    cJSON *c =
        cJSON_Parse("{\"_class_name\":\"AutoencoderKL\",\"_diffusers_version\":\"0.36.0.dev0\",\"act_fn\":\"silu\","
                    "\"down_block_types\":[\"DownEncoderBlock2D\",\"DownEncoderBlock2D\","
                    "\"DownEncoderBlock2D\",\"DownEncoderBlock2D\"],\"force_upcast\":true,\"in_channels\":3,"
                    "\"latents_mean\":null,\"latents_std\":null,\"mid_block_add_attention\":true,"
                    "\"out_channels\":3,\"sample_size\":1024,\"scaling_factor\":0.3611,\"shift_factor\":0.1159,"
                    "\"up_block_types\":[\"UpDecoderBlock2D\",\"UpDecoderBlock2D\",\"UpDecoderBlock2D\","
                    "\"UpDecoderBlock2D\"],\"use_post_quant_conv\":false,\"use_quant_conv\":false}");
    make_numbers(c, "block_out_channels", f->vae.levels, 4);
    make_number(c, "latent_channels", f->vae.latent_channels);
    make_number(c, "layers_per_block", f->vae.layers_per_block);
    make_number(c, "norm_num_groups", f->vae.n_groups);
    return c;
}

static cJSON *text_config(const void *size) { return make_qwen25_vl_config(&((const struct make_step1x *)size)->text); }

static void time_embedder(struct make_list *list, int64_t out, const char *first, const char *second) {
    make_add(list, MAKE_TIME, 1, MAKE_SHAPE(out, 256), "%s.weight", first);
    make_bias(list, out, "", first);
    make_linear_bias(list, out, out, "", second);
}

static void connector(struct make_list *list, const struct make_step1x *f) {
    int64_t h = f->connector_hidden, in = f->text.hidden;
    make_linear_bias(list, 768, in, "connector.", "global_proj_out");
    make_linear_bias(list, h, in, "connector.S.", "input_embedder");
    time_embedder(list, h, "connector.S.t_embedder.mlp.0", "connector.S.t_embedder.mlp.2");
    make_linear_bias(list, h, in, "connector.S.", "c_embedder.linear_1");
    make_linear_bias(list, h, h, "connector.S.", "c_embedder.linear_2");
    for (int i = 0; i < f->connector_depth; i++) {
        char p[96];
        snprintf(p, sizeof p, "connector.S.individual_token_refiner.blocks.%d.", i);
        make_norm(list, h, p, "norm1");
        make_bias(list, h, p, "norm1");
        make_norm(list, h, p, "norm2");
        make_bias(list, h, p, "norm2");
        make_linear_bias(list, 3 * h, h, p, "self_attn_qkv");
        make_linear_bias(list, h, h, p, "self_attn_proj");
        make_linear_bias(list, 4 * h, h, p, "mlp.fc1");
        make_linear_bias(list, h, 4 * h, p, "mlp.fc2");
        make_linear_bias(list, 2 * h, h, p, "adaLN_modulation.1");
    }
}

static void double_block(struct make_list *list, const struct make_step1x *f, int index) {
    static const char *const square[] = {"attn.to_q",       "attn.to_k",       "attn.to_v",       "attn.to_out.0",
                                         "attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj", "attn.to_add_out"};
    static const char *const norms[] = {"attn.norm_q", "attn.norm_k", "attn.norm_added_q", "attn.norm_added_k"};
    int64_t d = (int64_t)f->n_heads * f->head_dim;
    char p[64];
    snprintf(p, sizeof p, "transformer_blocks.%d.", index);
    make_linear_bias(list, 6 * d, d, p, "norm1.linear");
    make_linear_bias(list, 6 * d, d, p, "norm1_context.linear");
    for (int i = 0; i < 8; i++) make_linear_bias(list, d, d, p, square[i]);
    for (int i = 0; i < 4; i++) make_norm(list, f->head_dim, p, norms[i]);
    make_linear_bias(list, 4 * d, d, p, "ff.net.0.proj");
    make_linear_bias(list, d, 4 * d, p, "ff.net.2");
    make_linear_bias(list, 4 * d, d, p, "ff_context.net.0.proj");
    make_linear_bias(list, d, 4 * d, p, "ff_context.net.2");
}

static void single_block(struct make_list *list, const struct make_step1x *f, int index) {
    int64_t d = (int64_t)f->n_heads * f->head_dim;
    char p[64];
    snprintf(p, sizeof p, "single_transformer_blocks.%d.", index);
    make_linear_bias(list, 3 * d, d, p, "norm.linear");
    make_linear_bias(list, d, d, p, "attn.to_q");
    make_linear_bias(list, d, d, p, "attn.to_k");
    make_linear_bias(list, d, d, p, "attn.to_v");
    make_norm(list, f->head_dim, p, "attn.norm_q");
    make_norm(list, f->head_dim, p, "attn.norm_k");
    make_linear_bias(list, 4 * d, d, p, "proj_mlp");
    make_linear_bias(list, d, 5 * d, p, "proj_out");
}

static void transformer(struct make_list *list, const void *size) {
    const struct make_step1x *f = size;
    int64_t d = (int64_t)f->n_heads * f->head_dim, channels = 4 * (int64_t)f->vae.latent_channels;
    list->dtype = LK_BF16;
    make_linear_bias(list, d, channels, "", "x_embedder");
    make_linear_bias(list, d, f->connector_hidden, "", "context_embedder");
    time_embedder(list, d, "time_embed.in_layer", "time_embed.out_layer");
    make_linear_bias(list, d, 768, "", "vec_embed.in_layer");
    make_linear_bias(list, d, d, "", "vec_embed.out_layer");
    connector(list, f);
    make_linear_bias(list, f->connector_hidden, f->text.hidden, "", "text_token_mapping");
    for (int i = 0; i < f->n_double; i++) double_block(list, f, i);
    for (int i = 0; i < f->n_single; i++) single_block(list, f, i);
    make_linear_bias(list, 2 * d, d, "", "norm_out.linear");
    make_linear_bias(list, channels, d, "", "proj_out");
}

static void vae(struct make_list *list, const void *size) {
    list->dtype = LK_F32;
    make_autoencoder_kl(list, &((const struct make_step1x *)size)->vae);
}

static void text_encoder(struct make_list *list, const void *size) {
    make_qwen25_vl_tensors(list, &((const struct make_step1x *)size)->text);
}

const struct make_family make_family_step1x = {
    .name = "step1x",
    .size_bytes = sizeof(struct make_step1x),
    .choose = choose,
    .files = {{"model_index.json", model_index},
              {"scheduler/scheduler_config.json", scheduler},
              {"transformer/config.json", transformer_config},
              {"vae/config.json", vae_config},
              {"text_encoder/config.json", text_config},
              {"text_encoder/generation_config.json", make_qwen25_vl_generation_config},
              {"processor/tokenizer.json", make_qwen25_vl_tokenizer},
              {"processor/tokenizer_config.json", make_qwen25_vl_tokenizer_config},
              {"processor/preprocessor_config.json", make_qwen25_vl_preprocessor_config}},
    .weights = {{"transformer", "diffusion_pytorch_model", transformer},
                {"vae", "diffusion_pytorch_model", vae},
                {"text_encoder", "model", text_encoder}},
};
