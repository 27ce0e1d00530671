/* JPEG files of every kind, damaged and hostile: exact pixels or exact status. Pixels that stand here are those of flat
 * colours, which survive the DCT; photographs are compared with Pillow in tests/golden/test_image.c. */
#include "tests/common/image_files.h"
#include "tests/common/test.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/alloc.h"

/* A picture of one colour. */
static struct lk_image flat(int width, int height, int channels, const uint8_t *color) {
    struct lk_image image;
    assert_ok(lk_image_new(&image, width, height, channels));
    for (int i = 0; i < width * height; i++) memcpy(image.pixels + i * channels, color, (size_t)channels);
    return image;
}

static struct bytes flat_file(int width, int height, int channels, const uint8_t *color, int n_scans) {
    struct lk_image image = flat(width, height, channels, color);
    struct bytes file = jpeg_file(&image, n_scans);
    lk_image_free(&image);
    return file;
}

static void expect_flat(const struct bytes *file, int width, int height, int channels, const uint8_t *color) {
    struct lk_image image = flat(width, height, channels, color);
    expect_pixels(file, width, height, channels, image.pixels);
    lk_image_free(&image);
}

static void refused(struct bytes file, enum lk_code code, const char *part) {
    expect_refused(&file, code, part);
    bytes_free(&file);
}

static const uint8_t grey[] = {128}, grey_rgb[] = {128, 128, 128};

static void kinds(void **state) {
    (void)state;
    static const int sizes[][2] = {{1, 1}, {8, 8}, {17, 9}, {1, 40}, {65500, 1}, {1, 65500}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct bytes file = flat_file(sizes[i][0], sizes[i][1], 3, grey_rgb, 1);
        expect_flat(&file, sizes[i][0], sizes[i][1], 3, grey_rgb);
        bytes_free(&file);
        file = flat_file(sizes[i][0], sizes[i][1], 1, grey, 10);
        expect_flat(&file, sizes[i][0], sizes[i][1], 1, grey);
        bytes_free(&file);
    }
}

/* Adobe's inks are stored inverted: 255 is no ink. */
static void inks(void **state) {
    (void)state;
    struct bytes file = flat_file(9, 5, 4, (uint8_t[]){128, 128, 128, 128}, 1);
    expect_flat(&file, 9, 5, 3, (uint8_t[]){64, 64, 64}); /* half the light through half the black */
    /* the same samples called YCCK: Y 128 and no chroma is 128 of each, and inverted back */
    file.data[bytes_find(&file, "Adobe", 5) + 11] = 2;
    expect_flat(&file, 9, 5, 3, (uint8_t[]){64, 64, 64});
    bytes_free(&file);
    file = flat_file(9, 5, 4, (uint8_t[]){128, 128, 128, 128}, 5);
    expect_flat(&file, 9, 5, 3, (uint8_t[]){64, 64, 64});
    bytes_free(&file);
}

/* Puts an APP1 segment behind SOI. */
static struct bytes with_app1(const struct bytes *file, const void *body, size_t n) {
    struct bytes out = {0};
    bytes_add(&out, file->data, 2);
    bytes_add(&out, (uint8_t[]){0xff, 0xe1, (uint8_t)((n + 2) >> 8), (uint8_t)(n + 2)}, 4);
    bytes_add(&out, body, n);
    bytes_add(&out, file->data + 2, file->n - 2);
    return out;
}

/* A 16 x 8 picture, left half dark: what each orientation makes of it, as (x, y) of a dark corner and the sides. */
static void orientations(void **state) {
    (void)state;
    struct lk_image image = flat(16, 8, 1, grey);
    for (int y = 0; y < 8; y++) memset(image.pixels + y * 16, 32, 8);
    struct bytes file = jpeg_file(&image, 1);
    static const char *const dark_side[9] = {"left", "left", "right",  "right", "left",
                                             "top",  "top",  "bottom", "bottom"};
    for (int orientation = 0; orientation <= 9; orientation++) {
        for (int big_endian = 0; big_endian < 2; big_endian++) {
            uint8_t little[] = "Exif\0\0II*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0\0?\0\0\0\0\0\0\0";
            uint8_t big[] = "Exif\0\0MM\0*\0\0\0\10\0\1\1\x12\0\3\0\0\0\1\0?\0\0\0\0\0\0";
            little[24] = big[25] = (uint8_t)orientation;
            struct bytes tagged = with_app1(&file, big_endian ? big : little, sizeof little - 1);
            const char *side = dark_side[orientation <= 8 ? orientation : 0];
            bool upright = *side == 'l' || *side == 'r';
            struct lk_image expected = flat(upright ? 16 : 8, upright ? 8 : 16, 1, grey);
            for (int y = 0; y < expected.height; y++)
                for (int x = 0; x < expected.width; x++)
                    if (*side == 'l' ? x < 8 : *side == 'r' ? x >= 8 : *side == 't' ? y < 8 : y >= 8)
                        expected.pixels[y * expected.width + x] = 32;
            expect_pixels(&tagged, expected.width, expected.height, 1, expected.pixels);
            lk_image_free(&expected);
            bytes_free(&tagged);
        }
    }
    bytes_free(&file);
    lk_image_free(&image);
}

