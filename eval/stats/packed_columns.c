#include "eval/stats/packed_columns.h"

#include <math.h>
#include <string.h>

#include "engine/alloc.h"

/* The largest number times scale, or -1 when one is negative, fractional or very large. */
static double largest_whole(const double *const *rows, size_t n_rows, int n_columns, int scale) {
    double largest = 0;
    for (size_t r = 0; r < n_rows; r++)
        for (int c = 0; c < n_columns; c++) {
            double value = scale * rows[r][c];
            if (!(value >= 0 && value < 4294967296.0) || value != floor(value)) return -1;
            if (value > largest) largest = value;
        }
    return largest;
}

enum lk_code lk_pack_columns(const double *const *rows, size_t n_rows, int n_columns, double largest_weight,
                             struct lk_packed_columns *out) {
    int scale = 1;
    double largest = largest_whole(rows, n_rows, n_columns, scale);
    if (largest < 0) largest = largest_whole(rows, n_rows, n_columns, scale = 2);
    double sum = largest * largest_weight;
    *out = (struct lk_packed_columns){.n_columns = n_columns, .scale = scale};
    if (largest < 0 || sum >= 4294967296.0) return LK_OK;
    out->bits = sum < 65536 ? 16 : sum < 2097152 ? 21 : 32;
    int per_word = 64 / out->bits;
    out->n_words = (n_columns + per_word - 1) / per_word;
    if (out->n_words > LK_PACKED_WORDS_MAX) return LK_OK;
    out->words = lk_calloc(n_rows * (size_t)out->n_words, sizeof *out->words);
    if (!out->words) return lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu rows", n_rows);
    for (size_t r = 0; r < n_rows; r++)
        for (int c = 0; c < n_columns; c++)
            out->words[r * (size_t)out->n_words + (size_t)(c / per_word)] |= (uint64_t)(scale * rows[r][c])
                                                                             << c % per_word * out->bits;
    return LK_OK;
}

void lk_packed_columns_free(struct lk_packed_columns *packed) {
    lk_free(packed->words);
    packed->words = NULL;
}

static void unpack(const struct lk_packed_columns *packed, const uint64_t *sums, double *totals) {
    int per_word = 64 / packed->bits;
    uint64_t mask = (UINT64_C(1) << packed->bits) - 1;
    for (int c = 0, w = 0; c < packed->n_columns; w++) {
        uint64_t word = sums[w];
        for (int i = 0; i < per_word && c < packed->n_columns; i++, c++) {
            totals[c] = (double)(int64_t)(word & mask) / packed->scale;
            word >>= packed->bits;
        }
    }
}

/* Inlined with constant n_words, the sums stay in registers. Rows that were not drawn are added 0 times: cheaper than a
 * branch that nothing predicts. Returns the end of the cell. */
static inline __attribute__((always_inline)) size_t sum_cell(const uint64_t *words, const int32_t *cell,
                                                             const double *weights, size_t r, size_t n_rows,
                                                             size_t n_words, uint64_t *sums) {
    uint64_t sum[LK_PACKED_WORDS_MAX] = {0};
    for (int32_t current = cell[r]; r < n_rows && cell[r] == current; r++) {
        uint64_t weight = (uint64_t)(int64_t)weights[r];
#pragma GCC unroll 8
        for (size_t w = 0; w < n_words; w++) sum[w] += weight * words[r * n_words + w];
    }
#pragma GCC unroll 8
    for (size_t w = 0; w < n_words; w++) sums[w] = sum[w];
    return r;
}

void lk_packed_totals(const struct lk_packed_columns *packed, const int32_t *cell, const double *weights, size_t n_rows,
                      double *totals) {
    size_t r = 0;
    while (r < n_rows && cell[r] < 0) r++;
    while (r < n_rows) {
        uint64_t sums[LK_PACKED_WORDS_MAX];
        double *to = totals + (size_t)cell[r] * (size_t)packed->n_columns;
        switch (packed->n_words) {
        case 1:
            r = sum_cell(packed->words, cell, weights, r, n_rows, 1, sums);
            break;
        case 2:
            r = sum_cell(packed->words, cell, weights, r, n_rows, 2, sums);
            break;
        case 3:
            r = sum_cell(packed->words, cell, weights, r, n_rows, 3, sums);
            break;
        case 4:
            r = sum_cell(packed->words, cell, weights, r, n_rows, 4, sums);
            break;
        case 5:
            r = sum_cell(packed->words, cell, weights, r, n_rows, 5, sums);
            break;
        case 6:
            r = sum_cell(packed->words, cell, weights, r, n_rows, 6, sums);
            break;
        default:
            r = sum_cell(packed->words, cell, weights, r, n_rows, (size_t)packed->n_words, sums);
        }
        unpack(packed, sums, to);
    }
}
