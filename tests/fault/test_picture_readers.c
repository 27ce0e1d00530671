/* Every kind of picture through everything that reads pictures: what it sees is what it sees of the same picture as
 * plain RGB. A reader that knows fewer kinds than the decoder fails here, whichever it is. */
#include "tests/common/image_files.h"
#include "tests/common/picture.h"
#include "tests/common/test.h"

#include <webp/encode.h>

#include "engine/base/alloc.h"
#include "eval/document/page_image.h"
#include "eval/judge/perceived.h"
#include "eval/judge/pixel.h"
#include "models/face/fairface.h"
#include "models/face/yunet.h"
#include "models/flux2/flux2.h"
#include "models/qwen_edit/qwen_edit.h"
#include "models/step1x/step1x.h"
#include "models/text/pixtral_image.h"

enum { WIDTH = 72, HEIGHT = 64 };

static const struct kind {
    const char *name;
    int depth, color, n_colors, n_alphas, interlace; /* of a PNG */
    int channels, n_scans;                           /* of a JPEG; 0: a PNG */
    int webp;                                        /* channels of a WebP */
} kinds[] = {
    {.name = "grey 1", .depth = 1, .color = 0},
    {.name = "grey 2", .depth = 2, .color = 0},
    {.name = "grey 4", .depth = 4, .color = 0},
    {.name = "grey 8", .depth = 8, .color = 0},
    {.name = "grey 16", .depth = 16, .color = 0},
    {.name = "grey interlaced", .depth = 8, .color = 0, .interlace = 1},
    {.name = "grey with a transparent level", .depth = 8, .color = 0, .n_alphas = 2},
    {.name = "grey and alpha 8", .depth = 8, .color = 4},
    {.name = "grey and alpha 16", .depth = 16, .color = 4},
    {.name = "RGB 8", .depth = 8, .color = 2},
    {.name = "RGB 16", .depth = 16, .color = 2},
    {.name = "RGB with a transparent colour", .depth = 8, .color = 2, .n_alphas = 6},
    {.name = "RGBA 8", .depth = 8, .color = 6},
    {.name = "RGBA 16", .depth = 16, .color = 6},
    {.name = "palette of 2", .depth = 1, .color = 3, .n_colors = 2},
    {.name = "palette of 4", .depth = 2, .color = 3, .n_colors = 4},
    {.name = "palette of 16", .depth = 4, .color = 3, .n_colors = 16},
    {.name = "palette of 256", .depth = 8, .color = 3, .n_colors = 256},
    {.name = "palette, interlaced", .depth = 8, .color = 3, .n_colors = 256, .interlace = 1},
    {.name = "palette with alpha", .depth = 8, .color = 3, .n_colors = 256, .n_alphas = 256},
    {.name = "palette with one clear colour", .depth = 8, .color = 3, .n_colors = 256, .n_alphas = 1},
    {.name = "JPEG grey", .channels = 1, .n_scans = 1},
    {.name = "JPEG", .channels = 3, .n_scans = 1},
    {.name = "JPEG progressive", .channels = 3, .n_scans = 9},
    {.name = "JPEG CMYK", .channels = 4, .n_scans = 1},
    {.name = "WebP", .webp = 3},
    {.name = "WebP with alpha", .webp = 4},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static struct bytes file_of(const struct kind *k) {
    struct lk_image noise = test_picture(0, 7, WIDTH, HEIGHT, 4);
    if (k->webp) {
        uint8_t *made = NULL;
        struct lk_image picture = test_picture(3, 5, WIDTH, HEIGHT, k->webp);
        const size_t n = (k->webp == 4 ? WebPEncodeLosslessRGBA : WebPEncodeLosslessRGB)(picture.pixels, WIDTH, HEIGHT,
                                                                                         WIDTH * k->webp, &made);
        struct bytes file = {0};
        bytes_add(&file, made, n);
        WebPFree(made);
        lk_image_free(&picture);
        lk_image_free(&noise);
        return file;
    }
    if (k->channels) {
        struct lk_image picture = test_picture(3, 5, WIDTH, HEIGHT, k->channels);
        struct bytes file = jpeg_file(&picture, k->n_scans);
        lk_image_free(&picture);
        lk_image_free(&noise);
        return file;
    }
    static const int samples[] = {1, 0, 3, 1, 2, 0, 4};
    size_t row = ((size_t)(WIDTH * samples[k->color] * k->depth) + 7) / 8 + 1;
    struct bytes between = {0}, raw = {0};
    if (k->n_colors) png_chunk(&between, "PLTE", noise.pixels, (size_t)k->n_colors * 3);
    if (k->n_alphas) png_chunk(&between, "tRNS", noise.pixels + 2000, (size_t)k->n_alphas);
    if (!k->interlace)
        for (int y = 0; y < HEIGHT; y++) {
            bytes_add(&raw, "", 1);
            bytes_add(&raw, noise.pixels + (size_t)y * WIDTH * 4, row - 1 > WIDTH * 4 ? WIDTH * 4 : row - 1);
            if (row - 1 > WIDTH * 4) bytes_add(&raw, noise.pixels, row - 1 - WIDTH * 4);
        }
    /* seven passes: 8x8 from (0, 0), 8x8 from (4, 0), 4x8 from (0, 4) and so on */
    static const int from_x[] = {0, 4, 0, 2, 0, 1, 0}, from_y[] = {0, 0, 4, 0, 2, 0, 1};
    static const int step_x[] = {8, 8, 4, 4, 2, 2, 1}, step_y[] = {8, 8, 8, 4, 4, 2, 2};
    for (int pass = 0; pass < 7 && k->interlace; pass++)
        for (int y = from_y[pass]; y < HEIGHT; y += step_y[pass]) {
            bytes_add(&raw, "", 1);
            for (int x = from_x[pass]; x < WIDTH; x += step_x[pass])
                bytes_add(&raw, noise.pixels + (size_t)y * WIDTH + x, 1);
        }
    struct bytes file =
        png_file(WIDTH, HEIGHT, k->depth, k->color, k->interlace, between.n ? &between : NULL, raw.data, raw.n);
    bytes_free(&between);
    bytes_free(&raw);
    lk_image_free(&noise);
    return file;
}

/* What a reader makes of a picture, as a digest. */
typedef enum lk_code reader_fn(const struct lk_image *image, char digest[TEST_DIGEST_DIGITS + 1]);

static enum lk_code pixels_digest(enum lk_code rc, struct lk_image *made, char *digest) {
    if (!rc) test_digest(made->pixels, (size_t)made->width * (size_t)made->height * (size_t)made->channels, digest);
    lk_image_free(made);
    return rc;
}

static enum lk_code rows_digest(enum lk_code rc, float *rows, int n, char *digest) {
    if (!rc) test_digest(rows, (size_t)n * sizeof *rows, digest);
    lk_free(rows);
    return rc;
}

static const struct lk_qwen2_vl_processor qwen = {.patch_size = 14,
                                                  .temporal_patch_size = 2,
                                                  .merge_size = 2,
                                                  .min_pixels = 3136,
                                                  .max_pixels = 12845056,
                                                  .mean = {0.5f, 0.4f, 0.3f},
                                                  .std = {0.3f, 0.2f, 0.1f}};

static enum lk_code by_qwen(const struct lk_image *image, char *digest) {
    float *rows = NULL;
    int h, w;
    enum lk_code rc = lk_qwen2_vl_rows(&qwen, image, &rows, &h, &w);
    return rows_digest(rc, rows, rc ? 0 : h * w * 14 * 14 * 6, digest);
}

static enum lk_code by_pixtral(const struct lk_image *image, char *digest) {
    static const struct lk_pixtral_processor pixtral = {
        .patch_size = 14, .merge_size = 2, .longest_edge = 50, .mean = {0.5f, 0.4f, 0.3f}, .std = {0.3f, 0.2f, 0.1f}};
    float *rows = NULL;
    int h, w;
    enum lk_code rc = lk_pixtral_rows(&pixtral, image, &rows, &h, &w);
    return rows_digest(rc, rows, rc ? 0 : h * w * 14 * 14 * 3, digest);
}

static enum lk_code by_flux2(const struct lk_image *image, char *digest) {
    struct lk_flux2_reference_size size;
    struct lk_image made = {0};
    LK_TRY(lk_flux2_reference_size(image->width, image->height, 16, &size));
    return pixels_digest(lk_flux2_prepare_reference(image, &size, &made), &made, digest);
}

static const struct lk_qwen_edit_reference reference = {
    .condition_width = 84, .condition_height = 56, .width = 64, .height = 48};

static enum lk_code by_qwen_edit_vae(const struct lk_image *image, char *digest) {
    struct lk_image made = {0};
    return pixels_digest(lk_qwen_edit_vae_image(image, &reference, &made), &made, digest);
}

static enum lk_code by_qwen_edit(const struct lk_image *image, char *digest) {
    static struct lk_qwen_edit model;
    float *rows = NULL;
    model.processor = qwen;
    enum lk_code rc = lk_qwen_edit_condition_rows(&model, image, &reference, &rows);
    return rows_digest(rc, rows, 84 * 56 * 6, digest);
}

static enum lk_code by_step1x(const struct lk_image *image, char *digest) {
    static struct lk_step1x model;
    float *rows = NULL;
    struct lk_vlm_image seen;
    model.processor = qwen;
    enum lk_code rc = lk_step1x_vision_rows(&model, image, image->width, image->height, &rows, &seen);
    return rows_digest(rc, rows, rc ? 0 : (int)(seen.grid_h * seen.grid_w) * 14 * 14 * 6, digest);
}

static enum lk_code by_pixel_judge(const struct lk_image *image, char *digest) {
    struct lk_image other = test_picture(3, 9, WIDTH, HEIGHT, 3);
    struct lk_pixel_judgement a = {0}, b = {0};
    double angle = 0;
    enum lk_code rc = lk_pixel_judge(image, &other, NULL, &a);
    if (!rc) rc = lk_pixel_judge(&other, image, NULL, &b);
    if (!rc) rc = lk_pixel_skin_tone(image, NULL, &angle);
    double seen[] = {a.ssim, a.change_inside, a.skin_source, b.ssim, b.change_outside, b.skin_edited, angle};
    if (!rc) test_digest(seen, sizeof seen, digest);
    lk_image_free(&other);
    return rc;
}

static enum lk_code by_yunet(const struct lk_image *image, char *digest) {
    struct lk_yunet *net;
    struct lk_face *faces = NULL;
    size_t n = 0;
    LK_TRY(lk_yunet_open(&net, "golden/data/yunet/tiny.safetensors"));
    enum lk_code rc =
        lk_yunet_detect(net, image, &(struct lk_yunet_search){.min_score = 0, .max_overlap = 1}, &faces, &n);
    if (!rc) test_digest(faces, n * sizeof *faces, digest);
    lk_free(faces);
    lk_yunet_close(net);
    return rc;
}

static const struct lk_face face = {
    .x = 10, .y = 8, .width = 30, .height = 30, .points = {{20, 18}, {32, 19}, {26, 24}, {21, 30}, {31, 30}}};

static enum lk_code by_fairface(const struct lk_image *image, char *digest) {
    struct lk_image chip = {0};
    return pixels_digest(lk_fairface_chip(image, &face, &chip), &chip, digest);
}

/* A face that is shown to a judge. */
static enum lk_code by_perceived(const struct lk_image *image, char *digest) {
    struct lk_image crop = {0};
    enum lk_code rc = lk_perceived_crop(image, &face, &crop);
    if (!rc) rc = by_qwen(&crop, digest);
    lk_image_free(&crop);
    return rc;
}

static const struct {
    const char *name;
    reader_fn *read;
    bool on_white; /* alpha is composited over white, not dropped */
} readers[] = {{"qwen2.5-vl", by_qwen, false},
               {"pixtral", by_pixtral, true},
               {"flux2", by_flux2, false},
               {"qwen-edit condition", by_qwen_edit, false},
               {"qwen-edit", by_qwen_edit_vae, false},
               {"step1x", by_step1x, false},
               {"pixel judge", by_pixel_judge, false},
               {"yunet", by_yunet, false},
               {"fairface", by_fairface, false},
               {"perceived", by_perceived, false}};

static void decode(const struct kind *k, struct lk_image *image) {
    struct bytes file = file_of(k);
    assert_ok(lk_image_decode(image, file.data, file.n, k->name, 1, 0));
    assert_true(image->width == WIDTH && image->height == HEIGHT);
    bytes_free(&file);
}

/* The picture with nothing about it but three channels. */
static void plain(const struct lk_image *image, bool on_white, struct lk_image *rgb) {
    assert_ok(lk_image_to_rgb(rgb, image));
    int channels = image->channels;
    for (int i = 0; i < WIDTH * HEIGHT && on_white && channels % 2 == 0; i++)
        for (int c = 0; c < 3; c++) { /* Pillow's alpha_composite, its 7 bits more than a byte */
            unsigned front = image->pixels[channels * i + channels - 1] * 128u;
            unsigned sum = rgb->pixels[3 * i + c] * front + 255 * (255 * 128 - front) + (0x80 << 7);
            rgb->pixels[3 * i + c] = (uint8_t)((((sum >> 8) + sum) >> 8) >> 7);
        }
}

static void every_kind_through_every_reader(void **state) {
    (void)state;
    int64_t live = lk_alloc_live();
    for (size_t k = 0; k < N_KINDS; k++)
        for (size_t r = 0; r < sizeof readers / sizeof *readers; r++) {
            struct lk_image image, rgb;
            char seen[TEST_DIGEST_DIGITS + 1] = "", wanted[TEST_DIGEST_DIGITS + 1] = "";
            decode(&kinds[k], &image);
            plain(&image, readers[r].on_white, &rgb);
            enum lk_code rc = readers[r].read(&image, seen);
            if (rc) fail_msg("%s by %s: %s", kinds[k].name, readers[r].name, lk_error_text());
            assert_ok(readers[r].read(&rgb, wanted));
            if (strcmp(seen, wanted)) fail_msg("%s by %s: other than as RGB", kinds[k].name, readers[r].name);
            lk_image_free(&image);
            lk_image_free(&rgb);
        }
    assert_int_equal(lk_alloc_live(), live);
}

/* A page's pictures come from files. */
static void every_kind_on_a_page(void **state) {
    (void)state;
    for (size_t k = 0; k < N_KINDS; k++) {
        struct bytes file = file_of(&kinds[k]);
        struct lk_image image, small, rgb;
        int size[2];
        const char *path = test_path("kind");
        test_write(path, file.data, file.n);
        decode(&kinds[k], &image);
        plain(&image, false, &rgb);
        assert_ok(lk_image_read_small(&small, path, WIDTH, size));
        assert_true(size[0] == WIDTH && size[1] == HEIGHT && small.channels == 3);
        assert_memory_equal(small.pixels, rgb.pixels, WIDTH * HEIGHT * 3);
        lk_image_free(&small);
        assert_ok(lk_image_read_small(&small, path, 20, size));
        lk_image_free(&small);
        lk_image_free(&image);
        lk_image_free(&rgb);
        bytes_free(&file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_through_every_reader),
        cmocka_unit_test(every_kind_on_a_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
