#include "models/cascade/cascade.h"
#include "models/parameters.h"

static unsigned quantized(const struct lk_pipeline *pipeline) {
    (void)pipeline;
    return 0;
}

static const struct lk_checkpoint *checkpoints(const struct lk_pipeline *pipeline) {
    return ((const struct lk_cascade *)pipeline->model)->checkpoints;
}

static const struct lk_tokenizer *tokenizer(const struct lk_pipeline *pipeline, int64_t *n_unseen) {
    *n_unseen = 0;
    return ((const struct lk_cascade *)pipeline->model)->tokenizer;
}

static void defaults(struct lk_request *request) {
    request->num_inference_steps = 20;
    request->guidance_scale = 4.0;
    request->decoder_steps = 10;
    request->max_sequence_length = LK_CLIP_IDS;
    request->seed = 42;
}

static const char *const kept[] = {NULL}; /* nothing is quantised */

const struct lk_family lk_family_cascade = {
    .title = "Stable Cascade",
    .bit = LK_FOR_CASCADE,
    .names = {"cascade", "cascade-lite"},
    .repositories = {"stabilityai/stable-cascade"},
    .pipeline_classes = {"StableCascadeDecoderPipeline", "StableCascadePriorPipeline", "StableCascadeCombinedPipeline"},
    .text_to_image = true,
    .open = lk_cascade_open,
    .close = lk_cascade_close,
    .kept = kept,
    .quantized = quantized,
    .checkpoints = checkpoints,
    .n_checkpoints = LK_CASCADE_CHECKPOINTS,
    .tokenizer = tokenizer,
    .defaults = defaults,
    .stages = &lk_cascade_stages,
};
