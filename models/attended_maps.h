/* Heat maps of words out of cross-attention (Tang et al. 2022, "What the DAAM"). Made by models/attended.c. */
#pragma once

#include "models/attended.h"

struct lk_heat_maps;

/* token_words [n_tokens]: the word of each token, from 0. */
enum lk_code lk_heat_maps_new(struct lk_heat_maps **out, const int *token_words, int n_tokens);
/* Adds what the n rows of the picture give a token at one step. cell: the number of the layer's head among all. */
enum lk_code lk_heat_maps_add(struct lk_heat_maps *maps, int cell, int token, const float *weights, int64_t n);
/* attended->maps, for latents of height x width. */
enum lk_code lk_heat_maps_finish(const struct lk_heat_maps *maps, int height, int width, struct lk_attended *attended);
void lk_heat_maps_free(struct lk_heat_maps *maps); /* NULL is allowed */

/* out [height, width] from in [h, w]: torch's bicubic interpolation (a = -0.75, corners not aligned, no antialiasing).
 */
void lk_bicubic(const double *in, int h, int w, double *out, int height, int width);
