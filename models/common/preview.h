/* What the picture would be if the sampler's rest were known already, small and rough: the latents along their velocity
 * to the end, each as one pixel by a linear map. Costs a download a step and changes no bit of the result. */
#pragma once

#include "models/common/walk.h"

/* RGB of a latent [C], from what is within -1 and 1: sum of factors times values, and a bias. The maps for the latents
 * of the three families' VAEs (FLUX.2's, Qwen-Image's, FLUX.1's) are published in ComfyUI's latent_formats.py. */
struct lk_preview_map {
    int n; /* latent channels */
    float factors[32][3], bias[3];
};
/* Of an lk_family_bit; NULL: none is known. */
const struct lk_preview_map *lk_preview_map_of(unsigned family_bit);

/* image: [2 rows, 2 columns, 3], made. x, v: latents and velocity [rows * columns, 4 channels], tokens of 2x2 latents,
 * channel by channel; sigma: how much noise is left in x. */
void lk_preview_draw(const struct lk_preview_map *map, struct lk_image *image, int channels, const float *x,
                     const float *v, float sigma);

/* After step i: tells the request's preview function, where there is one and the map is known. */
enum lk_code lk_preview_step(const struct lk_walk *walk, int i);
