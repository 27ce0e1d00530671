#include <stdio.h>
#include <string.h>

#include "engine/base/digest.h"
#include "eval/scores/words.h"
#include "eval/survey/store.h"

enum { HOUR_MS = 3600 * 1000, MAX_WRONG_TOKENS = 100, EVENT_MS = 60 * 1000 };
static const int64_t session_ms = INT64_C(30) * 24 * HOUR_MS;

bool lk_survey_within(struct lk_survey *s, enum lk_survey_limit what, int more, int64_t now) {
    int most = what == LK_SURVEY_WRONG_TOKENS ? MAX_WRONG_TOKENS : s->study->entries_per_hour;
    pthread_mutex_lock(&s->sql.lock);
    if (s->limits[what].hour != now / HOUR_MS) s->limits[what].n = 0;
    s->limits[what].hour = now / HOUR_MS;
    bool within = s->limits[what].n < most;
    if (within) s->limits[what].n += more;
    pthread_mutex_unlock(&s->sql.lock);
    return within;
}

/* Anybody can make up ids: they fill neither the store nor every place within a minute. */
static enum lk_code check_new(struct lk_survey *s, bool known, int64_t now) {
    if (known || lk_survey_within(s, LK_SURVEY_ENTRIES, 1, now)) return LK_OK;
    return lk_fail(LK_E_INPUT, "too many new participants in this hour");
}

bool lk_survey_id_is_valid(const char *id) {
    size_t n = strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");
    return n >= 1 && n <= 64 && !id[n];
}

static void hash_id(const struct lk_survey *s, const char *id, char worker[65]) {
    char salted[160];
    int n = snprintf(salted, sizeof salted, "%s%.64s", s->salt, id);
    lk_sha256(salted, (size_t)n, worker);
}

enum lk_code lk_survey_hash(const struct lk_survey *s, const char *typed, size_t n, char worker[65]) {
    char id[LK_RATER_ID_MAX + 1];
    LK_TRY(lk_rater_id(typed, n, id));
    if (!lk_survey_id_is_valid(id)) return lk_fail(LK_E_INPUT, "not a participant's id");
    hash_id(s, id, worker);
    return LK_OK;
}

/* Stores of older versions have hashes of ids exactly as typed: these are found too. */
enum lk_code lk_survey_worker(struct lk_survey *s, const char *typed, size_t n, char worker[65], bool *known) {
    static const char find[] = "SELECT count(*) FROM read_participants WHERE worker=?1";
    char id[LK_RATER_ID_MAX + 1], as_typed[65];
    int64_t n_known, n_older = 0;
    LK_TRY(lk_survey_hash(s, typed, n, worker));
    typed = lk_trim(typed, &n);
    snprintf(id, sizeof id, "%.*s", (int)n, typed);
    hash_id(s, id, as_typed);
    pthread_mutex_lock(&s->sql.lock);
    enum lk_code rc = lk_sql_number(&s->sql, &n_known, 0, find, "t", worker);
    if (!rc && !n_known && lk_survey_id_is_valid(id)) rc = lk_sql_number(&s->sql, &n_older, 0, find, "t", as_typed);
    pthread_mutex_unlock(&s->sql.lock);
    if (n_older) memcpy(worker, as_typed, sizeof as_typed);
    *known = !rc && (n_known || n_older);
    return rc;
}

/* n bytes of the signature of KIND|text, in hexadecimal digits. */
static void sign(const struct lk_survey *s, const char *kind, const char *text, int n, char *out) {
    char whole[80];
    unsigned char mac[32];
    snprintf(whole, sizeof whole, "%s|%.64s", kind, text);
    lk_survey_hmac(s, whole, mac);
    for (int i = 0; i < n; i++) snprintf(out + 2 * i, 3, "%02x", mac[i]);
}

void lk_survey_link(const struct lk_survey *s, const char *external_id, char out[33]) {
    sign(s, "link", external_id, 16, out);
}

enum lk_code lk_survey_latest(struct lk_survey *s, int64_t *out) {
    return lk_sql_number(&s->sql, out, 0,
                         "SELECT max(at) FROM (SELECT max(entered_at) AS at FROM read_participants UNION ALL SELECT "
                         "max(active_at) FROM read_claims UNION ALL SELECT max(at) FROM read_events)",
                         "");
}

