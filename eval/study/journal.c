#include "eval/study/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/process.h"
#include "eval/study/journal_internal.h"

#define FORMAT   "1"
#define LEASE_MS (10 * 60 * 1000)

/* Lines are apart: what is looked through for every start and count stays small. Jobs that are open have an index. */
static const char schema[] =
    "CREATE TABLE IF NOT EXISTS about(name TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS jobs(i INTEGER PRIMARY KEY, id TEXT NOT NULL, name TEXT NOT NULL, output TEXT NOT "
    "NULL, model INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0, owner TEXT, lease INTEGER, attempts INTEGER NOT "
    "NULL DEFAULT 0, crashes INTEGER NOT NULL DEFAULT 0, started INTEGER, seconds REAL, stages TEXT, peak_bytes "
    "INTEGER, sha256 TEXT, bytes INTEGER, code INTEGER, error TEXT);"
    "CREATE TABLE IF NOT EXISTS lines(i INTEGER PRIMARY KEY, line TEXT NOT NULL);"
    "CREATE INDEX IF NOT EXISTS open_jobs ON jobs(model, i) WHERE state<2;";

int64_t lk_journal_now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void lk_journal_owner(int pid, char out[LK_JOURNAL_OWNER_BYTES]) {
    snprintf(out, LK_JOURNAL_OWNER_BYTES, "%08x-%d-%" PRId64, lk_host_number(), pid, lk_process_start(pid));
}

bool lk_journal_is_gone(const char *owner) {
    unsigned host;
    long pid;
    long long started;
    if (sscanf(owner, "%8x-%ld-%lld", &host, &pid, &started) != 3 || host != lk_host_number()) return false;
    int64_t now = lk_process_start(pid);
    return lk_process_is_gone(pid) || (now >= 0 && now != started);
}

enum lk_code lk_journal_about(struct lk_journal *j, const char *name, char out[65]) {
    sqlite3_stmt *q;
    bool row;
    LK_TRY(lk_sql_open(&j->sql, &q, "SELECT value FROM about WHERE name=?1", "t", name));
    enum lk_code rc = lk_sql_step(&j->sql, q, &row);
    snprintf(out, 65, "%s", !rc && row ? lk_sql_text(q, 0) : "");
    sqlite3_finalize(q);
    return rc;
}

const char *const lk_journal_first_keys[LK_JOURNAL_FIRST_KEYS] = {"flux", "step1x", "qwen"};

static enum lk_code note_keys(struct lk_journal *j, const struct lk_journal_list *list) {
    LK_TRY(lk_sql_run(&j->sql, "DELETE FROM about WHERE name LIKE 'key %'", ""));
    for (int m = 0; m < list->n_models; m++) {
        char name[32];
        snprintf(name, sizeof name, "key %d", m);
        LK_TRY(lk_sql_run(&j->sql, "INSERT INTO about VALUES(?1,?2)", "tt", name, list->models[m]));
    }
    return LK_OK;
}

static enum lk_code fill(struct lk_journal *j, const struct lk_journal_list *list) {
    char shard[32];
    sqlite3_stmt *q;
    bool row;
    snprintf(shard, sizeof shard, "%d/%d", list->shard, list->n_shards);
    LK_TRY(lk_sql_run(&j->sql,
                      "INSERT INTO about VALUES('format'," FORMAT "),('study',?1),('shard',?2),('manifest','')", "tt",
                      list->study, shard));
    LK_TRY(note_keys(j, list));
    LK_TRY(lk_sql_open(&j->sql, &q, "INSERT INTO jobs(i,id,name,output,model) VALUES(?1,?2,?3,?4,?5)", ""));
    enum lk_code rc = LK_OK;
    for (size_t k = 0; k < list->n && !rc; k++) {
        struct lk_journal_entry e;
        if ((rc = list->job(list->context, k, &e))) break;
        sqlite3_bind_int64(q, 1, e.index);
        sqlite3_bind_text(q, 2, e.id, -1, SQLITE_STATIC);
        sqlite3_bind_text(q, 3, e.name, -1, SQLITE_STATIC);
        sqlite3_bind_text(q, 4, e.output, -1, SQLITE_STATIC);
        sqlite3_bind_int(q, 5, e.model);
        rc = lk_sql_step(&j->sql, q, &row);
        sqlite3_reset(q);
    }
    sqlite3_finalize(q);
    return rc;
}

