#!/usr/bin/env python3
"""Writes data/stats/special.csv: special functions by mpmath, 30 digits, for tests/eval/test_special.c.

    python tests/golden/generate_special.py [--points N] [--folder FOLDER]
    build/tests/test_special FOLDER/special.csv       # from tests/: the worst error of each function over all points

The committed file has 300 points of each; 10,000 (ten minutes) are the first 300 and more. Needs mpmath (1.3.0), scipy
(1.17.1: where the search for a quantile begins). "nan": a value beyond 1e-300 or 1e300."""

import argparse
import math
import pathlib
from fractions import Fraction
from math import comb, nan
from multiprocessing import Pool

import mpmath as mp
import scipy.special as sp

import stats_cases as sc

mp.mp.dps = 30


def dyadic(stream, low, high):
    """2^low to 2^(high + 1), as many of every size."""
    mantissa = (1 << 20) + stream.bounded(1 << 20)
    return math.ldexp(mantissa, low + stream.bounded(high - low + 1) - 20)


def probability(stream):
    if stream.bounded(2):
        return dyadic(stream, -990, -2)
    return (1 + stream.bounded((1 << 30) - 1)) / (1 << 30)


def normal_z(stream):
    if stream.bounded(2):
        return [(stream.bounded(45 << 20) - (37 << 20)) / (1 << 20)]
    z = dyadic(stream, -30, 2)
    return [z if stream.bounded(2) else -z]


def gamma_x(stream):
    a = dyadic(stream, -4, 12)
    x = a + (stream.bounded(1 << 20) - (1 << 19)) / (1 << 14) * math.sqrt(a)
    return [a, x] if x > 0 and stream.bounded(3) else [a, dyadic(stream, -10, 9)]


def beta_x(stream):
    a, b = dyadic(stream, -2, 10), dyadic(stream, -2, 10)
    n = a + b
    steps = (stream.bounded(1 << 20) - (1 << 19)) / (1 << 14)
    x = a / n + steps * math.sqrt(a / n * (b / n) / n)
    if not 2**-30 <= x <= 1 - 2**-30 or not stream.bounded(3):
        x = (1 + stream.bounded((1 << 30) - 1)) / (1 << 30)
    return [a, b, math.floor(x * (1 << 30)) / (1 << 30)]


def whole(stream):
    return float(1 + stream.bounded((20, 200, 5000)[stream.bounded(3)]))


def binomial(stream):
    n = 1 + stream.bounded(1000)
    return [float(stream.bounded(n + 1)), float(n), (1 + stream.bounded(1023)) / 1024]


def lower(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def upper(a, x):
    return mp.gammainc(a, x, mp.inf, regularized=True)


def beta_series(a, b, x):
    """By the series of positive terms, which mpmath does not use."""
    if x > mp.mpf(a + 1) / (a + b + 2):
        return 1 - beta_series(b, a, 1 - x)
    term = total = x**a * (1 - x) ** b / (a * mp.beta(a, b))
    n = 0
    while term > total * mp.mpf(10) ** -30:
        term *= (a + b + n) / (a + 1 + n) * x
        total += term
        n += 1
    return total


def beta(a, b, x):
    try:
        return mp.betainc(a, b, 0, x, regularized=True)
    except ValueError:  # it gives up where terms of both signs cancel too far
        return beta_series(mp.mpf(a), mp.mpf(b), mp.mpf(x))


def newton(tail, log_slope, target, x, direction=1):
    """The x > 0 with tail(x) = target: Newton's method on the logarithms of both. log_slope(x): log of |d tail / dx|."""
    target, x = mp.mpf(target), mp.mpf(x)
    for _ in range(200):
        value = tail(x)
        step = -direction * mp.log(value / target) * value / (x * mp.exp(log_slope(x)))
        x *= mp.exp(max(-1, min(1, step)))
        if abs(step) < mp.mpf(10) ** -20:
            return x
    raise ArithmeticError(target)


def log_gamma_density(a):
    return lambda x: (a - 1) * mp.log(x) - x - mp.loggamma(a)


def gamma_inverse(a, p, is_upper):
    a = mp.mpf(a)
    first = sp.gammainccinv(float(a), p) if is_upper else sp.gammaincinv(float(a), p)
    if not 1e-300 < first < 1e300:
        return nan
    # By the smaller tail, which alone has digits to search by.
    if p <= 0.5:
        return newton(lambda x: (upper if is_upper else lower)(a, x), log_gamma_density(a), p, first, -1 if is_upper else 1)
    rest = 1 - mp.mpf(p)
    return newton(lambda x: (lower if is_upper else upper)(a, x), log_gamma_density(a), rest, first, 1 if is_upper else -1)


def log_odds_of_beta(a, b, p):
    """x / (1 - x) with I_x(a, b) = p <= 1/2."""
    a, b = mp.mpf(a), mp.mpf(b)
    log_beta = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)
    first = mp.exp((mp.log(p) + mp.log(a) + log_beta) / a)  # what is under the root, where p is small
    middle = sp.betaincinv(float(a), float(b), float(p))
    first = middle / (1 - middle) if 1e-290 < middle < 1 else first
    slope = lambda r: (a - 1) * mp.log(r) - (a + b) * mp.log1p(r) - log_beta  # noqa: E731
    return newton(lambda r: beta(a, b, r / (1 + r)), slope, p, first)


