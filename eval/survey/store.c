#include "eval/survey/store.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/text.h"

/* Each row of answers.db carries a digest under the store's key, and each table a count of its rows, so that no flipped
 * bit, no changed value and no row that is gone is read as what a participant did. The connection writes them by itself
 * (temporary triggers, which no other program has) and looks at them whenever a row is read (the views read_TABLE),
 * changed or taken away. */

static const struct {
    const char *name, *columns; /* each as "$name", what a row's digest is of */
} tables[] = {
    {"about", "$name, $value"},
    {"participants", "$id, $worker, $pilot, $entered_at, $guided_at, $check_right, $consent_at, $consent_sha256"},
    {"sessions", "$token_sha256, $participant, $at"},
    {"claims", "$id, $participant, $task, $state, $claimed_at, $active_at, $last_at, $submitted_at, $lease"},
    {"answers", "$id, $claim, $position, $key, $value, $item, $left_arm, $ms, $at"},
    {"events", "$id, $participant, $kind, $at"}};
enum { N_TABLES = sizeof tables / sizeof *tables, MAC_HEX = 32 };

/* HMAC-SHA256 of a table's name and values, each with its type and length; half of it as hex. */
static bool digest_of(const struct lk_survey *s, sqlite3_value **values, int n, char out[MAC_HEX + 1]) {
    unsigned char mac[32] = {0};
    size_t n_mac = 0;
    bool ok = EVP_MAC_init(s->mac, NULL, 0, NULL) == 1; /* the key stays */
    for (int i = 0; i < n; i++) {
        int type = sqlite3_value_type(values[i]), n_bytes = sqlite3_value_bytes(values[i]);
        const void *bytes = type == SQLITE_BLOB ? sqlite3_value_blob(values[i]) : sqlite3_value_text(values[i]);
        char head[32];
        int n_head = snprintf(head, sizeof head, "%d:%d:", type, n_bytes);
        ok = ok && EVP_MAC_update(s->mac, (unsigned char *)head, (size_t)n_head) == 1;
        if (n_bytes) ok = ok && EVP_MAC_update(s->mac, bytes, (size_t)n_bytes) == 1;
    }
    ok = ok && EVP_MAC_final(s->mac, mac, &n_mac, sizeof mac) == 1;
    for (int i = 0; i < MAC_HEX; i++) out[i] = "0123456789abcdef"[mac[i / 2] >> (i % 2 ? 0 : 4) & 15];
    out[MAC_HEX] = '\0';
    return ok;
}

/* lk_seal(TABLE, COLUMN...) */
static void seal(sqlite3_context *context, int n, sqlite3_value **values) {
    char mac[MAC_HEX + 1];
    if (digest_of(sqlite3_user_data(context), values, n, mac))
        sqlite3_result_text(context, mac, MAC_HEX, SQLITE_TRANSIENT);
    else
        sqlite3_result_error_nomem(context);
}

/* lk_intact(ROW, DIGEST, TABLE, COLUMN...): 1, or the failure of the statement. */
static void intact(sqlite3_context *context, int n, sqlite3_value **values) {
    char mac[MAC_HEX + 1], text[200];
    const char *kept = (const char *)sqlite3_value_text(values[1]);
    if (!digest_of(sqlite3_user_data(context), values + 2, n - 2, mac)) {
        sqlite3_result_error_nomem(context);
    } else if (kept && lk_survey_same(mac, kept)) {
        sqlite3_result_int(context, 1);
    } else {
        snprintf(text, sizeof text, "table %s, row %lld: not what this server wrote", sqlite3_value_text(values[2]),
                 (long long)sqlite3_value_int64(values[0]));
        sqlite3_result_error(context, text, -1);
        sqlite3_result_error_code(context, SQLITE_CORRUPT);
    }
}

/* The columns with what stands before each: "", "NEW." or "OLD.". */
static void columns(struct lk_text *out, int table, const char *before) {
    for (const char *at = tables[table].columns; *at; at++)
        if (*at == '$')
            lk_text_add(out, "%s", before);
        else
            lk_text_bytes(out, at, 1);
}

