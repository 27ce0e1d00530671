/* Pictures with texts in PNG, JPEG and WebP: what is written is read back, whole, cut off and damaged. Pillow reads the
 * same block: Image.getexif() has the comment under 0x9286 of 0x8769. */
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/image/image.h"
#include "tests/common/test.h"

static const char *text_of(const struct lk_png_text *texts, const char *key) {
    for (; texts->key; texts++)
        if (!strcmp(texts->key, key)) return texts->text;
    return NULL;
}

static struct lk_image drawn(int channels) {
    struct lk_image image;
    assert_ok(lk_image_new(&image, 37, 21, channels));
    for (int i = 0; i < 37 * 21 * channels; i++) image.pixels[i] = (uint8_t)(i * 3);
    return image;
}

static void written_is_read(void **state) {
    (void)state;
    static const char *const names[] = {"a.png", "a.jpg", "a.JPEG", "a.webp"};
    enum { LONG = 150000 };
    char *longer = lk_calloc(1, LONG + 1);
    memset(longer, 'x', LONG);
    const char *const texts[] = {"", "a", "plain: text, with a colon",
                                 "Gr\xc3\xbc\xc3\x9f \xe7\x8c\xab \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf", longer};
    struct lk_image image = drawn(3);
    for (size_t f = 0; f < sizeof names / sizeof *names; f++)
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
                const char *path = test_path(names[f]);
                const struct lk_png_text in[] = {{"parameters", texts[i]}, {"likeness", texts[k]}};
                struct lk_png_text *out;
                struct lk_image back;
                assert_ok(lk_picture_write(path, &image, 90, in, 2));
                assert_ok(lk_picture_text_read(path, &out));
                assert_string_equal(text_of(out, "parameters"), texts[i]);
                assert_string_equal(text_of(out, "likeness"), texts[k]);
                lk_png_text_free(out);
                assert_ok(lk_image_read(&back, path, 1, 0));
                assert_int_equal(back.width, image.width);
                assert_int_equal(back.height, image.height);
                lk_image_free(&back);
            }
    /* 100 in WebP loses nothing */
    struct lk_image back;
    assert_ok(lk_picture_write(test_path("a.webp"), &image, 100, NULL, 0));
    assert_ok(lk_image_read(&back, test_path("a.webp"), 0, 0));
    assert_memory_equal(back.pixels, image.pixels, 37 * 21 * 3);
    lk_image_free(&back);
    lk_image_free(&image);
    lk_free(longer);
}

static void refused(void **state) {
    (void)state;
    const struct lk_png_text bad[] = {{"parameters", "\xff"}}, many[] = {{"a", "b"}, {"c", "d"}};
    struct lk_image rgb = drawn(3), rgba = drawn(4);
    assert_fails(lk_picture_write(test_path("b.jpg"), &rgb, 0, NULL, 0), LK_E_USAGE, "quality of 1 to 100");
    assert_fails(lk_picture_write(test_path("b.webp"), &rgb, 101, NULL, 0), LK_E_USAGE, "quality of 1 to 100");
    assert_fails(lk_picture_write(test_path("b.webp"), &rgba, 90, NULL, 0), LK_E_IMAGE, "without alpha");
    assert_fails(lk_picture_write(test_path("b.jpg"), &rgb, 90, bad, 1), LK_E_METADATA, "UTF-8");
    assert_fails(lk_picture_write(test_path("b.jpg"), &rgb, 90, many, 2), LK_E_METADATA, "one text beside");
    lk_image_free(&rgb);
    lk_image_free(&rgba);
}

