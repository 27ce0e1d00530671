/* A fair instruction (Fair Diffusion): which attribute's concepts a prompt is pushed towards or away from, and with
 * which level of it, so that a prompt's pictures have each level as often as the target says.
 *
 *     {"version": 1,
 *      "defaults": {"scale": 4, "threshold": 0.95, "warmup": 5, "cooldown": null,
 *                   "momentum_scale": 0.5, "momentum_beta": 0.6},
 *      "attributes": {"gender": {"target": {"male": 0.5, "female": 0.5},
 *                                "concepts": {"male": "male person", "female": "female person"},
 *                                "decrease": "others"}},
 *      "rules": [{"match": ["a thief"], "attributes": ["gender"]},
 *                {"match": "*", "attributes": ["gender"], "unless": ["man", "woman"]}]}
 *
 * An attribute's "label", {"woman": "Female"}, says what a classifier calls a level that has another name. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/store.h"
#include "engine/base/status.h"

enum {
    LK_FAIR_MAX_CONCEPTS = 8,
    LK_FAIR_MAX_ATTRIBUTES = 4,
    LK_FAIR_MAX_RULES = 64,
    LK_FAIR_MAX_PHRASES = 64,
    LK_FAIR_MAX_NAME = 30
};

struct lk_fair_attribute {
    const char *name;
    bool decrease; /* the levels that are not chosen */
    int n;
    const char *levels[LK_FAIR_MAX_CONCEPTS], *concepts[LK_FAIR_MAX_CONCEPTS];
    const char *labels[LK_FAIR_MAX_CONCEPTS]; /* what a classifier calls the level; its own name unless told */
    double shares[LK_FAIR_MAX_CONCEPTS];
    const char *towards[LK_FAIR_MAX_CONCEPTS], *away[LK_FAIR_MAX_CONCEPTS]; /* as lk_request.concepts has them */
};

struct lk_fair_rule {
    bool any;
    const char *match[LK_FAIR_MAX_PHRASES], *unless[LK_FAIR_MAX_PHRASES];
    int n_match, n_unless;
    int attributes[LK_FAIR_MAX_ATTRIBUTES], n_attributes;
};

struct lk_fair {
    struct lk_store store;
    double scale, threshold, momentum_scale, momentum_beta;
    int warmup, cooldown; /* -1: never */
    struct lk_fair_attribute attributes[LK_FAIR_MAX_ATTRIBUTES];
    int n_attributes;
    struct lk_fair_rule rules[LK_FAIR_MAX_RULES];
    int n_rules;
    char sha256[65];
};

/* The instruction that the program has: gender, half and half, but for prompts that name one. */
extern const char lk_fair_gender[];

/* Strictly: LK_E_JSON and the like, LK_E_CONFIG_VALUE, with what was expected. Free with lk_fair_free, also after an
 * error. name is for messages. */
enum lk_code lk_fair_read(struct lk_fair *fair, const char *text, size_t n, const char *name);
void lk_fair_free(struct lk_fair *fair);

/* rule: the first that hits, -1 for none. A phrase hits where its words stand in the prompt in sequence as whole words,
 * in either case, without a leading article. LK_E_INPUT: the prompt is not UTF-8. */
enum lk_code lk_fair_rule(const struct lk_fair *fair, const char *prompt, int *rule);

/* assign: "quota" (the counts nearest to the target, shuffled), "draw" (each by itself), or a level that all get. */
enum lk_code lk_fair_check_assign(const struct lk_fair *fair, const char *assign);
/* levels[k]: that of seed k of n, in rising order. They depend on study_seed, prompt_id and attribute alone. */
void lk_fair_deal(const struct lk_fair *fair, int attribute, const char *assign, uint64_t study_seed,
                  const char *prompt_id, int32_t *levels, size_t n);

/* Concepts of a choice of levels, one for each attribute of the rule; how many. */
int lk_fair_concepts(const struct lk_fair *fair, int rule, const int8_t *levels,
                     const char *concepts[LK_FAIR_MAX_CONCEPTS]);
