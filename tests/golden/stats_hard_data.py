"""What the golden of statistics on badly scaled data is made of: numbers of bad scales, and distributions in 60 digits
(generate_stats_hard.py)."""

import math
import random
import sys

from mpmath import betainc, erfc, gammainc, mp, mpf, sqrt

mp.dps = 250
draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 45)


def beta(a, b, x):
    mp.dps = 60
    value = betainc(mpf(a) / 2, mpf(b) / 2, 0, min(x, 1), regularized=True) if x > 0 else mpf(0)
    mp.dps = 250
    return value


def spread(n):
    """n doubles of one of the bad scales."""
    big, unit = 10.0 ** draw.randrange(16), 10.0 ** draw.randrange(-300, 300)
    kind = draw.randrange(9)
    return [
        (
            draw.gauss(0, 1),
            big + draw.gauss(0, 1),
            big + draw.randrange(6),
            unit * draw.gauss(0, 1),
            math.exp(40 * draw.gauss(0, 1)),
            math.ldexp(draw.randrange(1, 1000), -1074),
            draw.choice((-1, 1)) * 1.7e308 * draw.uniform(0.5, 1),
            big * (1 + 1e-15 * draw.randrange(4)),
            i * 0.1 + big,
        )[kind]
        for i in range(n)
    ]


def numbers(values):
    return " ".join(float(v).hex() for v in values)


def chi2_sf(x, df):
    mp.dps = 60
    value = gammainc(mpf(df) / 2, x / 2, regularized=True)
    mp.dps = 250
    return value


def normal_both(z):
    mp.dps = 60
    value = min(erfc(abs(z) / sqrt(mpf(2))), mpf(1))
    mp.dps = 250
    return value


def whole(value):
    """A Fraction as an mpf."""
    return mpf(value.numerator) / value.denominator


def ranks(values):
    """Twice the mid-ranks, and the sizes of the groups of equal values."""
    at, sizes = {}, []
    for i, v in enumerate(sorted(values)):
        at.setdefault(v, []).append(i + 1)
    for places in at.values():
        sizes.append(len(places))
    return [at[v][0] + at[v][-1] for v in values], sizes


def scores(n):
    """Values to be ranked: whole scores with many ties, or one of the bad scales."""
    return [float(draw.randrange(draw.choice((2, 5, 10)))) for _ in range(n)] if draw.random() < 0.5 else spread(n)


def line(name, sizes, values, *found):
    known = "undefined" if not found else numbers(found)
    return f"{name} {' '.join(map(str, sizes))} {numbers(values)} = {known}"
