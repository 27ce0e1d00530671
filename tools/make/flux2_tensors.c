#include <stdio.h>

#include "tools/make/flux2.h"

static void linear(struct make_list *list, int64_t out, int64_t in, double gain, const char *prefix, const char *name) {
    make_add(list, MAKE_LINEAR, gain, MAKE_SHAPE(out, in), "%s%s.weight", prefix, name);
}

static void norm(struct make_list *list, int64_t n, const char *prefix, const char *name) {
    make_add(list, MAKE_NORM, 1, MAKE_SHAPE(n), "%s%s.weight", prefix, name);
}

static void double_block(struct make_list *list, int64_t d, int64_t mlp, int64_t head_dim, int index) {
    char p[64];
    snprintf(p, sizeof p, "transformer_blocks.%d.", index);
    static const char *const square[] = {"attn.to_q",       "attn.to_k",       "attn.to_v",       "attn.to_out.0",
                                         "attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj", "attn.to_add_out"};
    for (int i = 0; i < 8; i++) linear(list, d, d, 1, p, square[i]);
    norm(list, head_dim, p, "attn.norm_q");
    norm(list, head_dim, p, "attn.norm_k");
    norm(list, head_dim, p, "attn.norm_added_q");
    norm(list, head_dim, p, "attn.norm_added_k");
    linear(list, 2 * mlp, d, 1, p, "ff.linear_in");
    linear(list, d, mlp, 1, p, "ff.linear_out");
    linear(list, 2 * mlp, d, 1, p, "ff_context.linear_in");
    linear(list, d, mlp, 1, p, "ff_context.linear_out");
}

void make_flux2_transformer(struct make_list *list, const struct make_flux2 *f) {
    int64_t d = (int64_t)f->n_heads * f->head_dim, mlp = (int64_t)((double)d * f->mlp_ratio);
    list->dtype = LK_BF16;
    static const char *const embedders[] = {"timestep_embedder", "guidance_embedder"};
    for (int i = 0; i < 2; i++) {
        make_add(list, MAKE_TIME, 1, MAKE_SHAPE(d, f->time_channels), "time_guidance_embed.%s.linear_1.weight",
                 embedders[i]);
        make_add(list, MAKE_LINEAR, 1, MAKE_SHAPE(d, d), "time_guidance_embed.%s.linear_2.weight", embedders[i]);
    }
    linear(list, 6 * d, d, 1, "", "double_stream_modulation_img.linear");
    linear(list, 6 * d, d, 1, "", "double_stream_modulation_txt.linear");
    linear(list, 3 * d, d, 1, "", "single_stream_modulation.linear");
    linear(list, d, f->in_channels, 1, "", "x_embedder");
    linear(list, d, 3 * (int64_t)f->hidden, 1, "", "context_embedder");
    for (int i = 0; i < f->n_double; i++) double_block(list, d, mlp, f->head_dim, i);
    for (int i = 0; i < f->n_single; i++) {
        char p[64];
        snprintf(p, sizeof p, "single_transformer_blocks.%d.attn.", i);
        linear(list, 3 * d + 2 * mlp, d, 1, p, "to_qkv_mlp_proj");
        norm(list, f->head_dim, p, "norm_q");
        norm(list, f->head_dim, p, "norm_k");
        linear(list, d, d + mlp, 1, p, "to_out");
    }
    linear(list, 2 * d, d, 1, "", "norm_out.linear");
    linear(list, f->in_channels, d, 1, "", "proj_out");
}

static void bias(struct make_list *list, int64_t n, const char *prefix, const char *name) {
    make_add(list, MAKE_BIAS, 1, MAKE_SHAPE(n), "%s%s.bias", prefix, name);
}

static void conv(struct make_list *list, int64_t out, int64_t in, int64_t k, const char *prefix, const char *name) {
    make_add(list, MAKE_LINEAR, 1, MAKE_SHAPE(out, in, k, k), "%s%s.weight", prefix, name);
    bias(list, out, prefix, name);
}

static void group_norm(struct make_list *list, int64_t n, const char *prefix, const char *name) {
    norm(list, n, prefix, name);
    bias(list, n, prefix, name);
}

static void resnet(struct make_list *list, int64_t in, int64_t out, const char *prefix) {
    group_norm(list, in, prefix, "norm1");
    conv(list, out, in, 3, prefix, "conv1");
    group_norm(list, out, prefix, "norm2");
    conv(list, out, out, 3, prefix, "conv2");
    if (in != out) conv(list, out, in, 1, prefix, "conv_shortcut");
}

static void mid_block(struct make_list *list, int64_t c, const char *side) {
    char p[96];
    for (int i = 0; i < 2; i++) {
        snprintf(p, sizeof p, "%s.mid_block.resnets.%d.", side, i);
        resnet(list, c, c, p);
    }
    snprintf(p, sizeof p, "%s.mid_block.attentions.0.", side);
    group_norm(list, c, p, "group_norm");
    static const char *const square[] = {"to_q", "to_k", "to_v", "to_out.0"};
    for (int i = 0; i < 4; i++) {
        linear(list, c, c, 1, p, square[i]);
        bias(list, c, p, square[i]);
    }
}

