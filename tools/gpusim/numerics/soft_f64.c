#include "tools/gpusim/numerics/soft_f64.h"

__extension__ typedef unsigned __int128 u128;

#define SIGN     (1ull << 63)
#define INFINITE (0x7ffull << 52)

/* A finite number: mantissa * 2^exponent. */
struct parts {
    uint64_t mantissa;
    int exponent;
};

static struct parts parts_of(uint64_t x) {
    int field = x >> 52 & 0x7ff;
    uint64_t fraction = x & ((1ull << 52) - 1);
    return (struct parts){field ? fraction | 1ull << 52 : fraction, (field ? field : 1) - 1075};
}

static int width_of(u128 x) {
    uint64_t high = (uint64_t)(x >> 64), low = (uint64_t)x;
    return high ? 128 - __builtin_clzll(high) : low ? 64 - __builtin_clzll(low) : 0;
}

static u128 shifted_sticky(u128 x, int by) {
    if (by <= 0) return by <= -128 ? 0 : x << -by;
    if (by >= 128) return x != 0;
    return x >> by | ((x & (((u128)1 << by) - 1)) != 0);
}

/* x * 2^exponent with x's last bit sticky, x != 0. */
static uint64_t rounded(uint64_t sign, u128 x, int exponent, enum gpusim_num_rounding rounding) {
    int top = width_of(x) + exponent - 1; /* 2^top <= value < 2^(top + 1) */
    int lowest = top - 52 < -1074 ? -1074 : top - 52;
    /* two bits below the result's last: half, and sticky */
    x = shifted_sticky(x, lowest - 2 - exponent);
    uint64_t kept = (uint64_t)(x >> 2), rest = (uint64_t)x & 3;
    kept += round_up(kept & 1, (uint32_t)rest, 2, sign != 0, rounding);
    uint64_t bits = kept;
    if (kept >> 52) bits = kept + ((uint64_t)(lowest + 1074) << 52); /* the implicit bit adds one to the field */
    if (bits < INFINITE) return bits | sign;
    int to_largest =
        rounding == GPUSIM_NUM_RZ || (rounding == GPUSIM_NUM_RM && !sign) || (rounding == GPUSIM_NUM_RP && sign);
    return (to_largest ? INFINITE - 1 : INFINITE) | sign;
}

static int is_infinite(uint64_t x) { return (x & ~SIGN) == INFINITE; }

static uint64_t exact_zero_sum(uint64_t sign_a, uint64_t sign_b, enum gpusim_num_rounding rounding) {
    return rounding == GPUSIM_NUM_RM ? sign_a | sign_b : sign_a & sign_b;
}

uint64_t num_soft_fma_f64(uint64_t a, uint64_t b, uint64_t c, enum gpusim_num_rounding rounding) {
    uint64_t sign_p = (a ^ b) & SIGN, sign_c = c & SIGN;
    if (is_nan_f64(a) || is_nan_f64(b) || is_nan_f64(c)) return NAN_F64;
    if (is_infinite(a) || is_infinite(b)) {
        if (!(a & ~SIGN) || !(b & ~SIGN) || (is_infinite(c) && sign_c != sign_p)) return NAN_F64;
        return INFINITE | sign_p;
    }
    if (is_infinite(c)) return c;
    struct parts pa = parts_of(a), pb = parts_of(b), pc = parts_of(c);
    u128 p = (u128)pa.mantissa * pb.mantissa, q = pc.mantissa;
    int ep = pa.exponent + pb.exponent, ec = pc.exponent;
    if (!p && !q) return exact_zero_sum(sign_p, sign_c, rounding);
    if (!q) return rounded(sign_p, p, ep, rounding);
    if (!p) return rounded(sign_c, q, ec, rounding);
    /* Both to 126 bits; the one with the lower exponent is shifted to the other, keeping a sticky bit. At most one bit
     * is lost by cancellation when something was shifted out that does not fit. */
    int up = 126 - width_of(p), uq = 126 - width_of(q);
    p <<= up, ep -= up, q <<= uq, ec -= uq;
    int e = ep > ec ? ep : ec;
    p = shifted_sticky(p, e - ep), q = shifted_sticky(q, e - ec);
    if (sign_p == sign_c) return rounded(sign_p, p + q, e, rounding);
    if (p == q) return exact_zero_sum(sign_p, sign_c, rounding);
    return p > q ? rounded(sign_p, p - q, e, rounding) : rounded(sign_c, q - p, e, rounding);
}

uint64_t num_soft_div_f64(uint64_t a, uint64_t b, enum gpusim_num_rounding rounding) {
    uint64_t sign = (a ^ b) & SIGN;
    if (is_nan_f64(a) || is_nan_f64(b)) return NAN_F64;
    if (is_infinite(a)) return is_infinite(b) ? NAN_F64 : INFINITE | sign;
    if (is_infinite(b)) return sign;
    struct parts pa = parts_of(a), pb = parts_of(b);
    if (!pb.mantissa) return pa.mantissa ? INFINITE | sign : NAN_F64;
    if (!pa.mantissa) return sign;
    int up = 127 - width_of(pa.mantissa);
    u128 n = (u128)pa.mantissa << up;
    u128 q = n / pb.mantissa;
    return rounded(sign, q << 1 | (n % pb.mantissa != 0), pa.exponent - up - pb.exponent - 1, rounding);
}

uint64_t num_soft_sqrt_f64(uint64_t a, enum gpusim_num_rounding rounding) {
    if (is_nan_f64(a)) return NAN_F64;
    if (!(a & ~SIGN)) return a;
    if (a & SIGN) return NAN_F64;
    if (is_infinite(a)) return a;
    struct parts p = parts_of(a);
    int up = 126 - width_of(p.mantissa);
    up += (p.exponent - up) & 1; /* an even exponent */
    u128 n = (u128)p.mantissa << up, root = 0, rest = n;
    for (u128 bit = (u128)1 << 126; bit; bit >>= 2) {
        u128 step = root + bit;
        root >>= 1;
        if (rest >= step) rest -= step, root += bit;
    }
    return rounded(0, root << 1 | (rest != 0), (p.exponent - up) / 2 - 1, rounding);
}
