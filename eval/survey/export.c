#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/base/alloc.h"
#include "eval/study/factors.h"
#include "eval/study/prompts.h"
#include "eval/survey/store.h"

/* An export's lines as a table: a column for each field of any line, "scores.race_drift" for one inside another. */

enum { MAX_COLUMNS = 96 };

struct table {
    char columns[MAX_COLUMNS][64];
    int n;
    const cJSON *cells[MAX_COLUMNS]; /* of the line at hand */
    struct lk_text *out;
};

/* The fields of a line into their columns; a new name makes a column. False when there are too many. */
static bool take(struct table *t, const cJSON *object, const char *prefix) {
    const cJSON *field;
    cJSON_ArrayForEach(field, object) {
        char name[64];
        int k = 0;
        if (snprintf(name, sizeof name, "%s%s", prefix, field->string) >= (int)sizeof name - 1) return false;
        if (cJSON_IsObject(field)) {
            memcpy(name + strlen(name), ".", 2);
            if (!take(t, field, name)) return false;
            continue;
        }
        while (k < t->n && strcmp(t->columns[k], name)) k++;
        if (k == MAX_COLUMNS) return false;
        if (k == t->n) snprintf(t->columns[t->n++], sizeof name, "%s", name);
        t->cells[k] = field;
    }
    return true;
}

void lk_survey_csv_text(struct lk_text *out, const char *text) {
    lk_text_add(out, "\"%s", *text && strchr("=+-@\t\r", *text) ? "'" : "");
    for (const char *at = text; *at; at++) lk_text_bytes(out, *at == '"' ? "\"\"" : at, *at == '"' ? 2 : 1);
    lk_text_add(out, "\"");
}

static void write_cell(struct lk_text *out, const cJSON *cell) {
    if (cJSON_IsString(cell)) lk_survey_csv_text(out, cell->valuestring);
    if (cJSON_IsNumber(cell)) lk_text_add(out, "%.17g", cell->valuedouble);
    if (cJSON_IsBool(cell)) lk_text_add(out, cJSON_IsTrue(cell) ? "true" : "false");
}

/* The lines once to find the columns, and once to write them. */
static enum lk_code pass(struct table *t, const struct lk_text *lines, bool writes) {
    const char *line = lines->n ? lines->bytes : "";
    for (const char *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        cJSON *root = cJSON_ParseWithLength(line, (size_t)(end - line));
        memset(t->cells, 0, sizeof t->cells);
        bool ok = root && take(t, root, "");
        for (int k = 0; ok && writes && k < t->n; k++) {
            if (k) lk_text_bytes(t->out, ",", 1);
            write_cell(t->out, t->cells[k]);
        }
        if (writes) lk_text_bytes(t->out, "\n", 1);
        cJSON_Delete(root);
        if (!ok) return lk_fail(LK_E_INTERNAL, "an export with too many fields for a table");
    }
    return t->out->rc;
}

enum lk_code lk_survey_csv(const struct lk_text *lines, struct lk_text *out) {
    struct table *t = lk_calloc(1, sizeof *t);
    if (!t) return lk_fail(LK_E_NOMEM, "out of memory for an export");
    t->out = out;
    enum lk_code rc = pass(t, lines, false);
    for (int k = 0; !rc && k < t->n; k++) lk_text_add(out, "%s%s", k ? "," : "", t->columns[k]);
    lk_text_bytes(out, "\n", 1);
    if (!rc) rc = pass(t, lines, true);
    lk_free(t);
    return rc;
}

enum { MAX_ROWS = LK_SURVEY_MAX_QUESTIONS + 1 };

