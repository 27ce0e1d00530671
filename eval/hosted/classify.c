/* What a reply of the images API means. Services say no in many ways; what is no refusal by its code or its words is a
 * fault, which says nothing of the model. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/hosted/images.h"

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
