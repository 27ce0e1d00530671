/* Attention weights are what attention gives of values that are 1 at the keys asked for and 0 elsewhere: the device's
 * own op computes them, and no matrix of weights is stored. */
#include "models/attended_maps.h"

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

enum { OF_TOKENS, OF_ALL, OF_WORDS, N_COLUMNS }; /* of the values; then the tokens of maps */

struct watch {
    struct lk_attended *out;
    const struct lk_family *family;
    const struct lk_tokenizer *tokenizer;
    const char *prompt;
    int64_t n_unseen, n_ids, n_txt; /* ids before the first that the transformer is told of */
    int64_t n_latents;
    int32_t *ids, *ids_2; /* ids_2: of a second tokenizer, as many */
    bool *chosen, *words; /* [n_txt]: tokens of the spans, and of the prompt */
    struct {
        int64_t row;
        int word;
    } * tokens;       /* of maps: [n_map_tokens], a row once for each word */
    int *token_words; /* [n_map_tokens] */
    int n_map_tokens;
    size_t tokens_reserve;
    struct lk_heat_maps *maps;
    struct lk_tensor query; /* of the layer at hand, in place until its keys come */
    int step, layer;
    float *values, *weights; /* [n, head_dim]; of one column */
    void *given;             /* [n_img, head_dim] in the compute dtype: weights of a head */
    double *sums;            /* as out->weights: of all words */
    int *word_tokens;        /* [n_words]: how many tokens a word has */
    int64_t n_reserve[2];    /* of layers, of heads */
    size_t n_values;         /* room in values, weights and given */
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

static enum lk_code not_told(const struct watch *w) {
    return lk_fail(LK_E_INPUT,
                   "prompt \"%.80s\": expected its words among the tokens that the model is told of; it is cut off "
                   "by --max-sequence-length, or has characters that the tokenizer changes",
                   w->prompt);
}

static enum lk_code choose_row(struct watch *w, int64_t row, int word) {
    if (!w->chosen[row]) w->out->n_tokens++;
    w->chosen[row] = true;
    for (int i = 0; i < w->n_map_tokens; i++)
        if (w->tokens[i].row == row && w->tokens[i].word == word) return LK_OK;
    if (!w->out->n_words) return LK_OK;
    if (lk_grow(&w->tokens, &w->tokens_reserve, (size_t)w->n_map_tokens + 1, sizeof *w->tokens)) return out_of_memory();
    w->tokens[w->n_map_tokens].row = row;
    w->tokens[w->n_map_tokens++].word = word;
    return LK_OK;
}

/* In a chat: the prompt's bytes among those of all ids. */
static enum lk_code choose_in_chat(struct watch *w) {
    struct lk_text bytes = {0};
    size_t at = 0, *begins = lk_malloc(((size_t)w->n_ids + 1) * sizeof *begins);
    enum lk_code rc = begins ? decode(w, &bytes, begins) : out_of_memory();
    bool whole = !rc && find_prompt(w, bytes.bytes, bytes.n, &at);
    const size_t end = at + strlen(w->prompt);
    for (int64_t i = 0; i < w->n_ids && whole && !rc; i++) {
        const int64_t row = i - w->n_unseen;
        if (begins[i + 1] <= at || begins[i] == begins[i + 1]) continue;
        if (row >= 0 && row < w->n_txt && begins[i] < end) w->words[row] = true;
        if (!in_spans(w->out, begins[i] < at ? 0 : begins[i] - at, begins[i + 1] - at)) continue;
        whole = row >= 0 && row < w->n_txt;
        if (whole) rc = choose_row(w, row, 0);
    }
    if (!rc && !whole) rc = not_told(w);
    lk_text_free(&bytes);
    lk_free(begins);
    return rc;
}

/* How many ids the prompt's first n_bytes have, and that they are the first of all; -1 where they are not. */
static enum lk_code count_ids(const struct watch *w, size_t n_bytes, int64_t *out) {
    int32_t *ids;
    size_t n;
    LK_TRY(lk_tokenizer_encode(w->tokenizer, w->prompt, n_bytes, &ids, &n));
    const bool begins = (int64_t)n + 2 <= w->n_ids && !memcmp(ids, w->ids + 1, n * sizeof *ids);
    *out = begins ? (int64_t)n : -1;
    lk_free(ids);
    return LK_OK;
}

/* After CLIP's beginning, up to its end: pieces of words never reach into the next word. Row i is told of id i. */
static enum lk_code choose_in_clip(struct watch *w) {
    int32_t *ids;
    size_t n_words;
    LK_TRY(lk_tokenizer_encode(w->tokenizer, w->prompt, strlen(w->prompt), &ids, &n_words));
    lk_free(ids);
    for (int64_t i = 1; i < w->n_txt - 1 && i <= (int64_t)n_words; i++) w->words[i] = true;
    for (int i = 0; i < w->out->n_spans; i++) {
        const struct lk_span *span = &w->out->spans[i];
        int64_t first, end;
        LK_TRY(count_ids(w, span->first, &first));
        LK_TRY(count_ids(w, span->first + span->n, &end));
        if (first < 0 || end <= first) return not_told(w);
        if (w->ids_2 && memcmp(w->ids, w->ids_2, (size_t)(end + 1) * sizeof *w->ids) != 0)
            return lk_fail(LK_E_INPUT,
                           "prompt \"%.80s\": the model's two tokenizers make other tokens of what stands before a "
                           "word's end, as of \"!\" or of a second prompt: which token a key is of cannot be told",
                           w->prompt);
        for (int64_t row = first + 1; row <= end; row++) LK_TRY(choose_row(w, row, span->word));
    }
    return LK_OK;
}

static enum lk_code choose(struct watch *w) {
    w->chosen = lk_calloc((size_t)w->n_txt, sizeof *w->chosen);
    w->words = lk_calloc((size_t)w->n_txt, sizeof *w->words);
    if (!w->chosen || !w->words) return out_of_memory();
    LK_TRY(w->family->clip_prompts ? choose_in_clip(w) : choose_in_chat(w));
    if (!w->out->n_tokens) return not_told(w);
    if (!w->out->n_words) return LK_OK;
    w->token_words = lk_malloc((size_t)w->n_map_tokens * sizeof *w->token_words);
    w->word_tokens = lk_calloc((size_t)w->out->n_words, sizeof *w->word_tokens);
    if (!w->token_words || !w->word_tokens) return out_of_memory();
    for (int i = 0; i < w->n_map_tokens; i++) w->word_tokens[w->token_words[i] = w->tokens[i].word]++;
    return lk_heat_maps_new(&w->maps, w->token_words, w->n_map_tokens);
}

static enum lk_code take_ids(struct lk_device *dev, const struct lk_tensor *value, int32_t **ids, int64_t *n) {
    *n = value->shape[0];
    *ids = lk_malloc(lk_tensor_bytes(value));
    return *ids ? lk_download(dev, *ids, value) : out_of_memory();
}

/* What names the layer in a trace's name: "double.0" of "step.3.cond.double.0.key". */
static const char *layer_of(const char *name, int *length) {
    static const char *const branches[] = {"cond.", "positive."};
    const char *at = name + strlen("step.");
    at += strspn(at, "0123456789") + 1;
    for (size_t i = 0; i < sizeof branches / sizeof *branches; i++)
        if (!strncmp(at, branches[i], strlen(branches[i]))) at += strlen(branches[i]);
    *length = (int)(strrchr(name, '.') - at);
    return at;
}

/* Room for n rows and columns, and for the layer, whose name stands in the trace's. */
static enum lk_code begin_layer(struct watch *w, const char *name, int64_t n, int64_t heads) {
    struct lk_attended *a = w->out;
    const int step = atoi(name + strlen("step."));
    if (step != w->step || !a->n_steps) w->layer = 0, w->step = step, a->n_steps++;
    if ((size_t)n > w->n_values) {
        w->n_values = (size_t)n;
        lk_free(w->values), lk_free(w->weights), lk_free(w->given);
        w->values = lk_malloc((size_t)n * sizeof *w->values);
        w->weights = lk_malloc((size_t)n * sizeof *w->weights);
        w->given = lk_malloc((size_t)n * sizeof(float));
        if (!w->values || !w->weights || !w->given) return out_of_memory();
    }
    if (w->layer < a->n_layers) return LK_OK;
    const int n_cells = a->n_layers ? a->first[a->n_layers] : 0;
    if (w->n_reserve[0] == a->n_layers) {
        w->n_reserve[0] = 2 * w->n_reserve[0] + 16;
        char(*layers)[LK_LAYER_NAME] = lk_realloc(a->layers, (size_t)w->n_reserve[0] * sizeof *layers);
        if (layers) a->layers = layers;
        int *first = lk_realloc(a->first, (size_t)(w->n_reserve[0] + 1) * sizeof *first);
        if (first) a->first = first;
        if (!layers || !first) return out_of_memory();
        a->first[0] = 0;
    }
    if (w->n_reserve[1] < n_cells + heads) {
        double **all[] = {&a->weights, &a->shares, &w->sums};
        w->n_reserve[1] = 2 * (n_cells + heads);
        for (int i = 0; i < 3; i++) {
            double *values = lk_realloc(*all[i], (size_t)w->n_reserve[1] * sizeof *values);
            if (!values) return out_of_memory();
            *all[i] = values;
        }
        double *of_words = lk_realloc(a->word_weights, (size_t)(w->n_reserve[1] * a->n_words + 1) * sizeof *of_words);
        if (!of_words) return out_of_memory();
        a->word_weights = of_words;
    }
    int length;
    const char *layer = layer_of(name, &length);
    snprintf(a->layers[a->n_layers], LK_LAYER_NAME, "%.*s", length, layer);
    a->first[++a->n_layers] = n_cells + (int)heads;
    for (int i = n_cells; i < n_cells + heads; i++) a->weights[i] = w->sums[i] = 0;
    for (int i = n_cells * a->n_words; i < (n_cells + heads) * a->n_words; i++) a->word_weights[i] = 0;
    return LK_OK;
}

/* Column `column` of all that is asked for: 1 at the rows that it is about. */
static float value_at(const struct watch *w, int64_t row, int column) {
    const bool text = row < w->n_txt;
    if (column >= N_COLUMNS) return row == w->tokens[column - N_COLUMNS].row;
    return column == OF_ALL || (text && (column == OF_TOKENS ? w->chosen[row] : w->words[row]));
}

static double given_at(const struct watch *w, enum lk_dtype dtype, int64_t i) {
    return dtype == LK_F32 ? ((const float *)w->given)[i] : lk_bf16_to_f32(((const uint16_t *)w->given)[i]);
}

/* What a head gives in a column: the weights of its keys. */
static enum lk_code add_column(struct watch *w, const struct lk_tensor *given, int64_t head, int64_t at, int column) {
    struct lk_attended *a = w->out;
    const int64_t n = given->shape[0], width = given->shape[2];
    const int cell = a->first[w->layer] + (int)head;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double weight = given_at(w, given->dtype, i * width + at);
        w->weights[i] = (float)weight;
        sum += weight;
        if (column == OF_ALL) a->worst = fmax(a->worst, fabs(weight - 1));
    }
    if (column == OF_TOKENS) a->weights[cell] += sum / (double)n / a->n_tokens;
    if (column == OF_WORDS) w->sums[cell] += sum / (double)n;
    if (column < N_COLUMNS) return LK_OK;
    const int word = w->tokens[column - N_COLUMNS].word;
    a->word_weights[cell * a->n_words + word] += sum / (double)n / w->word_tokens[word];
    return lk_heat_maps_add(w->maps, cell, column - N_COLUMNS, w->weights, n);
}

