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
    size_t n_refused; /* records of the file that are none */
    size_t *lines;    /* [n_rows] where each row begins */
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
/* As lk_is_missing. */
bool stats_is_missing(const char *cell);
/* Of each row of a column, NaN where missing. */
enum lk_code stats_numbers(struct stats *s, const struct stats_column *column, double **out);
enum lk_code stats_levels(struct stats *s, const struct stats_column *columns, int n_columns, struct stats_levels *out);
/* Prints the labels that a statistic of labels told apart, and warns of two that people would take for one: "Yes",
 * "yes".
 */
enum lk_code stats_print_labels(struct stats *s, const char *key, const char *label, const struct stats_levels *levels);
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

/* Rows of --columns that have a group and all numbers; the others are counted as missing. */
struct stats_features {
    struct stats_levels levels;
    double *features; /* [n, n_columns] */
    int32_t *groups;  /* [n] */
    size_t *lines;    /* [n] of the file */
    size_t n;
};
enum lk_code stats_features(struct stats *s, struct stats_features *out);

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

/* The options of stats, each with its bit. Two are report's too and hold its defaults: those two pass where a test does
 * not look at them. */
#define STATS_OPTIONS(X)                                                                                               \
    X(VALUE, "value", o->value)                                                                                        \
    X(BY, "by", o->by)                                                                                                 \
    X(X_COLUMN, "x", o->x)                                                                                             \
    X(Y_COLUMN, "y", o->y)                                                                                             \
    X(ITEM, "item", o->item)                                                                                           \
    X(RATER, "rater", o->rater)                                                                                        \
    X(CLUSTER, "cluster", o->cluster)                                                                                  \
    X(COLUMNS, "columns", o->columns)                                                                                  \
    X(WEIGHTS, "weights", o->weights)                                                                                  \
    X(LEVEL, "level", o->level)                                                                                        \
    X(ALTERNATIVE, "alternative", o->alternative)                                                                      \
    X(ZERO_METHOD, "zero-method", o->zero_method)                                                                      \
    X(METHOD, "method", o->method)                                                                                     \
    X(INTERVAL, "interval", o->interval)                                                                               \
    X(EXACT, "exact", o->exact)                                                                                        \
    X(CORRECTION, "correction", o->correction)                                                                         \
    X(NO_CORRECTION, "no-correction", o->no_correction)                                                                \
    X(RESAMPLES, "resamples", o->resamples > 0)                                                                        \
    X(STUDY_SEED, "study-seed", a->report.study_seed != DEFAULT_SEED)                                                  \
    X(NULL_RATE, "null", o->null >= 0)                                                                                 \
    X(P1, "p1", o->p1 >= 0)                                                                                            \
    X(P2, "p2", o->p2 >= 0)                                                                                            \
    X(ALPHA, "alpha", a->report.alpha != DEFAULT_ALPHA)                                                                \
    X(POWER, "power", o->power > 0)

#define PLACE(bit, name, given) AT_##bit,
enum { STATS_OPTIONS(PLACE) N_OPTIONS };
#define BIT(bit, name, given) bit = 1 << AT_##bit,
enum { STATS_OPTIONS(BIT) };
enum {
    PAIR = X_COLUMN | Y_COLUMN,
    GROUPED = VALUE | BY,
    CORRECTIONS = CORRECTION | NO_CORRECTION,
    RESAMPLED = RESAMPLES | STUDY_SEED | ALPHA,
    NO_FILE = 1 << N_OPTIONS, /* a test that reads none */
};

struct stats_test {
    const char *name, *summary;
    enum lk_code (*run)(struct stats *);
    unsigned needs, takes; /* COLUMNS taken may stand in for all that is needed */
};
/* What each file computes; a test without a name ends them. */
extern const struct stats_test stats_pair_tests[], stats_group_tests[], stats_rater_tests[], stats_rate_tests[];
