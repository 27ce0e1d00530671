/* BMP decoding: plain pixels of 1 to 32 bits, as Pillow 13 reads them; run lengths and embedded files are refused. */
#include <string.h>

#include "engine/image/internal.h"

struct header {
    int64_t width, height;
    size_t bytes, palette, entry, n_colors, pixels; /* places in the file; bytes of an entry of the palette */
    unsigned bits, compression;
    bool down;              /* the first row of the file is the highest */
    unsigned char order[4]; /* places of R, G, B, A in a pixel of 24 or 32 bits */
    int channels;
    bool green6;
};

static uint32_t le(const unsigned char *b, int n) {
    uint32_t value = 0;
    while (n--) value = value << 8 | b[n];
    return value;
}

bool lk_bmp_has_signature(const unsigned char *b, size_t n) {
    const uint32_t header = n >= 18 && b[0] == 'B' && b[1] == 'M' ? le(b + 14, 4) : 0;
    return header == 12 || header == 40 || header == 52 || header == 56 || header == 64 || header == 108 ||
           header == 124;
}

static enum lk_code refuse(const char *name, const char *field, const char *expected, uint32_t got) {
    return lk_fail(LK_E_IMAGE, "%s: BMP: %s: expected %s, got %u; convert it to PNG first, with magick for example",
                   name, field, expected, got);
}

static enum lk_code cut_off(const char *name) {
    return lk_fail(LK_E_IMAGE, "%s: BMP: the file is truncated; get it again", name);
}

/* Masks that say where the colours lie in a pixel. */
static enum lk_code read_masks(struct header *h, const unsigned char *b, const char *name) {
    static const struct {
        unsigned bits;
        uint32_t r, g, b, a;
        unsigned char order[4];
    } known[] = {{32, 0xff0000, 0xff00, 0xff, 0, {2, 1, 0, 4}},
                 {32, 0xff000000, 0xff0000, 0xff00, 0, {3, 2, 1, 4}},
                 {32, 0xff000000, 0xff00, 0xff, 0, {3, 1, 0, 4}},
                 {32, 0xff000000, 0xff0000, 0xff00, 0xff, {3, 2, 1, 0}},
                 {32, 0xff, 0xff00, 0xff0000, 0xff000000, {0, 1, 2, 3}},
                 {32, 0xff0000, 0xff00, 0xff, 0xff000000, {2, 1, 0, 3}},
                 {32, 0xff000000, 0xff00, 0xff, 0xff0000, {3, 1, 0, 2}},
                 {32, 0, 0, 0, 0, {2, 1, 0, 3}},
                 {24, 0xff0000, 0xff00, 0xff, 0, {2, 1, 0, 4}},
                 {16, 0xf800, 0x7e0, 0x1f, 0, {0}},
                 {16, 0x7c00, 0x3e0, 0x1f, 0, {0}}};
    const uint32_t alpha = h->bytes >= 56 && h->bits == 32 ? le(b + 66, 4) : 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].bits != h->bits || known[i].r != le(b + 54, 4) || known[i].g != le(b + 58, 4) ||
            known[i].b != le(b + 62, 4) || known[i].a != alpha)
            continue;
        memcpy(h->order, known[i].order, 4);
        if (h->bits == 32 && h->order[3] < 4) h->channels = 4;
        h->green6 = known[i].g == 0x7e0;
        return LK_OK;
    }
    return refuse(name, "the mask of red", "masks of 8 bits each, 5-6-5 or 5-5-5", le(b + 54, 4));
}

