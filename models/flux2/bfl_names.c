/* FLUX.2 under the names of Black Forest Labs' own code, as GGUF files, single safetensors and LoRAs have them: q, k
 * and v are one matrix, and the last modulation has shift before scale. */
#include "models/flux2/transformer.h"

const struct lk_rename lk_flux2_other_names[] = {
    {"img_in", "x_embedder", 0, 1, 1, false},
    {"txt_in", "context_embedder", 0, 1, 1, false},
    {"time_in.in_layer", "time_guidance_embed.timestep_embedder.linear_1", 0, 1, 1, false},
    {"time_in.out_layer", "time_guidance_embed.timestep_embedder.linear_2", 0, 1, 1, false},
    {"guidance_in.in_layer", "time_guidance_embed.guidance_embedder.linear_1", 0, 1, 1, false},
    {"guidance_in.out_layer", "time_guidance_embed.guidance_embedder.linear_2", 0, 1, 1, false},
    {"double_stream_modulation_img.lin", "double_stream_modulation_img.linear", 0, 1, 1, false},
    {"double_stream_modulation_txt.lin", "double_stream_modulation_txt.linear", 0, 1, 1, false},
    {"single_stream_modulation.lin", "single_stream_modulation.linear", 0, 1, 1, false},
    {"final_layer.linear", "proj_out", 0, 1, 1, false},
    {"final_layer.adaLN_modulation.1", "norm_out.linear", 0, 1, 1, true},
    {"double_blocks.%d.img_attn.qkv", "transformer_blocks.%d.attn.to_q", 0, 1, 3, false},
    {"double_blocks.%d.img_attn.qkv", "transformer_blocks.%d.attn.to_k", 1, 1, 3, false},
    {"double_blocks.%d.img_attn.qkv", "transformer_blocks.%d.attn.to_v", 2, 1, 3, false},
    {"double_blocks.%d.img_attn.proj", "transformer_blocks.%d.attn.to_out.0", 0, 1, 1, false},
    {"double_blocks.%d.img_attn.norm.query_norm.scale", "transformer_blocks.%d.attn.norm_q.weight", 0, 1, 1, false},
    {"double_blocks.%d.img_attn.norm.key_norm.scale", "transformer_blocks.%d.attn.norm_k.weight", 0, 1, 1, false},
    {"double_blocks.%d.img_mlp.0", "transformer_blocks.%d.ff.linear_in", 0, 1, 1, false},
    {"double_blocks.%d.img_mlp.2", "transformer_blocks.%d.ff.linear_out", 0, 1, 1, false},
    {"double_blocks.%d.txt_attn.qkv", "transformer_blocks.%d.attn.add_q_proj", 0, 1, 3, false},
    {"double_blocks.%d.txt_attn.qkv", "transformer_blocks.%d.attn.add_k_proj", 1, 1, 3, false},
    {"double_blocks.%d.txt_attn.qkv", "transformer_blocks.%d.attn.add_v_proj", 2, 1, 3, false},
    {"double_blocks.%d.txt_attn.proj", "transformer_blocks.%d.attn.to_add_out", 0, 1, 1, false},
    {"double_blocks.%d.txt_attn.norm.query_norm.scale", "transformer_blocks.%d.attn.norm_added_q.weight", 0, 1, 1,
     false},
    {"double_blocks.%d.txt_attn.norm.key_norm.scale", "transformer_blocks.%d.attn.norm_added_k.weight", 0, 1, 1, false},
    {"double_blocks.%d.txt_mlp.0", "transformer_blocks.%d.ff_context.linear_in", 0, 1, 1, false},
    {"double_blocks.%d.txt_mlp.2", "transformer_blocks.%d.ff_context.linear_out", 0, 1, 1, false},
    {"single_blocks.%d.linear1", "single_transformer_blocks.%d.attn.to_qkv_mlp_proj", 0, 1, 1, false},
    {"single_blocks.%d.linear2", "single_transformer_blocks.%d.attn.to_out", 0, 1, 1, false},
    {"single_blocks.%d.norm.query_norm.scale", "single_transformer_blocks.%d.attn.norm_q.weight", 0, 1, 1, false},
    {"single_blocks.%d.norm.key_norm.scale", "single_transformer_blocks.%d.attn.norm_k.weight", 0, 1, 1, false},
};
const size_t lk_flux2_n_other_names = sizeof lk_flux2_other_names / sizeof *lk_flux2_other_names;

enum lk_code lk_flux2_rename(struct lk_checkpoint *cp) {
    return lk_checkpoint_rename(cp, "", lk_flux2_other_names, lk_flux2_n_other_names);
}
