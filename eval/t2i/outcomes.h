/* Who is depicted, as `t2i metrics` has it, by units of the prompt table that a probe is correlated with: its roles or
 * its prompts. */
#pragma once

#include "eval/stats/stats.h"
#include "eval/t2i/prompts.h"

#define LK_T2I_CORRELATIONAL "correlational: says nothing about causes"

struct lk_t2i_outcomes {
    const struct lk_t2i_prompts *prompts;
    const int32_t *unit_of; /* [prompts->n]: -1 for none */
    size_t n_units;
    struct lk_names names; /* "MODEL\tATTRIBUTE\tRR GROUP", "MODEL\tATTRIBUTE\tSPD" */
    struct lk_t2i_outcome {
        double *sum; /* [n_units], over the unit's prompts */
        int64_t *n;
    } * list;
    size_t capacity;
    struct lk_store store;
};

/* A table of `t2i metrics` by prompt, t2i_shares.csv or t2i_spd.csv, whose base arm is read; a prompt without a unit is
 * passed over. LK_E_INPUT for another table and for a prompt that is not in the prompt table. */
enum lk_code lk_t2i_outcomes_read(struct lk_t2i_outcomes *o, const char *text, size_t n, const char *name);
/* Spearman over the units of x [n_units] (NaN: left out) with outcome i, a unit's being the mean of its prompts'.
 * scratch [2 n_units]. */
enum lk_code lk_t2i_outcomes_correlate(const struct lk_t2i_outcomes *o, size_t i, const double *x, double *scratch,
                                       struct lk_test *test);
/* Their p by Benjamini and Hochberg into adjusted [n], NaN where there is none. */
enum lk_code lk_t2i_adjust(const struct lk_test *tests, size_t n, double *adjusted);
void lk_t2i_outcomes_free(struct lk_t2i_outcomes *o);

/* Cells behind a comma. A number that is none: empty. */
void lk_t2i_cell_number(struct lk_text *out, double value);
void lk_t2i_cell_text(struct lk_text *out, const char *cell);
/* model, attribute, outcome of outcome i. */
void lk_t2i_cells_outcome(struct lk_text *out, const struct lk_t2i_outcomes *o, size_t i);
/* n, rho, p, adjusted_p, undefined, note, and the end of the line. */
void lk_t2i_cells_test(struct lk_text *out, const struct lk_test *test, double adjusted);
