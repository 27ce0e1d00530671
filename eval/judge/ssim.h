/* Structural similarity of two grey pictures. */
#pragma once

#include "engine/base/status.h"

/* Rows y of both pictures, [width] each in 0..1; called for 0 to height - 1 in turn. */
typedef void (*lk_ssim_rows)(void *context, int y, double *a, double *b);

/* Of pictures [height, width], of which 11 rows are held at a time. Wang et al. 2004: Gaussian window with a standard
 * deviation of 1.5 and 11 x 11 pixels, population covariances, K1 0.01, K2 0.03, the mean over all windows that lie
 * within the picture; equal to skimage.metrics.structural_similarity(a, b, gaussian_weights=True,
 * use_sample_covariance=False, data_range=1). LK_E_IMAGE_SIZE: a side below 11; LK_E_NOMEM. */
enum lk_code lk_ssim(lk_ssim_rows rows, void *context, int width, int height, double *out);
