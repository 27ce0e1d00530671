/* Pictures with texts inside, in the format that a file's name ends in. */
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/image/internal.h"

enum lk_picture_format lk_picture_format(const char *path) {
    const char *dot = strrchr(path, '.');
    if (dot && (!strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg"))) return LK_PICTURE_JPEG;
    return dot && !strcasecmp(dot, ".webp") ? LK_PICTURE_WEBP : LK_PICTURE_PNG;
}

enum lk_code lk_picture_encode(const char *name, const struct lk_image *image, enum lk_picture_format format,
                               int quality, const struct lk_png_text *texts, int n_texts, void **out, size_t *n_bytes) {
    *out = NULL;
    *n_bytes = 0;
    if (format == LK_PICTURE_PNG) return lk_png_encode_with(name, image, texts, n_texts, out, n_bytes);
    if (quality < 1 || quality > 100)
        return lk_fail(LK_E_USAGE, "%s: expected a quality of 1 to 100, got %d", name, quality);
    if (image->channels % 2 == 0)
        return lk_fail(LK_E_IMAGE, "%s: JPEG and WebP are written without alpha; write a PNG, or convert to RGB first",
                       name);
    void *exif;
    size_t n_exif;
    LK_TRY(lk_exif_of_texts(name, texts, n_texts, &exif, &n_exif));
    enum lk_code rc = (format == LK_PICTURE_JPEG ? lk_image_jpeg_encode : lk_image_webp_encode)(
        name, image, quality, exif, n_exif, out, n_bytes);
    lk_free(exif);
    return rc;
}

enum lk_code lk_picture_write(const char *path, const struct lk_image *image, int quality,
                              const struct lk_png_text *texts, int n_texts) {
    const enum lk_picture_format format = lk_picture_format(path);
    if (format == LK_PICTURE_PNG) return lk_png_write(path, image, texts, n_texts);
    void *bytes;
    size_t n;
    LK_TRY(lk_picture_encode(path, image, format, quality, texts, n_texts, &bytes, &n));
    enum lk_code rc = lk_atomic_write_file(path, bytes, n);
    lk_free(bytes);
    return rc;
}

enum lk_code lk_picture_text_parse(const void *bytes, size_t n_bytes, const char *name, struct lk_png_text **out) {
    const unsigned char *b = bytes;
    *out = NULL;
    if (lk_png_has_signature(b, n_bytes)) return lk_png_text_parse(b, n_bytes, name, out);
    if (!lk_webp_has_signature(b, n_bytes) && (n_bytes < 3 || b[0] != 0xff || b[1] != 0xd8 || b[2] != 0xff))
        return lk_fail(LK_E_METADATA, "%s: expected a PNG, JPEG or WebP, got another kind of file", name);
    unsigned char *exif;
    size_t n;
    LK_TRY(lk_image_exif(b, n_bytes, &exif, &n));
    enum lk_code rc = lk_exif_texts(exif, n, name, out);
    lk_free(exif);
    return rc;
}

enum lk_code lk_picture_text_read(const char *path, struct lk_png_text **out) {
    *out = NULL;
    unsigned char *bytes;
    size_t n_bytes;
    LK_TRY(lk_image_read_bytes(path, &bytes, &n_bytes));
    enum lk_code rc = lk_picture_text_parse(bytes, n_bytes, path, out);
    lk_free(bytes);
    return rc;
}
