/* ICC profiles of pictures that Pillow and LittleCMS wrote (tests/golden/generate_icc.py), whole, cut and damaged. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/image/image.h"
#include "tests/common/test.h"

static bool other(const char *file, char name[LK_IMAGE_PROFILE_NAME]) {
    char path[128], *bytes;
    size_t n;
    snprintf(path, sizeof path, "golden/data/icc/%s", file);
    assert_ok(lk_read_file(path, 1 << 20, &bytes, &n));
    const bool is = lk_image_other_colours(bytes, n, name);
    lk_free(bytes);
    return is;
}

static void as_written(void **state) {
    static const struct {
        const char *file, *name;
        bool other;
    } files[] = {{"plain.png", "", false},
                 {"srgb.png", "sRGB built-in", false},
                 {"srgb.jpg", "sRGB built-in", false},
                 {"srgb.webp", "sRGB built-in", false},
                 {"wide.png", "Display P3", true},
                 {"wide.jpg", "Display P3", true},
                 {"wide.webp", "Display P3", true},
                 {"split.jpg", "Large", true},
                 {"old.png", "my sRGB", true}, /* the colorants count, not the name */
                 {"grey.png", "Dot Gain 20%", true}};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char name[LK_IMAGE_PROFILE_NAME];
        print_message("%s\n", files[i].file);
        assert_int_equal(other(files[i].file, name), files[i].other);
        assert_string_equal(name, files[i].name);
    }
}

/* Every length and, in a copy of just so many bytes, every byte changed: nothing is read beyond them. */
static void damaged(void **state) {
    static const char *const files[] = {"wide.png", "wide.jpg", "wide.webp"};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[128], *bytes, name[LK_IMAGE_PROFILE_NAME];
        size_t n;
        snprintf(path, sizeof path, "golden/data/icc/%s", files[i]);
        assert_ok(lk_read_file(path, 1 << 20, &bytes, &n));
        for (size_t k = 0; k < 2 * n; k++) {
            const size_t length = k < n ? k : n;
            char *copy = lk_malloc(length + 1);
            assert_non_null(copy);
            memcpy(copy, bytes, length);
            if (k >= n) copy[k - n] ^= (char)(1 << k % 8);
            char *exact = lk_realloc(copy, length ? length : 1);
            lk_image_other_colours(exact, length, name);
            assert_true(memchr(name, 0, sizeof name) != NULL);
            lk_free(exact);
        }
        lk_free(bytes);
    }
}

/* Within a level of what ImageCms makes of it. */
static void as_image_cms(void **state) {
    (void)state;
    size_t n_pack;
    int n = 0, n_refused = 0, n_other = 0;
    char *pack = test_read("golden/data/icc/to_srgb.pack", &n_pack),
         *lines = test_read("golden/data/icc/to_srgb.txt", NULL);
    const int64_t live = lk_alloc_live();
    for (char *line, *rest = lines; (line = strtok_r(rest, "\n", &rest)); n++) {
        size_t at, bytes, pixels;
        int width, height, channels;
        char profile[32], name[32];
        struct lk_image image, stored;
        assert_int_equal(sscanf(line, "%zu %zu %zu %d %d %d %31s %31s", &at, &bytes, &pixels, &width, &height,
                                &channels, profile, name),
                         8);
        assert_ok(lk_image_decode(&stored, pack + at, bytes, name, LK_IMAGE_AS_STORED, 0));
        assert_string_equal(stored.converted_from, "");
        const enum lk_code rc = lk_image_decode(&image, pack + at, bytes, name, 0, 0);
        if (rc != (channels ? LK_OK : LK_E_IMAGE)) fail_msg("%s of %s: %d %s", name, profile, rc, lk_error_text());
        if (rc) assert_non_null(strstr(lk_error_text(), "its colour profile \""));
        n_refused += rc != LK_OK;
        lk_image_free(&stored);
        if (rc) continue;
        assert_int_equal(image.channels, channels);
        assert_true(*image.converted_from);
        for (int i = 0; i < width * height * channels; i++) {
            const int off = image.pixels[i] - (uint8_t)pack[pixels + (size_t)i];
            if (off < -1 || off > 1) fail_msg("%s of %s: value %d is off by %d", name, profile, i, off);
            n_other += off != 0;
        }
        lk_image_free(&image);
    }
    print_message("%d pictures, %d refused, %d values off by a level\n", n, n_refused, n_other);
    assert_true(n >= 60 && n_refused >= 15);
    assert_int_equal(lk_alloc_live(), live);
    free(pack);
    free(lines);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_written), cmocka_unit_test(as_image_cms),
                                       cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
