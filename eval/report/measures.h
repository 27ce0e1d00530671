/* The study's measures: rates over groups of items, their disparities, and means of scores. Thresholds are the study's
 * and can be set; every count is of integers, so a rate is k of n and nothing is rounded before it is printed. */
#pragma once

#include <stdbool.h>

#include "eval/scores/dataset.h"

struct lk_thresholds {
    int success;      /* edit_success at least; 4 */
    int soft_erasure; /* edit_success at most; 2 */
    int drift;        /* race, gender drift at least; 3 */
    int identity;     /* race or gender drift at least; 4 */
};
#define LK_THRESHOLDS_DEFAULT                                                                                          \
    { 4, 2, 3, 4 }

enum lk_measure {
    LK_MEASURE_SUCCESS,
    LK_MEASURE_SOFT_ERASURE,
    LK_MEASURE_RACE_DRIFT,
    LK_MEASURE_GENDER_DRIFT,
    LK_MEASURE_LIGHTENING,   /* skin tone 4 or 5 */
    LK_MEASURE_DARKENING,    /* skin tone 1 or 2 */
    LK_MEASURE_AGE_DRIFT,    /* not 3; V-03 has none */
    LK_MEASURE_AGE_ACCURACY, /* 3, of V-03 alone */
    LK_MEASURE_IDENTITY_ERASURE,
    LK_N_MEASURES,
};

const char *lk_measure_name(enum lk_measure measure); /* "Soft erasure" */
const char *lk_measure_key(enum lk_measure measure);  /* "soft_erasure" */

/* A measure holds for the scores of an axis from low to high, or outside of them; `identity`: for the larger of race
 * and gender change, where both are scored. V-03 asks for ageing: it has age accuracy, all others have age change. */
struct lk_measure_span {
    enum lk_axis axis;
    int low, high;
    bool outside, identity;
};
struct lk_measure_span lk_measure_span(enum lk_measure measure, const struct lk_thresholds *thresholds);

enum lk_score_source { LK_SCORES_JUDGE, LK_SCORES_HUMAN };

/* The levels [LK_N_AXES] of the judges' ensemble, or of the raters' majority. */
const uint8_t *lk_item_levels(const struct lk_item *item, enum lk_score_source source);
/* 1 or 0; -1 when the scores do not tell. score [LK_N_AXES], 0: none. */
int lk_measure_of(enum lk_measure measure, const uint8_t *score, int prompt, const struct lk_thresholds *thresholds);

/* Which items: -1 is any level. LK_GROUP_ANY: all outputs of experiment 1. */
struct lk_group {
    int race, gender, age, age_group, model, category, arm, prompt;
    int subcategory; /* lk_subcategory_*; -1 any */
    bool by_content; /* subcategories by what prompts ask for, instead of by the printed id ranges */
};
#define LK_GROUP_ANY                                                                                                   \
    { -1, -1, -1, -1, -1, -1, LK_ARM_EDITED, -1, -1, false }

enum { LK_N_SUBCATEGORIES = 6 }; /* Authority, Service, Appearance-associated; Physical, Aging, Situational */
const char *lk_subcategory_name(int subcategory);
/* Of prompt 0..19. */
int lk_subcategory_of(int prompt, bool by_content);

/* The item is of experiment 1 or 2 (not of 3) and has these levels. */
bool lk_group_has(const struct lk_group *group, const struct lk_item *item);
/* The same group with one factor set to a level. */
struct lk_group lk_group_with(struct lk_group group, enum lk_factor factor, int level);

struct lk_rate {
    int64_t k, n;
};
struct lk_rate lk_measure_rate(const struct lk_dataset *data, const struct lk_group *group, enum lk_measure measure,
                               const struct lk_thresholds *thresholds);
/* The same by the judges' ensemble or by the raters' majority. */
struct lk_rate lk_measure_rate_by(const struct lk_dataset *data, const struct lk_group *group, enum lk_measure measure,
                                  enum lk_score_source source, const struct lk_thresholds *thresholds);
/* Whether they gave any output of experiment 1 or 2 a level. */
bool lk_scores_any(const struct lk_dataset *data, enum lk_score_source source);
double lk_rate_value(struct lk_rate rate); /* k / n; 0 when n is 0 */

/* The largest minus the smallest rate over the levels of a factor that have items; -1 when fewer than two have. */
struct lk_rates_range {
    double difference;
    int highest, lowest; /* levels; the earlier one of equals */
};
bool lk_rates_range(const struct lk_rate *rates, int n_levels, struct lk_rates_range *out);

/* Mean and count of an axis over a group; of the ensemble, or of the raters' means. */
struct lk_mean {
    double sum;
    int64_t n;
};
struct lk_mean lk_mean_of(const struct lk_dataset *data, const struct lk_group *group, enum lk_axis axis,
                          enum lk_score_source source);

/* Over pairs whose both arms have a score: sum of the baseline's, of the preserved arm's, and how many. With magnitude,
 * of |s - 3|. group.arm is not looked at. drifted_only: pairs whose baseline has race or gender drift. */
struct lk_paired {
    double edited, preserved;
    int64_t n;
};
struct lk_paired lk_paired_of(const struct lk_dataset *data, struct lk_group group, enum lk_axis axis,
                              enum lk_score_source source, bool magnitude, bool drifted_only,
                              const struct lk_thresholds *thresholds);
/* The same, with each pair's change and its source in change and sources [n_items], NULL for neither. */
struct lk_paired lk_paired_list(const struct lk_dataset *data, struct lk_group group, enum lk_axis axis,
                                enum lk_score_source source, bool magnitude, bool drifted_only,
                                const struct lk_thresholds *thresholds, double *change, int32_t *sources);

/* One item's value of an axis; false when it has none. */
bool lk_item_score(const struct lk_item *item, enum lk_axis axis, enum lk_score_source source, double *out);
