/* TIFF decoding: the first picture of a file, in strips or tiles, plain or packed as cameras' programs and scanners
 * pack them. Everything else that a TIFF can be is refused by name. Source: TIFF 6.0; what a picture's numbers mean is
 * as in Pillow 13. Our own, since Debian's libtiff brings JBIG-KIT (GPL) and C++ into what is linked. */
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/image/internal.h"
#include "engine/image/tiff.h"

/* A file shorter than this many pixels per byte cannot hold what it declares, whatever packs it. */
#define PIXELS_PER_BYTE_MAX 8192
#define SAMPLES_MAX         6
#define ENTRIES_MAX         1000 /* of a directory; they are sorted, and all that counts here is below 51,000 */

enum { GREY_INVERTED, GREY, RGB, PALETTE, CMYK = 5, YCBCR = 6 };
enum {
    T_SUBFILE = 254,
    T_WIDTH = 256,
    T_HEIGHT,
    T_BITS,
    T_COMPRESSION,
    T_PHOTOMETRIC = 262,
    T_FILL = 266,
    T_OFFSETS = 273,
    T_SAMPLES = 277,
    T_ROWS,
    T_COUNTS,
    T_PLANAR = 284,
    T_PREDICTOR = 317,
    T_COLORMAP = 320,
    T_TILE_WIDTH = 322,
    T_TILE_HEIGHT,
    T_TILE_OFFSETS,
    T_TILE_COUNTS,
    T_EXTRA = 338,
    T_FORMAT,
    T_JPEG_TABLES = 347,
    T_DNG = 50706
};

struct decoder {
    const char *name;
    const unsigned char *bytes;
    size_t n_bytes;
    bool little;
    int width, height, tile_width, tile_height;
    unsigned bits, samples, compression, photometric, predictor;
    unsigned extra; /* of the first sample beyond the colours: 0 nothing, 1 alpha in the colours, 2 alpha */
    bool planes, tiles;
    uint8_t *tile;       /* one, unpacked */
    uint8_t *samples_in; /* [height, width, kept samples] of 8 bits, or 16 with the high byte first where they are grey
                          */
    struct lk_image image;
};

bool lk_tiff_has_signature(const unsigned char *b, size_t n) {
    return n >= 8 && (!memcmp(b, "II*\0", 4) || !memcmp(b, "MM\0*", 4));
}

static uint32_t number(const unsigned char *b, size_t n, bool little) {
    uint32_t value = 0;
    for (size_t i = 0; i < n; i++) value = value << 8 | b[little ? n - 1 - i : i];
    return value;
}

const unsigned char *lk_tiff_tag(const unsigned char *bytes, size_t n_bytes, unsigned tag, unsigned *type,
                                 size_t *count) {
    static const unsigned char sizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8};
    const bool little = bytes[0] == 'I';
    size_t at = number(bytes + 4, 4, little);
    if (n_bytes < 8 || at > n_bytes - 2) return NULL;
    size_t n = number(bytes + at, 2, little);
    if (n > ENTRIES_MAX) n = ENTRIES_MAX;
    for (at += 2; n && at + 12 <= n_bytes; n--, at += 12) {
        if (number(bytes + at, 2, little) != tag) continue;
        *type = number(bytes + at + 2, 2, little);
        *count = number(bytes + at + 4, 4, little);
        const size_t size = *count * (*type < sizeof sizes ? sizes[*type] : 0);
        const size_t data = size > 4 ? number(bytes + at + 8, 4, little) : at + 8;
        return size && data <= n_bytes && size <= n_bytes - data ? bytes + data : NULL;
    }
    return NULL;
}

/* The i-th value of a tag of whole numbers; `otherwise` where it has none. */
static uint32_t value_of(const struct decoder *d, unsigned tag, size_t i, uint32_t otherwise) {
    unsigned type;
    size_t count;
    const unsigned char *b = lk_tiff_tag(d->bytes, d->n_bytes, tag, &type, &count);
    const size_t size = type == 1 ? 1 : type == 3 ? 2 : type == 4 ? 4 : 0;
    return b && size && i < count ? number(b + i * size, size, d->little) : otherwise;
}

