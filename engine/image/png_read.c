/* PNG decoding through libpng's row API. Ancillary chunks are skipped but for tRNS of palettes; their CRCs count. */
#include <setjmp.h>
#include <string.h>

#include <png.h>

#include "engine/base/alloc.h"
#include "engine/image/internal.h"

/* deflate cannot make more than 1032 bytes of one: a file shorter than that is truncated or a bomb. */
#define DEFLATE_RATIO_MAX 1032

struct decoder {
    const char *name;
    const unsigned char *bytes;
    size_t n_bytes, at;
    png_structp png;
    png_infop info;
    char text[200];
    bool out_of_memory;
    struct lk_image image;
    uint8_t *raw; /* rows as stored, where they are not the image's: palette indices, 16-bit grey */
};

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* libpng names the chunk in some of its errors only. */
static void on_error(png_structp png, png_const_charp text) {
    struct decoder *d = png_get_error_ptr(png);
    uint32_t type = png_get_io_chunk_type(png);
    char name[5] = {(char)(type >> 24), (char)(type >> 16), (char)(type >> 8), (char)type, 0};
    /* While a chunk's head is read, the name is still that of the one before it. */
    const char *behind = png_get_io_state(png) & PNG_IO_CHUNK_HDR ? "the chunk after " : "";
    if (strspn(name, letters) == 4 && !strstr(text, name))
        snprintf(d->text, sizeof d->text, "%s%s: %s", behind, name, text);
    else
        snprintf(d->text, sizeof d->text, "%s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

static png_voidp allocate(png_structp png, png_alloc_size_t bytes) {
    struct decoder *d = png_get_mem_ptr(png);
    void *block = lk_malloc(bytes);
    if (!block) d->out_of_memory = true;
    return block;
}

static void release(png_structp png, png_voidp block) {
    (void)png;
    lk_free(block);
}

static void read_bytes(png_structp png, png_bytep to, size_t n) {
    struct decoder *d = png_get_io_ptr(png);
    if (n > d->n_bytes - d->at) png_error(png, "the file is truncated");
    memcpy(to, d->bytes + d->at, n);
    d->at += n;
}

static uint32_t be32(const unsigned char *b) {
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* What the header promises, before libpng allocates anything for it. */
static enum lk_code check_header(const struct decoder *d, int64_t max_pixels) {
    const unsigned char *b = d->bytes + LK_PNG_SIGNATURE_BYTES;
    if (d->n_bytes < LK_PNG_SIGNATURE_BYTES + 25 || be32(b) != 13 || memcmp(b + 4, "IHDR", 4))
        return lk_fail(LK_E_IMAGE,
                       "%s: PNG: expected a header chunk, IHDR, got none: truncated or damaged; get it again", d->name);
    int64_t width = be32(b + 8), height = be32(b + 12);
    enum lk_code rc = lk_image_check_size(d->name, width, height, max_pixels);
    if (rc) return rc;
    static const int samples[7] = {1, 0, 3, 1, 2, 0, 4};
    int64_t bits = b[17] < 7 ? samples[b[17]] * (int64_t)b[16] : 0; /* libpng refuses what is not allowed here */
    int64_t stored = height * ((width * bits + 7) / 8 + 1);
    if (stored / DEFLATE_RATIO_MAX > (int64_t)d->n_bytes)
        return lk_fail(LK_E_IMAGE,
                       "%s: PNG: IHDR: declares %lld x %lld pixels, but %zu bytes cannot hold them; get it again",
                       d->name, (long long)width, (long long)height, d->n_bytes);
    return LK_OK;
}

/* Channels of the image; *raw_bytes is what a pixel takes in `raw`, 0 without. */
static int choose_format(struct decoder *d, int *raw_bytes, bool *nearest_only) {
    int depth = png_get_bit_depth(d->png, d->info), type = png_get_color_type(d->png, d->info);
    *raw_bytes = 0;
    *nearest_only = type == PNG_COLOR_TYPE_PALETTE || (type == PNG_COLOR_TYPE_GRAY && depth == 1);
    if (type == PNG_COLOR_TYPE_PALETTE) {
        png_set_packing(d->png);
        *raw_bytes = 1;
        return png_get_valid(d->png, d->info, PNG_INFO_tRNS) ? 4 : 3;
    }
    if (type == PNG_COLOR_TYPE_GRAY && depth == 16) {
        *raw_bytes = 2;
        return 1;
    }
    if (depth == 16) png_set_strip_16(d->png);
    if (depth < 8) png_set_expand_gray_1_2_4_to_8(d->png);
    return png_get_channels(d->png, d->info);
}

/* Indices past the palette are black, as Pillow has them. */
static void expand_palette(struct decoder *d, size_t n) {
    uint8_t table[256][4];
    for (int i = 0; i < 256; i++) memcpy(table[i], (uint8_t[]){0, 0, 0, 255}, 4);
    png_colorp colors;
    png_bytep alphas = NULL;
    int n_colors = 0, n_alphas = 0;
    png_get_PLTE(d->png, d->info, &colors, &n_colors);
    png_get_tRNS(d->png, d->info, &alphas, &n_alphas, NULL);
    for (int i = 0; i < n_colors && i < 256; i++) memcpy(table[i], &colors[i], 3);
    for (int i = 0; alphas && i < n_alphas && i < 256; i++) table[i][3] = alphas[i];
    size_t channels = (size_t)d->image.channels;
    for (size_t i = 0; i < n; i++) memcpy(d->image.pixels + i * channels, table[d->raw[i]], channels);
}

static void expand_raw(struct decoder *d, int raw_bytes) {
    size_t n = (size_t)d->image.width * (size_t)d->image.height;
    if (raw_bytes == 1) expand_palette(d, n);
    if (raw_bytes != 2) return;
    lk_image_convert(d->image.pixels, d->raw, n, 1);
    d->image.unconverted = d->raw;
    d->raw = NULL;
}

static enum lk_code decode(struct decoder *d) {
    if (setjmp(png_jmpbuf(d->png))) {
        if (d->out_of_memory) return lk_fail(LK_E_NOMEM, "%s: PNG: out of memory; free memory and try again", d->name);
        return lk_fail(LK_E_IMAGE, "%s: PNG: %s; get it again or convert it", d->name, d->text);
    }
    png_set_read_fn(d->png, d, read_bytes);
    png_set_crc_action(d->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_option(d->png, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON); /* many writers get the window size wrong */
    png_read_info(d->png, d->info);
    int raw_bytes;
    bool nearest_only;
    int channels = choose_format(d, &raw_bytes, &nearest_only);
    int n_passes = png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
    size_t width = png_get_image_width(d->png, d->info), height = png_get_image_height(d->png, d->info);
    size_t row = width * (size_t)(raw_bytes ? raw_bytes : channels);
    if (row != png_get_rowbytes(d->png, d->info)) png_error(d->png, "unexpected row size");
    enum lk_code rc = lk_image_new(&d->image, (int)width, (int)height, channels);
    if (rc) return lk_fail_prefix(rc, "%s", d->name);
    d->image.nearest_only = nearest_only;
    if (raw_bytes && !(d->raw = lk_malloc(row * height)))
        return lk_fail(LK_E_NOMEM, "%s: PNG: no memory for its pixels; free memory and try again", d->name);
    uint8_t *rows = raw_bytes ? d->raw : d->image.pixels;
    for (int pass = 0; pass < n_passes; pass++)
        for (size_t y = 0; y < height; y++) png_read_row(d->png, rows + y * row, NULL);
    png_read_end(d->png, NULL);
    expand_raw(d, raw_bytes);
    return LK_OK;
}

enum lk_code lk_image_png_decode(struct lk_image *out, const unsigned char *bytes, size_t n_bytes, const char *name,
                                 int64_t max_pixels) {
    struct decoder d = {.name = name, .bytes = bytes, .n_bytes = n_bytes};
    enum lk_code rc = check_header(&d, max_pixels);
    if (rc) return rc;
    d.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &d, on_error, on_warning, &d, allocate, release);
    if (d.png) d.info = png_create_info_struct(d.png);
    rc = d.info ? decode(&d) : lk_fail(LK_E_NOMEM, "%s: PNG: out of memory; free memory and try again", name);
    if (d.png) png_destroy_read_struct(&d.png, &d.info, NULL);
    lk_free(d.raw);
    if (!rc)
        *out = d.image;
    else
        lk_image_free(&d.image);
    return rc;
}
