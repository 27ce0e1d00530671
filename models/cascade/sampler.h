/* DDPMWuerstchenScheduler: ancestral sampling, whose every step draws noise, the last one in vain. Source: diffusers
 * scheduling_ddpm_wuerstchen.py. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/status.h"

/* times[n + 1] fall from 1 to 0. LK_E_USAGE beyond 1 to 1000 steps, and with bf16 beyond 250: there the reference takes
 * the wrong next time; key: the parameter of n_steps. */
enum lk_code lk_cascade_times(const char *key, int n_steps, bool bf16, float *times);
/* alpha of the cosine schedule, clamped to 0.0001 .. 0.9999. */
float lk_cascade_alpha(float time);
/* x[n] to the next time, 0 at the end. bf16: x is rounded, and the time as the reference's. */
struct lk_cascade_step {
    float *x;
    const float *prediction, *noise;
    int64_t n;
    float time, next;
    bool bf16;
};
void lk_cascade_advance(const struct lk_cascade_step *step);
/* Guidance by interpolation: y[i] = lerp(uncond, cond, scale), rounded once; y may be either. */
void lk_cascade_guide(const float *cond, const float *uncond, float scale, bool bf16, int64_t n, float *y);
