/* Contrasts of a table sources x prompts in which both are samples: of people and of prompts like these.
 *
 *     struct lk_residual_maker people = {0}, prompts = {0};
 *     LK_TRY(lk_residual_maker(n_sources, attributes, n_attributes, &people));
 *     LK_TRY(lk_residual_maker(n_prompts, &kind, 1, &prompts));
 *     struct lk_crossed result;
 *     LK_TRY(lk_crossed_contrast(&table, w, v, &people, &prompts, &result));
 *     if (!result.no_test) printf("%g, p = %.3f\n", result.estimate, result.p);
 *
 * The estimate is w'Zv; its variance is V_S + V_P - V_SP with Satterthwaite's degrees of freedom, never below the
 * larger of V_S and V_P: the two-way cluster sandwich (Cameron, Gelbach and Miller 2011) of parts corrected as CR2 is
 * (Bell and McCaffrey 2002). A result that does not exist says why in words and is 0, never NaN. LK_E_INPUT: a NaN or
 * infinite number or a level outside its factor; LK_E_NOMEM. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "eval/stats/stats.h"

/* One attribute of the sources, or the kinds of the prompts. Levels that nothing has are allowed. */
struct lk_levels {
    const int32_t *of; /* [n], 0 <= of[i] < count */
    int count;
};

/* M = I - H, H the projection on an intercept and the main effects of factors; columns that the ones before them
 * determine are left out. */
struct lk_residual_maker {
    int n, rank;
    double *q;         /* [rank, n] orthonormal: M = I - q'q */
    double *left;      /* [n] 1 - h, the diagonal of M */
    double *inflation; /* [n] 1 / (1 - h), 0 where nothing is left of a row: it is alone in a level */
};

/* Free with lk_residual_maker_free, also after an error. */
enum lk_code lk_residual_maker(int n, const struct lk_levels *factors, int n_factors, struct lk_residual_maker *out);
void lk_residual_maker_free(struct lk_residual_maker *maker);
/* x [n, n_columns] becomes M x. */
void lk_residuals(const struct lk_residual_maker *maker, double *x, int n_columns);

/* w [n] of the additive model's contrast [factors[0].count] of the first factor's levels, adjusted for the others:
 * X (X'X)^-1 c; without others, or where all are balanced, the difference of means. *undefined: NULL, or why there is
 * none (w is then 0). */
enum lk_code lk_contrast_weights(int n, const struct lk_levels *factors, int n_factors, const double *contrast,
                                 double *w, const char **undefined);
/* 1 / n_level for each that has the level; level -1: 1 / n for all. All 0 when none has it. */
void lk_mean_weights(int n, const int32_t *of, int level, double *w);
/* contrast [count]: 1 for level a, -1 for level b; b = -1: -1 / (others that something has) for each other level. */
void lk_level_contrast(int n, const struct lk_levels *factor, int a, int b, double *contrast);

struct lk_crossed_table {
    int n_sources, n_prompts;
    const double *z;      /* [n_sources, n_prompts], finite: lk_crossed_fill for cells that are missing */
    double share_seen;    /* of the cells, the others were filled: V is divided by it; 0 as 1 */
    bool prompts_are_all; /* no sample of prompts: V is V_S alone */
};

struct lk_crossed {
    double estimate, variance, df;
    double source, prompt, cell;          /* V_S, V_P, V_SP */
    double source_df, prompt_df, cell_df; /* theirs */
    double p;                             /* two-sided, of t = estimate / sqrt(variance) on max(df, 1) */
    const char *undefined;                /* no variance, so neither test nor interval */
    const char *no_test, *no_interval;    /* NULL, or why p, or an interval, does not exist */
};

/* w [n_sources], v [n_prompts]. */
enum lk_code lk_crossed_contrast(const struct lk_crossed_table *table, const double *w, const double *v,
                                 const struct lk_residual_maker *people, const struct lk_residual_maker *prompts,
                                 struct lk_crossed *out);
/* estimate -+ t sqrt(variance). False, and both the estimate, where result->no_interval. */
bool lk_crossed_interval(const struct lk_crossed *result, double confidence, double *low, double *high);
/* What the variance comes from: which people, which prompts, single outputs; 0 without variance. Their sum is 1 unless
 * the repair of a variance that is not positive was needed. */
struct lk_crossed_shares {
    double people, prompts, outputs;
};
struct lk_crossed_shares lk_crossed_shares(const struct lk_crossed *result);
/* V_S + V_P - V_SP with its df, repaired as above; parts below 1e-20 and those without df are left out. */
void lk_crossed_combine(struct lk_crossed *result);

