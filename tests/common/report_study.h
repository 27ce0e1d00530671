/* Small studies and the report about them: what the tests of the report's rates and tests share. */
#pragma once

#include "eval/report/report.h"

struct lk_item *add_item(struct lk_dataset *data, int model, int source, int prompt, int arm);
void score(struct lk_item *item, int success, int skin, int race, int gender, int age);
/* Invented scores of so many sources, prompts and models, with and without the feature prompt. */
void small_study(struct lk_dataset *data, int n_sources, int n_prompts, int n_models);

struct lk_report_options options_of(int64_t n_bootstrap);
struct lk_report *build(struct lk_dataset *data, const struct lk_report_options *options);
/* The table, or the first row that begins so below the heading (NULL: any); the test fails when there is none. */
const struct lk_table *study_table(const struct lk_report *report, const char *id);
const struct lk_table_row *find_row(const struct lk_table *table, const char *heading, const char *first);
void assert_near(double value, double expected, double relative);
