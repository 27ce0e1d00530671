/* One score of two judges, per axis, from the integers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "eval/scores/dataset.h"

/* Scores that differ by one have a half for their mean, so the convention decides each of them. */
enum lk_rounding { LK_HALF_EVEN, LK_HALF_UP, LK_HALF_DOWN };
enum lk_bound { LK_BOUND_MIN, LK_BOUND_MAX };

struct lk_ensemble {
    enum lk_rounding rounding;
    bool secondary_only; /* without a primary score the secondary one counts, flagged; otherwise there is none */
};

struct lk_ensemble_counts {
    size_t n_both, n_primary_only, n_secondary_only, n_none; /* items, by what they hold on edit success */
    size_t n_review;                                         /* items with a flag on any axis */
    size_t n_review_axis[LK_N_AXES];
};

const char *lk_rounding_name(enum lk_rounding rounding); /* "half_even" */
int lk_rounding_parse(const char *name);                 /* -1 when it is none */

/* 1..5, or 0 without a score; g and o are 1..5, 0 for none. *review: the two differ by more than one (then g counts),
 * or only o was there and counts. */
int lk_ensemble_score(int g, int o, const struct lk_ensemble *ensemble, bool *review);
/* The smaller or larger of the scores that lk_ensemble_score looks at: what the rates are bounded by. */
int lk_ensemble_bound(int g, int o, const struct lk_ensemble *ensemble, enum lk_bound bound);
/* Experiment 3: equal answers, else the primary's, flagged. */
int lk_ensemble_role(int g, int o, const struct lk_ensemble *ensemble, bool *review);

/* Sets score, review and role of every item. A role's flag is bit LK_N_AXES of review. counts may be NULL. */
void lk_ensemble_apply(struct lk_dataset *data, const struct lk_ensemble *ensemble, struct lk_ensemble_counts *counts);
