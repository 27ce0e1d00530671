#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "eval/human/ratings.h"
#include "eval/study/prompts.h"
#include "tools/cli/cli.h"
#include "tools/cli/audit/audit.h"
#include "engine/base/digest.h"

struct writer {
    struct lk_dataset data;
    struct lk_ratings_import import;
    const char *salt;
    bool comments;
};

static bool add_text(cJSON *to, const char *name, const char *text) {
    return cJSON_AddStringToObject(to, name, text) != NULL;
}
static bool add_count(cJSON *to, const char *name, int value) {
    return value < 0 || cJSON_AddNumberToObject(to, name, value) != NULL;
}
static bool add_level(cJSON *to, const char *name, enum lk_factor factor, int level) {
    return level < 0 || add_text(to, name, lk_factor_key(factor, level));
}

/* A platform's ids never go on as they are: what is no digest must become one. */
static enum lk_code check_ids(const struct writer *w) {
    for (size_t i = 0; i < w->data.n_raters && !w->salt; i++) {
        const char *id = w->data.raters[i].id;
        if (strlen(id) == 64 && strspn(id, "0123456789abcdef") == 64) continue;
        return lk_fail(LK_E_USAGE, "--salt: missing: the raters' ids are a platform's and not yet salted (expected 64 "
                                   "hexadecimal digits); give --salt TEXT");
    }
    return LK_OK;
}

static bool add_worker(cJSON *line, const struct writer *w, int32_t rater) {
    const char *id = w->data.raters[rater].id;
    if (!w->salt) return add_text(line, "workerId", id);
    char salted[512], sha256[65];
    int n = snprintf(salted, sizeof salted, "%s%s", w->salt, id);
    lk_sha256(salted, (size_t)n, sha256);
    return add_text(line, "workerId", sha256);
}

static bool add_item(cJSON *line, const struct lk_item *item) {
    return add_text(line, "imageId", item->id) && add_level(line, "model", LK_FACTOR_MODEL, item->model) &&
           add_level(line, "race", LK_FACTOR_RACE, item->race) &&
           add_level(line, "gender", LK_FACTOR_GENDER, item->gender) &&
           add_level(line, "age", LK_FACTOR_AGE, item->age) &&
           add_level(line, "category", LK_FACTOR_CATEGORY, lk_prompt_category(item->prompt)) &&
           (item->prompt < 0 || add_text(line, "promptId", lk_prompt_id(item->prompt))) &&
           add_level(line, "arm", LK_FACTOR_ARM, item->arm);
}

/* Answers in classes under the fields of the protocols that have them. */
static bool add_class(cJSON *line, int axis, int answer) {
    static const char *const names[LK_N_AXES] = {"edit_success", "skinToneShift", "race_drift", "gender_drift",
                                                 "ageDrift"};
    static const char *const words[LK_N_AXES][3] = {{"no", "partial", "yes"},
                                                    {"darker", "same", "lighter"},
                                                    {"no", "yes", NULL},
                                                    {"no", "yes", NULL},
                                                    {"on-target", "off-target", NULL}};
    return answer < 0 || add_text(line, names[axis], words[axis][answer]);
}

/* A skipped question is a null. */
static bool add_scores(cJSON *line, const struct lk_rating *r) {
    bool any = (r->open_questions & (LK_OPEN_PREFERENCE - 1)) != 0;
    for (int a = 0; a < LK_N_AXES; a++) any = any || (r->score[a] && r->answer_class[a] < 0);
    cJSON *scores = any ? cJSON_AddObjectToObject(line, "scores") : NULL;
    if (any && !scores) return false;
    for (int a = 0; a < LK_N_AXES; a++) {
        const char *key = lk_factor_key(LK_FACTOR_AXIS, a);
        bool in_class = r->answer_class[a] >= 0;
        if (in_class && !add_class(line, a, r->answer_class[a])) return false;
        if (in_class) continue;
        if (r->score[a] && !cJSON_AddNumberToObject(scores, key, r->score[a])) return false;
        if (r->open_questions >> a & 1 && !cJSON_AddNullToObject(scores, key)) return false;
    }
    return true;
}

