/* Rounding a double to a narrower format, any mode; slow and plain. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

struct num_format {
    int bits;       /* of the significand, with the hidden one */
    int least;      /* exponent of the smallest normal number */
    double largest; /* finite */
};
static const struct num_format num_f16_format = {11, -14, 65504.0};
static const struct num_format num_bf16_format = {8, -126, 0x1.fep127};
static const struct num_format num_f32_format = {24, -126, 0x1.fffffep127};
static const struct num_format num_tf32_format = {11, -126, 0x1.ffcp127};

/* mode: 0 nearest even, 1 to zero, 2 down, 3 up, 4 nearest with ties away from zero. NaN and infinities pass. */
static inline double num_round(double v, const struct num_format *f, int mode) {
    if (v == 0 || v - v != 0) return v;
    int e = ilogb(v);
    int unit = (e < f->least ? f->least : e) - (f->bits - 1);
    double q = scalbn(v, -unit), r;
    switch (mode) {
    case 0:
        r = rint(q);
        break;
    case 1:
        r = trunc(q);
        break;
    case 2:
        r = floor(q);
        break;
    case 3:
        r = ceil(q);
        break;
    default:
        r = round(q);
        break;
    }
    r = copysign(scalbn(r, unit), v);
    if (fabs(r) <= f->largest) return r;
    bool stays = mode == 1 || (mode == 2 && v > 0) || (mode == 3 && v < 0);
    return copysign(stays ? f->largest : INFINITY, v);
}
