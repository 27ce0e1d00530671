/* Resampling. Replicate b draws from its own stream "boot|b" of the seed, so that results are the same with any number
 * of threads, and two calls with one seed and the same units see the same resamples.
 *
 *     struct lk_resampling how = LK_RESAMPLING;        // seed 42, 1,000 replicates, 95 %
 *     how.clusters = source_of_item;                   // resample the 84 sources, not the items
 *     LK_TRY(lk_bootstrap_mean(values, n, &how, LK_INTERVAL_PERCENTILE, &number));
 *
 * One resample serves many statistics. Where they are functions of sums over units (rates, means, differences of
 * groups), lk_bootstrap_totals counts how often each unit was drawn and hands over the sums; bootstrap_rates.h builds
 * rates by group and disparities on it. lk_bootstrap hands over the drawn units themselves. */
#pragma once

#include "eval/stats/stats.h"

struct lk_resampling {
    uint64_t seed;
    int n_replicates;
    double confidence;
    const int32_t *clusters; /* [n_units]: units of one number are drawn together; NULL: each by itself */
    int n_threads;           /* 0: OpenMP's number */
};
#define LK_RESAMPLING                                                                                                  \
    { 42, 1000, 0.95, NULL, 0 }

enum lk_interval_kind { LK_INTERVAL_PERCENTILE, LK_INTERVAL_BCA, LK_INTERVAL_EXPANDED };

/* Statistics of the drawn units [n], into out [n_statistics]; NaN where one does not exist. Runs in several threads at
 * once: context is only read, scratch is the thread's own. */
typedef void (*lk_statistic)(const int32_t *drawn, size_t n, const void *context, void *scratch, double *out);

/* replicates [n_statistics, n_replicates]. Without clusters n_units draws bounded(n_units); with clusters, numbered in
 * ascending order of their ids, as many draws as there are clusters, each giving all of its units in their order.
 * scratch_bytes of memory for each thread. LK_E_INPUT: no unit, no replicate. */
enum lk_code lk_bootstrap(size_t n_units, const struct lk_resampling *how, lk_statistic statistic, const void *context,
                          size_t scratch_bytes, int n_statistics, double *replicates);

/* Leave-one-out values of the same statistics, [n_statistics, n_left_out], where n_left_out is the number of units or
 * clusters (lk_resampling_units). */
enum lk_code lk_jackknife(size_t n_units, const struct lk_resampling *how, lk_statistic statistic, const void *context,
                          size_t scratch_bytes, int n_statistics, double *values);
/* What is drawn: units, or clusters if there are any. */
enum lk_code lk_resampling_units(size_t n_units, const struct lk_resampling *how, size_t *n);

/* Cells that are summed further: each belongs to at most one group of every grouping. */
struct lk_cell_groups {
    int n_groupings, n_groups; /* groups of all groupings, numbered through */
    const int32_t *of_cell;    /* [n_cells, n_groupings] 0..n_groups-1; -1: in no group of this grouping */
};

/* Units as rows of numbers that are summed by cell. */
struct lk_tally {
    size_t n_units;
    int n_columns, n_cells;
    const double *columns; /* [n_units, n_columns], finite */
    const int32_t *cells;  /* [n_units] 0..n_cells-1; -1: drawn, but summed nowhere; NULL: all in cell 0 */
    const struct lk_cell_groups *groups; /* NULL: the totals are those of the cells */
};
/* totals [n_cells or n_groups, n_columns] of a resample to statistics. */
typedef void (*lk_totals_statistic)(const double *totals, const void *context, void *scratch, double *out);

/* As lk_bootstrap, from the same draws. Whole-number columns are summed exactly; others in an order of our own. */
enum lk_code lk_bootstrap_totals(const struct lk_tally *tally, const struct lk_resampling *how,
                                 lk_totals_statistic statistic, const void *context, size_t scratch_bytes,
                                 int n_statistics, double *replicates);
/* In the time of one pass: from the sums of all, each unit or cluster is taken in its turn. */
enum lk_code lk_jackknife_totals(const struct lk_tally *tally, const struct lk_resampling *how,
                                 lk_totals_statistic statistic, const void *context, size_t scratch_bytes,
                                 int n_statistics, double *values);