static void broken_exif_is_ignored(void **state) {
    (void)state;
    static const struct {
        const char *body;
        size_t n;
    } cases[] = {
        {LITERAL("Exif\0\0")},
        {LITERAL("Exif\0\0II*\0")},
        {LITERAL("Exif\0\0II*\0\xff\xff\xff\xff")},
        {LITERAL("Exif\0\0II*\0\10\0\0\0\xff\xff")},
        {LITERAL("Exif\0\0II*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0\0")},
        {LITERAL("Exif\0\0XX*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0")},
        {LITERAL("Exif\0\0II*\0\10\0\0\0\1\0\x12\1\2\0\1\0\0\0\6\0\0\0")},
        {LITERAL("http://ns.adobe.com/xap/1.0/\0<x tiff:Orientation")},
        {LITERAL("http://ns.adobe.com/xap/1.0/\0<x tiff:Orientation=\"")},
    };
    struct bytes file = flat_file(9, 5, 1, grey, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes tagged = with_app1(&file, cases[i].body, cases[i].n);
        expect_flat(&tagged, 9, 5, 1, grey);
        bytes_free(&tagged);
    }
    bytes_free(&file);
}

/* Up to the end of the pixels' data; the end marker behind it may be missing, as in Pillow. */
static void every_truncation_is_refused(void **state) {
    (void)state;
    for (int progressive = 0; progressive < 2; progressive++) {
        struct bytes whole = flat_file(64, 64, 3, (uint8_t[]){10, 200, 90}, progressive ? 6 : 1);
        for (size_t n = 0; n + 3 < whole.n; n++) {
            struct bytes cut = {whole.data, n};
            expect_refused(&cut, LK_E_IMAGE, n > 3 ? "truncated" : "");
        }
        bytes_free(&whole);
    }
}

static struct bytes patched(const struct bytes *file, unsigned char marker, size_t offset, uint8_t value) {
    struct bytes out = {0};
    bytes_add(&out, file->data, file->n);
    out.data[bytes_find(&out, (uint8_t[]){0xff, marker}, 2) + offset] = value;
    return out;
}

/* Offsets from a marker: 2 length, 4 precision, 5 height, 7 width, 9 components, 10 first id, sampling, table. */
static void damaged_headers(void **state) {
    (void)state;
    struct bytes file = flat_file(16, 16, 3, grey_rgb, 1), out = {0};
    refused(patched(&file, 0xc0, 4, 12), LK_E_IMAGE, ": Unsupported JPEG data precision");
    refused(patched(&file, 0xc0, 6, 0), LK_E_IMAGE, "Empty");
    refused(patched(&file, 0xc0, 8, 0), LK_E_IMAGE, "Empty");
    refused(patched(&file, 0xc0, 9, 2), LK_E_IMAGE, "SOF0: ");
    refused(patched(&file, 0xc0, 9, 0), LK_E_IMAGE, "");
    refused(patched(&file, 0xc0, 11, 0), LK_E_IMAGE, "sampling");
    refused(patched(&file, 0xc0, 11, 0x55), LK_E_IMAGE, "sampling");
    refused(patched(&file, 0xc0, 12, 3), LK_E_IMAGE, "uantization");
    refused(patched(&file, 0xc0, 1, 0xc3), LK_E_IMAGE, "SOF"); /* lossless */
    refused(patched(&file, 0xc0, 1, 0xc7), LK_E_IMAGE, "SOF"); /* differential */
    refused(patched(&file, 0xc0, 1, 0xfe), LK_E_IMAGE, "");    /* the frame header made a comment */
    refused(patched(&file, 0xc4, 5, 255), LK_E_IMAGE, "DHT: Bogus Huffman");
    refused(patched(&file, 0xda, 4, 5), LK_E_IMAGE, "SOS: ");
    refused(patched(&file, 0xdb, 1, 0xfe), LK_E_IMAGE, "SOS: Quantization");
    refused(patched(&file, 0xe0, 2, 0xff), LK_E_IMAGE, ""); /* a segment longer than the file */
    /* two frame headers */
    size_t frame = bytes_find(&file, (uint8_t[]){0xff, 0xc0}, 2);
    bytes_add(&out, file.data, frame + 19);
    bytes_add(&out, file.data + frame, file.n - frame);
    refused(out, LK_E_IMAGE, "two SOF");
    /* fill bytes before a marker are allowed */
    out = (struct bytes){0};
    bytes_add(&out, file.data, frame);
    bytes_add(&out, "\xff\xff\xff", 3);
    bytes_add(&out, file.data + frame, file.n - frame);
    expect_flat(&out, 16, 16, 3, grey_rgb);
    bytes_free(&out);
    /* a missing Huffman table is the standard one, as in motion JPEG */
    out = patched(&file, 0xc4, 1, 0xfe);
    expect_flat(&out, 16, 16, 3, grey_rgb);
    bytes_free(&out);
    /* only a start and an end */
    bytes_add(&out, "\xff\xd8\xff\xd9", 4);
    refused(out, LK_E_IMAGE, "");
    bytes_free(&file);
}

