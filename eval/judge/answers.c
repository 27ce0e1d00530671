#include "eval/judge/answers.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"
#include "eval/judge/answer_text.h"
#include "eval/scores/json_lines.h"
#include "eval/scores/level.h"
#include "eval/study/prompts.h"
#include "engine/base/json.h"

enum { REASON_MAX = 160 };

/* Five scores as they are met: at the top of the answer, or in its object "scores". */
struct scores {
    uint8_t level[LK_N_AXES]; /* 0: not met, or bad */
    char bad[REASON_MAX];     /* the first thing that makes them invalid */
};

struct parse {
    struct lk_json j;
    int prompt;
    struct scores top, inner;
    bool has_inner;
    int8_t role;
    uint8_t presentation;
    uint8_t low_mass;      /* bit per axis */
    struct lk_store texts; /* of this answer, forgotten with it */
    const char *evidence, *item_id, *raw, *digest, *picture, *check, *judge, *model, *refusal;
};

static bool is_years(const char *key) { return !strcasecmp(key, "age_years"); }

static int axis_of(const char *key, int prompt) {
    if (is_years(key)) return LK_AXIS_AGE_DRIFT;
    int axis = lk_factor_parse(LK_FACTOR_AXIS, key, strlen(key));
    if (axis < 0 && prompt == LK_PROMPT_V03 && !strcasecmp(key, "age_accuracy")) return LK_AXIS_AGE_DRIFT;
    return axis;
}

/* Any value at the reader; its level, 0 when it is none. shown gets the value's first bytes. */
static int read_level(struct lk_json *j, char shown[40]) {
    char kind = lk_json_peek(j);
    const char *from = (const char *)j->at;
    if (!lk_json_skip(j)) return 0;
    size_t n = (size_t)((const char *)j->at - from), n_shown = lk_utf8_valid_prefix(from, n < 32 ? n : 32);
    snprintf(shown, 40, "%.*s%s", (int)n_shown, from, n_shown < n ? "..." : "");
    if (kind == '0') return lk_level_of_number(from, n);
    return kind == '"' ? lk_level_of_string(j->string, strlen(j->string)) : 0;
}

/* "age_years": how much older the edited person looks than the source, of which V-03 asks for 30. */
static int read_years(struct parse *p, char shown[40]) {
    bool v03 = p->prompt == LK_PROMPT_V03;
    double years;
    const char *from = (const char *)p->j.at;
    if (!lk_json_skip(&p->j)) return 0;
    size_t n = (size_t)((const char *)p->j.at - from);
    snprintf(shown, 40, "%.*s", (int)(n < 32 ? n : 32), from);
    if (!lk_decimal_of_text(from, n, &years)) return 0;
    return v03 ? lk_level_of_years(years - 30, 10, 20) : lk_level_of_years(years, 5, 15);
}

static void take_score(struct parse *p, struct scores *scores, int axis, bool years) {
    char shown[40] = "";
    if (years) lk_json_peek(&p->j);
    int level = years ? read_years(p, shown) : read_level(&p->j, shown);
    if (p->j.rc || scores->bad[0]) return;
    const char *name = lk_factor_key(LK_FACTOR_AXIS, axis);
    if (!level)
        snprintf(scores->bad, REASON_MAX, "%s: expected an integer from 1 to 5, got %s", name, shown);
    else if (scores->level[axis] && scores->level[axis] != level)
        snprintf(scores->bad, REASON_MAX, "%s: two spellings with different values, %d and %d", name,
                 scores->level[axis], level);
    else
        scores->level[axis] = (uint8_t)level;
}