static void date_of(int64_t ms, char out[32]) {
    time_t seconds = (time_t)(ms / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

static enum lk_code add_line(struct lk_text *out, cJSON *line, bool ok) {
    char *text = line && ok ? cJSON_PrintUnformatted(line) : NULL;
    cJSON_Delete(line);
    if (!text) return lk_fail(LK_E_NOMEM, "out of memory for an export");
    lk_text_bytes(out, text, strlen(text));
    lk_text_bytes(out, "\n", 1);
    cJSON_free(text);
    return out->rc;
}

/* One participant's last answers about one item. */
struct group {
    char worker[65], consent_sha256[65];
    int64_t claim, at;
    int place, position, left_arm, n;
    bool pilot; /* a simulated participant */
    struct {
        char key[40], value[24];
        int64_t ms;
    } rows[MAX_ROWS];
    char comment[2048];
};

struct exporter {
    struct lk_survey *s;
    struct lk_sql *sql;
    struct lk_text *out;
    bool comments;
    const struct lk_survey_item *items[2048];
    int64_t claim; /* whose items they are */
};

static bool add_text(cJSON *to, const char *name, const char *text) {
    return cJSON_AddStringToObject(to, name, text) != NULL;
}

/* The item into the object; gone when memory is out. */
static bool give(cJSON *to, const char *name, cJSON *item) {
    if (cJSON_AddItemToObject(to, name, item)) return true;
    cJSON_Delete(item);
    return false;
}

static bool add_level(cJSON *to, const char *name, enum lk_factor factor, int level) {
    return level < 0 || add_text(to, name, lk_factor_key(factor, level));
}

static bool add_item(cJSON *line, const struct lk_survey_item *item, int arm) {
    char id[160], pair[16];
    snprintf(id, sizeof id, "%s%s%s", item->id, item->kind && arm >= 0 ? "." : "",
             item->kind && arm >= 0 ? lk_factor_key(LK_FACTOR_ARM, arm) : "");
    snprintf(pair, sizeof pair, "P%03d", item->pair);
    const char *sha256 = item->kind ? NULL : item->sha256[arm == LK_ARM_PRESERVED ? LK_ARM_PRESERVED : LK_ARM_EDITED];
    return add_text(line, "imageId", id) && (!sha256 || add_text(line, "imageSha256", sha256)) &&
           add_level(line, "model", LK_FACTOR_MODEL, item->model) &&
           add_level(line, "race", LK_FACTOR_RACE, item->race) &&
           add_level(line, "gender", LK_FACTOR_GENDER, item->gender) &&
           add_level(line, "age", LK_FACTOR_AGE, item->age) &&
           add_level(line, "category", LK_FACTOR_CATEGORY, lk_prompt_category(item->prompt_number)) &&
           (item->prompt_number < 0 || add_text(line, "promptId", lk_prompt_id(item->prompt_number))) &&
           add_level(line, "arm", LK_FACTOR_ARM, arm) && (item->kind || add_text(line, "pairId", pair));
}

/* Sides become arms. */
static const char *meant(const char *value, int left_arm) {
    bool left = !strcmp(value, "A") || !strcmp(value, "left"), right = !strcmp(value, "B") || !strcmp(value, "right");
    return left || right ? lk_factor_key(LK_FACTOR_ARM, left ? left_arm : 1 - left_arm) : value;
}

/* Fields with a place of their own in the dictionary; the other five-level answers are scores. */
static bool stands_alone(const char *axis) {
    static const char *const names[] = {"editQuality", "skinToneShift",        "raceDrift",  "genderDrift",
                                        "ageDrift",    "preference",           "confidence", "roleAssignment",
                                        "answer",      "skin_change_magnitude"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], axis)) return true;
    return false;
}

static bool add_answer(cJSON *line, cJSON *scores, const char *axis, const char *value) {
    bool number = value[0] >= '1' && value[0] <= '5' && !value[1], alone = stands_alone(axis);
    cJSON *to = alone || !number ? line : scores;
    if (!strcmp(value, "skip")) return cJSON_AddNullToObject(scores, axis) != NULL;
    if (number && strcmp(axis, "answer")) return cJSON_AddNumberToObject(to, axis, value[0] - '0') != NULL;
    return add_text(to, axis, value);
}

/* picture: whose answers, -1 all. */
static bool add_answers(cJSON *line, const struct group *g, int picture) {
    cJSON *scores = cJSON_CreateObject(), *times = cJSON_CreateObject();
    int64_t total = 0;
    bool ok = scores && times;
    for (int i = 0; i < g->n && ok; i++) {
        const char *axis = g->rows[i].key;
        if (picture >= 0) {
            if (axis[0] != 'a' + picture) continue;
            axis += 2;
        }
        ok = add_answer(line, scores, axis, meant(g->rows[i].value, g->left_arm)) &&
             cJSON_AddNumberToObject(times, axis, (double)g->rows[i].ms);
        total += g->rows[i].ms;
    }
    if (ok && scores->child)
        ok = give(line, "scores", scores);
    else
        cJSON_Delete(scores);
    return give(line, "question_ms", times) && ok &&
           cJSON_AddNumberToObject(line, "duration_ms", (double)total) != NULL;
}

/* Whether an instrument asks about the axis that an expectation names; what is no axis is asked. */
static bool is_asked(const struct lk_survey_questions *questions, const char *name) {
    int axis = lk_survey_axis_of(name);
    for (int i = 0; i < questions->n; i++)
        if (axis < 0 || lk_survey_axis_of(questions->list[i].axis) == axis) return true;
    return false;
}

/* A gold item serves several instruments: what is not asked cannot be right. */
static bool keep_asked(const struct lk_survey_study *study, const struct lk_survey_item *item, cJSON *own) {
    struct lk_survey_questions questions;
    if (lk_survey_questions_of(study, item, &questions)) return false;
    for (cJSON *one = own->child, *next; one; one = next) {
        next = one->next;
        if (!is_asked(&questions, one->string)) cJSON_Delete(cJSON_DetachItemViaPointer(own, one));
    }
    lk_survey_questions_free(&questions);
    return true;
}

