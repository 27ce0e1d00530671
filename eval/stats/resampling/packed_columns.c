#include "eval/stats/resampling/packed_columns.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/isa.h"

/* The largest number times scale, or -1 when one is negative, fractional or very large. */
static double largest_whole(const double *numbers, size_t n, int scale) {
    double largest = 0;
    for (size_t i = 0; i < n; i++) {
        double value = scale * numbers[i];
        if (!(value >= 0 && value < 4294967296.0) || value != floor(value)) return -1;
        if (value > largest) largest = value;
    }
    return largest;
}

static double largest_of_rows(const double *const *rows, size_t n_rows, int n_columns, int scale) {
    double largest = 0;
    for (size_t r = 0; r < n_rows; r++) {
        double of_row = largest_whole(rows[r], (size_t)n_columns, scale);
        if (of_row < 0) return -1;
        if (of_row > largest) largest = of_row;
    }
    return largest;
}

bool lk_exact_sums(const double *numbers, size_t n_rows, int n_columns) {
    double largest = largest_whole(numbers, n_rows * (size_t)n_columns, 2);
    return largest >= 0 && largest * (double)n_rows * (double)n_rows < 9007199254740992.0; /* 2^53 */
}

static void store(unsigned char *vector, int bits, int field, double value) {
    if (bits == 16)
        memcpy(vector + 2 * field, &(uint16_t){(uint16_t)value}, 2);
    else
        memcpy(vector + 4 * field, &(uint32_t){(uint32_t)value}, 4);
}

enum lk_code lk_pack_columns(const double *const *rows, size_t n_rows, int n_columns, double largest_weight,
                             struct lk_packed_columns *out) {
    int scale = 1;
    double largest = largest_of_rows(rows, n_rows, n_columns, scale);
    if (largest < 0) largest = largest_of_rows(rows, n_rows, n_columns, scale = 2);
    double sum = largest * largest_weight;
    *out = (struct lk_packed_columns){.n_rows = n_rows, .n_columns = n_columns, .scale = scale};
    if (largest < 0 || sum >= 4294967296.0) return LK_OK;
    out->bits = sum < 65536 && largest_weight < 65536 ? 16 : 32;
    int per_block = 8 * LK_PACKED_BYTES / out->bits;
    out->n_blocks = (n_columns + per_block - 1) / per_block;
    out->vectors = lk_calloc(n_rows * (size_t)out->n_blocks, LK_PACKED_BYTES);
    if (!out->vectors) return lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu rows", n_rows);
    for (size_t r = 0; r < n_rows; r++)
        for (int c = 0; c < n_columns; c++)
            store(out->vectors + ((size_t)(c / per_block) * n_rows + r) * LK_PACKED_BYTES, out->bits, c % per_block,
                  scale * rows[r][c]);
    return LK_OK;
}

void lk_packed_columns_free(struct lk_packed_columns *packed) {
    lk_free(packed->vectors);
    packed->vectors = NULL;
}

uint32_t lk_packed_one(const struct lk_packed_columns *packed) { return packed->bits == 16 ? 0x10001 : 1; }

size_t lk_packed_sums_bytes(const struct lk_packed_columns *packed, size_t n_groups) {
    return (size_t)packed->n_blocks * n_groups * LK_PACKED_BYTES;
}

static lk_packed_sum_block sum_block_of(int bits) {
#if defined(__x86_64__)
    if (lk_cpu_isa() >= LK_ISA_AVX2) return bits == 16 ? lk_packed_sum_16_avx2 : lk_packed_sum_32_avx2;
#endif
    return bits == 16 ? lk_packed_sum_16 : lk_packed_sum_32;
}

void lk_packed_sums(const struct lk_packed_columns *packed, const struct lk_packed_layout *layout,
                    const uint32_t *counts, size_t stride, unsigned char *sums) {
    size_t bytes = lk_packed_sums_bytes(packed, layout->n_groups);
    lk_packed_sum_block sum_block = sum_block_of(packed->bits);
    memset(sums, 0, LK_PACKED_LANES * bytes);
    for (size_t block = 0; block < (size_t)packed->n_blocks; block++)
        sum_block(packed->vectors + block * packed->n_rows * LK_PACKED_BYTES, layout, counts, stride,
                  sums + block * layout->n_groups * LK_PACKED_BYTES, bytes);
}

void lk_packed_totals(const struct lk_packed_columns *packed, size_t n_groups, const unsigned char *sums,
                      double *totals) {
    int per_block = 8 * LK_PACKED_BYTES / packed->bits;
    double unit = 1.0 / packed->scale;
    for (int first = 0; first < packed->n_columns; first += per_block) {
        int n = packed->n_columns - first < per_block ? packed->n_columns - first : per_block;
        for (size_t g = 0; g < n_groups; g++, sums += LK_PACKED_BYTES) {
            double *to = totals + g * (size_t)packed->n_columns + first;
            uint16_t short_fields[LK_PACKED_BYTES / 2];
            uint32_t fields[LK_PACKED_BYTES / 4];
            memcpy(short_fields, sums, LK_PACKED_BYTES);
            memcpy(fields, sums, LK_PACKED_BYTES);
            if (packed->bits == 16)
                for (int c = 0; c < n; c++) to[c] = short_fields[c] * unit;
            else
                for (int c = 0; c < n; c++) to[c] = fields[c] * unit;
        }
    }
}