static bool add_times(cJSON *line, const struct lk_rating *r) {
    cJSON *times = cJSON_CreateObject();
    bool ok = times != NULL;
    for (int a = 0; a < LK_N_AXES && ok; a++)
        ok = add_count(times, lk_factor_key(LK_FACTOR_AXIS, a), r->question_ms[a]);
    if (ok && times->child && cJSON_AddItemToObject(line, "question_ms", times)) return true;
    cJSON_Delete(times);
    return ok;
}

static bool add_answers(cJSON *line, const struct lk_rating *r) {
    static const char *const preferences[] = {"edited", "preserved", "same"};
    static const char *const roles[] = {"male", "female", "unclear"};
    return add_scores(line, r) && (!r->skin_magnitude || add_count(line, "skin_change_magnitude", r->skin_magnitude)) &&
           (r->preference < 0 || add_text(line, "preference", preferences[r->preference])) &&
           (!(r->open_questions & LK_OPEN_PREFERENCE) || cJSON_AddNullToObject(line, "preference")) &&
           (!(r->open_questions & LK_OPEN_ROLE) || cJSON_AddNullToObject(line, "roleAssignment")) &&
           (!r->confidence || add_count(line, "confidence", r->confidence)) &&
           (r->role == LK_ROLE_NONE || add_text(line, "roleAssignment", roles[r->role]));
}

static bool fill_evaluation(cJSON *line, const struct writer *w, const struct lk_rating *r) {
    bool named = r->is_gold ? add_text(line, "imageId", w->import.gold_ids.list[r->gold])
                            : add_item(line, &w->data.items[r->item]);
    return named && add_worker(line, w, r->rater) && add_answers(line, r) &&
           add_count(line, "duration_ms", r->duration_ms) && add_times(line, r) &&
           add_count(line, "position", r->position) &&
           (r->task < 0 || add_text(line, "taskId", w->import.tasks.list[r->task])) &&
           cJSON_AddBoolToObject(line, "isAttentionCheck", r->is_gold) != NULL &&
           (!r->gold_keyed || cJSON_AddBoolToObject(line, "gold_right", r->gold_right)) &&
           (!r->timestamp || add_text(line, "timestamp", r->timestamp)) &&
           (!r->comment || !w->comments || add_text(line, "comment", r->comment));
}

static bool fill_participant(cJSON *line, const struct writer *w, const struct lk_participant *p) {
    const struct lk_rater *rater = &w->data.raters[p->rater];
    const char *const names[] = {"sex", "ethnicity", "student", "language", "country"};
    const char *const texts[] = {p->sex, p->ethnicity, p->student, p->language, p->country};
    if (!add_worker(line, w, p->rater) || !cJSON_AddBoolToObject(line, "submitted", rater->submitted) ||
        !cJSON_AddBoolToObject(line, "code_valid", rater->code_valid) ||
        !cJSON_AddBoolToObject(line, "pilot", rater->is_pilot) || !add_count(line, "age", p->age))
        return false;
    for (int i = 0; i < 5; i++)
        if (*texts[i] && !add_text(line, names[i], texts[i])) return false;
    return true;
}

static enum lk_code print_line(cJSON *line, bool ok) {
    char *text = line && ok ? cJSON_PrintUnformatted(line) : NULL;
    cJSON_Delete(line);
    if (!text) return lk_fail(LK_E_NOMEM, "ratings: out of memory");
    puts(text);
    cJSON_free(text);
    return LK_OK;
}

/* An instructed-response check has no answer that the dataset keeps, only whether it was right. */
static bool has_answer(const struct lk_rating *r) {
    bool any = r->skin_magnitude || r->preference >= 0 || r->confidence || r->role != LK_ROLE_NONE || r->n_skipped;
    for (int a = 0; a < LK_N_AXES; a++) any = any || r->score[a] || r->answer_class[a] >= 0;
    return any || r->gold_keyed;
}

static enum lk_code print_evaluations(const struct writer *w) {
    size_t n_left_out = 0;
    for (size_t i = 0; i < w->data.n_ratings; i++) {
        const struct lk_rating *r = &w->data.ratings[i];
        if (!has_answer(r)) {
            n_left_out++;
            continue;
        }
        cJSON *line = cJSON_CreateObject();
        LK_TRY(print_line(line, line && fill_evaluation(line, w, r)));
    }
    if (n_left_out)
        lk_log(LK_LOG_WARNING, "%zu attention checks in words without an expectation were left out", n_left_out);
    return LK_OK;
}

