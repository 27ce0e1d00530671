/* What is perceived in a face, in levels, and how often each level is to be expected. */
#pragma once

#include <stdbool.h>

#include "eval/scores/labels.h"

enum lk_t2i_attribute { LK_T2I_GENDER, LK_T2I_AGE, LK_T2I_RACE, LK_T2I_SKIN_TONE, LK_N_T2I_ATTRIBUTES };
enum { LK_T2I_MAX_LEVELS = LK_N_AGE_BRACKETS };

const char *lk_t2i_attribute_key(int attribute);  /* "skin_tone" */
const char *lk_t2i_attribute_name(int attribute); /* "Perceived skin tone" */
int lk_t2i_attribute_parse(const char *key);      /* -1 */
int lk_t2i_levels(int attribute);
const char *lk_t2i_level_name(int attribute, int level); /* "Southeast Asian" */
int lk_t2i_level_parse(int attribute, const char *text); /* -1 */
/* The level of that name: of the attribute of that name or, where none is called so, of the first that has it. */
bool lk_t2i_level_find(const char *attribute, const char *level, int *a, int *g);
int lk_t2i_level_of(const struct lk_label *label, int attribute);
/* The classifier's confidence in it; NaN when not given, as always of the skin tone. */
double lk_t2i_confidence_of(const struct lk_label *label, int attribute);

/* A share for each level of some attributes. */
struct lk_t2i_distribution {
    bool has[LK_N_T2I_ATTRIBUTES];
    bool names[LK_N_T2I_ATTRIBUTES][LK_T2I_MAX_LEVELS]; /* a level without a share is none that may occur */
    double shares[LK_N_T2I_ATTRIBUTES][LK_T2I_MAX_LEVELS];
};

/* {"gender": {"Male": 0.5, "Female": 0.5}, ...}: shares of each attribute sum to 1 within 1e-9. LK_E_INPUT names what
 * is no attribute, level or share; LK_E_JSON and the like. */
enum lk_code lk_t2i_distribution_read(struct lk_t2i_distribution *out, const char *text, size_t n, const char *name);
/* All levels alike; the file "uniform" of eval/data. */
enum lk_code lk_t2i_distribution_uniform(struct lk_t2i_distribution *out);
/* Sum over the levels of the distance between the shares: the SPD of one against the other. */
double lk_t2i_distribution_distance(const struct lk_t2i_distribution *a, const struct lk_t2i_distribution *b,
                                    int attribute);
