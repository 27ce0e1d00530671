#include "tests/common/image_files.h"

#include "tests/common/test.h"

#include <jpeglib.h>
#include <zlib.h>

#include "engine/base/alloc.h"

int n_image_files;

void bytes_add(struct bytes *out, const void *data, size_t n) {
    out->data = realloc(out->data, out->n + n + 1);
    if (!out->data) fail_msg("no memory");
    if (n) memcpy(out->data + out->n, data, n);
    out->n += n;
}

void bytes_free(struct bytes *bytes) {
    free(bytes->data);
    *bytes = (struct bytes){0};
}

size_t bytes_find(const struct bytes *bytes, const void *what, size_t n) {
    const uint8_t *found = memmem(bytes->data, bytes->n, what, n);
    if (!found) fail_msg("not found");
    return (size_t)(found - bytes->data);
}

static void add_be32(struct bytes *out, uint32_t v) {
    bytes_add(out, (uint8_t[]){(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v}, 4);
}

void png_begin(struct bytes *out) { bytes_add(out, "\x89PNG\r\n\x1a\n", 8); }

void png_chunk(struct bytes *out, const char type[4], const void *data, size_t n) {
    add_be32(out, (uint32_t)n);
    size_t start = out->n;
    bytes_add(out, type, 4);
    bytes_add(out, data, n);
    add_be32(out, (uint32_t)crc32_z(0, out->data + start, n + 4));
}

void png_header(struct bytes *out, uint32_t width, uint32_t height, int depth, int color, int interlace) {
    struct bytes body = {0};
    add_be32(&body, width);
    add_be32(&body, height);
    bytes_add(&body, (uint8_t[]){(uint8_t)depth, (uint8_t)color, 0, 0, (uint8_t)interlace}, 5);
    png_chunk(out, "IHDR", body.data, body.n);
    bytes_free(&body);
}

void png_data(struct bytes *out, const void *raw, size_t n_raw) {
    uLongf n = compressBound(n_raw);
    uint8_t *packed = malloc(n);
    if (!packed || compress2(packed, &n, raw, n_raw, 9) != Z_OK) fail_msg("cannot compress");
    png_chunk(out, "IDAT", packed, n);
    free(packed);
}

struct bytes png_file(uint32_t width, uint32_t height, int depth, int color, int interlace, const struct bytes *between,
                      const void *raw, size_t n_raw) {
    struct bytes out = {0};
    png_begin(&out);
    png_header(&out, width, height, depth, color, interlace);
    if (between) bytes_add(&out, between->data, between->n);
    png_data(&out, raw, n_raw);
    png_chunk(&out, "IEND", NULL, 0);
    return out;
}

/* A legal script: the DC of all components, then the AC coefficients of one component after the other in bands, each
 * band being refined bit by bit until there are enough scans. */
static int make_script(jpeg_scan_info *scans, int n_scans, int n_components) {
    int n = 0;
    scans[n] = (jpeg_scan_info){.comps_in_scan = n_components, .Ss = 0, .Se = 0};
    for (int c = 0; c < n_components; c++) scans[n].component_index[c] = c;
    n++;
    for (int c = 0; c < n_components; c++) {
        for (int k = 1; k < 64 && n < n_scans - (n_components - c - 1); k++) {
            bool last = k == 63 || n == n_scans - (n_components - c - 1) - 1;
            scans[n++] = (jpeg_scan_info){
                .comps_in_scan = 1, .component_index = {c}, .Ss = k, .Se = last ? 63 : k, .Ah = 0, .Al = 0};
            if (last) break;
        }
    }
    return n;
}

struct bytes jpeg_file(const struct lk_image *image, int n_scans) {
    static jpeg_scan_info scans[256];
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr error;
    unsigned char *memory = NULL;
    unsigned long n_bytes = 0;
    c.err = jpeg_std_error(&error);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &memory, &n_bytes);
    c.image_width = (JDIMENSION)image->width;
    c.image_height = (JDIMENSION)image->height;
    c.input_components = image->channels;
    c.in_color_space = image->channels == 1 ? JCS_GRAYSCALE : image->channels == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 90, TRUE);
    for (int i = 0; i < c.num_components; i++) c.comp_info[i].h_samp_factor = c.comp_info[i].v_samp_factor = 1;
    if (n_scans > 1) {
        c.scan_info = scans;
        c.num_scans = make_script(scans, n_scans, c.num_components);
    }
    jpeg_start_compress(&c, TRUE);
    size_t row = (size_t)image->width * (size_t)image->channels;
    while (c.next_scanline < c.image_height) {
        JSAMPROW from = image->pixels + c.next_scanline * row;
        jpeg_write_scanlines(&c, &from, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    struct bytes out = {0};
    bytes_add(&out, memory, n_bytes);
    free(memory);
    return out;
}

void expect_pixels(const struct bytes *file, int width, int height, int channels, const uint8_t *pixels) {
    int64_t live = lk_alloc_live();
    struct lk_image image;
    n_image_files++;
    assert_ok(lk_image_decode(&image, file->data, file->n, "made.bin", 1, 0));
    assert_int_equal(image.width, width);
    assert_int_equal(image.height, height);
    assert_int_equal(image.channels, channels);
    assert_memory_equal(image.pixels, pixels, (size_t)width * (size_t)height * (size_t)channels);
    lk_image_free(&image);
    assert_int_equal(lk_alloc_live(), live);
}

void expect_refused(const struct bytes *file, enum lk_code code, const char *part) {
    int64_t live = lk_alloc_live();
    struct lk_image image;
    n_image_files++;
    assert_fails(lk_image_decode(&image, file->data, file->n, "made.bin", 1, 0), code, part);
    assert_non_null(strstr(lk_error_text(), "made.bin"));
    assert_null(image.pixels);
    assert_int_equal(lk_alloc_live(), live);
}
