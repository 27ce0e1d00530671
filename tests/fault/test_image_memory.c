/* The n-th allocation fails and writes go wrong: a status, no leak, no half file, and the next run gives the same
 * bytes.
 */
#include "tests/common/image_files.h"
#include "tests/common/test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <webp/encode.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"

static const struct lk_png_text texts[] = {{"Title", "Gr\xc3\xbc\xc3\x9f"
                                                     "e"},
                                           {"Comment", "\xe7\x8c\xab"}};

/* An empty folder of its own. */
static const char *fresh_folder(void) {
    const char *folder = test_path("image-memory");
    mkdir(folder, 0700);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlinkat(dirfd(dir), e->d_name, 0);
    closedir(dir);
    return folder;
}

static int n_entries(const char *folder) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int n = -2; /* . and .. */
    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

/* Decode, turn, resize both ways, crop, write and read the texts again. */
static enum lk_code work(const struct bytes *file, const char *png, const char *jpeg) {
    struct lk_image image, rgb = {0}, small = {0}, cropped = {0};
    struct lk_png_text *read = NULL;
    enum lk_code rc = lk_image_decode(&image, file->data, file->n, "made.bin", 1, 0);
    if (!rc) rc = lk_image_resize(&small, &image, 7, 40, LK_RESAMPLE_LANCZOS);
    if (!rc) rc = lk_image_crop(&cropped, &small, 1, 1, 5, 38);
    if (!rc) rc = lk_image_to_rgb(&rgb, &cropped);
    if (!rc) rc = lk_png_write(png, &small, texts, 2);
    if (!rc) rc = lk_jpeg_write(jpeg, &rgb, 90);
    if (!rc) rc = lk_png_text_read(png, &read);
    lk_image_free(&image);
    lk_image_free(&small);
    lk_image_free(&cropped);
    lk_image_free(&rgb);
    lk_png_text_free(read);
    return rc;
}

#define KINDS 6

/* "RIFF", the size, "WEBP", then VP8X that tells of an EXIF chunk, the picture and that chunk. */
static struct bytes turned_webp(const struct lk_image *image, const char *exif, size_t n_exif) {
    static const uint8_t head[] = {'V', 'P', '8', 'X', 10, 0, 0, 0, 8, 0, 0, 0, 22, 0, 0, 16, 0, 0};
    uint8_t *made = NULL;
    const size_t n = WebPEncodeLosslessRGB(image->pixels, image->width, image->height, image->width * 3, &made);
    struct bytes file = {0};
    bytes_add(&file, "RIFF\0\0\0\0WEBP", 12);
    bytes_add(&file, head, sizeof head);
    bytes_add(&file, made + 12, n - 12);
    bytes_add(&file, (uint8_t[]){'E', 'X', 'I', 'F', (uint8_t)n_exif, 0, 0, 0}, 8);
    bytes_add(&file, exif, n_exif + n_exif % 2);
    file.data[4] = (uint8_t)(file.n - 8), file.data[5] = (uint8_t)((file.n - 8) >> 8);
    WebPFree(made);
    return file;
}

/* A picture turned on its side by its orientation: JPEG, CMYK JPEG, PNG with a palette, PNG in 16-bit grey, WebP, TIFF
 * with inks. */
static struct bytes turned_file(int kind) {
    struct lk_image image;
    assert_ok(lk_image_new(&image, 23, 17, kind == 1 ? 4 : 3));
    for (int i = 0; i < 23 * 17 * image.channels; i++) image.pixels[i] = (uint8_t)(i * 5);
    struct bytes file = {0};
    static const char exif[] = "Exif\0\0II*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0";
    if (kind == 4) {
        file = turned_webp(&image, exif, sizeof exif - 1);
    } else if (kind == 5) {
        static const uint8_t tags[] = {0,  1, 3, 0, 1, 0, 0, 0, 23, 0, 0, 0, 1,  1, 3, 0, 1, 0, 0, 0, 17,   0, 0, 0,
                                       2,  1, 3, 0, 1, 0, 0, 0, 8,  0, 0, 0, 6,  1, 3, 0, 1, 0, 0, 0, 5,    0, 0, 0,
                                       17, 1, 4, 0, 1, 0, 0, 0, 8,  0, 0, 0, 18, 1, 3, 0, 1, 0, 0, 0, 6,    0, 0, 0,
                                       21, 1, 3, 0, 1, 0, 0, 0, 4,  0, 0, 0, 23, 1, 4, 0, 1, 0, 0, 0, 0x1c, 6, 0, 0};
        bytes_add(&file, "II*\0\x24\6\0\0", 8);
        for (int i = 0; i < 23 * 17 * 4; i++) bytes_add(&file, (uint8_t[]){(uint8_t)(i * 5)}, 1);
        bytes_add(&file, "\x8\0", 2);
        bytes_add(&file, tags, sizeof tags);
    } else if (kind >= 2) {
        bool palette = kind == 2;
        struct bytes between = {0};
        uint8_t raw[8 * 11];
        memset(raw, 0, sizeof raw);
        if (palette) png_chunk(&between, "PLTE", "abcdef", 6);
        if (palette) png_chunk(&between, "tRNS", "x", 1);
        png_chunk(&between, "eXIf", exif + 6, sizeof exif - 6);
        file = png_file(5, 8, palette ? 8 : 16, palette ? 3 : 0, 0, &between, raw, palette ? 8 * 6 : sizeof raw);
        bytes_free(&between);
    } else {
        struct bytes plain = jpeg_file(&image, kind == 0 ? 1 : 6);
        bytes_add(&file, plain.data, 2);
        bytes_add(&file, (uint8_t[]){0xff, 0xe1, 0, (uint8_t)(sizeof exif + 2)}, 4);
        bytes_add(&file, exif, sizeof exif);
        bytes_add(&file, plain.data + 2, plain.n - 2);
        bytes_free(&plain);
    }
    lk_image_free(&image);
    return file;
}

