/* Attention weights are what attention gives of values that are 1 at the keys asked for and 0 elsewhere: the device's
 * own op computes them, and no matrix of weights is stored. */
#include "models/attended.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/ops.h"
#include "models/common/mmdit.h"
#include "models/family.h"
#include "models/tokenizer/tokenizer.h"

enum { OF_TOKENS, OF_ALL, N_COLUMNS }; /* of the values; the other columns are 0 */

struct watch {
    struct lk_attended *out;
    const struct lk_tokenizer *tokenizer;
    const char *prompt;
    int64_t n_unseen, n_ids, n_txt; /* ids before the first that the transformer is told of */
    int32_t *ids;
    bool *chosen;           /* [n_txt] */
    struct lk_tensor query; /* of the layer at hand, in place until its keys come */
    int step, layer;
    float *values;     /* [n, head_dim] */
    void *given;       /* [n_img, head_dim] in the compute dtype: weights of a head */
    int64_t n_reserve; /* of layers and weights */
};

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "attention: out of memory"); }

/* Bytes of the prompt among those of all ids: the last place, for templates go before it. */
static bool find_prompt(const struct watch *w, const char *bytes, size_t n, size_t *at) {
    const size_t length = strlen(w->prompt);
    for (*at = length <= n ? n - length + 1 : 0; (*at)-- > 0;)
        if (!memcmp(bytes + *at, w->prompt, length)) return true;
    return false;
}

static bool in_spans(const struct lk_attended *a, size_t first, size_t end) {
    for (int i = 0; i < a->n_spans; i++)
        if (first < a->spans[i].first + a->spans[i].n && a->spans[i].first < end) return true;
    return false;
}

/* begins [n_ids + 1]: where each id's bytes begin. */
static enum lk_code decode(const struct watch *w, struct lk_text *bytes, size_t *begins) {
    for (int64_t i = 0; i < w->n_ids; i++) {
        char *own;
        size_t n;
        LK_TRY(lk_tokenizer_decode(w->tokenizer, &w->ids[i], 1, false, &own, &n));
        begins[i] = bytes->n;
        lk_text_bytes(bytes, own, n);
        lk_free(own);
    }
    begins[w->n_ids] = bytes->n;
    return bytes->rc;
}

static enum lk_code choose(struct watch *w) {
    struct lk_text bytes = {0};
    size_t at = 0, *begins = lk_malloc(((size_t)w->n_ids + 1) * sizeof *begins);
    w->chosen = lk_calloc((size_t)w->n_txt, sizeof *w->chosen);
    enum lk_code rc = begins && w->chosen ? decode(w, &bytes, begins) : out_of_memory();
    bool whole = !rc && find_prompt(w, bytes.bytes, bytes.n, &at);
    for (int64_t i = 0; i < w->n_ids && whole; i++) {
        if (begins[i + 1] <= at || begins[i] == begins[i + 1]) continue;
        if (!in_spans(w->out, begins[i] < at ? 0 : begins[i] - at, begins[i + 1] - at)) continue;
        const int64_t row = i - w->n_unseen;
        whole = row >= 0 && row < w->n_txt;
        if (!whole) break;
        w->chosen[row] = true;
        w->out->n_tokens++;
    }
    if (!rc && (!whole || !w->out->n_tokens))
        rc = lk_fail(LK_E_INPUT,
                     "prompt \"%.80s\": expected its words among the tokens that the model is told of; it is cut off "
                     "by --max-sequence-length, or has characters that the tokenizer changes",
                     w->prompt);
    lk_text_free(&bytes);
    lk_free(begins);
    return rc;
}

static enum lk_code take_ids(struct watch *w, struct lk_device *dev, const struct lk_tensor *value) {
    w->n_ids = value->shape[0];
    w->ids = lk_malloc(lk_tensor_bytes(value));
    return w->ids ? lk_download(dev, w->ids, value) : out_of_memory();
}

/* Room for the layer, whose name stands in the trace's: "step.3.cond.double.0.key". */
static enum lk_code begin_layer(struct watch *w, const char *name, int64_t n, int64_t heads, int64_t head_dim) {
    struct lk_attended *a = w->out;
    const int step = atoi(name + strlen("step."));
    if (step != w->step || !a->n_steps) w->layer = 0, w->step = step, a->n_steps++;
    if (!w->values) {
        w->values = lk_calloc((size_t)(n * head_dim), sizeof *w->values);
        w->given = lk_malloc((size_t)(n * head_dim) * sizeof(float));
        if (!w->values || !w->given) return out_of_memory();
        for (int64_t i = 0; i < n; i++) {
            w->values[i * head_dim + OF_TOKENS] = i < w->n_txt && w->chosen[i];
            w->values[i * head_dim + OF_ALL] = 1;
        }
    }
    if (w->layer < a->n_layers) return LK_OK;
    if (w->n_reserve == a->n_layers) {
        w->n_reserve = 2 * w->n_reserve + 16;
        char(*layers)[24] = lk_realloc(a->layers, (size_t)w->n_reserve * sizeof *layers);
        if (layers) a->layers = layers;
        double *weights = lk_realloc(a->weights, (size_t)(w->n_reserve * heads) * sizeof *weights);
        if (weights) a->weights = weights;
        if (!layers || !weights) return out_of_memory();
    }
    const char *end = strrchr(name, '.'), *at = end;
    for (int dots = 0; at > name && dots < 2; at--) dots += at[-1] == '.';
    at += *at == '.' ? 1 : 0;
    a->n_heads = (int)heads;
    snprintf(a->layers[a->n_layers], sizeof *a->layers, "%.*s", (int)(end - at), at);
    memset(a->weights + a->n_layers++ * heads, 0, (size_t)heads * sizeof *a->weights);
    return LK_OK;
}