static enum lk_code refuse(const struct decoder *d, const char *field, const char *expected, uint32_t got) {
    return lk_fail(LK_E_IMAGE, "%s: TIFF: %s: expected %s, got %u; convert it to PNG first, with magick for example",
                   d->name, field, expected, got);
}

static enum lk_code damaged(const struct decoder *d, const char *what) {
    return lk_fail(LK_E_IMAGE, "%s: TIFF: %s is damaged or cut off; get it again", d->name, what);
}

static unsigned n_colors(const struct decoder *d) {
    return d->photometric == CMYK ? 4 : d->photometric == RGB || d->photometric == YCBCR ? 3 : 1;
}

/* Samples that are wanted of a pixel: colours and alpha. */
static unsigned n_kept(const struct decoder *d) { return n_colors(d) + (d->extra != 0); }

static enum lk_code read_form(struct decoder *d) {
    const uint32_t format = value_of(d, T_FORMAT, 0, 1), fill = value_of(d, T_FILL, 0, 1);
    d->bits = value_of(d, T_BITS, 0, 1);
    d->samples = value_of(d, T_SAMPLES, 0, 1);
    d->compression = value_of(d, T_COMPRESSION, 0, LK_TIFF_PLAIN);
    d->photometric = value_of(d, T_PHOTOMETRIC, 0, GREY_INVERTED);
    d->planes = value_of(d, T_PLANAR, 0, 1) == 2;
    d->predictor = value_of(d, T_PREDICTOR, 0, 1);
    const uint32_t c = d->compression, p = d->photometric;
    if (value_of(d, T_DNG, 0, 256) != 256)
        return lk_fail(LK_E_IMAGE, "%s: TIFF: a camera raw picture (DNG); develop it to PNG or JPEG first", d->name);
    if (value_of(d, T_SUBFILE, 0, 0) & 1)
        return refuse(d, "NewSubfileType", "a picture, not a preview of one", value_of(d, T_SUBFILE, 0, 0));
    if (c != LK_TIFF_PLAIN && c != LK_TIFF_LZW && c != LK_TIFF_JPEG && c != LK_TIFF_DEFLATE &&
        c != LK_TIFF_DEFLATE_OLD && c != LK_TIFF_PACKBITS)
        return refuse(d, "Compression", "1 (none), 5 (LZW), 7 (JPEG), 8 (Deflate) or 32773 (PackBits)", c);
    if (p > PALETTE && p != CMYK && (p != YCBCR || c != LK_TIFF_JPEG))
        return refuse(d, "PhotometricInterpretation", "0 to 3, 5 (CMYK) or in a JPEG 6", p);
    if (p == CMYK && c == LK_TIFF_JPEG) return refuse(d, "Compression", "no JPEG with CMYK", c);
    if (format != 1) return refuse(d, "SampleFormat", "1, whole numbers without a sign", format);
    if (fill != 1 || (d->predictor != 1 && d->predictor != 2))
        return fill != 1 ? refuse(d, "FillOrder", "1", fill) : refuse(d, "Predictor", "1 or 2", d->predictor);
    if (d->samples < n_colors(d) || d->samples > SAMPLES_MAX)
        return refuse(d, "SamplesPerPixel", "the colours and at most 2 or 3 more", d->samples);
    for (unsigned i = 1; i < d->samples; i++)
        if (value_of(d, T_BITS, i, d->bits) != d->bits)
            return refuse(d, "BitsPerSample", "the same of all samples", value_of(d, T_BITS, i, d->bits));
    const bool narrow =
        (d->bits == 1 || d->bits == 2 || d->bits == 4) && (p <= GREY || p == PALETTE) && d->samples == 1;
    if (!narrow && d->bits != 8 && (d->bits != 16 || p == PALETTE || (p <= GREY && d->samples > 1)))
        return refuse(d, "BitsPerSample", "8 or 16 (of one sample also 1, 2 or 4, of a palette no 16)", d->bits);
    if (d->predictor == 2 && d->bits < 8) return refuse(d, "Predictor", "1 below 8 bits", 2);
    if (p == GREY_INVERTED && d->bits == 16 && !d->little)
        return refuse(d, "PhotometricInterpretation", "1 (zero is black) of 16 bits", p);
    return LK_OK;
}

