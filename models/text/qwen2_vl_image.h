/* Pictures for the vision tower of Qwen2-VL and Qwen2.5-VL: Qwen2VLImageProcessor (transformers), whose resize is
 * torchvision's antialiased bicubic on bytes. */
#pragma once

#include "engine/image/image.h"
#include "weights/config.h"

struct lk_qwen2_vl_processor {
    int patch_size, temporal_patch_size, merge_size;
    int64_t min_pixels, max_pixels;
    float mean[3], std[3]; /* of values in 0..1 */
};

/* processor/preprocessor_config.json, or the object "image_processor" of the processor_config.json that transformers 5
 * writes instead: the file is given whole either way. The area's limits are min_pixels and max_pixels
 * or, for what is not there, size.shortest_edge and size.longest_edge. Unknown keys are errors. Takes and closes
 * `json`.
 */
enum lk_code lk_qwen2_vl_processor_read(struct lk_qwen2_vl_processor *out, struct lk_config *json);

/* smart_resize: both sides multiples of patch_size * merge_size, area within [min_pixels, max_pixels]. LK_E_IMAGE_SIZE
 * for an aspect ratio above 200. */
enum lk_code lk_qwen2_vl_size(const struct lk_qwen2_vl_processor *p, int width, int height, int *out_width,
                              int *out_height);

/* Converts any image to RGB, resizes it and cuts it into rows [grid_h * grid_w, 3 * temporal * patch * patch]
 * (lk_malloc), order of values: channel, time (the frame repeated), y, x; order of rows: merge-block row, merge-block
 * column, inner row, inner column. */
enum lk_code lk_qwen2_vl_rows(const struct lk_qwen2_vl_processor *p, const struct lk_image *image, float **rows,
                              int *grid_h, int *grid_w);

/* What image processors of transformers have in common: they resize bicubically, scale by 1/255, normalise and convert
 * to RGB. name: the class, with or without "Fast". */
void lk_image_processor_expect(struct lk_config *config, const char *name);
/* Three numbers from min to 1000. */
void lk_image_processor_three(struct lk_config *config, const char *key, float out[3], double min);
