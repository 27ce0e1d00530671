/* PNG files of every format, damaged and hostile: exact pixels or exact status. */
#include "tests/common/image_files.h"
#include "tests/common/test.h"

#include <sys/stat.h>

#include "engine/base/alloc.h"

#define GREY       0
#define RGB        2
#define PALETTE    3
#define GREY_ALPHA 4
#define RGBA       6

/* Filter byte 0, then two grey pixels, twice. */
static const uint8_t grey_2x2[] = {0, 10, 20, 0, 30, 40};
static const uint8_t grey_2x2_pixels[] = {10, 20, 30, 40};

static struct bytes plain(void) { return png_file(2, 2, 8, GREY, 0, NULL, grey_2x2, sizeof grey_2x2); }

static void pixels_of(uint32_t width, uint32_t height, int depth, int color, const struct bytes *between,
                      const void *raw, size_t n_raw, int channels, const uint8_t *pixels) {
    struct bytes file = png_file(width, height, depth, color, 0, between, raw, n_raw);
    expect_pixels(&file, (int)width, (int)height, channels, pixels);
    bytes_free(&file);
}

static void refused(struct bytes file, enum lk_code code, const char *part) {
    expect_refused(&file, code, part);
    bytes_free(&file);
}

static void formats(void **state) {
    (void)state;
    pixels_of(2, 2, 8, GREY, NULL, grey_2x2, sizeof grey_2x2, 1, grey_2x2_pixels);
    pixels_of(1, 1, 8, GREY, NULL, (uint8_t[]){0, 7}, 2, 1, (uint8_t[]){7});
    pixels_of(9, 1, 1, GREY, NULL, (uint8_t[]){0, 0xa5, 0x80}, 3, 1, (uint8_t[]){255, 0, 255, 0, 0, 255, 0, 255, 255});
    pixels_of(4, 1, 2, GREY, NULL, (uint8_t[]){0, 0x1b}, 2, 1, (uint8_t[]){0, 85, 170, 255});
    pixels_of(3, 1, 4, GREY, NULL, (uint8_t[]){0, 0x0f, 0x70}, 3, 1, (uint8_t[]){0, 255, 119});
    /* 16-bit grey is cut off at 255, other 16-bit samples lose their low byte: both as Pillow */
    pixels_of(3, 1, 16, GREY, NULL, (uint8_t[]){0, 0, 99, 1, 0, 0xff, 0xff}, 7, 1, (uint8_t[]){99, 255, 255});
    pixels_of(1, 1, 16, RGB, NULL, (uint8_t[]){0, 1, 200, 2, 0, 255, 1}, 7, 3, (uint8_t[]){1, 2, 255});
    pixels_of(1, 1, 16, GREY_ALPHA, NULL, (uint8_t[]){0, 8, 255, 9, 0}, 5, 2, (uint8_t[]){8, 9});
    pixels_of(1, 1, 16, RGBA, NULL, (uint8_t[]){0, 1, 0, 2, 0, 3, 0, 4, 255}, 9, 4, (uint8_t[]){1, 2, 3, 4});
    pixels_of(1, 1, 8, GREY_ALPHA, NULL, (uint8_t[]){0, 8, 9}, 3, 2, (uint8_t[]){8, 9});
    pixels_of(1, 1, 8, RGBA, NULL, (uint8_t[]){0, 1, 2, 3, 0}, 5, 4, (uint8_t[]){1, 2, 3, 0});
}

static void filters(void **state) {
    (void)state;
    /* none, sub, up, average, Paeth; each row undoes to 1 2 3 */
    pixels_of(3, 5, 8, GREY, NULL, (uint8_t[]){0, 1, 2, 3, 1, 1, 1, 1, 2, 0, 0, 0, 3, 1, 1, 1, 4, 0, 0, 0}, 20, 1,
              (uint8_t[]){1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3});
    refused(png_file(1, 1, 8, GREY, 0, NULL, (uint8_t[]){5, 1}, 2), LK_E_IMAGE, "bad adaptive filter");
}

