/* The samplers of Stable Diffusion: which times and noise levels a run passes, and the step from one to the next as a
 * sum of scaled tensors. Coefficients are made in double from f32 tables that are those of torch bit by bit; a step
 * sums in f32 and rounds what is stored once, also where the reference rounds op by op in bf16. Source: diffusers
 * scheduling_{pndm,ddim,euler_discrete,euler_ancestral_discrete,dpmsolver_multistep,unipc_multistep}.py. */
#pragma once

#include "engine/ops.h"
#include "weights/config.h"

#define LK_SAMPLER_TRAIN_STEPS 1000
#define LK_SAMPLER_MOST_CALLS  (LK_SAMPLER_TRAIN_STEPS + 1)
#define LK_SAMPLER_KEPT        5 /* tensors that a sampler keeps from step to step at most */

enum lk_sampler_kind {
    LK_SAMPLER_PNDM,
    LK_SAMPLER_DDIM,
    LK_SAMPLER_EULER,
    LK_SAMPLER_EULER_ANCESTRAL,
    LK_SAMPLER_DPM, /* DPM++ 2M */
    LK_SAMPLER_UNIPC,
    LK_SAMPLER_KINDS
};

enum lk_sampler_spacing { LK_SPACING_NONE, LK_SPACING_LEADING, LK_SPACING_LINSPACE, LK_SPACING_TRAILING };

/* scheduler_config.json, of whichever of the six classes. */
struct lk_sampler_config {
    enum lk_sampler_kind kind;
    enum lk_sampler_spacing spacing; /* NONE: the default of the sampler that runs */
    double beta_start, beta_end;
    bool scaled_linear; /* betas are squares of evenly spaced numbers, else evenly spaced themselves */
    int steps_offset;
    bool set_alpha_to_one, karras, v_prediction, zero_snr;
    bool skip_prk_steps, clip_sample; /* of PNDM and DDIM: only true, only false is implemented */
};

/* Unknown keys and values that are not implemented are errors. Takes and closes `json`. */
enum lk_code lk_sampler_config_read(struct lk_sampler_config *out, struct lk_config *json);

/* "pndm|ddim|euler|euler-karras|euler-a|dpm++|dpm++-karras|unipc|unipc-karras": another sampler on the same config, as
 * diffusers' from_config has it. */
#define LK_SAMPLER_NAMES "pndm|ddim|euler|euler-karras|euler-a|dpm++|dpm++-karras|unipc|unipc-karras"
enum lk_code lk_sampler_choose(struct lk_sampler_config *config, const char *name);
const char *lk_sampler_name(const struct lk_sampler_config *config);

/* A run of n_steps. */
struct lk_sampler {
    struct lk_sampler_config config;
    int n_steps, n_calls; /* calls of the network: one more with PNDM */
    double eta;           /* DDIM's */
    double init_noise_sigma;
    float timesteps[LK_SAMPLER_MOST_CALLS]; /* of each call */
    float sigmas[LK_SAMPLER_MOST_CALLS + 1];
    float alphas_cumprod[LK_SAMPLER_TRAIN_STEPS];
};

/* LK_E_USAGE for numbers of steps that the reference cannot do either, LK_E_CONFIG_VALUE for what is not implemented.
 */
enum lk_code lk_sampler_begin(struct lk_sampler *s, const struct lk_sampler_config *config, int n_steps, double eta);

int lk_sampler_n_kept(const struct lk_sampler *s);
bool lk_sampler_draws(const struct lk_sampler *s); /* noise in every step */

/* y = x as the network is fed at call i. */
enum lk_code lk_sampler_scale(struct lk_device *dev, const struct lk_sampler *s, int i, const struct lk_tensor *x,
                              const struct lk_tensor *y);

/* The end of call i: x [n, C] in place. `prediction` may be overwritten. kept: lk_sampler_n_kept tensors [n, C] that
 * live through the run. noise: [n, C] where the sampler draws, else NULL. */
struct lk_sampler_step {
    const struct lk_tensor *x, *prediction, *noise;
    const struct lk_tensor *kept;
};
enum lk_code lk_sampler_advance(struct lk_device *dev, const struct lk_sampler *s, int i,
                                const struct lk_sampler_step *step);
