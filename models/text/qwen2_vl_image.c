#include "models/text/qwen2_vl_image.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/image/resize_torch.h"

#define MAX_ASPECT 200
#define SIDE_MAX   65535
#define PIXELS_MAX 178956970 /* the largest image that may be read */

#define BICUBIC    3 /* PIL.Image.Resampling */

void lk_image_processor_expect(struct lk_config *c, const char *name) {
    lk_config_expect_bool(c, "do_resize", true);
    lk_config_expect_bool(c, "do_rescale", true);
    lk_config_expect_bool(c, "do_normalize", true);
    lk_config_expect_bool(c, "do_convert_rgb", true);
    lk_config_expect_int(c, "resample", BICUBIC);
    lk_config_expect_string(c, "data_format", "channels_first");
    double rescale = 1 / 255.0;
    lk_config_number_or(c, "rescale_factor", &rescale, 1 / 255.0, 0, 1);
    if (rescale != 1 / 255.0)
        lk_config_problem(c, "rescale_factor", LK_E_CONFIG_VALUE, "expected 1/255, got %.17g", rescale);
    char fast[64];
    snprintf(fast, sizeof fast, "%sFast", name);
    /* The name without "Fast" stood for Pillow's resampling before transformers 4.54, and for this one since. */
    lk_config_expect_one_of(c, "image_processor_type", (const char *const[]){name, fast, NULL});
}

/* Keys that the image processors of transformers 4.4x to 5.23 write. */
static void ignore_and_expect(struct lk_config *c) {
    static const char *const ignored[] = {"processor_class", "default_to_square", "device", "disable_grouping",
                                          "return_tensors"};
    static const char *const null[] = {"crop_size", "input_data_format", "pad_size", "image_seq_length"};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) lk_config_ignore(c, ignored[i]);
    for (size_t i = 0; i < sizeof null / sizeof *null; i++) lk_config_expect_null(c, null[i]);
    bool no;
    lk_config_bool_or(c, "do_center_crop", &no, false);
    if (no) lk_config_problem(c, "do_center_crop", LK_E_CONFIG_VALUE, "expected false, got true");
    lk_config_bool_or(c, "do_pad", &no, false);
    if (no) lk_config_problem(c, "do_pad", LK_E_CONFIG_VALUE, "expected false, got true");
    lk_image_processor_expect(c, "Qwen2VLImageProcessor");
}

void lk_image_processor_three(struct lk_config *c, const char *key, float out[3], double min) {
    double value[3];
    size_t n = 0;
    lk_config_numbers(c, key, value, 3, &n);
    for (size_t i = 0; i < n; i++) {
        if (value[i] >= min && value[i] <= 1000)
            out[i] = (float)value[i];
        else
            lk_config_problem(c, key, LK_E_CONFIG_VALUE, "expected numbers from %g to 1000, got %g", min, value[i]);
    }
    if (n != 3) lk_config_problem(c, key, LK_E_CONFIG_VALUE, "expected 3 numbers, got %zu", n);
}

/* min_pixels and max_pixels come before the object "size". */
static void read_pixels(struct lk_qwen2_vl_processor *p, struct lk_config *c) {
    struct lk_config *size = lk_config_object(c, "size", false);
    int64_t min = 56 * 56, max = 28 * 28 * 1280; /* the class's own, used when the file says nothing */
    if (size) {
        lk_config_int_or(size, "shortest_edge", &min, 0, 1, PIXELS_MAX);
        lk_config_int_or(size, "longest_edge", &max, 0, 1, PIXELS_MAX);
        lk_config_ignore(size, "min_pixels"); /* doubles of the keys outside, without a meaning of their own */
        lk_config_ignore(size, "max_pixels");
    }
    lk_config_int_or(c, "min_pixels", &p->min_pixels, min, 1, PIXELS_MAX);
    lk_config_int_or(c, "max_pixels", &p->max_pixels, max, 1, PIXELS_MAX);
    if (!p->min_pixels || !p->max_pixels)
        lk_config_problem(c, "size", LK_E_CONFIG_KEY,
                          "expected shortest_edge and longest_edge in it, or min_pixels and max_pixels beside it");
    else if (p->min_pixels > p->max_pixels)
        lk_config_problem(c, "min_pixels", LK_E_CONFIG_VALUE, "expected at most max_pixels = %lld, got %lld",
                          (long long)p->max_pixels, (long long)p->min_pixels);
}

enum lk_code lk_qwen2_vl_processor_read(struct lk_qwen2_vl_processor *out, struct lk_config *json) {
    struct lk_config *c = json;
    struct lk_qwen2_vl_processor p = {0};
    if (lk_config_has(json, "image_processor")) {
        c = lk_config_object(json, "image_processor", true);
        lk_config_ignore(json, "processor_class");
        lk_config_ignore(json, "video_processor");
    }
    int64_t patch = 14, temporal = 2, merge = 2;
    lk_config_int_or(c, "patch_size", &patch, 14, 1, 256);
    lk_config_int_or(c, "temporal_patch_size", &temporal, 2, 1, 16);
    lk_config_int_or(c, "merge_size", &merge, 2, 1, 16);
    p.patch_size = (int)patch;
    p.temporal_patch_size = (int)temporal;
    p.merge_size = (int)merge;
    read_pixels(&p, c);
    lk_image_processor_three(c, "image_mean", p.mean, 0);
    lk_image_processor_three(c, "image_std", p.std, 1e-6);
    ignore_and_expect(c);
    enum lk_code rc = lk_config_close(json);
    if (!rc) *out = p;
    return rc;
}

