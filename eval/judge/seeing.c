#include "eval/judge/seeing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"

#define DIGITS "1|2|3|4|5"

/* --- forms --- */

/* The layout that the prompt prints, its observations named after its headings. */
static const struct lk_form whole_form = {
    .pieces = {{LK_FORM_TEXT, "{\n  \"observations\": {\n    \"edit_analysis\": \""},
               {LK_FORM_STRING, NULL},
               {LK_FORM_TEXT, "\",\n    \"skin_tone_comparison\": \""},
               {LK_FORM_STRING, NULL},
               {LK_FORM_TEXT, "\",\n    \"facial_feature_analysis\": \""},
               {LK_FORM_STRING, NULL},
               {LK_FORM_TEXT, "\",\n    \"gender_presentation\": \""},
               {LK_FORM_STRING, NULL},
               {LK_FORM_TEXT, "\",\n    \"age_analysis\": \""},
               {LK_FORM_STRING, NULL},
               {LK_FORM_TEXT, "\"\n  },\n  \"scores\": {\n    \"edit_success\": "},
               {LK_FORM_CHOICE, DIGITS},
               {LK_FORM_TEXT, ",\n    \"skin_tone\": "},
               {LK_FORM_CHOICE, DIGITS},
               {LK_FORM_TEXT, ",\n    \"race_drift\": "},
               {LK_FORM_CHOICE, DIGITS},
               {LK_FORM_TEXT, ",\n    \"gender_drift\": "},
               {LK_FORM_CHOICE, DIGITS},
               {LK_FORM_TEXT, ",\n    \"age_drift\": "},
               {LK_FORM_CHOICE, DIGITS},
               {LK_FORM_TEXT, "\n  },\n  \"evidence_summary\": \""},
               {LK_FORM_STRING, NULL},
               {LK_FORM_TEXT, "\"\n}"}},
    .n = 23,
    .max_string_tokens = LK_JUDGE_STRING_TOKENS};

/* One score behind the words that lead to it, whatever the others are. */
static const struct lk_form axis_forms[LK_N_AXES] = {
#define AXIS(key)                                                                                                      \
    { .pieces = {{LK_FORM_TEXT, "{\n  \"scores\": {\n    \"" key "\": "}, {LK_FORM_CHOICE, DIGITS}}, .n = 2 }
    AXIS("edit_success"), AXIS("skin_tone"), AXIS("race_drift"), AXIS("gender_drift"), AXIS("age_drift"),
#undef AXIS
};

/* Answers that are one of a few words: they are read, not written. */
static const struct lk_form pair_form = {
    .pieces = {{LK_FORM_TEXT, "("}, {LK_FORM_CHOICE, "A|B|Same"}, {LK_FORM_TEXT, ")"}}, .n = 3};
static const struct lk_form role_form = {
    .pieces = {{LK_FORM_TEXT, "("}, {LK_FORM_CHOICE, "male|female|unclear"}, {LK_FORM_TEXT, ")"}}, .n = 3};
static const struct lk_form edit_form = {.pieces = {{LK_FORM_TEXT, "1. "},
                                                    {LK_FORM_CHOICE, "yes|partial|no"},
                                                    {LK_FORM_TEXT, "\n2. "},
                                                    {LK_FORM_CHOICE, "yes|no"},
                                                    {LK_FORM_TEXT, "\n3. "},
                                                    {LK_FORM_CHOICE, "yes|no"}},
                                         .n = 6};
static const struct lk_form assigned_form = {
    .pieces = {{LK_FORM_TEXT, "{\"assigned\": \""}, {LK_FORM_CHOICE, "male|female|unclear"}, {LK_FORM_TEXT, "\"}"}},
    .n = 3};

static const struct lk_form presentation_form = {
    .pieces = {{LK_FORM_TEXT, "{\"gender_presentation\": "}, {LK_FORM_CHOICE, DIGITS}, {LK_FORM_TEXT, "}"}}, .n = 3};

/* NULL: free text. */
static const struct lk_form *form_of(const struct lk_seeing_judge *judge, const struct lk_judge_item *item) {
    if (item->message->question == LK_ASKED_PAIR) return &pair_form;
    if (item->message->question == LK_ASKED_EDIT) return &edit_form;
    if (item->message->question == LK_ASKED_ROLE && item->legacy) return &role_form;
    if (judge->mode == LK_JUDGE_FREE) return NULL;
    return item->message->question == LK_ASKED_ROLE           ? &assigned_form
           : item->message->question == LK_ASKED_PRESENTATION ? &presentation_form
                                                              : &judge->form;
}