enum lk_code lk_survey_enter(struct lk_survey *s, const char *external_id, bool is_pilot, int64_t now, char token[65]) {
    char worker[65], token_sha256[65];
    bool known;
    LK_TRY(lk_survey_token(token));
    lk_sha256(token, 64, token_sha256);
    LK_TRY(lk_sql_begin(&s->sql));
    enum lk_code rc = lk_survey_worker(s, external_id, strlen(external_id), worker, &known);
    if (!rc && !is_pilot) rc = check_new(s, known, now);
    if (!rc)
        rc = lk_sql_run(&s->sql, "INSERT OR IGNORE INTO participants(worker,pilot,entered_at) VALUES(?1,?2,?3)", "tii",
                        worker, (int64_t)is_pilot, now);
    /* The five newest sessions of a participant stay, so that the table cannot grow by reloading. */
    if (!rc)
        rc = lk_sql_run(
            &s->sql,
            "INSERT INTO sessions(token_sha256,participant,at) SELECT ?1,id,?2 FROM read_participants WHERE worker=?3",
            "tit", token_sha256, now, worker);
    if (!rc)
        rc =
            lk_sql_run(&s->sql,
                       "DELETE FROM sessions WHERE participant=(SELECT id FROM participants WHERE worker=?1) AND rowid "
                       "NOT IN (SELECT rowid FROM sessions WHERE participant=(SELECT id FROM participants WHERE "
                       "worker=?1) ORDER BY rowid DESC LIMIT 5)",
                       "t", worker);
    return lk_sql_end(&s->sql, rc);
}

enum lk_code lk_survey_leave(struct lk_survey *s, const char *token) {
    char token_sha256[65];
    lk_sha256(token, strlen(token), token_sha256);
    LK_TRY(lk_sql_begin(&s->sql));
    return lk_sql_end(&s->sql, lk_sql_run(&s->sql, "DELETE FROM sessions WHERE token_sha256=?1", "t", token_sha256));
}

enum lk_code lk_survey_forget(struct lk_survey *s, const char *external_id) {
    static const char *const rows[] = {
        "DELETE FROM answers WHERE claim IN (SELECT id FROM claims WHERE participant=?1)",
        "DELETE FROM claims WHERE participant=?1", "DELETE FROM events WHERE participant=?1",
        "DELETE FROM sessions WHERE participant=?1", "DELETE FROM participants WHERE id=?1"};
    char worker[65];
    int64_t id;
    bool known;
    LK_TRY(lk_survey_worker(s, external_id, strlen(external_id), worker, &known));
    /* What is gone is gone from the file and from its journal too. */
    sqlite3_exec(s->sql.db, "PRAGMA secure_delete=ON; PRAGMA journal_mode=TRUNCATE", NULL, NULL, NULL);
    LK_TRY(lk_sql_begin(&s->sql));
    enum lk_code rc = lk_sql_number(&s->sql, &id, 0, "SELECT id FROM read_participants WHERE worker=?1", "t", worker);
    if (!rc && !id) rc = lk_fail(LK_E_NOT_FOUND, "nobody of this id has entered");
    for (size_t i = 0; !rc && i < sizeof rows / sizeof *rows; i++) rc = lk_sql_run(&s->sql, rows[i], "i", id);
    return lk_sql_end(&s->sql, rc);
}

/* One of the participant's claims, in the order in which they were taken. */
static void take_claim(const struct lk_survey *s, sqlite3_stmt *q, int64_t now, struct lk_survey_visitor *out) {
    const int place = sqlite3_column_int(q, 5);
    const char *state = lk_sql_text(q, 6);
    const bool submitted = !strcmp(state, "submitted");
    const bool open = !strcmp(state, "open") && sqlite3_column_int64(q, 8) >= now - s->study->claim_ms;
    out->lost_task = submitted || open ? -1 : place % s->study->n_tasks;
    if (!submitted && !open) return;
    out->n_submitted += submitted;
    if (submitted) out->last_submitted = place;
    out->submitted = submitted && out->n_submitted >= s->study->tasks_per_worker;
    if (submitted && !out->submitted) return; /* another may be taken */
    out->claim = sqlite3_column_int64(q, 4);
    out->lease = sqlite3_column_int64(q, 7);
    out->place = place;
    out->task = place % s->study->n_tasks;
}

