/* Decoding and resizing against Pillow, to the byte: golden/data/images.pack and images.txt, made by
 * golden/generate_images.py, which also says what the lines of images.txt hold. */
#include "tests/common/picture.h"
#include "tests/common/test.h"

#include "engine/base/alloc.h"
#include "engine/image/image.h"

static void check_digest(const struct lk_image *image, const char *expected, const char *what) {
    test_digest_is(image->pixels, (size_t)image->width * (size_t)image->height * (size_t)image->channels, expected,
                   what);
}

static enum lk_resample filter_named(const char *name) {
    if (!strcmp(name, "nearest")) return LK_RESAMPLE_NEAREST;
    if (!strcmp(name, "bicubic")) return LK_RESAMPLE_BICUBIC;
    if (!strcmp(name, "bilinear")) return LK_RESAMPLE_BILINEAR;
    assert_string_equal(name, "lanczos");
    return LK_RESAMPLE_LANCZOS;
}

/* What the lines before left for those that follow. */
struct context {
    char *pack;
    size_t pack_bytes;
    char name[64];
    struct lk_image image;
    const char *file;
    size_t file_bytes;
    int n_files, n_resizes, n_texts;
};

static void check_file(struct context *c, const char *line) {
    size_t offset;
    int exif, width, height, channels;
    char expected[32];
    assert_int_equal(sscanf(line, "file %zu %zu %d %d %d %d %16s %63s", &offset, &c->file_bytes, &exif, &width, &height,
                            &channels, expected, c->name),
                     8);
    assert_true(offset + c->file_bytes <= c->pack_bytes);
    c->file = c->pack + offset;
    lk_image_free(&c->image);
    assert_ok(lk_image_decode(&c->image, c->file, c->file_bytes, c->name, exif, 0));
    if (c->image.width != width || c->image.height != height || c->image.channels != channels)
        fail_msg("%s: expected %d x %d x %d, got %d x %d x %d", c->name, width, height, channels, c->image.width,
                 c->image.height, c->image.channels);
    check_digest(&c->image, expected, c->name);
    c->n_files++;
}

static void check_resized(struct context *c, const struct lk_image *in, int width, int height, const char *filter,
                          const char *expected, const char *what) {
    struct lk_image out;
    assert_ok(lk_image_resize(&out, in, width, height, filter_named(filter)));
    assert_int_equal(out.width, width);
    assert_int_equal(out.height, height);
    assert_int_equal(out.channels, in->channels);
    check_digest(&out, expected, what);
    lk_image_free(&out);
    c->n_resizes++;
}

static void check_resize_line(struct context *c, const char *line) {
    int kind, seed, width, height, channels, new_width, new_height;
    char filter[16], expected[32];
    if (sscanf(line, "resized %d %d %15s %16s", &new_width, &new_height, filter, expected) == 4) {
        check_resized(c, &c->image, new_width, new_height, filter, expected, c->name);
        return;
    }
    assert_int_equal(sscanf(line, "resize %d %d %d %d %d %d %d %15s %16s", &kind, &seed, &width, &height, &channels,
                            &new_width, &new_height, filter, expected),
                     9);
    struct lk_image in = test_picture(kind, seed, width, height, channels);
    check_resized(c, &in, new_width, new_height, filter, expected, line);
    lk_image_free(&in);
}

static void check_text_line(struct context *c, const char *line) {
    size_t n_bytes;
    char expected[32], key[80];
    assert_int_equal(sscanf(line, "text %zu %16s %79s", &n_bytes, expected, key), 3);
    struct lk_png_text *texts;
    assert_ok(lk_png_text_parse(c->file, c->file_bytes, c->name, &texts));
    const struct lk_png_text *found = texts;
    while (found->key && strcmp(found->key, key) != 0) found++;
    assert_non_null(found->key);
    assert_int_equal(strlen(found->text), n_bytes);
    test_digest_is(found->text, n_bytes, expected, key);
    lk_png_text_free(texts);
    c->n_texts++;
}

static void files_and_resizes_are_pillows(void **state) {
    (void)state;
    int64_t live = lk_alloc_live();
    struct context c = {0};
    c.pack = test_read("golden/data/images.pack", &c.pack_bytes);
    char *lines = test_read("golden/data/images.txt", NULL), *rest = lines;
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
        if (!strncmp(line, "file ", 5))
            check_file(&c, line);
        else if (!strncmp(line, "resize", 6))
            check_resize_line(&c, line);
        else if (!strncmp(line, "text ", 5))
            check_text_line(&c, line);
        else
            assert_true(line[0] == '#');
    }
    lk_image_free(&c.image);
    free(lines);
    free(c.pack);
    assert_true(c.n_files >= 200);
    assert_true(c.n_resizes >= 500);
    assert_true(c.n_texts >= 8);
    assert_int_equal(lk_alloc_live(), live);
}

/* What Pillow refuses is refused. LIKENESS_SWEEP: a folder with files of that name that a sweep of the script made. */
static void check_pack(const char *name_of_pack, int least, int least_refused) {
    const char *sweep = getenv("LIKENESS_SWEEP");
    char path[256];
    const int64_t live = lk_alloc_live();
    size_t pack_bytes;
    snprintf(path, sizeof path, "%s/%s.pack", sweep ? sweep : "golden/data", name_of_pack);
    char *pack = test_read(path, &pack_bytes);
    snprintf(path, sizeof path, "%s/%s.txt", sweep ? sweep : "golden/data", name_of_pack);
    char *lines = test_read(path, NULL), *rest = lines;
    int n_files = 0, n_refused = 0;
    for (char *line; (line = strtok_r(rest, "\n", &rest)); n_files++) {
        size_t offset, n;
        int exif, width, height, channels;
        char expected[32], name[64];
        struct lk_image image;
        assert_int_equal(sscanf(line, "file %zu %zu %d %d %d %d %16s %63[^\n]", &offset, &n, &exif, &width, &height,
                                &channels, expected, name),
                         8);
        assert_true(offset + n <= pack_bytes);
        char *file = malloc(n); /* so that reading past its end is found */
        memcpy(file, pack + offset, n);
        enum lk_code rc = lk_image_decode(&image, file, n, name, exif, 0);
        free(file);
        if (rc != (width ? LK_OK : LK_E_IMAGE)) fail_msg("%s: %d: %s", name, rc, rc ? lk_error_text() : "read");
        n_refused += rc != LK_OK;
        if (rc) continue;
        if (image.width != width || image.height != height || image.channels != channels)
            fail_msg("%s: %d x %d x %d for %d x %d x %d", name, image.width, image.height, image.channels, width,
                     height, channels);
        check_digest(&image, expected, name);
        lk_image_free(&image);
    }
    free(lines);
    free(pack);
    assert_true(n_files >= least && n_refused >= least_refused);
    assert_int_equal(lk_alloc_live(), live);
}

/* golden/generate_webp.py */
static void webp_is_as_pillow_reads_it(void **state) {
    (void)state;
    check_pack("webp", 150, 20);
}

/* golden/generate_tiff.py */
static void tiff_and_bmp_are_as_pillow_reads_them(void **state) {
    (void)state;
    check_pack("tiff", 220, 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_and_resizes_are_pillows),
        cmocka_unit_test(webp_is_as_pillow_reads_it),
        cmocka_unit_test(tiff_and_bmp_are_as_pillow_reads_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
