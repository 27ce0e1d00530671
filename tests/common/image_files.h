/* Image files made by hand, whole or damaged on purpose. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/image/image.h"

/* A string literal that may hold NULs, and its length. */
#define LITERAL(text) text, sizeof(text) - 1

/* Grows as it is added to; free with bytes_free. */
struct bytes {
    uint8_t *data;
    size_t n;
};
void bytes_add(struct bytes *out, const void *data, size_t n);
void bytes_free(struct bytes *bytes);
/* Position of the first occurrence of `what`; fails the test when there is none. */
size_t bytes_find(const struct bytes *bytes, const void *what, size_t n);

void png_begin(struct bytes *out); /* the signature */
void png_chunk(struct bytes *out, const char type[4], const void *data, size_t n);
void png_header(struct bytes *out, uint32_t width, uint32_t height, int depth, int color, int interlace);
/* One IDAT chunk of the rows `raw`, each with its filter byte. */
void png_data(struct bytes *out, const void *raw, size_t n_raw);
/* All of a file: signature, header, `between` (may be NULL), data, end. */
struct bytes png_file(uint32_t width, uint32_t height, int depth, int color, int interlace, const struct bytes *between,
                      const void *raw, size_t n_raw);

/* 4:4:4, quality 90. n_scans > 1: progressive, with that many scans (the last ones repeat nothing useful). */
struct bytes jpeg_file(const struct lk_image *image, int n_scans);

/* Decodes and compares: the pixels must be these, or the status and a part of the message. The number of files that
 * were decoded is counted. Neither leaks. */
extern int n_image_files;
void expect_pixels(const struct bytes *file, int width, int height, int channels, const uint8_t *pixels);
void expect_refused(const struct bytes *file, enum lk_code code, const char *part);