enum lk_code lk_seeing_judge_open(struct lk_seeing_judge *judge) {
    int32_t ids[5];
    judge->form = whole_form;
    judge->form.max_string_tokens = judge->max_string_tokens ? judge->max_string_tokens : LK_JUDGE_STRING_TOKENS;
    if (judge->server) return LK_OK;
    LK_TRY(lk_chat_tokens(judge->chat, &judge->tokens));
    enum lk_code rc = lk_token_digits(&judge->tokens, ids);
    if (rc) lk_seeing_judge_close(judge);
    return rc;
}

void lk_seeing_judge_close(struct lk_seeing_judge *judge) { lk_token_bytes_free(&judge->tokens); }

/* --- reading --- */

double lk_thought_expected(const struct lk_form_choice *thought) {
    double sum = 0;
    for (int i = 0; i < thought->n_words; i++) sum += (i + 1) * thought->probability[i];
    return sum;
}

double lk_thought_entropy(const struct lk_form_choice *thought) {
    double sum = 0;
    for (int i = 0; i < thought->n_words; i++)
        if (thought->probability[i] > 0) sum -= thought->probability[i] * log(thought->probability[i]);
    return sum;
}

/* The byte of the digit behind the last "KEY": from `from` on, -1: there is none. */
static ptrdiff_t digit_behind(const char *text, const char *from, const char *key) {
    ptrdiff_t found = -1;
    size_t n = strlen(key);
    for (const char *at = from; (at = strchr(at, '"')); at++) {
        if (strncasecmp(at + 1, key, n) || at[n + 1] != '"') continue;
        const char *value = at + n + 2;
        value += strspn(value, " \t\r\n");
        if (*value++ != ':') continue;
        value += strspn(value, " \t\r\n\"");
        if (*value >= '1' && *value <= '5') found = value - text;
    }
    return found;
}

void lk_thoughts_of_text(const char *text, const struct lk_judge_answer *answer, const struct lk_form_choice *choices,
                         int n_choices, struct lk_form_choice thought[LK_N_AXES]) {
    static const char *const keys[LK_N_AXES][3] = {{"edit_success"},
                                                   {"skin_tone", "skin_stone", "skin_tone_change"},
                                                   {"race_drift", "race_change"},
                                                   {"gender_drift", "gender_change"},
                                                   {"age_drift", "age_change", "age_accuracy"}};
    const char *scores = strstr(text, "\"scores\"");
    for (int a = 0; a < LK_N_AXES; a++) {
        ptrdiff_t at = -1;
        thought[a] = (struct lk_form_choice){0};
        for (int k = 0; k < 3 && keys[a][k] && at < 0; k++) at = digit_behind(text, scores ? scores : text, keys[a][k]);
        for (int i = 0; i < n_choices; i++)
            if ((ptrdiff_t)choices[i].at == at && choices[i].chosen + 1 == answer->score[a]) thought[a] = choices[i];
    }
}

static void read_closed(const struct lk_judge_item *item, const struct lk_chat_answer *said, struct lk_seen *v) {
    v->valid = said->n_choices == (item->message->question == LK_ASKED_EDIT ? 3 : 1);
    for (int i = 0; i < said->n_choices && i < LK_N_AXES; i++) v->thought[i] = said->choices[i];
    v->answer.role = LK_ROLE_NONE;
    if (item->message->question == LK_ASKED_ROLE && v->valid) v->answer.role = (int8_t)said->choices[0].chosen;
}

/* An answer as one attempt of the verdict. */
static enum lk_code read_answer(const struct lk_judge_item *item, struct lk_chat_answer *said, uint64_t seed,
                                struct lk_seen *v) {
    struct lk_attempt *attempt = &v->attempts[v->n_attempts++];
    *attempt = (struct lk_attempt){.seed = seed, .raw = said->text};
    said->text = NULL; /* ours now */
    if (said->refused) {
        v->refused = true;
        snprintf(attempt->error, sizeof attempt->error, "the judge refused");
        return LK_OK;
    }
    if (item->message->question == LK_ASKED_PAIR || item->message->question == LK_ASKED_EDIT || item->legacy) {
        read_closed(item, said, v);
        return LK_OK;
    }
    const char *text = attempt->raw ? attempt->raw : "";
    enum lk_code rc = lk_judge_answer_read(text, said->n, item->message->number, &v->texts, &v->answer);
    v->valid = !rc;
    if (rc && rc != LK_E_NOMEM) {
        snprintf(
            attempt->error, sizeof attempt->error, "%s%.180s",
            said->stopped ? "" : "cut off by the limit of tokens: ", said->n ? lk_error_text() : "the answer is empty");
        return LK_OK;
    }
    if (!rc) lk_thoughts_of_text(text, &v->answer, said->choices, said->n_choices, v->thought);
    if (!rc && item->message->question != LK_ASKED_AXES && said->n_choices) v->thought[0] = said->choices[0];
    return rc;
}

