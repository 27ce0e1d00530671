/* The orientation that a camera noted, as PIL's getexif finds it: the EXIF block, else XMP. And turning by it. */
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/image/internal.h"

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

/* The tag's number in the first directory of a TIFF block; -1 when it is not there. */
static int64_t tiff_orientation(struct span tiff) {
    if (tiff.n < 8) return -1;
    bool little = tiff.bytes[0] == 'I';
    if ((memcmp(tiff.bytes, "II", 2) && memcmp(tiff.bytes, "MM", 2)) || get16(tiff, 2, little) != 42) return -1;
    size_t at = get32(tiff, 4, little);
    if (at > tiff.n - 2) return -1;
    int64_t found = -1;
    size_t n_entries = get16(tiff, at, little);
    at += 2;
    for (size_t i = 0; i < n_entries && at + 12 <= tiff.n; i++, at += 12) {
        if (get16(tiff, at, little) != TAG_ORIENTATION || get32(tiff, at + 4, little) != 1) continue;
        unsigned type = get16(tiff, at + 2, little);
        if (type == 1) found = tiff.bytes[at + 8];
        if (type == 3) found = get16(tiff, at + 8, little);
        if (type == 4) found = (int64_t)get32(tiff, at + 8, little);
    }
    return found;
}

/* tiff:Orientation="6" or <tiff:Orientation>6</tiff:Orientation>; -1 when it is not there. */
static int64_t xmp_orientation(struct span xmp) {
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

static const char exif_header[] = "Exif\0";                      /* and the literal's own NUL: 6 bytes */
static const char xmp_header[] = "http://ns.adobe.com/xap/1.0/"; /* and NUL */

static bool starts_with(struct span s, const char *text, size_t n) { return s.n >= n && !memcmp(s.bytes, text, n); }

static struct span skip(struct span s, size_t n) { return (struct span){s.bytes + n, s.n - n}; }

/* Marker segments up to the first scan. An EXIF block longer than a segment goes on in the next; its first directory,
 * which is all that is read here, stands in the first. */
static void find_in_jpeg(struct span file, struct span *exif, struct span *xmp) {
    for (size_t at = 2; at + 4 <= file.n;) {
        if (file.bytes[at] != 0xff || file.bytes[at + 1] == 0xff || file.bytes[at + 1] == 0) {
            at++;
            continue;
        }
        unsigned marker = file.bytes[at + 1];
        at += 2;
        if (marker == 0xda || marker == 0xd9) return;
        if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8)) continue;
        size_t length = get16(file, at, false);
        if (length < 2 || length > file.n - at) return;
        struct span body = {file.bytes + at + 2, length - 2};
        if (marker == 0xe1 && starts_with(body, exif_header, sizeof exif_header) && !exif->bytes)
            *exif = skip(body, sizeof exif_header);
        if (marker == 0xe1 && starts_with(body, xmp_header, sizeof xmp_header)) *xmp = skip(body, sizeof xmp_header);
        at += length;
    }
}

/* XMP lies in an uncompressed iTXt chunk: key NUL 0 0 language NUL translated key NUL text. */
static void find_in_png(struct span file, struct span *exif, struct span *xmp) {
    static const char key[] = "XML:com.adobe.xmp\0";
    struct lk_png_chunk chunk;
    size_t at = LK_PNG_SIGNATURE_BYTES;
    while (lk_png_next_chunk(file.bytes, file.n, &at, false, &chunk)) {
        struct span body = {chunk.data, chunk.n_bytes};
        if (!strcmp(chunk.type, "eXIf"))
            *exif = starts_with(body, exif_header, sizeof exif_header) ? skip(body, sizeof exif_header) : body;
        if (!strcmp(chunk.type, "iTXt") && starts_with(body, key, sizeof key)) *xmp = skip(body, sizeof key);
    }
}

int lk_image_orientation(const unsigned char *bytes, size_t n_bytes) {
    struct span file = {bytes, n_bytes}, exif = {0}, xmp = {0};
    if (lk_png_has_signature(bytes, n_bytes))
        find_in_png(file, &exif, &xmp);
    else if (n_bytes >= 2)
        find_in_jpeg(file, &exif, &xmp);
    int64_t orientation = tiff_orientation(exif);
    if (orientation < 0) orientation = xmp_orientation(xmp);
    return orientation >= 1 && orientation <= 8 ? (int)orientation : 1;
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
