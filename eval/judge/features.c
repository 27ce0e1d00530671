#include "eval/judge/features.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "eval/data/data.h"
#include "eval/judge/answer_text.h"
#include "eval/scores/feature_prompts.h"
#include "eval/scores/fields.h"

const char *const lk_feature_keys[LK_N_FEATURES] = {
    "skin_tone", "face_shape", "eyes", "nose", "lips", "hair", "distinctive_features", "identity_prompt"};

#define STRAIGHT "Maintain the person's"
#define CURLY    "Maintain the person\xe2\x80\x99s"

static const struct lk_form feature_form = {.pieces = {{LK_FORM_TEXT, "{\n  \"skin_tone\": \""},
                                                       {LK_FORM_STRING, NULL},
                                                       {LK_FORM_TEXT, "\",\n  \"face_shape\": \""},
                                                       {LK_FORM_STRING, NULL},
                                                       {LK_FORM_TEXT, "\",\n  \"eyes\": \""},
                                                       {LK_FORM_STRING, NULL},
                                                       {LK_FORM_TEXT, "\",\n  \"nose\": \""},
                                                       {LK_FORM_STRING, NULL},
                                                       {LK_FORM_TEXT, "\",\n  \"lips\": \""},
                                                       {LK_FORM_STRING, NULL},
                                                       {LK_FORM_TEXT, "\",\n  \"hair\": \""},
                                                       {LK_FORM_STRING, NULL},
                                                       {LK_FORM_TEXT, "\",\n  \"distinctive_features\": \""},
                                                       {LK_FORM_STRING, NULL},
                                                       {LK_FORM_TEXT, "\",\n  \"identity_prompt\": \"" STRAIGHT},
                                                       {LK_FORM_STRING, NULL},
                                                       {LK_FORM_TEXT, "\"}"}},
                                            .n = 17,
                                            .max_string_tokens = 60};

static bool find_question(struct lk_json *j, char **out) {
    const char *key, *text;
    if (!lk_json_enter(j, '{')) return false;
    while (lk_json_next(j)) {
        if (!lk_json_key(j, &key)) return false;
        if (!strcmp(key, "feature_prompt")) {
            if (!find_question(j, out)) return false;
        } else if (!strcmp(key, "prompt_listing_2")) {
            if (!lk_json_string(j, &text)) return false;
            *out = lk_strdup(text);
        } else {
            lk_json_skip(j);
        }
    }
    return !j->rc;
}

enum lk_code lk_feature_question(char **out) {
    struct lk_data_file file;
    struct lk_json j;
    *out = NULL;
    if (!lk_data_find("rubric", &file)) return lk_fail(LK_E_INTERNAL, "rubric.json is not part of this program");
    lk_json_init(&j, file.text, file.n_bytes, "rubric");
    find_question(&j, out);
    lk_json_end(&j);
    enum lk_code rc = lk_json_finish(&j);
    if (!rc && !*out) rc = lk_fail(LK_E_NOMEM, "out of memory for the feature prompt");
    return rc;
}

static bool is_blank(const char *text) { return !text[strspn(text, " \t\r\n")]; }

static enum lk_code check(const struct lk_features *f) {
    for (int i = 0; i < LK_N_FEATURES; i++)
        if (!f->texts[i]) return lk_fail(LK_E_INPUT, "%s: expected a text, got none", lk_feature_keys[i]);
    const char *prompt = f->texts[LK_N_FEATURES - 1];
    if (strncmp(prompt, STRAIGHT, sizeof STRAIGHT - 1) != 0 && strncmp(prompt, CURLY, sizeof CURLY - 1) != 0)
        return lk_fail(LK_E_INPUT, "identity_prompt: expected it to begin with \"" STRAIGHT "\", got \"%.60s\"",
                       prompt);
    int n = lk_count_sentences(prompt);
    return n > 2 ? lk_fail(LK_E_INPUT, "identity_prompt: expected one or two sentences, got %d", n) : LK_OK;
}