void make_flux2_vae(struct make_list *list, const struct make_flux2 *f) {
    int64_t z = f->latent_channels, in = f->levels[0], top = f->levels[3];
    char p[96];
    list->dtype = LK_F32;
    conv(list, in, 3, 3, "encoder.", "conv_in");
    for (int level = 0; level < 4; level++) {
        for (int i = 0; i < f->layers_per_block; i++, in = f->levels[level]) {
            snprintf(p, sizeof p, "encoder.down_blocks.%d.resnets.%d.", level, i);
            resnet(list, in, f->levels[level], p);
        }
        snprintf(p, sizeof p, "encoder.down_blocks.%d.downsamplers.0.", level);
        if (level < 3) conv(list, in, in, 3, p, "conv");
    }
    mid_block(list, top, "encoder");
    group_norm(list, top, "encoder.", "conv_norm_out");
    conv(list, 2 * z, top, 3, "encoder.", "conv_out");
    conv(list, 2 * z, 2 * z, 1, "", "quant_conv");
    conv(list, z, z, 1, "", "post_quant_conv");
    conv(list, top, z, 3, "decoder.", "conv_in");
    mid_block(list, top, "decoder");
    in = top;
    for (int level = 0; level < 4; level++) {
        int64_t out = f->levels[3 - level];
        for (int i = 0; i <= f->layers_per_block; i++, in = out) {
            snprintf(p, sizeof p, "decoder.up_blocks.%d.resnets.%d.", level, i);
            resnet(list, in, out, p);
        }
        snprintf(p, sizeof p, "decoder.up_blocks.%d.upsamplers.0.", level);
        if (level < 3) conv(list, out, out, 3, p, "conv");
    }
    group_norm(list, in, "decoder.", "conv_norm_out");
    /* Quiet enough that few pixels are clipped: a clipped pixel hides a difference. */
    make_add(list, MAKE_LINEAR, 0.3, MAKE_SHAPE(3, in, 3, 3), "decoder.conv_out.weight");
    bias(list, 3, "decoder.", "conv_out");
    make_add(list, MAKE_BIAS, 1, MAKE_SHAPE(4 * z), "bn.running_mean");
    make_add(list, MAKE_VARIANCE, 1, MAKE_SHAPE(4 * z), "bn.running_var");
    make_add(list, MAKE_COUNT, 1, MAKE_SHAPE(0), "bn.num_batches_tracked");
}

/* One small Pixtral layer: unused by editing, but part of every released file. */
static void vision(struct make_list *list, int64_t hidden) {
    const char *p = "vision_tower.transformer.layers.0.";
    make_add(list, MAKE_LINEAR, 1, MAKE_SHAPE(16, 3, 14, 14), "vision_tower.patch_conv.weight");
    norm(list, 16, "vision_tower.", "ln_pre");
    static const char *const square[] = {"attention.q_proj", "attention.k_proj", "attention.v_proj",
                                         "attention.o_proj"};
    for (int i = 0; i < 4; i++) linear(list, 16, 16, 1, p, square[i]);
    norm(list, 16, p, "attention_norm");
    linear(list, 37, 16, 1, p, "feed_forward.gate_proj");
    linear(list, 37, 16, 1, p, "feed_forward.up_proj");
    linear(list, 16, 37, 1, p, "feed_forward.down_proj");
    norm(list, 16, p, "ffn_norm");
    norm(list, 16, "multi_modal_projector.", "norm");
    linear(list, 16, 64, 1, "multi_modal_projector.", "patch_merger.merging_layer");
    linear(list, hidden, 16, 1, "multi_modal_projector.", "linear_1");
    linear(list, hidden, hidden, 1, "multi_modal_projector.", "linear_2");
}

void make_flux2_text_encoder(struct make_list *list, const struct make_flux2 *f) {
    int64_t h = f->hidden, m = f->intermediate, q = (int64_t)f->n_q_heads * f->text_head_dim,
            kv = (int64_t)f->n_kv_heads * f->text_head_dim;
    list->dtype = LK_BF16;
    linear(list, f->vocab, h, 1, "language_model.model.", "embed_tokens");
    for (int i = 0; i < f->n_layers; i++) {
        char p[64];
        snprintf(p, sizeof p, "language_model.model.layers.%d.", i);
        norm(list, h, p, "input_layernorm");
        linear(list, q, h, 1, p, "self_attn.q_proj");
        linear(list, kv, h, 1, p, "self_attn.k_proj");
        linear(list, kv, h, 1, p, "self_attn.v_proj");
        linear(list, h, q, 1, p, "self_attn.o_proj");
        norm(list, h, p, "post_attention_layernorm");
        linear(list, m, h, 1, p, "mlp.gate_proj");
        linear(list, m, h, 1, p, "mlp.up_proj");
        linear(list, h, m, 1, p, "mlp.down_proj");
    }
    norm(list, h, "language_model.model.", "norm");
    linear(list, f->vocab, h, 1, "language_model.", "lm_head");
    vision(list, h);
}
