/* The configuration files of black-forest-labs/FLUX.2-dev, as facts: they let a run be planned on a machine that has no
 * file. */
#include "models/flux2/flux2.h"

const char lk_flux2_released_scheduler[] =
    "{\"_class_name\":\"FlowMatchEulerDiscreteScheduler\",\"base_image_seq_len\":256,\"base_shift\":0.5,"
    "\"invert_sigmas\":false,\"max_image_seq_len\":4096,\"max_shift\":1.15,\"num_train_timesteps\":1000,\"shift\":3.0,"
    "\"shift_terminal\":null,\"stochastic_sampling\":false,\"time_shift_type\":\"exponential\",\"use_beta_sigmas\":"
    "false,"
    "\"use_dynamic_shifting\":true,\"use_exponential_sigmas\":false,\"use_karras_sigmas\":false}";

const char lk_flux2_released_text_encoder[] =
    "{\"model_type\":\"mistral3\",\"image_token_index\":10,\"spatial_merge_size\":2,\"vision_feature_layer\":-1,"
    "\"projector_hidden_act\":\"gelu\",\"text_config\":{\"model_type\":\"mistral\",\"hidden_act\":\"silu\",\"head_"
    "dim\":128,"
    "\"hidden_size\":5120,\"intermediate_size\":32768,\"max_position_embeddings\":131072,\"num_attention_heads\":32,"
    "\"num_hidden_layers\":40,\"num_key_value_heads\":8,\"rms_norm_eps\":1e-05,\"rope_theta\":1000000000.0,"
    "\"sliding_window\":null,\"vocab_size\":131072}}";

const char lk_flux2_released_transformer[] =
    "{\"_class_name\":\"Flux2Transformer2DModel\",\"attention_head_dim\":128,\"axes_dims_rope\":[32,32,32,32],\"eps\":"
    "1e-06,"
    "\"guidance_embeds\":true,\"in_channels\":128,\"joint_attention_dim\":15360,\"mlp_ratio\":3.0,\"num_attention_"
    "heads\":48,"
    "\"num_layers\":8,\"num_single_layers\":48,\"out_channels\":null,\"patch_size\":1,\"rope_theta\":2000,"
    "\"timestep_guidance_channels\":256}";

const char lk_flux2_released_vae[] =
    "{\"_class_name\":\"AutoencoderKLFlux2\",\"act_fn\":\"silu\",\"batch_norm_eps\":0.0001,\"batch_norm_momentum\":0.1,"
    "\"block_out_channels\":[128,256,512,512],\"down_block_types\":[\"DownEncoderBlock2D\",\"DownEncoderBlock2D\","
    "\"DownEncoderBlock2D\",\"DownEncoderBlock2D\"],\"force_upcast\":true,\"in_channels\":3,\"latent_channels\":32,"
    "\"layers_per_block\":2,\"mid_block_add_attention\":true,\"norm_num_groups\":32,\"out_channels\":3,\"patch_size\":["
    "2,2],"
    "\"sample_size\":1024,\"up_block_types\":[\"UpDecoderBlock2D\",\"UpDecoderBlock2D\",\"UpDecoderBlock2D\","
    "\"UpDecoderBlock2D\"],\"use_post_quant_conv\":true,\"use_quant_conv\":true}";
