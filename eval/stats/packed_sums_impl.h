/* The sums of one block of columns, four resamples at once, so that a row is read once for all of them. The file that
 * includes this says LK_SUM (the function's name) and LK_VECTOR (lk_fields_16 or lk_fields_32). A count fills 32 bits,
 * so that a vector full of copies of it suits fields of 16 bits too. Without include guard: once for each width. */
#include "eval/stats/packed_vectors.h"

void LK_SUM(const unsigned char *vectors, const struct lk_packed_layout *layout, const uint32_t *counts, size_t stride,
            unsigned char *sums, size_t sums_stride) {
    const LK_VECTOR *rows = (const LK_VECTOR *)(const void *)vectors;
    LK_VECTOR *to[LK_PACKED_LANES];
    for (size_t lane = 0; lane < LK_PACKED_LANES; lane++) to[lane] = (LK_VECTOR *)(void *)(sums + lane * sums_stride);
    for (size_t cell = 0; cell < layout->n_cells; cell++) {
        LK_VECTOR a = {0}, b = {0}, c = {0}, d = {0};
        for (size_t r = layout->first_row[cell]; r < layout->first_row[cell + 1]; r++) {
            const uint32_t *count = counts + layout->count_of_row[r];
            uint32_t w[LK_PACKED_LANES] = {count[0], count[stride], count[2 * stride], count[3 * stride]};
            a += rows[r] * (LK_VECTOR)((lk_fields_32){0} + w[0]);
            b += rows[r] * (LK_VECTOR)((lk_fields_32){0} + w[1]);
            c += rows[r] * (LK_VECTOR)((lk_fields_32){0} + w[2]);
            d += rows[r] * (LK_VECTOR)((lk_fields_32){0} + w[3]);
        }
        const int32_t *group = layout->group + cell * layout->n_groupings;
        for (size_t g = 0; g < layout->n_groupings; g++) {
            if (group[g] < 0) continue;
            to[0][group[g]] += a;
            to[1][group[g]] += b;
            to[2][group[g]] += c;
            to[3][group[g]] += d;
        }
    }
}
