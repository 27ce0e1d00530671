
#include <stdio.h>
#include <string.h>

#include "tools/make/family.h"

void make_qwen25_vl_choose(struct make_qwen25_vl *out, const char *preset) {
    if (!strcmp(preset, "tiny"))
        *out = (struct make_qwen25_vl){64, 96, 4, 4, 2, {2, 3, 3}, 3, 32, 2, 48};
    else if (!strcmp(preset, "small"))
        *out = (struct make_qwen25_vl){256, 768, 8, 4, 2, {8, 12, 12}, 8, 128, 4, 256};
    else /* the released hidden size, which the transformers ask for, and little else */
        *out = (struct make_qwen25_vl){3584, 32, 2, 28, 4, {16, 24, 24}, 2, 32, 2, 48};
}

cJSON *make_qwen25_vl_config(const struct make_qwen25_vl *f) {
    cJSON *c = cJSON_Parse("{\"architectures\":[\"Qwen2_5_VLForConditionalGeneration\"],\"attention_dropout\":0.0,"
                           "\"hidden_act\":\"silu\",\"initializer_range\":0.02,\"max_position_embeddings\":128000,"
                           "\"max_window_layers\":28,\"model_type\":\"qwen2_5_vl\",\"rms_norm_eps\":1e-06,"
                           "\"rope_theta\":1000000.0,\"sliding_window\":32768,\"tie_word_embeddings\":false,"
                           "\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.53.1\",\"use_cache\":true,"
                           "\"use_sliding_window\":false,\"rope_scaling\":{\"rope_type\":\"default\",\"type\":"
                           "\"default\"},\"vision_config\":{\"hidden_act\":\"silu\",\"in_chans\":3,\"in_channels\":3,"
                           "\"initializer_range\":0.02,\"model_type\":\"qwen2_5_vl\",\"patch_size\":14,"
                           "\"spatial_merge_size\":2,\"spatial_patch_size\":14,\"temporal_patch_size\":2,"
                           "\"tokens_per_second\":2,\"window_size\":112}}");
    cJSON *vision = cJSON_GetObjectItemCaseSensitive(c, "vision_config");
    make_number(c, "hidden_size", f->hidden);
    make_number(c, "intermediate_size", f->intermediate);
    make_number(c, "num_hidden_layers", f->n_layers);
    make_number(c, "num_attention_heads", f->n_heads);
    make_number(c, "num_key_value_heads", f->n_kv_heads);
    make_number(c, "vocab_size", MAKE_QWEN_VOCAB);
    make_number(c, "bos_token_id", MAKE_QWEN_ENDOFTEXT);
    make_number(c, "eos_token_id", MAKE_QWEN_IM_END);
    make_number(c, "vision_start_token_id", MAKE_QWEN_VISION_START);
    make_number(c, "vision_end_token_id", MAKE_QWEN_VISION_END);
    make_number(c, "vision_token_id", MAKE_QWEN_VISION_PAD);
    make_number(c, "image_token_id", MAKE_QWEN_IMAGE_PAD);
    make_number(c, "video_token_id", MAKE_QWEN_VIDEO_PAD);
    make_numbers(cJSON_GetObjectItemCaseSensitive(c, "rope_scaling"), "mrope_section", f->mrope_section, 3);
    make_number(vision, "depth", f->depth);
    make_numbers(vision, "fullatt_block_indexes", (int[]){f->depth - 1}, 1);
    make_number(vision, "hidden_size", f->vision_hidden);
    make_number(vision, "intermediate_size", f->vision_intermediate);
    make_number(vision, "num_heads", f->vision_heads);
    make_number(vision, "out_hidden_size", f->hidden);
    return c;
}

cJSON *make_qwen25_vl_generation_config(const void *unused) {
    (void)unused;
    cJSON *c = cJSON_Parse("{\"do_sample\":true,\"repetition_penalty\":1.05,\"temperature\":0.1,\"top_k\":1,"
                           "\"top_p\":0.001,\"transformers_version\":\"4.53.1\"}");
    make_number(c, "bos_token_id", MAKE_QWEN_ENDOFTEXT);
    make_number(c, "pad_token_id", MAKE_QWEN_ENDOFTEXT);
    make_numbers(c, "eos_token_id", (int[]){MAKE_QWEN_IM_END, MAKE_QWEN_ENDOFTEXT}, 2);
    return c;
}

cJSON *make_qwen25_vl_preprocessor_config(const void *unused) {
    (void)unused;
    return cJSON_Parse(
        "{\"do_convert_rgb\":true,\"do_normalize\":true,\"do_rescale\":true,\"do_resize\":true,\"image_mean\":"
        "[0.48145466,0.4578275,0.40821073],\"image_processor_type\":\"Qwen2VLImageProcessorFast\",\"image_std\":"
        "[0.26862954,0.26130258,0.27577711],\"max_pixels\":12845056,\"merge_size\":2,\"min_pixels\":3136,"
        "\"patch_size\":14,\"processor_class\":\"Qwen2_5_VLProcessor\",\"resample\":3,\"rescale_factor\":"
        "0.00392156862745098,\"size\":{\"longest_edge\":12845056,\"shortest_edge\":3136},\"temporal_patch_size\":2}");
}

