/* wmma fragments in terms of those of mma.sync m16n8. */
#include "tools/gpusim/numerics/wmma.h"

int gpusim_num_wmma_bytes(int type) {
    switch (type) {
    case GPUSIM_NUM_F16:
    case GPUSIM_NUM_BF16:
        return 2;
    case GPUSIM_NUM_S8:
    case GPUSIM_NUM_U8:
        return 1;
    case GPUSIM_NUM_TF32:
    case GPUSIM_NUM_F32:
    case GPUSIM_NUM_S32:
    case GPUSIM_NUM_S4:
    case GPUSIM_NUM_U4:
    case GPUSIM_NUM_B1:
        return 4;
    case GPUSIM_NUM_F64:
        return 8;
    default:
        return 0;
    }
}

/* Registers of the 16 x k factor; the k x 8 one has half of them. */
static int wide_registers(const struct gpusim_num_wmma *w) { return 16 * w->k * gpusim_num_wmma_bytes(w->type) / 128; }

int gpusim_num_wmma_registers(const struct gpusim_num_wmma *w, enum gpusim_num_wmma_matrix matrix, int type) {
    if (w->m == 8 && w->n == 8) {
        bool f64 = w->type == GPUSIM_NUM_F64, bits = w->type == GPUSIM_NUM_B1;
        bool sums = matrix != GPUSIM_NUM_WMMA_C || type == (f64 ? GPUSIM_NUM_F64 : GPUSIM_NUM_S32);
        bool small = bits || w->type == GPUSIM_NUM_S4 || w->type == GPUSIM_NUM_U4;
        if (!sums || w->k != (f64 ? 4 : bits ? 128 : 32) || !(f64 || small)) return 0;
        return matrix == GPUSIM_NUM_WMMA_C ? 2 : 1;
    }
    if (type == GPUSIM_NUM_F64 || type >= GPUSIM_NUM_S4) return 0;
    bool square = w->m == 16 && w->n == 16, shape = square || (w->m == 32 && w->n == 8) || (w->m == 8 && w->n == 32);
    bool tf32 = w->type == GPUSIM_NUM_TF32;
    if (!shape || w->k != (tf32 ? 8 : 16) || (tf32 && !square)) return 0;
    if (matrix == GPUSIM_NUM_WMMA_C) return type == GPUSIM_NUM_F16 ? 4 : 8;
    if (w->type == GPUSIM_NUM_F16) return 8;
    int side = matrix == GPUSIM_NUM_WMMA_A ? w->m : w->n;
    return side * wide_registers(w) / 16;
}

struct gpusim_num_wmma_place gpusim_num_wmma_place(const struct gpusim_num_wmma *w, enum gpusim_num_wmma_matrix matrix,
                                                   int type, int r, int l, int h) {
    int per = 4 / gpusim_num_wmma_bytes(type), g = l / 4, t = l % 4, side, along, piece;
    if (w->m == 8 && w->n == 8) {
        if (matrix == GPUSIM_NUM_WMMA_C) return (struct gpusim_num_wmma_place){g, 2 * t + r};
        return matrix == GPUSIM_NUM_WMMA_A ? (struct gpusim_num_wmma_place){g, t}
                                           : (struct gpusim_num_wmma_place){t, g};
    }
    bool swapped = w->m == 8;
    if (matrix == GPUSIM_NUM_WMMA_C) {
        int n = type == GPUSIM_NUM_F16 ? 2 : 4;
        piece = r / n, r %= n;
        int row = g + 8 * (type == GPUSIM_NUM_F16 ? r : r / 2), column = 2 * t + (type == GPUSIM_NUM_F16 ? h : r % 2);
        if (w->m == 16)
            column += 8 * piece;
        else
            row += 16 * piece;
        return swapped ? (struct gpusim_num_wmma_place){column, row} : (struct gpusim_num_wmma_place){row, column};
    }
    /* `side`: row of A or column of B; `along`: k */
    bool first = (matrix == GPUSIM_NUM_WMMA_A) != swapped; /* the 16 x k factor */
    int n = first ? wide_registers(w) : wide_registers(w) / 2;
    int n_pieces = (matrix == GPUSIM_NUM_WMMA_A ? w->m : w->n) / (first ? 16 : 8);
    piece = r / n % n_pieces, r %= n;
    side = g + (first ? 8 * (r % 2) + 16 * piece : 8 * piece);
    along = per * t + h + 4 * per * (first ? r / 2 : r);
    return matrix == GPUSIM_NUM_WMMA_A ? (struct gpusim_num_wmma_place){side, along}
                                       : (struct gpusim_num_wmma_place){along, side};
}

void gpusim_num_wmma(const struct gpusim_num_wmma *w, gpusim_num_mma_fn *mma, int n_d, void *const *d,
                     const void *const *a, const void *const *b, const void *const *c) {
    int n = wide_registers(w);
    if (w->m == 8) {
        const void *const *swap = a;
        a = b, b = swap;
    }
    for (int piece = 0; piece < 2; piece++)
        mma(d + piece * n_d, w->m == 16 ? a : a + piece * n, w->m == 16 ? b + piece * (n / 2) : b, c + piece * n_d);
}
