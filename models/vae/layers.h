/* What the autoencoders share: convolutions that keep the size, and those that halve or double it. */
#pragma once

#include "models/common/layers.h"

/* Channels in the middle of an autoencoder: one head of attention, as wide as the op takes. */
#define LK_VAE_MAX_ATTENTION 512

/* y [H, W, C_out] = conv(x [H, W, C_in]) + residual (or NULL): zeros around, as many as half the kernel is wide.
 * group_sums of y, or NULL (ops.h). */
enum lk_code lk_vae_conv(struct lk_device *dev, const struct lk_layer *layer, const struct lk_tensor *x,
                         const struct lk_tensor *y, const struct lk_tensor *residual,
                         const struct lk_tensor *group_sums);

/* Halves the resolution (3x3, stride 2, zeros on the right and the bottom only) or doubles it (nearest neighbour, then
 * 3x3): y [H/2, W/2, C] or [2 H, 2 W, C].
 * group_sums of y, or NULL. */
enum lk_code lk_vae_sample(struct lk_device *dev, const struct lk_layer *layer, const struct lk_tensor *x,
                           const struct lk_tensor *y, bool down, const struct lk_tensor *group_sums);
