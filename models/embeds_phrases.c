/* Phrases as the transformer is told of them: each is encoded as a prompt, in the model's chat template, and an empty
 * prompt tells where in the template a phrase's tokens stand. */
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "models/embeds.h"
#include "weights/checkpoint.h"

#define CANVAS_SIDE 1024
#define CANVAS_GRAY 128
#define TOGETHER    32 /* phrases whose prompts are in memory at once */

/* Ids of the prompts, in the order in which they are encoded. */
struct seen {
    struct {
        int32_t *ids;
        int64_t n;
    } * list;
    int n, n_most;
};

static enum lk_code take_ids(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    static const char ending[] = "text_encoder.ids";
    struct seen *seen = context;
    size_t length = strlen(name);
    if (length < sizeof ending - 1 || strcmp(name + length - (sizeof ending - 1), ending)) return LK_OK;
    if (seen->n == seen->n_most) return lk_fail(LK_E_INTERNAL, "phrases: more prompts were encoded than given");
    int32_t *ids = lk_malloc(lk_tensor_bytes(value));
    if (!ids) return lk_fail(LK_E_NOMEM, "phrases: out of memory");
    seen->list[seen->n].ids = ids;
    seen->list[seen->n++].n = value->shape[0];
    return lk_download(dev, ids, value);
}

/* The rows of a phrase among its prompt's: what its ids have between the beginning and the end of the empty prompt's.
 * Rows are the last of the ids, of which padding is the first. */
static bool find_rows(const struct seen *seen, const struct lk_kept *const *prompts, int i, int empty, int64_t *first,
                      int64_t *n) {
    const int64_t pad = prompts[i]->n_pad, empty_pad = prompts[empty]->n_pad;
    const int64_t n_ids = seen->list[i].n - pad, n_empty = seen->list[empty].n - empty_pad;
    const int32_t *ids = seen->list[i].ids + pad, *without = seen->list[empty].ids + empty_pad;
    int64_t common = 0, n_rows = prompts[i]->tensor.shape[0];
    while (common < n_ids && common < n_empty && ids[common] == without[common]) common++;
    *first = common + pad - (seen->list[i].n - n_rows);
    *n = n_ids - n_empty;
    return *n > 0 && *first >= 0 && *first + *n <= n_rows;
}

static void mean_rows(const struct lk_tensor *t, int64_t first, int64_t n, double *out) {
    const int64_t width = t->shape[1];
    for (int64_t k = first * width; k < (first + n) * width; k++) {
        float v = t->dtype == LK_F32 ? ((const float *)t->data)[k] : lk_bf16_to_f32(((const uint16_t *)t->data)[k]);
        out[k % width] += (double)v / (double)n;
    }
}

/* A phrase of CLIP: the words between its beginning and its end, or of two encoders the projected state of the second,
 * which is the last row; its columns behind are 0. */
static enum lk_code read_clip(const struct lk_kept *k, double *out) {
    const int64_t n_words = k->tensor.shape[0] - k->n_pad - k->n_behind[0] - 1;
    if (k->split)
        mean_rows(&k->tensor, k->tensor.shape[0] - 1, 1, out);
    else if (n_words > 0)
        mean_rows(&k->tensor, k->n_pad, n_words, out);
    return n_words > 0 ? LK_OK : lk_fail(LK_E_INPUT, "phrases: expected words, got none");
}

/* kept: what was encoded, the last one first; of Step1X-Edit's two entries of a prompt the first is the encoder's. */
static enum lk_code read_kept(const struct lk_kept *kept, const struct seen *seen, const char *const *phrases, int n,
                              bool clip, struct lk_phrases *out) {
    int n_kept = 0;
    for (const struct lk_kept *k = kept; k; k = k->next) n_kept += k->prompt;
    const int each = n_kept / (n + 1);
    if (seen->n != n + 1 || !each || n_kept % (n + 1))
        return lk_fail(LK_E_INPUT, "phrases: %d of %d differ for the text encoder; leave out those that are alike",
                       seen->n ? seen->n - 1 : 0, n);
    const struct lk_kept **prompts = lk_calloc((size_t)n + 1, sizeof *prompts);
    if (!prompts) return lk_fail(LK_E_NOMEM, "phrases: out of memory");
    for (const struct lk_kept *k = kept; k; k = k->next)
        if (k->prompt && --n_kept % each == 0) prompts[n_kept / each] = k;
    out->width = prompts[0]->tensor.shape[1];
    out->projected = clip && prompts[0]->split;
    out->means = lk_calloc((size_t)(n * out->width), sizeof *out->means);
    enum lk_code rc = out->means ? LK_OK : lk_fail(LK_E_NOMEM, "phrases: out of memory");
    for (int i = 0; i < n && !rc; i++) {
        int64_t first, n_rows;
        if (clip)
            rc = read_clip(prompts[i], out->means + i * out->width);
        else if (find_rows(seen, prompts, i, n, &first, &n_rows))
            mean_rows(&prompts[i]->tensor, first, n_rows, out->means + i * out->width);
        else
            rc = lk_fail(LK_E_INPUT,
                         "phrase \"%.80s\": its tokens cannot be told from the chat's around them; expected a few "
                         "words that fit into the model's prompt",
                         phrases[i]);
    }
    lk_free(prompts);
    return rc;
}

