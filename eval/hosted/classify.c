/* What a reply of the images API means. Services say no in many ways; what is no refusal by its code or its words is a
 * fault, which says nothing of the model. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/log.h"
#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "eval/document/table_print.h"
#include "eval/hosted/asked.h"
#include "eval/hosted/images.h"

enum { BLACK = 2, BLANK = 4 };
static const double BLURRED = 0.02;

const char *lk_placeholder_key(int placeholder) {
    static const char *const keys[LK_N_PLACEHOLDERS] = {"", "black", "blank", "repeated"};
    return keys[placeholder];
}

static enum lk_placeholder look(const struct lk_image *image, int n_colours) {
    const size_t n = (size_t)image->width * (size_t)image->height, n_channels = (size_t)image->channels;
    int highest = 0, widest = 0;
    for (int c = 0; c < n_colours; c++) {
        int low = 255, high = 0;
        for (size_t i = 0; i < n; i++) {
            const int value = image->pixels[i * n_channels + (size_t)c];
            low = value < low ? value : low;
            high = value > high ? value : high;
        }
        highest = high > highest ? high : highest;
        widest = high - low > widest ? high - low : widest;
    }
    return highest <= BLACK ? LK_PLACEHOLDER_BLACK : widest <= BLANK ? LK_PLACEHOLDER_BLANK : LK_NO_PLACEHOLDER;
}

static double luma(const struct lk_image *image, int n_colours, int x, int y) {
    const uint8_t *p = image->pixels + ((size_t)y * (size_t)image->width + (size_t)x) * (size_t)image->channels;
    return n_colours == 1 ? p[0] : 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
}

static double sharpness(const struct lk_image *image, int n_colours) {
    double sum = 0, squares = 0, n = 0;
    for (int y = 1; y + 1 < image->height; y++)
        for (int x = 1; x + 1 < image->width; x++) {
            const double l = luma(image, n_colours, x - 1, y) + luma(image, n_colours, x + 1, y) +
                             luma(image, n_colours, x, y - 1) + luma(image, n_colours, x, y + 1) -
                             4 * luma(image, n_colours, x, y);
            sum += l, squares += l * l, n++;
        }
    return n > 0 ? squares / n - sum / n * (sum / n) : 0;
}

enum lk_code lk_picture_signs_of(const struct lk_image *image, struct lk_picture_signs *out) {
    const size_t n = (size_t)image->width * (size_t)image->height * (size_t)image->channels;
    const int n_colours = image->channels < 3 ? 1 : 3, size[3] = {image->width, image->height, image->channels};
    char *bytes = lk_malloc(n + sizeof size);
    if (!bytes) return lk_fail(LK_E_NOMEM, "out of memory for the digest of a picture");
    memcpy(bytes, size, sizeof size);
    memcpy(bytes + sizeof size, image->pixels, n);
    *out = (struct lk_picture_signs){.placeholder = look(image, n_colours), .sharpness = sharpness(image, n_colours)};
    lk_sha256(bytes, n + sizeof size, out->sha256);
    lk_free(bytes);
    return LK_OK;
}

static int by_model_and_pixels(const void *a, const void *b) {
    const struct lk_picture_signs *x = *(struct lk_picture_signs *const *)a, *y = *(struct lk_picture_signs *const *)b;
    const int order = strcmp(x->model, y->model);
    return order ? order : strcmp(x->sha256, y->sha256);
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Those of n sorted pictures of one model that are the same for different prompts. */
static void find_repeated(struct lk_picture_signs **list, size_t n) {
    for (size_t from = 0, to; from < n; from = to) {
        bool differ = false;
        for (to = from; to < n && !strcmp(list[to]->sha256, list[from]->sha256); to++)
            differ |= strcmp(list[to]->prompt, list[from]->prompt) != 0;
        for (size_t i = from; i < to && differ; i++)
            if (!list[i]->placeholder) list[i]->placeholder = LK_PLACEHOLDER_REPEATED;
    }
}

static void find_blurred(struct lk_picture_signs **list, size_t n, double *room) {
    size_t n_pictures = 0;
    for (size_t i = 0; i < n; i++)
        if (!list[i]->placeholder) room[n_pictures++] = list[i]->sharpness;
    if (!n_pictures) return;
    qsort(room, n_pictures, sizeof *room, ascending);
    const double median = (room[(n_pictures - 1) / 2] + room[n_pictures / 2]) / 2;
    for (size_t i = 0; i < n; i++) list[i]->blurred = !list[i]->placeholder && list[i]->sharpness < BLURRED * median;
}

