#include <string.h>

#include "tools/make/flux2.h"

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
      .latent_channels = 4,
      .levels = {8, 16, 16, 16},
      .layers_per_block = 2,
      .n_groups = 4,
      .max_shard_bytes = 1 << 20}},
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
      .latent_channels = 16,
      .levels = {32, 64, 128, 128},
      .layers_per_block = 2,
      .n_groups = 8,
      .max_shard_bytes = 64 << 20}},
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
      .latent_channels = 32,
      .levels = {8, 16, 16, 16},
      .layers_per_block = 2,
      .n_groups = 4,
      .max_shard_bytes = 1 << 30}},
};

enum lk_code make_flux2_preset(struct make_flux2 *out, const char *preset, bool released_vae) {
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        if (strcmp(presets[i].name, preset)) continue;
        *out = presets[i].f;
        if (!released_vae) return LK_OK;
        if (out->latent_channels != 32)
            return lk_fail(LK_E_USAGE, "--released-vae: needs 32 latent channels: preset wide");
        memcpy(out->levels, (int[4]){128, 256, 512, 512}, sizeof out->levels);
        out->n_groups = 32;
        return LK_OK;
    }
    return lk_fail(LK_E_USAGE, "--preset: expected tiny, small or wide, got \"%.64s\"", preset);
}

/* A config that is mostly constant: the text, then what depends on the size. */
static cJSON *parse(const char *text) { return cJSON_Parse(text); }

static void number(cJSON *object, const char *key, double value) {
    if (object) cJSON_AddNumberToObject(object, key, value);
}

static void numbers(cJSON *object, const char *key, const int *values, int n) {
    if (object) cJSON_AddItemToObject(object, key, cJSON_CreateIntArray(values, n));
}

cJSON *make_flux2_model_index(void) {
    return parse("{\"_class_name\":\"Flux2Pipeline\",\"_diffusers_version\":\"0.36.0\","
                 "\"scheduler\":[\"diffusers\",\"FlowMatchEulerDiscreteScheduler\"],"
                 "\"text_encoder\":[\"transformers\",\"Mistral3ForConditionalGeneration\"],"
                 "\"tokenizer\":[\"transformers\",\"PixtralProcessor\"],"
                 "\"transformer\":[\"diffusers\",\"Flux2Transformer2DModel\"],"
                 "\"vae\":[\"diffusers\",\"AutoencoderKLFlux2\"]}");
}

cJSON *make_flux2_scheduler(void) {
    return parse("{\"_class_name\":\"FlowMatchEulerDiscreteScheduler\",\"_diffusers_version\":\"0.36.0\","
                 "\"base_image_seq_len\":256,\"base_shift\":0.5,\"invert_sigmas\":false,\"max_image_seq_len\":4096,"
                 "\"max_shift\":1.15,\"num_train_timesteps\":1000,\"shift\":3.0,\"shift_terminal\":null,"
                 "\"stochastic_sampling\":false,\"time_shift_type\":\"exponential\",\"use_beta_sigmas\":false,"
                 "\"use_dynamic_shifting\":true,\"use_exponential_sigmas\":false,\"use_karras_sigmas\":false}");
}

cJSON *make_flux2_transformer_config(const struct make_flux2 *f) {
    cJSON *c = parse("{\"_class_name\":\"Flux2Transformer2DModel\",\"_diffusers_version\":\"0.36.0\",\"eps\":1e-06,"
                     "\"guidance_embeds\":true,\"out_channels\":null,\"patch_size\":1,\"rope_theta\":2000}");
    number(c, "attention_head_dim", f->head_dim);
    numbers(c, "axes_dims_rope", (int[4]){f->axis_dim, f->axis_dim, f->axis_dim, f->axis_dim}, 4);
    number(c, "in_channels", f->in_channels);
    number(c, "joint_attention_dim", 3 * f->hidden);
    number(c, "mlp_ratio", f->mlp_ratio);
    number(c, "num_attention_heads", f->n_heads);
    number(c, "num_layers", f->n_double);
    number(c, "num_single_layers", f->n_single);
    number(c, "timestep_guidance_channels", f->time_channels);
    return c;
}

