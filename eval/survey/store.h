/* What the parts of the survey's state share: one SQLite connection behind one lock. */
#pragma once

#include <pthread.h>
#include <sqlite3.h>

#include "eval/survey/survey.h"

struct lk_survey {
    const struct lk_survey_study *study;
    sqlite3 *db;
    pthread_mutex_t lock;
    char salt[65], key[65], admin[65]; /* hex */
    char consent_sha256[65];
};

/* types: i int64_t, t text (NULL: null). A statement without rows. */
enum lk_code lk_sql_run(struct lk_survey *s, const char *sql, const char *types, ...);
/* The first column of the first row, `otherwise` without one. */
enum lk_code lk_sql_number(struct lk_survey *s, int64_t *out, int64_t otherwise, const char *sql, const char *types,
                           ...);
enum lk_code lk_sql_open(struct lk_survey *s, sqlite3_stmt **out, const char *sql, const char *types, ...);
enum lk_code lk_sql_step(struct lk_survey *s, sqlite3_stmt *statement, bool *row);
const char *lk_sql_text(sqlite3_stmt *statement, int column); /* "" for null; until the next step */

/* Takes the lock and begins a transaction; lk_survey_end commits it (rc 0) or takes all of it back, and gives rc or the
 * commit's failure. */
enum lk_code lk_survey_begin(struct lk_survey *s);
enum lk_code lk_survey_end(struct lk_survey *s, enum lk_code rc);
/* Claims that were idle too long become abandoned. Within a transaction. */
enum lk_code lk_survey_expire(struct lk_survey *s, int64_t now);
/* 256 random bits as hex. */
enum lk_code lk_survey_token(char out[65]);
/* HMAC-SHA256 of the text under the store's key. */
void lk_survey_hmac(const struct lk_survey *s, const char *text, unsigned char out[32]);
