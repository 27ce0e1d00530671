/* Inside of findings. Private to eval/findings. */
#pragma once

#include "eval/findings/crossed.h"

/* An outcome of a model, or of the mean of all (model -1), without what was left out. */
struct column {
    int outcome, model;
    double *z; /* [n_sources, n_prompts], complete */
    double share_seen;
    int n_with, n_without; /* sources that have the outcome; that lack it in some output */
};

struct asked {
    const struct lk_outcomes *outcomes;
    const struct lk_claims_options *options;
    struct lk_claims *claims;
    int n_sources, n_prompts, n_columns;
    int32_t *source, *prompt; /* numbers among the outcomes' */
    int32_t *levels;          /* [n_attributes, n_sources] */
    struct lk_levels attributes[LK_MAX_ATTRIBUTES], of_prompts[LK_PROMPT_FACTORS];
    struct column *columns;
    bool *model; /* [n_models]: that have enough outputs */
    int n_models;
    int64_t *n_outputs;                                  /* [n_sources] behind a row of one model */
    struct lk_residual_maker people;                     /* of all attributes */
    struct lk_residual_maker prompts[LK_PROMPT_FACTORS]; /* of the kinds, of the subcategories */
    double *w, *v;                                       /* scratch: [n_sources], [n_prompts] */
    struct lk_crossed_rate *rates;                       /* of an attribute's levels in a column, the last one asked */
    const struct column *rates_column;
    int rates_attribute;
};

enum {
    LK_RARE = 5,         /* sources that must have an outcome, and as many that lack it */
    LK_LEAST_PROMPTS = 5 /* of a kind, for what differs by kind */
};

/* The levels of a family's factor, of sources or of prompts, and how many of these there are. */
const struct lk_levels *lk_claim_factor(const struct asked *a, const struct lk_claims_family *family, int *n);
/* Whether a level is compared with another: that of a subcategory only with the others of its kind. */
bool lk_claim_rivals(const struct asked *a, const struct lk_claims_family *family, int level, int other);
/* How many levels that something has a level is compared with; -1: nothing has it. */
int lk_claim_n_rivals(const struct asked *a, const struct lk_claims_family *family, int level);
/* The residuals of the prompts under a family's question. */
const struct lk_residual_maker *lk_claim_prompts(const struct asked *a, const struct lk_claims_family *family);

enum lk_code lk_claim_groups(struct asked *a, struct lk_claims_family *family);
enum lk_code lk_claim_kinds(struct asked *a, struct lk_claims_family *family);
enum lk_code lk_claim_models(struct asked *a, struct lk_claims_family *family);

/* Level of the family against the others (or `against`) in a column: fills all of claim but t, p and found; of models,
 * whose column is their difference, but their rates too. */
enum lk_code lk_claim_measure(struct asked *a, const struct lk_claims_family *family, const struct column *column,
                              struct lk_claim *claim);
/* All levels of a family's attribute in all columns, with the p of those that were judged. */
enum lk_code lk_claim_measure_all(struct asked *a, const struct lk_claims_family *family);
/* Of what was found from claims->list[first] on: on which kind of prompts it is larger, if one is seen to differ. */
enum lk_code lk_claim_by_kind(struct asked *a, const struct lk_claims_family *family, size_t first);
/* a->w and a->v of a group's contrast over all prompts; *why: none. */
enum lk_code lk_claim_weigh(struct asked *a, int attribute, const struct lk_claim *claim, const char **why);
/* The mean of z where w v is above 0, or below. */
double lk_claim_rate(const struct asked *a, const double *z, bool above);
/* Why a contrast has no interval: its design leaves too little. NULL: it has enough. */
const char *lk_claim_too_few(const struct asked *a, const struct lk_crossed *r);
enum lk_code lk_claim_judged(struct lk_claims *claims, const struct lk_claim_cell *cell);
enum lk_code lk_claim_add(struct lk_claims *claims, const struct lk_claim *claim);
const struct column *lk_claim_column(const struct asked *a, int outcome, int model);
int lk_levels_used(const struct lk_levels *levels, int n, int *least); /* *least: the smallest number of one */
