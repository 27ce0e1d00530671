/* The sums of one block of columns, four resamples at once, so that a row is read once for all of them. The file that
 * includes this says LK_SUM (the function's name), LK_VECTOR (a register's fields) and LK_COUNTS (the same of 32 bits).
 * A count fills 32 bits, so that a register full of copies of it suits fields of 16 bits too. Without include guard:
 * once for each width of field. */
#include "eval/stats/resampling/packed_vectors.h"

void LK_SUM(const unsigned char *vectors, const struct lk_packed_layout *layout, const uint32_t *counts, size_t stride,
            unsigned char *sums, size_t sums_stride) {
    const size_t parts = LK_PACKED_BYTES / sizeof(LK_VECTOR); /* of a vector, one after the other */
    for (size_t part = 0; part < parts; part++) {
        const LK_VECTOR *rows = (const LK_VECTOR *)(const void *)vectors + part;
        LK_VECTOR *to[LK_PACKED_LANES];
        for (size_t lane = 0; lane < LK_PACKED_LANES; lane++)
            to[lane] = (LK_VECTOR *)(void *)(sums + lane * sums_stride) + part;
        for (size_t cell = 0; cell < layout->n_cells; cell++) {
            LK_VECTOR a = {0}, b = {0}, c = {0}, d = {0};
            for (size_t r = layout->first_row[cell]; r < layout->first_row[cell + 1]; r++) {
                const uint32_t *count = counts + layout->count_of_row[r];
                LK_VECTOR row = rows[r * parts];
                a += row * (LK_VECTOR)((LK_COUNTS){0} + count[0]);
                b += row * (LK_VECTOR)((LK_COUNTS){0} + count[stride]);
                c += row * (LK_VECTOR)((LK_COUNTS){0} + count[2 * stride]);
                d += row * (LK_VECTOR)((LK_COUNTS){0} + count[3 * stride]);
            }
            const int32_t *group = layout->group + cell * layout->n_groupings;
            for (size_t g = 0; g < layout->n_groupings; g++) {
                if (group[g] < 0) continue;
                size_t at = (size_t)group[g] * parts;
                to[0][at] += a;
                to[1][at] += b;
                to[2][at] += c;
                to[3][at] += d;
            }
        }
    }
}