/* As often as the participant submitted: repeated participation stays visible. */
static enum lk_code print_participants(const struct writer *w) {
    for (size_t i = 0; i < w->import.n_participants; i++) {
        const struct lk_participant *p = &w->import.participants[i];
        for (int k = 0; k < w->data.raters[p->rater].n_sessions || k == 0; k++) {
            cJSON *line = cJSON_CreateObject();
            LK_TRY(print_line(line, line && fill_participant(line, w, p)));
        }
    }
    return LK_OK;
}

typedef enum lk_code (*read_fn)(struct lk_ratings_import *, const char *, size_t, const char *);

static enum lk_code read_with(struct writer *w, const char *path, read_fn read) {
    char *text;
    size_t n;
    LK_TRY(lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n));
    enum lk_code rc = read(&w->import, text, n, path);
    lk_free(text);
    return rc;
}

static enum lk_code read_participants(struct writer *w, const char *path, const char *code) {
    char *text;
    size_t n;
    LK_TRY(lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n));
    enum lk_code rc = lk_ratings_participants(&w->import, text, n, path, code);
    lk_free(text);
    return rc;
}

static enum lk_code write_evaluations(struct writer *w, const struct cli_arguments *a) {
    if (a->report.gold) LK_TRY(read_with(w, a->report.gold, lk_ratings_gold));
    for (int i = 0; i < a->report.ratings.n; i++) {
        const char *path = a->report.ratings.values[i];
        size_t n_before = w->import.rejects.n;
        LK_TRY(read_with(w, path, lk_ratings_read));
        cli_print_fresh_rejects(path, &w->import.rejects, n_before);
        cli_print_unread(path, &w->import.unread);
    }
    LK_TRY(check_ids(w));
    LK_TRY(print_evaluations(w));
    lk_log(LK_LOG_INFO, "%zu records, %zu revisions, %zu invalid", w->import.n_records, w->import.n_revisions,
           w->import.n_invalid);
    cli_print_left_out(&w->import);
    const char *first = a->report.ratings.values[0], *more = a->report.ratings.n > 1 ? " and the other files" : "";
    if (!w->import.n_records) return lk_fail(LK_E_INPUT, "%s%s: expected records of ratings, got none", first, more);
    if (!w->import.n_invalid) return LK_OK;
    return lk_fail(w->import.n_invalid < w->import.n_records ? LK_E_PARTIAL : LK_E_INPUT,
                   "%s%s: %zu of %zu records were refused", first, more, w->import.n_invalid, w->import.n_records);
}

static enum lk_code run(struct writer *w, const struct cli_arguments *a) {
    if (a->report.ratings.n) return write_evaluations(w, a); /* the verb evaluations, which needs --ratings */
    LK_TRY(read_participants(w, a->report.participants, a->report.completion_code));
    cli_print_rejects(a->report.participants, &w->import.rejects);
    cli_print_unread(a->report.participants, &w->import.unread);
    LK_TRY(check_ids(w));
    LK_TRY(print_participants(w));
    if (!w->import.n_listed_invalid) return LK_OK;
    return lk_fail(w->import.n_listed_invalid < w->import.n_listed ? LK_E_PARTIAL : LK_E_INPUT,
                   "%s: %zu of %zu records were refused", a->report.participants, w->import.n_listed_invalid,
                   w->import.n_listed);
}

enum lk_code cli_ratings(const struct cli_arguments *a) {
    struct writer w = {.import = {.gold_tolerance = (int)a->report.gold_tolerance},
                       .salt = a->review.salt,
                       .comments = a->survey.comments};
    if (w.salt && (!*w.salt || strlen(w.salt) > 256))
        return lk_fail(LK_E_USAGE, "--salt: expected a text of 1 to 256 bytes");
    lk_dataset_init(&w.data);
    w.import.data = &w.data;
    enum lk_code rc = cli_known_read(&w.data, &a->report);
    if (!rc) rc = run(&w, a);
    lk_ratings_import_free(&w.import);
    lk_dataset_free(&w.data);
    return rc;
}