/* An object with any of the features; two are the same byte by byte alone. */
static enum lk_code read_candidate(void *context, const char *object, size_t n, char meaning[LK_ANSWER_MEANING]) {
    struct lk_fields fields = {0};
    bool any = false;
    (void)context;
    enum lk_code rc = lk_fields_json(&fields, object, n, "answer");
    for (int i = 0; !rc && i < LK_N_FEATURES; i++) any = any || lk_fields_find(&fields, lk_feature_keys[i]);
    lk_fields_free(&fields);
    if (rc == LK_E_NOMEM) return rc;
    if (rc) return lk_fail_prefix(LK_E_NOT_FOUND, "not strict JSON");
    if (!any) return lk_fail(LK_E_NOT_FOUND, "%s: expected a text, got none", lk_feature_keys[0]);
    lk_sha256(object, n, meaning);
    return LK_OK;
}

enum lk_code lk_features_read(const char *answer, size_t n, struct lk_store *store, struct lk_features *out) {
    struct lk_fields fields = {0};
    struct lk_answer_object found;
    *out = (struct lk_features){.fields = true};
    enum lk_code rc = lk_answer_find(answer, n, read_candidate, NULL, &found);
    if (!rc) rc = lk_fields_json(&fields, found.json, found.n, "answer");
    lk_free(found.json);
    for (int i = 0; !rc && i < LK_N_FEATURES; i++) {
        const struct lk_field *field = lk_fields_find(&fields, lk_feature_keys[i]);
        if (!field || field->kind != '"' || is_blank(field->text)) continue;
        const char *text = field->text + (i == LK_N_FEATURES - 1 ? strspn(field->text, " \t\r\n") : 0);
        out->texts[i] = lk_store_copy(store, text, strlen(text));
        if (!out->texts[i]) rc = lk_fail(LK_E_NOMEM, "out of memory for features");
    }
    lk_fields_free(&fields);
    for (int i = 0; i < LK_N_FEATURES - 1; i++) out->fields &= out->texts[i] != NULL;
    if (!rc) rc = check(out);
    out->leak = !rc && lk_names_group(out->texts[LK_N_FEATURES - 1]);
    return rc;
}

enum lk_code lk_extracted_add(struct lk_extracted *e, const char *answer, size_t n, bool *again) {
    struct lk_features features;
    int attempt = e->n_attempts++;
    e->raw[attempt] = lk_strndup(answer, n);
    if (!e->raw[attempt]) return lk_fail(LK_E_NOMEM, "out of memory for an answer");
    enum lk_code rc = lk_features_read(answer, n, &e->store, &features);
    *again = rc || features.leak;
    if (rc == LK_E_NOMEM) return rc;
    if (rc) snprintf(e->error[attempt], sizeof e->error[attempt], "%s", lk_error_text());
    if (!rc && features.leak)
        snprintf(e->error[attempt], sizeof e->error[attempt], "identity_prompt: names a demographic group");
    /* The first that does not leak, else the first that is valid, else the last that has all fields. */
    if ((!rc && (!features.leak || !e->found)) || (rc && !e->found && features.fields)) e->features = features;
    e->found |= !rc;
    return LK_OK;
}

enum lk_code lk_extracted_end(struct lk_extracted *e) {
    const char *const *t = e->features.texts;
    if (e->found || !e->features.fields || !t[0]) return LK_OK;
    char *prompt = lk_format(STRAIGHT " %s, %s, %s, %s, %s, and %s.", t[0], t[1], t[2], t[3], t[4], t[5]);
    if (!prompt) return lk_fail(LK_E_NOMEM, "out of memory for a feature prompt");
    e->features.texts[LK_N_FEATURES - 1] = lk_store_copy(&e->store, prompt, strlen(prompt));
    e->features.leak = lk_names_group(prompt);
    lk_free(prompt);
    e->found = e->composed = true;
    return e->features.texts[LK_N_FEATURES - 1] ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for a feature prompt");
}

