/* Small whole numbers and halves (the mean of two scores) in fields of 16 or 32 bits, so that one multiplication of
 * vectors serves several columns of a resample. The sums are the same as in doubles: both are exact. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

enum { LK_PACKED_BYTES = 32, LK_PACKED_LANES = 4 }; /* of a vector; resamples summed at once */

struct lk_packed_columns {
    unsigned char *vectors; /* [n_blocks, n_rows] of LK_PACKED_BYTES; NULL when the columns cannot be packed */
    size_t n_rows;
    int n_columns, n_blocks, bits;
    int scale; /* 2 when there are halves: fields hold the doubles of the numbers */
};

/* Where rows are counted and summed: rows first_row[c]..first_row[c + 1] are cell c, and a cell belongs to one group of
 * each grouping. */
struct lk_packed_layout {
    size_t n_cells, n_groupings, n_groups;
    const size_t *first_row;     /* [n_cells + 1] */
    const int32_t *group;        /* [n_cells, n_groupings] 0..n_groups-1; -1: in none */
    const int32_t *count_of_row; /* [n_rows]: place of a row's count */
};

/* Whether sums of n_rows rows of numbers [n_rows, n_columns] are exact in doubles, in any order and however often each
 * is taken, because they are small whole numbers or halves. */
bool lk_exact_sums(const double *numbers, size_t n_rows, int n_columns);
/* rows [n_rows] -> [n_columns]; largest_weight bounds the sum of the weights of the rows that are summed. Columns with
 * negative numbers, fractions other than halves, or sums beyond 32 bits are not packed. */
enum lk_code lk_pack_columns(const double *const *rows, size_t n_rows, int n_columns, double largest_weight,
                             struct lk_packed_columns *out);
void lk_packed_columns_free(struct lk_packed_columns *packed);
/* What a row that was drawn once is counted as: 1 in each field of 32 bits. */
uint32_t lk_packed_one(const struct lk_packed_columns *packed);
/* Bytes of a resample's sums. */
size_t lk_packed_sums_bytes(const struct lk_packed_columns *packed, size_t n_groups);
/* Sums of LK_PACKED_LANES resamples: counts + lane * stride, to sums + lane * lk_packed_sums_bytes (aligned to 32). */
void lk_packed_sums(const struct lk_packed_columns *packed, const struct lk_packed_layout *layout,
                    const uint32_t *counts, size_t stride, unsigned char *sums);
/* One resample's sums to totals [n_groups, n_columns]. */
void lk_packed_totals(const struct lk_packed_columns *packed, size_t n_groups, const unsigned char *sums,
                      double *totals);

/* One for each level of instructions and width of field: the sums of one block of columns, added to sums. */
typedef void (*lk_packed_sum_block)(const unsigned char *vectors, const struct lk_packed_layout *layout,
                                    const uint32_t *counts, size_t stride, unsigned char *sums, size_t sums_stride);
void lk_packed_sum_16(const unsigned char *vectors, const struct lk_packed_layout *layout, const uint32_t *counts,
                      size_t stride, unsigned char *sums, size_t sums_stride);
void lk_packed_sum_32(const unsigned char *vectors, const struct lk_packed_layout *layout, const uint32_t *counts,
                      size_t stride, unsigned char *sums, size_t sums_stride);
void lk_packed_sum_16_avx2(const unsigned char *vectors, const struct lk_packed_layout *layout, const uint32_t *counts,
                           size_t stride, unsigned char *sums, size_t sums_stride);
void lk_packed_sum_32_avx2(const unsigned char *vectors, const struct lk_packed_layout *layout, const uint32_t *counts,
                           size_t stride, unsigned char *sums, size_t sums_stride);