static enum lk_code read_visitor(struct lk_survey *s, const char *token_sha256, int64_t now,
                                 struct lk_survey_visitor *out) {
    sqlite3_stmt *q;
    bool any = false;
    *out = (struct lk_survey_visitor){.task = -1, .lost_task = -1};
    LK_TRY(lk_sql_open(
        &s->sql, &q,
        "SELECT p.id, p.worker, p.guided_at, p.consent_at, c.id, c.task, c.state, c.lease, c.active_at FROM "
        "read_sessions t JOIN read_participants p ON p.id=t.participant LEFT JOIN read_claims c ON c.participant=p.id "
        "WHERE t.token_sha256=?1 AND t.at>=?2 ORDER BY c.id",
        "ti", token_sha256, now - session_ms));
    enum lk_code rc = LK_OK;
    for (bool row = true; !rc && row;) {
        rc = lk_sql_step(&s->sql, q, &row);
        if (rc || !row) break;
        any = true;
        out->id = sqlite3_column_int64(q, 0);
        out->guided = sqlite3_column_type(q, 2) != SQLITE_NULL;
        out->consented = sqlite3_column_type(q, 3) != SQLITE_NULL;
        snprintf(out->worker, sizeof out->worker, "%s", lk_sql_text(q, 1));
        if (sqlite3_column_type(q, 4) != SQLITE_NULL) take_claim(s, q, now, out);
    }
    sqlite3_finalize(q);
    return rc || any ? rc : lk_fail(LK_E_NOT_FOUND, "no such session");
}

enum lk_code lk_survey_visitor(struct lk_survey *s, const char *token, int64_t now, struct lk_survey_visitor *out) {
    char token_sha256[65];
    if (strlen(token) != 64) return lk_fail(LK_E_NOT_FOUND, "no such session");
    lk_sha256(token, 64, token_sha256);
    pthread_mutex_lock(&s->sql.lock);
    enum lk_code rc = read_visitor(s, token_sha256, now, out);
    pthread_mutex_unlock(&s->sql.lock);
    return rc;
}

void lk_survey_form_token(const struct lk_survey *s, const char *token, char out[65]) {
    sign(s, "form", token, 32, out);
}

enum lk_code lk_survey_guided(struct lk_survey *s, const struct lk_survey_visitor *who, bool check_right, int64_t now) {
    LK_TRY(lk_sql_begin(&s->sql));
    return lk_sql_end(&s->sql,
                      lk_sql_run(&s->sql,
                                 "UPDATE participants SET guided_at=?1, check_right=?2 WHERE id=?3 AND guided_at "
                                 "IS NULL",
                                 "iii", now, (int64_t)check_right, who->id));
}

/* Each is an event, "practice 2 right". */
enum lk_code lk_survey_practised(struct lk_survey *s, const struct lk_survey_visitor *who, int *n) {
    int64_t found;
    pthread_mutex_lock(&s->sql.lock);
    enum lk_code rc =
        lk_sql_number(&s->sql, &found, 0,
                      "SELECT count(*) FROM read_events WHERE participant=?1 AND kind GLOB 'practice *'", "i", who->id);
    pthread_mutex_unlock(&s->sql.lock);
    *n = (int)found;
    return rc;
}

enum lk_code lk_survey_practise(struct lk_survey *s, const struct lk_survey_visitor *who, int number, bool right,
                                int64_t now) {
    char kind[40], any[40];
    snprintf(kind, sizeof kind, "practice %d %s", number, right ? "right" : "wrong");
    snprintf(any, sizeof any, "practice %d *", number);
    LK_TRY(lk_sql_begin(&s->sql));
    return lk_sql_end(&s->sql, lk_sql_run(&s->sql,
                                          "INSERT INTO events(participant,kind,at) SELECT ?1,?2,?3 WHERE NOT EXISTS "
                                          "(SELECT 1 FROM read_events WHERE participant=?1 AND kind GLOB ?4)",
                                          "itit", who->id, kind, now, any));
}

enum lk_code lk_survey_consent(struct lk_survey *s, const struct lk_survey_visitor *who, const char *sha256,
                               int64_t now) {
    if (strcmp(sha256, s->consent_sha256)) return lk_fail(LK_E_INPUT, "the consent text has changed: read it again");
    LK_TRY(lk_sql_begin(&s->sql));
    return lk_sql_end(&s->sql, lk_sql_run(&s->sql,
                                          "UPDATE participants SET consent_at=?1, consent_sha256=?2 WHERE id=?3 AND "
                                          "consent_at IS NULL",
                                          "iti", now, sha256, who->id));
}

