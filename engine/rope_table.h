/* Rotary position tables, one value per pair of channels, computed on the host once per job. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Multi-axis positions of diffusion transformers (diffusers' Flux2PosEmbed). Axis a turns axes_dims[a] / 2 pairs with
 * frequencies theta^(-2j / axes_dims[a]); frequencies, angles, cosines and sines are double, rounded to float once.
 * axes_dims are even. Positions may be negative or fractional. */
void lk_rope_table(const float *ids /* [n, n_axes] */, int64_t n, const int *axes_dims, int n_axes, double theta,
                   float *cos_out /* [n, sum(axes_dims) / 2] */, float *sin_out);

/* The same with every step in float: frequencies 1 / theta^(2j / axes_dims[a]), angles, cosines and sines. Qwen-Image's
 * QwenEmbedRope, and the vision tower of Qwen2.5-VL (two axes of head_dim / 2). */
void lk_rope_table_f32(const int32_t *ids /* [n, n_axes] */, int64_t n, const int *axes_dims, int n_axes, double theta,
                       float *cos_out /* [n, sum(axes_dims) / 2] */, float *sin_out);

/* A language model's rotation with a position per axis (transformers' M-RoPE): frequency j is that of lk_rope_table_lm
 * and belongs to the axis in whose section it lies: sections[a] frequencies each, in order, head_dim / 2 together. */
void lk_rope_table_mrope(const int32_t *ids /* [n, n_axes] */, int64_t n, const int *sections, int n_axes, int head_dim,
                         double theta, bool round_bf16, float *cos_out /* [n, head_dim / 2] */, float *sin_out);

/* Positions position0, position0 + 1, ... of a language model (transformers' default RoPE), every step in float as
 * there: inverse frequencies 1 / theta^(2i / head_dim), angles, cosines and sines. round_bf16 rounds the results to
 * bf16, as a bf16 model does. */
void lk_rope_table_lm(int64_t position0, int64_t n, int head_dim, double theta, bool round_bf16,
                      float *cos_out /* [n, head_dim / 2] */, float *sin_out);

/* The places of a grid of height x width, row by row (transformers' axial RoPE of Pixtral): of the head_dim / 2
 * frequencies of lk_rope_table_lm the even ones turn with the row, the odd ones with the column; first all of the row,
 * then all of the column. */
void lk_rope_table_grid(int height, int width, int head_dim, double theta, bool round_bf16,
                        float *cos_out /* [height * width, head_dim / 2] */, float *sin_out);
