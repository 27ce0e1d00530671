/* Two colour scales with even steps of lightness (interpolated in OKLab, kept here in steps small enough for linear
 * interpolation). Ordered by lightness alone, they read the same to colour-blind eyes and in grey; their ends differ in
 * blue against orange, which all common kinds tell apart. */
#include "eval/document/figure_draw.h"

static const uint32_t sequential[] = {0xf4f7e1, 0xdfedd4, 0xcae3c8, 0xb5d9bc, 0xa0cfaf, 0x8bc3af,
                                      0x76b8af, 0x5facae, 0x46a0ac, 0x3d92a9, 0x3484a5, 0x2c77a1,
                                      0x25699c, 0x265b91, 0x264e85, 0x25417a, 0x24346f};
static const uint32_t diverging[] = {0x204f9d, 0x3564a9, 0x4b78b6, 0x628dc2, 0x79a2ce, 0x97b6d7,
                                     0xb5c9df, 0xd3dde7, 0xf2f1ee, 0xe9d8ca, 0xe0c0a7, 0xd6a884,
                                     0xcb8f60, 0xbc784b, 0xac6035, 0x9c491e, 0x8c3000};

static uint32_t between(const uint32_t *stops, int n, double t) {
    t = t > 0 ? (t < 1 ? t : 1) : 0; /* NaN too */
    double at = t * (n - 1);
    int i = (int)at;
    if (i > n - 2) i = n - 2;
    double f = at - i;
    uint32_t rgb = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        double a = stops[i] >> shift & 255, b = stops[i + 1] >> shift & 255;
        rgb |= (uint32_t)(a + (b - a) * f + 0.5) << shift;
    }
    return rgb;
}

uint32_t lk_scale_sequential(double t) { return between(sequential, sizeof sequential / sizeof *sequential, t); }
uint32_t lk_scale_diverging(double t) { return between(diverging, sizeof diverging / sizeof *diverging, (t + 1) / 2); }

/* The sRGB curve as a cubic, whose error is too small to move the choice. */
static double linear(uint32_t channel) {
    double c = channel / 255.0;
    return c * (c * (c * 0.305306011 + 0.682171111) + 0.012522878);
}

bool lk_black_on(uint32_t rgb) {
    double y = 0.2126 * linear(rgb >> 16 & 255) + 0.7152 * linear(rgb >> 8 & 255) + 0.0722 * linear(rgb & 255);
    return (y + 0.05) * (y + 0.05) > 1.05 * 0.05; /* (y + 0.05) / 0.05 against 1.05 / (y + 0.05) */
}