/* z [n_sources, n_prompts]: sum over models of u [n_models] times the mean over seeds of y [n_sources, n_prompts,
 * n_models, n_seeds], NaN: missing. A cell is NaN where a model with u != 0 has no seed. *within (NULL: not wanted):
 * the variance between seeds of one cell, pooled; 0 where no cell has two. */
void lk_crossed_cells(const double *y, int n_sources, int n_prompts, int n_models, int n_seeds, const double *u,
                      double *z, double *within);
/* The additive least-squares fit of sources and prompts (Yates 1933) into the NaN cells of z, in place; *share_seen: of
 * all cells, 0 when none was seen (z is then left alone). */
enum lk_code lk_crossed_fill(double *z, int n_sources, int n_prompts, double *share_seen);
/* Rows or columns to leave out by name before filling: more than half of their cells are NaN. */
void lk_crossed_sparse(const double *z, int n_sources, int n_prompts, bool *source, bool *prompt);

enum { LK_CROSSED_LEVELS = 128 };

/* Shares of groups of sources, 0 to 1, that stand near 0 and 1 too: Wilson's interval with the number of independent
 * outputs that would leave the same variance, and t. A group in which fewer than five sources have the outcome, or lack
 * it in some output (`few`), borrows the design effect of all groups. */
struct lk_crossed_rate {
    double rate, low, high, effective_n;
    bool few;
    const char *undefined; /* NULL, or why there is none */
    struct lk_crossed contrast;
};

/* rates [factor->count]; others [factor->count]: of all other levels together, each level counting alike; NULL: not
 * wanted. The table holds shares; n_outputs [n_sources]: that stand behind each row. At most LK_CROSSED_LEVELS levels.
 */
enum lk_code lk_crossed_rates(const struct lk_crossed_table *table, const struct lk_levels *factor,
                              const struct lk_residual_maker *prompts, const int64_t *n_outputs, double confidence,
                              struct lk_crossed_rate *rates, struct lk_crossed_rate *others);
/* Of a's rate minus b's, from their intervals (Newcombe 1998; Zou and Donner 2008), taken as uncorrelated. For groups
 * that are few; the t interval serves others. */
void lk_crossed_mover(const struct lk_crossed_rate *a, const struct lk_crossed_rate *b, double *low, double *high);

/* What the rates of a factor's levels are wrong by. */
struct lk_crossed_errors {
    int count;
    double *rate;   /* [count]; NaN: no source has the level */
    double *source; /* [count]: variance of the rate that comes from which people */
    double *shared; /* [count, count]: covariance that comes from which prompts, around the mean of levels; 0 where the
                       prompts are all there are */
    double kept;    /* of it, what single outputs do not explain: 0 to 1 */
    struct lk_crossed pooled; /* mean squares of all groups together, with their degrees of freedom */
    const char *undefined;    /* NULL, or why there is none: nothing else is set */
};
enum lk_code lk_crossed_errors_of(const struct lk_crossed_table *table, const struct lk_levels *factor,
                                  const struct lk_residual_maker *prompts, struct lk_crossed_errors *out);
void lk_crossed_errors_free(struct lk_crossed_errors *errors);

/* The largest minus the smallest rate of the factor's levels, in the interval of range_interval.h: 600 draws of those
 * errors for the low end, each pair's contrast for the high one. */
struct lk_crossed_range {
    struct lk_number number;
    int highest, lowest; /* levels; -1 where several are alike */
    double high, low;    /* their rates */
};
enum lk_code lk_crossed_range(const struct lk_crossed_table *table, const struct lk_levels *factor,
                              const struct lk_residual_maker *people, const struct lk_residual_maker *prompts,
                              double confidence, uint64_t seed, struct lk_crossed_range *out);

/* The smallest difference that the contrast would have found with this power: the variance at the raised rate counts.
 * raised: share of the squared source weights on the raised side (1/2 for two alike). rate: of the lower side; 0 or 1:
 * the variance as it is. */
double lk_crossed_detectable(const struct lk_crossed *contrast, double raised, double rate, double alpha, double power);

/* What raters add to the variance of the mean over pairs' answers: *variance (not below 0) with *df, from pairs that
 * were answered more than once. */
enum lk_code lk_rater_part(const double *answers, const int32_t *pairs, const int32_t *raters, size_t n, int n_pairs,
                           int n_raters, double *variance, double *df);
