/* What the files figures*.c share. */
#pragma once

#include "eval/report/build.h"

/* Models with outputs that have the measure, in canonical order; returns how many. */
int lk_report_models(const struct lk_report *report, enum lk_measure measure, int models[LK_N_MODELS]);
/* Distributions and means of scores, and pairs before and after. */
enum lk_code lk_report_figures_scores(struct lk_report *report);