enum lk_code lk_survey_places(struct lk_survey *s, const struct lk_survey_visitor *who, int64_t now,
                              struct lk_survey_place *places) {
    sqlite3_stmt *q;
    memset(places, 0, (size_t)s->study->n_tasks * sizeof *places);
    LK_TRY(lk_sql_begin(&s->sql));
    enum lk_code rc = lk_survey_expire(s, now);
    if (!rc)
        rc = lk_sql_open(
            &s->sql, &q,
            "SELECT task%?2, count(*), sum(state='submitted'), max(participant=?1) FROM read_claims WHERE state IN "
            "('open','submitted') GROUP BY task%?2",
            "ii", who->id, (int64_t)s->study->n_tasks);
    if (rc) return lk_sql_end(&s->sql, rc);
    for (bool row = true; !rc && row;) {
        rc = lk_sql_step(&s->sql, q, &row);
        int task = row ? sqlite3_column_int(q, 0) : -1;
        if (task >= 0 && task < s->study->n_tasks)
            places[task] = (struct lk_survey_place){sqlite3_column_int(q, 1), sqlite3_column_int(q, 2),
                                                    sqlite3_column_int(q, 3) != 0};
    }
    sqlite3_finalize(q);
    return lk_sql_end(&s->sql, rc);
}

#define SEATS "WITH RECURSIVE seats(place) AS (SELECT ?1 UNION ALL SELECT place+?2 FROM seats WHERE place+?2<?2*?3) "

/* Of each task the lowest seat that nobody has: what is dealt round by places stays so when one is given back. */
static enum lk_code free_place(struct lk_survey *s, int task, int64_t *place) {
    return lk_sql_number(&s->sql, place, -1,
                         SEATS "SELECT min(place) FROM seats WHERE NOT EXISTS (SELECT 1 FROM read_claims "
                               "WHERE task=place AND state IN ('open','submitted'))",
                         "iii", (int64_t)task, (int64_t)s->study->n_tasks, (int64_t)s->study->places);
}

static enum lk_code claim(struct lk_survey *s, const struct lk_survey_visitor *who, int task, int64_t now,
                          enum lk_survey_verdict *verdict) {
    int64_t taken, open, own, same, consented, place;
    const int64_t n_tasks = s->study->n_tasks;
    LK_TRY(lk_survey_expire(s, now));
    LK_TRY(lk_sql_number(&s->sql, &consented, 0, "SELECT consent_at IS NOT NULL FROM read_participants WHERE id=?1",
                         "i", who->id));
    /* Stores of older versions have each task's claims in its first seat. */
    LK_TRY(lk_sql_number(&s->sql, &taken, 0,
                         SEATS "SELECT count(*) FROM seats JOIN read_claims ON task=place WHERE state IN "
                               "('open','submitted')",
                         "iii", (int64_t)task, n_tasks, (int64_t)s->study->places));
    LK_TRY(lk_sql_number(&s->sql, &open, 0, "SELECT count(*) FROM read_claims WHERE participant=?1 AND state='open'",
                         "i", who->id));
    LK_TRY(lk_sql_number(&s->sql, &own, 0,
                         "SELECT count(*) FROM read_claims WHERE participant=?1 AND state='submitted'", "i", who->id));
    LK_TRY(lk_sql_number(&s->sql, &same, 0,
                         "SELECT count(*) FROM read_claims WHERE participant=?1 AND task%?3=?2 AND state='submitted'",
                         "iii", who->id, (int64_t)task, n_tasks));
    LK_TRY(free_place(s, task, &place));
    if (!consented || open || same || own >= s->study->tasks_per_worker || taken >= s->study->places || place < 0) {
        *verdict = LK_SURVEY_CONFLICT;
        return LK_OK;
    }
    *verdict = LK_SURVEY_DONE;
    return lk_sql_run(&s->sql,
                      "INSERT INTO claims(participant,task,state,claimed_at,active_at,last_at) "
                      "VALUES(?1,?2,'open',?3,?3,?3)",
                      "iii", who->id, place, now);
}

