/* Inside of `likeness stats`: a table read for one test, and what its tests share. All memory and all texts belong to
 * struct stats and are freed with it, so the tests return at any point. */
#pragma once

#include <math.h>
#include <stdint.h>

#include "eval/stats/resampling/bootstrap.h"
#include "eval/stats/tests/multiple.h"
#include "engine/base/store.h"
#include "tools/cli/core/options.h"
#include "tools/cli/stats/stats_print.h"

struct stats_column {
    const char *name;   /* NULL: not asked for */
    int index;          /* in the file, from 0 */
    const char **cells; /* [n_rows] */
};

struct stats {
    const struct cli_stats_options *o;
    int n_threads; /* 0: all */
    uint64_t seed;
    double alpha;
    const char *test; /* as typed */
    const char *file;
    struct stats_out out;
    size_t n_rows, n_allocated;
    size_t *lines; /* [n_rows] where each row begins */
    struct stats_column value, by, x, y, item, rater, cluster;
    struct stats_column *columns;
    int n_columns;
    size_t missing; /* rows, or cells of a table of raters, that a test left out */
    struct lk_store texts;
    struct stats_block *blocks;
};

/* Levels of one or several columns, told apart and put in order: by value when all are numbers, else by bytes. */
struct stats_levels {
    int32_t *codes; /* [n_columns, n_rows] 0..n-1; -1: missing */
    const char **names;
    double *values; /* [n]; NULL unless numeric */
    int n;
    bool numeric;
};

/* Ratings as a matrix, whichever way the file holds them. */
struct stats_matrix {
    double *values; /* [n_units, n_raters], NaN where there is none */
    size_t n_units;
    int n_raters;
    struct stats_levels raters; /* their names; of a wide table only names and n are set */
};

/* Zeroed memory that lives until stats_free; NULL only after the message was set. */
void *stats_alloc(struct stats *s, size_t count, size_t size);
void stats_free(struct stats *s);
/* Reads the columns that the options name. */
enum lk_code stats_read(struct stats *s);

/* LK_E_INPUT with "FILE: line 7, column 2 ("score"): ...". */
enum lk_code stats_fail(const struct stats *s, const struct stats_column *column, size_t row, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* LK_E_USAGE with "kappa: ...". */
enum lk_code stats_misused(const struct stats *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Empty, NA or nan in any letter case. */
bool stats_is_missing(const char *cell);
/* Of each row of a column, NaN where missing. */
enum lk_code stats_numbers(struct stats *s, const struct stats_column *column, double **out);
enum lk_code stats_levels(struct stats *s, const struct stats_column *columns, int n_columns, struct stats_levels *out);
/* From --columns, or --item, --value and `rater`. as_labels: values are the labels' numbers, and need not be numbers
 * themselves. Counts missing. */
enum lk_code stats_matrix(struct stats *s, const struct stats_column *rater, bool as_labels, struct stats_matrix *out,
                          struct stats_levels *labels);

/* Numbers by group, group after group; rows with a missing value or group are counted as missing. */
struct stats_groups {
    struct stats_levels levels;
    double *values; /* [sum of n] */
    size_t *n;      /* [levels.n] */
    size_t total;
};
enum lk_code stats_groups(struct stats *s, struct stats_groups *out);

enum lk_alternative stats_alternative(const struct stats *s);
double stats_confidence(const struct stats *s);
/* LK_E_INPUT when --exact asked for what the test has not. */
enum lk_code stats_check_exact(const struct stats *s, const struct lk_test *test);
enum lk_adjustment stats_adjustment(const struct stats *s);
struct lk_resampling stats_resampling(const struct stats *s);
/* "FIRST against SECOND" in memory of s. */
enum lk_code stats_join(struct stats *s, const char **out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The block of one test: statistic, df, p, effect, n, missing, method. `of` says what was tested. */
void stats_print_test(struct stats *s, const char *of, const struct lk_test *test);
void stats_print_interval(struct stats *s, const char *key, const char *label, const struct lk_number *number);
void stats_print_missing(struct stats *s);

enum lk_code stats_kappa(struct stats *s);
enum lk_code stats_correlation(struct stats *s);
enum lk_code stats_wilcoxon(struct stats *s);
enum lk_code stats_chi2(struct stats *s);
enum lk_code stats_fisher(struct stats *s);
enum lk_code stats_mcnemar(struct stats *s);
enum lk_code stats_kruskal(struct stats *s);
enum lk_code stats_dunn(struct stats *s);
enum lk_code stats_mann_whitney(struct stats *s);
enum lk_code stats_describe(struct stats *s);
enum lk_code stats_proportions(struct stats *s);
enum lk_code stats_bootstrap(struct stats *s);
enum lk_code stats_fleiss(struct stats *s);
enum lk_code stats_alpha(struct stats *s);
enum lk_code stats_icc(struct stats *s);
enum lk_code stats_friedman(struct stats *s);
enum lk_code stats_adjust(struct stats *s);
enum lk_code stats_sample_size(struct stats *s);
