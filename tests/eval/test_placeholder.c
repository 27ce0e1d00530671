/* Placeholders of safety filters: what each rule takes, and what it leaves. */
#include <stdlib.h>
#include <string.h>

#include "eval/hosted/images.h"
#include "tests/common/test.h"

/* A picture of noise around a value. */
static struct lk_picture_signs signs_of(int channels, int value, int spread, const char *model, const char *prompt) {
    struct lk_image image;
    struct lk_picture_signs signs;
    unsigned state = 7;
    assert_ok(lk_image_new(&image, 16, 12, channels));
    for (int i = 0; i < 16 * 12 * channels; i++) {
        state = state * 1103515245u + 12345u;
        const int alpha = (channels == 2 || channels == 4) && i % channels == channels - 1;
        image.pixels[i] = (uint8_t)(alpha ? 255 : value + (spread ? (int)(state >> 16) % (spread + 1) : 0));
    }
    assert_ok(lk_picture_signs_of(&image, &signs));
    lk_image_free(&image);
    signs.model = model, signs.prompt = prompt;
    return signs;
}

static void one_picture_alone(void **state) {
    (void)state;
    static const int channels[] = {1, 2, 3, 4};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(signs_of(channels[i], 0, 0, "m", "p").placeholder, LK_PLACEHOLDER_BLACK);
        assert_int_equal(signs_of(channels[i], 0, 2, "m", "p").placeholder, LK_PLACEHOLDER_BLACK);
        assert_int_equal(signs_of(channels[i], 3, 0, "m", "p").placeholder, LK_PLACEHOLDER_BLANK);
        assert_int_equal(signs_of(channels[i], 200, 4, "m", "p").placeholder, LK_PLACEHOLDER_BLANK);
        assert_int_equal(signs_of(channels[i], 0, 40, "m", "p").placeholder, LK_NO_PLACEHOLDER); /* dark is not black */
        assert_int_equal(signs_of(channels[i], 200, 5, "m", "p").placeholder, LK_NO_PLACEHOLDER);
    }
}

static void beside_others(void **state) {
    (void)state;
    struct lk_picture_signs list[] = {
        signs_of(3, 10, 100, "a", "1"), signs_of(3, 10, 100, "a", "2"), /* one picture for two prompts */
        signs_of(3, 10, 101, "a", "1"), signs_of(3, 10, 101, "a", "1"), /* two seeds of one prompt */
        signs_of(3, 10, 100, "b", "1"),                                 /* another model */
        signs_of(3, 0, 0, "a", "3"),    signs_of(3, 0, 0, "a", "4"),    /* black stays black */
        signs_of(3, 100, 8, "a", "5"),
    };
    assert_ok(lk_picture_signs_compare(list, sizeof list / sizeof *list));
    static const enum lk_placeholder expected[] = {
        LK_PLACEHOLDER_REPEATED, LK_PLACEHOLDER_REPEATED, LK_NO_PLACEHOLDER,    LK_NO_PLACEHOLDER,
        LK_NO_PLACEHOLDER,       LK_PLACEHOLDER_BLACK,    LK_PLACEHOLDER_BLACK, LK_NO_PLACEHOLDER};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        assert_int_equal(list[i].placeholder, expected[i]);
        assert_int_equal(list[i].blurred, i == 7);
    }
}

/* A model that answers every repeat with one picture is named; not one where a single prompt has two, or none has. */
static void repeats_of_one_picture(void **state) {
    (void)state;
    struct lk_picture_signs list[] = {
        signs_of(3, 10, 100, "one", "1"), signs_of(3, 10, 101, "one", "2"),  signs_of(3, 10, 100, "one", "1"),
        signs_of(3, 10, 101, "one", "2"), signs_of(3, 10, 102, "one", "3"),  signs_of(3, 0, 0, "one", "4"),
        signs_of(3, 0, 1, "one", "4"),    signs_of(3, 10, 100, "two", "1"),  signs_of(3, 10, 100, "two", "1"),
        signs_of(3, 10, 100, "two", "2"), signs_of(3, 10, 101, "two", "2"),  signs_of(3, 10, 100, "single", "1"),
        signs_of(3, 10, 102, "two", "3"), signs_of(3, 10, 100, "free", "1"), signs_of(3, 10, 101, "free", "1"),
        signs_of(3, 0, 0, "black", "1"),  signs_of(3, 0, 0, "black", "1"),
    };
    enum { N = sizeof list / sizeof *list };
    for (int i = 0; i < N; i++) list[i].asked = (uint64_t)atoi(list[i].prompt);
    struct lk_picture_signs without[N];
    memcpy(without, list, sizeof list);
    assert_int_equal(lk_picture_signs_repeats(list, N), 1);
    assert_int_equal(lk_picture_signs_repeats(without, 0), 0);
    for (int i = 0; i < N; i++) without[i].asked = 0;
    assert_int_equal(lk_picture_signs_repeats(without, N), 0);
}

/* Placeholders are not what others are compared with: most of these are black, and none is blurred. */
static void sharpness_is_of_pictures(void **state) {
    (void)state;
    struct lk_picture_signs list[] = {
        signs_of(3, 0, 0, "a", "1"),    signs_of(3, 0, 1, "a", "2"),    signs_of(3, 1, 1, "a", "3"),
        signs_of(3, 10, 100, "a", "4"), signs_of(3, 10, 101, "a", "5"), signs_of(3, 100, 8, "a", "6"),
    };
    assert_ok(lk_picture_signs_compare(list, sizeof list / sizeof *list));
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) assert_int_equal(list[i].blurred, i == 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_picture_alone), cmocka_unit_test(beside_others),
                                       cmocka_unit_test(sharpness_is_of_pictures),
                                       cmocka_unit_test(repeats_of_one_picture)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
