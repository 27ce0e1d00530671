/* ICC profiles of pictures that Pillow and LittleCMS wrote (tests/golden/generate_icc.py), whole, cut and damaged. */
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_written), cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
