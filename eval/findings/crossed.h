/* What a study found, for people and prompts like its own: which groups of people, kinds of prompts and models differ
 * in which outcome, by tests in which sources and prompts are both samples (eval/stats/crossed).
 *
 *     struct lk_claims claims;
 *     LK_TRY(lk_claims_of(&outcomes, &(struct lk_claims_options){.alpha = 0.05, .seed = 42}, &claims));
 *     for (size_t i = 0; i < claims.n; i++)
 *         if (claims.list[i].found) print(&claims.list[i]);
 *     lk_claims_free(&claims);
 *
 * Each family (an attribute of the sources, the kinds of prompts, their subcategories, the models) may be wrong with
 * probability alpha / families; within one the largest of all outcomes, models and levels is judged, by relabelled
 * sources or prompts (max-T) and, of models, by Holm's correction of all pairs. */
#pragma once

#include "eval/design/study.h"
#include "eval/stats/crossed/relabel.h"

/* Outcomes of outputs, 0 to 1, averaged over seeds. Names are the caller's. */
struct lk_outcomes {
    int n_sources, n_prompts, n_models, n_outcomes, n_attributes;
    const double *y; /* [n_outcomes, n_models, n_sources, n_prompts]; NaN: missing */
    struct lk_levels attributes[LK_MAX_ATTRIBUTES], kinds;
    struct lk_levels subcategories; /* each of one kind; of NULL: there are none */
    const char *attribute_names[LK_MAX_ATTRIBUTES];
    const char *const *level_names[LK_MAX_ATTRIBUTES];
    const char *const *kind_names, *const *subcategory_names, *const *model_names, *const *outcome_names,
                                                                                       *const *source_names,
                                                                                           *const *prompt_names;
};

struct lk_claims_options {
    double alpha;
    uint64_t seed;
    int n_relabel;         /* 0: 4,999 */
    bool prompts_are_all;  /* nothing is said of other prompts */
    int n_families_beside; /* that the caller judges at the family's alpha */
    bool ranges;           /* the largest differences too */
    bool apart;            /* models are never taken together: no mean of them, ranges of each */
    bool measured;         /* the numbers of every model and level too, found or not */
};

/* Of prompts, attribute 0 is their kind and 1 their subcategory, which is compared with the others of its kind. */
enum lk_family_of_claims { LK_CLAIM_GROUP, LK_CLAIM_KIND, LK_CLAIM_MODEL };
enum { LK_KINDS, LK_SUBCATEGORIES, LK_PROMPT_FACTORS };

/* A level against the others, or one model against another. */
struct lk_claim {
    enum lk_family_of_claims family;
    int attribute;                             /* of a group or of prompts */
    int outcome, model;                        /* model -1: the mean of all, or a pair of models */
    int level, against;                        /* against -1: the mean of the others */
    double rate, other, difference, low, high; /* the interval at 1 - alpha of the family */
    double t, p, effect_p;                     /* p: adjusted; effect_p: of the contrast alone, never printed */
    double detectable; /* difference that would have been found with 80 % probability; 0: none */
    struct lk_crossed_shares shares;
    double share_seen;       /* of the outputs behind it; rates are adjusted for the others */
    const char *no_interval; /* NULL, or why there is none */
    bool found, adjusted;    /* adjusted: for attributes that are not balanced */
    bool alike;              /* of the mean of models: no model is seen to differ in it */
    bool by_kind;            /* a group's, found: the difference is larger on prompts of `kind` than on the others; */
    int kind;                /* then: */
    double kind_rate, kind_other, rest_rate, rest_other; /* of the level and the others, on that kind and the rest */
    bool too_few; /* people or prompts for an interval by t, or to compare models in it */
    /* Of a pair of models, the one of its outcome that is furthest apart: a bit for each other model that is found to
     * be lower than `level` too, or higher than `against` too, by every convention. */
    uint64_t lower_too, higher_too;
    char lost[160]; /* "not with the primary judge alone (p = 0.210)": conventions that do not find it; "" */
};