enum lk_code lk_picture_signs_compare(struct lk_picture_signs *list, size_t n) {
    struct lk_picture_signs **sorted = lk_malloc((n + 1) * sizeof *sorted);
    double *room = lk_malloc((n + 1) * sizeof *room);
    const bool ok = sorted && room;
    for (size_t i = 0; ok && i < n; i++) sorted[i] = &list[i];
    if (ok && n) qsort(sorted, n, sizeof *sorted, by_model_and_pixels);
    for (size_t from = 0, to; ok && from < n; from = to) {
        for (to = from; to < n && !strcmp(sorted[to]->model, sorted[from]->model);) to++;
        find_repeated(sorted + from, to - from);
        find_blurred(sorted + from, to - from, room);
    }
    lk_free(sorted);
    lk_free(room);
    return ok ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for a comparison of pictures");
}

static const char *const outcomes[LK_N_OUTCOMES] = {"made", "refused", "placeholder", "fault"};
static const struct {
    const char *key;
    bool number;
} cells[LK_N_ASKED_CELLS] = {[LK_ASKED_STAGE] = {"stage", false},
                             [LK_ASKED_CODE] = {"code", false},
                             [LK_ASKED_HTTP_STATUS] = {"http_status", true},
                             [LK_ASKED_WORDS] = {"words", false},
                             [LK_ASKED_REQUEST_ID] = {"request_id", false},
                             [LK_ASKED_LATENCY_MS] = {"latency_ms", true},
                             [LK_ASKED_REVISED_PROMPT] = {"revised_prompt", false},
                             [LK_ASKED_N_SENT] = {"n_sent", true},
                             [LK_ASKED_AT] = {"asked_at", false},
                             [LK_ASKED_API_MODEL] = {"api_model", false}};

const char *lk_outcome_key(int outcome) { return outcomes[outcome]; }
const char *lk_asked_key(int cell) { return cells[cell].key; }

int lk_outcome_parse(const char *text) {
    if (!*text) return LK_OUTCOME_MADE;
    for (int i = 0; i < LK_N_OUTCOMES; i++)
        if (!strcmp(text, outcomes[i])) return i;
    return -1;
}

void lk_asked_csv_header(struct lk_text *out) {
    lk_text_add(out, ",outcome");
    for (int i = 0; i < LK_N_ASKED_CELLS; i++) lk_text_add(out, ",%s", cells[i].key);
}

void lk_asked_csv(const struct lk_asked *asked, struct lk_text *out) {
    lk_text_add(out, ",%s", outcomes[asked->outcome]);
    for (int i = 0; i < LK_N_ASKED_CELLS; i++) {
        lk_text_add(out, ",");
        if (asked->cells[i]) lk_print_csv_field(out, asked->cells[i], "");
    }
}

void lk_asked_json(const struct lk_asked *asked, struct lk_text *out) {
    lk_text_add(out, "{\"outcome\":\"%s\"", outcomes[asked->outcome]);
    for (int i = 0; i < LK_N_ASKED_CELLS; i++) {
        const char *text = asked->cells[i];
        if (!text || !*text) continue;
        lk_text_add(out, ",\"%s\":", cells[i].key);
        if (cells[i].number && !text[strspn(text, "0123456789")])
            lk_text_add(out, "%s", text);
        else
            lk_text_json(out, text);
    }
    lk_text_add(out, "}");
}

static bool is_one_of(const char *text, const char *const *list) {
    for (; *list; list++)
        if (!strcmp(text, *list)) return true;
    return false;
}

static bool has_one_of(const char *text, const char *const *list) {
    for (; *list; list++)
        if (strcasestr(text, *list)) return true;
    return false;
}

