/* Step caches: in some steps blocks of the transformer are left out, and what they added in the last step that was
 * computed is added again. A treatment of a model, never a default: another picture, whose recipe has the steps that
 * were computed. Each branch of a job decides for itself, by its own rows alone, so that a decision depends on no other
 * job, thread or place of a weight.
 *
 * fbcache (diffusers first_block_cache.py): what the first block adds to the image is compared with what it added then;
 * one gate over all blocks behind it. dbcache (cache-dit): what the first F blocks of a list add; the blocks behind
 * them but for the last B are left out; double-stream and single-stream blocks are two lists, with a gate each.
 * teacache (TeaCache4FLUX): how far the first block's modulated input has moved since the step before, through a
 * polynomial, summed up; no block is computed. */
#pragma once

#include "models/common/mmdit.h"
#include "models/common/walk.h"

enum lk_cache_method { LK_CACHE_NONE, LK_CACHE_FIRST_BLOCK, LK_CACHE_DUAL_BLOCK, LK_CACHE_TEA };
enum { LK_CACHE_POLY = 8, LK_CACHE_GATES = 2 };

struct lk_cache_rule {
    enum lk_cache_method method;
    double threshold;
    int first, behind;          /* blocks of a list that always run: in front, at its end */
    int warmup, interval;       /* of the first steps each `interval`th is computed */
    int most, row;              /* steps that are left out at most, in all and one after the other; 0: any */
    bool last;                  /* the last step is computed */
    double poly[LK_CACHE_POLY]; /* the highest power first */
    int n_poly;
    bool listed, steps[LK_MAX_STEPS]; /* these are computed, whatever was compared */
};

/* "region" (no method), or "METHOD,KEY=VALUE...": what the table in cache_rule.c has. LK_E_USAGE that begins with
 * `flag`. */
enum lk_code lk_accel_read(const char *flag, const char *text, struct lk_cache_rule *out);
/* lk_parameter.read */
enum lk_code lk_accel_check(const char *flag, const char *text, char **own);

/* A gate of one branch of a job. Those of a branch lie side by side. */
struct lk_cache {
    struct lk_cache_rule rule;
    int n_steps, list;         /* of the gate's blocks: 0 the first, 1 that of single-stream blocks */
    bool alone;                /* it is over all lists */
    struct lk_tensor previous; /* what was compared, [rows, dim]: of the last computed step, of tea of the last one */
    struct lk_tensor residual; /* [rows, dim]: what the blocks added in the last computed step */
    struct lk_tensor apart;    /* f32 [rows, 2] */
    float *host;               /* the same */
    const bool *replayed;      /* [n_steps]: decisions of another run; NULL */
    bool any;                  /* a step was computed */
    int n_skipped, in_row;     /* steps left out: in all, since the last computed one */
    double sum;                /* of tea */
    bool computed[LK_MAX_STEPS];
    double distance[LK_MAX_STEPS]; /* NaN: not asked for */
};

/* Of what a gate needs room for. */
struct lk_cache_sizes {
    int64_t n_txt, n_img, n_noise, dim;
    int64_t n_blocks[LK_CACHE_GATES]; /* of each list; 0: there is one list */
};

/* Reads the request's accel. LK_E_USAGE for one that the model does not have. */
enum lk_code lk_cache_begin_walk(struct lk_walk *walk, const struct lk_pipeline *pipeline);
/* In `prepare`: what lives through the steps, of branch `branch` of n_branches. */
enum lk_code lk_cache_prepare(struct lk_walk *walk, int branch, int n_branches, const struct lk_cache_sizes *sizes);
/* The first gate; NULL: every step is computed. */
struct lk_cache *lk_walk_cache(const struct lk_walk *walk, int branch);
void lk_cache_record(const struct lk_walk *walk);
void lk_cache_end_walk(struct lk_walk *walk);

/* Of a pass, when z has the rows that the blocks take. first: the modulation of the target's rows before block 0. */
enum lk_code lk_cache_begin(struct lk_mmdit *p, struct lk_cache *cache, const struct lk_modulation *first);
/* When `done` of the list's n_blocks have run: sets p->skips, whether the pass leaves out those that follow. */
enum lk_code lk_cache_between(struct lk_mmdit *p, int list, int64_t done, int64_t n_blocks, bool last_list);