enum lk_code lk_qwen2_vl_size(const struct lk_qwen2_vl_processor *p, int width, int height, int *out_width,
                              int *out_height) {
    if (width < 1 || height < 1)
        return lk_fail(LK_E_IMAGE_SIZE, "image: expected at least 1 pixel a side, got %dx%d", width, height);
    double area = (double)width * height, factor = (double)p->patch_size * p->merge_size;
    if (fmax(width, height) / fmin(width, height) > MAX_ASPECT)
        return lk_fail(LK_E_IMAGE_SIZE, "image: expected an aspect ratio of at most %d, got %dx%d; crop it", MAX_ASPECT,
                       width, height);
    double w = rint(width / factor) * factor, h = rint(height / factor) * factor; /* halves to even, as Python */
    if (w * h > (double)p->max_pixels) {
        double beta = sqrt(area / (double)p->max_pixels);
        w = fmax(factor, floor(width / beta / factor) * factor);
        h = fmax(factor, floor(height / beta / factor) * factor);
    } else if (w * h < (double)p->min_pixels) {
        double beta = sqrt((double)p->min_pixels / area);
        w = ceil(width * beta / factor) * factor;
        h = ceil(height * beta / factor) * factor;
    }
    if (!(w >= factor && h >= factor && w <= SIDE_MAX && h <= SIDE_MAX && w * h <= PIXELS_MAX))
        return lk_fail(LK_E_IMAGE_SIZE, "image: %dx%d would be resized to %.0fx%.0f pixels; resize it first", width,
                       height, w, h);
    *out_width = (int)w;
    *out_height = (int)h;
    return LK_OK;
}

/* One row: `pixels` is the patch's first; table[c][v] is what a byte of channel c is worth. */
static float *write_patch(float *to, const struct lk_qwen2_vl_processor *p, const uint8_t *pixels, size_t image_row,
                          float table[3][256]) {
    for (int c = 0; c < 3; c++) {
        float *frame = to;
        for (int y = 0; y < p->patch_size; y++) {
            const uint8_t *from = pixels + (size_t)y * image_row + c;
            for (int x = 0; x < p->patch_size; x++, from += 3) *to++ = table[c][*from];
        }
        size_t n = (size_t)(to - frame);
        for (int t = 1; t < p->temporal_patch_size; t++, to += n) memcpy(to, frame, n * sizeof *to);
    }
    return to;
}

static void write_rows(float *to, const struct lk_qwen2_vl_processor *p, const struct lk_image *image) {
    float table[3][256];
    for (int c = 0; c < 3; c++) {
        float mean = p->mean[c] * 255.0f, std = p->std[c] * 255.0f; /* as the reference fuses the division by 255 */
        for (int v = 0; v < 256; v++) table[c][v] = ((float)v - mean) / std;
    }
    size_t image_row = (size_t)image->width * 3;
    int merge = p->merge_size, block = merge * p->patch_size;
    for (int top = 0; top < image->height; top += block)
        for (int left = 0; left < image->width; left += block)
            for (int i = 0; i < merge * merge; i++) {
                size_t y = (size_t)(top + i / merge * p->patch_size), x = (size_t)(left + i % merge * p->patch_size);
                to = write_patch(to, p, image->pixels + y * image_row + x * 3, image_row, table);
            }
}

/* RGB as convert("RGB") has it, whatever kind of picture the file was; then resized. */
static enum lk_code resize_rgb(struct lk_image *out, const struct lk_image *image, int width, int height) {
    struct lk_image rgb;
    if (image->channels == 3 && !image->nearest_only) return lk_image_resize_torch_bicubic(out, image, width, height);
    LK_TRY(lk_image_to_rgb(&rgb, image));
    enum lk_code rc = lk_image_resize_torch_bicubic(out, &rgb, width, height);
    lk_image_free(&rgb);
    return rc;
}

enum lk_code lk_qwen2_vl_rows(const struct lk_qwen2_vl_processor *p, const struct lk_image *image, float **rows,
                              int *grid_h, int *grid_w) {
    int width = 0, height = 0;
    struct lk_image resized = {0};
    *rows = NULL;
    LK_TRY(lk_qwen2_vl_size(p, image->width, image->height, &width, &height));
    LK_TRY(resize_rgb(&resized, image, width, height));
    size_t n = (size_t)width * (size_t)height * 3 * (size_t)p->temporal_patch_size;
    float *made = lk_malloc(n * sizeof *made);
    if (made) write_rows(made, p, &resized);
    lk_image_free(&resized);
    if (!made) return lk_fail(LK_E_NOMEM, "image: no memory for %zu values", n);
    *rows = made;
    *grid_h = height / p->patch_size;
    *grid_w = width / p->patch_size;
    return LK_OK;
}