cJSON *make_flux2_vae_config(const struct make_flux2 *f) {
    cJSON *c = parse("{\"_class_name\":\"AutoencoderKLFlux2\",\"_diffusers_version\":\"0.36.0\",\"act_fn\":\"silu\","
                     "\"batch_norm_eps\":0.0001,\"batch_norm_momentum\":0.1,\"down_block_types\":"
                     "[\"DownEncoderBlock2D\",\"DownEncoderBlock2D\",\"DownEncoderBlock2D\",\"DownEncoderBlock2D\"],"
                     "\"force_upcast\":true,\"in_channels\":3,\"mid_block_add_attention\":true,\"out_channels\":3,"
                     "\"patch_size\":[2,2],\"sample_size\":1024,\"up_block_types\":"
                     "[\"UpDecoderBlock2D\",\"UpDecoderBlock2D\",\"UpDecoderBlock2D\",\"UpDecoderBlock2D\"],"
                     "\"use_post_quant_conv\":true,\"use_quant_conv\":true}");
    numbers(c, "block_out_channels", f->levels, 4);
    number(c, "latent_channels", f->latent_channels);
    number(c, "layers_per_block", f->layers_per_block);
    number(c, "norm_num_groups", f->n_groups);
    return c;
}

cJSON *make_flux2_text_config(const struct make_flux2 *f) {
    cJSON *c = parse("{\"architectures\":[\"Mistral3ForConditionalGeneration\"],\"dtype\":\"bfloat16\","
                     "\"image_token_index\":10,\"model_type\":\"mistral3\",\"multimodal_projector_bias\":false,"
                     "\"projector_hidden_act\":\"gelu\",\"spatial_merge_size\":2,"
                     "\"text_config\":{\"attention_dropout\":0.0,\"bos_token_id\":1,\"eos_token_id\":2,"
                     "\"hidden_act\":\"silu\",\"initializer_range\":0.02,\"max_position_embeddings\":131072,"
                     "\"model_type\":\"mistral\",\"pad_token_id\":11,\"rms_norm_eps\":1e-05,"
                     "\"rope_theta\":1000000000.0,\"sliding_window\":null,\"tie_word_embeddings\":false,"
                     "\"use_cache\":true},\"tie_word_embeddings\":false,\"transformers_version\":\"4.57.0\","
                     "\"vision_config\":{\"attention_dropout\":0.0,\"head_dim\":4,\"hidden_act\":\"gelu\","
                     "\"hidden_size\":16,\"image_size\":28,\"initializer_range\":0.02,\"intermediate_size\":37,"
                     "\"model_type\":\"pixtral\",\"num_attention_heads\":4,\"num_channels\":3,\"num_hidden_layers\":1,"
                     "\"patch_size\":14,\"rope_theta\":10000.0},\"vision_feature_layer\":-1}");
    cJSON *text = c ? cJSON_GetObjectItemCaseSensitive(c, "text_config") : NULL;
    number(text, "head_dim", f->text_head_dim);
    number(text, "hidden_size", f->hidden);
    number(text, "intermediate_size", f->intermediate);
    number(text, "num_attention_heads", f->n_q_heads);
    number(text, "num_hidden_layers", f->n_layers);
    number(text, "num_key_value_heads", f->n_kv_heads);
    number(text, "vocab_size", f->vocab);
    return c;
}

cJSON *make_flux2_generation_config(void) {
    return parse("{\"_from_model_config\":true,\"bos_token_id\":1,\"eos_token_id\":2,\"pad_token_id\":11,"
                 "\"transformers_version\":\"4.57.0\"}");
}

cJSON *make_flux2_tokenizer_config(void) {
    return parse("{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\",\"model_max_length\":131072,\"pad_token\":\"<pad>\","
                 "\"padding_side\":\"left\",\"processor_class\":\"PixtralProcessor\","
                 "\"tokenizer_class\":\"LlamaTokenizerFast\",\"unk_token\":\"<unk>\"}");
}
