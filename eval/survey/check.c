/* What is read from answers.db is looked at first: the file's structure, its tables, and each value against the study.
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/survey/store.h"

enum { MAX_PLACES = 1000 }; /* of a task, as the study file is read */

/* SQLite's own examination, indexes included. */
static enum lk_code check_structure(struct lk_survey *s) {
    sqlite3_stmt *q;
    bool row = false;
    char found[300] = "";
    LK_TRY(lk_sql_open(&s->sql, &q, "PRAGMA integrity_check(1)", ""));
    enum lk_code rc = lk_sql_step(&s->sql, q, &row);
    if (!rc && row) snprintf(found, sizeof found, "%s", lk_sql_text(q, 0));
    sqlite3_finalize(q);
    if (rc || !strcmp(found, "ok")) return rc;
    const char *second = strchr(found, '\n'); /* behind "*** in database main ***" */
    return lk_fail(LK_E_INPUT, "%s: the file is damaged (%.250s); %s", s->path, second ? second + 1 : found,
                   lk_survey_advice);
}

/* The tables and indexes that `schema` makes, and no others: of a table of another shape nothing can be said. */
static enum lk_code check_tables(struct lk_survey *s, const char *schema) {
    static const char all[] =
        "SELECT group_concat(sql, char(10)) FROM (SELECT sql FROM main.sqlite_master WHERE sql IS "
        "NOT NULL ORDER BY name)";
    struct lk_survey model = {.study = s->study};
    struct lk_text statements = {0};
    int64_t same = 0;
    enum lk_code rc = lk_sql_attach(&model.sql, ":memory:", s->path, schema);
    if (!rc) rc = lk_survey_seal_functions(&model);
    if (!rc) rc = lk_survey_seal_new(&model);
    sqlite3_stmt *q = NULL;
    bool row;
    if (!rc) rc = lk_sql_open(&model.sql, &q, all, "");
    if (!rc) rc = lk_sql_step(&model.sql, q, &row);
    if (!rc) lk_text_add(&statements, "%s", lk_sql_text(q, 0));
    sqlite3_finalize(q);
    lk_sql_close(&model.sql);
    EVP_MAC_CTX_free(model.mac);
    if (!rc) rc = statements.rc;
    if (!rc) {
        char *ask = lk_format("SELECT (%s)=?1", all);
        rc = ask ? lk_sql_number(&s->sql, &same, 0, ask, "t", statements.bytes)
                 : lk_fail(LK_E_NOMEM, "out of memory for a survey");
        lk_free(ask);
    }
    lk_text_free(&statements);
    if (rc || same) return rc;
    return lk_fail(LK_E_INPUT, "%s: its tables are not a survey's: the file is damaged or another's; %s", s->path,
                   lk_survey_advice);
}

enum lk_code lk_survey_check(struct lk_survey *s, const char *schema) {
    LK_TRY(check_structure(s));
    return check_tables(s, schema);
}

static enum lk_code bad_value(const struct lk_survey *s, const char *table, int64_t row, const char *column,
                              const char *expected, const char *got) {
    return lk_fail(LK_E_INPUT, "%s: table %s, row %lld: %s: expected %s, got \"%.40s\"; %s", s->path, table,
                   (long long)row, column, expected, got, lk_survey_advice);
}

