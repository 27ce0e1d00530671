/* Studies of known truth for the tests of findings: latent normal outcomes with people, prompts, models and their
 * interactions as random effects; in one outcome of one model one race may be raised. */
#pragma once

#include "engine/rng.h"
#include "eval/findings/crossed.h"

enum { RACES = 7, MAX_S = 84, MAX_P = 20, MAX_M = 10, OUTCOMES = 5 };

struct claims_design {
    int per_race, per_kind, n_models;
    double planted; /* on the latent scale, whose standard deviation is 1.45: race 3 of model 1 in outcome 2 */
    bool in_a_kind; /* on prompts of kind 1 alone */
};

/* Of the study drawn last; a test may change it before it asks. */
extern struct claims_study {
    struct lk_rng rng;
    double y[OUTCOMES * MAX_M * MAX_S * MAX_P];
    int32_t race[MAX_S], gender[MAX_S], age[MAX_S], kinds[MAX_P];
} claims_study;

/* rates [OUTCOMES] of the whole population. From claims_study.rng. */
struct lk_outcomes claims_draw(const struct claims_design *design, const double *rates);
