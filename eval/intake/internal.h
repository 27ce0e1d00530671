/* Inside of the store. Private to eval/intake. */
#pragma once

#include "eval/intake/audit.h"
#include "eval/study/sql.h"

struct lk_audit {
    struct lk_sql sql;
    double alpha;         /* of intervals that aggregates give */
    uint64_t seed;        /* of what they resample: the study's */
    bool any_rewrite;     /* a prompt was rewritten */
    int64_t max_steps;    /* instructions of SQLite that one query may take */
    sqlite3_stmt *insert; /* of a score, while scores are added */
    int64_t n_steps;      /* that the query at hand has taken */
};

struct lk_audit_row {
    sqlite3_stmt *statement;
};

/* The functions that queries may call. */
enum lk_code lk_audit_functions(struct lk_audit *audit);
enum lk_code lk_audit_resampled(struct lk_audit *audit);

/* Rewritten prompts: their tables; of a job, if its prompt was rewritten. */
extern const char lk_audit_rewrite_schema[];
enum lk_code lk_audit_add_rewrite(struct lk_audit *audit, const struct lk_study *study, const struct lk_study_job *job);
