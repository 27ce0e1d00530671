/* What a journal has: counts, rows, what is noted of models; and what another journal has done of the same jobs. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/study/journal_internal.h"

static enum lk_code read_keys(struct lk_journal *j, struct lk_journal_counts *out) {
    for (int m = 0; m < LK_JOURNAL_MAX_MODELS; m++) {
        char name[32], key[65];
        snprintf(name, sizeof name, "key %d", m);
        LK_TRY(lk_journal_about(j, name, key));
        snprintf(out->keys[m], sizeof out->keys[m], "%.40s",
                 *key                        ? key
                 : m < LK_JOURNAL_FIRST_KEYS ? lk_journal_first_keys[m]
                                             : "");
    }
    return LK_OK;
}

enum lk_code lk_journal_count(struct lk_journal *j, struct lk_journal_counts *out) {
    sqlite3_stmt *q;
    bool row;
    const int64_t now = lk_journal_now_ms();
    *out = (struct lk_journal_counts){0};
    LK_TRY(read_keys(j, out));
    LK_TRY(lk_sql_number(&j->sql, &out->n_kept, 0, "SELECT count(*) FROM jobs WHERE i<0", ""));
    LK_TRY(lk_sql_open(&j->sql, &q,
                       "SELECT model,state,count(*),sum(seconds),owner,lease<?1 FROM jobs WHERE i>=0 GROUP BY 1,2,5,6",
                       "i", now));
    enum lk_code rc;
    while (!(rc = lk_sql_step(&j->sql, q, &row)) && row) {
        int model = sqlite3_column_int(q, 0), state = sqlite3_column_int(q, 1);
        if (model < 0 || model >= LK_JOURNAL_MAX_MODELS || state < 0 || state >= LK_JOB_STATES) continue;
        int64_t n = sqlite3_column_int64(q, 2);
        const char *owner = lk_sql_text(q, 4);
        if (state == LK_JOB_LEASED && (sqlite3_column_int(q, 5) || (owner && lk_journal_is_gone(owner)))) {
            state = LK_JOB_QUEUED;
            out->n_gone += n;
        }
        out->of[model][state] += n;
        out->all[state] += n;
        out->total += n;
        if (state == LK_JOB_DONE) out->seconds[model] += sqlite3_column_double(q, 3);
    }
    sqlite3_finalize(q);
    return rc;
}

/* Rows in the order that `which` says; it may use ?1. */
static enum lk_code each(struct lk_journal *j, bool with_lines, const char *which, int64_t value,
                         lk_journal_row_fn *row, void *context) {
    sqlite3_stmt *q;
    bool more = true;
    char sql[512];
    snprintf(sql, sizeof sql,
             "SELECT jobs.i,id,name,output,model,state,attempts,crashes,started,seconds,stages,peak_bytes,sha256,bytes,"
             "code,error,%s %s",
             with_lines ? "line FROM jobs JOIN lines ON lines.i=jobs.i" : "NULL FROM jobs", which);
    LK_TRY(lk_sql_open(&j->sql, &q, sql, "i", value));
    enum lk_code rc;
    while (!(rc = lk_sql_step(&j->sql, q, &more)) && more) {
        struct lk_journal_row r = {.entry = {sqlite3_column_int64(q, 0), lk_sql_text(q, 1), lk_sql_text(q, 2),
                                             lk_sql_text(q, 3), sqlite3_column_int(q, 4)},
                                   .state = (enum lk_job_state)sqlite3_column_int(q, 5),
                                   .attempts = sqlite3_column_int(q, 6),
                                   .crashes = sqlite3_column_int(q, 7),
                                   .made = {sqlite3_column_int64(q, 8), sqlite3_column_double(q, 9), lk_sql_text(q, 10),
                                            sqlite3_column_int64(q, 11), lk_sql_text(q, 12),
                                            sqlite3_column_int64(q, 13), sqlite3_column_int(q, 14), lk_sql_text(q, 15),
                                            lk_sql_text(q, 16), sqlite3_column_int(q, 5) == LK_JOB_REFUSED}};
        if ((rc = row(context, &r))) break;
    }
    sqlite3_finalize(q);
    return rc;
}

enum lk_code lk_journal_each(struct lk_journal *j, int state, bool with_lines, lk_journal_row_fn *row, void *context) {
    return each(j, with_lines, "WHERE jobs.i>=0 AND (?1<0 OR state=?1) ORDER BY jobs.i", state, row, context);
}

enum lk_code lk_journal_latest(struct lk_journal *j, int most, lk_journal_row_fn *row, void *context) {
    return each(j, false, "WHERE jobs.i>=0 AND state=2 ORDER BY started+seconds*1000 DESC LIMIT ?1", most, row,
                context);
}

enum lk_code lk_journal_one(struct lk_journal *j, int64_t index, lk_journal_row_fn *row, void *context) {
    return each(j, false, "WHERE jobs.i=?1", index, row, context);
}

enum lk_code lk_journal_each_kept(struct lk_journal *j, bool free, lk_journal_row_fn *row, void *context) {
    return each(j, false,
                "WHERE jobs.i<0 AND (?1=0 OR output NOT IN (SELECT output FROM jobs WHERE i>=0)) ORDER BY output", free,
                row, context);
}