/* The sums themselves, [n_cells, n_columns]. */
void lk_tally_totals(const struct lk_tally *tally, double *totals);
/* Those of groups, [n_groups, n_columns], from those of cells. */
void lk_tally_groups(const struct lk_tally *tally, const double *cell_totals, double *totals);

/* number->low and high: percentiles (1 -+ confidence)/2 by linear interpolation of the replicates [n] that exist; both
 * 0 when none does. Returns LK_E_NOMEM only. */
enum lk_code lk_interval_percentile(const double *replicates, size_t n, double confidence, struct lk_number *number);
/* The same without memory of its own; scratch [2, n]. */
void lk_interval_percentile_in(const double *replicates, size_t n, double confidence, double *scratch,
                               struct lk_number *number);
/* The same for n_numbers rows of replicates in parallel; numbers that are undefined stay as they are. */
enum lk_code lk_intervals_percentile(const double *replicates, size_t n, const struct lk_resampling *how,
                                     struct lk_number *numbers, size_t n_numbers);
/* confidence [n_numbers]: each its own; NULL: how->confidence. */
enum lk_code lk_intervals_percentile_each(const double *replicates, size_t n, const struct lk_resampling *how,
                                          const double *confidence, struct lk_number *numbers, size_t n_numbers);

/* Expanded percentiles (Hesterberg 2015): of few clusters the percentile interval is too short. Resamples vary by
 * (n - 1)/n of what they should, and a normal distribution's tails are taken where Student's t belongs. The interval
 * is the percentile interval of a larger confidence, 1 - 2 Phi(-sqrt(n / (n - 1)) t), t the quantile of Student's
 * distribution with df degrees of freedom that leaves (1 - confidence)/2 above it; n: clusters (or units) that are
 * drawn, all together; df: of the groups that the statistic is of, one less than the clusters of a group
 * (lk_expanded_df). With df < 1 it is 1: from the smallest to the largest replicate.
 * n is the number of all that is drawn and not of the group: a group's share of a resample varies, which makes up for
 * the group's own (n - 1)/n except for that of the whole. */
double lk_expanded_confidence(double confidence, double n_drawn, double df);
/* Of a difference of two groups' values: Welch's degrees of freedom for n1 and n2 clusters of equal variance, which of
 * groups of one size is n1 + n2 - 2. Groups that share clusters have those of one group of all their clusters. */
double lk_expanded_df(double n1, double n2);

/* Bias-corrected and accelerated (Efron 1987), from number->value and the leave-one-out values; scipy.stats.bootstrap's
 * formula. No interval, 0 and 0, when all replicates lie on one side of the value or the jackknife does not vary. */
enum lk_code lk_interval_bca(const double *replicates, size_t n, const double *jackknife, size_t n_jackknife,
                             double confidence, struct lk_number *number);

/* Any of them from the replicates of a resampling, expanded with one df less than what was drawn; jackknife [n_drawn]
 * is only read for BCA. */
enum lk_code lk_interval_of_kind(const double *replicates, const struct lk_resampling *how, enum lk_interval_kind kind,
                                 const double *jackknife, size_t n_drawn, struct lk_number *number);

/* All of it for one statistic: its value on the units themselves, and the interval; expanded with one df less than what
 * is drawn. */
enum lk_code lk_bootstrap_number(size_t n_units, const struct lk_resampling *how, lk_statistic statistic,
                                 const void *context, size_t scratch_bytes, enum lk_interval_kind kind,
                                 struct lk_number *out);
/* Of the mean of values [n]. */
enum lk_code lk_bootstrap_mean(const double *values, size_t n, const struct lk_resampling *how,
                               enum lk_interval_kind kind, struct lk_number *out);
/* Of the difference of two groups' means, group 1 - group 0, resampled together; units of other groups, and NaN values,
 * are drawn and count for neither. groups [n]. Expanded by lk_expanded_df. */
enum lk_code lk_bootstrap_difference(const double *values, const int32_t *groups, size_t n,
                                     const struct lk_resampling *how, enum lk_interval_kind kind,
                                     struct lk_number *out);
