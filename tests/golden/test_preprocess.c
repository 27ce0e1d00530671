/* Pictures before the models of Qwen-Image-Edit and Step1X-Edit against diffusers, transformers and the fork of
 * Step1X-Edit, to the bit: golden/data/preprocess.txt, made by golden/generate_preprocess.py, which also says what its
 * lines hold. */
#include "tests/common/picture.h"
#include "tests/common/test.h"

#include "engine/base/alloc.h"
#include "engine/device.h"
#include "engine/ops.h"
#include "engine/image/resize_torch.h"
#include "models/common/kept.h"
#include "models/qwen_edit/sizes.h"
#include "models/step1x/sizes.h"
#include "models/text/qwen2_vl_image.h"

#define HASH_START 0x811c9dc5u

static struct lk_qwen2_vl_processor processor(int64_t min_pixels, int64_t max_pixels) {
    return (struct lk_qwen2_vl_processor){.patch_size = 14,
                                          .temporal_patch_size = 2,
                                          .merge_size = 2,
                                          .min_pixels = min_pixels,
                                          .max_pixels = max_pixels,
                                          .mean = {0.48145466f, 0.4578275f, 0.40821073f},
                                          .std = {0.26862954f, 0.26130258f, 0.27577711f}};
}

/* --- sizes --- */

static void size_by(const char *rule, const int64_t parameters[2], int width, int height, int out[2]) {
    struct lk_qwen2_vl_processor p = processor(parameters[0], parameters[1]);
    enum lk_code rc;
    if (!strcmp(rule, "smart"))
        rc = lk_qwen2_vl_size(&p, width, height, &out[0], &out[1]);
    else if (!strcmp(rule, "dimensions"))
        rc = lk_qwen_edit_dimensions(parameters[0], width, height, &out[0], &out[1]);
    else
        rc = lk_step1x_size((int)parameters[0], 16, width, height, &out[0], &out[1]);
    if (!rc) return;
    assert_int_equal(rc, LK_E_IMAGE_SIZE);
    out[0] = out[1] = 0;
}

static int below(uint64_t *state, int n) { return (int)(test_random(state) % (uint64_t)n); }

/* random_sides() of the generator. */
static void check_sizes(const char *line) {
    char rule[16];
    long long first, second = 0;
    unsigned expected, hash = HASH_START;
    int block;
    if (sscanf(line, "sizes %15s %lld,%lld %d %u", rule, &first, &second, &block, &expected) != 5)
        assert_int_equal(sscanf(line, "sizes %15s %lld %d %u", rule, &first, &block, &expected), 4);
    uint64_t state = (uint64_t)block;
    for (int i = 0; i < 1000; i++) {
        int bits = 4 + below(&state, 11), size[2];
        int width = 1 + below(&state, 1 << bits), range = below(&state, 2) ? 1 << (4 + below(&state, 11)) : 1 << bits;
        int height = 1 + below(&state, range);
        size_by(rule, (int64_t[2]){first, second}, width, height, size);
        for (int k = 0; k < 2; k++) hash = (hash ^ (uint32_t)size[k]) * 0x01000193u;
    }
    if (hash != expected) fail_msg("%s: hash %u", line, hash);
}

/* --- pictures --- */

static void check_image(const struct lk_image *image, int width, int height, const char *expected, const char *line) {
    if (image->width != width || image->height != height || image->channels != 3)
        fail_msg("%s: got %d x %d x %d", line, image->width, image->height, image->channels);
    test_digest_is(image->pixels, (size_t)width * (size_t)height * 3, expected, line);
}

static void check_rows(const struct lk_image *rgb, int64_t min_pixels, int64_t max_pixels, int grid_h, int grid_w,
                       const char *expected, const char *line) {
    struct lk_qwen2_vl_processor p = processor(min_pixels, max_pixels);
    float *rows;
    int h, w;
    assert_ok(lk_qwen2_vl_rows(&p, rgb, &rows, &h, &w));
    if (h != grid_h || w != grid_w) fail_msg("%s: grid %d x %d", line, h, w);
    test_digest_is(rows, (size_t)h * (size_t)w * 3 * 2 * 14 * 14 * sizeof *rows, expected, line);
    lk_free(rows);
}

/* The VAE's input in the reference's order, channels first. */
static void check_vae_pixels(struct lk_device *dev, const struct lk_image *rgb, enum lk_dtype dtype,
                             const char *expected, const char *line) {
    size_t n = (size_t)rgb->width * (size_t)rgb->height, size = lk_dtype_size(dtype);
    char *made = malloc(n * 3 * size), *planar = malloc(n * 3 * size);
    struct lk_tensor y = LK_TENSOR(made, dtype, rgb->height, rgb->width, 3);
    struct lk_tensor x = LK_TENSOR(rgb->pixels, LK_U8, rgb->height, rgb->width, 3);
    assert_ok(lk_pixels(dev, &(struct lk_pixels){&y, &x}));
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++) memcpy(planar + (c * n + i) * size, made + (i * 3 + c) * size, size);
    test_digest_is(planar, n * 3 * size, expected, line);
    free(made);
    free(planar);
}