static void call_seal(struct lk_text *sql, int table, const char *before) {
    lk_text_add(sql, "lk_seal('%s', ", tables[table].name);
    columns(sql, table, before);
    lk_text_add(sql, ")");
}

static void call_intact(struct lk_text *sql, int table, const char *before) {
    lk_text_add(sql, "lk_intact(%srowid, %smac, '%s', ", before, before, tables[table].name);
    columns(sql, table, before);
    lk_text_add(sql, ")");
}

static void keep_table(struct lk_text *sql, int table) {
    const char *name = tables[table].name;
    /* Looked at as a row of its own: SQLite would put what a query compares a column with in the column's place. */
    lk_text_add(sql, "CREATE TEMP VIEW read_%s AS SELECT ", name);
    columns(sql, table, "");
    lk_text_add(sql, " FROM main.%s AS r WHERE (SELECT ", name);
    call_intact(sql, table, "c.");
    lk_text_add(sql, " FROM main.%s AS c WHERE c.rowid=r.rowid)", name);
    lk_text_add(sql, ";CREATE TEMP TRIGGER changing_%s BEFORE UPDATE OF ", name);
    columns(sql, table, "");
    lk_text_add(sql, " ON main.%s BEGIN SELECT ", name);
    call_intact(sql, table, "OLD.");
    lk_text_add(sql, ";END;CREATE TEMP TRIGGER changed_%s AFTER UPDATE OF ", name);
    columns(sql, table, "");
    lk_text_add(sql, " ON main.%s BEGIN UPDATE %s SET mac=", name, name);
    call_seal(sql, table, "");
    lk_text_add(
        sql, " WHERE rowid=NEW.rowid;END;CREATE TEMP TRIGGER added_%s AFTER INSERT ON main.%s BEGIN UPDATE %s SET mac=",
        name, name, name);
    call_seal(sql, table, "");
    lk_text_add(sql, " WHERE rowid=NEW.rowid;");
    if (table) lk_text_add(sql, "UPDATE about SET value=CAST(value+1 AS TEXT) WHERE name='rows of %s';", name);
    lk_text_add(sql, "END;");
    if (table)
        lk_text_add(sql,
                    "CREATE TEMP TRIGGER taken_%s AFTER DELETE ON main.%s BEGIN UPDATE about SET value=CAST(value-1 AS "
                    "TEXT) WHERE name='rows of %s';END;",
                    name, name, name);
}

/* What a store has on its first day, or gets that an older version wrote. */
static void begin_table(struct lk_text *sql, int table) {
    const char *name = tables[table].name;
    lk_text_add(sql, "ALTER TABLE %s ADD COLUMN mac TEXT;", name);
    if (table) lk_text_add(sql, "INSERT INTO about(name,value) SELECT 'rows of %s', count(*) FROM %s;", name, name);
}

static enum lk_code execute(struct lk_survey *s, struct lk_text *sql) {
    enum lk_code rc = sql->rc;
    if (!rc) rc = lk_sql_execute(&s->sql, sql->bytes);
    lk_text_free(sql);
    return rc;
}

enum lk_code lk_survey_seal_new(struct lk_survey *s) {
    struct lk_text sql = {0};
    for (int i = 0; i < N_TABLES; i++) begin_table(&sql, i);
    for (int i = 0; i < N_TABLES; i++) {
        lk_text_add(&sql, "UPDATE %s SET mac=", tables[i].name);
        call_seal(&sql, i, "");
        lk_text_add(&sql, ";");
    }
    lk_text_add(&sql, "PRAGMA user_version=2;");
    return execute(s, &sql);
}

enum lk_code lk_survey_seal_functions(struct lk_survey *s) {
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    const OSSL_PARAM sha256[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char[]){"SHA256"}, 0),
                                 OSSL_PARAM_END};
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    s->mac = EVP_MAC_CTX_new(hmac);
    bool ok = s->mac && EVP_MAC_init(s->mac, (unsigned char *)s->key, sizeof s->key - 1, sha256) == 1;
    EVP_MAC_free(hmac);
    if (!ok || sqlite3_create_function_v2(s->sql.db, "lk_seal", -1, flags, s, seal, NULL, NULL, NULL) ||
        sqlite3_create_function_v2(s->sql.db, "lk_intact", -1, flags, s, intact, NULL, NULL, NULL))
        return lk_fail(LK_E_NOMEM, "out of memory for a survey");
    return lk_sql_execute(&s->sql, "PRAGMA temp_store=MEMORY");
}

