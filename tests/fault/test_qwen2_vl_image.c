/* What may be wrong with a Qwen2-VL processor config and with pictures on their way to a vision tower. The accepted
 * forms are what transformers' save_pretrained writes. */
#include "tests/common/picture.h"
#include "tests/common/test.h"

#include <math.h>

#include "engine/base/alloc.h"
#include "engine/image/resize_torch.h"
#include "models/qwen_edit/sizes.h"
#include "models/step1x/sizes.h"
#include "models/text/qwen2_vl_image.h"

/* In every form. */
#define COMMON                                                                                                         \
    "\"do_convert_rgb\": true, \"do_normalize\": true, \"do_rescale\": true, \"do_resize\": true, "                    \
    "\"image_mean\": [0.48145466, 0.4578275, 0.40821073], \"image_std\": [0.26862954, 0.26130258, 0.27577711], "       \
    "\"resample\": 3, \"rescale_factor\": 0.00392156862745098, \"merge_size\": 2, \"patch_size\": 14, "                \
    "\"temporal_patch_size\": 2"
#define SIZE   "\"size\": {\"longest_edge\": 12845056, \"shortest_edge\": 3136}"
#define PIXELS "\"max_pixels\": 12845056, \"min_pixels\": 3136"
#define SLOW   "\"image_processor_type\": \"Qwen2VLImageProcessor\""
/* transformers 4.52 to 4.56, and 4.4x, and 5. */
#define FAST_4                                                                                                         \
    "{\"crop_size\": null, \"data_format\": \"channels_first\", \"default_to_square\": true, \"device\": null, "       \
    "\"disable_grouping\": null, \"do_center_crop\": null, \"input_data_format\": null, \"return_tensors\": null, "    \
    "\"image_processor_type\": \"Qwen2VLImageProcessorFast\", \"processor_class\": \"Qwen2VLProcessor\", " COMMON      \
    ", " PIXELS ", " SIZE "}"
#define SLOW_4 "{" SLOW ", \"processor_class\": \"Qwen2_5_VLProcessor\", " COMMON ", " PIXELS ", " SIZE "}"
#define FAST_5 "{" SLOW ", " COMMON ", " SIZE "}"
#define WHOLE_5                                                                                                        \
    "{\"image_processor\": " FAST_5                                                                                    \
    ", \"processor_class\": \"Qwen2_5_VLProcessor\", \"video_processor\": {\"max_frames\": 768, \"fps\": 2}}"

static enum lk_code parse(struct lk_qwen2_vl_processor *p, const char *text) {
    struct lk_config *json;
    assert_ok(lk_config_parse(&json, text, strlen(text), "preprocessor_config.json"));
    return lk_qwen2_vl_processor_read(p, json);
}

static void forms_that_are_read(void **state) {
    (void)state;
    static const char *const forms[] = {FAST_4,
                                        SLOW_4,
                                        FAST_5,
                                        WHOLE_5,
                                        "{" COMMON ", " PIXELS "}",
                                        "{" COMMON ", " PIXELS ", \"size\": {\"min_pixels\": 1, \"max_pixels\": 2}}"};
    int64_t live = lk_alloc_live();
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct lk_qwen2_vl_processor p = {0};
        assert_ok(parse(&p, forms[i]));
        assert_true(p.patch_size == 14 && p.temporal_patch_size == 2 && p.merge_size == 2);
        assert_true(p.min_pixels == 3136 && p.max_pixels == 12845056);
        assert_true(p.mean[0] == 0.48145466f && p.mean[1] == 0.4578275f && p.mean[2] == 0.40821073f);
        assert_true(p.std[0] == 0.26862954f && p.std[1] == 0.26130258f && p.std[2] == 0.27577711f);
    }
    struct lk_qwen2_vl_processor p = {0};
    assert_ok(parse(&p, "{" COMMON "}"));
    assert_true(p.min_pixels == 56 * 56 && p.max_pixels == 28 * 28 * 1280);
    assert_ok(parse(&p, "{" COMMON ", \"min_pixels\": 200704, \"max_pixels\": null, " SIZE "}"));
    assert_true(p.min_pixels == 200704 && p.max_pixels == 12845056);
    assert_int_equal(lk_alloc_live(), live);
}

