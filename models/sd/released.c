/* The configuration files of stable-diffusion-v1-5/stable-diffusion-v1-5 and stabilityai/stable-diffusion-xl-base-1.0,
 * as facts: they let a run be planned on a machine that has no file. */
#include "models/sd/sd.h"

const struct lk_sd_released lk_sd_released[2] = {
    {
        .scheduler = "{\"_class_name\":\"PNDMScheduler\",\"beta_end\":0.012,\"beta_schedule\":\"scaled_linear\",\"beta_"
                     "start\":0.00085"
                     ",\"num_train_timesteps\":1000,\"set_alpha_to_one\":false,\"skip_prk_steps\":true,\"steps_"
                     "offset\":1,\"clip_sa"
                     "mple\":false}",
        .text_encoder = "{\"eos_token_id\":2,\"hidden_act\":\"quick_gelu\",\"hidden_size\":768,\"intermediate_size\":"
                        "3072,\"layer_norm_e"
                        "ps\":1e-05,\"max_position_embeddings\":77,\"model_type\":\"clip_text_model\",\"num_attention_"
                        "heads\":12,\"num_"
                        "hidden_layers\":12,\"projection_dim\":768,\"vocab_size\":49408}",
        .unet = "{\"_class_name\":\"UNet2DConditionModel\",\"act_fn\":\"silu\",\"attention_head_dim\":8,\"block_out_"
                "channels\":[3"
                "20,640,1280,1280],\"center_input_sample\":false,\"cross_attention_dim\":768,\"down_block_types\":["
                "\"CrossAt"
                "tnDownBlock2D\",\"CrossAttnDownBlock2D\",\"CrossAttnDownBlock2D\",\"DownBlock2D\"],\"downsample_"
                "padding\":1,\""
                "flip_sin_to_cos\":true,\"freq_shift\":0,\"in_channels\":4,\"layers_per_block\":2,\"mid_block_scale_"
                "factor\":1"
                ",\"norm_eps\":1e-05,\"norm_num_groups\":32,\"out_channels\":4,\"sample_size\":64,\"up_block_types\":["
                "\"UpBlock2"
                "D\",\"CrossAttnUpBlock2D\",\"CrossAttnUpBlock2D\",\"CrossAttnUpBlock2D\"]}",
        .vae = "{\"_class_name\":\"AutoencoderKL\",\"act_fn\":\"silu\",\"block_out_channels\":[128,256,512,512],\"down_"
               "block_ty"
               "pes\":[\"DownEncoderBlock2D\",\"DownEncoderBlock2D\",\"DownEncoderBlock2D\",\"DownEncoderBlock2D\"],"
               "\"in_chann"
               "els\":3,\"latent_channels\":4,\"layers_per_block\":2,\"norm_num_groups\":32,\"out_channels\":3,"
               "\"sample_size\":"
               "512,\"up_block_types\":[\"UpDecoderBlock2D\",\"UpDecoderBlock2D\",\"UpDecoderBlock2D\","
               "\"UpDecoderBlock2D\"]}",
    },
    {
        .scheduler = "{\"_class_name\":\"EulerDiscreteScheduler\",\"beta_end\":0.012,\"beta_schedule\":\"scaled_"
                     "linear\",\"beta_start"
                     "\":0.00085,\"clip_sample\":false,\"interpolation_type\":\"linear\",\"num_train_timesteps\":1000,"
                     "\"prediction_t"
                     "ype\":\"epsilon\",\"set_alpha_to_one\":false,\"skip_prk_steps\":true,\"steps_offset\":1,"
                     "\"timestep_spacing\":\"l"
                     "eading\",\"use_karras_sigmas\":false}",
        .text_encoder = "{\"eos_token_id\":2,\"hidden_act\":\"quick_gelu\",\"hidden_size\":768,\"intermediate_size\":"
                        "3072,\"layer_norm_e"
                        "ps\":1e-05,\"max_position_embeddings\":77,\"model_type\":\"clip_text_model\",\"num_attention_"
                        "heads\":12,\"num_"
                        "hidden_layers\":12,\"projection_dim\":768,\"vocab_size\":49408}",
        .text_encoder_2 = lk_clip_text_big_g,
        .unet =
            "{\"_class_name\":\"UNet2DConditionModel\",\"act_fn\":\"silu\",\"addition_embed_type\":\"text_time\","
            "\"addition_ti"
            "me_embed_dim\":256,\"attention_head_dim\":[5,10,20],\"block_out_channels\":[320,640,1280],\"center_input_s"
            "ample\":false,\"class_embeddings_concat\":false,\"conv_in_kernel\":3,\"conv_out_kernel\":3,\"cross_"
            "attention"
            "_dim\":2048,\"down_block_types\":[\"DownBlock2D\",\"CrossAttnDownBlock2D\",\"CrossAttnDownBlock2D\"],"
            "\"downsam"
            "ple_padding\":1,\"dual_cross_attention\":false,\"flip_sin_to_cos\":true,\"freq_shift\":0,\"in_channels\":"
            "4,\"l"
            "ayers_per_block\":2,\"mid_block_scale_factor\":1,\"mid_block_type\":\"UNetMidBlock2DCrossAttn\",\"norm_"
            "eps\":"
            "1e-05,\"norm_num_groups\":32,\"only_cross_attention\":false,\"out_channels\":4,\"projection_class_"
            "embedding"
            "s_input_dim\":2816,\"resnet_out_scale_factor\":1.0,\"resnet_skip_time_act\":false,\"resnet_time_scale_shif"
            "t\":\"default\",\"sample_size\":128,\"time_embedding_type\":\"positional\",\"transformer_layers_per_"
            "block\":[1,"
            "2,10],\"up_block_types\":[\"CrossAttnUpBlock2D\",\"CrossAttnUpBlock2D\",\"UpBlock2D\"],\"use_linear_"
            "projectio"
            "n\":true}",
        .vae = "{\"_class_name\":\"AutoencoderKL\",\"act_fn\":\"silu\",\"block_out_channels\":[128,256,512,512],\"down_"
               "block_ty"
               "pes\":[\"DownEncoderBlock2D\",\"DownEncoderBlock2D\",\"DownEncoderBlock2D\",\"DownEncoderBlock2D\"],"
               "\"force_up"
               "cast\":true,\"in_channels\":3,\"latent_channels\":4,\"layers_per_block\":2,\"norm_num_groups\":32,"
               "\"out_channe"
               "ls\":3,\"sample_size\":1024,\"scaling_factor\":0.13025,\"up_block_types\":[\"UpDecoderBlock2D\","
               "\"UpDecoderBlo"
               "ck2D\",\"UpDecoderBlock2D\",\"UpDecoderBlock2D\"]}",
    },
};