static const cJSON *member(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

enum lk_code lk_image_answer_set(struct lk_image_answer *a, enum lk_asked_cell cell, const char *text,
                                 const struct lk_http_secrets *secrets) {
    char *copy = lk_strdup(text);
    if (!copy) return lk_fail(LK_E_NOMEM, "out of memory for an answer");
    lk_http_mask(copy, secrets);
    for (char *at = copy; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f) *at = ' ';
    lk_free(a->texts[cell]);
    a->asked.cells[cell] = a->texts[cell] = copy;
    return LK_OK;
}

/* An error of the request that is a refusal, as services name it or put it in words. *code: the service's own. */
static bool is_refusal(const cJSON *root, const char **code) {
    static const char *const codes[] = {"content_policy_violation",
                                        "moderation_blocked",
                                        "image_content_policy_violation",
                                        "content_filter",
                                        "contentFilter",
                                        "safety_violation",
                                        "image_generation_user_error",
                                        NULL};
    static const char *const words[] = {"rejected as a result of our safety system",
                                        "safety_violations",
                                        "content policy",
                                        "content_policy",
                                        "request moderated",
                                        "content moderated",
                                        NULL};
    const cJSON *error = member(root, "error");
    const char *texts[] = {lk_http_string(error, "code"), lk_http_string(error, "type"), lk_http_string(root, "code"),
                           lk_http_string(root, "type")};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (is_one_of(texts[i], codes)) {
            *code = texts[i];
            return true;
        }
    const char *said[] = {lk_http_string(error, "message"), cJSON_IsString(error) ? error->valuestring : "",
                          lk_http_string(root, "message"), lk_http_string(root, "detail")};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (has_one_of(said[i], words)) {
            const bool names = texts[0][strspn(texts[0], "0123456789")]; /* relays repeat the status there */
            *code = names ? texts[0] : "in_words";
            return true;
        }
    return false;
}

/* A reply of status 200 that is a refusal all the same. */
static bool is_filtered(const cJSON *root, const cJSON *first, const char **code, const char **stage) {
    const char *reason = lk_http_string(first, "finish_reason"), *state = lk_http_string(root, "status");
    *stage = "output";
    if (!*reason) reason = lk_http_string(root, "finish_reason");
    const char *filtered = lk_http_string(first, "filteredReason");
    if (!*filtered) filtered = lk_http_string(root, "filteredReason");
    if (!strcmp(state, "Request Moderated")) *stage = "input";
    *code = !strcmp(reason, "CONTENT_FILTERED") || !strcmp(reason, "content_filter")     ? reason
            : !strcmp(state, "Request Moderated") || !strcmp(state, "Content Moderated") ? state
            : *filtered                                                                  ? filtered
                                                                                         : NULL;
    return *code != NULL;
}

/* The reply without its pictures, for whoever revises these rules. */
static enum lk_code keep_body(const cJSON *root, const struct lk_text *readable, const struct lk_http_secrets *secrets,
                              struct lk_image_answer *out) {
    cJSON *copy = root ? cJSON_Duplicate(root, true) : NULL, *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(copy, "data")) if (member(item, "b64_json"))
        cJSON_ReplaceItemInObjectCaseSensitive(item, "b64_json", cJSON_CreateString("(a picture)"));
    char *text = copy ? cJSON_PrintUnformatted(copy) : lk_strndup(readable->n ? readable->bytes : "", readable->n);
    out->body.n = 0;
    if (text) {
        lk_http_mask(text, secrets);
        const size_t n = strlen(text);
        lk_text_bytes(&out->body, text, n < LK_IMAGES_BODY_BYTES ? n : LK_IMAGES_BODY_BYTES);
    }
    if (copy)
        cJSON_free(text);
    else
        lk_free(text);
    cJSON_Delete(copy);
    return text ? out->body.rc : lk_fail(LK_E_NOMEM, "out of memory for an answer");
}

static enum lk_http_verdict refuse(struct lk_image_answer *out, const char *stage, const char *code, const char *words,
                                   const struct lk_http_secrets *secrets) {
    out->asked.outcome = LK_OUTCOME_REFUSED;
    lk_image_answer_set(out, LK_ASKED_STAGE, stage, secrets);
    lk_image_answer_set(out, LK_ASKED_CODE, code, secrets);
    lk_image_answer_set(out, LK_ASKED_WORDS, words, secrets);
    snprintf(out->error, sizeof out->error, "refused (%.60s): %.200s", out->asked.cells[LK_ASKED_CODE],
             out->asked.cells[LK_ASKED_WORDS]);
    return LK_HTTP_TAKEN;
}

/* Status 200. */
static enum lk_http_verdict read_pictures(const struct lk_http_reply *r, const struct lk_http_secrets *secrets,
                                          const char *said, struct lk_image_answer *out, struct lk_images_reply *parts,
                                          char why[LK_HTTP_WHY_BYTES]) {
    const cJSON *data = member(parts->root, "data"), *first = cJSON_GetArrayItem(data, 0);
    const char *code, *stage, *refusal, *words = cJSON_IsObject(member(parts->root, "error")) ? said : "";
    if (is_filtered(parts->root, first, &code, &stage)) return refuse(out, stage, code, words, secrets);
    if (is_refusal(parts->root, &refusal)) return refuse(out, "output", refusal, said, secrets);
    if (cJSON_IsArray(data) && !first) return refuse(out, "output", "no_picture", words, secrets);
    parts->b64 = lk_http_string(first, "b64_json");
    parts->url = lk_http_string(first, "url");
    if (*lk_http_string(first, "revised_prompt"))
        lk_image_answer_set(out, LK_ASKED_REVISED_PROMPT, lk_http_string(first, "revised_prompt"), secrets);
    if (*parts->b64 || *parts->url) return LK_HTTP_TAKEN;
    snprintf(why, LK_HTTP_WHY_BYTES, "%.160s: status 200: expected data[0].b64_json or url, got none: %.200s",
             r->address, said);
    return LK_HTTP_ALONE; /* another request would be another picture to pay for */
}