/* --- asking --- */

void lk_seeing_judge_request(const struct lk_seeing_judge *judge, const struct lk_chat_message *message, uint64_t seed,
                             int64_t max_new_tokens, struct lk_chat_request *out) {
    if (judge->server)
        *out = (struct lk_chat_request){0};
    else
        lk_chat_request_init(out, judge->chat);
    struct lk_generation_config *g = &out->generation;
    out->messages = message;
    out->n_messages = 1;
    out->seed = seed;
    g->do_sample = true;
    g->temperature = 0.1;
    g->top_k = 0;
    g->top_p = 1;
    g->repetition_penalty = 1;
    g->max_new_tokens = judge->max_new_tokens ? judge->max_new_tokens : max_new_tokens;
}

/* parts: [LK_JUDGE_PARTS_MAX] */
static void make_question(const struct lk_seeing_judge *judge, const struct lk_judge_item *item,
                          const struct lk_form *form, uint64_t seed, struct lk_chat_part *parts,
                          struct lk_chat_message *message, struct lk_chat_question *out) {
    for (int i = 0; i < item->message->n_parts; i++) {
        const struct lk_judge_part *part = &item->message->parts[i];
        parts[i] = part->text ? (struct lk_chat_part){.text = part->text}
                              : (struct lk_chat_part){.image = &item->images[part->image]};
    }
    *message = (struct lk_chat_message){"user", parts, item->message->n_parts};
    *out = (struct lk_chat_question){.form = form, .shared_key = item->source_key, .n_shared_images = 1};
    lk_seeing_judge_request(judge, message, seed, LK_JUDGE_NEW_TOKENS, &out->request);
    if (!form) return;
    struct lk_generation_config *g = &out->request.generation;
    g->max_new_tokens = 8; /* of words */
    for (int i = 0; i < form->n; i++) {
        const struct lk_form_piece *piece = &form->pieces[i];
        g->max_new_tokens += piece->kind == LK_FORM_STRING ? form->max_string_tokens + 8
                             : piece->text                 ? (int64_t)strlen(piece->text)
                                                           : 0;
    }
    if (form->max_string_tokens) return;
    g->do_sample = false; /* read, not written */
}

struct round {
    struct lk_chat_question *questions;
    struct lk_chat_answer *answers;
    struct lk_chat_message *messages;
    struct lk_chat_part (*parts)[LK_JUDGE_PARTS_MAX];
    int *item;
    int n;
};

static enum lk_code make_round(struct round *r, int capacity) {
    size_t n = (size_t)capacity;
    r->questions = lk_calloc(n, sizeof *r->questions);
    r->answers = lk_calloc(n, sizeof *r->answers);
    r->messages = lk_calloc(n, sizeof *r->messages);
    r->parts = lk_calloc(n, sizeof *r->parts);
    r->item = lk_calloc(n, sizeof *r->item);
    bool ok = r->questions && r->answers && r->messages && r->parts && r->item;
    return ok ? LK_OK : lk_fail(LK_E_NOMEM, "judge: out of memory");
}

static void free_round(struct round *r) {
    for (int i = 0; i < r->n && r->answers; i++) lk_chat_answer_free(&r->answers[i]);
    lk_free(r->questions);
    lk_free(r->answers);
    lk_free(r->messages);
    lk_free(r->parts);
    lk_free(r->item);
}

static void add_question(struct round *r, const struct lk_seeing_judge *judge, const struct lk_judge_item *items,
                         int item, const struct lk_form *form, uint64_t seed) {
    make_question(judge, &items[item], form, seed, r->parts[r->n], &r->messages[r->n], &r->questions[r->n]);
    r->item[r->n++] = item;
}

