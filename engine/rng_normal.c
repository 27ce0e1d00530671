#include "engine/rng_normal.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Single precision: torch's AVX2 kernel, one lane at a time. Its logarithm and sine/cosine are Cephes' logf and sinf
 * polynomials; the released x86 builds are compiled with contraction, so every product that feeds exactly one sum is a
 * fused multiply-add, and is written as one here. */

static uint32_t bits_of(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* ln x for normal x in (0, 1] */
static float log_f32(float x) {
    static const float p[9] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                               -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                               2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
    uint32_t bits = bits_of(x);
    float e = (float)((int32_t)(bits >> 23) - 126);
    float m = float_of((bits & 0x007fffffu) | 0x3f000000u); /* [0.5, 1) */
    if (m < 0.707106781186547524f) {
        e -= 1.0f;
        m = (m - 1.0f) + m;
    } else {
        m -= 1.0f;
    }
    float m2 = m * m, y = p[0];
    for (int i = 1; i < 9; i++) y = fmaf(y, m, p[i]);
    y = fmaf(y * m, m2, e * -2.12194440e-4f);
    y -= m2 * 0.5f;
    return fmaf(e, 0.693359375f, m + y);
}

/* For 0 <= x < 8192 */
static void sincos_f32(float x, float *sine, float *cosine) {
    uint32_t octant = ((uint32_t)(int32_t)(x * 1.27323954473516f) + 1) & ~1u;
    float k = (float)octant;
    x = fmaf(k, -0.78515625f, x);
    x = fmaf(k, -2.4187564849853515625e-4f, x);
    x = fmaf(k, -3.77489497744594108e-8f, x);
    float z = x * x;
    float c = fmaf(fmaf(2.443315711809948e-5f, z, -1.388731625493765e-3f), z, 4.166664568298827e-2f);
    c = fmaf(c * z, z, -(z * 0.5f)) + 1.0f;
    float s = fmaf(fmaf(-1.9515295891e-4f, z, 8.3321608736e-3f), z, -1.6666654611e-1f);
    s = fmaf(s * z, x, x);
    int swap = octant & 2;
    float sine_abs = swap ? c : s, cosine_abs = swap ? s : c;
    *sine = float_of(bits_of(sine_abs) ^ (octant & 4) << 29);
    *cosine = float_of(bits_of(cosine_abs) ^ (~(octant - 2) & 4) << 29);
}

void lk_rng_box_muller16(float values[16]) {
    for (int j = 0; j < 8; j++) {
        float radius = sqrtf(-2.0f * log_f32(1.0f - values[j]));
        float sine, cosine;
        sincos_f32(6.283185307179586f * values[j + 8], &sine, &cosine);
        values[j] = radius * cosine + 0.0f; /* -0 becomes 0 */
        values[j + 8] = radius * sine + 0.0f;
    }
}

/* Double precision: torch calls the C library's log1p, sin and cos, whose last bit differs between versions. The
 * functions here are good to about 0.51 ulp, so that after rounding to float they agree with any good library. Sums and
 * products that matter carry their rounding error along (a pair of doubles, hi + lo). */

struct pair {
    double hi, lo;
};

static struct pair two_sum(double a, double b) {
    double sum = a + b, bb = sum - a;
    return (struct pair){sum, (a - (sum - bb)) + (b - bb)};
}

static struct pair two_product(double a, double b) {
    double product = a * b;
    return (struct pair){product, fma(a, b, -product)};
}

/* ln x for x in [2^-53, 1]: e ln 2 + 2 atanh((m - 1) / (m + 1)), m in [sqrt(1/2), sqrt(2)) */
double lk_rng_log(double x) {
    int e;
    double m = frexp(x, &e);
    if (m < 0.70710678118654752) {
        m *= 2;
        e--;
    }
    double n = m - 1; /* exact */
    struct pair d = two_sum(m, 1);
    double s = n / d.hi;
    double s_lo = (fma(-s, d.hi, n) - s * d.lo) / d.hi;
    double s2 = s * s, series = 0;
    for (int i = 25; i >= 3; i -= 2) series = series * s2 + 1.0 / i;
    struct pair ln2 = two_product(e, 0x1.62e42fefa39efp-1);
    struct pair sum = two_sum(ln2.hi, 2 * s);
    double low = ln2.lo + e * 0x1.abc9e3b39803fp-56;
    return sum.hi + (sum.lo + (low + 2 * (s_lo + s * s2 * series)));
}

/* For 0 <= x < 8 */
void lk_rng_sincos(double x, double *sine, double *cosine) {
    int quadrant = (int)(x * 0.63661977236758134 + 0.5);
    /* pi/2 in three parts; the first has 33 bits, so that its multiples and the first difference are exact. */
    double a = x - quadrant * 0x1.921fb544p+0;
    struct pair p2 = two_product(quadrant, 0x1.0b4611a626331p-34);
    struct pair r = two_sum(a, -p2.hi);
    r.lo -= p2.lo + quadrant * 0x1.1701b839a2520p-88;
    double h = r.hi, z = h * h;
    double s = 0, c = 0, inverse_s[9], inverse_c[9]; /* 1/(2i+3)!, 1/(2i+4)!, signs alternating */
    inverse_s[0] = -1.0 / 6;
    inverse_c[0] = 1.0 / 24;
    for (int i = 1; i < 9; i++) {
        inverse_s[i] = -inverse_s[i - 1] / ((2 * i + 2) * (2 * i + 3));
        inverse_c[i] = -inverse_c[i - 1] / ((2 * i + 3) * (2 * i + 4));
    }
    for (int i = 8; i >= 0; i--) {
        s = s * z + inverse_s[i];
        c = c * z + inverse_c[i];
    }
    double sine_r = h + (h * z * s + r.lo * (1 - 0.5 * z));
    struct pair z2 = two_product(h, h), one = two_sum(1, -0.5 * z2.hi);
    double cosine_r = one.hi + (one.lo + (z * z * c - 0.5 * z2.lo - h * r.lo));
    double sines[4] = {sine_r, cosine_r, -sine_r, -cosine_r};
    *sine = sines[quadrant & 3];
    *cosine = sines[(quadrant + 1) & 3];
}

double lk_rng_box_muller(double angle, double radius, double *second) {
    double r = sqrt(-2.0 * lk_rng_log(1.0 - radius)), sine, cosine;
    lk_rng_sincos(6.283185307179586476925 * angle, &sine, &cosine);
    *second = r * sine;
    return r * cosine;
}
