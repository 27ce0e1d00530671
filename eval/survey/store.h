/* What the parts of the survey's state share: one SQLite connection behind one lock. */
#pragma once

#include "eval/study/sql.h"
#include "eval/survey/survey.h"

struct lk_survey {
    const struct lk_survey_study *study;
    struct lk_sql sql;
    char path[4096];                   /* of the answers */
    char salt[65], key[65], admin[65]; /* hex */
    char consent_sha256[65];
    struct {
        int64_t hour;
        int n;
    } limits[LK_SURVEY_N_LIMITS]; /* in memory alone */
};

/* Claims that were idle too long become abandoned. Within a transaction. */
enum lk_code lk_survey_expire(struct lk_survey *s, int64_t now);
/* 256 random bits as hex. */
enum lk_code lk_survey_token(char out[65]);
/* HMAC-SHA256 of the text under the store's key. */
void lk_survey_hmac(const struct lk_survey *s, const char *text, unsigned char out[32]);
