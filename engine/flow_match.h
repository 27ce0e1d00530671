/* Flow matching: noise levels and the time embedding. Computed once on the host in the precision of diffusers'
 * FlowMatchEulerDiscreteScheduler, so that every device sees the same numbers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/status.h"

/* scheduler_config.json. Fields that FLUX.2 does not use are kept for other families. */
struct lk_flow_match_config {
    int num_train_timesteps; /* 1000 */
    bool use_dynamic_shifting;
    double shift;          /* used when shifting is not dynamic */
    double shift_terminal; /* 0: none */
    bool exponential;      /* time_shift_type "exponential", else "linear" */
    int base_image_seq_len, max_image_seq_len;
    double base_shift, max_shift;
};

/* mu of most models: linear in the number of noise tokens, base_shift at base_image_seq_len, max_shift at
 * max_image_seq_len, beyond them too. In double. */
double lk_flow_match_mu(const struct lk_flow_match_config *config, int64_t n_noise_tokens);

/* sigmas [n_steps + 1] (last is 0) and timesteps_1000 [n_steps]. input [n_steps]: levels before the shift; NULL:
 * linspace(1, 1/n, n). mu is used when shifting is dynamic. LK_E_CONFIG_VALUE for n_steps < 1. */
enum lk_code lk_flow_match_sigmas(const struct lk_flow_match_config *config, int n_steps, const float *input, double mu,
                                  float *sigmas, float *timesteps_1000);

/* Sinusoidal embedding of a scalar, [cos | sin] (flip_sin_to_cos), dim even: omega_k = exp(-ln(10000) k / (dim/2)),
 * f32: of 128 the nearest each. torch's own exp differs from machine to machine by one unit in the last place: at 12
 * and 106 on one processor, at 13, 44 and 119 on another. */
void lk_timestep_embedding(float timestep_1000, int dim, float *out);

/* The same of the angles scale * (timestep * omega_k), each product rounded: Qwen-Image is fed timestep / 1000 and
 * multiplies last. */
void lk_timestep_embedding_scaled(float timestep, float scale, int dim, float *out);