static void read_inner(struct parse *p) {
    const char *key;
    if (p->has_inner && !p->inner.bad[0]) snprintf(p->inner.bad, REASON_MAX, "two objects \"scores\"");
    p->has_inner = true;
    if (lk_json_peek(&p->j) != '{') {
        if (!p->inner.bad[0]) snprintf(p->inner.bad, REASON_MAX, "\"scores\" is no object");
        lk_json_skip(&p->j);
        return;
    }
    lk_json_enter(&p->j, '{');
    while (lk_json_next(&p->j)) {
        if (!lk_json_key(&p->j, &key)) return;
        int axis = axis_of(key, p->prompt);
        if (axis >= 0)
            take_score(p, &p->inner, axis, is_years(key));
        else
            lk_json_skip(&p->j);
    }
}

static void read_role(struct parse *p) {
    static const char *const words[] = {"male", "female", "unclear"};
    const char *text;
    int8_t role = LK_ROLE_NONE;
    if (lk_json_peek(&p->j) != '"') {
        lk_json_skip(&p->j);
    } else if (lk_json_string(&p->j, &text)) {
        for (int8_t i = 0; i < 3; i++)
            if (!strcasecmp(text, words[i])) role = i;
    }
    if (role == LK_ROLE_NONE && !p->top.bad[0])
        snprintf(p->top.bad, REASON_MAX, "assigned: expected \"male\", \"female\" or \"unclear\"");
    p->role = role;
}

/* What raters' gender presentation means for the role too. */
static void read_presentation(struct parse *p) {
    char shown[40] = "";
    int level = read_level(&p->j, shown);
    if (!level && !p->top.bad[0])
        snprintf(p->top.bad, REASON_MAX, "gender_presentation: expected an integer from 1 to 5, got %s", shown);
    p->presentation = (uint8_t)level;
}

static void copy_string(struct parse *p, const char **out) {
    const char *text;
    if (*out) {
        lk_json_fail(&p->j, LK_E_JSON_DUPLICATE, "two spellings of one key");
    } else if (lk_json_peek(&p->j) != '"') {
        lk_json_skip(&p->j);
    } else if (lk_json_string(&p->j, &text)) {
        *out = lk_store_copy(&p->texts, text, strlen(text));
        if (!*out) lk_json_fail(&p->j, LK_E_NOMEM, "out of memory");
    }
}

/* The axes on which a judge that runs here would rather have said something else: ["edit_success"]. */
static void read_low_mass(struct parse *p) {
    const char *text;
    if (lk_json_peek(&p->j) != '[') {
        lk_json_skip(&p->j);
        return;
    }
    lk_json_enter(&p->j, '[');
    while (lk_json_next(&p->j)) {
        int axis = -1;
        if (lk_json_peek(&p->j) != '"')
            lk_json_skip(&p->j);
        else if (lk_json_string(&p->j, &text))
            axis = lk_factor_parse(LK_FACTOR_AXIS, text, strlen(text));
        if (axis >= 0) p->low_mass |= (uint8_t)(1u << axis);
    }
}

static void read_member(struct parse *p, const char *key) {
    int axis = axis_of(key, p->prompt);
    if (!strcasecmp(key, "scores"))
        read_inner(p);
    else if (axis >= 0)
        take_score(p, &p->top, axis, is_years(key));
    else if (!strcasecmp(key, "assigned"))
        read_role(p);
    else if (!strcasecmp(key, "gender_presentation") && p->prompt >= LK_N_EDIT_PROMPTS)
        read_presentation(p);
    else if (!strcasecmp(key, "low_mass"))
        read_low_mass(p);
    else if (!strcasecmp(key, "evidence_summary"))
        copy_string(p, &p->evidence);
    else if (!strcasecmp(key, "item_id"))
        copy_string(p, &p->item_id);
    else if (!strcasecmp(key, "prompt_sha256"))
        copy_string(p, &p->digest);
    else if (!strcasecmp(key, "edited_sha256"))
        copy_string(p, &p->picture);
    else if (!strcasecmp(key, "judge_check"))
        copy_string(p, &p->check);
    else if (!strcasecmp(key, "refusal"))
        copy_string(p, &p->refusal);
    else if (!p->judge && !strcasecmp(key, "judge"))
        copy_string(p, &p->judge);
    else if (!p->model && !strcasecmp(key, "model"))
        copy_string(p, &p->model);
    else if (!strcasecmp(key, "answer") || !strcasecmp(key, "raw"))
        copy_string(p, &p->raw);
    else
        lk_json_skip(&p->j);
}