static enum lk_http_verdict judge_status(const struct lk_http_reply *r, const cJSON *root) {
    const long s = r->status;
    const char *code = lk_http_string(member(root, "error"), "code");
    if (!strcmp(code, "insufficient_quota") || (s >= 300 && s < 400)) return LK_HTTP_STOP;
    if (s == 401 || s == 402 || s == 403 || s == 404) return LK_HTTP_STOP;
    if (r->should_retry) return r->should_retry > 0 ? LK_HTTP_AGAIN : LK_HTTP_ALONE;
    return s == 408 || s == 409 || s == 429 || s >= 500 ? LK_HTTP_AGAIN : LK_HTTP_REQUEST;
}

static enum lk_http_verdict read_error(const struct lk_http_reply *r, const struct lk_http_secrets *secrets,
                                       const char *said, const cJSON *root, struct lk_image_answer *out,
                                       char why[LK_HTTP_WHY_BYTES]) {
    const char *code = "", *param = lk_http_string(member(root, "error"), "param");
    const long s = r->status;
    const bool may_refuse = s == 400 || s == 403 || s == 422 || s == 451;
    if (may_refuse && is_refusal(root, &code)) return refuse(out, "input", code, said, secrets);
    const enum lk_http_verdict verdict = judge_status(r, root);
    char field[61];
    lk_http_show(param, secrets, field, sizeof field);
    int n = snprintf(why, LK_HTTP_WHY_BYTES, "%.160s: status %ld: %s%s%s%.200s", r->address, s,
                     *field ? "field \"" : "", field, *field ? "\": " : "", said);
    if (verdict == LK_HTTP_STOP)
        snprintf(why + n, LK_HTTP_WHY_BYTES - (size_t)n,
                 "; see that the URL, the model, the key in OPENAI_API_KEY and "
                 "its credit are right%s",
                 s == 404 && !strstr(r->address, "/v1/") ? " (most services' URLs end with /v1)" : "");
    return verdict;
}

enum lk_http_verdict lk_images_classify(const struct lk_http_reply *r, const struct lk_http_secrets *secrets,
                                        struct lk_image_answer *out, struct lk_images_reply *parts,
                                        char why[LK_HTTP_WHY_BYTES]) {
    struct lk_text readable = {0};
    char said[LK_HTTP_WORDS], status[24];
    *parts = (struct lk_images_reply){NULL, "", ""};
    lk_http_readable(&readable, r->bytes, r->n);
    parts->root = readable.n ? cJSON_ParseWithLength(readable.bytes, readable.n) : NULL;
    lk_http_words(parts->root, &readable, secrets, said);
    snprintf(status, sizeof status, "%ld", r->status);
    lk_image_answer_set(out, LK_ASKED_HTTP_STATUS, status, NULL);
    if (*r->request_id) lk_image_answer_set(out, LK_ASKED_REQUEST_ID, r->request_id, secrets);
    if (*lk_http_string(parts->root, "model"))
        lk_image_answer_set(out, LK_ASKED_API_MODEL, lk_http_string(parts->root, "model"), secrets);
    keep_body(parts->root, &readable, secrets, out);
    lk_text_free(&readable);
    return r->status == 200 ? read_pictures(r, secrets, said, out, parts, why)
                            : read_error(r, secrets, said, parts->root, out, why);
}

static int by_model_and_asked(const void *a, const void *b) {
    const struct lk_picture_signs *x = a, *y = b;
    const int order = strcmp(x->model, y->model);
    return order ? order : x->asked < y->asked ? -1 : x->asked > y->asked;
}

size_t lk_picture_signs_repeats(struct lk_picture_signs *list, size_t n) {
    size_t n_models = 0, n_pictures = 0;
    for (size_t i = 0; i < n; i++)
        if (list[i].asked && !list[i].placeholder) list[n_pictures++] = list[i];
    qsort(list, n_pictures, sizeof *list, by_model_and_asked);
    for (size_t from = 0, at = 0; from < n_pictures; from = at) {
        const char *model = list[from].model;
        size_t n_several = 0, n_one = 0; /* of what was asked several times: all, and what has one picture */
        while (at < n_pictures && !strcmp(list[at].model, model)) {
            const struct lk_picture_signs *first = &list[at];
            bool differ = false;
            size_t n_same = 0;
            for (; at < n_pictures && !by_model_and_asked(first, &list[at]); at++, n_same++)
                differ |= strcmp(first->sha256, list[at].sha256) != 0;
            n_several += n_same > 1;
            n_one += n_same > 1 && !differ;
        }
        if (!n_several || n_one < n_several) continue;
        n_models++;
        lk_log(LK_LOG_WARNING,
               "%s: the same picture each time, for all of the %zu things that it was asked for several times: it "
               "takes no seed, and repeats are no draws of their own; ask once each, or with a field that it takes as "
               "seed",
               model, n_several);
    }
    return n_models;
}
