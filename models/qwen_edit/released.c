/* The configuration files of Qwen/Qwen-Image-Edit-2511 and its relatives, as facts: they let a run be planned on a
 * machine that has no file. */
#include "models/qwen_edit/qwen_edit.h"

const char lk_qwen_edit_released_scheduler[] =
    "{\"_class_name\":\"FlowMatchEulerDiscreteScheduler\",\"base_image_seq_len\":256,\"base_shift\":0.5,"
    "\"invert_sigmas\":false,\"max_image_seq_len\":8192,\"max_shift\":0.9,\"num_train_timesteps\":1000,\"shift\":1.0,"
    "\"shift_terminal\":0.02,\"stochastic_sampling\":false,\"time_shift_type\":\"exponential\",\"use_beta_sigmas\":"
    "false,\"use_dynamic_shifting\":true,\"use_exponential_sigmas\":false,\"use_karras_sigmas\":false}";

const char lk_qwen_edit_released_text_encoder[] =
    "{\"model_type\":\"qwen2_5_vl\",\"attention_dropout\":0.0,\"bos_token_id\":151643,\"eos_token_id\":151645,"
    "\"hidden_act\":\"silu\",\"hidden_size\":3584,\"image_token_id\":151655,\"intermediate_size\":18944,"
    "\"max_position_embeddings\":128000,\"max_window_layers\":28,\"num_attention_heads\":28,\"num_hidden_layers\":28,"
    "\"num_key_value_heads\":4,\"rms_norm_eps\":1e-06,\"rope_scaling\":{\"mrope_section\":[16,24,24],\"rope_type\":"
    "\"default\",\"type\":\"default\"},\"rope_theta\":1000000.0,\"sliding_window\":32768,\"tie_word_embeddings\":false,"
    "\"use_sliding_window\":false,\"video_token_id\":151656,\"vision_end_token_id\":151653,\"vision_start_token_id\":"
    "151652,\"vision_token_id\":151654,\"vocab_size\":152064,\"vision_config\":{\"model_type\":\"qwen2_5_vl\","
    "\"depth\":32,\"fullatt_block_indexes\":[7,15,23,31],\"hidden_act\":\"silu\",\"hidden_size\":1280,\"in_channels\":"
    "3,\"intermediate_size\":3420,\"num_heads\":16,\"out_hidden_size\":3584,\"patch_size\":14,\"spatial_merge_size\":2,"
    "\"temporal_patch_size\":2,\"tokens_per_second\":2,\"window_size\":112}}";

#define TRANSFORMER                                                                                                    \
    "\"_class_name\":\"QwenImageTransformer2DModel\",\"attention_head_dim\":128,\"axes_dims_rope\":[16,56,56],"        \
    "\"guidance_embeds\":false,\"in_channels\":64,\"joint_attention_dim\":3584,\"num_attention_heads\":24,"            \
    "\"num_layers\":60,\"out_channels\":16,\"patch_size\":2"

const char lk_qwen_edit_released_transformer_2511[] = "{" TRANSFORMER ",\"zero_cond_t\":true}";
const char lk_qwen_edit_released_transformer[] = "{" TRANSFORMER "}";

const char lk_qwen_edit_released_vae[] =
    "{\"_class_name\":\"AutoencoderKLQwenImage\",\"attn_scales\":[],\"base_dim\":96,\"dim_mult\":[1,2,4,4],\"dropout\":"
    "0.0,\"latents_mean\":[-0.7571,-0.7089,-0.9113,0.1075,-0.1745,0.9653,-0.1517,1.5508,0.4134,-0.0715,0.5517,-0.3632,"
    "-0.1922,-0.9497,0.2503,-0.2921],\"latents_std\":[2.8184,1.4541,2.3275,2.6558,1.2196,1.7708,2.6052,2.0743,3.2687,"
    "2.1526,2.8652,1.5579,1.6382,1.1253,2.8251,1.916],\"num_res_blocks\":2,\"temperal_downsample\":[false,true,true],"
    "\"z_dim\":16}";

const char lk_qwen_edit_released_processor[] =
    "{\"do_convert_rgb\":true,\"do_normalize\":true,\"do_rescale\":true,\"do_resize\":true,\"image_mean\":[0.48145466,"
    "0.4578275,0.40821073],\"image_processor_type\":\"Qwen2VLImageProcessorFast\",\"image_std\":[0.26862954,0.26130258,"
    "0.27577711],\"max_pixels\":12845056,\"merge_size\":2,\"min_pixels\":3136,\"patch_size\":14,\"resample\":3,"
    "\"rescale_factor\":0.00392156862745098,\"temporal_patch_size\":2}";
