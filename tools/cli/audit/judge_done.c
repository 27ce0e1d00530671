#include "tools/cli/audit/audit.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/append.h"
#include "engine/base/atomic_file.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "eval/judge/legacy.h"
#include "eval/scores/dataset.h"
#include "eval/scores/fields.h"

enum { DIGITS = 5 };
static const double low_mass = 0.9;

bool judge_record_low_mass(const struct lk_seen *v) {
    for (int a = 0; v->valid && a < LK_N_AXES; a++)
        if (v->thought[a].n_words == DIGITS && v->thought[a].mass < low_mass) return true;
    return false;
}

static bool add_text(cJSON *to, const char *key, const char *text) {
    return cJSON_AddStringToObject(to, key, text) != NULL;
}

static bool add_head(cJSON *line, const struct judge_record *r, const struct lk_judge_item *item) {
    return add_text(line, "item_id", item->item_id) && add_text(line, "slot", r->slot) &&
           add_text(line, "judge", r->family) && add_text(line, "model", r->model) &&
           add_text(line, "weights_identity", r->weights_identity) &&
           (!r->configs || cJSON_AddRawToObject(line, "configs", r->configs)) && add_text(line, "dtype", r->dtype) &&
           cJSON_AddBoolToObject(line, "quantized", r->quantized != 0) && add_text(line, "mode", r->mode) &&
           add_text(line, "prompt_version", r->prompt_version) &&
           add_text(line, "prompt_sha256", item->message->sha256) &&
           (!*item->edited_sha256 || add_text(line, "edited_sha256", item->edited_sha256)) &&
           (!r->order || add_text(line, "order", r->order)) && (!r->check || add_text(line, "judge_check", r->check)) &&
           (!r->server || add_text(line, "server", r->server));
}

static bool add_attempts(cJSON *line, const struct lk_seen *v) {
    cJSON *list = cJSON_AddArrayToObject(line, "attempts");
    for (int i = 0; list && i < v->n_attempts; i++) {
        const struct lk_attempt *attempt = &v->attempts[i];
        cJSON *one = cJSON_CreateObject();
        if (!one || !cJSON_AddItemToArray(list, one)) return false;
        if (!cJSON_AddNumberToObject(one, "seed", (double)attempt->seed) ||
            !add_text(one, "raw", attempt->raw ? attempt->raw : "") ||
            (*attempt->error && !add_text(one, "error", attempt->error)))
            return false;
    }
    return list != NULL;
}

static bool add_scores(cJSON *line, const struct lk_seen *v) {
    cJSON *scores = cJSON_AddObjectToObject(line, "scores");
    for (int a = 0; scores && a < LK_N_AXES; a++)
        if (!cJSON_AddNumberToObject(scores, lk_factor_key(LK_FACTOR_AXIS, a), v->answer.score[a])) return false;
    return scores && (!v->answer.evidence || add_text(line, "evidence_summary", v->answer.evidence));
}

/* The axes at which the model would rather have said something else than a digit. */
static bool add_low_mass(cJSON *line, const struct lk_seen *v) {
    cJSON *list = judge_record_low_mass(v) ? cJSON_AddArrayToObject(line, "low_mass") : NULL;
    for (int a = 0; list && a < LK_N_AXES; a++) {
        const struct lk_form_choice *t = &v->thought[a];
        if (t->n_words != DIGITS || t->mass >= low_mass) continue;
        if (!cJSON_AddItemToArray(list, cJSON_CreateString(lk_factor_key(LK_FACTOR_AXIS, a)))) return false;
    }
    return list || !judge_record_low_mass(v);
}

/* Per axis: probabilities of 1 to 5, their sum among all tokens, mean and entropy. */
static bool add_thoughts(cJSON *line, const struct lk_seen *v) {
    static const char *const names[] = {"probabilities", "mass", "expected", "entropy"};
    cJSON *parts[4];
    for (int i = 0; i < 4; i++)
        if (!(parts[i] = cJSON_AddObjectToObject(line, names[i]))) return false;
    for (int a = 0; a < LK_N_AXES; a++) {
        const struct lk_form_choice *t = &v->thought[a];
        const char *key = lk_factor_key(LK_FACTOR_AXIS, a);
        if (t->n_words != DIGITS) continue;
        cJSON *five = cJSON_CreateDoubleArray(t->probability, DIGITS);
        if (!five || !cJSON_AddItemToObject(parts[0], key, five) || !cJSON_AddNumberToObject(parts[1], key, t->mass) ||
            !cJSON_AddNumberToObject(parts[2], key, lk_thought_expected(t)) ||
            !cJSON_AddNumberToObject(parts[3], key, lk_thought_entropy(t)))
            return false;
    }
    return add_low_mass(line, v);
}

static double confidence_of(const struct lk_form_choice *t) { return t->n_words ? t->probability[t->chosen] : 0; }

static bool add_role(cJSON *line, const struct lk_seen *v) {
    return add_text(line, "assigned", lk_legacy_word(LK_LEGACY_ROLE, v->answer.role)) &&
           (!v->answer.presentation || cJSON_AddNumberToObject(line, "gender_presentation", v->answer.presentation)) &&
           (!v->thought[0].n_words || cJSON_AddNumberToObject(line, "confidence", confidence_of(&v->thought[0])));
}