/* A job of the new study, from the old one's where that has it. */
static enum lk_code adopt_one(struct lk_journal *j, const struct lk_journal_list *list, size_t k) {
    struct lk_journal_entry e;
    struct lk_text line = {0};
    sqlite3_stmt *q;
    int64_t old;
    bool row;
    LK_TRY(list->job(list->context, k, &e));
    LK_TRY(lk_sql_number(&j->sql, &old, 0,
                         "SELECT i FROM jobs WHERE id=?1 AND id<>'' AND output=?2 AND i<0 AND state>1 LIMIT 1", "tt",
                         e.id, e.output));
    if (!old)
        return lk_sql_run(&j->sql, "INSERT INTO jobs(i,id,name,output,model) VALUES(?1,?2,?3,?4,?5)", "ittti", e.index,
                          e.id, e.name, e.output, (int64_t)e.model);
    LK_TRY(lk_sql_run(&j->sql, "UPDATE jobs SET i=?1, name=?2, model=?3 WHERE i=?4", "itii", e.index, e.name,
                      (int64_t)e.model, old));
    LK_TRY(lk_sql_open(&j->sql, &q, "SELECT line FROM lines WHERE i=?1", "i", old));
    enum lk_code rc = lk_sql_step(&j->sql, q, &row);
    if (!rc && row && list->line) rc = list->line(list->context, k, lk_sql_text(q, 0), &line);
    if (!rc && row && !list->line) lk_text_add(&line, "%s", lk_sql_text(q, 0));
    sqlite3_finalize(q);
    if (!rc) rc = line.rc;
    if (!rc && row)
        rc = lk_sql_run(&j->sql, "UPDATE lines SET i=?1, line=?2 WHERE i=?3", "iti", e.index, line.bytes, old);
    lk_text_free(&line);
    return rc;
}

/* The study has changed: what both have stays, what is made and not asked for any more has an index below 0. */
static enum lk_code adopt(struct lk_journal *j, const struct lk_journal_list *list) {
    int64_t shift;
    LK_TRY(lk_sql_number(&j->sql, &shift, 0, "SELECT max(i)+1 FROM jobs", ""));
    LK_TRY(lk_sql_run(&j->sql, "DELETE FROM lines WHERE i IN (SELECT i FROM jobs WHERE state<2)", ""));
    LK_TRY(lk_sql_run(&j->sql, "DELETE FROM jobs WHERE state<2", ""));
    /* Two steps: a row must not meet the place of another that has not moved yet. */
    LK_TRY(lk_sql_run(&j->sql, "UPDATE jobs SET i=i-?1-1000000000000", "i", shift));
    LK_TRY(lk_sql_run(&j->sql, "UPDATE jobs SET i=i+1000000000000", ""));
    LK_TRY(lk_sql_run(&j->sql, "UPDATE lines SET i=i-?1-1000000000000", "i", shift));
    LK_TRY(lk_sql_run(&j->sql, "UPDATE lines SET i=i+1000000000000", ""));
    LK_TRY(lk_sql_run(&j->sql, "CREATE INDEX by_id ON jobs(id)", ""));
    for (size_t k = 0; k < list->n; k++) LK_TRY(adopt_one(j, list, k));
    LK_TRY(lk_sql_run(&j->sql, "DROP INDEX by_id", ""));
    LK_TRY(
        lk_sql_run(&j->sql, "DELETE FROM lines WHERE i IN (SELECT i FROM jobs WHERE i<0 AND state NOT IN (2,4))", ""));
    LK_TRY(lk_sql_run(&j->sql, "DELETE FROM jobs WHERE i<0 AND state NOT IN (2,4)", ""));
    for (int m = 0; m < LK_JOURNAL_FIRST_KEYS; m++) {
        char old[32], key[32];
        snprintf(old, sizeof old, "model %d", m);
        snprintf(key, sizeof key, "model %s", lk_journal_first_keys[m]);
        LK_TRY(lk_sql_run(&j->sql, "UPDATE OR IGNORE about SET name=?1 WHERE name=?2", "tt", key, old));
    }
    LK_TRY(note_keys(j, list));
    LK_TRY(lk_sql_run(&j->sql, "UPDATE about SET value='' WHERE name='manifest'", ""));
    LK_TRY(lk_sql_run(&j->sql, "UPDATE about SET value=?1 WHERE name='study'", "t", list->study));
    snprintf(j->study, sizeof j->study, "%s", list->study);
    return LK_OK;
}

