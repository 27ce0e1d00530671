#include <stdio.h>
#include <string.h>

#include "tools/make/family.h"

static void double_block(struct make_list *list, int64_t d, int64_t mlp, int64_t head_dim, int index) {
    char p[64];
    snprintf(p, sizeof p, "transformer_blocks.%d.", index);
    static const char *const square[] = {"attn.to_q",       "attn.to_k",       "attn.to_v",       "attn.to_out.0",
                                         "attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj", "attn.to_add_out"};
    for (int i = 0; i < 8; i++) make_linear(list, d, d, 1, p, square[i]);
    make_norm(list, head_dim, p, "attn.norm_q");
    make_norm(list, head_dim, p, "attn.norm_k");
    make_norm(list, head_dim, p, "attn.norm_added_q");
    make_norm(list, head_dim, p, "attn.norm_added_k");
    make_linear(list, 2 * mlp, d, 1, p, "ff.linear_in");
    make_linear(list, d, mlp, 1, p, "ff.linear_out");
    make_linear(list, 2 * mlp, d, 1, p, "ff_context.linear_in");
    make_linear(list, d, mlp, 1, p, "ff_context.linear_out");
}

/* size: a struct make_flux2. */
static void make_flux2_transformer(struct make_list *list, const void *size) {
    const struct make_flux2 *f = size;
    int64_t d = (int64_t)f->n_heads * f->head_dim, mlp = (int64_t)((double)d * f->mlp_ratio);
    list->dtype = LK_BF16;
    static const char *const embedders[] = {"timestep_embedder", "guidance_embedder"};
    for (int i = 0; i < 2; i++) {
        make_add(list, MAKE_TIME, 1, MAKE_SHAPE(d, f->time_channels), "time_guidance_embed.%s.linear_1.weight",
                 embedders[i]);
        make_add(list, MAKE_LINEAR, 1, MAKE_SHAPE(d, d), "time_guidance_embed.%s.linear_2.weight", embedders[i]);
    }
    make_linear(list, 6 * d, d, 1, "", "double_stream_modulation_img.linear");
    make_linear(list, 6 * d, d, 1, "", "double_stream_modulation_txt.linear");
    make_linear(list, 3 * d, d, 1, "", "single_stream_modulation.linear");
    make_linear(list, d, f->in_channels, 1, "", "x_embedder");
    make_linear(list, d, 3 * (int64_t)f->hidden, 1, "", "context_embedder");
    for (int i = 0; i < f->n_double; i++) double_block(list, d, mlp, f->head_dim, i);
    for (int i = 0; i < f->n_single; i++) {
        char p[64];
        snprintf(p, sizeof p, "single_transformer_blocks.%d.attn.", i);
        make_linear(list, 3 * d + 2 * mlp, d, 1, p, "to_qkv_mlp_proj");
        make_norm(list, f->head_dim, p, "norm_q");
        make_norm(list, f->head_dim, p, "norm_k");
        make_linear(list, d, d + mlp, 1, p, "to_out");
    }
    make_linear(list, 2 * d, d, 1, "", "norm_out.linear");
    make_linear(list, f->in_channels, d, 1, "", "proj_out");
}

/* One small Pixtral layer: unused by editing, but part of every released file, and its beginning. */
static void vision(struct make_list *list, int64_t hidden) {
    const char *p = "vision_tower.transformer.layers.0.";
    make_add(list, MAKE_LINEAR, 1, MAKE_SHAPE(16, 3, 14, 14), "vision_tower.patch_conv.weight");
    make_norm(list, 16, "vision_tower.", "ln_pre");
    static const char *const square[] = {"attention.q_proj", "attention.k_proj", "attention.v_proj",
                                         "attention.o_proj"};
    for (int i = 0; i < 4; i++) make_linear(list, 16, 16, 1, p, square[i]);
    make_norm(list, 16, p, "attention_norm");
    make_linear(list, 37, 16, 1, p, "feed_forward.gate_proj");
    make_linear(list, 37, 16, 1, p, "feed_forward.up_proj");
    make_linear(list, 16, 37, 1, p, "feed_forward.down_proj");
    make_norm(list, 16, p, "ffn_norm");
    make_norm(list, 16, "multi_modal_projector.", "norm");
    make_linear(list, 16, 64, 1, "multi_modal_projector.", "patch_merger.merging_layer");
    make_linear(list, hidden, 16, 1, "multi_modal_projector.", "linear_1");
    make_linear(list, hidden, hidden, 1, "multi_modal_projector.", "linear_2");
}

