/* Which colours a picture's numbers mean: the ICC profile in PNG (iCCP), JPEG (APP2), WebP
 * (ICCP) and TIFF (34675). Source:
 * ICC.1:2022. */
#include <math.h>
#include <string.h>
#include <zlib.h>

#include "engine/base/alloc.h"
#include "engine/image/image.h"
#include "engine/image/internal.h"
#include "engine/image/tiff.h"

#define PROFILE_MAX ((size_t)4 << 20)
#define HEADER      132 /* with the number of tags */

struct profile {
    unsigned char *bytes; /* lk_malloc */
    size_t n;
};

static uint32_t be32(const unsigned char *b) {
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Between the name and the stream stand a zero and the method, 0. */
static void inflate_profile(struct profile *p, const unsigned char *chunk, size_t n) {
    const unsigned char *end = memchr(chunk, 0, n < 80 ? n : 80);
    if (!end || (size_t)(end + 2 - chunk) >= n || end[1]) return;
    uLongf size = PROFILE_MAX;
    if (!(p->bytes = lk_malloc(PROFILE_MAX))) return;
    if (uncompress(p->bytes, &size, end + 2, (uLong)(chunk + n - end - 2)) == Z_OK) p->n = size;
}

static void of_png(struct profile *p, const unsigned char *b, size_t n) {
    for (size_t at = LK_PNG_SIGNATURE_BYTES; at + 12 <= n;) {
        const size_t length = be32(b + at);
        if (length > n - at - 12 || !memcmp(b + at + 4, "IDAT", 4)) return;
        if (!memcmp(b + at + 4, "iCCP", 4)) {
            inflate_profile(p, b + at + 8, length);
            return;
        }
        at += 12 + length;
    }
}

/* Segments in the order of the file, which writers keep. */
static void of_jpeg(struct profile *p, const unsigned char *b, size_t n) {
    static const char name[] = "ICC_PROFILE";
    enum { BEFORE = 4 + sizeof name + 2 }; /* marker, length, name, number, how many */
    for (size_t at = 2; at + BEFORE <= n && b[at] == 0xff && b[at + 1] != 0xda;) {
        const size_t length = (size_t)b[at + 2] << 8 | b[at + 3];
        if (length < 2 || length > n - at - 2) return;
        const size_t more = length + 2 - (length + 2 > BEFORE ? BEFORE : length + 2);
        if (b[at + 1] == 0xe2 && more && !memcmp(b + at + 4, name, sizeof name)) {
            unsigned char *grown = p->n + more <= PROFILE_MAX ? lk_realloc(p->bytes, p->n + more) : NULL;
            if (!grown) return;
            memcpy(grown + p->n, b + at + BEFORE, more);
            p->bytes = grown;
            p->n += more;
        }
        at += 2 + length;
    }
}

static const unsigned char *find_tag(const struct profile *p, const char *name, uint32_t *size) {
    const uint32_t n = be32(p->bytes + HEADER - 4);
    for (uint32_t i = 0; i < n && i < 100 && HEADER + 12 * (size_t)(i + 1) <= p->n; i++) {
        const unsigned char *entry = p->bytes + HEADER + 12 * (size_t)i;
        const uint32_t at = be32(entry + 4);
        *size = be32(entry + 8);
        if (!memcmp(entry, name, 4)) return at < p->n && *size <= p->n - at ? p->bytes + at : NULL;
    }
    return NULL;
}

/* Primaries of sRGB, adapted to D50. */
static bool has_colorants(const struct profile *p, bool *srgb) {
    static const struct {
        const char *tag;
        double xyz[3];
    } known[] = {{"rXYZ", {0.43607, 0.22249, 0.01392}},
                 {"gXYZ", {0.38515, 0.71687, 0.09708}},
                 {"bXYZ", {0.14307, 0.06061, 0.71410}}};
    *srgb = true;
    for (int c = 0; c < 3; c++) {
        uint32_t size;
        const unsigned char *tag = find_tag(p, known[c].tag, &size);
        if (!tag || size < 20 || memcmp(tag, "XYZ ", 4)) return false;
        for (int i = 0; i < 3; i++)
            *srgb &= fabs((int32_t)be32(tag + 8 + 4 * (size_t)i) / 65536.0 - known[c].xyz[i]) < 0.004;
    }
    return true;
}

/* Printable ASCII of the description; "" if there is none. */
static void describe(const struct profile *p, char name[LK_IMAGE_PROFILE_NAME]) {
    uint32_t size;
    size_t at, step, n, used = 0;
    const unsigned char *tag = find_tag(p, "desc", &size);
    *name = 0;
    if (!tag || size < 12) return;
    if (!memcmp(tag, "desc", 4)) {
        at = 12, step = 1, n = be32(tag + 8);
    } else if (!memcmp(tag, "mluc", 4) && size >= 28) {
        at = be32(tag + 24), step = 2, n = be32(tag + 20);
    } else {
        return;
    }
    for (size_t i = 0; i + step <= n && at + i + step <= size && used + 1 < LK_IMAGE_PROFILE_NAME; i += step) {
        const unsigned char c = tag[at + i + step - 1];
        if (!c) break;
        name[used++] = c >= 0x20 && c < 0x7f && (step == 1 || !tag[at + i]) ? (char)c : '?';
    }
    name[used] = 0;
}

static void of_tiff(struct profile *p, const unsigned char *b, size_t n) {
    unsigned type;
    size_t count = 0;
    const unsigned char *tag = lk_tiff_tag(b, n, 34675, &type, &count);
    if (!tag || (type != 1 && type != 7) || !(p->bytes = lk_malloc(count + 1))) return;
    memcpy(p->bytes, tag, count);
    p->n = count;
}

bool lk_icc_other_colours(const unsigned char *b, size_t n_bytes, char name[LK_IMAGE_PROFILE_NAME],
                          unsigned char **profile, size_t *n) {
    struct profile p = {0};
    bool srgb = true;
    *name = 0;
    if (n_bytes > LK_PNG_SIGNATURE_BYTES && !memcmp(b, "\x89PNG", 4))
        of_png(&p, b, n_bytes);
    else if (n_bytes > 4 && b[0] == 0xff && b[1] == 0xd8)
        of_jpeg(&p, b, n_bytes);
    else if (lk_webp_has_signature(b, n_bytes) && lk_webp_chunk(b, n_bytes, "ICCP", &p.bytes, &p.n))
        p.n = 0;
    else if (lk_tiff_has_signature(b, n_bytes))
        of_tiff(&p, b, n_bytes);
    if (p.n >= HEADER) {
        describe(&p, name);
        if (!has_colorants(&p, &srgb)) srgb = strstr(name, "sRGB") != NULL;
        if (!*name) memcpy(name, "no name", sizeof "no name");
    }
    *profile = srgb ? NULL : p.bytes;
    *n = p.n;
    if (srgb) lk_free(p.bytes);
    return !srgb;
}

bool lk_image_other_colours(const void *bytes, size_t n_bytes, char name[LK_IMAGE_PROFILE_NAME]) {
    unsigned char *profile;
    size_t n;
    const bool is = lk_icc_other_colours(bytes, n_bytes, name, &profile, &n);
    lk_free(profile);
    return is;
}

bool lk_image_file_other_colours(const char *path, char name[LK_IMAGE_PROFILE_NAME]) {
    unsigned char *bytes;
    size_t n;
    *name = 0;
    if (lk_image_read_bytes(path, &bytes, &n)) return false;
    const bool is = lk_image_other_colours(bytes, n, name);
    lk_free(bytes);
    return is;
}
