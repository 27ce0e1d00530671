/* Shared by the files of the image part; nobody else includes it. */
#pragma once

#include "engine/image/image.h"

#define LK_IMAGE_SIDE_MAX   65535
#define LK_IMAGE_PIXELS_MAX 178956970

/* Size checks that come before any allocation. */
enum lk_code lk_image_check_size(const char *name, int64_t width, int64_t height, int64_t max_pixels);

/* out is empty before and after a failure. */
enum lk_code lk_image_jpeg_decode(struct lk_image *out, const unsigned char *bytes, size_t n_bytes, const char *name,
                                  int64_t max_pixels);
enum lk_code lk_image_png_decode(struct lk_image *out, const unsigned char *bytes, size_t n_bytes, const char *name,
                                 int64_t max_pixels);

enum lk_code lk_image_webp_decode(struct lk_image *out, const unsigned char *bytes, size_t n_bytes, const char *name,
                                  int64_t max_pixels);
enum lk_code lk_image_tiff_decode(struct lk_image *out, const unsigned char *bytes, size_t n_bytes, const char *name,
                                  int64_t max_pixels);
enum lk_code lk_image_bmp_decode(struct lk_image *out, const unsigned char *bytes, size_t n_bytes, const char *name,
                                 int64_t max_pixels);

/* With an EXIF block, a TIFF's structure without a head, where n_exif is not 0. */
enum lk_code lk_image_jpeg_encode(const char *name, const struct lk_image *image, int quality, const void *exif,
                                  size_t n_exif, void **out, size_t *n_bytes);
enum lk_code lk_image_webp_encode(const char *name, const struct lk_image *image, int quality, const void *exif,
                                  size_t n_exif, void **out, size_t *n_bytes);
/* Such a block of texts, and the texts of one; the block of a JPEG or WebP (n 0: none). lk_free, lk_png_text_free. */
enum lk_code lk_exif_of_texts(const char *name, const struct lk_png_text *texts, int n_texts, void **out,
                              size_t *n_bytes);
enum lk_code lk_exif_texts(const unsigned char *tiff, size_t n_bytes, const char *name, struct lk_png_text **out);
enum lk_code lk_image_exif(const unsigned char *bytes, size_t n_bytes, unsigned char **out, size_t *n);

/* n pixels of `unconverted` as `pixels` of so many channels. */
void lk_image_convert(uint8_t *pixels, const uint8_t *unconverted, size_t n, int channels);

/* Colours as sRGB has them, where the file's profile says otherwise; image->converted_from then names it. */
enum lk_code lk_image_to_srgb(struct lk_image *image, const unsigned char *bytes, size_t n_bytes, const char *name);
/* As lk_image_other_colours, with the profile (lk_free; NULL when it is sRGB's or none). */
bool lk_icc_other_colours(const unsigned char *bytes, size_t n_bytes, char name[LK_IMAGE_PROFILE_NAME],
                          unsigned char **profile, size_t *n);

/* 1..8; 1 when the file says nothing usable. LK_E_NOMEM. */
enum lk_code lk_image_orientation(const unsigned char *bytes, size_t n_bytes, int *out);
/* In place (the pixels are replaced when sides swap). */
enum lk_code lk_image_orient(struct lk_image *image, int orientation);

/* A whole regular file; lk_free. */
enum lk_code lk_image_read_bytes(const char *path, unsigned char **out, size_t *n_bytes);

#define LK_PNG_SIGNATURE_BYTES 8
bool lk_png_has_signature(const unsigned char *bytes, size_t n_bytes);

bool lk_webp_has_signature(const unsigned char *bytes, size_t n_bytes);
bool lk_tiff_has_signature(const unsigned char *bytes, size_t n_bytes);
bool lk_bmp_has_signature(const unsigned char *bytes, size_t n_bytes);
/* "EXIF" or "XMP " of a WebP whose header says that it has one (lk_free); NULL: none. LK_E_NOMEM. */
enum lk_code lk_webp_chunk(const unsigned char *bytes, size_t n_bytes, const char *type, unsigned char **out,
                           size_t *n_out);

/* One chunk of a PNG held in memory. */
struct lk_png_chunk {
    char type[5];
    const unsigned char *data;
    size_t n_bytes;
    bool crc_ok;
};
/* The chunk at *at, which moves on; false at the end or when the rest is no whole chunk. Starts at
 * LK_PNG_SIGNATURE_BYTES. check_crc false leaves crc_ok unset. */
bool lk_png_next_chunk(const unsigned char *bytes, size_t n_bytes, size_t *at, bool check_crc,
                       struct lk_png_chunk *chunk);

/* The text of a chunk (tEXt, zTXt, iTXt) with that key, up to a NUL and not always UTF-8 (lk_free); NULL when the chunk
 * is none or is damaged. LK_E_NOMEM. */
enum lk_code lk_png_text_of(const struct lk_png_chunk *chunk, const char *key, char **text);

/* Chunks of texts, ready to be written into a PNG: lk_free. LK_E_METADATA for a key or text that no PNG can hold. */
struct lk_png_text_chunk {
    char type[5];
    unsigned char *data;
    size_t n_bytes;
};
enum lk_code lk_png_text_encode(const struct lk_png_text *text, const char *path, struct lk_png_text_chunk *out);