static enum lk_code read_extra(struct decoder *d) {
    const unsigned n = d->samples - n_colors(d);
    if (!n) return LK_OK;
    if (d->compression == LK_TIFF_JPEG)
        return refuse(d, "Compression", "no JPEG with more than colours", d->compression);
    if (d->planes && d->photometric == GREY) return refuse(d, "PlanarConfiguration", "1 of grey with alpha", 2);
    d->extra = value_of(d, T_EXTRA, 0, d->photometric == RGB && n == 1 ? 2 : 3);
    if (d->extra == 999 && d->photometric == RGB) d->extra = 2; /* CorelDRAW */
    const bool rgb = d->photometric == RGB, grey = d->photometric == GREY;
    if (d->extra > 2 || (d->extra == 1 && !rgb) || (d->extra == 2 && !rgb && !grey) || (grey && n > 1))
        return refuse(d, "ExtraSamples", "0, of grey also 2, of RGB also 1 and 2", d->extra);
    for (unsigned i = 1; i < n; i++)
        if (value_of(d, T_EXTRA, i, 3) != 0)
            return refuse(d, "ExtraSamples", "0 behind the first", value_of(d, T_EXTRA, i, 3));
    return LK_OK;
}

static enum lk_code read_size(struct decoder *d, int64_t max_pixels) {
    const uint32_t width = value_of(d, T_WIDTH, 0, 0), height = value_of(d, T_HEIGHT, 0, 0);
    if (!width || !height) return damaged(d, "the directory");
    LK_TRY(lk_image_check_size(d->name, width, height, max_pixels));
    if ((int64_t)width * height / PIXELS_PER_BYTE_MAX > (int64_t)d->n_bytes)
        return lk_fail(LK_E_IMAGE, "%s: TIFF: declares %u x %u pixels, but %zu bytes cannot hold them; get it again",
                       d->name, width, height, d->n_bytes);
    d->width = (int)width, d->height = (int)height;
    d->tiles = value_of(d, T_OFFSETS, 0, 0) == 0;
    const uint32_t tile_width = d->tiles ? value_of(d, T_TILE_WIDTH, 0, 0) : width;
    uint32_t tile_height = d->tiles ? value_of(d, T_TILE_HEIGHT, 0, 0) : value_of(d, T_ROWS, 0, height);
    if (!d->tiles && tile_height > height) tile_height = height;
    if (!tile_width || !tile_height || tile_width > LK_IMAGE_SIDE_MAX || tile_height > LK_IMAGE_SIDE_MAX ||
        (int64_t)tile_width * tile_height > 4 * (int64_t)width * height + (1 << 20))
        return lk_fail(LK_E_IMAGE, "%s: TIFF: strips or tiles of %u x %u do not fit a picture of %u x %u; get it again",
                       d->name, tile_width, tile_height, width, height);
    d->tile_width = (int)tile_width, d->tile_height = (int)tile_height;
    return LK_OK;
}

/* Samples are differences to those of the pixel before. */
static void add_up(const struct decoder *d, uint8_t *row, size_t per_pixel) {
    const size_t n = (size_t)d->tile_width * per_pixel;
    for (size_t i = per_pixel; i < n; i++) {
        if (d->bits == 8) {
            row[i] = (uint8_t)(row[i] + row[i - per_pixel]);
            continue;
        }
        uint8_t *at = row + 2 * i, *before = at - 2 * per_pixel;
        const uint32_t sum = number(at, 2, d->little) + number(before, 2, d->little);
        at[d->little ? 0 : 1] = (uint8_t)sum;
        at[d->little ? 1 : 0] = (uint8_t)(sum >> 8);
    }
}

