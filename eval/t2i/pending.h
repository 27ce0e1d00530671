/* Labels whose numbers are asked for row by row and resampled together: equal sets once, sets of one size from the same
 * draws, in threads that share the sets among them. */
#pragma once

#include "engine/base/store.h"
#include "eval/t2i/metrics.h"

/* What numbers become: those of a cell or a change, or one of a row. */
enum lk_t2i_output {
    LK_T2I_CELL,
    LK_T2I_CHANGE,
    LK_T2I_SENSITIVITY_SPD,
    LK_T2I_SENSITIVITY_CHANGE,
    LK_T2I_CFG_SPD,
    LK_T2I_CFG_CHANGE,
    LK_T2I_CFG_MITIGATION
};

struct lk_t2i_pending_set {
    struct lk_representation set;
    enum lk_t2i_output output;
    size_t row;
};

struct lk_t2i_pending {
    struct lk_t2i_pending_set *list;
    size_t n, capacity, n_units;
    struct lk_store groups;
};

/* For the last row of the output's list. groups [n] are copied; other: NULL for SPD alone. Runs what has come together
 * when that is much. */
enum lk_code lk_t2i_pending_add(struct lk_t2i_pending *pending, struct lk_t2i_metrics *metrics,
                                enum lk_t2i_output output, int attribute, const int32_t *base, const int32_t *other,
                                size_t n);
enum lk_code lk_t2i_pending_run(struct lk_t2i_pending *pending, struct lk_t2i_metrics *metrics);
void lk_t2i_pending_free(struct lk_t2i_pending *pending);