static bool add_expected(cJSON *line, const struct lk_survey_study *study, const struct lk_survey_item *item, int arm) {
    if (item->kind == LK_SURVEY_ITEM) return true;
    bool check = item->kind == LK_SURVEY_CHECK;
    const cJSON *of_arm =
        arm < 0 ? NULL : cJSON_GetObjectItemCaseSensitive(item->expected, lk_factor_key(LK_FACTOR_ARM, arm));
    cJSON *own = check ? cJSON_CreateObject() : cJSON_Duplicate(of_arm ? of_arm : item->expected, true);
    bool ok = own && (check ? add_text(own, "answer", item->choice) : keep_asked(study, item, own));
    if (!ok) cJSON_Delete(own);
    return ok && give(line, "expected", own);
}

static enum lk_code write_record(struct exporter *e, const struct group *g, const struct lk_survey_item *item,
                                 int picture) {
    const struct lk_survey_study *study = e->s->study;
    char at[32], task[16];
    int arm = picture < 0    ? (study->experiment == 1 && !item->kind ? LK_ARM_EDITED : -1)
              : picture == 0 ? g->left_arm
                             : 1 - g->left_arm;
    cJSON *line = cJSON_CreateObject();
    date_of(g->at, at);
    snprintf(task, sizeof task, "T%02d", g->place % study->n_tasks + 1);
    bool ok = line && add_text(line, "workerId", g->worker) && add_item(line, item, arm) &&
              add_answers(line, g, picture) && add_text(line, "timestamp", at) &&
              cJSON_AddBoolToObject(line, "isAttentionCheck", item->kind != LK_SURVEY_ITEM) &&
              add_expected(line, study, item, arm) &&
              (study->experiment != 2 || add_level(line, "left_arm", LK_FACTOR_ARM, g->left_arm)) &&
              cJSON_AddNumberToObject(line, "position", g->position + 1) && add_text(line, "taskId", task) &&
              add_text(line, "protocol", lk_protocol_name(study->protocol)) &&
              add_text(line, "instrument", study->instrument) && add_text(line, "consentHash", g->consent_sha256) &&
              (!g->pilot || cJSON_AddTrueToObject(line, "simulated")) &&
              (!e->comments || !*g->comment || add_text(line, "comment", g->comment));
    return add_line(e->out, line, ok);
}

static enum lk_code write_group(struct exporter *e, const struct group *g) {
    const struct lk_survey_study *study = e->s->study;
    if (!g->n) return LK_OK;
    size_t length = lk_survey_task_length(study, g->place);
    if (length > sizeof e->items / sizeof *e->items || g->position >= (int)length)
        return lk_fail(LK_E_INTERNAL, "an answer at position %d of place %d", g->position, g->place + 1);
    if (e->claim != g->claim) LK_TRY(lk_survey_task_items(study, g->worker, g->place, e->items));
    e->claim = g->claim;
    const struct lk_survey_item *item = e->items[g->position];
    if (!study->both_arms || item->kind == LK_SURVEY_CHECK) return write_record(e, g, item, -1);
    for (int picture = 0; picture < 2; picture++) {
        bool any = false; /* a page left half-way has answers about one picture only */
        for (int i = 0; i < g->n; i++) any = any || g->rows[i].key[0] == 'a' + picture;
        if (any) LK_TRY(write_record(e, g, item, picture));
    }
    return LK_OK;
}

/* A row of the store: a later one about the same question takes the earlier one's place, but not its time. */
static void take_row(struct group *g, sqlite3_stmt *q) {
    const char *key = lk_sql_text(q, 1), *value = lk_sql_text(q, 2);
    g->at = sqlite3_column_int64(q, 5);
    g->left_arm = sqlite3_column_int(q, 3);
    if (!strcmp(key, "comment")) {
        snprintf(g->comment, sizeof g->comment, "%s", value);
        return;
    }
    int i = 0;
    while (i < g->n && strcmp(g->rows[i].key, key)) i++;
    if (i == MAX_ROWS) return;
    if (i == g->n) g->rows[g->n++].ms = 0;
    snprintf(g->rows[i].key, sizeof g->rows[i].key, "%s", key);
    snprintf(g->rows[i].value, sizeof g->rows[i].value, "%s", value);
    g->rows[i].ms += sqlite3_column_int64(q, 4);
}

