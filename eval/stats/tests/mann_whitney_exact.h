/* The distribution of Mann and Whitney's U without ties. */
#pragma once

#include <stdbool.h>

#include "eval/stats/stats.h"

/* Whether it can be computed for samples of these sizes. */
bool lk_mann_whitney_has_exact(size_t fewer, size_t more);
/* P(U >= u). LK_E_NOMEM. */
enum lk_code lk_mann_whitney_upper(size_t fewer, size_t more, size_t u, double *p);
