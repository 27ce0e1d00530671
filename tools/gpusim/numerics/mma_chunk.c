#include "tools/gpusim/numerics/mma_dot.h"

#define SIGN 0x80000000u

static uint32_t special(uint32_t c, const uint32_t *a, const uint32_t *b, int n) {
    int positive = 0, negative = 0, nan = is_nan_f32(c);
    if ((c & ~SIGN) == 0x7f800000) *(c & SIGN ? &negative : &positive) = 1;
    for (int i = 0; i < n; i++) {
        uint32_t x = a[i] & ~SIGN, y = b[i] & ~SIGN;
        nan |= x > 0x7f800000 || y > 0x7f800000;
        if (x != 0x7f800000 && y != 0x7f800000) continue;
        nan |= !x || !y;
        *((a[i] ^ b[i]) & SIGN ? &negative : &positive) = 1;
    }
    if (nan || (positive && negative)) return NAN_F32;
    return positive ? 0x7f800000 : negative ? 0xff800000 : 0;
}

/* x as a multiple of 2^(exponent - 127 - 23). */
static int64_t significand(uint32_t x, int32_t exponent) {
    int32_t field = x >> 23 & 255;
    int64_t m = (x & 0x7fffff) | (field ? 0x800000 : 0);
    int down = exponent - (field ? field : 1); /* f16's subnormal numbers are normal in f32 */
    m >>= down > 0 ? (down > 31 ? 31 : down) : 0;
    return x & SIGN ? -m : m;
}

/* x >> by towards zero; by < 0 shifts left. */
static int64_t truncated(int64_t x, int by) {
    int64_t size = x < 0 ? -x : x;
    size = by < 0 ? size << -by : by > 62 ? 0 : size >> by;
    return x < 0 ? -size : size;
}

/* sum * 2^(exponent - 127 - 24) towards zero; beyond the range, infinity. */
static uint32_t normalised(int64_t sum, int32_t exponent) {
    if (!sum) return 0;
    uint64_t size = (uint64_t)(sum < 0 ? -sum : sum);
    uint32_t sign = sum < 0 ? SIGN : 0;
    int top = 63 - __builtin_clzll(size);
    int field = exponent - 24 + top;
    if (field >= 255) return sign | 0x7f800000;
    int drop = field >= 1 ? top - 23 : 24 - exponent + 1 - 23; /* subnormal: to multiples of 2^-149 */
    uint64_t kept = drop > 63 ? 0 : drop > 0 ? size >> drop : size << -drop;
    if (field >= 1) kept += (uint64_t)(field - 1) << 23;
    return kept ? sign | (uint32_t)kept : 0;
}

uint32_t num_mma_chunk(uint32_t c, const uint32_t *a, const uint32_t *b, const int32_t *ea, const int32_t *eb, int n,
                       int half) {
    uint32_t r = special(c, a, b, n);
    if (r) return r;
    int32_t field = c >> 23 & 255, ec = field ? field : 1;
    if (half && c & ~SIGN && ec < 113) ec = 113; /* an f16 accumulator's smallest normal number */
    int32_t most = ec;
    for (int i = 0; i < n; i++) most = ea[i] + eb[i] > most ? ea[i] + eb[i] : most;
    int64_t sum = truncated(significand(c, ec), most - ec - 1);
    for (int i = 0; i < n; i++) {
        int64_t p = significand(a[i], ea[i]) * significand(b[i], eb[i] + 127);
        sum += truncated(p, 22 + most - ea[i] - eb[i]);
    }
    if (!half) return normalised(sum, most);
    /* |sum| < 2^30 is exact in f64, and so is its product with the power of two. */
    double value = (double)sum * f64_of((uint64_t)(most - 127 - 24 + 1023) << 52);
    uint32_t rounded = f16_from_f32(odd_f32(value), GPUSIM_NUM_RN);
    return rounded & 0x7fff ? f32_from_f16(rounded) : 0;
}