cJSON *make_qwen25_vl_tokenizer(const void *unused) {
    (void)unused;
    return make_tokenizer_qwen(false);
}

cJSON *make_qwen25_vl_tokenizer_config(const void *unused) {
    (void)unused;
    return cJSON_Parse("{\"add_prefix_space\":false,\"bos_token\":null,\"eos_token\":\"<|im_end|>\","
                       "\"model_max_length\":131072,\"pad_token\":\"<|endoftext|>\",\"processor_class\":"
                       "\"Qwen2_5_VLProcessor\",\"tokenizer_class\":\"Qwen2Tokenizer\",\"unk_token\":null}");
}

cJSON *make_scheduler_config(double shift, double max_shift, int max_image_seq_len, double shift_terminal) {
    cJSON *c = cJSON_Parse("{\"_class_name\":\"FlowMatchEulerDiscreteScheduler\",\"_diffusers_version\":\"0.36.0\","
                           "\"base_image_seq_len\":256,\"base_shift\":0.5,\"invert_sigmas\":false,"
                           "\"num_train_timesteps\":1000,\"stochastic_sampling\":false,\"time_shift_type\":"
                           "\"exponential\",\"use_beta_sigmas\":false,\"use_dynamic_shifting\":true,"
                           "\"use_exponential_sigmas\":false,\"use_karras_sigmas\":false}");
    make_number(c, "max_image_seq_len", max_image_seq_len);
    make_number(c, "max_shift", max_shift);
    make_number(c, "shift", shift);
    if (shift_terminal > 0)
        make_number(c, "shift_terminal", shift_terminal);
    else if (c)
        cJSON_AddNullToObject(c, "shift_terminal");
    return c;
}

static void vision(struct make_list *list, const struct make_qwen25_vl *f) {
    int64_t d = f->vision_hidden, m = f->vision_intermediate;
    make_add(list, MAKE_LINEAR, 1, MAKE_SHAPE(d, 3, 2, 14, 14), "visual.patch_embed.proj.weight");
    for (int i = 0; i < f->depth; i++) {
        char p[64];
        snprintf(p, sizeof p, "visual.blocks.%d.", i);
        make_norm(list, d, p, "norm1");
        make_norm(list, d, p, "norm2");
        make_linear_bias(list, 3 * d, d, p, "attn.qkv");
        make_linear_bias(list, d, d, p, "attn.proj");
        make_linear_bias(list, m, d, p, "mlp.gate_proj");
        make_linear_bias(list, m, d, p, "mlp.up_proj");
        make_linear_bias(list, d, m, p, "mlp.down_proj");
    }
    make_norm(list, d, "visual.merger.", "ln_q");
    make_linear_bias(list, 4 * d, 4 * d, "visual.merger.", "mlp.0");
    make_linear_bias(list, f->hidden, 4 * d, "visual.merger.", "mlp.2");
}

void make_qwen25_vl_tensors(struct make_list *list, const struct make_qwen25_vl *f) {
    int64_t h = f->hidden, m = f->intermediate, kv = h / f->n_heads * f->n_kv_heads;
    list->dtype = LK_BF16;
    vision(list, f);
    make_linear(list, MAKE_QWEN_VOCAB, h, 1, "model.", "embed_tokens");
    for (int i = 0; i < f->n_layers; i++) {
        char p[64];
        snprintf(p, sizeof p, "model.layers.%d.", i);
        make_norm(list, h, p, "input_layernorm");
        make_linear_bias(list, h, h, p, "self_attn.q_proj");
        make_linear_bias(list, kv, h, p, "self_attn.k_proj");
        make_linear_bias(list, kv, h, p, "self_attn.v_proj");
        make_linear(list, h, h, 1, p, "self_attn.o_proj");
        make_norm(list, h, p, "post_attention_layernorm");
        make_linear(list, m, h, 1, p, "mlp.gate_proj");
        make_linear(list, m, h, 1, p, "mlp.up_proj");
        make_linear(list, h, m, 1, p, "mlp.down_proj");
    }
    make_norm(list, h, "model.", "norm");
    make_linear(list, MAKE_QWEN_VOCAB, h, 1, "", "lm_head");
}

static enum lk_code choose(void *size, const char *preset, bool released_vae) {
    if (released_vae) return lk_fail(LK_E_USAGE, "--released-vae: qwen25_vl has no VAE");
    make_qwen25_vl_choose(size, preset);
    return LK_OK;
}

static cJSON *config(const void *size) { return make_qwen25_vl_config(size); }
static void tensors(struct make_list *list, const void *size) { make_qwen25_vl_tensors(list, size); }

const struct make_family make_family_qwen25_vl = {
    .name = "qwen25_vl",
    .size_bytes = sizeof(struct make_qwen25_vl),
    .choose = choose,
    .files = {{"config.json", config},
              {"generation_config.json", make_qwen25_vl_generation_config},
              {"preprocessor_config.json", make_qwen25_vl_preprocessor_config},
              {"tokenizer_config.json", make_qwen25_vl_tokenizer_config},
              {"tokenizer.json", make_qwen25_vl_tokenizer}},
    .weights = {{"", "model", tensors}},
};