/* A tile's or strip's rows, from (x, y) on, into samples_in; of planes its one sample. */
static void place(struct decoder *d, int x, int y, int rows, unsigned plane) {
    const size_t per_pixel = d->planes ? 1 : d->samples, kept = n_kept(d), wide = d->bits == 16;
    const size_t grey16 = wide && d->photometric <= GREY;
    const size_t stride = ((size_t)d->tile_width * per_pixel * d->bits + 7) / 8;
    const int columns = d->tile_width < d->width - x ? d->tile_width : d->width - x;
    for (int r = 0; r < rows && y + r < d->height; r++) {
        uint8_t *row = d->tile + (size_t)r * stride;
        if (d->predictor == 2 && d->compression != LK_TIFF_PLAIN && d->compression != LK_TIFF_PACKBITS &&
            d->compression != LK_TIFF_JPEG)
            add_up(d, row, per_pixel);
        uint8_t *to = d->samples_in + (((size_t)(y + r) * (size_t)d->width + (size_t)x) * kept << grey16);
        for (size_t c = 0; c < (size_t)columns; c++)
            for (size_t s = d->planes ? plane : 0; s < (d->planes ? plane + 1 : kept); s++) {
                const size_t i = c * per_pixel + (d->planes ? 0 : s);
                if (grey16) {
                    to[2 * c] = row[2 * i + d->little];
                    to[2 * c + 1] = row[2 * i + !d->little];
                } else if (d->bits >= 8) {
                    to[c * kept + s] = row[wide ? 2 * i + d->little : i];
                } else {
                    to[c] = row[i * d->bits / 8] >> (8 - d->bits - i * d->bits % 8) & ((1u << d->bits) - 1);
                }
            }
    }
}

/* A JPEG whose tables stand in a tag: they go in front of it. */
static enum lk_code unpack_jpeg(struct decoder *d, const unsigned char *from, size_t n, int rows) {
    unsigned type;
    size_t n_tables = 0;
    const unsigned char *tables = lk_tiff_tag(d->bytes, d->n_bytes, T_JPEG_TABLES, &type, &n_tables);
    if (!tables || n_tables < 4 || n < 2) tables = NULL, n_tables = 2;
    const size_t before = tables ? n_tables - 2 : 0, skip = tables ? 2 : 0; /* its end, and the start behind it */
    unsigned char *whole = lk_malloc(before + n + 1);
    struct lk_image part = {0};
    if (!whole) return lk_fail(LK_E_NOMEM, "%s: TIFF: out of memory; free memory and try again", d->name);
    if (tables) memcpy(whole, tables, before);
    memcpy(whole + before, from + skip, n - skip);
    enum lk_code rc = lk_image_jpeg_decode(&part, whole, before + n - skip, d->name, 0);
    const int channels = (int)(d->planes ? 1 : d->samples);
    if (!rc && (part.width != d->tile_width || part.height < rows || part.channels != channels || d->bits != 8))
        rc = damaged(d, "the JPEG inside");
    if (!rc) memcpy(d->tile, part.pixels, (size_t)part.width * (size_t)rows * (size_t)channels);
    lk_image_free(&part);
    lk_free(whole);
    return rc;
}

static enum lk_code read_tile(struct decoder *d, size_t i, int rows, size_t size) {
    const size_t at = value_of(d, d->tiles ? T_TILE_OFFSETS : T_OFFSETS, i, UINT32_MAX);
    const size_t n = value_of(d, d->tiles ? T_TILE_COUNTS : T_COUNTS, i, 0);
    if (at > d->n_bytes || n > d->n_bytes - at) return damaged(d, "a strip or tile");
    if (d->compression == LK_TIFF_JPEG) return unpack_jpeg(d, d->bytes + at, n, rows);
    return lk_tiff_unpack(d->compression, d->bytes + at, n, d->tile, size) ? LK_OK : damaged(d, "a strip or tile");
}