/* Made in one transaction, or found to be the same. */
static enum lk_code check(struct lk_journal *j, const struct lk_journal_list *list) {
    char format[65], shard[65], expected[32];
    LK_TRY(lk_journal_about(j, "format", format));
    if (!*format && !list) return lk_fail(LK_E_NOT_FOUND, "%s: no run has begun in it yet", j->path);
    if (!*format) LK_TRY(fill(j, list));
    LK_TRY(lk_journal_about(j, "format", format));
    if (strcmp(format, FORMAT))
        return lk_fail(LK_E_INPUT, "%s: expected a journal of format " FORMAT ", got %s", j->path, format);
    LK_TRY(lk_journal_about(j, "study", j->study));
    if (!list) return LK_OK;
    snprintf(expected, sizeof expected, "%d/%d", list->shard, list->n_shards);
    LK_TRY(lk_journal_about(j, "shard", shard));
    if (strcmp(shard, expected)) return lk_fail(LK_E_CHANGED, "%s: is of shard %s, not %s", j->path, shard, expected);
    return strcmp(j->study, list->study) ? adopt(j, list) : LK_OK;
}

enum lk_code lk_journal_open(struct lk_journal **out, const char *path, const struct lk_journal_list *list) {
    struct stat st;
    *out = NULL;
    if (!list && stat(path, &st)) return lk_fail_errno(errno, "%s", path);
    struct lk_journal *j = lk_calloc(1, sizeof *j);
    if (!j || !(j->path = lk_strdup(path))) {
        lk_free(j);
        return lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    }
    lk_journal_owner(getpid(), j->owner);
    enum lk_code rc = lk_sql_attach(&j->sql, path, j->path, schema);
    if (!rc && !list) rc = check(j, NULL); /* who looks on does not stop those that write */
    if (!rc && list && !(rc = lk_sql_begin(&j->sql))) rc = lk_sql_end(&j->sql, check(j, list));
    if (rc) {
        lk_journal_close(j);
        return rc;
    }
    *out = j;
    return LK_OK;
}

void lk_journal_close(struct lk_journal *j) {
    if (!j) return;
    lk_sql_close(&j->sql);
    lk_free(j->path);
    lk_free(j);
}

const char *lk_journal_study(const struct lk_journal *j) { return j->study; }

/* Leases whose time is up or whose process is gone are queued. */
static enum lk_code release_dead(struct lk_journal *j) {
    sqlite3_stmt *q;
    bool row = true;
    int64_t now = lk_journal_now_ms();
    LK_TRY(lk_sql_run(&j->sql, "UPDATE jobs SET state=0, owner=NULL WHERE state<2 AND state=1 AND lease<?1", "i", now));
    LK_TRY(lk_sql_open(&j->sql, &q, "SELECT DISTINCT owner FROM jobs WHERE state<2 AND state=1", ""));
    enum lk_code rc = LK_OK;
    char gone[16][LK_JOURNAL_OWNER_BYTES];
    int n = 0;
    while (n < 16 && !(rc = lk_sql_step(&j->sql, q, &row)) && row)
        if (lk_journal_is_gone(lk_sql_text(q, 0))) snprintf(gone[n++], sizeof *gone, "%s", lk_sql_text(q, 0));
    sqlite3_finalize(q);
    for (int k = 0; k < n && !rc; k++)
        rc = lk_sql_run(&j->sql, "UPDATE jobs SET state=0, owner=NULL WHERE state<2 AND state=1 AND owner=?1", "t",
                        gone[k]);
    return rc;
}

void lk_journal_shuffle(struct lk_journal *j, const bool *models) { memcpy(j->shuffled, models, sizeof j->shuffled); }

/* Queued jobs of a model, in order; one that a worker died of, alone, when there is no other. */
static enum lk_code find(struct lk_journal *j, int model, int most, struct lk_journal_lease *out, int *n) {
    static const char *const sql[] = {"SELECT i,attempts,crashes FROM jobs WHERE state<2 AND state=0 AND model=?1 AND "
                                      "crashes=0 ORDER BY CASE WHEN ?3 THEN id END, i LIMIT ?2",
                                      "SELECT i,attempts,crashes FROM jobs WHERE state<2 AND state=0 AND model=?1 AND "
                                      "?2+?3>0 ORDER BY i LIMIT 1"};
    enum lk_code rc = LK_OK;
    for (int k = 0; k < 2 && !rc && !*n; k++) {
        sqlite3_stmt *q;
        bool row;
        LK_TRY(lk_sql_open(&j->sql, &q, sql[k], "iii", (int64_t)model, (int64_t)most, (int64_t)j->shuffled[model]));
        while (!(rc = lk_sql_step(&j->sql, q, &row)) && row)
            out[(*n)++] = (struct lk_journal_lease){sqlite3_column_int64(q, 0), sqlite3_column_int(q, 1),
                                                    sqlite3_column_int(q, 2)};
        sqlite3_finalize(q);
    }
    return rc;
}