static void nth_allocation_fails(void **state) {
    (void)state;
    const char *folder = fresh_folder();
    char png[1100], jpeg[1100];
    snprintf(png, sizeof png, "%s/out.png", folder);
    snprintf(jpeg, sizeof jpeg, "%s/out.jpg", folder);
    for (int kind = 0; kind < KINDS; kind++) {
        struct bytes file = turned_file(kind);
        size_t n_png, n_jpeg, n_again;
        assert_ok(work(&file, png, jpeg));
        char *png_bytes = test_read(png, &n_png), *jpeg_bytes = test_read(jpeg, &n_jpeg);
        int64_t live = lk_alloc_live(), n = 1;
        for (;; n++) {
            lk_alloc_fail_at(n);
            enum lk_code rc = work(&file, png, jpeg);
            lk_alloc_fail_at(0);
            assert_int_equal(lk_alloc_live(), live);
            assert_int_equal(n_entries(folder), 2);
            if (!rc) break;
            assert_int_equal(rc, LK_E_NOMEM);
            assert_true(strlen(lk_error_text()) > 10);
        }
        assert_true(n > (kind >= 4 ? 20 : 40)); /* libjpeg's and libpng's own memory is among them, libwebp's is not */
        char *again = test_read(png, &n_again);
        assert_int_equal(n_again, n_png);
        assert_memory_equal(again, png_bytes, n_png);
        free(again);
        again = test_read(jpeg, &n_again);
        assert_int_equal(n_again, n_jpeg);
        assert_memory_equal(again, jpeg_bytes, n_jpeg);
        free(again);
        free(png_bytes);
        free(jpeg_bytes);
        bytes_free(&file);
    }
}

static struct lk_image noise(int width, int height, int channels) {
    struct lk_image image;
    uint64_t random = 1;
    assert_ok(lk_image_new(&image, width, height, channels));
    for (int i = 0; i < width * height * channels; i++) image.pixels[i] = (uint8_t)test_random(&random);
    return image;
}

static void written_pngs_read_back(void **state) {
    (void)state;
    const char *folder = fresh_folder();
    char path[1100], other[1100];
    snprintf(path, sizeof path, "%s/a.png", folder);
    snprintf(other, sizeof other, "%s/b.png", folder);
    for (int channels = 1; channels <= 4; channels++) {
        struct lk_image image = noise(31, 19, channels), back;
        assert_ok(lk_png_write(path, &image, texts, 2));
        assert_ok(lk_png_write(other, &image, texts, 2));
        assert_ok(lk_image_read(&back, path, 1, 0));
        assert_int_equal(back.channels, channels);
        assert_memory_equal(back.pixels, image.pixels, (size_t)(31 * 19 * channels));
        size_t n, n_other;
        char *a = test_read(path, &n), *b = test_read(other, &n_other);
        assert_int_equal(n, n_other);
        assert_memory_equal(a, b, n);
        /* Latin-1 as tEXt, one byte a character; the rest as iTXt */
        assert_non_null(memmem(a, n,
                               "tEXtTitle\0Gr\xfc\xdf"
                               "e",
                               15));
        assert_non_null(memmem(a, n, "iTXtComment\0\0\0\0\0\xe7\x8c\xab", 19));
        free(a);
        free(b);
        struct lk_png_text *read;
        assert_ok(lk_png_text_read(path, &read));
        for (int i = 0; i < 2; i++) {
            assert_string_equal(read[i].key, texts[i].key);
            assert_string_equal(read[i].text, texts[i].text);
        }
        assert_null(read[2].key);
        lk_png_text_free(read);
        lk_image_free(&image);
        lk_image_free(&back);
    }
}