static enum lk_code survey_seal_keep(struct lk_survey *s) {
    struct lk_text sql = {0};
    for (int i = 0; i < N_TABLES; i++) keep_table(&sql, i);
    return execute(s, &sql);
}

/* Every row is intact, and as many are there as were written. */
static enum lk_code survey_seal_check(struct lk_survey *s) {
    for (int i = 0; i < N_TABLES; i++) {
        char sql[200];
        int64_t n, expected;
        snprintf(sql, sizeof sql, "SELECT count(*) FROM read_%s", tables[i].name);
        LK_TRY(lk_sql_number(&s->sql, &n, 0, sql, ""));
        if (!i) continue;
        snprintf(sql, sizeof sql, "SELECT value FROM read_about WHERE name='rows of %s'", tables[i].name);
        LK_TRY(lk_sql_number(&s->sql, &expected, -1, sql, ""));
        if (n != expected)
            return lk_fail(LK_E_INPUT, "%s: table %s: expected %lld rows, got %lld: the file is damaged; %s", s->path,
                           tables[i].name, (long long)expected, (long long)n, lk_survey_advice);
    }
    return LK_OK;
}

const char *const lk_survey_advice = "put a copy of the whole folder back";

const char *const lk_survey_of_people =
    "SELECT count(*) FROM answers a JOIN claims c ON c.id=a.claim JOIN participants p ON p.id=c.participant WHERE NOT "
    "p.pilot";

enum { VERSION = 2 }; /* of the tables: 1 lets a participant have one task alone, 0 has no digests */

#define CLAIM_INDEXES                                                                                                  \
    "CREATE UNIQUE INDEX IF NOT EXISTS one_claim ON claims(participant) WHERE state='open';"                           \
    "CREATE INDEX IF NOT EXISTS claims_of_participant ON claims(participant);"
static const char indexes[] = CLAIM_INDEXES;
static const char schema[] =
    "CREATE TABLE IF NOT EXISTS about(name TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS participants(id INTEGER PRIMARY KEY, worker TEXT NOT NULL UNIQUE, pilot INTEGER NOT "
    "NULL, entered_at INTEGER NOT NULL, guided_at INTEGER, check_right INTEGER, consent_at INTEGER, consent_sha256 "
    "TEXT);"
    "CREATE TABLE IF NOT EXISTS sessions(token_sha256 TEXT PRIMARY KEY, participant INTEGER NOT NULL, at INTEGER NOT "
    "NULL);"
    "CREATE TABLE IF NOT EXISTS claims(id INTEGER PRIMARY KEY, participant INTEGER NOT NULL, task INTEGER NOT NULL, "
    "state TEXT NOT NULL, claimed_at INTEGER NOT NULL, active_at INTEGER NOT NULL, last_at INTEGER NOT NULL, "
    "submitted_at INTEGER, lease INTEGER NOT NULL DEFAULT 0);" CLAIM_INDEXES
    "CREATE INDEX IF NOT EXISTS claims_of_task ON claims(task, state);"
    "CREATE INDEX IF NOT EXISTS open_claims ON claims(active_at) WHERE state='open';"
    "CREATE TABLE IF NOT EXISTS answers(id INTEGER PRIMARY KEY, claim INTEGER NOT NULL, position INTEGER NOT NULL, key "
    "TEXT NOT NULL, value TEXT NOT NULL, item TEXT NOT NULL, left_arm INTEGER NOT NULL, ms INTEGER NOT NULL, at "
    "INTEGER NOT NULL);"
    "CREATE INDEX IF NOT EXISTS answers_of_claim ON answers(claim, position, key);"
    "CREATE TABLE IF NOT EXISTS events(id INTEGER PRIMARY KEY, participant INTEGER, kind TEXT NOT NULL, at INTEGER NOT "
    "NULL);";

