/* Step1X-Edit as a family of models/pipeline.h. */
#include "engine/base/alloc.h"
#include "models/common/queue.h"
#include "models/step1x/instructions.h"
#include "models/step1x/region.h"
#include "models/step1x/step1x.h"
#include "models/parameters.h"

static void defaults(struct lk_request *request) {
    request->num_inference_steps = LK_STEP1X_STEPS;
    request->true_cfg_scale = 6.0;
    request->seed = 42;
    request->size_level = 1024;
    request->max_sequence_length = LK_STEP1X_MAX_TOKENS;
    request->max_try_cnt = 3;
}

/* A run of v1p1's weights through v1p2's steps would give a wrong picture without an error. */
static enum lk_code refuse_v1p1(const struct lk_pipeline *pipeline) {
    const struct lk_step1x *m = pipeline->model;
    if (!m->v1p1) return LK_OK;
    return lk_fail(LK_E_CONFIG_VALUE,
                   "%s: class Step1XEditPipeline without text_token_mapping is Step1X-Edit-v1p1: its prompt template, "
                   "its padding of prompts to 640 rows that are masked in the connector, and its positions are not "
                   "implemented; it can be planned, edits need Step1X-Edit-v1p2",
                   pipeline->folder ? pipeline->folder : pipeline->name);
}

/* Rounds follow from each other's pictures: such a job passes through all stages by itself. */
static enum lk_code edit_thinking(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_request *request,
                                  struct lk_result *result) {
    struct lk_step1x_instructions instructions;
    LK_TRY(lk_step1x_instructions_read(&instructions, request->prompts_file, &lk_step1x_released_rules));
    enum lk_code rc = lk_step1x_think_and_edit(pipeline, dev, request, &instructions, result);
    lk_step1x_instructions_free(&instructions);
    return rc;
}

static bool thinks(const struct lk_queued *job) { return job->request->thinking_mode || job->request->reflection_mode; }

static enum lk_code edit(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_queue *queue) {
    struct lk_queued **plain = lk_malloc(((size_t)queue->n_jobs + 1) * sizeof *plain);
    struct lk_queue rest = *queue;
    rest.jobs = plain;
    rest.n_jobs = 0;
    enum lk_code rc = plain ? refuse_v1p1(pipeline) : lk_fail(LK_E_NOMEM, "edit: out of memory");
    for (int i = 0; !rc && i < queue->n_jobs; i++)
        if (!thinks(queue->jobs[i])) plain[rest.n_jobs++] = queue->jobs[i];
    if (!rc) rc = lk_stages_run(&lk_step1x_stages, pipeline, dev, &rest);
    lk_free(plain);
    for (int i = 0; !rc && i < queue->n_jobs; i++) {
        struct lk_queued *job = queue->jobs[i];
        if (job->ended || !thinks(job)) continue;
        if (queue->embeds || job->request->prompt_embeds)
            rc = lk_fail(LK_E_USAGE, "prompt_embeds: thinking and reflection write prompts of their own, which are "
                                     "encoded as they come; leave one of the two out");
        else
            rc = edit_thinking(pipeline, dev, job->request, &job->result);
        rc = lk_queued_end(queue, job, rc);
    }
    return rc;
}

static const struct lk_tokenizer *tokenizer(const struct lk_pipeline *pipeline, int64_t *n_unseen) {
    *n_unseen = LK_STEP1X_PREFIX_TOKENS;
    return ((const struct lk_step1x *)pipeline->model)->tokenizer;
}

const struct lk_family lk_family_step1x = {
    .title = "Step1X-Edit",
    .bit = LK_FOR_STEP1X,
    .names = {"step1x-v1p2", "step1x-v1p1"},
    .repositories = {"stepfun-ai/Step1X-Edit-v1p2", "stepfun-ai/Step1X-Edit-v1p1-diffusers"},
    .only_planned = "step1x-v1p1",
    .pipeline_classes = {"Step1XEditPipeline", "Step1XEditPipelineV1P2"},
    .open = lk_step1x_open,
    .close = lk_step1x_close,
    .kept = lk_step1x_kept,
    .quantized = lk_step1x_quantized,
    .checkpoints = lk_step1x_checkpoints,
    .tokenizer = tokenizer,
    .made_for_steps = LK_STEP1X_STEPS,
    .defaults = defaults,
    .stages = &lk_step1x_stages,
    .edit = edit,
};
