/* The configuration files of stepfun-ai/Step1X-Edit-v1p2, as facts: they let a run be planned on a machine that has no
 * file. */
#include "models/step1x/step1x.h"

const char lk_step1x_released_scheduler[] =
    "{\"_class_name\":\"FlowMatchEulerDiscreteScheduler\",\"base_image_seq_len\":256,\"base_shift\":0.5,"
    "\"invert_sigmas\":false,\"max_image_seq_len\":4096,\"max_shift\":1.15,\"num_train_timesteps\":1000,\"shift\":3.0,"
    "\"shift_terminal\":null,\"stochastic_sampling\":false,\"time_shift_type\":\"exponential\",\"use_beta_sigmas\":"
    "false,\"use_dynamic_shifting\":true,\"use_exponential_sigmas\":false,\"use_karras_sigmas\":false}";

const char lk_step1x_released_text_encoder[] =
    "{\"model_type\":\"qwen2_5_vl\",\"hidden_act\":\"silu\",\"hidden_size\":3584,\"image_token_id\":151655,"
    "\"intermediate_size\":18944,\"max_position_embeddings\":128000,\"num_attention_heads\":28,\"num_hidden_layers\":"
    "28,\"num_key_value_heads\":4,\"rms_norm_eps\":1e-06,\"rope_scaling\":{\"type\":\"mrope\",\"mrope_section\":[16,"
    "24,24]},\"rope_theta\":1000000.0,\"tie_word_embeddings\":false,\"use_sliding_window\":false,"
    "\"vision_end_token_id\":151653,\"vision_start_token_id\":151652,\"vocab_size\":152064,\"vision_config\":{"
    "\"depth\":32,\"fullatt_block_indexes\":[7,15,23,31],\"hidden_act\":\"silu\",\"hidden_size\":1280,\"in_chans\":3,"
    "\"intermediate_size\":3420,\"num_heads\":16,\"out_hidden_size\":3584,\"patch_size\":14,\"spatial_merge_size\":2,"
    "\"spatial_patch_size\":14,\"temporal_patch_size\":2,\"tokens_per_second\":2,\"window_size\":112}}";

#define TRANSFORMER(mapping)                                                                                           \
    "{\"_class_name\":\"Step1XEditTransformer2DModel\",\"attention_head_dim\":128,\"axes_dims_rope\":[16,56,56],"      \
    "\"connector_depth\":2,\"connector_heads_num\":32,\"connector_hidden_size\":4096,\"connector_in_channels\":3584,"  \
    "\"enable_text_token_mapping\":" mapping ",\"guidance_embeds\":false,\"in_channels\":64,\"joint_attention_dim\":"  \
    "4096,\"num_attention_heads\":24,\"num_layers\":19,\"num_single_layers\":38,\"out_channels\":64,\"patch_size\":1," \
    "\"timestep_in_dim\":256,\"vector_in_dim\":768}"

const char lk_step1x_released_transformer_v1p2[] = TRANSFORMER("true");
const char lk_step1x_released_transformer_v1p1[] = TRANSFORMER("false");

const char lk_step1x_released_vae[] =
    "{\"_class_name\":\"AutoencoderKL\",\"act_fn\":\"silu\",\"block_out_channels\":[128,256,512,512],"
    "\"down_block_types\":[\"DownEncoderBlock2D\",\"DownEncoderBlock2D\",\"DownEncoderBlock2D\","
    "\"DownEncoderBlock2D\"],\"force_upcast\":true,\"in_channels\":3,\"latent_channels\":16,\"latents_mean\":null,"
    "\"latents_std\":null,\"layers_per_block\":2,\"mid_block_add_attention\":true,\"norm_num_groups\":32,"
    "\"out_channels\":3,\"sample_size\":1024,\"scaling_factor\":0.3611,\"shift_factor\":0.1159,\"up_block_types\":["
    "\"UpDecoderBlock2D\",\"UpDecoderBlock2D\",\"UpDecoderBlock2D\",\"UpDecoderBlock2D\"],\"use_post_quant_conv\":"
    "false,\"use_quant_conv\":false}";

const char lk_step1x_released_processor[] =
    "{\"image_processor_type\":\"Qwen2VLImageProcessor\",\"image_mean\":[0.48145466,0.4578275,0.40821073],"
    "\"image_std\":[0.26862954,0.26130258,0.27577711],\"max_pixels\":12845056,\"merge_size\":2,\"min_pixels\":3136,"
    "\"patch_size\":14,\"processor_class\":\"Qwen2_5_VLProcessor\",\"temporal_patch_size\":2}";
