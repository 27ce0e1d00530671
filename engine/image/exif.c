/* The orientation that a camera noted, as Pillow 13's getexif finds it: the EXIF block, else XMP. And turning by it.
 * What makes Pillow raise an error (a block that is no TIFF, a profile that is no hexadecimal text) turns nothing here.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"
#include "engine/image/internal.h"
#include "engine/image/tiff.h"

#define TAG_ORIENTATION 0x0112

struct span {
    const unsigned char *bytes;
    size_t n;
};

static unsigned get16(struct span tiff, size_t at, bool little) {
    const unsigned char *b = tiff.bytes + at;
    return little ? b[0] | (unsigned)b[1] << 8 : (unsigned)b[0] << 8 | b[1];
}

static size_t get32(struct span tiff, size_t at, bool little) {
    size_t a = get16(tiff, at, little), b = get16(tiff, at + 2, little);
    return little ? a | b << 16 : a << 16 | b;
}

static uint64_t get64(struct span tiff, size_t at, bool little) {
    uint64_t a = get32(tiff, at, little), b = get32(tiff, at + 4, little);
    return little ? a | b << 32 : a << 32 | b;
}

enum { BYTE = 1, ASCII, SHORT, LONG, RATIONAL, SBYTE, UNDEFINED, SSHORT, SLONG, SRATIONAL, FLOAT, DOUBLE, IFD };
enum { LONG8 = 16 };

static size_t element_bytes(unsigned type) {
    static const unsigned char sizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8};
    return type < sizeof sizes ? sizes[type] : 0;
}

/* 1 to 8 where the first element of that type equals it, as a number; else 0: texts and bytes equal no number. */
static int orientation_of(struct span tiff, size_t at, unsigned type, bool little) {
    double value = 0, below = 1;
    uint32_t bits = 0;
    uint64_t long_bits = 0;
    float narrow = 0;
    switch (type) {
    case SHORT:
        value = get16(tiff, at, little);
        break;
    case SSHORT:
        value = (int16_t)get16(tiff, at, little);
        break;
    case SBYTE:
        value = (int8_t)tiff.bytes[at];
        break;
    case LONG:
    case IFD:
        value = (double)get32(tiff, at, little);
        break;
    case SLONG:
        value = (int32_t)get32(tiff, at, little);
        break;
    case LONG8:
        value = (double)get64(tiff, at, little);
        break;
    case RATIONAL:
        value = (double)get32(tiff, at, little), below = (double)get32(tiff, at + 4, little);
        break;
    case SRATIONAL:
        value = (int32_t)get32(tiff, at, little), below = (int32_t)get32(tiff, at + 4, little);
        break;
    case FLOAT:
        bits = (uint32_t)get32(tiff, at, little);
        memcpy(&narrow, &bits, sizeof narrow);
        value = (double)narrow;
        break;
    case DOUBLE:
        long_bits = get64(tiff, at, little);
        memcpy(&value, &long_bits, sizeof value);
        break;
    default:
        return 0;
    }
    for (int i = 1; i <= 8; i++)
        if (below != 0 && value == i * below) return i;
    return 0;
}

static bool starts_with(struct span s, const char *text, size_t n) { return s.n >= n && !memcmp(s.bytes, text, n); }

static struct span skip(struct span s, size_t n) { return (struct span){s.bytes + n, s.n - n}; }

static const char exif_header[] = "Exif\0"; /* and the literal's own NUL: 6 bytes */

/* The TIFF block of an EXIF block: its header is there once, twice or not at all. Empty: none. */
static struct span tiff_of(struct span exif) {
    static const char heads[][5] = {"II*\0", "II\0*", "MM\0*", "MM*\0", "MM\0+"}; /* with the marks that occur */
    for (int i = 0; i < 2 && starts_with(exif, exif_header, sizeof exif_header); i++)
        exif = skip(exif, sizeof exif_header);
    for (size_t i = 0; exif.n >= 8 && i < sizeof heads / sizeof *heads; i++)
        if (!memcmp(exif.bytes, heads[i], 4)) return exif;
    return (struct span){0};
}

