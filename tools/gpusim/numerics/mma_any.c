/* mma.sync of 4-bit integers and single bits, mma.sp. */
#include "tools/gpusim/numerics/mma_any.h"
#include "tools/gpusim/numerics/mma_dot.h"

enum { MOST_K = 256 };

static int bits_of(int type) {
    switch (type) {
    case GPUSIM_NUM_B1:
        return 1;
    case GPUSIM_NUM_S4:
    case GPUSIM_NUM_U4:
        return 4;
    case GPUSIM_NUM_S8:
    case GPUSIM_NUM_U8:
        return 8;
    case GPUSIM_NUM_F16:
    case GPUSIM_NUM_BF16:
        return 16;
    case GPUSIM_NUM_TF32:
        return 32;
    default:
        return 0;
    }
}

static bool integer(int type) { return bits_of(type) == 4 || bits_of(type) == 8; }

/* Threads of four that hold the metadata of 8 and 8 rows: a row's part of a register is 16 bits, or of integers 32. */
static int metadata_threads(const struct gpusim_num_mma_any *mma) {
    switch (bits_of(mma->a)) {
    case 4:
        return mma->k / 32;
    case 8:
    case 16:
        return mma->k / 16;
    default:
        return mma->k / 8;
    }
}

static bool dense_shape(const struct gpusim_num_mma_any *mma) {
    int bits = bits_of(mma->a), least = bits == 1 ? 128 : 32;
    if (bits != 1 && bits != 4) return false;
    if ((bits == 1) != (mma->bits != GPUSIM_NUM_BITS_NONE) || (bits == 1 && mma->satfinite)) return false;
    return (mma->m == 8 && mma->k == least) || (mma->m == 16 && (mma->k == least || mma->k == 2 * least));
}
static bool sparse_shape(const struct gpusim_num_mma_any *mma) {
    int bits = bits_of(mma->a);
    if (bits < 4 || mma->m != 16 || mma->bits != GPUSIM_NUM_BITS_NONE) return false;
    int least = 256 / bits; /* a register of A for each half of the rows */
    if ((mma->k != least && mma->k != 2 * least) || mma->selector < 0) return false;
    return mma->selector < 4 / metadata_threads(mma);
}

bool gpusim_num_mma_any_known(const struct gpusim_num_mma_any *mma, struct gpusim_num_mma_registers *registers) {
    int bits = bits_of(mma->a);
    bool whole = bits == 1 ? mma->b == mma->a : integer(mma->a);
    if (!bits || mma->n != 8 || bits_of(mma->b) != bits || mma->c != mma->d) return false;
    if (whole) {
        if (mma->d != GPUSIM_NUM_S32) return false;
    } else {
        bool half = mma->d == GPUSIM_NUM_F16 && mma->a == GPUSIM_NUM_F16;
        if (mma->b != mma->a || mma->satfinite || (mma->d != GPUSIM_NUM_F32 && !half)) return false;
    }
    if (mma->sparse ? !sparse_shape(mma) : !dense_shape(mma)) return false;
    int stored = mma->sparse ? mma->k / 2 : mma->k, sums = mma->m * 8 / 32;
    if (mma->d == GPUSIM_NUM_F16) sums /= 2;
    *registers = (struct gpusim_num_mma_registers){sums, mma->m * stored * bits / 1024, 8 * mma->k * bits / 1024, sums};
    return true;
}

/* Element k of row `row` of a factor (of column `row` of B): a lane's registers hold 32 bits of a row, four lanes side
 * by side; registers of rows 8 to 15 follow those of rows 0 to 7. */
static uint32_t element(const void *const *regs, int rows, int bits, int row, int k) {
    int per = 32 / bits, step = k / (4 * per);
    const uint32_t *words = regs[rows == 16 ? 2 * step + row / 8 : step];
    uint32_t word = words[row % 8 * 4 + k % (4 * per) / per];
    return bits == 32 ? word : word >> k % per * bits & ((1u << bits) - 1);
}

/* Column of A that element `at` of the stored row holds. The metadata has two bits for each of two of four elements
 * (4-bit integers: pairs of them), for tf32 four bits, 0100 or 1110, for one of two. */