static enum lk_code take(struct lk_journal *j, int model, int most, struct lk_journal_lease *out, int *n,
                         int64_t *n_others) {
    LK_TRY(release_dead(j));
    if (model >= 0) LK_TRY(find(j, model, most, out, n));
    if (!*n) {
        int64_t first;
        LK_TRY(lk_sql_number(&j->sql, &first, -1, "SELECT min(model) FROM jobs WHERE state<2 AND state=0", ""));
        if (first >= 0) LK_TRY(find(j, (int)first, most, out, n));
    }
    for (int k = 0; k < *n; k++)
        LK_TRY(lk_sql_run(&j->sql, "UPDATE jobs SET state=1, owner=?1, lease=?2 WHERE i=?3", "tii", j->owner,
                          lk_journal_now_ms() + LEASE_MS, out[k].index));
    return lk_sql_number(&j->sql, n_others, 0, "SELECT count(*) FROM jobs WHERE state<2 AND state=1 AND owner<>?1", "t",
                         j->owner);
}

enum lk_code lk_journal_take(struct lk_journal *j, int model, int most, struct lk_journal_lease *out, int *n,
                             int64_t *n_others) {
    *n = 0;
    *n_others = 0;
    LK_TRY(lk_sql_begin(&j->sql));
    enum lk_code rc = lk_sql_end(&j->sql, take(j, model, most, out, n, n_others));
    if (rc) *n = 0;
    return rc;
}

enum lk_code lk_journal_renew(struct lk_journal *j) {
    LK_TRY(lk_sql_begin(&j->sql));
    return lk_sql_end(&j->sql, lk_sql_run(&j->sql, "UPDATE jobs SET lease=?1 WHERE state<2 AND state=1 AND owner=?2",
                                          "it", lk_journal_now_ms() + LEASE_MS, j->owner));
}

const char lk_journal_outdate[] = "UPDATE about SET value='' WHERE name='manifest' AND value<>''";

bool lk_journal_is_final(int code) {
    if (code == LK_E_NOT_FOUND || code == LK_E_CHANGED) return false;
    return code / 100 == LK_E_USAGE / 100 || code / 100 == LK_E_INPUT / 100 || code == LK_E_NONFINITE;
}

static enum lk_code end(struct lk_journal *j, const struct lk_journal_lease *lease, const struct lk_journal_made *m,
                        bool *kept) {
    int64_t mine;
    LK_TRY(lk_sql_number(&j->sql, &mine, 0, "SELECT count(*) FROM jobs WHERE i=?1 AND state=1 AND owner=?2", "it",
                         lease->index, j->owner));
    *kept = mine == 1;
    if (!mine) return LK_OK;
    const bool answered = m->sha256 || m->refused;
    bool again = !answered && lease->attempts + 1 < LK_JOB_ATTEMPTS && !lk_journal_is_final(m->code);
    int64_t state = again ? LK_JOB_QUEUED : m->refused ? LK_JOB_REFUSED : m->sha256 ? LK_JOB_DONE : LK_JOB_FAILED;
    LK_TRY(lk_sql_run(&j->sql,
                      "UPDATE jobs SET state=?1, owner=NULL, lease=NULL, attempts=attempts+1, started=?2, seconds=?3, "
                      "stages=?4, peak_bytes=?5, sha256=?6, bytes=?7, code=?8, error=?9 WHERE i=?10",
                      "iidtitiiti", state, m->started_ms, m->seconds, m->stages, m->peak_bytes, m->sha256, m->bytes,
                      (int64_t)m->code, m->error, lease->index));
    if (again) return LK_OK;
    LK_TRY(lk_sql_run(&j->sql, lk_journal_outdate, ""));
    return lk_sql_run(&j->sql, "INSERT OR REPLACE INTO lines VALUES(?1,?2)", "it", lease->index, m->line);
}

enum lk_code lk_journal_end(struct lk_journal *j, const struct lk_journal_lease *lease,
                            const struct lk_journal_made *made, bool *kept) {
    *kept = false;
    LK_TRY(lk_sql_begin(&j->sql));
    return lk_sql_end(&j->sql, end(j, lease, made, kept));
}

enum lk_code lk_journal_give_back(struct lk_journal *j) {
    LK_TRY(lk_sql_begin(&j->sql));
    return lk_sql_end(&j->sql, lk_sql_run(&j->sql,
                                          "UPDATE jobs SET state=0, owner=NULL, lease=NULL WHERE state<2 AND state=1 "
                                          "AND owner=?1",
                                          "t", j->owner));
}