/* The tag in the first directory of a TIFF block: orientation_of its value; -1 when it is not there. Of two the first
 * counts. The directory ends where its data do not lie in the block; values that together are longer than the block are
 * passed over. */
static int tiff_orientation(struct span tiff) {
    if (!tiff.n) return -1;
    const bool little = tiff.bytes[0] == 'I';
    size_t at = get32(tiff, 4, little), used = 0;
    if (at > tiff.n - 2) return -1;
    const size_t n_entries = get16(tiff, at, little);
    at += 2;
    for (size_t i = 0; i < n_entries && at + 12 <= tiff.n; i++, at += 12) {
        const unsigned tag = get16(tiff, at, little), type = get16(tiff, at + 2, little);
        const size_t size = get32(tiff, at + 4, little) * element_bytes(type);
        size_t data = at + 8;
        if (!size) continue;
        if (size > 4) {
            data = get32(tiff, at + 8, little);
            used += size;
            if (used > tiff.n) continue;
            if (data > tiff.n || size > tiff.n - data) return -1;
        }
        if (tag == TAG_ORIENTATION) return orientation_of(tiff, data, type, little);
    }
    return -1;
}

/* tiff:Orientation="6" or <tiff:Orientation>6</tiff:Orientation>; -1 when it is not there. */
static int xmp_orientation(struct span xmp) {
    static const char key[] = "tiff:Orientation";
    const size_t key_length = sizeof key - 1;
    for (size_t i = 0; i + key_length + 2 <= xmp.n; i++) {
        if (memcmp(xmp.bytes + i, key, key_length)) continue;
        const unsigned char *p = xmp.bytes + i + key_length, *end = xmp.bytes + xmp.n;
        if (*p == '>')
            p++;
        else if (end - p > 2 && p[0] == '=' && p[1] == '"')
            p += 2;
        else
            continue;
        if (p < end && *p >= '0' && *p <= '9') return *p - '0';
    }
    return -1;
}

/* Where a file keeps both; `owned` is what had to be put together or unpacked. */
struct found {
    struct span exif, xmp;
    bool has_exif, is_broken; /* where Pillow raises an error */
    bool xmp_is_text;         /* UTF-8 counts before other bytes */
    unsigned char *owned_exif;
    char *owned_xmp;
};

static enum lk_code no_memory(void) {
    return lk_fail(LK_E_NOMEM, "image: no memory for its EXIF block; free memory and try again");
}

/* Blocks longer than a segment go on in the next, behind a header of its own. */
static enum lk_code append_exif(struct found *f, struct span body) {
    if (!f->has_exif) {
        f->has_exif = true;
        f->exif = body;
        return LK_OK;
    }
    body = skip(body, sizeof exif_header);
    unsigned char *all = lk_malloc(f->exif.n + body.n + 1);
    if (!all) return no_memory();
    memcpy(all, f->exif.bytes, f->exif.n);
    memcpy(all + f->exif.n, body.bytes, body.n);
    f->exif = (struct span){all, f->exif.n + body.n};
    lk_free(f->owned_exif);
    f->owned_exif = all;
    return LK_OK;
}

/* Marker segments up to the first scan. */
static enum lk_code find_in_jpeg(struct span file, struct found *f) {
    static const char xmp_header[] = "http://ns.adobe.com/xap/1.0/"; /* and NUL */
    for (size_t at = 2; at + 4 <= file.n;) {
        if (file.bytes[at] != 0xff || file.bytes[at + 1] == 0xff || file.bytes[at + 1] == 0) {
            at++;
            continue;
        }
        unsigned marker = file.bytes[at + 1];
        at += 2;
        if (marker == 0xda || marker == 0xd9) return LK_OK;
        if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8)) continue;
        size_t length = get16(file, at, false);
        if (length < 2 || length > file.n - at) return LK_OK;
        struct span body = {file.bytes + at + 2, length - 2};
        if (marker == 0xe1 && starts_with(body, exif_header, sizeof exif_header)) LK_TRY(append_exif(f, body));
        if (marker == 0xe1 && starts_with(body, xmp_header, sizeof xmp_header)) f->xmp = skip(body, sizeof xmp_header);
        at += length;
    }
    return LK_OK;
}

