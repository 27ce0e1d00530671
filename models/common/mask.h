/* Edits under a mask: what is kept follows the source's own latents through the steps, and the picture gets the
 * source's bytes there. */
#pragma once

#include "models/common/walk.h"

/* A PNG of the source's size, grey, of 1 or 8 bits and without alpha: values from 128 on are edited, the others kept.
 * out: 255 and 0; *n_soft: values that were neither. LK_E_IMAGE and LK_E_IMAGE_SIZE for other files, LK_E_INPUT where
 * nothing is edited or nothing kept.
 */
enum lk_code lk_mask_read(const char *path, const struct lk_image *source, struct lk_image *out, int64_t *n_soft);
/* The same of a file's n bytes; path: what messages call it. */
enum lk_code lk_mask_decode(const char *path, const void *bytes, size_t n, const struct lk_image *source,
                            struct lk_image *out, int64_t *n_soft);
/* SHA-256 of its size and bits. */
void lk_mask_digest(const struct lk_image *mask, char sha256[65]);

/* The first of n steps with a strength (0: 1), as diffusers counts: int(max(n - min(n * strength, n), 0)). */
int lk_mask_first_step(int n, double strength);

/* What share of each latent [height / multiple * width / multiple, channels] is kept, 0 or 1; cells by a sample may be
 * kept in quarters where a token is one cell. */
enum lk_code lk_mask_cells(const struct lk_image *mask, const struct lk_mask_window *window, int cell, int multiple,
                           bool sample, int64_t channels, float *keep);

/* Reads and checks the request's mask, if it has one. LK_E_USAGE for a request that cannot have any. */
enum lk_code lk_mask_begin(struct lk_walk *walk);

/* At the end of `prepare`, when the latents are noise: what lives through the steps, if there is a mask. source
 * [n_noise, C]: the first reference's rows. cell: pixels of a side that are kept or edited together, the VAE's factor
 * or two of it, multiple: a token's side. LK_E_USAGE where the picture has another window than the source. */
enum lk_code lk_mask_prepare(struct lk_walk *walk, const struct lk_tensor *source, const struct lk_mask_window *window,
                             int width, int height, int cell, int multiple);
/* After step i: kept latents are the source's at the next noise level. */
enum lk_code lk_mask_blend(const struct lk_walk *walk, int i);
/* How hard the border is: of all pairs of pixels side by side or one above the other of which one is edited and one
 * kept, the mean difference of their values, 0 to 255. */
double lk_mask_seam(const struct lk_image *picture, const struct lk_image *mask);
/* The result's picture in the source's size, with the source's bytes where they are kept. */
enum lk_code lk_mask_finish(const struct lk_walk *walk);
void lk_mask_end(struct lk_walk *walk);

/* The same of any picture: `made` stands for the window. Edited pixels within `feather` of a kept one are a mixture.
 * alpha [height * width] of the source gets the share of `made` in 255ths; NULL is allowed. */
enum lk_code lk_mask_paste(struct lk_image *made, const struct lk_image *source, const struct lk_image *mask,
                           const struct lk_mask_window *window, int feather, uint8_t *alpha);