static void make_flux2_text_encoder(struct make_list *list, const void *size) {
    const struct make_flux2 *f = size;
    int64_t h = f->hidden, m = f->intermediate, q = (int64_t)f->n_q_heads * f->text_head_dim,
            kv = (int64_t)f->n_kv_heads * f->text_head_dim;
    list->dtype = LK_BF16;
    vision(list, h);
    make_linear(list, f->vocab, h, 1, "language_model.model.", "embed_tokens");
    for (int i = 0; i < f->n_layers; i++) {
        char p[64];
        snprintf(p, sizeof p, "language_model.model.layers.%d.", i);
        make_norm(list, h, p, "input_layernorm");
        make_linear(list, q, h, 1, p, "self_attn.q_proj");
        make_linear(list, kv, h, 1, p, "self_attn.k_proj");
        make_linear(list, kv, h, 1, p, "self_attn.v_proj");
        make_linear(list, h, q, 1, p, "self_attn.o_proj");
        make_norm(list, h, p, "post_attention_layernorm");
        make_linear(list, m, h, 1, p, "mlp.gate_proj");
        make_linear(list, m, h, 1, p, "mlp.up_proj");
        make_linear(list, h, m, 1, p, "mlp.down_proj");
    }
    make_norm(list, h, "language_model.model.", "norm");
    make_linear(list, f->vocab, h, 1, "language_model.", "lm_head");
}

static const struct {
    const char *name;
    struct make_flux2 f;
} presets[] = {
    /* 31 text layers, however thin, so that the released hidden states 10, 20, 30 exist. */
    {"tiny",
     {.in_channels = 16,
      .n_double = 2,
      .n_single = 3,
      .head_dim = 32,
      .n_heads = 4,
      .axis_dim = 8,
      .time_channels = 256,
      .mlp_ratio = 3,
      .hidden = 32,
      .intermediate = 48,
      .n_layers = 31,
      .n_q_heads = 4,
      .n_kv_heads = 2,
      .text_head_dim = 16,
      .vocab = 512,
      .vae = {4, {8, 16, 16, 16}, 2, 4, true, true}}},
    {"small",
     {.in_channels = 64,
      .n_double = 3,
      .n_single = 8,
      .head_dim = 64,
      .n_heads = 8,
      .axis_dim = 16,
      .time_channels = 256,
      .mlp_ratio = 3,
      .hidden = 256,
      .intermediate = 768,
      .n_layers = 31,
      .n_q_heads = 4,
      .n_kv_heads = 2,
      .text_head_dim = 64,
      .vocab = 512,
      .vae = {16, {32, 64, 128, 128}, 2, 8, true, true}}},
    /* The released transformer's widths with 1 + 2 blocks: a step's time per block is the released model's. The text
     * encoder keeps only the hidden size that joint_attention_dim asks for. */
    {"wide",
     {.in_channels = 128,
      .n_double = 1,
      .n_single = 2,
      .head_dim = 128,
      .n_heads = 48,
      .axis_dim = 32,
      .time_channels = 256,
      .mlp_ratio = 3,
      .hidden = 5120,
      .intermediate = 32,
      .n_layers = 31,
      .n_q_heads = 1,
      .n_kv_heads = 1,
      .text_head_dim = 32,
      .vocab = 512,
      .vae = {32, {8, 16, 16, 16}, 2, 4, true, true}}},
};

static enum lk_code choose(void *size, const char *preset, bool released_vae) {
    struct make_flux2 *out = size;
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        if (strcmp(presets[i].name, preset)) continue;
        *out = presets[i].f;
        if (!released_vae) return LK_OK;
        if (out->vae.latent_channels != 32)
            return lk_fail(LK_E_USAGE, "--released-vae: needs 32 latent channels: preset wide");
        memcpy(out->vae.levels, (int[4]){128, 256, 512, 512}, sizeof out->vae.levels);
        out->vae.n_groups = 32;
        return LK_OK;
    }
    return lk_fail(LK_E_USAGE, "--preset: expected tiny, small or wide, got \"%.64s\"", preset);
}