/* The columns from `first` on, as many as a head is wide, of every head. v, given: [n, 1, width], [n_img, 1, width] */
static enum lk_code ask(struct watch *w, struct lk_device *dev, const struct lk_tensor *q, const struct lk_tensor *k,
                        int64_t heads, const struct lk_tensor *values, const struct lk_tensor *given, int first) {
    const int64_t n = k->shape[0], n_img = q->shape[0], width = given->shape[2];
    const bool planning = dev->kind == LK_DEVICE_PLAN;
    const int n_columns = planning ? 0 : N_COLUMNS + w->n_map_tokens;
    const struct lk_tensor v = LK_VIEW(values, n, 1, width);
    for (int64_t i = 0; i < n * width && !planning; i++) {
        const int64_t column = first + i % width;
        w->values[i] = column < n_columns ? value_at(w, i / width, (int)column) : 0;
    }
    LK_TRY(lk_upload_rounded(dev, values, w->values));
    for (int64_t h = 0; h < heads; h++) {
        struct lk_tensor q_head = lk_tensor_cols(q, h * width, width), k_head = lk_tensor_cols(k, h * width, width);
        q_head = LK_VIEW(&q_head, n_img, 1, width), k_head = LK_VIEW(&k_head, n, 1, width);
        const struct lk_attention op = {
            .out = given, .q = &q_head, .k = &k_head, .v = &v, .scale = 1.0f / sqrtf((float)width)};
        LK_TRY(lk_attention(dev, &op));
        if (planning) continue;
        LK_TRY(lk_download(dev, w->given, given));
        for (int64_t i = 0; i < width && first + i < n_columns; i++) LK_TRY(add_column(w, given, h, i, first + (int)i));
    }
    return LK_OK;
}

