/* A Qwen-Image-Edit-2511 checkpoint of any size. */
#include <stdio.h>
#include <string.h>

#include "tools/make/family.h"

#define MAX_LEVELS 5

struct make_qwen_edit {
    int n_layers, head_dim, n_heads, axes[3];
    int base_dim, z_dim, dim_mult[MAX_LEVELS], n_levels, n_resnets;
    struct make_qwen25_vl text;
    bool whole_words;
};

static enum lk_code choose(void *size, const char *preset, bool released_vae) {
    /* tiny: five levels, so that the megapixel at which references are seen is a thousand tokens. */
    static const struct make_qwen_edit tiny = {2, 32, 4, {8, 12, 12}, 4, 4, {1, 2, 2, 4, 4}, 5, 1, {0}, false};
    static const struct make_qwen_edit small = {8, 64, 8, {16, 24, 24}, 32, 16, {1, 2, 4, 4}, 4, 2, {0}, false};
    static const struct make_qwen_edit wide = {2, 128, 24, {16, 56, 56}, 8, 16, {1, 2, 4, 4}, 4, 2, {0}, false};
    struct make_qwen_edit *out = size;
    *out = !strcmp(preset, "tiny") ? tiny : !strcmp(preset, "small") ? small : wide;
    if ((out->whole_words = !strcmp(preset, "deep"))) out->n_layers = 18;
    make_qwen25_vl_choose(&out->text, preset);
    if (!released_vae) return LK_OK;
    if (out->z_dim != 16) return lk_fail(LK_E_USAGE, "--released-vae: needs 16 latent channels: preset small or wide");
    out->base_dim = 96;
    return LK_OK;
}

static cJSON *model_index(const void *size) {
    (void)size;
    return cJSON_Parse("{\"_class_name\":\"QwenImageEditPlusPipeline\",\"_diffusers_version\":\"0.36.0.dev0\","
                       "\"processor\":[\"transformers\",\"Qwen2VLProcessor\"],"
                       "\"scheduler\":[\"diffusers\",\"FlowMatchEulerDiscreteScheduler\"],"
                       "\"text_encoder\":[\"transformers\",\"Qwen2_5_VLForConditionalGeneration\"],"
                       "\"tokenizer\":[\"transformers\",\"Qwen2Tokenizer\"],"
                       "\"transformer\":[\"diffusers\",\"QwenImageTransformer2DModel\"],"
                       "\"vae\":[\"diffusers\",\"AutoencoderKLQwenImage\"]}");
}

static cJSON *scheduler(const void *size) {
    (void)size;
    return make_scheduler_config(1.0, 0.9, 8192, 0.02);
}

static cJSON *transformer_config(const void *size) {
    const struct make_qwen_edit *f = size;
    cJSON *c = cJSON_Parse("{\"_class_name\":\"QwenImageTransformer2DModel\",\"_diffusers_version\":\"0.36.0.dev0\","
                           "\"guidance_embeds\":false,\"patch_size\":2,\"zero_cond_t\":true}");
    make_number(c, "attention_head_dim", f->head_dim);
    make_numbers(c, "axes_dims_rope", f->axes, 3);
    make_number(c, "in_channels", 4 * f->z_dim);
    make_number(c, "joint_attention_dim", f->text.hidden);
    make_number(c, "num_attention_heads", f->n_heads);
    make_number(c, "num_layers", f->n_layers);
    make_number(c, "out_channels", f->z_dim);
    return c;
}

/* The released statistics, as far as there are channels. */
static cJSON *vae_config(const void *size) {
    static const double mean[16] = {-0.7571, -0.7089, -0.9113, 0.1075,  -0.1745, 0.9653,  -0.1517, 1.5508,
                                    0.4134,  -0.0715, 0.5517,  -0.3632, -0.1922, -0.9497, 0.2503,  -0.2921};
    static const double std[16] = {2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743,
                                   3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160};
    const struct make_qwen_edit *f = size;
    cJSON *c = cJSON_Parse("{\"_class_name\":\"AutoencoderKLQwenImage\",\"_diffusers_version\":\"0.36.0.dev0\","
                           "\"attn_scales\":[],\"dropout\":0.0}");
    if (!c) return NULL;
    make_number(c, "base_dim", f->base_dim);
    make_numbers(c, "dim_mult", f->dim_mult, f->n_levels);
    cJSON_AddItemToObject(c, "latents_mean", cJSON_CreateDoubleArray(mean, f->z_dim));
    cJSON_AddItemToObject(c, "latents_std", cJSON_CreateDoubleArray(std, f->z_dim));
    make_number(c, "num_res_blocks", f->n_resnets);
    cJSON *temporal = cJSON_AddArrayToObject(c, "temperal_downsample");
    for (int i = 0; i + 1 < f->n_levels; i++) cJSON_AddItemToArray(temporal, cJSON_CreateBool(i > 0));
    make_number(c, "z_dim", f->z_dim);
    return c;
}

