/* The pixel judge against scikit-image and NumPy (tests/golden/generate_pixel.py), and what it says of plain cases. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/judge/pixel.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

enum { N_CASES = 200 };

static int clamp(int v) { return v < 0 ? 0 : v > 255 ? 255 : v; }

static void pictures(int number, struct lk_image out[2]) {
    struct lk_stream stream = stats_stream("pixel", number);
    int width = 12 + (int)lk_stream_bounded(&stream, 24), height = 12 + (int)lk_stream_bounded(&stream, 24);
    int r = 60 + (int)lk_stream_bounded(&stream, 180), shift[3] = {0, 0, 0};
    int base[3] = {r, r * 7 / 10, r * 5 / 10};
    if (number % 5 == 0) base[0] = base[1] = r / 2, base[2] = r;
    for (int c = 0; c < 3 && number % 4; c++) shift[c] = (int)lk_stream_bounded(&stream, 61) - 30;
    int noise = 1 + (int)lk_stream_bounded(&stream, 40);
    for (int p = 0; p < 2; p++) {
        assert_ok(lk_image_new(&out[p], width, height, 3));
        for (int i = 0; i < width * height * 3; i++)
            out[p].pixels[i] = (uint8_t)clamp(base[i % 3] + (int)lk_stream_bounded(&stream, (uint64_t)noise) -
                                              noise / 2 + (p ? shift[i % 3] : 0));
    }
    if (number % 8 == 0) memcpy(out[1].pixels, out[0].pixels, (size_t)(width * height * 3));
}

static uint64_t checksum(uint64_t hash, const struct lk_image *image) {
    for (int i = 0; i < image->width * image->height * 3; i++) {
        double value = image->pixels[i];
        hash = stats_checksum(hash, &value, 1);
    }
    return hash;
}

static void as_scikit_image(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "pixel", 7);
    assert_int_equal(golden.n_cases, N_CASES);
    uint64_t inputs = STATS_CHECKSUM_START;
    for (int number = 0; number < N_CASES; number++) {
        const double *expected = golden.values + number * 7;
        struct lk_image images[2];
        struct lk_pixel_judgement j;
        pictures(number, images);
        inputs = checksum(checksum(inputs, &images[0]), &images[1]);
        assert_ok(lk_pixel_judge(&images[0], &images[1], NULL, &j));
        stats_assert_close("ssim", number, j.ssim, expected[0], 1e-9, 1e-12);
        stats_assert_close("inside", number, j.change_inside, expected[1], 1e-10, 1e-12);
        stats_assert_close("outside", number, j.change_outside, expected[2], 1e-10, 1e-12);
        stats_assert_close("skin_source", number, j.skin_source, expected[3], 1e-12, 0);
        stats_assert_close("skin_edited", number, j.skin_edited, expected[4], 1e-12, 0);
        bool defined = !isnan(expected[5]) && !isnan(expected[6]);
        assert_int_equal(defined, j.undefined == NULL);
        if (defined) {
            stats_assert_close("ita_source", number, j.ita_source, expected[5], 1e-10, 1e-12);
            stats_assert_close("ita_edited", number, j.ita_edited, expected[6], 1e-10, 1e-12);
        }
        lk_image_free(&images[0]);
        lk_image_free(&images[1]);
    }
    assert_true(inputs == golden.inputs);
    stats_golden_close(&golden);
}

static void plain(struct lk_image *image, int r, int g, int b) {
    assert_ok(lk_image_new(image, 32, 32, 3));
    for (int i = 0; i < 32 * 32; i++) {
        image->pixels[3 * i] = (uint8_t)r;
        image->pixels[3 * i + 1] = (uint8_t)g;
        image->pixels[3 * i + 2] = (uint8_t)b;
    }
}

static struct lk_pixel_judgement judged(const int source[3], const int edited[3]) {
    struct lk_image a, b;
    struct lk_pixel_judgement j;
    plain(&a, source[0], source[1], source[2]);
    plain(&b, edited[0], edited[1], edited[2]);
    assert_ok(lk_pixel_judge(&a, &b, NULL, &j));
    lk_image_free(&a);
    lk_image_free(&b);
    return j;
}

static void scores_of_plain_pictures(void **state) {
    (void)state;
    const int light[3] = {230, 190, 160}, brown[3] = {120, 80, 58}, sky[3] = {110, 160, 230};
    struct lk_pixel_judgement same = judged(brown, brown);
    assert_int_equal(same.score[LK_AXIS_EDIT_SUCCESS], 1);
    assert_int_equal(same.score[LK_AXIS_SKIN_TONE], 3);
    assert_true(same.ssim == 1 && same.change_inside == 0);
    struct lk_pixel_judgement lighter = judged(brown, light), darker = judged(light, brown);
    assert_int_equal(lighter.score[LK_AXIS_SKIN_TONE], 5);
    assert_int_equal(darker.score[LK_AXIS_SKIN_TONE], 1);
    assert_int_equal(lighter.score[LK_AXIS_EDIT_SUCCESS], 4);
    struct lk_pixel_judgement no_skin = judged(light, sky);
    assert_non_null(no_skin.undefined);
    assert_int_equal(no_skin.score[LK_AXIS_SKIN_TONE], 0);
    for (int axis = LK_AXIS_RACE_DRIFT; axis < LK_N_AXES; axis++) assert_int_equal(same.score[axis], 0);
}

static void classes_at_their_limits(void **state) {
    (void)state;
    const double angles[] = {55.1, 55, 41.1, 41, 28, 10, -29.9, -30};
    const int expected[] = {0, 1, 1, 2, 3, 4, 4, 5};
    for (int i = 0; i < 8; i++) assert_int_equal(lk_typology_class(angles[i]), expected[i]);
}

static void other_sizes_and_refusals(void **state) {
    (void)state;
    struct lk_image a, b, tiny;
    struct lk_pixel_judgement j;
    plain(&a, 200, 150, 120);
    assert_ok(lk_image_new(&b, 64, 48, 4));
    memset(b.pixels, 180, 64 * 48 * 4);
    assert_ok(lk_pixel_judge(&a, &b, NULL, &j));
    assert_true(j.change_inside > 0);
    struct lk_image tall;
    assert_ok(lk_image_new(&tall, 250, 500, 3));
    memset(tall.pixels, 90, 250 * 500 * 3);
    assert_fails(lk_pixel_judge(&a, &tall, NULL, &j), LK_E_IMAGE_SIZE, "shape");
    lk_image_free(&tall);
    struct lk_region outside = {0.5, 0.5, 0.6, 0.2};
    assert_fails(lk_pixel_judge(&a, &b, &outside, &j), LK_E_INPUT, "region");
    assert_ok(lk_image_new(&tiny, 10, 40, 3));
    memset(tiny.pixels, 0, 10 * 40 * 3);
    assert_fails(lk_pixel_judge(&tiny, &a, NULL, &j), LK_E_IMAGE_SIZE, "11 pixels");
    int64_t live = lk_alloc_live();
    for (int n = 1;; n++) {
        lk_alloc_fail_at(n);
        enum lk_code rc = lk_pixel_judge(&a, &b, NULL, &j);
        lk_alloc_fail_at(0);
        assert_true(lk_alloc_live() == live);
        if (!rc) break;
        assert_int_equal(rc, LK_E_NOMEM);
    }
    lk_image_free(&a);
    lk_image_free(&b);
    lk_image_free(&tiny);
}

/* A face that leaves the picture on two sides is the part within; one beyond it is none. */
static void regions_of_faces(void **state) {
    (void)state;
    struct lk_region r;
    assert_true(lk_region_of_face(&(struct lk_face){.x = -10, .y = 25, .width = 60, .height = 50}, 200, 50, &r));
    assert_true(r.left == 0 && r.top == 0.5 && r.width == 0.25 && r.height == 0.5);
    assert_true(lk_region_of_face(&(struct lk_face){.x = 100, .y = 5, .width = 50, .height = 20}, 200, 50, &r));
    assert_true(r.left == 0.5 && r.top == 0.1 && r.width == 0.25 && r.height == 0.4);
    assert_false(lk_region_of_face(&(struct lk_face){.x = 200, .y = 5, .width = 50, .height = 20}, 200, 50, &r));
    assert_false(lk_region_of_face(&(struct lk_face){.x = 5, .y = -9, .width = 50, .height = 9}, 200, 50, &r));
}

