/* WebP writing through libwebp, with an EXIF block behind the picture. */
#include <string.h>

#include <webp/encode.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "engine/image/internal.h"

#define LOSSLESS_EFFORT 6

static void add32(struct lk_text *t, size_t value) {
    lk_text_bytes(t, (const char[]){(char)value, (char)(value >> 8), (char)(value >> 16), (char)(value >> 24)}, 4);
}

static void add_chunk(struct lk_text *t, const char *type, const void *bytes, size_t n) {
    lk_text_bytes(t, type, 4);
    add32(t, n);
    lk_text_bytes(t, bytes, n);
    if (n % 2) lk_text_bytes(t, "", 1);
}

/* The file that libwebp made, one chunk with the picture, with a header that tells of the block behind it. */
static enum lk_code wrap(struct lk_text *t, const WebPMemoryWriter *made, const struct lk_image *image,
                         const void *exif, size_t n_exif) {
    const size_t w = (size_t)image->width - 1, h = (size_t)image->height - 1, picture = made->size - 12;
    const char head[10] = {8, 0, 0, 0, (char)w, (char)(w >> 8), 0, (char)h, (char)(h >> 8), 0}; /* 8: EXIF */
    lk_text_bytes(t, "RIFF", 4);
    add32(t, 4 + 18 + picture + 8 + n_exif + n_exif % 2);
    lk_text_bytes(t, "WEBP", 4);
    add_chunk(t, "VP8X", head, sizeof head);
    lk_text_bytes(t, (const char *)made->mem + 12, picture);
    add_chunk(t, "EXIF", exif, n_exif);
    return t->rc;
}

enum lk_code lk_image_webp_encode(const char *name, const struct lk_image *image, int quality, const void *exif,
                                  size_t n_exif, void **out, size_t *n_bytes) {
    struct lk_image rgb;
    struct lk_text t = {0};
    WebPConfig config;
    WebPPicture picture;
    WebPMemoryWriter made;
    if (image->width > WEBP_MAX_DIMENSION || image->height > WEBP_MAX_DIMENSION)
        return lk_fail(LK_E_IMAGE_SIZE, "%s: WebP: expected at most %d pixels a side, got %d x %d; write a PNG", name,
                       WEBP_MAX_DIMENSION, image->width, image->height);
    if (!WebPConfigInit(&config) || !WebPPictureInit(&picture))
        return lk_fail(LK_E_INTERNAL, "%s: another version of libwebp", name);
    LK_TRY(lk_image_to_rgb(&rgb, image));
    config.quality = (float)quality;
    if (quality == 100) WebPConfigLosslessPreset(&config, LOSSLESS_EFFORT);
    picture.use_argb = config.lossless;
    picture.width = image->width;
    picture.height = image->height;
    WebPMemoryWriterInit(&made);
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = &made;
    const bool is = WebPPictureImportRGB(&picture, rgb.pixels, rgb.width * 3) && WebPEncode(&config, &picture);
    enum lk_code rc = is ? wrap(&t, &made, image, exif, n_exif) : LK_E_NOMEM;
    if (rc) {
        rc = lk_fail(rc, "%s: WebP: no memory to write it; free memory and try again", name);
        lk_text_free(&t);
    } else {
        *out = t.bytes;
        *n_bytes = t.n;
    }
    WebPMemoryWriterClear(&made);
    WebPPictureFree(&picture);
    lk_image_free(&rgb);
    return rc;
}
