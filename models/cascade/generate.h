/* A picture through stages C, B and A from one generator of noise. Source: diffusers pipeline_stable_cascade_prior.py,
 * pipeline_stable_cascade.py. */
#pragma once

#include "engine/rng.h"
#include "models/cascade/paella.h"
#include "models/cascade/unet.h"

#define LK_CASCADE_GRAIN 128 /* sides of pictures are multiples of it: then all levels are exact */

/* What one prompt is told: text [n_text, text_dim] and pooled [pooled_dim], f32. */
struct lk_cascade_prompt {
    const float *text, *pooled;
};

struct lk_cascade_request {
    int width, height;
    int prior_steps, decoder_steps;
    double prior_guidance, decoder_guidance; /* up to 1: the prompt alone */
    struct lk_cascade_prompt positive, negative;
    int64_t n_text;
    struct lk_rng *rng; /* draws noise of C, one more at each of its steps, then the same of B */
};

struct lk_cascade_models {
    const struct lk_cascade_unet *prior, *decoder;
    const struct lk_paella *vqgan;
};

/* picture: [height, width, 3] f32 on the host, clamped to [0, 1]; not written on the plan device, on which the same
 * call counts. Traces "prior.I.latents", "decoder.I.latents" and "decoded". LK_E_USAGE for sizes and steps. */
enum lk_code lk_cascade_generate(struct lk_device *dev, const struct lk_cascade_models *models, enum lk_dtype compute,
                                 const struct lk_cascade_request *request, float *picture);