enum lk_code lk_seeing_judge_ask(const struct lk_seeing_judge *judge, const struct lk_chat_question *questions, int n,
                                 struct lk_chat_answer *answers) {
    if (judge->server) return lk_judge_server_ask(judge->server, questions, n, judge->n_slots, judge->tick, answers);
    return lk_chat_ask(judge->chat, judge->dev, &judge->tokens, questions, n, judge->n_slots, judge->tick, answers);
}

static bool not_asked(const struct lk_chat_answer *said, struct lk_seen *v) {
    if (!said->code) return false;
    v->code = said->code;
    snprintf(v->error, sizeof v->error, "%s", said->error);
    return true;
}

/* One attempt of every item that has no valid answer yet. */
static enum lk_code attempt_all(const struct lk_seeing_judge *judge, const struct lk_judge_item *items, int n,
                                int attempt, struct lk_seen *verdicts) {
    struct round r = {0};
    uint64_t seed = judge->seed + 1 + (uint64_t)attempt;
    enum lk_code rc = make_round(&r, n);
    for (int i = 0; !rc && i < n; i++)
        if (!verdicts[i].valid && !verdicts[i].refused && !verdicts[i].code)
            add_question(&r, judge, items, i, form_of(judge, &items[i]), seed);
    if (!rc) rc = lk_seeing_judge_ask(judge, r.questions, r.n, r.answers);
    for (int i = 0; !rc && i < r.n; i++) {
        struct lk_seen *v = &verdicts[r.item[i]];
        if (!not_asked(&r.answers[i], v)) rc = read_answer(&items[r.item[i]], &r.answers[i], seed, v);
    }
    free_round(&r);
    return rc;
}

/* The scores of five answers as one. */
static enum lk_code join(struct lk_seen *v) {
    struct lk_text text = {0};
    lk_text_add(&text, "{\"scores\": {");
    for (int a = 0; a < LK_N_AXES; a++) {
        v->answer.score[a] = (uint8_t)(v->thought[a].chosen + 1);
        lk_text_add(&text, "%s\"%s\": %d", a ? ", " : "", lk_factor_key(LK_FACTOR_AXIS, a), v->answer.score[a]);
    }
    lk_text_add(&text, "}}");
    v->answer.role = LK_ROLE_NONE;
    v->answer.evidence = "";
    v->valid = !text.rc;
    v->attempts[v->n_attempts++] = (struct lk_attempt){.seed = 0, .raw = text.bytes};
    return text.rc;
}

/* Five scores, each read behind the same conversation, which is computed once. */
static enum lk_code read_axes(const struct lk_seeing_judge *judge, const struct lk_judge_item *items, int n,
                              struct lk_seen *verdicts) {
    struct round r = {0};
    enum lk_code rc = make_round(&r, n * LK_N_AXES);
    for (int i = 0; !rc && i < n; i++)
        for (int a = 0; a < LK_N_AXES && items[i].message->question == LK_ASKED_AXES; a++) {
            add_question(&r, judge, items, i, &axis_forms[a], 0);
            r.questions[r.n - 1].shared_key = (uint64_t)i + 1;
            r.questions[r.n - 1].n_shared_images = 0;
            r.questions[r.n - 1].request.generation.max_new_tokens = 1;
        }
    if (!rc) rc = lk_seeing_judge_ask(judge, r.questions, r.n, r.answers);
    for (int i = 0; !rc && i < r.n; i++) {
        struct lk_seen *v = &verdicts[r.item[i]];
        if (not_asked(&r.answers[i], v)) continue;
        v->thought[i % LK_N_AXES] = r.answers[i].choices[0];
        if (i % LK_N_AXES == LK_N_AXES - 1) rc = join(v);
    }
    free_round(&r);
    return rc;
}

enum lk_code lk_judge_see(const struct lk_seeing_judge *judge, const struct lk_judge_item *items, int n,
                          struct lk_seen *verdicts) {
    for (int i = 0; i < n; i++) verdicts[i] = (struct lk_seen){0};
    if (judge->mode == LK_JUDGE_DIRECT) LK_TRY(read_axes(judge, items, n, verdicts));
    for (int attempt = 1; attempt <= LK_JUDGE_ATTEMPTS; attempt++)
        LK_TRY(attempt_all(judge, items, n, attempt, verdicts));
    return LK_OK;
}

void lk_seen_free(struct lk_seen *verdict) {
    for (int i = 0; i < verdict->n_attempts; i++) lk_free(verdict->attempts[i].raw);
    lk_store_free(&verdict->texts);
    *verdict = (struct lk_seen){0};
}
