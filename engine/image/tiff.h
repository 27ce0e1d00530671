/* The structure of a TIFF file; for the files of the image part. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LK_TIFF_PLAIN = 1,
    LK_TIFF_LZW = 5,
    LK_TIFF_JPEG = 7,
    LK_TIFF_DEFLATE = 8,
    LK_TIFF_DEFLATE_OLD = 32946,
    LK_TIFF_PACKBITS = 32773
};

/* Exactly n_to bytes of a strip or tile that is packed so (not JPEG); false: damaged or cut off. */
bool lk_tiff_unpack(unsigned compression, const unsigned char *from, size_t n, uint8_t *to, size_t n_to);

/* The bytes of a tag in the first directory; NULL: it is not there, or not within the file. `type`: as the file has it;
 * `count` values of it. */
const unsigned char *lk_tiff_tag(const unsigned char *bytes, size_t n_bytes, unsigned tag, unsigned *type,
                                 size_t *count);