/* What SQL can say of a value alone, or of the row that it names. */
static enum lk_code check_columns(struct lk_survey *s) {
    static const struct {
        const char *table, *column, *expected, *wrong; /* wrong: SQL that is true of a bad row */
    } rules[] = {
        {"participants", "worker", "64 hexadecimal digits",
         "typeof(worker)<>'text' OR length(worker)<>64 OR worker GLOB '*[^0-9a-f]*'"},
        {"participants", "entered_at", "a time", "typeof(entered_at)<>'integer' OR entered_at<0"},
        {"participants", "guided_at", "a time or none", "typeof(guided_at) NOT IN ('integer','null')"},
        {"participants", "consent_sha256", "64 hexadecimal digits",
         "consent_at IS NOT NULL AND (typeof(consent_sha256)<>'text' OR length(consent_sha256)<>64)"},
        {"participants", "consent_at", "a time or none", "typeof(consent_at) NOT IN ('integer','null')"},
        {"sessions", "token_sha256", "64 hexadecimal digits", "length(token_sha256)<>64"},
        {"sessions", "participant", "a participant", "participant NOT IN (SELECT id FROM read_participants)"},
        {"sessions", "at", "a time", "typeof(at)<>'integer'"},
        {"claims", "participant", "a participant", "participant NOT IN (SELECT id FROM read_participants)"},
        {"claims", "task", "one of the study's tasks", "typeof(task)<>'integer' OR task<0 OR task>=?1"},
        {"claims", "state", "open, submitted or abandoned", "state NOT IN ('open','submitted','abandoned')"},
        {"claims", "lease", "a count", "typeof(lease)<>'integer' OR lease<0"},
        {"claims", "claimed_at", "a time", "typeof(claimed_at)<>'integer'"},
        {"claims", "active_at", "a time", "typeof(active_at)<>'integer'"},
        {"claims", "last_at", "a time", "typeof(last_at)<>'integer'"},
        {"claims", "submitted_at", "a time", "state='submitted' AND typeof(submitted_at)<>'integer'"},
        {"answers", "claim", "a claim", "claim NOT IN (SELECT id FROM read_claims)"},
        {"answers", "position", "a position", "typeof(position)<>'integer'"},
        {"answers", "ms", "milliseconds", "typeof(ms)<>'integer' OR ms<0"},
        {"answers", "at", "a time", "typeof(at)<>'integer'"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char sql[400], got[64] = "";
        sqlite3_stmt *q;
        bool row = false;
        int64_t id = 0;
        snprintf(sql, sizeof sql, "SELECT rowid, %s FROM main.%s WHERE (%s) AND ?1>=0 LIMIT 1", rules[i].column,
                 rules[i].table, rules[i].wrong);
        LK_TRY(lk_sql_open(&s->sql, &q, sql, "i", (int64_t)s->study->n_tasks * MAX_PLACES));
        enum lk_code rc = lk_sql_step(&s->sql, q, &row);
        if (!rc && row) id = sqlite3_column_int64(q, 0);
        if (!rc && row) snprintf(got, sizeof got, "%s", lk_sql_text(q, 1));
        sqlite3_finalize(q);
        if (rc) return rc;
        if (row) return bad_value(s, rules[i].table, id, rules[i].column, rules[i].expected, got);
    }
    return LK_OK;
}

struct reading {
    int64_t claim;
    int position;
    const struct lk_survey_item **items; /* of the claim's task */
    size_t n_items;
    struct lk_survey_questions questions; /* of the position's item */
    int left_arm;
};

static enum lk_code check_answer(struct lk_survey *s, struct reading *r, sqlite3_stmt *q) {
    int64_t id = sqlite3_column_int64(q, 0), claim = sqlite3_column_int64(q, 1), position = sqlite3_column_int64(q, 4);
    const char *worker = lk_sql_text(q, 3);
    int task = sqlite3_column_int(q, 2);
    bool next = claim != r->claim;
    if (next) {
        lk_free(r->items);
        r->claim = claim;
        r->n_items = lk_survey_task_length(s->study, task);
        r->items = lk_malloc(r->n_items * sizeof *r->items);
        if (!r->items) return lk_fail(LK_E_NOMEM, "out of memory for a task");
        LK_TRY(lk_survey_task_items(s->study, worker, task, r->items));
    }
    if (position < 0 || position >= (int64_t)r->n_items)
        return bad_value(s, "answers", id, "position", "one of the task's", lk_sql_text(q, 4));
    if (next || position != r->position) {
        r->position = (int)position;
        lk_survey_questions_free(&r->questions);
        LK_TRY(lk_survey_questions_of(s->study, r->items[position], &r->questions));
        LK_TRY(lk_survey_left_arm(s->study, worker, r->items[position], &r->left_arm));
    }
    const struct lk_survey_given given = {lk_sql_text(q, 5), lk_sql_text(q, 6)};
    if (strcmp(lk_sql_text(q, 7), r->items[position]->id) != 0)
        return bad_value(s, "answers", id, "item", r->items[position]->id, lk_sql_text(q, 7));
    if (sqlite3_column_int(q, 8) != r->left_arm)
        return bad_value(s, "answers", id, "left_arm", r->left_arm ? "1" : "0", lk_sql_text(q, 8));
    return lk_survey_is_valid(s->study, &r->questions, &given)
               ? LK_OK
               : bad_value(s, "answers", id, given.key, "an option of its question", given.value);
}

enum lk_code lk_survey_check_values(struct lk_survey *s) {
    struct reading r = {.claim = -1};
    sqlite3_stmt *q;
    LK_TRY(check_columns(s));
    LK_TRY(
        lk_sql_open(&s->sql, &q,
                    "SELECT a.id, a.claim, c.task, p.worker, a.position, a.key, a.value, a.item, a.left_arm FROM "
                    "main.answers a JOIN main.claims c ON c.id=a.claim JOIN main.participants p ON p.id=c.participant "
                    "ORDER BY a.claim, a.position",
                    ""));
    enum lk_code rc = LK_OK;
    for (bool row = true; !rc && row;) {
        rc = lk_sql_step(&s->sql, q, &row);
        if (!rc && row) rc = check_answer(s, &r, q);
    }
    sqlite3_finalize(q);
    lk_survey_questions_free(&r.questions);
    lk_free(r.items);
    return rc;
}
