/* The released configurations, for planning without files. Source: the conversion scripts of diffusers. */
#include "models/cascade/released.h"

#define TYPES2 "[\"SDCascadeResBlock\",\"SDCascadeTimestepBlock\"]"
#define TYPES3 "[\"SDCascadeResBlock\",\"SDCascadeTimestepBlock\",\"SDCascadeAttnBlock\"]"
#define SHARED                                                                                                         \
    "\"_class_name\":\"StableCascadeUNet\",\"timestep_ratio_embedding_dim\":64,\"clip_text_pooled_in_channels\":1280," \
    "\"clip_seq\":4,\"kernel_size\":3,\"self_attn\":true,"
#define PRIOR(width, heads, few, many)                                                                                 \
    "{" SHARED "\"in_channels\":16,\"out_channels\":16,\"patch_size\":1,\"conditioning_dim\":" width                   \
    ",\"block_out_channels\":[" width "," width "],\"num_attention_heads\":[" heads "," heads                          \
    "],\"down_num_layers_per_block\":[" few "," many "],\"up_num_layers_per_block\":[" many "," few                    \
    "],\"down_blocks_repeat_mappers\":[1,1],\"up_blocks_repeat_mappers\":[1,1],\"block_types_per_layer\":[" TYPES3     \
    "," TYPES3 "],\"clip_text_in_channels\":1280,\"clip_image_in_channels\":768,\"timestep_conditioning_type\":["      \
    "\"sca\",\"crp\"],\"switch_level\":[false],\"dropout\":[0.1,0.1]}"
#define DECODER(widths, heads, down, up, repeats, types)                                                               \
    "{" SHARED "\"in_channels\":4,\"out_channels\":4,\"patch_size\":2,\"conditioning_dim\":1280,"                      \
    "\"block_out_channels\":[" widths "],\"num_attention_heads\":[" heads "],\"down_num_layers_per_block\":[" down     \
    "],\"up_num_layers_per_block\":[" up                                                                               \
    "],\"down_blocks_repeat_mappers\":[1,1,1,1],\"up_blocks_repeat_mappers\":[" repeats                                \
    "],\"block_types_per_layer\":[" types "],\"effnet_in_channels\":16,\"pixel_mapper_in_channels\":3,"                \
    "\"timestep_conditioning_type\":[\"sca\"],\"dropout\":[0,0,0.1,0.1]}"

const struct lk_cascade_released lk_cascade_released = {
    .prior = PRIOR("2048", "32", "8", "24"),
    .prior_lite = PRIOR("1536", "24", "4", "12"),
    .decoder = DECODER("320,640,1280,1280", "0,0,20,20", "2,6,28,6", "6,28,6,2", "3,3,2,2",
                       TYPES2 "," TYPES2 "," TYPES3 "," TYPES3),
    .decoder_lite = DECODER("320,576,1152,1152", "0,9,18,18", "2,4,14,4", "4,14,4,2", "2,2,2,2",
                            TYPES2 "," TYPES2 "," TYPES3 "," TYPES3),
    .vqgan = "{\"_class_name\":\"PaellaVQModel\",\"in_channels\":3,\"out_channels\":3,\"up_down_scale_factor\":2,"
             "\"levels\":2,\"bottleneck_blocks\":12,\"embed_dim\":384,\"latent_channels\":4,\"num_vq_embeddings\":8192,"
             "\"scale_factor\":0.3764}",
};