static enum lk_code read_tiles(struct decoder *d) {
    const size_t per_pixel = d->planes ? 1 : d->samples;
    const size_t stride = ((size_t)d->tile_width * per_pixel * d->bits + 7) / 8;
    const size_t across = ((size_t)d->width + (size_t)d->tile_width - 1) / (size_t)d->tile_width;
    const size_t down = ((size_t)d->height + (size_t)d->tile_height - 1) / (size_t)d->tile_height;
    const size_t wide = d->bits == 16 && d->photometric <= GREY;
    d->tile = lk_malloc(stride * (size_t)d->tile_height);
    d->samples_in = lk_malloc((size_t)d->width * (size_t)d->height * n_kept(d) << wide);
    if (!d->tile || !d->samples_in)
        return lk_fail(LK_E_NOMEM, "%s: TIFF: no memory for its pixels; free memory and try again", d->name);
    for (unsigned plane = 0; plane < (d->planes ? n_kept(d) : 1); plane++)
        for (size_t k = 0; k < across * down; k++) {
            const int x = (int)(k % across) * d->tile_width, y = (int)(k / across) * d->tile_height;
            const int left = d->height - y, rows = d->tiles || left > d->tile_height ? d->tile_height : left;
            LK_TRY(read_tile(d, plane * across * down + k, rows, stride * (size_t)rows));
            place(d, x, y, rows, plane);
        }
    return LK_OK;
}

/* The colours alone again, which alpha was multiplied into. */
static void divide(uint8_t *pixels, size_t n) {
    for (; n--; pixels += 4)
        for (int c = 0; c < 3; c++) {
            const unsigned alpha = pixels[3], value = alpha ? 255u * pixels[c] / alpha : 0;
            pixels[c] = (uint8_t)(value > 255 ? 255 : value);
        }
}

static enum lk_code finish(struct decoder *d) {
    const size_t n = (size_t)d->width * (size_t)d->height;
    const bool inks = d->photometric == CMYK, palette = d->photometric == PALETTE;
    const bool grey16 = d->bits == 16 && d->photometric <= GREY;
    const int channels = inks || palette ? 3 : (int)n_kept(d);
    enum lk_code rc = lk_image_new(&d->image, d->width, d->height, channels);
    if (rc) return lk_fail_prefix(rc, "%s", d->name);
    d->image.nearest_only = palette || d->bits == 1;
    uint8_t *to = d->image.pixels;
    if (inks || grey16) {
        lk_image_convert(to, d->samples_in, n, channels);
        d->image.unconverted = d->samples_in;
        d->samples_in = NULL;
    } else if (palette) {
        const size_t n_map = (size_t)1 << d->bits;
        if (value_of(d, T_COLORMAP, 3 * n_map - 1, UINT32_MAX) == UINT32_MAX) return damaged(d, "ColorMap");
        uint8_t map[256][3];
        for (size_t i = 0; i < n_map; i++)
            for (size_t c = 0; c < 3; c++) map[i][c] = (uint8_t)(value_of(d, T_COLORMAP, c * n_map + i, 0) >> 8);
        for (size_t i = 0; i < n; i++) memcpy(to + 3 * i, map[d->samples_in[i]], 3);
    } else {
        const unsigned scale = d->bits < 8 ? 255u / ((1u << d->bits) - 1) : 1;
        const unsigned flip = d->photometric == GREY_INVERTED ? 255 : 0;
        for (size_t i = 0; i < n * (size_t)channels; i++) to[i] = (uint8_t)(d->samples_in[i] * scale ^ flip);
        if (d->extra == 1) divide(to, n);
    }
    return LK_OK;
}

enum lk_code lk_image_tiff_decode(struct lk_image *out, const unsigned char *bytes, size_t n_bytes, const char *name,
                                  int64_t max_pixels) {
    struct decoder d = {.name = name, .bytes = bytes, .n_bytes = n_bytes, .little = bytes[0] == 'I'};
    enum lk_code rc = read_form(&d);
    if (!rc) rc = read_extra(&d);
    if (!rc) rc = read_size(&d, max_pixels);
    if (!rc) rc = read_tiles(&d);
    if (!rc) rc = finish(&d);
    lk_free(d.tile);
    lk_free(d.samples_in);
    if (!rc)
        *out = d.image;
    else
        lk_image_free(&d.image);
    return rc;
}