static void palettes(void **state) {
    (void)state;
    struct bytes colors = {0}, with_alpha = {0}, odd = {0}, key = {0};
    png_chunk(&colors, "PLTE", (uint8_t[]){1, 2, 3, 4, 5, 6}, 6);
    bytes_add(&with_alpha, colors.data, colors.n);
    png_chunk(&with_alpha, "tRNS", (uint8_t[]){77}, 1);
    png_chunk(&odd, "PLTE", (uint8_t[]){1, 2, 3, 4}, 4);
    png_chunk(&key, "tRNS", (uint8_t[]){0, 1, 0, 2, 0, 3}, 6);
    pixels_of(2, 1, 1, PALETTE, &colors, (uint8_t[]){0, 0x40}, 2, 3, (uint8_t[]){1, 2, 3, 4, 5, 6});
    pixels_of(2, 1, 8, PALETTE, &with_alpha, (uint8_t[]){0, 1, 0}, 3, 4, (uint8_t[]){4, 5, 6, 255, 1, 2, 3, 77});
    /* an index past the palette is black */
    pixels_of(2, 1, 4, PALETTE, &colors, (uint8_t[]){0, 0x1f}, 2, 3, (uint8_t[]){4, 5, 6, 0, 0, 0});
    /* a transparent colour is not alpha */
    pixels_of(1, 1, 8, RGB, &key, (uint8_t[]){0, 1, 2, 3}, 4, 3, (uint8_t[]){1, 2, 3});
    refused(png_file(1, 1, 8, PALETTE, 0, NULL, (uint8_t[]){0, 0}, 2), LK_E_IMAGE, "PLTE");
    refused(png_file(1, 1, 8, PALETTE, 0, &odd, (uint8_t[]){0, 0}, 2), LK_E_IMAGE, "PLTE");
    struct bytes file = png_file(2, 1, 1, PALETTE, 0, &colors, (uint8_t[]){0, 0x40}, 2);
    struct lk_image image;
    assert_ok(lk_image_decode(&image, file.data, file.n, "palette", 0, 0));
    assert_true(image.nearest_only);
    lk_image_free(&image);
    bytes_free(&file);
    bytes_free(&colors);
    bytes_free(&with_alpha);
    bytes_free(&odd);
    bytes_free(&key);
}

static void interlaced(void **state) {
    (void)state;
    /* 3 x 3: passes 1 (0,0), 4 (2,0), 5 (row 2: x 0, 2), 6 (x 1 of rows 0, 2), 7 (row 1) */
    static const uint8_t raw[] = {0, 1, 0, 3, 0, 7, 9, 0, 2, 0, 8, 0, 4, 5, 6};
    struct bytes file = png_file(3, 3, 8, GREY, 1, NULL, raw, sizeof raw);
    expect_pixels(&file, 3, 3, 1, (uint8_t[]){1, 2, 3, 4, 5, 6, 7, 8, 9});
    bytes_free(&file);
    refused(png_file(3, 3, 8, GREY, 1, NULL, raw, 7), LK_E_IMAGE, "Not enough image data");
    refused(png_file(3, 3, 8, GREY, 2, NULL, raw, sizeof raw), LK_E_IMAGE, "IHDR");
}

static void every_truncation_is_refused(void **state) {
    (void)state;
    struct bytes whole = plain();
    for (size_t n = 0; n < whole.n; n++) {
        struct bytes cut = {whole.data, n};
        expect_refused(&cut, LK_E_IMAGE, n ? "" : "empty");
    }
    bytes_free(&whole);
}

static void every_bad_crc_is_refused(void **state) {
    (void)state;
    struct bytes text = {0};
    png_chunk(&text, "tEXt", "Title\0a cat", 11);
    struct bytes whole = png_file(2, 2, 8, GREY, 0, &text, grey_2x2, sizeof grey_2x2);
    expect_pixels(&whole, 2, 2, 1, grey_2x2_pixels);
    static const char *const types[] = {"IHDR", "tEXt", "IDAT", "IEND"};
    for (int i = 0; i < 4; i++) {
        size_t at = bytes_find(&whole, types[i], 4), length = (size_t)whole.data[at - 1];
        whole.data[at + 4 + length] ^= 1;
        expect_refused(&whole, LK_E_IMAGE, "CRC");
        expect_refused(&whole, LK_E_IMAGE, types[i]);
        struct lk_png_text *texts;
        assert_fails(lk_png_text_parse(whole.data, whole.n, "made.bin", &texts), LK_E_METADATA, "CRC");
        assert_non_null(strstr(lk_error_text(), types[i]));
        whole.data[at + 4 + length] ^= 1;
    }
    bytes_free(&text);
    bytes_free(&whole);
}

static void refused_with(const struct bytes *between, const char *part) {
    refused(png_file(2, 2, 8, GREY, 0, between, grey_2x2, sizeof grey_2x2), LK_E_IMAGE, part);
}