static void refuse_sides(unsigned width, unsigned height, enum lk_code code, const char *part) {
    struct bytes file = flat_file(16, 16, 3, grey_rgb, 1);
    uint8_t *frame = file.data + bytes_find(&file, (uint8_t[]){0xff, 0xc0}, 2);
    memcpy(frame + 5, (uint8_t[]){(uint8_t)(height >> 8), (uint8_t)height, (uint8_t)(width >> 8), (uint8_t)width}, 4);
    refused(file, code, part);
}

static void bombs(void **state) {
    (void)state;
    refuse_sides(12000, 12000, LK_E_IMAGE, "cannot hold them");
    refuse_sides(65500, 2700, LK_E_IMAGE, "cannot hold them");
    refuse_sides(61000, 61000, LK_E_IMAGE_SIZE, "61000 x 61000");
    refuse_sides(16, 65501, LK_E_IMAGE, "dimension"); /* libjpeg's own limit is 65500 */
    refuse_sides(65535, 65535, LK_E_IMAGE, "dimension");
    struct bytes file = flat_file(16, 16, 1, grey, 1);
    struct lk_image image;
    /* sides that the data do not fill, but an end marker: the rest is whatever, as in Pillow */
    struct bytes short_of_data = patched(&file, 0xc0, 6, 64);
    assert_ok(lk_image_decode(&image, short_of_data.data, short_of_data.n, "made.bin", 0, 0));
    for (int i = 0; i < 256; i++) assert_int_equal(image.pixels[i], 128);
    lk_image_free(&image);
    bytes_free(&short_of_data);
    assert_fails(lk_image_decode(&image, file.data, file.n, "made.bin", 0, 255), LK_E_IMAGE_SIZE, "at most 255 pixels");
    bytes_free(&file);
}

/* The last scan of a progressive file again and again: 90 scans are odd but fine, 5000 are an attack. */
static void progressive_bomb(void **state) {
    (void)state;
    struct bytes file = flat_file(48, 48, 3, grey_rgb, 6);
    size_t last = 0;
    for (size_t i = 0; i + 1 < file.n; i++)
        if (file.data[i] == 0xff && file.data[i + 1] == 0xda) last = i;
    size_t scan_bytes = file.n - 2 - last;
    for (int i = 0; i < 2; i++) {
        struct bytes many = {0};
        bytes_add(&many, file.data, file.n - 2);
        for (int k = 0; k < (i ? 5000 : 84); k++) bytes_add(&many, file.data + last, scan_bytes);
        bytes_add(&many, "\xff\xd9", 2);
        if (i)
            expect_refused(&many, LK_E_IMAGE, "scans");
        else
            expect_flat(&many, 48, 48, 3, grey_rgb);
        bytes_free(&many);
    }
    bytes_free(&file);
}

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

/* The kind that takes most: progressive without subsampling. Beyond what the process had before, at most 4 times the
 * pixels and 32 MB. */
static void memory_is_bounded(void **state) {
    (void)state;
#ifdef SANITIZED
    skip(); /* the sanitizer's own memory would be counted */
#endif
    struct bytes file = flat_file(4000, 3000, 3, grey_rgb, 6);
    pid_t child = fork();
    if (!child) {
        struct rusage before, after;
        struct lk_image image;
        getrusage(RUSAGE_SELF, &before);
        if (lk_image_decode(&image, file.data, file.n, "made.bin", 0, 0)) _exit(2);
        getrusage(RUSAGE_SELF, &after);
        _exit(after.ru_maxrss - before.ru_maxrss > 4 * 36000 + 32000);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    bytes_free(&file);
}

static void enough_files(void **state) {
    (void)state;
    assert_true(n_image_files >= 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),
        cmocka_unit_test(inks),
        cmocka_unit_test(orientations),
        cmocka_unit_test(broken_exif_is_ignored),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(damaged_headers),
        cmocka_unit_test(bombs),
        cmocka_unit_test(progressive_bomb),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(enough_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