enum lk_code lk_journal_each_replaced(struct lk_journal *j, lk_journal_replaced_fn *row, void *context) {
    sqlite3_stmt *q;
    bool more = true;
    LK_TRY(lk_sql_open(&j->sql, &q,
                       "SELECT old.id,old.output,now.id,old.bytes,now.state FROM jobs old JOIN jobs now ON "
                       "now.output=old.output AND now.i>=0 WHERE old.i<0 ORDER BY old.output",
                       ""));
    enum lk_code rc;
    while (!(rc = lk_sql_step(&j->sql, q, &more)) && more) {
        const struct lk_journal_replaced r = {lk_sql_text(q, 0), lk_sql_text(q, 1), lk_sql_text(q, 2),
                                              sqlite3_column_int64(q, 3), sqlite3_column_int(q, 4) == LK_JOB_DONE};
        if ((rc = row(context, &r))) break;
    }
    sqlite3_finalize(q);
    return rc;
}

enum lk_code lk_journal_prune(struct lk_journal *j) {
    LK_TRY(lk_sql_begin(&j->sql));
    static const char *const sql[] = {
        "DELETE FROM lines WHERE i<0", "DELETE FROM jobs WHERE i<0",
        ("DELETE FROM about WHERE name LIKE 'model %' AND name NOT IN (SELECT 'model '||k.value "
         "FROM about k JOIN jobs ON k.name='key '||model WHERE state IN (2,4))")};
    enum lk_code rc = LK_OK;
    for (int k = 0; k < 3 && !rc; k++) rc = lk_sql_run(&j->sql, sql[k], "");
    return lk_sql_end(&j->sql, rc);
}

enum lk_code lk_journal_manifest_is_current(struct lk_journal *j, bool *current) {
    char value[65];
    *current = false;
    LK_TRY(lk_journal_about(j, "manifest", value));
    *current = !strcmp(value, "current");
    return LK_OK;
}

enum lk_code lk_journal_model(struct lk_journal *j, const char *key, const char *text, char **noted) {
    char name[64], first[64] = "";
    sqlite3_stmt *q;
    bool row;
    *noted = NULL;
    snprintf(name, sizeof name, "model %.40s", key);
    for (int m = 0; m < LK_JOURNAL_FIRST_KEYS; m++)
        if (!strcmp(lk_journal_first_keys[m], key)) snprintf(first, sizeof first, "model %d", m);
    if (text)
        LK_TRY(lk_sql_run(
            &j->sql, "INSERT OR IGNORE INTO about SELECT ?1,?2 WHERE NOT EXISTS (SELECT 1 FROM about WHERE name=?3)",
            "ttt", name, text, first));
    LK_TRY(lk_sql_open(&j->sql, &q, "SELECT value FROM about WHERE name IN (?1,?2)", "tt", name, first));
    enum lk_code rc = lk_sql_step(&j->sql, q, &row);
    if (!rc && row && !(*noted = lk_strdup(lk_sql_text(q, 0)))) rc = lk_fail(LK_E_NOMEM, "%s: out of memory", j->path);
    sqlite3_finalize(q);
    return rc;
}

enum lk_code lk_journal_manifest_begin(struct lk_journal *j) {
    return lk_sql_run(&j->sql, "UPDATE about SET value=?1 WHERE name='manifest'", "t", j->owner);
}

enum lk_code lk_journal_manifest_end(struct lk_journal *j) {
    return lk_sql_run(&j->sql, "UPDATE about SET value='current' WHERE name='manifest' AND value=?1", "t", j->owner);
}

enum lk_code lk_journal_merge(struct lk_journal *j, const char *path) {
    LK_TRY(lk_sql_run(&j->sql, "ATTACH ?1 AS other", "t", path));
    enum lk_code rc = lk_sql_begin(&j->sql);
    if (!rc) {
        static const char *const sql[] = {
            "CREATE INDEX main.by_id ON jobs(id)",
            "CREATE TEMP TABLE same AS SELECT o.i AS theirs, m.i AS mine FROM other.jobs o JOIN main.jobs m ON "
            "m.id=o.id AND m.output=o.output WHERE o.i>=0 AND m.i>=0 AND o.state>1 AND m.state NOT IN (2,4)",
            "INSERT OR REPLACE INTO main.jobs SELECT s.mine,o.id,o.name,o.output,m.model,o.state,NULL,NULL,o.attempts,"
            "o.crashes,o.started,o.seconds,o.stages,o.peak_bytes,o.sha256,o.bytes,o.code,o.error FROM same s JOIN "
            "other.jobs o ON o.i=s.theirs JOIN main.jobs m ON m.i=s.mine",
            "INSERT OR REPLACE INTO main.lines SELECT s.mine,l.line FROM same s JOIN other.lines l ON l.i=s.theirs",
            "INSERT OR IGNORE INTO about SELECT name,value FROM other.about WHERE name LIKE 'model %'",
            "DROP TABLE same",
            "DROP INDEX main.by_id",
            lk_journal_outdate};
        const int n = sizeof sql / sizeof *sql;
        for (int k = 0; k < n && !rc; k++) rc = lk_sql_run(&j->sql, sql[k], "");
        rc = lk_sql_end(&j->sql, rc);
    }
    enum lk_code detached = lk_sql_run(&j->sql, "DETACH other", "");
    return rc ? rc : detached;
}
