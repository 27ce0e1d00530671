/* Few mutations of a PNG would get past its CRCs: fuzz targets may set them right first. */
#pragma once

#include <string.h>

#include <zlib.h>

#include "engine/image/internal.h"

static inline void repair_crcs(uint8_t *bytes, size_t n) {
    struct lk_png_chunk chunk;
    size_t at = LK_PNG_SIGNATURE_BYTES;
    while (lk_png_next_chunk(bytes, n, &at, false, &chunk)) {
        size_t end = at - 4;
        uint32_t crc = (uint32_t)crc32_z(0, bytes + end - chunk.n_bytes - 4, chunk.n_bytes + 4);
        for (size_t i = 0; i < 4; i++) bytes[end + i] = (uint8_t)(crc >> (24 - 8 * i));
    }
}