static void values_that_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum lk_code code;
        const char *part;
    } cases[] = {
        {"{" COMMON ", \"unheard_of\": 1}", LK_E_CONFIG_KEY, "unheard_of"},
        {"{" COMMON ", \"size\": {\"height\": 1}}", LK_E_CONFIG_KEY, "size"},
        {"{\"image_processor\": {" COMMON "}, \"other\": 1}", LK_E_CONFIG_KEY, "other"},
        {"{\"image_processor\": [], \"processor_class\": 1}", LK_E_CONFIG_TYPE, "image_processor"},
        {"{" COMMON ", \"image_processor_type\": \"CLIPImageProcessor\"}", LK_E_CONFIG_VALUE, "CLIPImageProcessor"},
        {"{" COMMON ", \"do_center_crop\": true}", LK_E_CONFIG_VALUE, "do_center_crop"},
        {"{" COMMON ", \"do_pad\": true}", LK_E_CONFIG_VALUE, "do_pad"},
        {"{" COMMON ", \"crop_size\": {\"height\": 4}}", LK_E_CONFIG_VALUE, "crop_size"},
        {"{" COMMON ", \"data_format\": \"channels_last\"}", LK_E_CONFIG_VALUE, "data_format"},
        {"{" COMMON ", \"min_pixels\": 5, \"max_pixels\": 4}", LK_E_CONFIG_VALUE, "min_pixels"},
        {"{" COMMON ", \"min_pixels\": 0}", LK_E_CONFIG_VALUE, "min_pixels"},
        {"{" COMMON ", \"max_pixels\": 1e15}", LK_E_CONFIG_VALUE, "max_pixels"},
        {"{\"image_std\": [1, 1, 1]}", LK_E_CONFIG_KEY, "image_mean"},
        {"{\"image_mean\": [0, 0, 0], \"image_std\": [1, 0, 1]}", LK_E_CONFIG_VALUE, "image_std"},
        {"{\"image_mean\": [0, 0], \"image_std\": [1, 1, 1]}", LK_E_CONFIG_VALUE, "3 numbers"},
        {"{\"image_mean\": [], \"image_std\": [1, 1, 1]}", LK_E_CONFIG_VALUE, "3 numbers"},
        {"{\"image_mean\": 0.5, \"image_std\": [1, 1, 1]}", LK_E_CONFIG_TYPE, "image_mean"},
        {"{\"image_mean\": [0, 0, 0], \"image_std\": [1, 1, 1], \"resample\": 1}", LK_E_CONFIG_VALUE, "resample"},
        {"{\"image_mean\": [0, 0, 0], \"image_std\": [1, 1, 1], \"do_resize\": false}", LK_E_CONFIG_VALUE, "do_resize"},
        {"{\"image_mean\": [0, 0, 0], \"image_std\": [1, 1, 1], \"rescale_factor\": 0.5}", LK_E_CONFIG_VALUE,
         "rescale_factor"},
        {"{\"image_mean\": [0, 0, 0], \"image_std\": [1, 1, 1], \"patch_size\": 0}", LK_E_CONFIG_VALUE, "patch_size"},
        {"{\"image_mean\": [0, 0, 0], \"image_std\": [1, 1, 1], \"merge_size\": 9999}", LK_E_CONFIG_VALUE,
         "merge_size"},
    };
    int64_t live = lk_alloc_live();
    struct lk_qwen2_vl_processor p = {.patch_size = -1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(parse(&p, cases[i].text), cases[i].code, cases[i].part);
    assert_int_equal(p.patch_size, -1);
    assert_int_equal(lk_alloc_live(), live);
}

