/* The long score table: one line a score, whoever gave it, beside what the item is. CSV with the header
 * item_id,kind,who,axis,score,race,gender,age,model,prompt,arm,job
 * where kind is judge (who: primary, secondary) or rater (who: the id); axis one of the five keys (age_accuracy is
 * age_drift, of V-03 only) with a score 1..5, or role (male, female, unclear) or preference (edited, preserved, tie).
 * Reading takes the first five columns in any order, an empty score as skipped, and checks the labels against the id;
 * what a rating has beyond scores (times, order, classes, gold) is not part of it. */
#pragma once

#include <stddef.h>

#include "engine/base/status.h"
#include "eval/scores/dataset.h"

struct lk_long_report {
    size_t n_rows, n_judge, n_rater, n_skipped;
};

/* Into a dataset that may hold items already. A score that contradicts one that is there, or anything not understood,
 * is LK_E_INPUT with line and column; the dataset then holds the lines before it and is to be freed. */
enum lk_code lk_long_table_read(struct lk_dataset *data, const char *text, size_t n, const char *name,
                                struct lk_long_report *report);
/* The whole table, NUL-terminated, lk_free. job: names the run in the last column. Gold answers are left out. */
enum lk_code lk_long_table_write(const struct lk_dataset *data, const char *job, char **out, size_t *n);
