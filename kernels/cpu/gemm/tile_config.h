/* The AMX tiles that every kernel here uses: eight of 16 rows of 64 bytes. */
#pragma once

#include <stdint.h>

/* Constant and outside functions: compilers take LDTILECFG for a read of eight bytes and may drop stores to a local
 * variable. */
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes_per_row[16];
    uint8_t rows[16];
} lk_tile_config __attribute__((aligned(64))) = {
    .palette = 1,
    .bytes_per_row = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};