static enum lk_code read_header(struct header *h, const unsigned char *b, size_t n, const char *name) {
    *h = (struct header){.bytes = le(b + 14, 4), .order = {2, 1, 0, 4}, .channels = 3};
    const bool old = h->bytes == 12;
    if (n < 14 + h->bytes) return cut_off(name);
    h->width = le(b + 18, old ? 2 : 4);
    h->height = le(b + (old ? 20 : 22), old ? 2 : 4);
    h->bits = le(b + (old ? 24 : 28), 2);
    if (!old) {
        h->compression = le(b + 30, 4);
        h->n_colors = le(b + 46, 4);
        h->down = b[25] == 0xff;
        if (h->down) h->height = ((int64_t)1 << 32) - h->height;
    }
    if (h->compression != 0 && h->compression != 3)
        return refuse(name, "compression", "0 or 3 (pixels that are not packed)", h->compression);
    if (h->bits != 1 && h->bits != 4 && h->bits != 8 && h->bits != 16 && h->bits != 24 && h->bits != 32)
        return refuse(name, "bits of a pixel", "1, 4, 8, 16, 24 or 32", h->bits);
    h->palette = 14 + h->bytes;
    if (h->compression == 3) {
        if (n < 66 || (h->bytes < 52 && n < h->palette + 12)) return cut_off(name);
        LK_TRY(read_masks(h, b, name));
        if (h->bytes < 52) h->palette += 12;
    }
    h->entry = old ? 3 : 4;
    if (h->bits > 8) h->n_colors = 0;
    if (h->bits <= 8 && !h->n_colors) h->n_colors = (size_t)1 << h->bits;
    if (h->n_colors > 256) return refuse(name, "colours of the palette", "at most 256", (uint32_t)h->n_colors);
    if (h->n_colors * h->entry > n - h->palette) return cut_off(name);
    h->pixels = le(b + 10, 4);
    if (h->pixels == 14 + h->bytes) h->pixels += h->n_colors * h->entry; /* some writers forget the palette */
    if (!h->pixels) h->pixels = h->palette + h->n_colors * h->entry;
    return LK_OK;
}

/* Black to white, step by step: a picture in grey. */
static bool is_grey(const struct header *h, const unsigned char *palette) {
    if (h->bits == 4 || (h->bits == 8) != (h->n_colors > 2)) return false;
    for (size_t i = 0; i < h->n_colors; i++)
        for (size_t c = 0; c < 3; c++)
            if (palette[i * h->entry + c] != (h->bits == 1 ? 255 * i : i)) return false;
    return true;
}

static void read_row(const struct header *h, const unsigned char *row, const unsigned char *palette, uint8_t *to) {
    const size_t n = (size_t)h->channels;
    for (size_t x = 0; x < (size_t)h->width; x++, to += n) {
        if (h->bits <= 8) {
            const size_t i = row[x * h->bits / 8] >> (8 - h->bits - x * h->bits % 8) & ((1u << h->bits) - 1);
            if (n == 1 && h->bits == 8) {
                to[0] = row[x]; /* also what lies beyond the palette */
                continue;
            }
            const unsigned char *color = i < h->n_colors ? palette + i * h->entry : (const unsigned char[3]){0};
            for (size_t c = 0; c < n; c++) to[c] = color[2 - c];
        } else if (h->bits == 16) {
            const uint32_t v = le(row + 2 * x, 2), green = h->green6 ? 63 : 31;
            to[0] = (uint8_t)((v >> (h->green6 ? 11 : 10) & 31) * 255 / 31);
            to[1] = (uint8_t)((v >> 5 & green) * 255 / green);
            to[2] = (uint8_t)((v & 31) * 255 / 31);
        } else {
            for (size_t c = 0; c < n; c++) to[c] = row[x * (h->bits / 8) + h->order[c]];
        }
    }
}

enum lk_code lk_image_bmp_decode(struct lk_image *out, const unsigned char *b, size_t n, const char *name,
                                 int64_t max_pixels) {
    struct header h;
    LK_TRY(read_header(&h, b, n, name));
    LK_TRY(lk_image_check_size(name, h.width, h.height, max_pixels));
    const size_t stride = ((size_t)h.width * h.bits + 31) / 32 * 4, last = ((size_t)h.width * h.bits + 7) / 8;
    if (h.pixels > n || stride * (size_t)(h.height - 1) + last > n - h.pixels) return cut_off(name);
    const bool grey = h.bits <= 8 && is_grey(&h, b + h.palette);
    if (grey) h.channels = 1;
    enum lk_code rc = lk_image_new(out, (int)h.width, (int)h.height, h.channels);
    if (rc) return lk_fail_prefix(rc, "%s", name);
    out->nearest_only = h.bits <= 8 && !(grey && h.bits == 8);
    for (int y = 0; y < out->height; y++)
        read_row(&h, b + h.pixels + stride * (size_t)(h.down ? y : out->height - 1 - y), b + h.palette,
                 out->pixels + (size_t)y * (size_t)h.width * (size_t)h.channels);
    return LK_OK;
}