def beta_inverse(a, b, p):
    r = log_odds_of_beta(a, b, p) if p <= 0.5 else 1 / log_odds_of_beta(b, a, 1 - mp.mpf(p))
    return r / (1 + r)


def f_quantile(p, d1, d2):
    a, b = d1 / 2, d2 / 2
    r = log_odds_of_beta(a, b, p) if p <= 0.5 else 1 / log_odds_of_beta(b, a, 1 - mp.mpf(p))
    return r * d2 / d1


def t_quantile(p, df):
    tail = min(mp.mpf(p), 1 - mp.mpf(p))
    if tail > 0.25:
        r = log_odds_of_beta(0.5, df / 2, 1 - 2 * tail) if tail < 0.5 else mp.mpf(0)
    else:
        r = 1 / log_odds_of_beta(df / 2, 0.5, 2 * tail)
    t = mp.sqrt(df * r)
    return -t if p < 0.5 else t


def t_two_sided(t, df):
    t, df = mp.mpf(t), mp.mpf(df)
    return beta(df / 2, mp.mpf(1) / 2, df / (df + t * t))


def f_sf(f, d1, d2):
    f, d1, d2 = mp.mpf(f), mp.mpf(d1), mp.mpf(d2)
    return beta(d2 / 2, d1 / 2, d2 / (d2 + d1 * f))


def normal_quantile(p):
    tail = min(mp.mpf(p), 1 - mp.mpf(p))
    if tail == mp.mpf(1) / 2:
        return 0
    if tail > 0.25:
        z = mp.sqrt(2) * mp.erfinv(1 - 2 * tail)
    else:
        slope = lambda z: -z * z / 2 - mp.log(2 * mp.pi) / 2  # noqa: E731
        z = newton(lambda z: mp.erfc(z / mp.sqrt(2)) / 2, slope, tail, -sp.ndtri(float(tail)), -1)
    return -z if p < 0.5 else z


def binomial_at_most(k, n, p):
    return 1 if k == n else beta(n - k, k + 1, 1 - mp.mpf(p))


def binomial_pmf(k, n, p):
    return comb(int(n), int(k)) * mp.mpf(p) ** int(k) * (1 - mp.mpf(p)) ** int(n - k)


# In the order of the table in tests/eval/test_special.c.
FUNCTIONS = {
    "normal_cdf": (normal_z, mp.ncdf),
    "normal_quantile": (lambda s: [probability(s)], normal_quantile),
    "log_gamma": (lambda s: [dyadic(s, -30, 30)], mp.loggamma),
    "gamma_q": (gamma_x, upper),
    "beta": (beta_x, beta),
    "beta_inverse": (lambda s: [dyadic(s, -1, 7), dyadic(s, -1, 7), probability(s)], beta_inverse),
    "t_two_sided": (lambda s: [dyadic(s, -20, 6), whole(s)], t_two_sided),
    "t_quantile": (lambda s: [probability(s), whole(s)], t_quantile),
    "f_sf": (lambda s: [dyadic(s, -10, 8), whole(s), whole(s)], f_sf),
    "f_quantile": (lambda s: [probability(s), whole(s), whole(s)], f_quantile),
    "binomial_pmf": (binomial, binomial_pmf),
    "binomial_at_most": (binomial, binomial_at_most),
}


def number(value):
    if isinstance(value, Fraction):
        value = mp.mpf(value.numerator) / value.denominator
    return float(value) if value == 0 or 1e-300 <= abs(value) <= 1e300 else nan


def row(point):
    inputs, values = [], []
    for name, (draw, function) in FUNCTIONS.items():
        arguments = draw(sc.case_stream(name, point))
        inputs += arguments
        values.append(number(function(*arguments)))
    return inputs, values


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=300)
    parser.add_argument("--folder", type=pathlib.Path, default=sc.FOLDER)
    arguments = parser.parse_args()
    checksum, rows = sc.FNV_BASIS, []
    with Pool(2) as pool:
        for inputs, values in pool.imap(row, range(arguments.points), 20):
            checksum = sc.checksum(inputs, checksum)
            rows.append(values)
    sc.write("special", rows, checksum, list(FUNCTIONS), ["mpmath", "scipy"], "30 digits", arguments.folder)


if __name__ == "__main__":
    main()
