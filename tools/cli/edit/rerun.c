#include <string.h>

#include "engine/base/log.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"
#include "tools/cli/edit/recipe.h"

/* Whether this build can be expected to give the recorded bits at all. */
static enum lk_code check(const struct cli_recipe *r, const struct cli_arguments *a) {
    if (r->numerics_version != CLI_NUMERICS_VERSION)
        lk_log(LK_LOG_WARNING, "made with numerics version %lld, this is %d: the bits will differ",
               (long long)r->numerics_version, CLI_NUMERICS_VERSION);
    if (strcmp(r->rng, "torch-cpu"))
        return lk_fail(LK_E_METADATA, "%s: field \"rng\": expected torch-cpu, got %.64s", a->positional, r->rng);
    if (strcmp(r->dtype, "bf16") && strcmp(r->dtype, "f32"))
        return lk_fail(LK_E_METADATA, "%s: field \"dtype\": expected bf16 or f32, got %.64s", a->positional, r->dtype);
    if (r->n_images != a->n_images)
        return lk_fail(LK_E_USAGE, "--image: expected the recipe's images, %d of them in its order (see: show), got %d",
                       r->n_images, a->n_images);
    return LK_OK;
}

/* What computed then, where it can again: NVIDIA's libraries need a cuda device. */
static const char *library(const struct cli_recipe *r, const struct cli_arguments *a, const char *name) {
    if (!name) return "own";
    if (!strncmp(a->device, "cuda", 4)) return name;
    lk_log(LK_LOG_WARNING, "made on %s with %s, this is %s: the bits will differ", r->device, name, a->device);
    return "own";
}

enum lk_code cli_rerun(const struct cli_arguments *a) {
    struct cli_recipe r;
    enum lk_code rc = cli_recipe_read(&r, a->positional);
    if (rc) return rc;
    rc = check(&r, a);
    if (!rc) {
        struct cli_job job = {.model = a->model,
                              .dtype = strcmp(r.dtype, "f32") ? LK_BF16 : LK_F32,
                              .device = a->device,
                              .gemm = library(&r, a, r.gemm),
                              .conv = library(&r, a, r.conv),
                              .threads = (int)a->threads,
                              .rng = r.rng,
                              .n_images = a->n_images,
                              .exif_transpose = r.exif_transpose,
                              .output = a->output,
                              .prompt = r.prompt,
                              .negative_prompt = r.negative_prompt,
                              .seed = r.seed,
                              .true_cfg_scale = r.true_cfg_scale,
                              .size_level = (int)r.size_level,
                              .max_try_cnt = (int)r.max_try_cnt,
                              .thinking_mode = r.thinking_mode,
                              .reflection_mode = r.reflection_mode,
                              .prompts_file = a->prompts_file,
                              .vae_tiling = a->vae_tiling,
                              .num_inference_steps = (int)r.num_inference_steps,
                              .width = (int)r.width,
                              .height = (int)r.height,
                              .max_sequence_length = (int)r.max_sequence_length,
                              .n_out_layers = (int)r.n_out_layers,
                              .guidance_scale = r.guidance_scale,
                              .weights_identity = r.weights_identity};
        for (int i = 0; i < a->n_images; i++) {
            job.images[i] = a->images[i];
            job.image_sha256[i] = r.images[i].sha256;
        }
        for (int i = 0; i < job.n_out_layers; i++) job.out_layers[i] = (int)r.out_layers[i];
        rc = cli_job_run(&job);
    }
    cli_recipe_free(&r);
    return rc;
}
