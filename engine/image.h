/* Images in host memory: decode (JPEG, PNG), resize with the bytes of Pillow, write PNG and JPEG. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/status.h"

/* 8-bit channels interleaved, rows top to bottom, no row padding. `pixels` belongs to the image (lk_image_free). */
struct lk_image {
    int width, height;
    int channels; /* 1 grey, 2 grey+alpha, 3 RGB, 4 RGBA */
    uint8_t *pixels;
};

enum lk_resample { LK_RESAMPLE_NEAREST, LK_RESAMPLE_BICUBIC, LK_RESAMPLE_LANCZOS };

void lk_image_free(struct lk_image *image);
enum lk_code lk_image_new(struct lk_image *image, int width, int height, int channels);

/* Decodes JPEG or PNG by content, not by name. 16-bit samples become 8-bit, palettes become RGB or RGBA, CMYK/YCCK
 * becomes RGB, as PIL.Image.open(...).convert("RGB"/"RGBA") would. apply_exif: rotate and flip by the EXIF orientation
 * (as PIL's exif_transpose). LK_E_IMAGE, LK_E_IMAGE_SIZE (more than 65,535 a side or more pixels than max_pixels; 0 =
 * 178,956,970 as Pillow's bomb limit), LK_E_NOMEM, LK_E_IO. Progressive JPEGs with absurd scan counts are refused.
 * `name` is for messages. */
enum lk_code lk_image_decode(struct lk_image *out, const void *bytes, size_t n_bytes, const char *name, int apply_exif,
                             int64_t max_pixels);
enum lk_code lk_image_read(struct lk_image *out, const char *path, int apply_exif, int64_t max_pixels);

/* Pillow's Image.resize, to the byte; alpha images are premultiplied before and divided after, as Pillow does. */
enum lk_code lk_image_resize(struct lk_image *out, const struct lk_image *in, int width, int height,
                             enum lk_resample resample);
enum lk_code lk_image_crop(struct lk_image *out, const struct lk_image *in, int left, int top, int width, int height);
/* Alpha dropped (nothing composited), grey repeated: PIL's convert("RGB"). */
enum lk_code lk_image_to_rgb(struct lk_image *out, const struct lk_image *in);

/* A text chunk of a PNG: tEXt when it is Latin-1, iTXt (UTF-8, uncompressed) otherwise. */
struct lk_png_text {
    const char *key;
    const char *text;
};

/* Whole or not at all: writes beside, fsyncs, renames. The bytes depend on pixels and texts only. */
enum lk_code lk_png_write(const char *path, const struct lk_image *image, const struct lk_png_text *texts, int n_texts);
enum lk_code lk_jpeg_write(const char *path, const struct lk_image *image, int quality);

/* The text chunks of a PNG file as a list ending in key NULL; free with lk_png_text_free. LK_E_METADATA when damaged.
 */
enum lk_code lk_png_text_read(const char *path, struct lk_png_text **out);
void lk_png_text_free(struct lk_png_text *texts);