/* The request that all share; a model that edits only is given a gray canvas. */
static enum lk_code make_request(struct lk_pipeline *pipeline, const struct lk_device *dev, struct lk_image *canvas,
                                 struct lk_request *request) {
    struct lk_plan plan;
    lk_request_init(request, pipeline);
    if (request->true_cfg_scale > 1) request->true_cfg_scale = 1;
    if (pipeline->family->clip_prompts) request->guidance_scale = 1;
    if (lk_pipeline_plan(pipeline, dev, request, &plan) != LK_E_USAGE) return LK_OK;
    LK_TRY(lk_image_new(canvas, CANVAS_SIDE, CANVAS_SIDE, 3));
    memset(canvas->pixels, CANVAS_GRAY, (size_t)CANVAS_SIDE * CANVAS_SIDE * 3);
    request->images = canvas;
    request->n_images = 1;
    return LK_OK;
}

static enum lk_code encode(struct lk_pipeline *pipeline, struct lk_device *dev, const char *const *phrases, int n,
                           struct lk_request *requests, struct lk_queued *queued, struct lk_queued **jobs,
                           struct lk_kept **kept) {
    for (int i = 0; i <= n; i++) {
        if (i) requests[i] = requests[0];
        requests[i].prompt = i < n ? phrases[i] : "";
        queued[i].request = &requests[i];
        jobs[i] = &queued[i];
    }
    enum lk_code rc = lk_pipeline_edit_queue(
        pipeline, dev, &(struct lk_queue){.jobs = jobs, .n_jobs = n + 1, .jobs_per_visit = 1, .embeds = kept});
    for (int i = 0; rc == LK_E_PARTIAL && i <= n; i++)
        if (queued[i].error.code) rc = lk_error_set(&queued[i].error);
    return rc;
}

static enum lk_code embed_some(struct lk_pipeline *pipeline, struct lk_device *dev, const char *const *phrases, int n,
                               struct lk_phrases *out) {
    struct seen seen = {.n_most = n + 1};
    struct lk_image canvas = {0};
    struct lk_kept *kept = NULL;
    lk_trace_fn *trace = dev->trace;
    void *context = dev->trace_context;
    *out = (struct lk_phrases){0};
    struct lk_request *requests = lk_calloc((size_t)n + 1, sizeof *requests);
    struct lk_queued *queued = lk_calloc((size_t)n + 1, sizeof *queued),
                     **jobs = lk_calloc((size_t)n + 1, sizeof *jobs);
    seen.list = lk_calloc((size_t)n + 1, sizeof *seen.list);
    enum lk_code rc = requests && queued && jobs && seen.list ? LK_OK : lk_fail(LK_E_NOMEM, "phrases: out of memory");
    if (!rc) rc = make_request(pipeline, dev, &canvas, &requests[0]);
    dev->trace = take_ids;
    dev->trace_context = &seen;
    if (!rc) rc = encode(pipeline, dev, phrases, n, requests, queued, jobs, &kept);
    dev->trace = trace;
    dev->trace_context = context;
    if (!rc) rc = read_kept(kept, &seen, phrases, n, pipeline->family->clip_prompts, out);
    out->canvas = canvas.pixels != NULL;
    for (int i = 0; i < seen.n; i++) lk_free(seen.list[i].ids);
    lk_kept_free(&kept);
    lk_image_free(&canvas);
    lk_free(requests);
    lk_free(queued);
    lk_free(jobs);
    lk_free(seen.list);
    if (rc) lk_phrases_free(out);
    return rc;
}

enum lk_code lk_phrases_embed(struct lk_pipeline *pipeline, struct lk_device *dev, const char *const *phrases, int n,
                              struct lk_phrases *out) {
    *out = (struct lk_phrases){0};
    if (pipeline->family->text_to_image && !pipeline->family->clip_prompts)
        return lk_fail(LK_E_USAGE, "phrases: not told by the text encoders of %s", pipeline->name);
    const int second = lk_family_n_checkpoints(pipeline->family) > 3 ? 3 : 0; /* whose state is projected */
    enum lk_code rc = lk_checkpoint_identity(&pipeline->family->checkpoints(pipeline)[second], out->text_encoder);
    for (int first = 0; first < n && !rc; first += TOGETHER) {
        const int n_some = n - first < TOGETHER ? n - first : TOGETHER;
        struct lk_phrases some;
        rc = embed_some(pipeline, dev, phrases + first, n_some, &some);
        if (rc) break;
        out->width = some.width;
        out->canvas = some.canvas;
        out->projected = some.projected;
        if (!out->means) out->means = lk_calloc((size_t)(n * some.width), sizeof *out->means);
        if (out->means)
            memcpy(out->means + first * some.width, some.means, (size_t)(n_some * some.width) * sizeof *some.means);
        else
            rc = lk_fail(LK_E_NOMEM, "phrases: out of memory");
        lk_phrases_free(&some);
    }
    if (rc) lk_phrases_free(out);
    return rc;
}

void lk_phrases_free(struct lk_phrases *phrases) {
    lk_free(phrases->means);
    phrases->means = NULL;
}
