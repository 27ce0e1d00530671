#include "models/text/pixtral_image.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/text/qwen2_vl_image.h"

#define SIDE_MAX 65535

/* A number, or an object with height and width that are the same. */
static void read_patch_size(struct lk_config *c, int64_t *patch) {
    struct lk_config *both = NULL;
    *patch = 16;
    if (lk_config_is_object(c, "patch_size")) both = lk_config_object(c, "patch_size", false);
    if (!both) {
        lk_config_int_or(c, "patch_size", patch, 16, 1, 256);
        return;
    }
    lk_config_int(both, "height", patch, 1, 256);
    lk_config_expect_int(both, "width", *patch);
}

/* Keys that the image processors of transformers 4.4x to 5.23 write. */
static void ignore_and_expect(struct lk_config *c) {
    static const char *const ignored[] = {"processor_class",  "default_to_square", "device", "disable_grouping",
                                          "return_tensors",   "crop_size",         "do_pad", "pad_size",
                                          "image_seq_length", "input_data_format"};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) lk_config_ignore(c, ignored[i]);
    if (lk_config_has(c, "do_center_crop")) lk_config_expect_bool(c, "do_center_crop", false);
    lk_config_ignore(c, "do_center_crop");
    lk_image_processor_expect(c, "PixtralImageProcessor");
}

enum lk_code lk_pixtral_processor_read(struct lk_pixtral_processor *out, struct lk_config *json) {
    static const char *const ignored[] = {"processor_class", "image_token", "image_break_token", "image_end_token",
                                          "chat_template"};
    struct lk_pixtral_processor p = {0};
    struct lk_config *c = json;
    int64_t patch, merge = 2, whole_patch = 0, edge = 1024;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) lk_config_ignore(json, ignored[i]);
    lk_config_int_or(json, "spatial_merge_size", &merge, 2, 1, 16);
    if (lk_config_has(json, "image_processor")) {
        c = lk_config_object(json, "image_processor", true);
        lk_config_int_or(json, "patch_size", &whole_patch, 0, 1, 256);
    }
    read_patch_size(c, &patch);
    if (whole_patch && whole_patch != patch)
        lk_config_problem(json, "patch_size", LK_E_CONFIG_VALUE, "expected the image processor's %lld, got %lld",
                          (long long)patch, (long long)whole_patch);
    struct lk_config *size = lk_config_object(c, "size", false);
    if (size) lk_config_int(size, "longest_edge", &edge, 1, SIDE_MAX);
    lk_image_processor_three(c, "image_mean", p.mean, 0);
    lk_image_processor_three(c, "image_std", p.std, 1e-6);
    ignore_and_expect(c);
    p.patch_size = (int)patch;
    p.merge_size = (int)merge;
    p.longest_edge = edge;
    enum lk_code rc = lk_config_close(json);
    if (!rc) *out = p;
    return rc;
}

enum lk_code lk_pixtral_size(const struct lk_pixtral_processor *p, int width, int height, int *out_width,
                             int *out_height) {
    int block = p->patch_size * p->merge_size;
    double edge = (double)p->longest_edge, ratio = fmax(height / edge, width / edge), w = width, h = height;
    if (ratio > 1) {
        h = floor(height / ratio);
        w = floor(width / ratio);
    }
    if (!(w >= 1 && h >= 1))
        return lk_fail(LK_E_IMAGE_SIZE, "image: %dx%d would be resized to less than a pixel; crop it", width, height);
    *out_width = (int)ceil(w / block) * block;
    *out_height = (int)ceil(h / block) * block;
    return LK_OK;
}

static void write_rows(float *to, const struct lk_pixtral_processor *p, const struct lk_image *image) {
    float table[3][256];
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++) table[c][v] = ((float)(v * (1 / 255.0)) - p->mean[c]) / p->std[c];
    for (int top = 0; top < image->height; top += p->patch_size)
        for (int left = 0; left < image->width; left += p->patch_size)
            for (int c = 0; c < 3; c++)
                for (int y = top; y < top + p->patch_size; y++) {
                    const uint8_t *from = image->pixels + ((size_t)y * (size_t)image->width + (size_t)left) * 3 + c;
                    for (int x = 0; x < p->patch_size; x++, from += 3) *to++ = table[c][*from];
                }
}

enum lk_code lk_pixtral_rows(const struct lk_pixtral_processor *p, const struct lk_image *image, float **rows,
                             int *grid_h, int *grid_w) {
    int width, height;
    struct lk_image rgb = {0}, resized = {0};
    *rows = NULL;
    LK_TRY(lk_pixtral_size(p, image->width, image->height, &width, &height));
    LK_TRY(lk_image_on_white(&rgb, image));
    enum lk_code rc = LK_OK;
    if (width != rgb.width || height != rgb.height) {
        rc = lk_image_resize(&resized, &rgb, width, height, LK_RESAMPLE_BICUBIC);
        lk_image_free(&rgb);
        rgb = resized;
    }
    size_t n = (size_t)width * (size_t)height * 3;
    if (!rc && !(*rows = lk_malloc(n * sizeof **rows))) rc = lk_fail(LK_E_NOMEM, "image: no memory for %zu values", n);
    if (!rc) write_rows(*rows, p, &rgb);
    lk_image_free(&rgb);
    *grid_h = height / p->patch_size;
    *grid_w = width / p->patch_size;
    return rc;
}
