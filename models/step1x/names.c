/* Step1X-Edit under the names of its authors' own code, which are FLUX.1's: q, k and v are one matrix, in single blocks
 * with the MLP's first layer, and the last modulation has shift before scale. */
#include "models/step1x/transformer.h"

const struct lk_rename lk_step1x_other_names[] = {
    {"img_in", "x_embedder", 0, 1, 1, false},
    {"txt_in", "context_embedder", 0, 1, 1, false},
    {"time_in.in_layer", "time_embed.in_layer", 0, 1, 1, false},
    {"time_in.out_layer", "time_embed.out_layer", 0, 1, 1, false},
    {"vector_in.in_layer", "vec_embed.in_layer", 0, 1, 1, false},
    {"vector_in.out_layer", "vec_embed.out_layer", 0, 1, 1, false},
    {"final_layer.linear", "proj_out", 0, 1, 1, false},
    {"final_layer.adaLN_modulation.1", "norm_out.linear", 0, 1, 1, true},
    {"double_blocks.%d.img_mod.lin", "transformer_blocks.%d.norm1.linear", 0, 1, 1, false},
    {"double_blocks.%d.txt_mod.lin", "transformer_blocks.%d.norm1_context.linear", 0, 1, 1, false},
    {"double_blocks.%d.img_attn.qkv", "transformer_blocks.%d.attn.to_q", 0, 1, 3, false},
    {"double_blocks.%d.img_attn.qkv", "transformer_blocks.%d.attn.to_k", 1, 1, 3, false},
    {"double_blocks.%d.img_attn.qkv", "transformer_blocks.%d.attn.to_v", 2, 1, 3, false},
    {"double_blocks.%d.img_attn.proj", "transformer_blocks.%d.attn.to_out.0", 0, 1, 1, false},
    {"double_blocks.%d.img_mlp.0", "transformer_blocks.%d.ff.net.0.proj", 0, 1, 1, false},
    {"double_blocks.%d.img_mlp.2", "transformer_blocks.%d.ff.net.2", 0, 1, 1, false},
    {"double_blocks.%d.txt_attn.qkv", "transformer_blocks.%d.attn.add_q_proj", 0, 1, 3, false},
    {"double_blocks.%d.txt_attn.qkv", "transformer_blocks.%d.attn.add_k_proj", 1, 1, 3, false},
    {"double_blocks.%d.txt_attn.qkv", "transformer_blocks.%d.attn.add_v_proj", 2, 1, 3, false},
    {"double_blocks.%d.txt_attn.proj", "transformer_blocks.%d.attn.to_add_out", 0, 1, 1, false},
    {"double_blocks.%d.txt_mlp.0", "transformer_blocks.%d.ff_context.net.0.proj", 0, 1, 1, false},
    {"double_blocks.%d.txt_mlp.2", "transformer_blocks.%d.ff_context.net.2", 0, 1, 1, false},
    {"single_blocks.%d.modulation.lin", "single_transformer_blocks.%d.norm.linear", 0, 1, 1, false},
    {"single_blocks.%d.linear1", "single_transformer_blocks.%d.attn.to_q", 0, 1, 7, false},
    {"single_blocks.%d.linear1", "single_transformer_blocks.%d.attn.to_k", 1, 1, 7, false},
    {"single_blocks.%d.linear1", "single_transformer_blocks.%d.attn.to_v", 2, 1, 7, false},
    {"single_blocks.%d.linear1", "single_transformer_blocks.%d.proj_mlp", 3, 4, 7, false},
    {"single_blocks.%d.linear2", "single_transformer_blocks.%d.proj_out", 0, 1, 1, false},
};
const size_t lk_step1x_n_other_names = sizeof lk_step1x_other_names / sizeof *lk_step1x_other_names;