/* A config that is mostly constant: the text, then what depends on the size. */
static cJSON *parse(const char *text) { return cJSON_Parse(text); }

static cJSON *model_index(const void *size) {
    (void)size;
    return parse("{\"_class_name\":\"Flux2Pipeline\",\"_diffusers_version\":\"0.36.0\","
                 "\"scheduler\":[\"diffusers\",\"FlowMatchEulerDiscreteScheduler\"],"
                 "\"text_encoder\":[\"transformers\",\"Mistral3ForConditionalGeneration\"],"
                 "\"tokenizer\":[\"transformers\",\"PixtralProcessor\"],"
                 "\"transformer\":[\"diffusers\",\"Flux2Transformer2DModel\"],"
                 "\"vae\":[\"diffusers\",\"AutoencoderKLFlux2\"]}");
}

static cJSON *scheduler(const void *size) {
    (void)size;
    return parse("{\"_class_name\":\"FlowMatchEulerDiscreteScheduler\",\"_diffusers_version\":\"0.36.0\","
                 "\"base_image_seq_len\":256,\"base_shift\":0.5,\"invert_sigmas\":false,\"max_image_seq_len\":4096,"
                 "\"max_shift\":1.15,\"num_train_timesteps\":1000,\"shift\":3.0,\"shift_terminal\":null,"
                 "\"stochastic_sampling\":false,\"time_shift_type\":\"exponential\",\"use_beta_sigmas\":false,"
                 "\"use_dynamic_shifting\":true,\"use_exponential_sigmas\":false,\"use_karras_sigmas\":false}");
}

static cJSON *transformer_config(const void *size) {
    const struct make_flux2 *f = size;
    cJSON *c = parse("{\"_class_name\":\"Flux2Transformer2DModel\",\"_diffusers_version\":\"0.36.0\",\"eps\":1e-06,"
                     "\"guidance_embeds\":true,\"out_channels\":null,\"patch_size\":1,\"rope_theta\":2000}");
    make_number(c, "attention_head_dim", f->head_dim);
    make_numbers(c, "axes_dims_rope", (int[4]){f->axis_dim, f->axis_dim, f->axis_dim, f->axis_dim}, 4);
    make_number(c, "in_channels", f->in_channels);
    make_number(c, "joint_attention_dim", 3 * f->hidden);
    make_number(c, "mlp_ratio", f->mlp_ratio);
    make_number(c, "num_attention_heads", f->n_heads);
    make_number(c, "num_layers", f->n_double);
    make_number(c, "num_single_layers", f->n_single);
    make_number(c, "timestep_guidance_channels", f->time_channels);
    return c;
}

static cJSON *vae_config(const void *size) {
    const struct make_flux2 *f = size;
    cJSON *c = parse("{\"_class_name\":\"AutoencoderKLFlux2\",\"_diffusers_version\":\"0.36.0\",\"act_fn\":\"silu\","
                     "\"batch_norm_eps\":0.0001,\"batch_norm_momentum\":0.1,\"down_block_types\":"
                     "[\"DownEncoderBlock2D\",\"DownEncoderBlock2D\",\"DownEncoderBlock2D\",\"DownEncoderBlock2D\"],"
                     "\"force_upcast\":true,\"in_channels\":3,\"mid_block_add_attention\":true,\"out_channels\":3,"
                     "\"patch_size\":[2,2],\"sample_size\":1024,\"up_block_types\":"
                     "[\"UpDecoderBlock2D\",\"UpDecoderBlock2D\",\"UpDecoderBlock2D\",\"UpDecoderBlock2D\"],"
                     "\"use_post_quant_conv\":true,\"use_quant_conv\":true}");
    make_numbers(c, "block_out_channels", f->vae.levels, 4);
    make_number(c, "latent_channels", f->vae.latent_channels);
    make_number(c, "layers_per_block", f->vae.layers_per_block);
    make_number(c, "norm_num_groups", f->vae.n_groups);
    return c;
}