/* ImageMagick's "\nexif\n    LENGTH\nHEXADECIMAL" as bytes; false when it is not that. */
static bool from_hexadecimal(const char *text, unsigned char *out, size_t *n) {
    int high = -1;
    *n = 0;
    for (int line = 0; line < 3 && text; line++) text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
    for (; text && *text; text++) {
        static const char digits[] = "0123456789abcdef";
        if (memchr(" \t\n\r\v\f", *text, 6) && high < 0) continue;
        const char *digit = strchr(digits, *text | 0x20);
        if (!digit || *text < '0') return false;
        if (high < 0) {
            high = (int)(digit - digits);
            continue;
        }
        out[(*n)++] = (unsigned char)(high << 4 | (int)(digit - digits));
        high = -1;
    }
    return high < 0;
}

/* A chunk of text that holds XMP or, as older programs write it, EXIF. */
static enum lk_code find_in_text(const struct lk_png_chunk *chunk, struct found *f, unsigned char **profile, size_t *n,
                                 bool *is_broken) {
    char *text;
    LK_TRY(lk_png_text_of(chunk, "XML:com.adobe.xmp", &text));
    const bool is_text = text && lk_utf8_valid(text, strlen(text));
    if (text && (is_text || !f->xmp_is_text)) {
        lk_free(f->owned_xmp);
        f->owned_xmp = text;
        f->xmp = (struct span){(const unsigned char *)text, strlen(text)};
        f->xmp_is_text = is_text;
    } else {
        lk_free(text);
    }
    LK_TRY(lk_png_text_of(chunk, "Raw profile type exif", &text));
    if (!text) return LK_OK;
    lk_free(*profile);
    *profile = lk_malloc(strlen(text) + 1);
    if (*profile) *is_broken = !from_hexadecimal(text, *profile, n);
    lk_free(text);
    return *profile ? LK_OK : no_memory();
}

static enum lk_code find_in_png(struct span file, struct found *f) {
    struct lk_png_chunk chunk;
    size_t at = LK_PNG_SIGNATURE_BYTES, n = 0;
    unsigned char *profile = NULL;
    bool is_broken = false;
    enum lk_code rc = LK_OK;
    while (!rc && lk_png_next_chunk(file.bytes, file.n, &at, false, &chunk)) {
        struct span body = {chunk.data, chunk.n_bytes};
        if (!strcmp(chunk.type, "eXIf")) {
            f->has_exif = true; /* its own header is the second one */
            f->exif = starts_with(body, exif_header, sizeof exif_header) ? skip(body, sizeof exif_header) : body;
            f->is_broken = starts_with(f->exif, exif_header, sizeof exif_header);
        } else if (!strcmp(chunk.type, "IEND")) {
            break;
        } else {
            rc = find_in_text(&chunk, f, &profile, &n, &is_broken);
        }
    }
    if (f->has_exif || rc) {
        lk_free(profile);
        return rc;
    }
    f->owned_exif = profile;
    f->is_broken = is_broken;
    f->exif = (struct span){profile, n};
    return LK_OK;
}

static enum lk_code find_in_webp(struct span file, struct found *f) {
    unsigned char *xmp;
    LK_TRY(lk_webp_chunk(file.bytes, file.n, "EXIF", &f->owned_exif, &f->exif.n));
    f->exif.bytes = f->owned_exif;
    LK_TRY(lk_webp_chunk(file.bytes, file.n, "XMP ", &xmp, &f->xmp.n));
    f->owned_xmp = (char *)xmp;
    f->xmp.bytes = xmp;
    return LK_OK;
}

/* The file is the EXIF block; a tag of it may hold XMP. */
static void find_in_tiff(struct span file, struct found *f) {
    unsigned type;
    f->exif = file;
    f->xmp.bytes = lk_tiff_tag(file.bytes, file.n, 700, &type, &f->xmp.n);
    if (!f->xmp.bytes || (type != BYTE && type != UNDEFINED)) f->xmp.n = 0;
}