/* A picture's own skin is what it has beside any other. */
static void skin_of_one_picture(void **state) {
    (void)state;
    struct lk_image both[2];
    struct lk_pixel_judgement j;
    const struct lk_region left = {0, 0, 0.5, 1};
    double angle;
    for (int i = 0; i < 4; i++) {
        pictures(i, both);
        for (int r = 0; r < 2; r++) {
            assert_ok(lk_pixel_judge(&both[0], &both[1], r ? &left : NULL, &j));
            assert_ok(lk_pixel_skin_tone(&both[0], r ? &left : NULL, &angle));
            assert_true(j.undefined || angle == j.ita_source);
        }
        for (int k = 0; k < 2; k++) lk_image_free(&both[k]);
    }
    plain(&both[0], 0, 0, 255);
    assert_ok(lk_pixel_skin_tone(&both[0], NULL, &angle));
    assert_true(isnan(angle));
    assert_fails(lk_pixel_skin_tone(&both[0], &(struct lk_region){.left = 0.6, .width = 0.5, .height = 1}, &angle),
                 LK_E_INPUT, "region");
    lk_image_free(&both[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_scikit_image),         cmocka_unit_test(scores_of_plain_pictures),
        cmocka_unit_test(classes_at_their_limits), cmocka_unit_test(other_sizes_and_refusals),
        cmocka_unit_test(regions_of_faces),        cmocka_unit_test(skin_of_one_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
