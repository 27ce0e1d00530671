/* Synthetic raters and the report about them: what the tests of the report's tables about raters share. */
#pragma once

#include "eval/report/report.h"

extern struct lk_dataset data;
extern struct lk_report_options options;
/* Setup and teardown of a test. */
int raters_begin(void **state);
int raters_end(void **state);

/* A rating of race drift by this rater. */
struct lk_rating *rate(const char *rater, const char *item, int race_drift);
void has_levels(struct lk_rating *rating, int axis, int level);

/* Fail the test when there is none. */
const struct lk_table *table_of(const struct lk_report *report, const char *id);
const struct lk_cell *cell_of(const struct lk_table *table, int row, int column);
void expect_text(const struct lk_table *table, int row, int column, const char *text);
