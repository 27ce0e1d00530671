/* RegionE for Step1X-Edit (arXiv 2510.25590; its authors' code, github.com/Peyton-Chen/RegionE): after six steps the
 * tokens that differ from the source are told from those that do not. From then on only they pass through the
 * transformer, with the keys and values that a whole pass has left of all others; where velocities hardly change the
 * last one is used again. Tokens that are not edited go straight to the next step that is whole. */
#pragma once

#include "engine/ops.h"

#define LK_STEP1X_STEPS 28 /* of the model's protocol; the decay is fitted to them */

struct lk_step1x_run;

struct lk_step1x_region {
    bool on;
    bool kept[LK_STEP1X_STEPS]; /* a step that uses the last velocity again */
    bool idle;                  /* this step needs no pass */
    int64_t n_edited;           /* rows that come first from the split to the last merge */
    int32_t *order;             /* host [n_noise]: of which token a row is meanwhile; NULL before the split */
    struct lk_tensor x, latents, velocity, uncond_velocity; /* of all tokens: [n_img, C] and [n_noise, C] */
    struct lk_tensor again;                                 /* [n_noise, C]: the velocity that is used again */
    struct lk_tensor ratios; /* [steps + 2, C]: what it is multiplied by; the last two rows are 0 */
};

/* Refuses requests that it was not made for. */
enum lk_code lk_step1x_region_check(struct lk_step1x_run *r);
/* After the schedule: which steps are what, and what lives through them, into the arena. */
enum lk_code lk_step1x_region_prepare(struct lk_step1x_run *r);
/* Before and after the passes of step i: r->x, walk.latents, walk.velocity and uncond_velocity become those of the
 * tokens that move in this step. */
enum lk_code lk_step1x_region_begin(struct lk_step1x_run *r, int i);
enum lk_code lk_step1x_region_end(struct lk_step1x_run *r, int i);
/* Steps in which all tokens pass through the transformer, and in which those do that are edited. */
void lk_step1x_region_count(const struct lk_step1x_run *r, int *n_whole, int *n_part);
/* Of these passes as if all tokens were edited, for a plan. */
void lk_step1x_region_all(struct lk_step1x_run *r);
