/* What the parts of the survey's state share: one SQLite connection behind one lock. */
#pragma once

#include "engine/base/names.h"
#include "eval/study/sql.h"
#include "eval/survey/survey.h"

struct lk_survey {
    const struct lk_survey_study *study;
    struct lk_sql sql;
    struct evp_mac_ctx_st *mac;        /* of the rows' digests */
    char path[4096];                   /* of the answers */
    char salt[65], key[65], admin[65]; /* hex */
    char consent_sha256[65];
    struct {
        int64_t hour;
        int n;
    } limits[LK_SURVEY_N_LIMITS]; /* in memory alone, as: */
    struct lk_names blocked;      /* hashes of those who may not take part */
    bool *has_come;               /* [blocked.n]: and tried to */
};

/* SQL: how many answers people gave. */
extern const char *const lk_survey_of_people;
/* What to do about a store that is damaged. */
extern const char *const lk_survey_advice;

/* The functions behind the digests of rows; the tables' digests and counts, once; what keeps and checks them as
 * long as the connection is open; and that every row is intact and none is gone. */
enum lk_code lk_survey_seal_functions(struct lk_survey *s);
enum lk_code lk_survey_seal_new(struct lk_survey *s);
/* questions.c: the file is whole, its tables are ours, and each value is one that this study can have. LK_E_INPUT with
 * table, row and column. */
enum lk_code lk_survey_check(struct lk_survey *s, const char *schema);
enum lk_code lk_survey_check_values(struct lk_survey *s);
/* tasks.c: an option of one of the questions, or a comment. */
bool lk_survey_is_valid(const struct lk_survey_study *study, const struct lk_survey_questions *questions,
                        const struct lk_survey_given *given);

/* monitor.c: what was answered and who took part, by the readers that the report uses, into import->data. The caller
 * frees both. */
struct lk_ratings_import;
enum lk_code lk_survey_ratings(struct lk_survey *s, struct lk_ratings_import *import);
/* export.c: a cell of a table for people: quoted; a text that a spreadsheet would take for a formula gets a '
 * before it. */
void lk_survey_csv_text(struct lk_text *out, const char *text);
/* session.c: the salted hash of an id as typed, by lk_rater_id. */
enum lk_code lk_survey_hash(const struct lk_survey *s, const char *typed, size_t n, char worker[65]);
/* Claims that were idle too long become abandoned. Within a transaction. */
enum lk_code lk_survey_expire(struct lk_survey *s, int64_t now);
/* 256 random bits as hex. */
enum lk_code lk_survey_token(char out[65]);
/* HMAC-SHA256 of the text under the store's key. */
void lk_survey_hmac(const struct lk_survey *s, const char *text, unsigned char out[32]);
