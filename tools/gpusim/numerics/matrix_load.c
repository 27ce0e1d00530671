/* ldmatrix and movmatrix: four lanes hold a row of 8 16-bit elements, two each. */
#include <string.h>

#include "tools/gpusim/numerics/numerics.h"

struct gpusim_num_matrix_source gpusim_num_ldmatrix_source(int l, int r, int h, bool trans) {
    int row = l / 4, column = l % 4 * 2 + h;
    if (trans) {
        int t = row;
        row = column, column = t;
    }
    return (struct gpusim_num_matrix_source){8 * r + row, 2 * column};
}

void gpusim_num_ldmatrix(uint32_t *const *d, const uint8_t (*rows)[16], int n, bool trans) {
    for (int r = 0; r < n; r++) {
        uint16_t matrix[8][8];
        memcpy(matrix, rows[8 * r], sizeof matrix);
        for (int l = 0; l < 32; l++) {
            int i = l / 4, j = l % 4 * 2;
            uint32_t low = trans ? matrix[j][i] : matrix[i][j], high = trans ? matrix[j + 1][i] : matrix[i][j + 1];
            d[r][l] = low | high << 16;
        }
    }
}

void gpusim_num_movmatrix(uint32_t *d, const uint32_t *a) {
    uint8_t rows[8][16];
    memcpy(rows, a, sizeof rows);
    gpusim_num_ldmatrix(&d, (const uint8_t(*)[16])rows, 1, true);
}
