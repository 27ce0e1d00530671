/* Images in host memory: decode (JPEG, PNG, WebP, TIFF, BMP), resize with the bytes of Pillow, write PNG and JPEG. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

#define LK_IMAGE_PROFILE_NAME 64

/* 8-bit channels interleaved, rows top to bottom, no row padding. `pixels` belongs to the image (lk_image_free). */
struct lk_image {
    int width, height;
    int channels; /* 1 grey, 2 grey+alpha, 3 RGB, 4 RGBA */
    /* The file had a palette or 1 bit per pixel. Pillow resizes those by nearest neighbour whatever filter is asked
     * for; so does lk_image_resize. Kept by crop and resize; lk_image_to_rgb clears it, as PIL's convert("RGB") does.
     */
    bool nearest_only;
    uint8_t *pixels;
    /* Of a decoded CMYK JPEG (4 inks) and 16-bit grey (2 bytes, high first) what the file holds, NULL otherwise: Pillow
     * resizes that and converts afterwards, and so does lk_image_resize. Nothing else keeps it. */
    uint8_t *unconverted;
    char converted_from[LK_IMAGE_PROFILE_NAME]; /* the profile that its colours had in its file; "": sRGB's, or none */
};

enum lk_resample { LK_RESAMPLE_NEAREST, LK_RESAMPLE_BICUBIC, LK_RESAMPLE_LANCZOS, LK_RESAMPLE_BILINEAR };

void lk_image_free(struct lk_image *image);
enum lk_code lk_image_new(struct lk_image *image, int width, int height, int channels);
size_t lk_image_unconverted_bytes(const struct lk_image *image);

/* Decodes JPEG, PNG, WebP, TIFF or BMP by content, not by name, to what PIL.Image.open gives: palettes become RGB, or
 * RGBA when an entry is transparent; CMYK/YCCK becomes RGB as by convert("RGB"); 16-bit samples keep their high byte,
 * but 16-bit grey without alpha is cut off at 255 as by convert("L"); a transparent colour (tRNS) of a grey or RGB
 * picture is ignored; of an animation or a TIFF of several pages comes the first. apply_exif: rotate and flip by the
 * orientation in EXIF or XMP (as PIL's exif_transpose); a TIFF always. Colours of a profile with other primaries than
 * sRGB's are converted to sRGB (ImageCms), unless apply_exif has LK_IMAGE_AS_STORED too; LK_E_IMAGE where they cannot
 * be. LK_E_IMAGE, LK_E_IMAGE_SIZE (more than 65,535 a side or more pixels than max_pixels; 0 = 178,956,970 as Pillow's
 * bomb limit), LK_E_NOMEM, LK_E_IO. Truncated files, PNGs with a bad CRC and progressive JPEGs with absurd scan counts
 * are refused. Memory stays below 4 times the decoded pixels and a constant. `name` is for messages. */
#define LK_IMAGE_AS_STORED 2
enum lk_code lk_image_decode(struct lk_image *out, const void *bytes, size_t n_bytes, const char *name, int apply_exif,
                             int64_t max_pixels);
enum lk_code lk_image_read(struct lk_image *out, const char *path, int apply_exif, int64_t max_pixels);

/* Whether the file has an ICC profile with other primaries than sRGB's; name: the profile's own. */
bool lk_image_other_colours(const void *bytes, size_t n_bytes, char name[LK_IMAGE_PROFILE_NAME]);
bool lk_image_file_other_colours(const char *path, char name[LK_IMAGE_PROFILE_NAME]); /* false if it cannot be read */

/* What a model does not see of the file, as words behind "has": parts that are transparent, 16-bit grey above 255.
 * NULL: nothing, or it cannot be read. */
const char *lk_image_file_unseen(const char *path);

/* Pillow's Image.resize, to the byte; alpha images are premultiplied before and divided after, as Pillow does. */
enum lk_code lk_image_resize(struct lk_image *out, const struct lk_image *in, int width, int height,
                             enum lk_resample resample);
enum lk_code lk_image_crop(struct lk_image *out, const struct lk_image *in, int left, int top, int width, int height);
/* Alpha dropped (nothing composited), grey repeated: PIL's convert("RGB"). */
enum lk_code lk_image_to_rgb(struct lk_image *out, const struct lk_image *in);
/* The same with what alpha lets through white, as image processors of transformers do it. */
enum lk_code lk_image_on_white(struct lk_image *out, const struct lk_image *in);

/* A text chunk of a PNG. Both in UTF-8; written as tEXt when all characters are in Latin-1, as iTXt (uncompressed)
 * otherwise. Keys: 1 to 79 printable ASCII characters. */
struct lk_png_text {
    const char *key;
    const char *text;
};

/* Whole or not at all: writes beside, fsyncs, renames. The bytes depend on pixels and texts only. LK_E_METADATA for a
 * key or text that no PNG can hold, LK_E_IO, LK_E_DISK_FULL, LK_E_NOMEM. */
enum lk_code lk_png_write(const char *path, const struct lk_image *image, const struct lk_png_text *texts, int n_texts);
/* The same bytes into memory (lk_free); `name` is for messages. */
enum lk_code lk_png_encode_with(const char *name, const struct lk_image *image, const struct lk_png_text *texts,
                                int n_texts, void **out, size_t *n_bytes);
/* Of a picture without texts. */
enum lk_code lk_png_encode(const char *name, const struct lk_image *image, void **out, size_t *n_bytes);
/* Baseline, 4:2:0, quality 1..100; grey or RGB (LK_E_IMAGE with alpha). Whole or not at all. */
enum lk_code lk_jpeg_write(const char *path, const struct lk_image *image, int quality);
/* The same bytes into memory (lk_free); `name` is for messages. */
enum lk_code lk_jpeg_encode(const char *name, const struct lk_image *image, int quality, void **out, size_t *n_bytes);

/* A picture with texts in the format of its name's ending: .jpg, .jpeg, .webp, else PNG. JPEG and WebP keep the text
 * "parameters" and one more, in an EXIF block; their quality is 1 to 100, and 100 in WebP loses nothing (LK_E_USAGE,
 * LK_E_IMAGE with alpha, else as lk_png_write). */
enum lk_picture_format { LK_PICTURE_PNG, LK_PICTURE_JPEG, LK_PICTURE_WEBP };
enum lk_picture_format lk_picture_format(const char *path);
enum lk_code lk_picture_write(const char *path, const struct lk_image *image, int quality,
                              const struct lk_png_text *texts, int n_texts);
enum lk_code lk_picture_encode(const char *name, const struct lk_image *image, enum lk_picture_format format,
                               int quality, const struct lk_png_text *texts, int n_texts, void **out, size_t *n_bytes);
/* Their texts, as of lk_png_text_parse; none of a JPEG or WebP that another program wrote. */
enum lk_code lk_picture_text_parse(const void *bytes, size_t n_bytes, const char *name, struct lk_png_text **out);
enum lk_code lk_picture_text_read(const char *path, struct lk_png_text **out);

/* The text chunks (tEXt, zTXt, iTXt) of a PNG file in their order, as UTF-8, in a list ending in key NULL; free with
 * lk_png_text_free. LK_E_METADATA when damaged anywhere: a bad CRC, a text that is not text, a missing end. */
enum lk_code lk_png_text_parse(const void *bytes, size_t n_bytes, const char *name, struct lk_png_text **out);
enum lk_code lk_png_text_read(const char *path, struct lk_png_text **out);
void lk_png_text_free(struct lk_png_text *texts);
