#include <string.h>

#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"

enum lk_code cli_edit(const struct cli_arguments *a) {
    struct cli_job job = {.model = a->model,
                          .dtype = strcmp(a->dtype, "f32") ? LK_BF16 : LK_F32,
                          .device = a->device,
                          .gemm = a->gemm,
                          .conv = a->conv,
                          .threads = (int)a->threads,
                          .rng = a->rng,
                          .n_images = a->n_images,
                          .exif_transpose = a->exif_transpose,
                          .output = a->output,
                          .dump_steps = a->dump_steps,
                          .prompt = a->prompt,
                          .negative_prompt = a->negative_prompt,
                          .seed = a->seed,
                          .true_cfg_scale = a->true_cfg_scale,
                          .size_level = (int)a->size_level,
                          .max_try_cnt = (int)a->max_try_cnt,
                          .thinking_mode = a->thinking_mode,
                          .reflection_mode = a->reflection_mode,
                          .prompts_file = a->prompts_file,
                          .vae_tiling = a->vae_tiling,
                          .num_inference_steps = (int)a->num_inference_steps,
                          .width = (int)a->width,
                          .height = (int)a->height,
                          .max_sequence_length = (int)a->max_sequence_length,
                          .n_out_layers = a->text_encoder_out_layers.n,
                          .guidance_scale = a->guidance_scale};
    for (int i = 0; i < a->n_images; i++) job.images[i] = a->images[i];
    for (int i = 0; i < job.n_out_layers; i++) job.out_layers[i] = (int)a->text_encoder_out_layers.values[i];
    return cli_job_run(&job);
}