enum lk_code lk_image_orientation(const unsigned char *bytes, size_t n_bytes, int *out) {
    const struct span file = {bytes, n_bytes};
    struct found f = {0};
    *out = 1;
    if (lk_tiff_has_signature(bytes, n_bytes)) find_in_tiff(file, &f);
    enum lk_code rc = lk_png_has_signature(bytes, n_bytes)    ? find_in_png(file, &f)
                      : lk_webp_has_signature(bytes, n_bytes) ? find_in_webp(file, &f)
                      : f.exif.n                              ? LK_OK
                                                              : find_in_jpeg(file, &f);
    if (!rc && !f.is_broken) {
        const struct span tiff = tiff_of(f.exif);
        int orientation = tiff_orientation(tiff);
        if (orientation < 0 && (tiff.n || !f.exif.n)) orientation = xmp_orientation(f.xmp);
        if (orientation >= 1 && orientation <= 8) *out = orientation;
    }
    lk_free(f.owned_exif);
    lk_free(f.owned_xmp);
    return rc;
}

enum lk_code lk_image_exif(const unsigned char *bytes, size_t n_bytes, unsigned char **out, size_t *n) {
    const struct span file = {bytes, n_bytes};
    struct found f = {0};
    enum lk_code rc = (lk_webp_has_signature(bytes, n_bytes) ? find_in_webp : find_in_jpeg)(file, &f);
    const struct span tiff = rc ? (struct span){0} : tiff_of(f.exif);
    *out = rc ? NULL : lk_malloc(tiff.n + 1);
    *n = *out ? tiff.n : 0;
    if (*n) memcpy(*out, tiff.bytes, tiff.n);
    if (!rc && !*out) rc = no_memory();
    lk_free(f.owned_exif);
    lk_free(f.owned_xmp);
    return rc;
}

/* Output (x, y) of an image of w x h reads input (u, v); 5..8 have swapped sides. */
static void source_of(int orientation, int w, int h, int x, int y, int *u, int *v) {
    bool swap = orientation >= 5;
    int in_w = swap ? h : w, in_h = swap ? w : h;
    int a = swap ? y : x, b = swap ? x : y;
    bool flip_u = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    bool flip_v = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    *u = flip_u ? in_w - 1 - a : a;
    *v = flip_v ? in_h - 1 - b : b;
}

/* `to` is width x height. */
static void turn(uint8_t *to, const uint8_t *pixels, int width, int height, int orientation, size_t channels) {
    int in_width = orientation >= 5 ? height : width;
    for (int y = 0; y < height; y++) {
        int u, v, u_next, v_next;
        source_of(orientation, width, height, 0, y, &u, &v);
        source_of(orientation, width, height, 1, y, &u_next, &v_next);
        ptrdiff_t step = ((ptrdiff_t)(v_next - v) * in_width + (u_next - u)) * (ptrdiff_t)channels;
        const uint8_t *from = pixels + ((size_t)v * (size_t)in_width + (size_t)u) * channels;
        for (int x = 0; x < width; x++, to += channels) memcpy(to, from + x * step, channels);
    }
}

enum lk_code lk_image_orient(struct lk_image *image, int orientation) {
    if (orientation < 2 || orientation > 8) return LK_OK;
    bool swap = orientation >= 5;
    int width = swap ? image->height : image->width, height = swap ? image->width : image->height;
    struct lk_image turned;
    enum lk_code rc = lk_image_new(&turned, width, height, image->channels);
    if (rc) return rc;
    turned.nearest_only = image->nearest_only;
    memcpy(turned.converted_from, image->converted_from, sizeof turned.converted_from);
    turn(turned.pixels, image->pixels, width, height, orientation, (size_t)image->channels);
    size_t n = lk_image_unconverted_bytes(image);
    if (n && !(turned.unconverted = lk_malloc(n))) {
        lk_image_free(&turned);
        return lk_fail(LK_E_NOMEM, "image: no memory to turn %d x %d pixels; free memory and try again", width, height);
    }
    if (n) turn(turned.unconverted, image->unconverted, width, height, orientation, n / (size_t)width / (size_t)height);
    lk_image_free(image);
    *image = turned;
    return LK_OK;
}