static cJSON *text_config(const void *size) {
    return make_qwen25_vl_config(&((const struct make_qwen_edit *)size)->text);
}

static cJSON *tokenizer(const void *size) {
    return make_tokenizer_qwen(((const struct make_qwen_edit *)size)->whole_words);
}

static void stream(struct make_list *list, const struct make_qwen_edit *f, const char *p, bool text) {
    static const char *const image_names[] = {"attn.to_q", "attn.to_k", "attn.to_v", "attn.to_out.0"};
    static const char *const text_names[] = {"attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj",
                                             "attn.to_add_out"};
    int64_t d = (int64_t)f->n_heads * f->head_dim;
    make_linear_bias(list, 6 * d, d, p, text ? "txt_mod.1" : "img_mod.1");
    for (int i = 0; i < 4; i++) make_linear_bias(list, d, d, p, text ? text_names[i] : image_names[i]);
    make_norm(list, f->head_dim, p, text ? "attn.norm_added_q" : "attn.norm_q");
    make_norm(list, f->head_dim, p, text ? "attn.norm_added_k" : "attn.norm_k");
    make_linear_bias(list, 4 * d, d, p, text ? "txt_mlp.net.0.proj" : "img_mlp.net.0.proj");
    make_linear_bias(list, d, 4 * d, p, text ? "txt_mlp.net.2" : "img_mlp.net.2");
}

static void transformer(struct make_list *list, const void *size) {
    const struct make_qwen_edit *f = size;
    int64_t d = (int64_t)f->n_heads * f->head_dim;
    list->dtype = LK_BF16;
    make_add(list, MAKE_TIME, 1, MAKE_SHAPE(d, 256), "time_text_embed.timestep_embedder.linear_1.weight");
    make_bias(list, d, "", "time_text_embed.timestep_embedder.linear_1");
    make_linear_bias(list, d, d, "", "time_text_embed.timestep_embedder.linear_2");
    make_norm(list, f->text.hidden, "", "txt_norm");
    make_linear_bias(list, d, 4 * (int64_t)f->z_dim, "", "img_in");
    make_linear_bias(list, d, f->text.hidden, "", "txt_in");
    for (int i = 0; i < f->n_layers; i++) {
        char p[64];
        snprintf(p, sizeof p, "transformer_blocks.%d.", i);
        stream(list, f, p, false);
        stream(list, f, p, true);
    }
    make_linear_bias(list, 2 * d, d, "", "norm_out.linear");
    make_linear_bias(list, 4 * (int64_t)f->z_dim, d, "", "proj_out");
}

/* A 3-D convolution kt x k x k. */
static void conv3d(struct make_list *list, int64_t out, int64_t in, int64_t kt, int64_t k, const char *p,
                   const char *name) {
    make_add(list, MAKE_LINEAR, kt > 1 ? 1.7 : 1, MAKE_SHAPE(out, in, kt, k, k), "%s%s.weight", p, name);
    make_bias(list, out, p, name);
}

static void gamma(struct make_list *list, int64_t n, int dims, const char *p, const char *name) {
    make_add(list, MAKE_NORM, 1, dims == 4 ? MAKE_SHAPE(n, 1, 1, 1) : MAKE_SHAPE(n, 1, 1), "%s%s.gamma", p, name);
}

static void resnet(struct make_list *list, int64_t in, int64_t out, const char *p) {
    gamma(list, in, 4, p, "norm1");
    conv3d(list, out, in, 3, 3, p, "conv1");
    gamma(list, out, 4, p, "norm2");
    conv3d(list, out, out, 3, 3, p, "conv2");
    if (in != out) conv3d(list, out, in, 1, 1, p, "conv_shortcut");
}

