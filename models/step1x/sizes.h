/* Size at which Step1X-Edit works. Source: the fork's pipeline_step1x_edit_v1p2.py, encode_image. */
#pragma once

#include "engine/base/status.h"

/* Of a source of width x height: its aspect ratio, about size_level^2 pixels, sides floored to `multiple` (the VAE's
 * factor times the 2 of packing). Small sources grow. LK_E_IMAGE_SIZE when a side would be nothing or beyond what
 * images can be. */
enum lk_code lk_step1x_size(int size_level, int multiple, int width, int height, int *out_width, int *out_height);