enum lk_code lk_survey_claim(struct lk_survey *s, const struct lk_survey_visitor *who, int task, int64_t now,
                             enum lk_survey_verdict *verdict) {
    *verdict = LK_SURVEY_INVALID;
    if (task < 0 || task >= s->study->n_tasks) return LK_OK;
    LK_TRY(lk_sql_begin(&s->sql));
    return lk_sql_end(&s->sql, claim(s, who, task, now, verdict));
}

enum lk_code lk_survey_event(struct lk_survey *s, const struct lk_survey_visitor *who, const char *kind, int64_t now) {
    LK_TRY(lk_sql_begin(&s->sql));
    return lk_sql_end(&s->sql, lk_sql_run(&s->sql,
                                          "INSERT INTO events(participant,kind,at) SELECT ?1,?2,?3 WHERE NOT EXISTS "
                                          "(SELECT 1 FROM read_events WHERE participant=?1 AND kind=?2 AND at>?4)",
                                          "itii", who->id, kind, now, now - EVENT_MS));
}

static void code_of(const struct lk_survey *s, const char *worker, int place, char out[48]) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    unsigned char mac[32];
    char text[256];
    if (s->study->code) {
        snprintf(out, 48, "%s", s->study->code);
        return;
    }
    snprintf(text, sizeof text, "%s|%s|%d", s->study->name, worker, place % s->study->n_tasks + 1);
    lk_survey_hmac(s, text, mac);
    for (int i = 0; i < 10; i++) {
        unsigned bits = (unsigned)mac[i * 5 / 8] << 8 | mac[i * 5 / 8 + 1];
        out[i] = letters[bits >> (11 - i * 5 % 8) & 31];
    }
    out[10] = '\0';
}

enum lk_code lk_survey_code(struct lk_survey *s, const struct lk_survey_visitor *who, char out[48]) {
    if (!who->submitted && !who->n_submitted) return lk_fail(LK_E_INPUT, "no code before the task is submitted");
    code_of(s, who->worker, who->last_submitted, out);
    return LK_OK;
}

/* worker "": anybody's. *valid: one of this worker's submissions has the code. */
static enum lk_code find_code(struct lk_survey *s, const char *worker, const char *code, bool *valid) {
    static const char all[] = "SELECT p.worker, c.task FROM read_claims c JOIN read_participants p ON "
                              "p.id=c.participant WHERE c.state='submitted' AND ?1=''";
    static const char of_worker[] = "SELECT p.worker, c.task FROM read_participants p JOIN read_claims c ON "
                                    "c.participant=p.id WHERE c.state='submitted' AND p.worker=?1";
    sqlite3_stmt *q;
    char own[48];
    *valid = false;
    pthread_mutex_lock(&s->sql.lock);
    enum lk_code rc = lk_sql_open(&s->sql, &q, *worker ? of_worker : all, "t", worker);
    for (bool row = true; !rc && row && !*valid;) {
        rc = lk_sql_step(&s->sql, q, &row);
        if (rc || !row) break;
        code_of(s, lk_sql_text(q, 0), sqlite3_column_int(q, 1), own);
        *valid = lk_survey_same(own, code);
    }
    sqlite3_finalize(q);
    pthread_mutex_unlock(&s->sql.lock);
    return rc;
}

enum lk_code lk_survey_code_valid(struct lk_survey *s, const char *code, bool *valid) {
    return find_code(s, "", code, valid);
}

enum lk_code lk_survey_code_check(struct lk_survey *s, const char *external_id, const char *code,
                                  enum lk_survey_code_verdict *verdict) {
    char worker[65];
    bool own = false, any = false, known = false;
    enum lk_code rc = lk_survey_worker(s, external_id, strlen(external_id), worker, &known);
    if (rc == LK_E_INPUT) rc = LK_OK; /* nobody can have entered with it */
    if (!rc && known) rc = find_code(s, worker, code, &own);
    if (!rc && !own) rc = find_code(s, "", code, &any);
    *verdict = own               ? LK_SURVEY_CODE_VALID
               : !any            ? LK_SURVEY_CODE_UNKNOWN
               : !s->study->code ? LK_SURVEY_CODE_SHARED /* one per participant: it has an owner */
               : known           ? LK_SURVEY_CODE_UNFINISHED
                                 : LK_SURVEY_CODE_STRANGER;
    return rc;
}