static void absurd_sizes(void **state) {
    (void)state;
    struct lk_qwen2_vl_processor p;
    int w = 0, h = 0;
    assert_ok(parse(&p, FAST_5));
    assert_ok(lk_qwen2_vl_size(&p, 200 * 28, 28, &w, &h)); /* exactly the largest aspect ratio */
    assert_fails(lk_qwen2_vl_size(&p, 201, 1, &w, &h), LK_E_IMAGE_SIZE, "aspect");
    assert_fails(lk_qwen2_vl_size(&p, 0, 1, &w, &h), LK_E_IMAGE_SIZE, "0x1");
    assert_fails(lk_qwen2_vl_size(&p, INT32_MAX, INT32_MIN, &w, &h), LK_E_IMAGE_SIZE, "1 pixel");
    p.min_pixels = p.max_pixels = INT64_MAX;
    assert_fails(lk_qwen2_vl_size(&p, 1000, 1000, &w, &h), LK_E_IMAGE_SIZE, "1000x1000");
    assert_fails(lk_qwen_edit_dimensions(1024 * 1024, 0, 5, &w, &h), LK_E_IMAGE_SIZE, "0x5");
    assert_fails(lk_qwen_edit_dimensions(1024 * 1024, 65535, 1, &w, &h), LK_E_IMAGE_SIZE, "65535x1");
    assert_fails(lk_qwen_edit_dimensions(INT64_MAX, 5, 5, &w, &h), LK_E_IMAGE_SIZE, "5x5");
    assert_fails(lk_qwen_edit_output_size(1 << 20, 1, 1, -1, 0, 16, &w, &h), LK_E_IMAGE_SIZE, "-1x0");
    assert_fails(lk_qwen_edit_output_size(1 << 20, 1, 1, 15, 64, 16, &w, &h), LK_E_IMAGE_SIZE, "15x64");
    assert_ok(lk_qwen_edit_output_size(1 << 20, 1920, 1080, 0, 0, 16, &w, &h));
    assert_true(w == 1376 && h == 768);
    assert_ok(lk_qwen_edit_output_size(1 << 20, 1920, 1080, 1000, 0, 16, &w, &h));
    assert_true(w == 992 && h == 768);
    assert_fails(lk_step1x_size(1024, 16, 5, 0, &w, &h), LK_E_IMAGE_SIZE, "5x0");
    assert_fails(lk_step1x_size(1024, 16, 1, 65535, &w, &h), LK_E_IMAGE_SIZE, "1x65535");
    assert_fails(lk_step1x_size(INT32_MAX, 16, 1, 1, &w, &h), LK_E_IMAGE_SIZE, "size level");
    assert_fails(lk_step1x_size(0, 16, 1, 1, &w, &h), LK_E_IMAGE_SIZE, "size level");
}

static void memory_may_be_out(void **state) {
    (void)state;
    struct lk_qwen2_vl_processor p;
    assert_ok(parse(&p, FAST_5));
    struct lk_image image = test_picture(3, 1, 60, 70, 3), out;
    int64_t live = lk_alloc_live();
    float *rows, pixels[20 * 30 * 3];
    int grid_h, grid_w, n_rows = 0, n_bytes = 0, n_real = 0;
    while (lk_alloc_fail_at(n_rows + 1), lk_qwen2_vl_rows(&p, &image, &rows, &grid_h, &grid_w) == LK_E_NOMEM) {
        n_rows++;
        assert_null(rows);
        assert_int_equal(lk_alloc_live(), live);
    }
    lk_alloc_fail_at(0);
    lk_free(rows);
    while (lk_alloc_fail_at(n_bytes + 1), lk_image_resize_torch_bicubic(&out, &image, 20, 30) == LK_E_NOMEM) {
        n_bytes++;
        assert_null(out.pixels);
        assert_int_equal(lk_alloc_live(), live);
    }
    lk_alloc_fail_at(0);
    lk_image_free(&out);
    while (lk_alloc_fail_at(n_real + 1), lk_image_resize_torch_bilinear_f32(pixels, &image, 20, 30) == LK_E_NOMEM) {
        n_real++;
        assert_int_equal(lk_alloc_live(), live);
    }
    lk_alloc_fail_at(0);
    assert_true(n_rows > 5 && n_bytes > 5 && n_real > 3);
    image.channels = 2; /* a caller's mistake, not a crash */
    assert_fails(lk_image_resize_torch_bicubic(&out, &image, 20, 30), LK_E_INTERNAL, "RGB");
    image.channels = 3;
    assert_fails(lk_image_resize_torch_bicubic(&out, &image, 0, 30), LK_E_IMAGE_SIZE, "0 x 30");
    lk_image_free(&image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_that_are_read),
        cmocka_unit_test(values_that_are_refused),
        cmocka_unit_test(absurd_sizes),
        cmocka_unit_test(memory_may_be_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
