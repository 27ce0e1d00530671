#include "engine/image/internal.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/content.h"
#include "engine/base/file.h"

#define FILE_BYTES_MAX ((int64_t)2 << 30)

void lk_image_free(struct lk_image *image) {
    lk_free(image->pixels);
    lk_free(image->unconverted);
    *image = (struct lk_image){0};
}

size_t lk_image_unconverted_bytes(const struct lk_image *image) {
    size_t pixel = !image->unconverted ? 0 : image->channels == 3 ? 4 : 2;
    return (size_t)image->width * (size_t)image->height * pixel;
}

enum lk_code lk_image_check_size(const char *name, int64_t width, int64_t height, int64_t max_pixels) {
    if (max_pixels <= 0) max_pixels = LK_IMAGE_PIXELS_MAX;
    if (width < 1 || height < 1 || width > LK_IMAGE_SIDE_MAX || height > LK_IMAGE_SIDE_MAX)
        return lk_fail(LK_E_IMAGE_SIZE,
                       "%s: width, height: expected 1 to %d pixels, got %lld x %lld; resize the image first", name,
                       LK_IMAGE_SIDE_MAX, (long long)width, (long long)height);
    if (width * height > max_pixels)
        return lk_fail(
            LK_E_IMAGE_SIZE,
            "%s: width, height: expected at most %lld pixels, got %lld x %lld = %lld; resize the image first", name,
            (long long)max_pixels, (long long)width, (long long)height, (long long)(width * height));
    return LK_OK;
}

enum lk_code lk_image_new(struct lk_image *image, int width, int height, int channels) {
    *image = (struct lk_image){0};
    if (width < 1 || height < 1 || channels < 1 || channels > 4)
        return lk_fail(LK_E_IMAGE_SIZE, "image: expected sides of at least 1 and 1 to 4 channels, got %d x %d x %d",
                       width, height, channels);
    size_t n;
    uint8_t *pixels = NULL;
    if (!__builtin_mul_overflow((size_t)width * (size_t)channels, (size_t)height, &n)) pixels = lk_malloc(n);
    if (!pixels)
        return lk_fail(LK_E_NOMEM,
                       "image: no memory for %d x %d pixels of %d channels; free memory or use a smaller image", width,
                       height, channels);
    *image = (struct lk_image){.width = width, .height = height, .channels = channels, .pixels = pixels};
    return LK_OK;
}

/* What is left of the light after black, less the ink's share of that. */
static void cmyk_to_rgb(uint8_t *restrict to, const uint8_t *restrict from, size_t n) {
    for (size_t i = 0; i < n; i++, from += 4, to += 3) {
        unsigned light = 255u - from[3];
        for (int c = 0; c < 3; c++) {
            unsigned t = from[c] * light + 128;
            to[c] = (uint8_t)(light - (((t >> 8) + t) >> 8));
        }
    }
}

void lk_image_convert(uint8_t *pixels, const uint8_t *unconverted, size_t n, int channels) {
    if (channels == 3) {
        cmyk_to_rgb(pixels, unconverted, n);
        return;
    }
    for (size_t i = 0; i < n; i++) pixels[i] = unconverted[2 * i] ? 255 : unconverted[2 * i + 1];
}

enum lk_code lk_image_crop(struct lk_image *out, const struct lk_image *in, int left, int top, int width, int height) {
    *out = (struct lk_image){0};
    if (left < 0 || top < 0 || width < 1 || height < 1 || left > in->width - width || top > in->height - height)
        return lk_fail(LK_E_IMAGE_SIZE, "image: expected a crop inside %d x %d, got %d x %d at (%d, %d)", in->width,
                       in->height, width, height, left, top);
    struct lk_image cropped;
    enum lk_code rc = lk_image_new(&cropped, width, height, in->channels);
    if (rc) return rc;
    cropped.nearest_only = in->nearest_only;
    size_t pixel = (size_t)in->channels, row = (size_t)width * pixel;
    for (int y = 0; y < height; y++)
        memcpy(cropped.pixels + (size_t)y * row,
               in->pixels + ((size_t)(top + y) * (size_t)in->width + (size_t)left) * pixel, row);
    *out = cropped;
    return LK_OK;
}