/* One JSON object, strictly. The caller frees p->texts in any case. */
static enum lk_code parse_object(struct parse *p, const char *text, size_t n, const char *name) {
    const char *key;
    p->role = LK_ROLE_NONE;
    lk_json_init(&p->j, text, n, name);
    if (lk_json_enter(&p->j, '{'))
        while (lk_json_next(&p->j)) {
            if (!lk_json_key(&p->j, &key)) break;
            read_member(p, key);
        }
    lk_json_end(&p->j);
    return lk_json_finish(&p->j);
}

static enum lk_code invalid(enum lk_code rc) {
    if (rc == LK_E_JSON || rc == LK_E_JSON_DUPLICATE || rc == LK_E_JSON_LIMIT)
        return lk_fail_prefix(LK_E_INPUT, "not strict JSON");
    return rc;
}

/* The scores of what was parsed into out, or the reason why there are none. */
static enum lk_code conclude(const struct parse *p, struct lk_judge_answer *out) {
    const struct scores *scores = p->has_inner ? &p->inner : &p->top;
    int8_t role = p->presentation == 0  ? p->role
                  : p->presentation < 3 ? LK_ROLE_MALE
                  : p->presentation > 3 ? LK_ROLE_FEMALE
                                        : LK_ROLE_UNCLEAR;
    if (p->role != LK_ROLE_NONE && role != p->role)
        return lk_fail(LK_E_INPUT, "assigned: another gender than gender_presentation %d says", p->presentation);
    out->presentation = p->presentation;
    if (role != LK_ROLE_NONE && !p->has_inner && p->prompt >= LK_N_EDIT_PROMPTS) {
        static const uint8_t none[LK_N_AXES];
        out->role = role;
        if (!scores->bad[0] && !memcmp(scores->level, none, sizeof none)) return LK_OK;
    }
    if (scores->bad[0]) return lk_fail(LK_E_INPUT, "%s", scores->bad);
    for (int a = 0; a < LK_N_AXES; a++)
        if (!scores->level[a])
            return lk_fail(LK_E_INPUT, "%s: missing%s", lk_factor_key(LK_FACTOR_AXIS, a),
                           p->has_inner ? " from \"scores\"" : "");
    memcpy(out->score, scores->level, sizeof out->score);
    out->role = p->prompt >= LK_N_EDIT_PROMPTS ? role : LK_ROLE_NONE;
    return LK_OK;
}

/* Whether what is no JSON was meant as an answer: it begins as an object does, or names a score and a colon. */
static bool was_meant(const char *text) {
    if (text[1 + strspn(text + 1, " \t\r\n")] == '"') return true;
    for (int a = 0; a < LK_N_AXES; a++) {
        const char *name = lk_factor_key(LK_FACTOR_AXIS, a), *at = strcasestr(text, name);
        if (at && at[strlen(name) + strspn(at + strlen(name), "\"' \t\r\n")] == ':') return true;
    }
    return false;
}

/* context: the prompt */
static enum lk_code read_candidate(void *context, const char *object, size_t n, char meaning[LK_ANSWER_MEANING]) {
    static const uint8_t none[LK_N_AXES];
    struct parse p = {.prompt = *(int *)context};
    struct lk_judge_answer answer = {.role = LK_ROLE_NONE};
    enum lk_code rc = invalid(parse_object(&p, object, n, "answer"));
    bool answers = rc ? was_meant(object)
                      : p.has_inner || p.top.bad[0] || memcmp(p.top.level, none, sizeof none) ||
                            p.role != LK_ROLE_NONE || p.presentation;
    if (!rc) rc = conclude(&p, &answer);
    lk_store_free(&p.texts);
    if (rc) return rc == LK_E_INPUT && !answers ? lk_fail(LK_E_NOT_FOUND, "%s", lk_error_text()) : rc;
    const uint8_t *s = answer.score;
    snprintf(meaning, LK_ANSWER_MEANING, "%d%d%d%d%d role %d %d", s[0], s[1], s[2], s[3], s[4], answer.role,
             answer.presentation);
    return LK_OK;
}