/* The answers of the claim that g names. */
static enum lk_code write_claim(struct exporter *e, struct group g) {
    const struct group empty = g;
    sqlite3_stmt *q;
    LK_TRY(
        lk_sql_open(e->sql, &q,
                    "SELECT position, key, value, left_arm, ms, at FROM read_answers WHERE claim=?1 ORDER BY position, "
                    "id",
                    "i", g.claim));
    enum lk_code rc = LK_OK;
    for (bool row = true; !rc && row;) {
        rc = lk_sql_step(e->sql, q, &row);
        if (rc) break;
        int position = row ? sqlite3_column_int(q, 0) : -1;
        if (position != g.position) {
            rc = write_group(e, &g);
            g = empty;
            g.position = position;
        }
        if (row) take_row(&g, q);
    }
    sqlite3_finalize(q);
    return rc;
}

/* The next claim behind g's, into g; *more is false when it was the last. */
static enum lk_code next_claim(struct exporter *e, bool abandoned, struct group *g, bool *more) {
    sqlite3_stmt *q;
    int64_t last = g->claim;
    LK_TRY(lk_sql_open(
        e->sql, &q,
        "SELECT c.id, c.task, p.worker, p.consent_sha256, p.pilot FROM read_claims c JOIN read_participants p ON "
        "p.id=c.participant WHERE (c.state='abandoned')=?1 AND c.id>?2 ORDER BY c.id LIMIT 1",
        "ii", (int64_t)abandoned, last));
    enum lk_code rc = lk_sql_step(e->sql, q, more);
    if (!rc && *more) {
        *g = (struct group){.claim = sqlite3_column_int64(q, 0),
                            .place = sqlite3_column_int(q, 1),
                            .position = -1,
                            .pilot = sqlite3_column_int(q, 4)};
        snprintf(g->worker, sizeof g->worker, "%s", lk_sql_text(q, 2));
        snprintf(g->consent_sha256, sizeof g->consent_sha256, "%s", lk_sql_text(q, 3));
    }
    sqlite3_finalize(q);
    return rc;
}

enum lk_code lk_survey_export_answers(struct lk_survey *s, bool abandoned, bool comments, struct lk_text *out) {
    struct exporter e = {.s = s, .sql = &s->sql, .out = out, .comments = comments, .claim = -1};
    struct group g = {.claim = INT64_MIN};
    enum lk_code rc = LK_OK;
    pthread_mutex_lock(&s->sql.lock);
    for (bool more = true; !rc && more;) {
        rc = next_claim(&e, abandoned, &g, &more);
        if (!rc && more) rc = write_claim(&e, g);
    }
    pthread_mutex_unlock(&s->sql.lock);
    return rc;
}

static bool fill_participant(const struct lk_survey *s, cJSON *line, sqlite3_stmt *q) {
    bool submitted = sqlite3_column_int(q, 4) != 0;
    char at[32];
    date_of(sqlite3_column_int64(q, 2), at);
    return add_text(line, "workerId", lk_sql_text(q, 0)) && cJSON_AddBoolToObject(line, "submitted", submitted) &&
           cJSON_AddBoolToObject(line, "code_valid", submitted) &&
           cJSON_AddBoolToObject(line, "pilot", sqlite3_column_int(q, 1)) && add_text(line, "consentTime", at) &&
           add_text(line, "consentHash", lk_sql_text(q, 3)) &&
           (!*s->study->retain_until || add_text(line, "retainUntil", s->study->retain_until));
}

enum lk_code lk_survey_export_participants(struct lk_survey *s, struct lk_text *out) {
    sqlite3_stmt *q;
    pthread_mutex_lock(&s->sql.lock);
    enum lk_code rc =
        lk_sql_open(&s->sql, &q,
                    "SELECT worker, pilot, consent_at, consent_sha256, (SELECT count(*) FROM read_claims c "
                    "WHERE c.participant=p.id AND c.state='submitted') FROM read_participants p WHERE "
                    "consent_at IS NOT NULL ORDER BY id",
                    "");
    for (bool row = true; !rc && row;) {
        rc = lk_sql_step(&s->sql, q, &row);
        cJSON *line = !rc && row ? cJSON_CreateObject() : NULL;
        if (!rc && row) rc = add_line(out, line, line && fill_participant(s, line, q));
    }
    sqlite3_finalize(q);
    pthread_mutex_unlock(&s->sql.lock);
    return rc;
}

enum lk_code lk_survey_simulated(struct lk_survey *s, int64_t *n_participants, int64_t *n_simulated) {
    LK_TRY(lk_sql_number(&s->sql, n_participants, 0,
                         "SELECT count(*) FROM read_participants WHERE consent_at IS NOT "
                         "NULL",
                         ""));
    return lk_sql_number(&s->sql, n_simulated, 0,
                         "SELECT count(*) FROM read_participants WHERE pilot AND consent_at IS "
                         "NOT NULL",
                         "");
}