static bool add_preferred(cJSON *line, const struct lk_seen *v) {
    static const char *const words[] = {"A", "B", "Same"};
    return add_text(line, "preferred", words[v->thought[0].chosen]) &&
           cJSON_AddNumberToObject(line, "confidence", confidence_of(&v->thought[0]));
}

static bool add_classes(cJSON *line, const struct lk_seen *v) {
    static const char *const words[3][3] = {{"yes", "partial", "no"}, {"yes", "no"}, {"yes", "no"}};
    static const enum lk_legacy_question questions[] = {LK_LEGACY_EDIT, LK_LEGACY_GENDER, LK_LEGACY_RACE};
    cJSON *confidence = cJSON_CreateObject();
    bool ok = confidence != NULL;
    for (int q = 0; q < 3 && ok; q++) {
        const char *key = lk_legacy_key(questions[q]);
        ok = add_text(line, key, words[q][v->thought[q].chosen]) &&
             cJSON_AddNumberToObject(confidence, key, confidence_of(&v->thought[q]));
    }
    if (ok && cJSON_AddItemToObject(line, "confidence", confidence)) return true;
    cJSON_Delete(confidence);
    return false;
}

static bool add_answer(cJSON *line, const struct lk_judge_item *item, const struct lk_seen *v) {
    if (v->refused) return add_text(line, "refusal", v->attempts[v->n_attempts - 1].raw);
    if (!v->valid) return cJSON_AddTrueToObject(line, "failed") != NULL;
    switch (item->message->question) {
    case LK_ASKED_ROLE:
    case LK_ASKED_PRESENTATION:
        return add_role(line, v);
    case LK_ASKED_EDIT:
        return add_classes(line, v);
    case LK_ASKED_PAIR:
        return add_preferred(line, v);
    default:
        return add_scores(line, v) && add_thoughts(line, v);
    }
}

enum lk_code judge_record_add(const struct judge_record *record, const struct lk_judge_item *item,
                              const struct lk_seen *verdict, struct lk_text *lines) {
    cJSON *line = cJSON_CreateObject();
    const struct lk_attempt *last = &verdict->attempts[verdict->n_attempts - 1];
    bool axes = item->message->question == LK_ASKED_AXES;
    bool ok = line && add_head(line, record, item) &&
              cJSON_AddBoolToObject(line, "constrained", strcmp(record->mode, "free") || (!axes && item->legacy)) &&
              cJSON_AddNumberToObject(line, "seed", (double)last->seed) && add_attempts(line, verdict) &&
              (item->legacy || add_text(line, "raw", last->raw ? last->raw : "")) && add_answer(line, item, verdict);
    char *text = ok ? cJSON_PrintUnformatted(line) : NULL;
    cJSON_Delete(line);
    if (!text) return lk_fail(LK_E_NOMEM, "judge run: out of memory");
    lk_text_add(lines, "%s\n", text);
    cJSON_free(text);
    return lines->rc;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void done_key(char out[600], const char *item_id, const char *order, bool bad) {
    snprintf(out, 600, "%.500s %.40s%s", item_id, order ? order : "", bad ? " in vain" : "");
}

static enum lk_code remember(struct judge_done *r, const char *item_id, const char *order, bool bad) {
    char key[600];
    done_key(key, item_id, order, bad);
    LK_TRY(lk_grow(&r->list, &r->capacity, r->n + 1, sizeof *r->list));
    r->list[r->n] = (char *)(uintptr_t)lk_store_copy(&r->texts, key, strlen(key));
    return r->list[r->n++] ? LK_OK : lk_fail(LK_E_NOMEM, "judge run: out of memory");
}

/* bad: and has no answer but a failure or a refusal. */
bool judge_is_done(const struct judge_done *r, const char *item_id, const char *order, bool bad) {
    char key[600], *at = key;
    done_key(key, item_id, order, bad);
    return r->n && bsearch(&at, r->list, r->n, sizeof *r->list, by_text);
}

/* A record of another judge, or asked otherwise, is none of this run's. */
static enum lk_code check_record(const struct judge_record *mine, const struct lk_fields *fields, const char *path,
                                 size_t line) {
    const char *const expected[][2] = {{"slot", mine->slot},
                                       {"model", mine->model},
                                       {"weights_identity", mine->weights_identity},
                                       {"mode", mine->mode},
                                       {"prompt_version", mine->prompt_version},
                                       {"dtype", mine->dtype},
                                       {"judge_check", mine->check}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct lk_field *field = lk_fields_find(fields, expected[i][0]);
        if (field ? expected[i][1] && !strcmp(field->text, expected[i][1]) : !expected[i][1]) continue;
        return lk_fail(LK_E_CHANGED,
                       "%s: line %zu: %s: expected %s as in this run, got %s; give another file, or the same settings",
                       path, line, expected[i][0], expected[i][1] ? expected[i][1] : "none", lk_field_shown(field));
    }
    return LK_OK;
}

/* One that an older version wrote says nothing of configs. */
static enum lk_code check_configs(const struct judge_record *record, const struct lk_fields *fields, const char *path,
                                  size_t line) {
    cJSON *mine = record->configs ? cJSON_Parse(record->configs) : NULL;
    const cJSON *item;
    enum lk_code rc = LK_OK;
    bool any = false;
    for (size_t i = 0; i < fields->n; i++) any = any || !strncmp(fields->list[i].name, "configs.", 8);
    if (any) cJSON_ArrayForEach(item, mine) {
            char name[300];
            snprintf(name, sizeof name, "configs.%.280s", item->string);
            const struct lk_field *field = lk_fields_find(fields, name);
            if (rc || (field && !strcmp(field->text, item->valuestring))) continue;
            rc = lk_fail(LK_E_CHANGED,
                         "%s: line %zu: %s: expected %s as in this run, got %s; give another file, or the model as it "
                         "was",
                         path, line, name, item->valuestring, lk_field_shown(field));
        }
    cJSON_Delete(mine);
    return rc;
}

static bool is_stale(const struct judge_done *r, const struct lk_fields *fields) {
    const struct lk_field *id = lk_fields_find(fields, "item_id"), *sha256 = lk_fields_find(fields, "edited_sha256");
    return r->is_shown && id && sha256 && !r->is_shown(r->pictures, id->text, sha256->text);
}

static enum lk_code read_lines(struct judge_done *r, const struct judge_record *record, const char *path,
                               const char *text, size_t n) {
    struct lk_records records;
    bool more = n > 0;
    if (!n) return LK_OK;
    LK_TRY(lk_records_open(&records, text, n, path));
    enum lk_code rc = LK_OK;
    while (!rc && !(rc = lk_records_next_strict(&records, &more)) && more) {
        const struct lk_field *id = lk_fields_find(&records.fields, "item_id");
        const struct lk_field *order = lk_fields_find(&records.fields, "order");
        rc = check_record(record, &records.fields, path, records.line);
        if (!rc) rc = check_configs(record, &records.fields, path, records.line);
        if (!rc && is_stale(r, &records.fields)) continue;
        bool bad = lk_fields_find(&records.fields, "failed") || lk_fields_find(&records.fields, "refusal");
        if (!rc && id) rc = remember(r, id->text, order ? order->text : NULL, false);
        if (!rc && id && bad) rc = remember(r, id->text, order ? order->text : NULL, true);
    }
    lk_records_close(&records);
    if (r->n) qsort(r->list, r->n, sizeof *r->list, by_text);
    return rc;
}

enum lk_code judge_done_read(struct judge_done *r, const struct judge_record *record, const char *path, bool mend) {
    char *text;
    size_t n;
    enum lk_code rc = lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n);
    if (rc == LK_E_NOT_FOUND) return LK_OK;
    if (rc) return rc;
    size_t whole = lk_whole_lines(text, n);
    rc = read_lines(r, record, path, text, whole);
    if (!rc && mend) rc = lk_cut_half_line(path, whole, n);
    lk_free(text);
    return rc;
}