/* Every length, every byte changed, in a block of just so many bytes; and every allocation refused in turn. */
static void damaged(void **state) {
    (void)state;
    const int64_t live = lk_alloc_live();
    const struct lk_png_text in[] = {{"parameters", "\xe7\x8c\xab"}, {"likeness", "{}"}};
    struct lk_image image = drawn(3);
    for (enum lk_picture_format format = LK_PICTURE_JPEG; format <= LK_PICTURE_WEBP; format++) {
        void *bytes;
        size_t n;
        enum lk_code rc = LK_E_NOMEM;
        for (int64_t i = 1; rc; i++) {
            lk_alloc_fail_at(i);
            rc = lk_picture_encode("made", &image, format, 80, in, 2, &bytes, &n);
            lk_alloc_fail_at(0);
            assert_true(!rc || rc == LK_E_NOMEM);
        }
        for (size_t k = 0; k < 2 * n; k++) {
            const size_t length = k < n ? k : n;
            struct lk_png_text *out = NULL;
            char *copy = lk_malloc(length + 1);
            memcpy(copy, bytes, length);
            if (k >= n) copy[k - n] ^= (char)(1 << k % 8);
            char *exact = lk_realloc(copy, length ? length : 1);
            if (!lk_picture_text_parse(exact, length, "made", &out)) lk_png_text_free(out);
            lk_free(exact);
        }
        rc = LK_E_NOMEM;
        for (int64_t i = 1; rc; i++) {
            struct lk_png_text *out;
            lk_alloc_fail_at(i);
            rc = lk_picture_text_parse(bytes, n, "made", &out);
            lk_alloc_fail_at(0);
            assert_true(!rc || rc == LK_E_NOMEM);
            if (!rc) lk_png_text_free(out);
        }
        lk_free(bytes);
    }
    lk_image_free(&image);
    assert_int_equal(lk_alloc_live(), live);
}

/* Two pixels of 16-bit grey, 3 and 0x1234 or 0xff; RGBA and grey with an alpha that is used or not. */
static void unseen_is_named(void **state) {
    (void)state;
    static const uint8_t wide[] = {137, 80, 78, 71, 13, 10,  26,  10, 0,  0,  0,  13,  73,  72,  68, 82,  0, 0,
                                   0,   2,  0,  0,  0,  1,   16,  0,  0,  0,  0,  129, 217, 252, 21, 0,   0, 0,
                                   13,  73, 68, 65, 84, 120, 218, 99, 96, 96, 22, 50,  1,   0,   0,  102, 0, 74,
                                   196, 30, 9,  29, 0,  0,   0,   0,  73, 69, 78, 68,  174, 66,  96, 130},
                         narrow[] = {137, 80, 78,  71,  13, 10,  26,  10, 0,  0,  0,   13,  73,  72,  68, 82, 0, 0,
                                     0,   2,  0,   0,   0,  1,   16,  0,  0,  0,  0,   129, 217, 252, 21, 0,  0, 0,
                                     13,  73, 68,  65,  84, 120, 218, 99, 96, 96, 102, 248, 15,  0,   1,  13, 1, 3,
                                     208, 12, 178, 233, 0,  0,   0,   0,  73, 69, 78,  68,  174, 66,  96, 130};
    test_write(test_path("wide.png"), (const char *)wide, sizeof wide);
    assert_non_null(strstr(lk_image_file_unseen(test_path("wide.png")), "16 bits"));
    test_write(test_path("narrow.png"), (const char *)narrow, sizeof narrow);
    assert_null(lk_image_file_unseen(test_path("narrow.png")));
    assert_null(lk_image_file_unseen(test_path("none.png")));
    for (int channels = 1; channels <= 4; channels++) {
        struct lk_image image;
        assert_ok(lk_image_new(&image, 2, 1, channels));
        memset(image.pixels, 255, (size_t)channels * 2);
        image.pixels[0] = 7;
        assert_ok(lk_picture_write(test_path("a.png"), &image, 90, NULL, 0));
        assert_null(lk_image_file_unseen(test_path("a.png")));
        image.pixels[2 * channels - 1] = 254;
        assert_ok(lk_picture_write(test_path("a.png"), &image, 90, NULL, 0));
        const char *unseen = lk_image_file_unseen(test_path("a.png"));
        assert_true(channels % 2 ? !unseen : unseen && strstr(unseen, "transparent"));
        lk_image_free(&image);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(written_is_read), cmocka_unit_test(refused),
                                       cmocka_unit_test(damaged), cmocka_unit_test(unseen_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
