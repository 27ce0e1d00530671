/* First-block cache: where the first block adds to the image nearly what it added in the last computed step, the other
 * blocks are left out and what they added then is added again. A treatment of a model, never a default: another
 * picture, whose recipe has the steps that were computed. Each branch of a job decides for itself, by its own rows
 * alone, so that a decision depends on no other job, thread or place of a weight. Source: diffusers
 * first_block_cache.py. */
#pragma once

#include "models/common/mmdit.h"
#include "models/common/walk.h"

struct lk_cache_rule {
    bool on;
    double threshold; /* computed where the distance is above it, or no number */
    int warmup;       /* steps at the beginning that are computed */
    int row;          /* steps that are left out one after the other at most; 0: any */
    bool last;        /* the last step is computed */
};

/* "region" (not on), or "fbcache,threshold=0.1[,warmup=N][,row=N][,last=on|off]". LK_E_USAGE that begins with `flag`.
 */
enum lk_code lk_accel_read(const char *flag, const char *text, struct lk_cache_rule *out);
/* lk_parameter.read */
enum lk_code lk_accel_check(const char *flag, const char *text, char **own);

/* Of one branch of a job. */
struct lk_cache {
    struct lk_cache_rule rule;
    int n_steps;
    struct lk_tensor previous; /* [n_img, dim]: what the first block added in the last computed step */
    struct lk_tensor residual; /* [n_noise, dim]: what the others added then */
    struct lk_tensor apart;    /* f32 [n_img, 2] */
    float *host;               /* the same */
    bool any;                  /* a step was computed */
    int in_row;                /* steps left out since */
    bool computed[LK_MAX_STEPS];
    double distance[LK_MAX_STEPS]; /* NaN: not asked for */
};

/* Reads the request's accel. LK_E_USAGE for one that the model does not have. */
enum lk_code lk_cache_begin_walk(struct lk_walk *walk, const struct lk_pipeline *pipeline);
/* In `prepare`: what lives through the steps of n_branches. */
enum lk_code lk_cache_prepare(struct lk_walk *walk, int n_branches, int64_t n_img, int64_t n_noise, int64_t dim,
                              int64_t n_blocks);
/* NULL: every step is computed. */
struct lk_cache *lk_walk_cache(const struct lk_walk *walk, int branch);
void lk_cache_record(const struct lk_walk *walk);
void lk_cache_end_walk(struct lk_walk *walk);

/* Before the first block of a pass; after it, whether the others are left out; after the last block of those that were
 * not. n_noise: the target's rows, the first of the image's. */
enum lk_code lk_cache_begin(struct lk_mmdit *p, struct lk_cache *cache);
enum lk_code lk_cache_decide(struct lk_mmdit *p, int64_t n_noise, bool *skip);
enum lk_code lk_cache_keep(const struct lk_mmdit *p, int64_t n_noise);