static cJSON *text_config(const void *size) {
    const struct make_flux2 *f = size;
    cJSON *c = parse("{\"architectures\":[\"Mistral3ForConditionalGeneration\"],\"dtype\":\"bfloat16\","
                     "\"image_token_index\":10,\"model_type\":\"mistral3\",\"multimodal_projector_bias\":false,"
                     "\"projector_hidden_act\":\"gelu\",\"spatial_merge_size\":2,"
                     "\"text_config\":{\"attention_dropout\":0.0,\"bos_token_id\":1,\"eos_token_id\":2,"
                     "\"hidden_act\":\"silu\",\"initializer_range\":0.02,\"max_position_embeddings\":131072,"
                     "\"model_type\":\"mistral\",\"pad_token_id\":11,\"rms_norm_eps\":1e-05,"
                     "\"rope_theta\":1000000000.0,\"sliding_window\":null,\"tie_word_embeddings\":false,"
                     "\"use_cache\":true},\"tie_word_embeddings\":false,\"transformers_version\":\"4.57.0\","
                     "\"vision_config\":{\"attention_dropout\":0.0,\"head_dim\":4,\"hidden_act\":\"silu\","
                     "\"hidden_size\":16,\"image_size\":1540,\"initializer_range\":0.02,\"intermediate_size\":37,"
                     "\"model_type\":\"pixtral\",\"num_attention_heads\":4,\"num_channels\":3,\"num_hidden_layers\":1,"
                     "\"patch_size\":14,\"rope_theta\":10000.0},\"vision_feature_layer\":-1}");
    cJSON *text = c ? cJSON_GetObjectItemCaseSensitive(c, "text_config") : NULL;
    make_number(text, "head_dim", f->text_head_dim);
    make_number(text, "hidden_size", f->hidden);
    make_number(text, "intermediate_size", f->intermediate);
    make_number(text, "num_attention_heads", f->n_q_heads);
    make_number(text, "num_hidden_layers", f->n_layers);
    make_number(text, "num_key_value_heads", f->n_kv_heads);
    make_number(text, "vocab_size", f->vocab);
    return c;
}

static cJSON *generation_config(const void *size) {
    (void)size;
    return parse("{\"_from_model_config\":true,\"bos_token_id\":1,\"eos_token_id\":2,\"pad_token_id\":11,"
                 "\"transformers_version\":\"4.57.0\"}");
}

static cJSON *tokenizer_config(const void *size) {
    (void)size;
    return parse("{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\",\"model_max_length\":131072,\"pad_token\":\"<pad>\","
                 "\"padding_side\":\"left\",\"processor_class\":\"PixtralProcessor\","
                 "\"tokenizer_class\":\"LlamaTokenizerFast\",\"unk_token\":\"<unk>\"}");
}

static cJSON *processor_config(const void *size) {
    (void)size;
    return parse("{\"do_convert_rgb\":true,\"do_normalize\":true,\"do_rescale\":true,\"do_resize\":true,\"image_mean\":"
                 "[0.48145466,0.4578275,0.40821073],\"image_processor_type\":\"PixtralImageProcessor\",\"image_std\":"
                 "[0.26862954,0.26130258,0.27577711],\"patch_size\":14,\"processor_class\":\"PixtralProcessor\","
                 "\"resample\":3,\"rescale_factor\":0.00392156862745098,\"size\":{\"longest_edge\":1540}}");
}

static cJSON *tokenizer(const void *size) {
    const struct make_flux2 *f = size;
    return make_tokenizer_mistral(f->vocab);
}

static void vae(struct make_list *list, const void *size) {
    list->dtype = LK_F32;
    make_autoencoder_kl(list, &((const struct make_flux2 *)size)->vae);
}

const struct make_family make_family_flux2 = {
    .name = "flux2",
    .size_bytes = sizeof(struct make_flux2),
    .choose = choose,
    .files = {{"model_index.json", model_index},
              {"scheduler/scheduler_config.json", scheduler},
              {"transformer/config.json", transformer_config},
              {"vae/config.json", vae_config},
              {"text_encoder/config.json", text_config},
              {"text_encoder/generation_config.json", generation_config},
              {"tokenizer/preprocessor_config.json", processor_config},
              {"tokenizer/tokenizer_config.json", tokenizer_config},
              {"tokenizer/tokenizer.json", tokenizer}},
    .weights = {{"transformer", "diffusion_pytorch_model", make_flux2_transformer},
                {"vae", "diffusion_pytorch_model", vae},
                {"text_encoder", "model", make_flux2_text_encoder}},
};
