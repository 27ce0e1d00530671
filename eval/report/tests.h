/* The study's rank tests on the raters' means, for the table of tests and for quality control. */
#pragma once

#include "eval/report/build.h"

struct lk_human_test {
    const char *name, *axis;
    struct lk_test test;
    double adjusted; /* p within its family; 1 when the test is undefined */
    struct lk_number by_source;
};

enum { LK_N_HUMAN_TESTS = 3 * LK_N_AXES };
/* Kruskal-Wallis over the races, Mann-Whitney of White against the others, Wilcoxon of the pairs, each on every axis.
 */
enum lk_code lk_report_human_tests(const struct lk_report *report, struct lk_human_test out[LK_N_HUMAN_TESTS]);