static void bad_arguments_of_writers(void **state) {
    (void)state;
    const char *folder = fresh_folder();
    char path[1100], missing[1100];
    snprintf(path, sizeof path, "%s/a.png", folder);
    snprintf(missing, sizeof missing, "%s/no-folder/a.png", folder);
    struct lk_image image = noise(4, 4, 4);
    char long_key[81];
    memset(long_key, 'k', 80);
    long_key[80] = 0;
    const char *const keys[] = {"", " a", "a ", "a  b", "K\xc3\xa4se", "tab\t", long_key};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_fails(lk_png_write(path, &image, &(struct lk_png_text){keys[i], "x"}, 1), LK_E_METADATA, "key");
    assert_fails(lk_png_write(path, &image, &(struct lk_png_text){"Title", "\xff"}, 1), LK_E_METADATA, "UTF-8");
    assert_fails(lk_jpeg_write(path, &image, 90), LK_E_IMAGE, "alpha");
    assert_fails(lk_jpeg_write(path, &image, 0), LK_E_USAGE, "quality");
    assert_fails(lk_png_write(missing, &image, NULL, 0), LK_E_NOT_FOUND, "no-folder");
    assert_fails(lk_png_write(folder, &image, NULL, 0), LK_E_NOT_REGULAR, "regular");
    assert_fails(lk_png_write("/dev/null", &image, NULL, 0), LK_E_NOT_REGULAR, "device");
    assert_int_equal(n_entries(folder), 0);
    lk_image_free(&image);
}

/* The file may not grow past a few kilobytes: as when the disk is full, the old file stays and no other is left. */
static void a_write_that_fails_leaves_the_old_file(void **state) {
    (void)state;
    const char *folder = fresh_folder();
    char path[1100];
    snprintf(path, sizeof path, "%s/a.png", folder);
    test_write(path, "old", 3);
    struct lk_image image = noise(300, 300, 3);
    struct rlimit limit, small;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    small = (struct rlimit){.rlim_cur = 100000, .rlim_max = limit.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    enum lk_code png = lk_png_write(path, &image, NULL, 0), jpeg = lk_jpeg_write(path, &image, 100);
    char message[200];
    snprintf(message, sizeof message, "%.190s", lk_error_text());
    enum lk_code bytes = lk_atomic_write_file(path, image.pixels, 270000);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(png, LK_E_IO);
    assert_int_equal(jpeg, LK_E_IO);
    assert_int_equal(bytes, LK_E_IO);
    assert_non_null(strstr(message, "a.png"));
    size_t n;
    char *old = test_read(path, &n);
    assert_int_equal(n, 3);
    assert_memory_equal(old, "old", 3);
    free(old);
    assert_int_equal(n_entries(folder), 1);
    lk_image_free(&image);
}

static void atomic_file_in_pieces(void **state) {
    (void)state;
    const char *folder = fresh_folder();
    char path[1100];
    snprintf(path, sizeof path, "%s/pieces", folder);
    int64_t live = lk_alloc_live();
    struct lk_atomic_file *file;
    static uint8_t piece[100000];
    size_t total = 0, n;
    assert_ok(lk_atomic_open(&file, path));
    for (size_t size = 0; size <= sizeof piece; size = size * 3 + 1) {
        memset(piece, (int)(size % 251), size);
        assert_ok(lk_atomic_write(file, piece, size));
        assert_int_equal(access(path, F_OK), -1); /* not there before it is whole */
        total += size;
    }
    assert_ok(lk_atomic_commit(file));
    uint8_t *got = (uint8_t *)test_read(path, &n);
    assert_int_equal(n, total);
    size_t at = 0;
    for (size_t size = 0; size <= sizeof piece; size = size * 3 + 1)
        for (size_t i = 0; i < size; i++)
            if (got[at++] != size % 251) fail_msg("byte %zu differs", at - 1);
    free(got);
    assert_ok(lk_atomic_open(&file, path));
    assert_ok(lk_atomic_write(file, "x", 1));
    lk_atomic_discard(file);
    lk_atomic_discard(NULL);
    assert_int_equal(n_entries(folder), 1);
    assert_int_equal(lk_alloc_live(), live);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nth_allocation_fails),     cmocka_unit_test(written_pngs_read_back),
        cmocka_unit_test(bad_arguments_of_writers), cmocka_unit_test(a_write_that_fails_leaves_the_old_file),
        cmocka_unit_test(atomic_file_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
