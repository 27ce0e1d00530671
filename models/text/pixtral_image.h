/* Pictures for the Pixtral vision tower: PixtralImageProcessor (transformers) with Pillow's bicubic. */
#pragma once

#include "engine/image/image.h"
#include "weights/config.h"

struct lk_pixtral_processor {
    int patch_size, merge_size; /* sides are multiples of their product */
    int64_t longest_edge;
    float mean[3], std[3]; /* of values in 0..1 */
};

/* preprocessor_config.json, or processor_config.json, which has it as the object "image_processor" and says
 * spatial_merge_size (2 where neither does): the file is given whole either way. Unknown keys are errors. Takes and
 * closes `json`. */
enum lk_code lk_pixtral_processor_read(struct lk_pixtral_processor *out, struct lk_config *json);

/* The longest side at most longest_edge, then both up to multiples of patch_size * merge_size. */
enum lk_code lk_pixtral_size(const struct lk_pixtral_processor *p, int width, int height, int *out_width,
                             int *out_height);

/* Puts an image with alpha on white, resizes it and cuts it into rows [grid_h * grid_w, 3 * patch * patch] (lk_malloc),
 * order of values: channel, y, x; rows row by row. */
enum lk_code lk_pixtral_rows(const struct lk_pixtral_processor *p, const struct lk_image *image, float **rows,
                             int *grid_h, int *grid_w);