enum lk_code lk_image_to_rgb(struct lk_image *out, const struct lk_image *in) {
    *out = (struct lk_image){0};
    struct lk_image rgb;
    enum lk_code rc = lk_image_new(&rgb, in->width, in->height, 3);
    if (rc) return rc;
    size_t n = (size_t)in->width * (size_t)in->height, channels = (size_t)in->channels;
    const uint8_t *from = in->pixels;
    uint8_t *to = rgb.pixels;
    if (channels == 3) memcpy(to, from, n * 3);
    for (size_t i = 0; i < n && channels != 3; i++, from += channels, to += 3) {
        to[0] = from[0];
        to[1] = from[channels < 3 ? 0 : 1];
        to[2] = from[channels < 3 ? 0 : 2];
    }
    *out = rgb;
    return LK_OK;
}

/* PIL's alpha_composite over opaque white. */
static uint8_t on_white(unsigned value, unsigned alpha) {
    unsigned front = alpha * 128, sum = value * front + 255 * (255 * 128 - front) + (0x80 << 7);
    return (uint8_t)((((sum >> 8) + sum) >> 8) >> 7);
}

enum lk_code lk_image_on_white(struct lk_image *out, const struct lk_image *in) {
    LK_TRY(lk_image_to_rgb(out, in));
    if (in->channels % 2) return LK_OK;
    size_t n = (size_t)in->width * (size_t)in->height, channels = (size_t)in->channels;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            out->pixels[3 * i + c] = on_white(out->pixels[3 * i + c], in->pixels[channels * i + channels - 1]);
    return LK_OK;
}

enum lk_code lk_image_decode(struct lk_image *out, const void *bytes, size_t n_bytes, const char *name, int apply_exif,
                             int64_t max_pixels) {
    *out = (struct lk_image){0};
    const unsigned char *b = bytes;
    enum lk_code rc;
    if (n_bytes >= 3 && b[0] == 0xff && b[1] == 0xd8 && b[2] == 0xff)
        rc = lk_image_jpeg_decode(out, b, n_bytes, name, max_pixels);
    else if (lk_png_has_signature(b, n_bytes))
        rc = lk_image_png_decode(out, b, n_bytes, name, max_pixels);
    else if (lk_webp_has_signature(b, n_bytes))
        rc = lk_image_webp_decode(out, b, n_bytes, name, max_pixels);
    else if (lk_tiff_has_signature(b, n_bytes))
        rc = lk_image_tiff_decode(out, b, n_bytes, name, max_pixels);
    else if (lk_bmp_has_signature(b, n_bytes))
        rc = lk_image_bmp_decode(out, b, n_bytes, name, max_pixels);
    else
        rc = lk_fail(
            LK_E_IMAGE,
            "%s: expected a JPEG, PNG, WebP, TIFF or BMP by its first bytes, got %s; convert it to PNG first, with "
            "magick for example",
            name, lk_content_name(b, n_bytes));
    int orientation = 1;
    if (!rc && !(apply_exif & LK_IMAGE_AS_STORED)) rc = lk_image_to_srgb(out, b, n_bytes, name);
    if (!rc && ((apply_exif & 1) || lk_tiff_has_signature(b, n_bytes)))
        rc = lk_image_orientation(b, n_bytes, &orientation);
    if (!rc) rc = lk_image_orient(out, orientation);
    if (rc) lk_image_free(out);
    return rc;
}

enum lk_code lk_image_read_bytes(const char *path, unsigned char **out, size_t *n_bytes) {
    char *bytes;
    enum lk_code rc = lk_read_file(path, FILE_BYTES_MAX, &bytes, n_bytes);
    *out = (unsigned char *)bytes;
    return rc;
}

enum lk_code lk_image_read(struct lk_image *out, const char *path, int apply_exif, int64_t max_pixels) {
    *out = (struct lk_image){0};
    unsigned char *bytes;
    size_t n_bytes;
    enum lk_code rc = lk_image_read_bytes(path, &bytes, &n_bytes);
    if (rc) return rc;
    rc = lk_image_decode(out, bytes, n_bytes, path, apply_exif, max_pixels);
    lk_free(bytes);
    return rc;
}

const char *lk_image_file_unseen(const char *path) {
    struct lk_image image = {0};
    bool wide = false, clear = false;
    if (lk_image_read(&image, path, 0, 0)) return NULL;
    const size_t n = (size_t)image.width * (size_t)image.height, c = (size_t)image.channels;
    for (size_t i = 0; i < n && image.unconverted && c == 1 && !wide; i++) wide = image.unconverted[2 * i];
    for (size_t i = 0; i < n && c % 2 == 0 && !clear; i++) clear = image.pixels[i * c + c - 1] != 255;
    lk_image_free(&image);
    return wide    ? "grey of 16 bits, of which models see all above 255 as white: save it with 8 bits"
           : clear ? "transparent parts, of which models see the hidden colours: save it without alpha"
                   : NULL;
}
