/* JSON in replies of Step1X-Edit's language model, read as the authors' Python reads it. Private to
 * models/step1x/thinking.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

enum lk_step1x_meets {
    LK_STEP1X_MEETS_OTHER, /* none of the three words */
    LK_STEP1X_MEETS_YES,
    LK_STEP1X_MEETS_PARTIAL,
    LK_STEP1X_MEETS_NO
};

struct lk_step1x_faults {
    enum lk_step1x_meets meets;
    double major_conflicts, hallucinations, omissions; /* whole numbers */
    double raw_score;
};

/* Keys may be missing and numbers may be texts, as Python's int() and float() take them. *reason is lk_malloc'ed when
 * *valid. LK_E_NOMEM. */
enum lk_code lk_step1x_read_faults(const char *json, size_t n, bool *valid, struct lk_step1x_faults *out,
                                   char **reason);

/* An object with "reasoning" and a list of numbers "score", of which *least is told. LK_E_NOMEM. */
enum lk_code lk_step1x_read_score_list(const char *json, size_t n, bool *valid, double *least);
