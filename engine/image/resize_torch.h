/* Resizing with the numbers of torch's antialiased interpolation, beside Pillow's in image.h. */
#pragma once

#include "engine/image/image.h"

/* torchvision's resize(BICUBIC, antialias) of a uint8 tensor on the CPU, to the byte, whatever the
 * instruction set and memory format. RGB images. */
enum lk_code lk_image_resize_torch_bicubic(struct lk_image *out, const struct lk_image *in, int width, int height);

/* torch.nn.functional.interpolate(mode="bilinear", antialias=True) of x = pixels / 255 in f32, then 2 x - 1: out f32
 * [height, width, 3]. The bits of torch 2.15 with AVX2 or AVX-512; only where width is 1 that gives another picture (it
 * repeats the first row). */
enum lk_code lk_image_resize_torch_bilinear_f32(float *out, const struct lk_image *rgb, int width, int height);
