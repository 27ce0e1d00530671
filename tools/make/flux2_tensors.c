#include <stdio.h>

#include "tools/make/flux2.h"

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

void make_flux2_transformer(struct make_list *list, const void *size) {
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

void make_flux2_text_encoder(struct make_list *list, const void *size) {
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