static enum lk_code crashed(struct lk_journal *j, const char *owner, const char *how, lk_journal_line_fn *line,
                            void *context, int *n) {
    sqlite3_stmt *q;
    bool row;
    struct lk_journal_lease held[256];
    LK_TRY(lk_sql_open(&j->sql, &q, "SELECT i,crashes FROM jobs WHERE state<2 AND state=1 AND owner=?1 ORDER BY i", "t",
                       owner));
    enum lk_code rc;
    while (!(rc = lk_sql_step(&j->sql, q, &row)) && row && *n < 256)
        held[(*n)++] = (struct lk_journal_lease){sqlite3_column_int64(q, 0), 0, sqlite3_column_int(q, 1)};
    sqlite3_finalize(q);
    for (int k = 0; k < *n && !rc; k++) {
        bool poison = held[k].crashes + 1 >= LK_JOB_ATTEMPTS;
        struct lk_text text = {0}, error = {0};
        lk_text_add(&error, "the worker died of it %d times, the last time by %s", held[k].crashes + 1, how);
        if (poison && !error.rc) rc = line(context, held[k].index, error.bytes, &text);
        if (!rc) rc = error.rc ? error.rc : text.rc;
        if (!rc)
            rc = lk_sql_run(&j->sql,
                            "UPDATE jobs SET state=?1, owner=NULL, lease=NULL, crashes=crashes+1, code=?2, error=?3 "
                            "WHERE i=?4",
                            "iiti", (int64_t)(poison ? LK_JOB_FAILED : LK_JOB_QUEUED), (int64_t)LK_E_INTERNAL,
                            error.bytes, held[k].index);
        if (!rc && poison)
            rc = lk_sql_run(&j->sql, "INSERT OR REPLACE INTO lines VALUES(?1,?2)", "it", held[k].index, text.bytes);
        lk_text_free(&text);
        lk_text_free(&error);
    }
    return rc ? rc : lk_sql_run(&j->sql, lk_journal_outdate, "");
}

enum lk_code lk_journal_crashed(struct lk_journal *j, const char *owner, const char *how, lk_journal_line_fn *line,
                                void *context, int *n) {
    *n = 0;
    LK_TRY(lk_sql_begin(&j->sql));
    return lk_sql_end(&j->sql, crashed(j, owner, how, line, context, n));
}

static enum lk_code relabel(struct lk_journal *j, int64_t index, const char *error, lk_journal_line_fn *line,
                            void *context) {
    struct lk_text text = {0};
    sqlite3_stmt *q;
    bool row;
    LK_TRY(lk_sql_open(&j->sql, &q, "SELECT line FROM lines WHERE i=?1", "i", index));
    enum lk_code rc = lk_sql_step(&j->sql, q, &row);
    if (!rc && row) rc = line(context, index, lk_sql_text(q, 0), &text);
    sqlite3_finalize(q);
    if (!rc) rc = text.rc;
    if (!rc && row) rc = lk_sql_run(&j->sql, "UPDATE lines SET line=?1 WHERE i=?2", "ti", text.bytes, index);
    lk_text_free(&text);
    if (!rc)
        rc = lk_sql_run(&j->sql, "UPDATE jobs SET state=?1, error=?2 WHERE i=?3 AND state=2", "iti",
                        (int64_t)LK_JOB_REFUSED, error, index);
    return rc ? rc : lk_sql_run(&j->sql, lk_journal_outdate, "");
}

enum lk_code lk_journal_relabel(struct lk_journal *j, int64_t index, const char *error, lk_journal_line_fn *line,
                                void *context) {
    LK_TRY(lk_sql_begin(&j->sql));
    return lk_sql_end(&j->sql, relabel(j, index, error, line, context));
}

enum lk_code lk_journal_requeue(struct lk_journal *j, int64_t index, int64_t *n) {
    LK_TRY(lk_sql_begin(&j->sql));
    enum lk_code rc = lk_sql_run(&j->sql,
                                 "UPDATE jobs SET state=0, attempts=0, crashes=0 WHERE state>1 AND (i=?1 OR (?1<0 AND "
                                 "state=3))",
                                 "i", index);
    *n = sqlite3_changes64(j->sql.db);
    if (!rc && *n) rc = lk_sql_run(&j->sql, lk_journal_outdate, "");
    if (!rc && *n) rc = lk_sql_run(&j->sql, "DELETE FROM lines WHERE i IN (SELECT i FROM jobs WHERE state=0)", "");
    return lk_sql_end(&j->sql, rc);
}