static void damaged_structure(void **state) {
    (void)state;
    struct bytes file = {0}, between = {0};
    png_begin(&file);
    png_header(&file, 2, 2, 8, GREY, 0);
    png_chunk(&file, "IEND", NULL, 0);
    refused(file, LK_E_IMAGE, "");
    file = (struct bytes){0};
    png_begin(&file);
    png_data(&file, grey_2x2, sizeof grey_2x2);
    png_chunk(&file, "IEND", NULL, 0);
    refused(file, LK_E_IMAGE, "header");
    png_chunk(&between, "ABCD", "x", 1);
    refused_with(&between, "critical chunk");
    bytes_free(&between);
    png_header(&between, 2, 2, 8, GREY, 0);
    refused_with(&between, "");
    bytes_free(&between);
    bytes_add(&between, "\xff\xff\xff\xfftEXt", 8);
    refused_with(&between, "the chunk after IHDR: ");
    bytes_free(&between);
    refused(png_file(2, 2, 3, GREY, 0, NULL, grey_2x2, sizeof grey_2x2), LK_E_IMAGE, "IHDR");
    refused(png_file(2, 2, 8, 5, 0, NULL, grey_2x2, sizeof grey_2x2), LK_E_IMAGE, "IHDR");
    refused(png_file(2, 2, 4, RGB, 0, NULL, grey_2x2, sizeof grey_2x2), LK_E_IMAGE, "IHDR");
    refused(png_file(2, 3, 8, GREY, 0, NULL, grey_2x2, sizeof grey_2x2), LK_E_IMAGE, "IEND: Not enough image data");
    file = (struct bytes){0};
    png_begin(&file);
    png_header(&file, 2, 2, 8, GREY, 0);
    png_chunk(&file, "IDAT", "not a zlib stream", 17);
    png_chunk(&file, "IEND", NULL, 0);
    refused(file, LK_E_IMAGE, "IDAT");
}

static void odd_but_whole(void **state) {
    (void)state;
    struct bytes file = plain(), split = {0};
    bytes_add(&file, "and more", 8); /* after the end */
    expect_pixels(&file, 2, 2, 1, grey_2x2_pixels);
    size_t at = bytes_find(&file, "IDAT", 4), length = file.data[at - 1];
    png_begin(&split);
    png_header(&split, 2, 2, 8, GREY, 0);
    for (size_t i = 0; i < length; i++) png_chunk(&split, "IDAT", file.data + at + 4 + i, 1);
    png_chunk(&split, "IEND", NULL, 0);
    expect_pixels(&split, 2, 2, 1, grey_2x2_pixels);
    bytes_free(&split);
    bytes_free(&file);
}

static void sizes(void **state) {
    (void)state;
    static uint8_t raw[65537], pixels[65535];
    for (size_t i = 0; i < 65535; i++) raw[i + 1] = pixels[i] = (uint8_t)(i * 7);
    pixels_of(65500, 1, 8, GREY, NULL, raw, 65501, 1, pixels);
    pixels_of(65535, 1, 8, GREY, NULL, raw, 65536, 1, pixels);
    refused(png_file(65536, 1, 8, GREY, 0, NULL, raw, 65537), LK_E_IMAGE_SIZE, "65535");
    refused(png_file(0, 1, 8, GREY, 0, NULL, raw, 1), LK_E_IMAGE_SIZE, "0 x 1");
    refused(png_file(0xffffffff, 0xffffffff, 8, RGBA, 0, NULL, raw, 1), LK_E_IMAGE_SIZE, "4294967295");
    struct bytes file = plain();
    struct lk_image image;
    assert_fails(lk_image_decode(&image, file.data, file.n, "made.bin", 0, 3), LK_E_IMAGE_SIZE, "at most 3 pixels");
    bytes_free(&file);
}

static void bombs_are_refused_before_allocation(void **state) {
    (void)state;
    static const uint8_t raw[100000];
    int64_t n = lk_alloc_count();
    refused(png_file(30000, 30000, 8, RGB, 0, NULL, raw, sizeof raw), LK_E_IMAGE_SIZE, "900000000");
    refused(png_file(13000, 13000, 8, RGB, 0, NULL, raw, sizeof raw), LK_E_IMAGE, "cannot hold them");
    refused(png_file(13000, 13000, 16, RGBA, 1, NULL, raw, sizeof raw), LK_E_IMAGE, "cannot hold them");
    assert_int_equal(lk_alloc_count(), n);
}