static void mid_block(struct make_list *list, int64_t c, const char *side) {
    char p[96];
    for (int i = 0; i < 2; i++) {
        snprintf(p, sizeof p, "%s.mid_block.resnets.%d.", side, i);
        resnet(list, c, c, p);
    }
    snprintf(p, sizeof p, "%s.mid_block.attentions.0.", side);
    gamma(list, c, 3, p, "norm");
    make_conv(list, 3 * c, c, 1, p, "to_qkv");
    make_conv(list, c, c, 1, p, "proj");
}

static void encoder(struct make_list *list, const struct make_qwen_edit *f) {
    int64_t in = f->base_dim;
    int index = 0;
    char p[96];
    conv3d(list, in, 3, 3, 3, "encoder.", "conv_in");
    for (int level = 0; level < f->n_levels; level++) {
        int64_t out = (int64_t)f->base_dim * f->dim_mult[level];
        for (int i = 0; i < f->n_resnets; i++, in = out) {
            snprintf(p, sizeof p, "encoder.down_blocks.%d.", index++);
            resnet(list, in, out, p);
        }
        if (level + 1 == f->n_levels) break;
        snprintf(p, sizeof p, "encoder.down_blocks.%d.", index++);
        make_conv(list, out, out, 3, p, "resample.1");
        if (level > 0) conv3d(list, out, out, 3, 1, p, "time_conv");
    }
    mid_block(list, in, "encoder");
    gamma(list, in, 4, "encoder.", "norm_out");
    conv3d(list, 2 * (int64_t)f->z_dim, in, 3, 3, "encoder.", "conv_out");
}

static void decoder(struct make_list *list, const struct make_qwen_edit *f) {
    int64_t in = (int64_t)f->base_dim * f->dim_mult[f->n_levels - 1];
    char p[96];
    conv3d(list, in, f->z_dim, 3, 3, "decoder.", "conv_in");
    mid_block(list, in, "decoder");
    for (int level = 0; level < f->n_levels; level++) {
        int64_t out = (int64_t)f->base_dim * f->dim_mult[f->n_levels - 1 - level];
        if (level) in /= 2; /* the upsampler's convolution halves the channels */
        for (int i = 0; i <= f->n_resnets; i++, in = out) {
            snprintf(p, sizeof p, "decoder.up_blocks.%d.resnets.%d.", level, i);
            resnet(list, in, out, p);
        }
        if (level + 1 == f->n_levels) break;
        snprintf(p, sizeof p, "decoder.up_blocks.%d.upsamplers.0.", level);
        make_conv(list, out / 2, out, 3, p, "resample.1");
        if (level + 2 < f->n_levels) conv3d(list, 2 * out, out, 3, 1, p, "time_conv");
    }
    gamma(list, in, 4, "decoder.", "norm_out");
    make_add(list, MAKE_LINEAR, 0.5, MAKE_SHAPE(3, in, 3, 3, 3), "decoder.conv_out.weight");
    make_bias(list, 3, "decoder.", "conv_out");
}

static void vae(struct make_list *list, const void *size) {
    const struct make_qwen_edit *f = size;
    list->dtype = LK_BF16;
    encoder(list, f);
    conv3d(list, 2 * (int64_t)f->z_dim, 2 * (int64_t)f->z_dim, 1, 1, "", "quant_conv");
    conv3d(list, f->z_dim, f->z_dim, 1, 1, "", "post_quant_conv");
    decoder(list, f);
}

static void text_encoder(struct make_list *list, const void *size) {
    make_qwen25_vl_tensors(list, &((const struct make_qwen_edit *)size)->text);
}

const struct make_family make_family_qwen_edit = {
    .name = "qwen_edit",
    .size_bytes = sizeof(struct make_qwen_edit),
    .choose = choose,
    .files = {{"model_index.json", model_index},
              {"scheduler/scheduler_config.json", scheduler},
              {"transformer/config.json", transformer_config},
              {"vae/config.json", vae_config},
              {"text_encoder/config.json", text_config},
              {"text_encoder/generation_config.json", make_qwen25_vl_generation_config},
              {"tokenizer/tokenizer_config.json", make_qwen25_vl_tokenizer_config},
              {"processor/tokenizer.json", tokenizer},
              {"processor/tokenizer_config.json", make_qwen25_vl_tokenizer_config},
              {"processor/preprocessor_config.json", make_qwen25_vl_preprocessor_config}},
    .weights = {{"transformer", "diffusion_pytorch_model", transformer},
                {"vae", "diffusion_pytorch_model", vae},
                {"text_encoder", "model", text_encoder}},
};
