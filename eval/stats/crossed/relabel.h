/* Randomisation tests of groups of people and of kinds of prompts, for people and prompts like these: the studentised
 * difference of each level from the mean of the others, its largest over all outcomes, models and levels.
 *
 *     struct lk_relabelled r = {0};
 *     LK_TRY(lk_relabel_sources(&tables, &race, others, 2, &kind, &(struct lk_relabel){.n = 4999, .seed = 42}, &r));
 *     if (!r.refused) printf("p = %.4f\n", r.p[column * r.n_levels + level]);
 *     lk_relabelled_free(&r);
 *
 * Labels move among sources that are alike in every other attribute; all relabellings are made where there are at most
 * 20,000, else so many are drawn. p is adjusted for all cells at once (Westfall and Young 1993, single step); the
 * statistic is studentised, so that it holds where prompts differ between groups, which relabelling destroys (Chung and
 * Romano 2013). */
#pragma once

#include "eval/stats/crossed/crossed.h"

struct lk_relabel {
    int n;                /* relabellings that are drawn; 0: 4,999 */
    uint64_t seed;        /* of the streams "perm|b" */
    bool prompts_are_all; /* for these prompts and no others */
};

/* Tables [n_sources, n_prompts] of outcomes and models, complete. */
struct lk_crossed_tables {
    int n_sources, n_prompts, n;
    const double *const *z;
};

struct lk_relabelled {
    int n_columns, n_levels;
    double *t, *difference, *p; /* [n_columns, n_levels]; p 1 and t 0 for a level that nothing has */
    double *largest;            /* [n] of each relabelling, ascending */
    size_t n;
    bool exact;          /* all relabellings */
    const char *refused; /* NULL, or why there is no test; all else is then 0 */
};

/* Levels of the sources' factor; `others`: the other attributes. Only those of `kind` that are fitted are passed over.
 */
enum lk_code lk_relabel_sources(const struct lk_crossed_tables *tables, const struct lk_levels *factor,
                                const struct lk_levels *others, int n_others, const struct lk_levels *kind,
                                const struct lk_relabel *how, struct lk_relabelled *out);
/* Kinds of the prompts, over people of these attributes. With `within`, subcategories: labels move among prompts of one
 * of its kinds, and a level is compared with the others of its kind; p is adjusted over all kinds. */
enum lk_code lk_relabel_prompts(const struct lk_crossed_tables *tables, const struct lk_levels *factor,
                                const struct lk_levels *within, const struct lk_levels *attributes, int n_attributes,
                                const struct lk_relabel *how, struct lk_relabelled *out);
/* The t from which on a cell's p is at most alpha; infinite when none can be. */
double lk_relabelled_critical(const struct lk_relabelled *r, double alpha);
void lk_relabelled_free(struct lk_relabelled *r);
