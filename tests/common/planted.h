/* Datasets whose truth is known: every edited output of experiment 1 (84 sources x 3 models x 20 prompts), the 500
 * pairs with their preserved arm, two judges who err, three raters of the pairs. What the judges' ensemble and the
 * raters must find is enumerated from the design, not taken from the code under test.
 *
 *     assert_ok(planted_items(&data));
 *     assert_ok(planted_scores(&data, &design, 1, replicate));   // as often as wanted
 *
 * An item takes its source's draw with probability `shared` and its own otherwise, so that the rates stay as planted
 * and two items of a source correlate by shared squared. */
#pragma once

#include "eval/scores/dataset.h"

enum { PLANTED_EDITED = LK_N_SOURCES * LK_N_MODELS * 20, PLANTED_ITEMS = PLANTED_EDITED + 500, PLANTED_RATERS = 3 };

struct planted {
    double race_drift[LK_N_RACES][LK_N_MODELS]; /* P(true level >= 3) */
    double soft_erasure[LK_N_RACES];            /* P(true edit success <= 2) */
    double shared;
    double judge_error[LK_N_JUDGES]; /* P(one level off, up or down); levels stay in 1..5 */
    double repaired[LK_N_RACES];     /* P(the preserved arm has race drift 1), else the baseline's level */
    double noise;                    /* P(a rater answers any of the five levels) */
    double female_drift;             /* what race drift has more in female sources */
    const double *skin; /* shares [5] of the skin tone's levels; NULL: lightened more often than darkened */
};

/* All items, partners, raters and empty ratings; the edited items come first, by source. */
enum lk_code planted_items(struct lk_dataset *data);
/* Scores of judges and raters, ensemble and combination. */
enum lk_code planted_scores(struct lk_dataset *data, const struct planted *design, uint64_t seed, uint64_t replicate);

/* What the true race drift level is: share [5] of levels 1 to 5. */
void planted_levels(double drift, double share[5]);
/* The ensemble's mean of a true level, and how probable it is that the ensemble says `least` or more. */
double planted_ensemble_mean(const struct planted *design, int level);
double planted_ensemble_at_least(const struct planted *design, int level, int least);
/* The rate of race drift >= 3, and of edit success <= 2, as the ensemble sees it. */
double planted_drift_rate(const struct planted *design, double drift);
double planted_erasure_rate(const struct planted *design, double erasure);