/* 64 MB of zeros behind a tiny picture, in its data and in its text: skipped, not unpacked. */
static void hidden_bombs_cost_nothing(void **state) {
    (void)state;
    size_t n = (size_t)64 << 20;
    uint8_t *zeros = calloc(1, n);
    assert_non_null(zeros);
    zeros[1] = 9;
    struct bytes file = png_file(1, 1, 8, GREY, 0, NULL, zeros, n), text = {0}, packed = {0};
    expect_pixels(&file, 1, 1, 1, (uint8_t[]){9});
    bytes_free(&file);
    png_data(&packed, zeros, n);
    free(zeros);
    bytes_add(&text, "Title\0", 7);
    bytes_add(&text, packed.data + 8, packed.n - 12);
    bytes_free(&packed);
    png_chunk(&packed, "zTXt", text.data, text.n);
    file = png_file(2, 2, 8, GREY, 0, &packed, grey_2x2, sizeof grey_2x2);
    expect_pixels(&file, 2, 2, 1, grey_2x2_pixels);
    struct lk_png_text *texts;
    assert_fails(lk_png_text_parse(file.data, file.n, "made.bin", &texts), LK_E_METADATA, "16 MiB");
    bytes_free(&file);
    bytes_free(&text);
    bytes_free(&packed);
}

static void damaged_texts(void **state) {
    (void)state;
    static const struct {
        const char *type, *body;
        size_t n;
        const char *part;
    } cases[] = {
        {"tEXt", LITERAL("no key"), "no key"},
        {"tEXt", LITERAL("\0text"), "empty or too long"},
        {"tEXt", LITERAL("Title\0a\0b"), "NUL"},
        {"zTXt", LITERAL("Title\0\1abc"), "compression"},
        {"zTXt", LITERAL("Title\0\0abc"), "inflate"},
        {"zTXt", LITERAL("Title\0"), "compression"},
        {"iTXt", LITERAL("Title\0\0"), "too short"},
        {"iTXt", LITERAL("Title\0\0\0en"), "too short"},
        {"iTXt", LITERAL("Title\0\2\0\0\0x"), "compression"},
        {"iTXt", LITERAL("Title\0\0\0\0\0\xff"), "UTF-8"},
        {"iTXt", LITERAL("Title\0\0\0\0\0\xed\xa0\x80"), "UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes text = {0};
        png_chunk(&text, cases[i].type, cases[i].body, cases[i].n);
        struct bytes file = png_file(2, 2, 8, GREY, 0, &text, grey_2x2, sizeof grey_2x2);
        struct lk_png_text *texts;
        assert_fails(lk_png_text_parse(file.data, file.n, "made.bin", &texts), LK_E_METADATA, cases[i].part);
        assert_non_null(strstr(lk_error_text(), cases[i].type));
        assert_null(texts);
        expect_pixels(&file, 2, 2, 1, grey_2x2_pixels); /* the picture itself is whole */
        bytes_free(&file);
        bytes_free(&text);
    }
}

static void files_by_name(void **state) {
    (void)state;
    struct lk_image image;
    struct bytes file = plain();
    const char *wrong = test_path("a-png-named.jpg"), *fifo = test_path("image-fifo");
    test_write(wrong, file.data, file.n);
    assert_ok(lk_image_read(&image, wrong, 1, 0));
    assert_memory_equal(image.pixels, grey_2x2_pixels, 4);
    lk_image_free(&image);
    bytes_free(&file);
    test_write(wrong, "GIF89a not ours", 15);
    assert_fails(lk_image_read(&image, wrong, 1, 0), LK_E_IMAGE, "got ");
    test_write(wrong, "", 0);
    assert_fails(lk_image_read(&image, wrong, 1, 0), LK_E_IMAGE, "empty");
    assert_fails(lk_image_read(&image, test_path("."), 1, 0), LK_E_NOT_REGULAR, "folder");
    assert_fails(lk_image_read(&image, test_path("no-such-image.png"), 1, 0), LK_E_NOT_FOUND, "no-such-image");
    remove(fifo);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_fails(lk_image_read(&image, fifo, 1, 0), LK_E_NOT_REGULAR, "regular");
    remove(fifo);
    remove(wrong);
    n_image_files += 6;
}

static void enough_files(void **state) {
    (void)state;
    assert_true(n_image_files >= 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats),
        cmocka_unit_test(filters),
        cmocka_unit_test(palettes),
        cmocka_unit_test(interlaced),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(every_bad_crc_is_refused),
        cmocka_unit_test(damaged_structure),
        cmocka_unit_test(odd_but_whole),
        cmocka_unit_test(sizes),
        cmocka_unit_test(bombs_are_refused_before_allocation),
        cmocka_unit_test(hidden_bombs_cost_nothing),
        cmocka_unit_test(damaged_texts),
        cmocka_unit_test(files_by_name),
        cmocka_unit_test(enough_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
