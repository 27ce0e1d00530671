/* The axes of a diffusion transformer's rotary positions, in its config. */
#pragma once

#include "weights/config.h"

/* Field "axes_dims_rope": n even numbers that add up to head_dim. `otherwise` [n]: what an absent field means; NULL: it
 * must be there. Problems are recorded in `json`. */
void lk_read_rope_axes(struct lk_config *json, int *out, size_t n, const int *otherwise, int64_t head_dim);