/* An object that was found, or a record. */
static enum lk_code read_object(const char *object, size_t n, int prompt, struct lk_store *texts,
                                struct lk_judge_answer *out) {
    struct parse p = {.prompt = prompt};
    struct lk_judge_answer answer = {.role = LK_ROLE_NONE};
    enum lk_code rc = invalid(parse_object(&p, object, n, "answer"));
    if (!rc) rc = conclude(&p, &answer);
    if (!rc) {
        const char *evidence = p.evidence ? p.evidence : "";
        answer.evidence = lk_store_copy(texts, evidence, strlen(evidence));
        if (!answer.evidence) rc = lk_fail(LK_E_NOMEM, "out of memory for an answer");
    }
    lk_store_free(&p.texts);
    if (!rc) *out = answer;
    return rc;
}

enum lk_code lk_judge_answer_read(const char *text, size_t n, int prompt, struct lk_store *texts,
                                  struct lk_judge_answer *out) {
    struct lk_answer_object found;
    *out = (struct lk_judge_answer){.role = LK_ROLE_NONE};
    if (n > LK_ANSWER_MAX_BYTES) return lk_fail(LK_E_INPUT, "the answer is longer than 1 MiB");
    enum lk_code rc = lk_answer_find(text, n, read_candidate, &prompt, &found);
    if (!rc) rc = read_object(found.json, found.n, prompt, texts, out);
    if (!rc) out->n_mended = found.n_mended;
    lk_free(found.json);
    return rc;
}

static enum lk_code store(struct lk_dataset *data, int32_t at, const struct lk_judge_answer *answer,
                          const struct lk_judge_import *import, struct lk_judge_report *report) {
    struct lk_item *item = &data->items[at];
    uint8_t *scores = item->judge[import->slot];
    int8_t *role = &item->judge_role[import->slot];
    if (scores[0] || *role != LK_ROLE_NONE) {
        if (memcmp(scores, answer->score, LK_N_AXES) || *role != answer->role)
            return lk_fail(LK_E_INPUT, "a second answer that differs from the first, which counts");
        report->n_repeated++;
        return LK_OK;
    }
    if (answer->evidence[0] && !item->evidence[0]) {
        const char *evidence = lk_dataset_text(data, answer->evidence, strlen(answer->evidence));
        if (!evidence) return lk_fail(LK_E_NOMEM, "out of memory for the scores");
        item->evidence = evidence;
    }
    memcpy(scores, answer->score, LK_N_AXES);
    *role = answer->role;
    report->n_matched++;
    return LK_OK;
}

static enum lk_code look_up(struct lk_dataset *data, const char *id, bool known_only, int32_t *at) {
    if (known_only) return lk_dataset_find(data, id, strlen(id), at);
    return lk_dataset_item(data, id, strlen(id), at);
}

/* Scores of a judge to whom each picture was the other: as if they had not been. */
static void change_places(int prompt, struct lk_judge_answer *answer) {
    uint8_t *age = &answer->score[LK_AXIS_AGE_DRIFT], *skin = &answer->score[LK_AXIS_SKIN_TONE];
    if (*skin) *skin = (uint8_t)(6 - *skin);
    if (*age && prompt != LK_PROMPT_V03) *age = (uint8_t)(6 - *age);
}