enum lk_code lk_survey_expire(struct lk_survey *s, int64_t now) {
    return lk_sql_run(&s->sql, "UPDATE claims SET state='abandoned' WHERE state='open' AND active_at<?1", "i",
                      now - s->study->claim_ms);
}

void lk_survey_hmac(const struct lk_survey *s, const char *text, unsigned char out[32]) {
    unsigned n = 32;
    HMAC(EVP_sha256(), s->key, (int)strlen(s->key), (const unsigned char *)text, strlen(text), out, &n);
}

bool lk_survey_same(const char *a, const char *b) {
    size_t n = strlen(a);
    return n == strlen(b) && !CRYPTO_memcmp(a, b, n);
}

static enum lk_code random_hex(char out[65]) {
    unsigned char bytes[32];
    if (RAND_bytes(bytes, sizeof bytes) != 1) return lk_fail(LK_E_INTERNAL, "no random numbers");
    for (int i = 0; i < 32; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return LK_OK;
}

enum lk_code lk_survey_token(char out[65]) { return random_hex(out); }

static enum lk_code sync_folder(const char *path) {
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = folder >= 0 && (!fsync(folder) || errno == EINVAL); /* what some network file systems say */
    int why = errno;
    if (folder >= 0) close(folder);
    return ok ? LK_OK : lk_fail_errno(why, "%s: cannot be synced", path);
}

static enum lk_code make_secrets(const char *path) {
    char text[400], hex[3][65];
    for (int i = 0; i < 3; i++) LK_TRY(random_hex(hex[i]));
    int n = snprintf(text, sizeof text, "{\"salt\":\"%s\",\"key\":\"%s\",\"admin_token\":\"%s\"}\n", hex[0], hex[1],
                     hex[2]);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return lk_fail_errno(errno, "%s", path);
    bool ok = write(file, text, (size_t)n) == n && !fsync(file);
    int why = errno;
    close(file);
    return ok ? LK_OK : lk_fail_errno(why, "%s", path);
}

static enum lk_code read_secrets(struct lk_survey *s, const char *path) {
    char *text, *const to[] = {s->salt, s->key, s->admin};
    const char *const names[] = {"salt", "key", "admin_token"};
    size_t n;
    LK_TRY(lk_read_file(path, 4096, &text, &n));
    enum lk_code rc = lk_json_check(text, n, path);
    cJSON *root = cJSON_ParseWithLength(text, n);
    lk_free(text);
    for (int i = 0; i < 3 && !rc; i++) {
        const cJSON *field = cJSON_GetObjectItemCaseSensitive(root, names[i]);
        if (cJSON_IsString(field) && strlen(field->valuestring) == 64)
            memcpy(to[i], field->valuestring, 65);
        else
            rc = lk_fail(LK_E_INPUT, "%s: field \"%s\": expected 64 digits", path, names[i]);
    }
    cJSON_Delete(root);
    return rc;
}

static bool study_deals(const struct lk_survey_study *study) { return study->n_gold_per_task && !study->gold_drawn; }

/* A store belongs to one study: answers are kept by position, so the order of its items must stay. */
static enum lk_code digest_of_study(const struct lk_survey_study *study, char sha256[65]) {
    struct lk_text text = {0};
    lk_text_add(&text, "%s|%s|%d|%llu|%d|%d|%d|%c%c%d%d", study->name, study->instrument, study->experiment,
                (unsigned long long)study->seed, study->n_tasks, study->n_gold_per_task, study->n_checks_per_task,
                study->exp2_option, study->q3_version, study->printed_skin, study->fixed_sides);
    if (study_deals(study)) lk_text_add(&text, "|dealt");
    for (size_t i = 0; i < study->n_packed; i++) lk_text_add(&text, "|%s", study->items[study->packed[i]].id);
    for (size_t i = 0; i < study->n_gold; i++) lk_text_add(&text, "|%s", study->gold[i].id);
    enum lk_code rc = text.rc;
    if (!rc) lk_sha256(text.bytes, text.n, sha256);
    lk_text_free(&text);
    return rc;
}

static enum lk_code name_study(struct lk_survey *s) {
    char sha256[65];
    LK_TRY(digest_of_study(s->study, sha256));
    return lk_sql_run(&s->sql, "INSERT OR IGNORE INTO about(name,value) VALUES('study',?1)", "t", sha256);
}

static enum lk_code check_study(struct lk_survey *s) {
    char sha256[65];
    int64_t same;
    LK_TRY(digest_of_study(s->study, sha256));
    LK_TRY(lk_sql_number(&s->sql, &same, 0, "SELECT value=?1 FROM read_about WHERE name='study'", "t", sha256));
    const bool dealt = study_deals(s->study);
    return same ? LK_OK
                : lk_fail(LK_E_CHANGED,
                          "the store holds answers to another study (name, items, tasks, seed or instrument differ): "
                          "give this one a name, file or --store of its own%s",
                          dealt ? "; if it was begun by version 0.1.0, add \"gold_deal\": \"drawn\"" : "");
}

/* Nobody else reads who answered what; missing files are none of its business. */
static enum lk_code close_to_others(const char *path, mode_t mode) {
    struct stat st;
    if (stat(path, &st) || !(st.st_mode & 077) || !chmod(path, mode)) return LK_OK;
    return lk_fail_errno(errno, "%s: others may read it: expected mode %o, got %o, which cannot be changed", path,
                         (unsigned)mode, (unsigned)st.st_mode & 0777);
}

/* The files of a store, of which secrets.json comes last: a first start that was killed before goes on. */
struct files {
    char secrets[4096], made[4096], answers[4096], journal[4096];
    bool fresh; /* nobody has taken part */
};

static enum lk_code find_files(struct files *f, const char *folder, bool create) {
    struct stat st;
    snprintf(f->secrets, sizeof f->secrets, "%.4000s/secrets.json", folder);
    snprintf(f->made, sizeof f->made, "%.4000s/secrets.json.new", folder);
    snprintf(f->answers, sizeof f->answers, "%.4000s/answers.db", folder);
    snprintf(f->journal, sizeof f->journal, "%.4000s/answers.db-journal", folder);
    bool secrets = !stat(f->secrets, &st), made = !stat(f->made, &st), answers = !stat(f->answers, &st);
    f->fresh = !secrets && (made || !answers);
    if (secrets == answers || f->fresh)
        return !f->fresh || create ? LK_OK : lk_fail(LK_E_NOT_FOUND, "%s: no survey was served from here", folder);
    return lk_fail(LK_E_INPUT, "%s: is missing beside %s: the two belong together; %s",
                   secrets ? f->answers : f->secrets, secrets ? "secrets.json" : "answers.db", lk_survey_advice);
}

static enum lk_code make_files(const struct files *f, const char *folder) {
    struct stat st;
    if (mkdir(folder, 0700) && errno != EEXIST) return lk_fail_errno(errno, "%s", folder);
    if (stat(f->made, &st)) LK_TRY(make_secrets(f->made));
    int file = open(f->answers, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return lk_fail_errno(errno, "%s", f->answers);
    close(file);
    return sync_folder(folder);
}

/* The tables, new or as an older version left them, which wrote no digests. */
static enum lk_code make_tables(struct lk_survey *s, bool fresh) {
    int64_t version, n_tables, n_sealed;
    LK_TRY(lk_sql_begin(&s->sql));
    enum lk_code rc = lk_sql_number(&s->sql, &version, -1, "PRAGMA user_version", "");
    if (!rc && !version && fresh) rc = lk_sql_execute(&s->sql, schema);
    if (!rc) rc = lk_sql_number(&s->sql, &n_tables, 0, "SELECT count(*) FROM sqlite_master WHERE type='table'", "");
    if (!rc)
        rc = lk_sql_number(&s->sql, &n_sealed, 0, "SELECT count(*) FROM pragma_table_info('answers') WHERE name='mac'",
                           "");
    if (!rc && (n_tables != 6 || (version != 0) != n_sealed || version > VERSION))
        rc = lk_fail(LK_E_INPUT, "%s: expected a survey's tables, version 0, 1 or 2, got %lld tables, version %lld; %s",
                     s->path, (long long)n_tables, (long long)version, lk_survey_advice);
    if (!rc && version < VERSION && !fresh) rc = lk_sql_execute(&s->sql, "DROP INDEX IF EXISTS one_claim");
    if (!rc && version < VERSION && !fresh) rc = lk_sql_execute(&s->sql, indexes);
    if (!rc && !version) rc = lk_survey_seal_new(s);
    if (!rc && version == 1) rc = lk_sql_execute(&s->sql, "PRAGMA user_version=2");
    if (!rc && fresh) rc = survey_seal_keep(s);
    if (!rc && fresh) rc = name_study(s);
    return lk_sql_end(&s->sql, rc);
}

static enum lk_code prepare(struct lk_survey *s, const char *folder, bool create) {
    struct files f;
    char *consent, *parent;
    LK_TRY(find_files(&f, folder, create));
    if (f.fresh) LK_TRY(make_files(&f, folder));
    LK_TRY(close_to_others(folder, 0700));
    const char *const kept[] = {f.secrets, f.made, f.answers, f.journal};
    for (int i = 0; i < 4; i++) LK_TRY(close_to_others(kept[i], 0600));
    LK_TRY(read_secrets(s, f.fresh ? f.made : f.secrets));
    memcpy(s->path, f.answers, sizeof s->path);
    s->sql.advice = lk_survey_advice;
    LK_TRY(lk_sql_attach(&s->sql, s->path, s->path, ""));
    LK_TRY(lk_survey_seal_functions(s));
    LK_TRY(make_tables(s, f.fresh));
    LK_TRY(lk_survey_consent_text(s->study, &consent, s->consent_sha256));
    lk_free(consent);
    LK_TRY(lk_sql_execute(&s->sql, "BEGIN")); /* one moment of a store that a server may be writing */
    enum lk_code rc = lk_survey_check(s, schema);
    if (!rc && !f.fresh) rc = survey_seal_keep(s);
    if (!rc) rc = survey_seal_check(s);
    if (!rc) rc = check_study(s);
    if (!rc) rc = lk_survey_check_values(s);
    if (rc) return rc;
    LK_TRY(lk_sql_execute(&s->sql, "COMMIT"));
    if (!f.fresh) return LK_OK;
    if (rename(f.made, f.secrets)) return lk_fail_errno(errno, "%s", f.secrets);
    LK_TRY(sync_folder(folder));
    parent = lk_format("%s/..", folder);
    rc = parent ? sync_folder(parent) : lk_fail(LK_E_NOMEM, "out of memory for a survey");
    lk_free(parent);
    return rc;
}

enum lk_code lk_survey_open(struct lk_survey **out, const struct lk_survey_study *study, const char *folder,
                            bool create) {
    struct lk_survey *s = lk_calloc(1, sizeof *s);
    *out = NULL;
    if (!s) return lk_fail(LK_E_NOMEM, "out of memory for a survey");
    s->study = study;
    enum lk_code rc = prepare(s, folder, create);
    if (rc && !strstr(lk_error_text(), folder)) lk_fail_prefix(rc, "%s", folder);
    if (rc)
        lk_survey_close(s);
    else
        *out = s;
    return rc;
}

enum lk_code lk_survey_answered(const char *folder, int64_t *n) {
    struct lk_sql sql = {.advice = lk_survey_advice};
    struct files f;
    struct stat st;
    *n = 0;
    if (find_files(&f, folder, true) || stat(f.answers, &st) || !st.st_size) return LK_OK;
    enum lk_code rc = lk_sql_attach(&sql, f.answers, f.answers, "");
    if (!rc) rc = lk_sql_number(&sql, n, 0, lk_survey_of_people, "");
    lk_sql_close(&sql);
    return rc;
}

void lk_survey_close(struct lk_survey *s) {
    if (!s) return;
    lk_sql_close(&s->sql);
    EVP_MAC_CTX_free(s->mac);
    lk_names_free(&s->blocked);
    lk_free(s->has_come);
    OPENSSL_cleanse(s, sizeof *s);
    lk_free(s);
}

const char *lk_survey_admin_token(const struct lk_survey *s) { return s->admin; }

enum lk_code lk_survey_together(struct lk_survey *s) { return lk_sql_begin(&s->sql); }

enum lk_code lk_survey_done(struct lk_survey *s) { return lk_sql_end(&s->sql, LK_OK); }