static enum lk_code set_aside(const struct judge_done *r, const char *path) {
    struct lk_text kept = {0}, earlier = {0};
    struct lk_fields fields = {0};
    char *text, *aside = lk_format("%s.earlier", path);
    size_t n = 0, n_stale = 0;
    enum lk_code rc = aside ? lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n) : LK_E_NOMEM;
    if (rc) text = NULL;
    n = text ? lk_whole_lines(text, n) : 0;
    for (size_t at = 0, length; at < n && !rc; at += length) {
        length = (size_t)((const char *)memchr(text + at, '\n', n - at) + 1 - (text + at));
        const enum lk_code read = lk_fields_json(&fields, text + at, length, path);
        const bool stale = !read && is_stale(r, &fields);
        if (read == LK_E_NOMEM) rc = read; /* any other line that is no answer is judge_done_read's */
        if (!rc) lk_text_bytes(stale ? &earlier : &kept, text + at, length);
        n_stale += stale;
    }
    if (!rc) rc = kept.rc ? kept.rc : earlier.rc;
    if (!rc && earlier.n) rc = lk_append_lines(aside, earlier.bytes, earlier.n);
    if (!rc && earlier.n) rc = lk_atomic_write_file(path, kept.n ? kept.bytes : "", kept.n);
    if (!rc && earlier.n)
        lk_log(LK_LOG_INFO, "answers about earlier pictures, which are in %s now: %zu", aside, n_stale);
    lk_fields_free(&fields);
    lk_text_free(&kept);
    lk_text_free(&earlier);
    lk_free(text);
    lk_free(aside);
    return rc == LK_E_NOT_FOUND ? LK_OK : rc;
}

enum lk_code judge_done_set_aside(const struct judge_done *r, const char *path) {
    struct lk_append_lock lock = {0};
    LK_TRY(lk_append_lock(&lock, path));
    enum lk_code rc = set_aside(r, path);
    lk_append_unlock(&lock);
    return rc;
}

void judge_done_free(struct judge_done *done) {
    lk_store_free(&done->texts);
    lk_free(done->list);
    *done = (struct judge_done){0};
}
