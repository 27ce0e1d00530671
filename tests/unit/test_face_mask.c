/* Masks around faces: which pixels belong to a box or an ellipse, and what is refused. */
#include "tests/common/test.h"

#include <math.h>

#include "models/face/face_mask.h"

static int n_black(const struct lk_image *mask) {
    int n = 0;
    for (int i = 0; i < mask->width * mask->height; i++) {
        assert_true(mask->pixels[i] == 0 || mask->pixels[i] == 255);
        n += !mask->pixels[i];
    }
    return n;
}

static struct lk_image draw(const double (*boxes)[4], int n, bool keep, bool ellipse, double grow) {
    struct lk_image mask;
    assert_ok(lk_face_mask_draw(&mask, 100, 80, boxes, n, &(struct lk_face_mask){keep, ellipse, grow}));
    return mask;
}

/* By hand: [17.5, 32.5) x [25, 55) has the centres of columns 17 to 31 and rows 25 to 54. */
static void boxes_are_grown_and_half_open(void **state) {
    (void)state;
    const double box[][4] = {{20, 30, 10, 20}};
    struct lk_image mask = draw(box, 1, true, false, 0.25);
    assert_int_equal(n_black(&mask), 15 * 30);
    assert_int_equal(mask.pixels[25 * 100 + 17], 0);
    assert_int_equal(mask.pixels[25 * 100 + 16], 255);
    assert_int_equal(mask.pixels[24 * 100 + 17], 255);
    assert_int_equal(mask.pixels[54 * 100 + 31], 0);
    assert_int_equal(mask.pixels[54 * 100 + 32], 255);
    assert_int_equal(mask.pixels[55 * 100 + 31], 255);
    lk_image_free(&mask);
    mask = draw(box, 1, false, false, 0); /* the opposite, not grown */
    assert_int_equal(n_black(&mask), 8000 - 10 * 20);
    lk_image_free(&mask);
}

/* An ellipse lies in its box and covers pi / 4 of it; the control is its opposite, pixel by pixel. */
static void ellipses_touch_their_box(void **state) {
    (void)state;
    const double boxes[][4] = {{20, 30, 20, 24}, {70, 10, 12, 12}};
    struct lk_image keep = draw(boxes, 1, true, true, 0.25), edit = draw(boxes, 1, false, true, 0.25);
    assert_true(fabs(n_black(&keep) - 3.14159265 / 4 * 30 * 36) < 12);
    for (int i = 0; i < 8000; i++) assert_int_equal(keep.pixels[i] + edit.pixels[i], 255);
    assert_int_equal(keep.pixels[42 * 100 + 15], 0); /* its left end, beside the centre */
    assert_int_equal(keep.pixels[25 * 100 + 16], 255);
    lk_image_free(&edit);
    edit = draw(boxes, 2, true, true, 0.25);
    assert_true(fabs(n_black(&edit) - n_black(&keep) - 3.14159265 / 4 * 18 * 18) < 8);
    lk_image_free(&keep);
    lk_image_free(&edit);
}

static void what_is_no_box_is_refused(void **state) {
    (void)state;
    static const double bad[][4] = {{NAN, 0, 1, 1}, {0, 0, 0, 5}, {0, 0, 5, -1}, {0, INFINITY, 5, 5}, {0, 0, 1e300, 5}};
    const double whole[][4] = {{0, 0, 100, 80}}, outside[][4] = {{200, 200, 10, 10}},
                 most[][4] = {{0, 0, 100, 79}, {1, 79, 99, 1}};
    struct lk_image mask;
    struct lk_face_mask how = {.keep = true};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(lk_face_mask_draw(&mask, 100, 80, &bad[i], 1, &how), LK_E_INPUT, "expected X,Y,WIDTH,HEIGHT");
    assert_fails(lk_face_mask_draw(&mask, 100, 80, whole, 1, &how), LK_E_INPUT, "got 0.00 % to edit");
    assert_fails(lk_face_mask_draw(&mask, 100, 80, outside, 1, &how), LK_E_INPUT, "got 100.00 % to edit");
    assert_fails(lk_face_mask_draw(&mask, 100, 80, most, 2, &how), LK_E_INPUT, "at least 1 %");
    how.grow = 1e308;
    assert_fails(lk_face_mask_draw(&mask, 100, 80, whole, 1, &how), LK_E_USAGE, "grow");
    how.grow = NAN;
    assert_fails(lk_face_mask_draw(&mask, 100, 80, whole, 1, &how), LK_E_USAGE, "grow");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_are_grown_and_half_open),
        cmocka_unit_test(ellipses_touch_their_box),
        cmocka_unit_test(what_is_no_box_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