static int dense_column(const struct gpusim_num_mma_any *mma, const uint32_t *metadata, int row, int at) {
    int bits = bits_of(mma->a), width = bits == 32 ? 4 : 2, index = bits == 4 ? at / 2 : at, bit = index * width;
    int lane = row % 8 * 4 + mma->selector * metadata_threads(mma);
    uint32_t word = bits >= 16 ? metadata[lane + bit / 16] >> (row / 8 * 16 + bit % 16)
                               : metadata[lane + bit / 32 * 2 + row / 8] >> bit % 32;
    int value = (int)(word & ((1u << width) - 1));
    if (bits == 32) return 2 * at + value / 8;
    return bits == 4 ? index / 2 * 8 + value * 2 + at % 2 : index / 2 * 4 + value;
}

static int32_t whole(uint32_t x, int type) {
    if (type == GPUSIM_NUM_S8) return (int8_t)x;
    return type == GPUSIM_NUM_S4 ? (int32_t)(x ^ 8) - 8 : (int32_t)x;
}

static int32_t sum_of_integers(const struct gpusim_num_mma_any *mma, const uint32_t *a, const uint32_t *b, int n,
                               int32_t c) {
    int64_t sum = c;
    for (int h = 0; h < n; h++) {
        if (mma->bits == GPUSIM_NUM_BITS_XOR)
            sum += a[h] ^ b[h];
        else if (mma->bits == GPUSIM_NUM_BITS_AND)
            sum += a[h] & b[h];
        else
            sum += whole(a[h], mma->a) * whole(b[h], mma->b);
    }
    if (mma->satfinite) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    return (int32_t)(uint32_t)sum;
}

static uint32_t sum_of_floats(const struct gpusim_num_mma_any *mma, const uint32_t *a, const uint32_t *b, int n,
                              uint32_t c) {
    enum gpusim_num_type type = (enum gpusim_num_type)mma->a;
    int chunk = type == GPUSIM_NUM_TF32 ? 4 : 8, half = mma->d == GPUSIM_NUM_F16;
    for (int first = 0; first < n; first += chunk) {
        uint32_t x[8], y[8];
        int32_t ex[8], ey[8];
        for (int h = 0; h < chunk; h++) {
            x[h] = bits_f32(mma_value(a[first + h], type)), ex[h] = mma_exponent(a[first + h], type);
            y[h] = bits_f32(mma_value(b[first + h], type)), ey[h] = mma_exponent(b[first + h], type) - 127;
        }
        c = num_mma_chunk(c, x, y, ex, ey, chunk, half);
    }
    return c;
}

void gpusim_num_mma_any(const struct gpusim_num_mma_any *mma, void *const *d, const void *const *a,
                        const void *const *b, const void *const *c, const uint32_t *metadata) {
    int bits = bits_of(mma->a), n = mma->sparse ? mma->k / 2 : mma->k;
    uint32_t columns[8][MOST_K], x[MOST_K], y[MOST_K], out[16][8];
    for (int j = 0; j < 8; j++)
        for (int h = 0; h < mma->k; h++) columns[j][h] = element(b, 8, bits, j, h);
    for (int i = 0; i < mma->m; i++) {
        int from[MOST_K];
        for (int h = 0; h < n; h++) {
            x[h] = element(a, mma->m, bits, i, h);
            from[h] = mma->sparse ? dense_column(mma, metadata, i, h) : h;
        }
        for (int j = 0; j < 8; j++) {
            int lane = i % 8 * 4 + j / 2;
            for (int h = 0; h < n; h++) y[h] = columns[j][from[h]];
            if (mma->d == GPUSIM_NUM_F16) {
                uint32_t before = ((const uint32_t *)c[i / 8])[lane] >> 16 * (j % 2) & 0xffff;
                out[i][j] = f16_from_f32(sum_of_floats(mma, x, y, n, f32_from_f16(before)), GPUSIM_NUM_RN);
                continue;
            }
            uint32_t before = ((const uint32_t *)c[i / 8 * 2 + j % 2])[lane];
            out[i][j] = mma->d == GPUSIM_NUM_S32 ? (uint32_t)sum_of_integers(mma, x, y, n, (int32_t)before)
                                                 : sum_of_floats(mma, x, y, n, before);
        }
    }
    for (int i = 0; i < mma->m; i++)
        for (int j = 0; j < 8; j++) {
            int lane = i % 8 * 4 + j / 2;
            if (mma->d != GPUSIM_NUM_F16)
                ((uint32_t *)d[i / 8 * 2 + j % 2])[lane] = out[i][j];
            else if (j % 2 == 0)
                ((uint32_t *)d[i / 8])[lane] = out[i][j] | out[i][j + 1] << 16;
        }
}
