/* Inside of the store. Private to eval/intake. */
#pragma once

#include "eval/intake/audit.h"
#include "eval/study/sql.h"

struct lk_audit {
    struct lk_sql sql;
    double alpha;      /* of intervals that aggregates give */
    int64_t max_steps; /* instructions of SQLite that one query may take */
    int64_t n_steps;   /* that the query at hand has taken */
};

/* The functions that queries may call. */
enum lk_code lk_audit_functions(struct lk_audit *audit);
