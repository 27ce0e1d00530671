/* Sizes of Qwen-Image-Edit's pictures: all are scaled to an area, whatever size they have. Source: diffusers
 * pipeline_qwenimage_edit_plus.py. */
#pragma once

#include <stdint.h>

#include "engine/base/status.h"

#define LK_QWEN_EDIT_CONDITION_AREA (384 * 384)   /* of a reference as the vision tower sees it */
#define LK_QWEN_EDIT_VAE_AREA       (1024 * 1024) /* of a reference as the VAE sees it, and of the output */

/* calculate_dimensions: multiples of 32 with about this area and the aspect ratio of width x height.
 * LK_E_IMAGE_SIZE when a side would be nothing or beyond what images can be. */
enum lk_code lk_qwen_edit_dimensions(int64_t area, int width, int height, int *out_width, int *out_height);

/* Size of the output: the requested sides, those that are 0 as lk_qwen_edit_dimensions gives for the last reference,
 * floored to `multiple` (the VAE's factor times the 2 of packing). LK_E_IMAGE_SIZE. */
enum lk_code lk_qwen_edit_output_size(int64_t area, int last_width, int last_height, int requested_width,
                                      int requested_height, int multiple, int *out_width, int *out_height);