static double given_at(const struct watch *w, enum lk_dtype dtype, int64_t i) {
    return dtype == LK_F32 ? ((const float *)w->given)[i] : lk_bf16_to_f32(((const uint16_t *)w->given)[i]);
}

static void add_head(struct watch *w, const struct lk_tensor *given, int64_t head) {
    struct lk_attended *a = w->out;
    const int64_t n = given->shape[0], width = given->shape[2];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += given_at(w, given->dtype, i * width + OF_TOKENS);
        a->worst = fmax(a->worst, fabs(given_at(w, given->dtype, i * width + OF_ALL) - 1));
    }
    a->weights[w->layer * a->n_heads + head] += sum / (double)n / a->n_tokens;
}

/* A layer's queries and keys are there. Planned, too: what it takes of the arena must be counted. */
static enum lk_code look(struct watch *w, struct lk_device *dev, const char *name, const struct lk_tensor *key) {
    const int64_t n = key->shape[0], heads = key->shape[1], width = key->shape[2], n_img = n - w->n_txt;
    const bool planning = dev->kind == LK_DEVICE_PLAN;
    const size_t mark = lk_arena_mark(&dev->arena);
    const int64_t n_query = w->query.shape[0]; /* all rows, or of the last layer the picture's alone */
    struct lk_tensor values, given, q = LK_VIEW(&w->query, n_query, heads * width), k = LK_VIEW(key, n, heads * width);
    if (n_query != n && n_query != n_img)
        return lk_fail(LK_E_INTERNAL, "%s: %lld queries of %lld rows", name, (long long)n_query, (long long)n);
    if (!planning) LK_TRY(begin_layer(w, name, n, heads, width));
    LK_TRY(LK_NEW(&dev->arena, &values, key->dtype, n, width));
    LK_TRY(LK_NEW(&dev->arena, &given, key->dtype, n_img, 1, width));
    LK_TRY(lk_upload_rounded(dev, &values, w->values));
    const struct lk_tensor v = LK_VIEW(&values, n, 1, width), q_img = lk_tensor_rows(&q, n_query - n_img, n_img);
    for (int64_t h = 0; h < heads; h++) {
        struct lk_tensor q_head = lk_tensor_cols(&q_img, h * width, width),
                         k_head = lk_tensor_cols(&k, h * width, width);
        q_head = LK_VIEW(&q_head, n_img, 1, width), k_head = LK_VIEW(&k_head, n, 1, width);
        const struct lk_attention op = {
            .out = &given, .q = &q_head, .k = &k_head, .v = &v, .scale = 1.0f / sqrtf((float)width)};
        LK_TRY(lk_attention(dev, &op));
        if (planning) continue;
        LK_TRY(lk_download(dev, w->given, &given));
        add_head(w, &given, h);
    }
    w->layer++;
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static bool ends(const char *name, const char *end) {
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

static enum lk_code watch(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    struct watch *w = context;
    const bool planning = dev->kind == LK_DEVICE_PLAN;
    if (strstr(name, "uncond.")) return LK_OK;
    if (ends(name, ".query")) w->query = *value;
    if (ends(name, ".key")) return look(w, dev, name, value);
    if (ends(name, "text_encoder.ids") && !planning && !w->ids) return take_ids(w, dev, value);
    if (!ends(name, "prompt_embeds")) return LK_OK;
    w->n_txt = value->shape[0];
    if (planning) return LK_OK;
    return w->ids ? choose(w) : lk_fail(LK_E_USAGE, "attention: expected a prompt that is encoded here");
}

enum lk_code lk_attended_edit(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_request *request,
                              struct lk_attended *attended, struct lk_result *result) {
    struct watch w = {.out = attended, .prompt = request->prompt};
    *attended = (struct lk_attended){.spans = attended->spans, .n_spans = attended->n_spans};
    *result = (struct lk_result){0};
    if (request->n_images || request->prompt_embeds)
        return lk_fail(LK_E_USAGE, "attention: expected a picture from text alone, of a prompt that is encoded here");
    if (pipeline->family->text_to_image)
        return lk_fail(LK_E_USAGE,
                       "attention: of the cross-attention of %s it cannot be told; take FLUX.2, Qwen-Image or "
                       "Step1X-Edit",
                       pipeline->name);
    w.tokenizer = pipeline->family->tokenizer(pipeline, &w.n_unseen);
    dev->trace = watch;
    dev->trace_context = &w;
    dev->trace_plans = true;
    enum lk_code rc = lk_pipeline_edit(pipeline, dev, request, result);
    dev->trace = NULL;
    dev->trace_context = NULL;
    dev->trace_plans = false;
    for (int i = 0; i < attended->n_layers * attended->n_heads; i++) attended->weights[i] /= attended->n_steps;
    lk_free(w.ids);
    lk_free(w.chosen);
    lk_free(w.values);
    lk_free(w.given);
    return rc;
}

void lk_attended_free(struct lk_attended *attended) {
    lk_free(attended->layers);
    lk_free(attended->weights);
    *attended = (struct lk_attended){0};
}
