/* One question at a time about groups or kinds of prompts, all models together, by relabelled sources or prompts
 * (eval/stats/crossed): for people and prompts like these. Private to eval/report. */
#pragma once

#include "eval/report/report.h"

enum lk_relabelled_of { LK_ASK_RACES, LK_ASK_OTHERS_THAN_WHITE, LK_ASK_CATEGORIES };

struct lk_relabelled_question {
    enum lk_relabelled_of about; /* the largest of the races' differences; others minus White; vulnerability minus
                                    occupational */
    enum lk_measure measure;
    bool mean_score; /* instead: the mean of axis */
    enum lk_axis axis;
    enum lk_score_source source;
    int category;       /* of prompts; -1: all */
    bool without_white; /* sources */
};

/* The interval, at the report's level, of a difference of rates or scores, of races of the largest minus the smallest
 * rate. why: NULL, or why there is neither it nor p; no_interval: why p stands alone. */
struct lk_relabelled_answer {
    double low, high, t, p;
    const char *why, *no_interval;
};

enum lk_code lk_report_relabel(const struct lk_dataset *data, const struct lk_report_options *options,
                               const struct lk_relabelled_question *question, struct lk_relabelled_answer *out);