static void check_qwen(struct lk_device *dev, const char *line) {
    int kind, seed, width, height, cw, ch, gh, gw, vw, vh, size[2];
    long long condition_area, vae_area, min, max;
    char condition_digest[17], rows_digest[17], f32_digest[17], bf16_digest[17];
    assert_int_equal(sscanf(line, "qwen %d %d %d %d %lld %lld %lld %lld %d %d %16s %d %d %16s %d %d %16s %16s", &kind,
                            &seed, &width, &height, &condition_area, &vae_area, &min, &max, &cw, &ch, condition_digest,
                            &gh, &gw, rows_digest, &vw, &vh, f32_digest, bf16_digest),
                     18);
    struct lk_image source = test_picture(kind, seed, width, height, 3), condition, vae;
    assert_ok(lk_qwen_edit_dimensions(condition_area, width, height, &size[0], &size[1]));
    assert_ok(lk_image_resize(&condition, &source, size[0], size[1], LK_RESAMPLE_LANCZOS));
    check_image(&condition, cw, ch, condition_digest, line);
    check_rows(&condition, min, max, gh, gw, rows_digest, line);
    assert_ok(lk_qwen_edit_dimensions(vae_area, width, height, &size[0], &size[1]));
    assert_int_equal(size[0], vw);
    assert_int_equal(size[1], vh);
    assert_ok(lk_image_resize(&vae, &source, vw, vh, LK_RESAMPLE_LANCZOS));
    check_vae_pixels(dev, &vae, LK_F32, f32_digest, line);
    check_vae_pixels(dev, &vae, LK_BF16, bf16_digest, line);
    lk_image_free(&source);
    lk_image_free(&condition);
    lk_image_free(&vae);
}

static void check_bilinear(const struct lk_image *rgb, int width, int height, const char *expected, const char *line) {
    size_t bytes = (size_t)width * (size_t)height * 3 * sizeof(float);
    float *out = malloc(bytes);
    assert_ok(lk_image_resize_torch_bilinear_f32(out, rgb, width, height));
    test_digest_is(out, bytes, expected, line);
    free(out);
}

static void check_step1x(const char *line) {
    int kind, seed, width, height, channels, level, w, h, gh, gw, size[2];
    long long min, max;
    char ref_digest[17], rows_digest[17], vae_digest[17];
    assert_int_equal(sscanf(line, "step1x %d %d %d %d %d %d %lld %lld %d %d %16s %d %d %16s %16s", &kind, &seed, &width,
                            &height, &channels, &level, &min, &max, &w, &h, ref_digest, &gh, &gw, rows_digest,
                            vae_digest),
                     15);
    struct lk_image source = test_picture(kind, seed, width, height, channels), resized, ref_image, rgb;
    assert_ok(lk_step1x_size(level, 16, width, height, &size[0], &size[1]));
    assert_ok(lk_image_resize(&resized, &source, size[0], size[1], LK_RESAMPLE_LANCZOS));
    assert_ok(lk_image_to_rgb(&ref_image, &resized));
    check_image(&ref_image, w, h, ref_digest, line);
    check_rows(&ref_image, min, max, gh, gw, rows_digest, line);
    assert_ok(lk_image_to_rgb(&rgb, &source));
    check_bilinear(&rgb, w, h, vae_digest, line);
    lk_image_free(&source);
    lk_image_free(&resized);
    lk_image_free(&ref_image);
    lk_image_free(&rgb);
}

static void check_resize(const char *line) {
    int kind, seed, width, height, w, h;
    char bytes_digest[17], f32_digest[17];
    assert_int_equal(sscanf(line, "resize %d %d %d %d %d %d %16s %16s", &kind, &seed, &width, &height, &w, &h,
                            bytes_digest, f32_digest),
                     8);
    struct lk_image source = test_picture(kind, seed, width, height, 3), resized;
    assert_ok(lk_image_resize_torch_bicubic(&resized, &source, w, h));
    check_image(&resized, w, h, bytes_digest, line);
    check_bilinear(&source, w, h, f32_digest, line);
    lk_image_free(&source);
    lk_image_free(&resized);
}

static void equal_to_the_reference(void **state) {
    (void)state;
    int64_t live = lk_alloc_live();
    int n_sizes = 0, n_qwen = 0, n_step1x = 0, n_resizes = 0;
    struct lk_device *dev;
    assert_ok(lk_device_cpu_create(1, &dev));
    char *lines = test_read("golden/data/preprocess.txt", NULL), *rest = lines;
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
        if (!strncmp(line, "sizes ", 6)) {
            check_sizes(line);
            n_sizes += 1000;
        } else if (!strncmp(line, "qwen ", 5)) {
            check_qwen(dev, line);
            n_qwen++;
        } else if (!strncmp(line, "step1x ", 7)) {
            check_step1x(line);
            n_step1x++;
        } else if (!strncmp(line, "resize ", 7)) {
            check_resize(line);
            n_resizes++;
        } else {
            assert_true(line[0] == '#');
        }
    }
    free(lines);
    lk_device_free(dev);
    assert_true(n_sizes >= 36000 && n_qwen >= 200 && n_step1x >= 200 && n_resizes >= 300);
    assert_int_equal(lk_alloc_live(), live);
}

/* Pictures of the same pixels that are resized differently are not the same picture. */
static void another_picture_by_its_inks(void **state) {
    (void)state;
    char plain[65], inks[65], other[65];
    struct lk_image image = test_picture(0, 1, 8, 6, 3);
    uint8_t held[8 * 6 * 4] = {0};
    lk_key_begin(plain, "picture");
    lk_key_add_image(plain, &image);
    image.unconverted = held;
    lk_key_begin(inks, "picture");
    lk_key_add_image(inks, &image);
    held[sizeof held - 1] = 1;
    lk_key_begin(other, "picture");
    lk_key_add_image(other, &image);
    assert_string_not_equal(plain, inks);
    assert_string_not_equal(inks, other);
    image.unconverted = NULL;
    lk_image_free(&image);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_to_the_reference),
                                       cmocka_unit_test(another_picture_by_its_inks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