void lk_extracted_free(struct lk_extracted *e) {
    for (int i = 0; i < e->n_attempts; i++) lk_free(e->raw[i]);
    lk_store_free(&e->store);
    *e = (struct lk_extracted){0};
}

/* One picture, then the question. */
static void ask(const struct lk_seeing_judge *judge, const char *question, const struct lk_image *picture,
                uint64_t seed, struct lk_chat_part parts[2], struct lk_chat_message *message,
                struct lk_chat_question *out) {
    parts[0] = (struct lk_chat_part){.image = picture};
    parts[1] = (struct lk_chat_part){.text = question};
    *message = (struct lk_chat_message){"user", parts, 2};
    *out = (struct lk_chat_question){.form = judge->mode == LK_JUDGE_FORCED ? &feature_form : NULL};
    lk_seeing_judge_request(judge, message, seed, LK_FEATURE_NEW_TOKENS, &out->request);
    if (out->form) out->request.generation.max_new_tokens = 8 * 70 + 400;
}

struct round {
    struct lk_chat_question *questions;
    struct lk_chat_answer *answers;
    struct lk_chat_message *messages;
    struct lk_chat_part (*parts)[2];
    int *source;
    int n;
};

static enum lk_code run_round(struct round *r, const struct lk_seeing_judge *judge, bool *again,
                              struct lk_extracted *out) {
    LK_TRY(lk_seeing_judge_ask(judge, r->questions, r->n, r->answers));
    for (int i = 0; i < r->n; i++) {
        const struct lk_chat_answer *said = &r->answers[i];
        struct lk_extracted *e = &out[r->source[i]];
        if (said->code) {
            e->code = said->code;
            snprintf(e->reason, sizeof e->reason, "%s", said->error);
            again[r->source[i]] = false;
        } else {
            LK_TRY(lk_extracted_add(e, said->text ? said->text : "", said->n, &again[r->source[i]]));
            if (!said->refused) continue;
            snprintf(e->error[e->n_attempts - 1], sizeof e->error[0], "the model refused");
            again[r->source[i]] = false;
        }
    }
    return LK_OK;
}

enum lk_code lk_features_extract(const struct lk_seeing_judge *judge, const char *question,
                                 const struct lk_image *pictures, int n, struct lk_extracted *out) {
    size_t count = (size_t)n;
    for (int i = 0; i < n; i++) out[i] = (struct lk_extracted){0};
    struct round r = {.questions = lk_calloc(count, sizeof *r.questions),
                      .answers = lk_calloc(count, sizeof *r.answers),
                      .messages = lk_calloc(count, sizeof *r.messages),
                      .parts = lk_calloc(count, sizeof *r.parts),
                      .source = lk_calloc(count, sizeof *r.source)};
    bool *again = lk_calloc(count, sizeof *again);
    bool ok = r.questions && r.answers && r.messages && r.parts && r.source && again;
    enum lk_code rc = ok ? LK_OK : lk_fail(LK_E_NOMEM, "feature: out of memory");
    for (int attempt = 1; !rc && attempt <= LK_FEATURE_ATTEMPTS; attempt++) {
        r.n = 0;
        for (int i = 0; i < n; i++) {
            if (attempt > 1 && !again[i]) continue;
            ask(judge, question, &pictures[i], 1 + (uint64_t)attempt, r.parts[r.n], &r.messages[r.n],
                &r.questions[r.n]);
            r.source[r.n++] = i;
        }
        if (!r.n) break;
        rc = run_round(&r, judge, again, out);
        for (int i = 0; i < r.n; i++) lk_chat_answer_free(&r.answers[i]);
    }
    for (int i = 0; !rc && i < n; i++) rc = lk_extracted_end(&out[i]);
    lk_free(r.questions);
    lk_free(r.answers);
    lk_free(r.messages);
    lk_free(r.parts);
    lk_free(r.source);
    lk_free(again);
    return rc;
}
