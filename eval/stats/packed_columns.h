/* Small whole numbers and halves (the mean of two scores), several to a 64-bit word, so that one multiplication and one
 * addition serve several columns of a resample. The sums are the same as in doubles: both are exact. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/status.h"

enum { LK_PACKED_WORDS_MAX = 32 };

struct lk_packed_columns {
    uint64_t *words; /* [n_rows, n_words]; NULL when the columns cannot be packed */
    int n_words, n_columns, bits;
    int scale; /* 2 when there are halves: words hold the doubles of the numbers */
};

/* rows [n_rows] -> [n_columns]; largest_weight bounds the sum of the weights of all rows. Columns with negative
 * numbers, other fractions, or sums beyond 32 bits are not packed. */
enum lk_code lk_pack_columns(const double *const *rows, size_t n_rows, int n_columns, double largest_weight,
                             struct lk_packed_columns *out);
void lk_packed_columns_free(struct lk_packed_columns *packed);
/* totals [n_cells, n_columns] of rows in ascending order of cell; rows of cell -1 are passed over. weights: whole. */
void lk_packed_totals(const struct lk_packed_columns *packed, const int32_t *cell, const double *weights, size_t n_rows,
                      double *totals);