/* A layer's queries and keys are there, of text and picture or of the text alone. Planned, too: what it takes of the
 * arena must be counted. */
static enum lk_code look(struct watch *w, struct lk_device *dev, const char *name, const struct lk_tensor *key) {
    const int64_t n = key->shape[0], heads = key->shape[1], width = key->shape[2];
    const int64_t n_query = w->query.shape[0]; /* all rows, or of the last layer the picture's alone */
    const int64_t n_img = n == w->n_txt ? n_query : n - w->n_txt;
    const bool planning = dev->kind == LK_DEVICE_PLAN;
    const size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor values, given, q = LK_VIEW(&w->query, n_query, heads * width), k = LK_VIEW(key, n, heads * width);
    if (n_query != n && n_query != n_img)
        return lk_fail(LK_E_INTERNAL, "%s: %lld queries of %lld rows", name, (long long)n_query, (long long)n);
    if (!planning) LK_TRY(begin_layer(w, name, (n > n_img ? n : n_img) * width, heads));
    LK_TRY(LK_NEW(&dev->arena, &values, key->dtype, n, width));
    LK_TRY(LK_NEW(&dev->arena, &given, key->dtype, n_img, 1, width));
    const struct lk_tensor q_img = lk_tensor_rows(&q, n_query - n_img, n_img);
    for (int first = 0; first < N_COLUMNS + w->n_map_tokens; first += (int)width)
        LK_TRY(ask(w, dev, &q_img, &k, heads, &values, &given, first));
    w->layer++;
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static bool ends(const char *name, const char *end) {
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

static bool of_another_branch(const char *name) {
    return strstr(name, "uncond.") || strstr(name, "negative.") || strstr(name, "concept.");
}

static enum lk_code watch(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    struct watch *w = context;
    const bool planning = dev->kind == LK_DEVICE_PLAN;
    int64_t n;
    if (of_another_branch(name)) return LK_OK;
    if (ends(name, ".query")) w->query = *value;
    if (ends(name, ".key")) return look(w, dev, name, value);
    if (!strcmp(name, "noise")) w->n_latents = value->shape[0];
    if (ends(name, "text_encoder.ids") && !planning && !w->ids) return take_ids(dev, value, &w->ids, &w->n_ids);
    if (ends(name, "text_encoder_2.ids") && !planning && !w->ids_2) return take_ids(dev, value, &w->ids_2, &n);
    if (!ends(name, "prompt_embeds")) return LK_OK;
    w->n_txt = value->shape[0];
    if (planning) return LK_OK;
    return w->ids ? choose(w) : lk_fail(LK_E_USAGE, "attention: expected a prompt that is encoded here");
}

/* The sums over the steps become means. */
static void finish(const struct watch *w) {
    struct lk_attended *a = w->out;
    const int n = a->n_layers ? a->first[a->n_layers] : 0;
    for (int i = 0; i < n; i++) a->shares[i] = w->sums[i] > 0 ? a->weights[i] / w->sums[i] : 0;
    for (int i = 0; i < n; i++) a->weights[i] /= a->n_steps;
    for (int i = 0; i < n * a->n_words; i++) a->word_weights[i] /= a->n_steps;
}

static enum lk_code finish_maps(const struct watch *w, const struct lk_image *image) {
    const int across = (int)llround(sqrt((double)w->n_latents * image->width / image->height));
    return lk_heat_maps_finish(w->maps, (int)(w->n_latents / across), across, w->out);
}

enum lk_code lk_attended_edit(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_request *request,
                              struct lk_attended *attended, struct lk_result *result) {
    struct watch w = {.out = attended, .family = pipeline->family, .prompt = request->prompt};
    *attended =
        (struct lk_attended){.spans = attended->spans, .n_spans = attended->n_spans, .n_words = attended->n_words};
    *result = (struct lk_result){0};
    if (request->n_images || request->prompt_embeds)
        return lk_fail(LK_E_USAGE, "attention: expected a picture from text alone, of a prompt that is encoded here");
    if (pipeline->family->text_to_image && !pipeline->family->clip_prompts)
        return lk_fail(LK_E_USAGE, "attention: cannot be told of %s", pipeline->name);
    if (attended->n_words && !pipeline->family->clip_prompts)
        return lk_fail(LK_E_USAGE,
                       "attention: maps are made of cross-attention, which %s has not; take Stable Diffusion",
                       pipeline->name);
    w.tokenizer = pipeline->family->tokenizer(pipeline, &w.n_unseen);
    dev->trace = watch;
    dev->trace_context = &w;
    dev->trace_plans = true;
    enum lk_code rc = lk_pipeline_edit(pipeline, dev, request, result);
    dev->trace = NULL;
    dev->trace_context = NULL;
    dev->trace_plans = false;
    if (!rc) finish(&w);
    if (!rc && attended->n_words) rc = finish_maps(&w, &result->image);
    lk_heat_maps_free(w.maps);
    lk_free(w.ids);
    lk_free(w.ids_2);
    lk_free(w.chosen);
    lk_free(w.words);
    lk_free(w.tokens);
    lk_free(w.token_words);
    lk_free(w.word_tokens);
    lk_free(w.values);
    lk_free(w.weights);
    lk_free(w.given);
    lk_free(w.sums);
    return rc;
}

void lk_attended_free(struct lk_attended *attended) {
    lk_free(attended->layers);
    lk_free(attended->first);
    lk_free(attended->weights);
    lk_free(attended->shares);
    lk_free(attended->word_weights);
    lk_free(attended->maps);
    *attended = (struct lk_attended){0};
}
