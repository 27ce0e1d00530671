/* What a test of the report is given: the items of a group that have a value, with the factors they are compared by. */
#pragma once

#include "eval/report/report.h"

struct lk_observations {
    size_t n;
    double *value;                                      /* [n] */
    int32_t *race, *model, *prompt, *category, *source; /* [n] each */
};

/* Scores of an axis; ages asked for by V-03 are no drift and left out of age drift. LK_E_NOMEM. */
enum lk_code lk_observe_scores(const struct lk_dataset *data, const struct lk_group *group, enum lk_axis axis,
                               enum lk_score_source source, struct lk_observations *out);
/* 1 or 0 by a measure. */
enum lk_code lk_observe_measure(const struct lk_dataset *data, const struct lk_group *group, enum lk_measure measure,
                                enum lk_score_source source, const struct lk_thresholds *thresholds,
                                struct lk_observations *out);
/* Preserved minus edited, of pairs that have both; group.arm is not looked at. */
enum lk_code lk_observe_changes(const struct lk_dataset *data, struct lk_group group, enum lk_axis axis,
                                enum lk_score_source source, struct lk_observations *out);
void lk_observations_free(struct lk_observations *observations);

/* Values race after race, in canonical order, and how many each race has. values [n]. */
void lk_observations_by_race(const struct lk_observations *observations, double *values, size_t sizes[LK_N_RACES]);
/* Mean of each source that has values, and its race; returns how many have. */
size_t lk_observations_source_means(const struct lk_observations *observations, double means[LK_N_SOURCES],
                                    int32_t races[LK_N_SOURCES]);
