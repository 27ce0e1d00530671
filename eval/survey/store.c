#include "eval/survey/store.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/file.h"
#include "engine/base/json.h"

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS about(name TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS participants(id INTEGER PRIMARY KEY, worker TEXT NOT NULL UNIQUE, pilot INTEGER NOT "
    "NULL, entered_at INTEGER NOT NULL, guided_at INTEGER, check_right INTEGER, consent_at INTEGER, consent_sha256 "
    "TEXT);"
    "CREATE TABLE IF NOT EXISTS sessions(token_sha256 TEXT PRIMARY KEY, participant INTEGER NOT NULL, at INTEGER NOT "
    "NULL);"
    "CREATE TABLE IF NOT EXISTS claims(id INTEGER PRIMARY KEY, participant INTEGER NOT NULL, task INTEGER NOT NULL, "
    "state TEXT NOT NULL, claimed_at INTEGER NOT NULL, active_at INTEGER NOT NULL, last_at INTEGER NOT NULL, "
    "submitted_at INTEGER, lease INTEGER NOT NULL DEFAULT 0);"
    "CREATE UNIQUE INDEX IF NOT EXISTS one_claim ON claims(participant) WHERE state IN ('open','submitted');"
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

/* Written once, beside its place and renamed, so that no crash leaves half of it. */
static enum lk_code make_secrets(struct lk_survey *s, const char *path) {
    char text[400], temporary[4200];
    LK_TRY(random_hex(s->salt));
    LK_TRY(random_hex(s->key));
    LK_TRY(random_hex(s->admin));
    int n = snprintf(text, sizeof text, "{\"salt\":\"%s\",\"key\":\"%s\",\"admin_token\":\"%s\"}\n", s->salt, s->key,
                     s->admin);
    snprintf(temporary, sizeof temporary, "%s.new", path);
    int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return lk_fail_errno(errno, "%s", temporary);
    bool ok = write(file, text, (size_t)n) == n && !fsync(file);
    int why = errno;
    close(file);
    if (ok && !rename(temporary, path)) return LK_OK;
    return lk_fail_errno(ok ? errno : why, "%s", path);
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

/* A store belongs to one study: answers are kept by position, so the order of its items must stay. */
static enum lk_code check_study(struct lk_survey *s) {
    const struct lk_survey_study *study = s->study;
    struct lk_text text = {0};
    char sha256[65];
    lk_text_add(&text, "%s|%s|%d|%llu|%d|%d|%d|%c%c%d%d", study->name, study->instrument, study->experiment,
                (unsigned long long)study->seed, study->n_tasks, study->n_gold_per_task, study->n_checks_per_task,
                study->exp2_option, study->q3_version, study->printed_skin, study->fixed_sides);
    for (size_t i = 0; i < study->n_items; i++) lk_text_add(&text, "|%s", study->items[study->packed[i]].id);
    for (size_t i = 0; i < study->n_gold; i++) lk_text_add(&text, "|%s", study->gold[i].id);
    enum lk_code rc = text.rc;
    if (!rc) lk_sha256(text.bytes, text.n, sha256);
    lk_text_free(&text);
    if (rc) return rc;
    LK_TRY(lk_sql_run(&s->sql, "INSERT OR IGNORE INTO about VALUES('study',?1)", "t", sha256));
    int64_t same;
    LK_TRY(lk_sql_number(&s->sql, &same, 0, "SELECT value=?1 FROM about WHERE name='study'", "t", sha256));
    return same ? LK_OK
                : lk_fail(LK_E_CHANGED, "the store holds answers to another study (name, items, tasks, seed or "
                                        "instrument differ): give this one a name, file or --store of its own");
}

static enum lk_code prepare(struct lk_survey *s, const char *folder, bool create) {
    char path[4096];
    struct stat st;
    char *consent;
    snprintf(path, sizeof path, "%s/secrets.json", folder);
    if (stat(path, &st)) {
        if (!create) return lk_fail(LK_E_NOT_FOUND, "%s: no survey was served from here", folder);
        if (mkdir(folder, 0700) && errno != EEXIST) return lk_fail_errno(errno, "%s", folder);
        LK_TRY(make_secrets(s, path));
    } else
        LK_TRY(read_secrets(s, path));
    snprintf(s->path, sizeof s->path, "%s/answers.db", folder);
    LK_TRY(lk_sql_attach(&s->sql, s->path, s->path, schema));
    LK_TRY(lk_survey_consent_text(s->study, &consent, s->consent_sha256));
    lk_free(consent);
    return check_study(s);
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

void lk_survey_close(struct lk_survey *s) {
    if (!s) return;
    lk_sql_close(&s->sql);
    OPENSSL_cleanse(s, sizeof *s);
    lk_free(s);
}

const char *lk_survey_admin_token(const struct lk_survey *s) { return s->admin; }

enum lk_code lk_survey_together(struct lk_survey *s) { return lk_sql_begin(&s->sql); }

enum lk_code lk_survey_done(struct lk_survey *s) { return lk_sql_end(&s->sql, LK_OK); }