/* The item is added last: a rejected record leaves nothing behind. */
static enum lk_code read_record(struct lk_dataset *data, const struct lk_json_record *record, struct parse *p,
                                const struct lk_judge_import *import, struct lk_judge_report *report) {
    int32_t at;
    struct lk_judge_answer answer;
    if (!p->item_id) return lk_fail(LK_E_INPUT, "expected a string \"item_id\"");
    if (import->is_shown && p->picture && !import->is_shown(import->pictures, p->item_id, p->picture)) {
        report->n_stale++;
        return LK_OK;
    }
    if (strcmp(p->check ? p->check : "", import->check ? import->check : ""))
        return lk_fail(LK_E_INPUT,
                       "judge_check: expected %s, got %s: what is asked to check a judge is no score of the study",
                       import->check ? import->check : "none", p->check ? p->check : "none");
    LK_TRY(lk_dataset_id_prompt(data, p->item_id, strlen(p->item_id), &p->prompt));
    if (import->check_digest && p->digest) LK_TRY(import->check_digest(import->context, p->item_id, p->digest));
    if (p->refusal) {
        report->n_refused++;
        return lk_fail(LK_E_INPUT, "the judge refused: %.200s", p->refusal);
    }
    LK_TRY(p->raw && !p->has_inner ? lk_judge_answer_read(p->raw, strlen(p->raw), p->prompt, &p->texts, &answer)
                                   : read_object(record->text, record->n, p->prompt, &p->texts, &answer));
    if (import->check && !strcmp(import->check, "roles")) change_places(p->prompt, &answer);
    report->n_mended += answer.n_mended > 0;
    LK_TRY(look_up(data, p->item_id, import->known_only, &at));
    if (at < 0) {
        report->n_unknown++;
        return lk_rejects_add(&report->rejects, record->line, p->item_id, "no such item in this run");
    }
    if (!*report->judge && p->judge) /* of a server's answers the model, as it is called there */
        snprintf(report->judge, sizeof report->judge, "%s",
                 !strcmp(p->judge, "openai") && p->model ? p->model : p->judge);
    LK_TRY(store(data, at, &answer, import, report));
    data->items[at].low_mass[import->slot] = p->low_mass;
    return LK_OK;
}

enum lk_code lk_judge_answers_read(struct lk_dataset *data, const char *text, size_t n, const char *name,
                                   const struct lk_judge_import *import, struct lk_judge_report *report) {
    struct lk_json_lines lines;
    struct lk_json_record record;
    if (import->slot < 0 || import->slot >= LK_N_JUDGES)
        return lk_fail(LK_E_USAGE, "%s: expected judge slot 0 or 1, got %d", name, import->slot);
    lk_json_lines_open(&lines, text, n, name);
    for (;;) {
        bool more;
        LK_TRY(lk_json_lines_next(&lines, &record, &more));
        if (!more) return LK_OK;
        report->n_records++;
        struct parse p = {.prompt = -1};
        struct lk_answer_object mended = {0};
        enum lk_code rc = record.n > LK_ANSWER_MAX_BYTES ? lk_fail(LK_E_INPUT, "the record is longer than 1 MiB")
                                                         : lk_answer_mend(record.text, record.n, &mended);
        record.text = mended.json;
        record.n = mended.n;
        if (!rc) rc = invalid(parse_object(&p, record.text, record.n, "record"));
        if (!rc) rc = read_record(data, &record, &p, import, report);
        if (rc == LK_E_INPUT) {
            char reason[1024];
            snprintf(reason, sizeof reason, "%s", lk_error_text());
            report->n_invalid++;
            rc = lk_rejects_add(&report->rejects, record.line, p.item_id ? p.item_id : "", reason);
        }
        if (!rc) report->n_mended += mended.n_mended > 0;
        lk_store_free(&p.texts);
        lk_free(mended.json);
        if (rc) return lk_fail_prefix(rc, "%s: line %zu", name, record.line);
    }
}

void lk_judge_report_free(struct lk_judge_report *report) {
    lk_rejects_free(&report->rejects);
    memset(report, 0, sizeof *report);
}
