/* The two families: SD 1.5 and SDXL. */
#include "models/parameters.h"
#include "models/sd/sd.h"

static unsigned quantized(const struct lk_pipeline *pipeline) {
    const struct lk_sd *m = pipeline->model;
    return m->unet.totals.quantized | m->text[0].totals.quantized | m->text[1].totals.quantized;
}

static const struct lk_checkpoint *checkpoints(const struct lk_pipeline *pipeline) {
    return ((const struct lk_sd *)pipeline->model)->checkpoints;
}

static const struct lk_tokenizer *tokenizer(const struct lk_pipeline *pipeline, int64_t *n_unseen) {
    *n_unseen = 0;
    return ((const struct lk_sd *)pipeline->model)->tokenizers[0];
}

static void defaults(struct lk_request *request, double guidance_scale) {
    request->num_inference_steps = 50;
    request->guidance_scale = guidance_scale;
    request->max_sequence_length = LK_SD_IDS;
    request->seed = 42;
    request->concept_momentum_scale = 0.5; /* of Fair Diffusion, as published */
    request->concept_momentum_beta = 0.6;
}
static void defaults_sd(struct lk_request *request) { defaults(request, 7.5); }
static void defaults_sdxl(struct lk_request *request) { defaults(request, 5.0); }

static const char *const kept[] = {NULL}; /* nothing is quantised */

#define SHARED                                                                                                         \
    .open = lk_sd_open, .close = lk_sd_close, .kept = kept, .quantized = quantized, .checkpoints = checkpoints,        \
    .tokenizer = tokenizer, .stages = &lk_sd_stages, .text_to_image = true, .clip_prompts = true

const struct lk_family lk_family_sd = {
    SHARED,
    .title = "SD 1.5",
    .bit = LK_FOR_SD,
    .names = {"sd-1.5"},
    .repositories = {"stable-diffusion-v1-5/stable-diffusion-v1-5"},
    .pipeline_classes = {"StableDiffusionPipeline"},
    .n_checkpoints = 3,
    .defaults = defaults_sd,
};

const struct lk_family lk_family_sdxl = {
    SHARED,
    .title = "SDXL",
    .bit = LK_FOR_SDXL,
    .names = {"sdxl"},
    .repositories = {"stabilityai/stable-diffusion-xl-base-1.0"},
    .pipeline_classes = {"StableDiffusionXLPipeline"},
    .n_checkpoints = LK_SD_CHECKPOINTS,
    .defaults = defaults_sdxl,
};
