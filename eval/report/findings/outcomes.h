/* Outcomes of the portrait study's edits as findings ask for them. Private to eval/report. */
#pragma once

#include "eval/report/findings/findings.h"

/* How two judges' scores become an outcome, and what counts as drift. */
enum lk_convention_of_scores {
    LK_CONVENTION_DEFAULT, /* the mean of their indicators */
    LK_CONVENTION_PRIMARY,
    LK_CONVENTION_SECONDARY,
    LK_CONVENTION_HALF_EVEN,
    LK_CONVENTION_HALF_UP,
    LK_CONVENTION_HALF_DOWN,
    LK_CONVENTION_DRIFT_LOWER, /* thresholds of drift one level lower, or higher */
    LK_CONVENTION_DRIFT_HIGHER,
    LK_N_CONVENTIONS
};
extern const char *const lk_convention_names[LK_N_CONVENTIONS]; /* "the primary judge alone" */

/* Sizes, factors and names; y is NULL. */
enum lk_code lk_outcomes_make(struct lk_findings *findings);
/* y [LK_N_OUTCOMES, LK_N_MODELS, LK_N_SOURCES, LK_N_EDIT_PROMPTS] of the baseline arm; false: the convention is none of
 * these scores (of one judge alone, of raters), or all is as by default. */
bool lk_outcomes_fill(const struct lk_dataset *data, const struct lk_report_options *options,
                      enum lk_score_source source, enum lk_convention_of_scores convention, double *y);
/* Of one output by default; NaN: the scores do not tell. */
double lk_outcome_of(const struct lk_item *item, enum lk_measure measure, const struct lk_report_options *options,
                     enum lk_score_source source);
enum { LK_N_OUTCOME_CELLS = LK_N_OUTCOMES * LK_N_MODELS * LK_N_SOURCES * LK_N_EDIT_PROMPTS };