/* What one family was asked and why it could not be answered. */
struct lk_claims_family {
    enum lk_family_of_claims family;
    int attribute;
    const char *name;
    char refused[200]; /* "" */
    int n_rare;        /* columns (outcome and model) that are too rare to be asked */
    int n_cells;       /* that were judged together */
    double critical;   /* t from which a cell is found; of groups and kinds */
};

/* What was judged of an outcome, a model and a level. */
struct lk_claim_cell {
    enum lk_family_of_claims family;
    int attribute, outcome, model, level, against;
    double p, difference, t; /* p: adjusted; t: studentised, of groups and kinds */
};

/* Of an outcome in the mean of models, or in each: the largest minus the smallest rate of an attribute's levels, or of
 * two kinds of prompts, at 1 - alpha. */
struct lk_claims_range {
    enum lk_family_of_claims family;
    int attribute, outcome, model; /* model: -1 for the mean, as that of the only one */
    struct lk_crossed_range range;
};

struct lk_claims {
    struct lk_claim *list; /* what was found: groups, kinds, models, each by t; then what stands out most of each other
                              outcome */
    size_t n, n_found, capacity;
    struct lk_claim_cell *cells; /* all */
    size_t n_cells, cells_capacity;
    struct lk_claims_range *ranges; /* where asked for: of each attribute with several levels, of the kinds, and each
                                       known outcome */
    size_t n_ranges, ranges_capacity;
    struct lk_claim *measured; /* where asked for: of each factor but models, each outcome, model and level, rare ones
                                  too; p is 1 where they were too rare to be judged */
    size_t n_measured, measured_capacity;
    struct lk_claims_family families[LK_MAX_ATTRIBUTES + LK_PROMPT_FACTORS + 1];
    int n_families;
    double family_alpha;
    int n_sources, n_prompts; /* that were used */
    struct lk_text notes;     /* a line each: what was left out, and why */
};

/* Other ways to make the same outcomes: y as struct lk_outcomes has it. */
struct lk_convention {
    const char *name; /* "the primary judge alone" */
    const double *y;
};

/* LK_E_NOMEM, LK_E_INPUT for outcomes beyond 0 to 1. Free with lk_claims_free, also after an error. */
enum lk_code lk_claims_of(const struct lk_outcomes *outcomes, const struct lk_claims_options *options,
                          struct lk_claims *out);
void lk_claims_free(struct lk_claims *claims);
/* NULL: none. attribute: of LK_CLAIM_GROUP; model: -1 for the mean. */
const struct lk_crossed_range *lk_claims_range(const struct lk_claims *claims, enum lk_family_of_claims family,
                                               int attribute, int outcome, int model);
/* Judges what was found under each convention: what one does not find says so (`lost`); what turns its sign is found no
 * longer; what one alone finds is a line of the notes. */
enum lk_code lk_claims_conventions(const struct lk_outcomes *outcomes, const struct lk_claims_options *options,
                                   const struct lk_convention *conventions, int n, struct lk_claims *claims);

/* The factor of a claim that is not of models, and the names of its levels. */
const struct lk_levels *lk_claim_levels(const struct lk_outcomes *outcomes, const struct lk_claim *claim,
                                        const char *const **names);
/* "FLUX.2-dev: race change, Indian 41.0%, others 9.0%: 32.0 pp [20.1, 43.9]." */
void lk_claim_sentence(const struct lk_outcomes *outcomes, const struct lk_claim *claim, struct lk_text *out);
/* "32.0 pp [20.1, 43.9]" */
void lk_claim_effect(const struct lk_claim *claim, struct lk_text *out);
/* Of a family in which nothing was found: what would have been, or why nothing is said; nothing where something was. */
void lk_claims_family_sentence(const struct lk_claims *claims, const struct lk_claims_family *family,
                               struct lk_text *out);
