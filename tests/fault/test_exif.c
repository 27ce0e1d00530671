/* Orientations of 1,000 made files, most of them wrong in some way, as Pillow 13's exif_transpose turns them
 * (tests/golden/generate_exif.py); memory that runs out. */
#include "tests/common/image_files.h"
#include "tests/common/test.h"

#include "engine/base/alloc.h"

/* Four levels in the corners, 32 x 16. */
static struct lk_image corners(void) {
    struct lk_image image;
    assert_ok(lk_image_new(&image, 32, 16, 1));
    for (int i = 0; i < 32 * 16; i++) image.pixels[i] = (uint8_t)(10 + 60 * (i % 32 / 16) + 120 * (i / 32 / 8));
    return image;
}

static struct bytes plain(bool jpeg) {
    struct lk_image image = corners();
    struct bytes file = {0};
    if (jpeg) {
        file = jpeg_file(&image, 1);
    } else {
        void *png;
        size_t n;
        assert_ok(lk_png_encode("corners", &image, &png, &n));
        bytes_add(&file, png, n);
        lk_free(png);
    }
    lk_image_free(&image);
    return file;
}

static struct bytes file_of(char kind, const char *hexadecimal) {
    struct bytes stored = plain(kind == 'J'), file = {0};
    const size_t at = kind == 'J' ? 2 : kind == 'P' ? 33 : stored.n - 12;
    bytes_add(&file, stored.data, at);
    for (const char *p = hexadecimal; p[0] > ' ' && p[1] > ' '; p += 2) {
        unsigned byte;
        assert_int_equal(sscanf(p, "%2x", &byte), 1);
        bytes_add(&file, &(uint8_t){(uint8_t)byte}, 1);
    }
    bytes_add(&file, stored.data + at, stored.n - at);
    bytes_free(&stored);
    return file;
}

/* By where the stored upper corners are. */
static int turned_by(const struct lk_image *image) {
    static const int places[9][2] = {{0, 0}, {0, 1}, {1, 0}, {3, 2}, {2, 3}, {0, 2}, {1, 3}, {3, 1}, {2, 0}};
    int at[4] = {-1, -1, -1, -1};
    for (int i = 0; i < 4; i++) {
        int x = i % 2 * (image->width - 1), y = i / 2 * (image->height - 1);
        at[image->pixels[y * image->width + x] / 60 % 4] = i;
    }
    for (int o = 1; o <= 8; o++)
        if (at[0] == places[o][0] && at[1] == places[o][1]) return o;
    return 0;
}

static void as_pillow(void **state) {
    (void)state;
    size_t n_bytes, n_files = 0, n_wrong = 0;
    char *text = test_read("golden/data/exif.txt", &n_bytes), *rest = NULL;
    int64_t live = lk_alloc_live();
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), n_files++) {
        const int by_pillow = line[2] - '0', expected = by_pillow ? by_pillow : 1; /* 0: Pillow raises an error */
        struct bytes file = file_of(line[0], line + 4);
        struct lk_image image;
        assert_ok(lk_image_decode(&image, file.data, file.n, "made", 1, 0));
        if (turned_by(&image) != expected) {
            print_error("line %zu: expected %d, got %d: %.300s\n", n_files + 1, expected, turned_by(&image), line);
            n_wrong++;
        }
        lk_image_free(&image);
        bytes_free(&file);
    }
    assert_int_equal(lk_alloc_live(), live);
    assert_int_equal(n_files, 1000);
    assert_int_equal(n_wrong, 0);
    free(text);
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    size_t n_bytes, n_lines = 0;
    char *text = test_read("golden/data/exif.txt", &n_bytes), *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line && n_lines < 60;
         line = strtok_r(NULL, "\n", &rest), n_lines++) {
        struct bytes file = file_of(line[0], line + 4);
        enum lk_code rc = LK_E_NOMEM;
        for (int64_t n = 1; rc == LK_E_NOMEM; n++) {
            struct lk_image image;
            int64_t live = lk_alloc_live();
            lk_alloc_fail_at(n);
            rc = lk_image_decode(&image, file.data, file.n, "made", 1, 0);
            lk_alloc_fail_at(0);
            lk_image_free(&image);
            assert_int_equal(lk_alloc_live(), live);
        }
        bytes_free(&file);
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_pillow),
        cmocka_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
