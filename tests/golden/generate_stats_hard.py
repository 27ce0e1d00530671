"""Golden of statistics on badly scaled data: shifted by up to 1e15, tiny, huge, nearly equal, nearly on a line, with one
label nearly always. References in 60 to 250 decimal digits (mpmath); ../eval/test_hard_numbers.c compares.

    python tests/golden/generate_stats_hard.py        # mpmath 1.3

A line is a statistic, its sizes, its inputs and, behind "=", what it is; doubles in hexadecimal."""

import math
import pathlib
import random

from mpmath import betainc, erfc, mp, mpf, sqrt

mp.dps = 250
draw = random.Random(45)


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


def moments(x, y):
    n = len(x)
    x, y = [mpf(v) for v in x], [mpf(v) for v in y]
    mx, my = sum(x) / n, sum(y) / n
    sxx, syy = sum((v - mx) ** 2 for v in x), sum((v - my) ** 2 for v in y)
    if not sxx or not syy:
        return None
    sxy = sum((a - mx) * (b - my) for a, b in zip(x, y))
    left = sum((b - my - sxy / sxx * (a - mx)) ** 2 for a, b in zip(x, y))
    return sxy / sqrt(sxx * syy), left / syy


def pearson():
    n = draw.randrange(3, 9)
    x, how = spread(n), draw.randrange(5)
    noise, shift = abs(x[0]) * 10.0 ** -draw.randrange(18), 10.0 ** draw.randrange(12)
    y = (
        spread(n) if how == 0 else
        [v * 0.75 for v in x] if how == 1 else
        [v * 0.1 + noise * draw.gauss(0, 1) for v in x] if how == 2 else
        [-v for v in x] if how == 3 else
        [v * 0.3 + shift for v in x]
    )
    if not all(map(math.isfinite, y)):
        return pearson()
    found = moments(x, y)
    if not found:
        return f"pearson {n} {numbers(x)} {numbers(y)} = undefined"
    rest = 0 if found[1] < mpf(10) ** -200 else found[1]
    return f"pearson {n} {numbers(x)} {numbers(y)} = {numbers([beta(n - 2, 1, rest), found[0]])}"


def icc():
    n, k = draw.randrange(2, 7), draw.randrange(2, 5)
    offset, fine = 10.0 ** draw.randrange(14), 10.0 ** -draw.randrange(6)
    x = spread(n * k) if draw.random() < 0.5 else [
        offset + target + fine * draw.gauss(0, 1)
        for target in [draw.gauss(0, 1) for _ in range(n)] for _ in range(k)
    ]
    v = [mpf(a) for a in x]
    grand, targets = sum(v) / (n * k), [sum(v[i * k:(i + 1) * k]) / k for i in range(n)]
    raters = [sum(v[j::k]) / n for j in range(k)]
    between = k * sum((t - grand) ** 2 for t in targets) / (n - 1)
    left = sum((v[i * k + j] - targets[i] - raters[j] + grand) ** 2 for i in range(n) for j in range(k))
    if not between or left < between * mpf(10) ** -200:
        return icc()
    f = between / (left / ((n - 1) * (k - 1)))
    df2 = (n - 1) * (k - 1)
    return f"icc {n} {k} {numbers(x)} = {numbers([beta(df2, n - 1, df2 / (df2 + (n - 1) * f))])}"


def kappa():
    k, weights, big = draw.randrange(2, 5), draw.randrange(3), 10 ** draw.randrange(9)
    table = [draw.choice((0, draw.randrange(20), draw.randrange(big))) for _ in range(k * k)]
    if draw.random() < 0.5:
        table[0] = 2 ** draw.randrange(10, 38)
    apart = [[mpf(abs(i - j) ** weights if weights else i != j) for j in range(k)] for i in range(k)]
    n, row = mpf(sum(table)), [sum(table[i * k:(i + 1) * k]) for i in range(k)]
    column = [sum(table[i::k]) for i in range(k)]
    if not n:
        return kappa()
    places = [(i, j) for i in range(k) for j in range(k)]
    chance = sum(apart[i][j] * row[i] * column[j] for i, j in places) / n**2
    if not chance:
        return f"kappa {k} {weights} {' '.join(map(str, table))} = undefined"
    value = 1 - sum(apart[i][j] * table[i * k + j] for i, j in places) / n / chance
    beyond = [[sum(apart[i][m] * column[m] + apart[m][j] * row[m] for m in range(k)) / n - chance - apart[i][j]
               for j in range(k)] for i in range(k)]
    error = sqrt(sum(row[i] * column[j] * beyond[i][j] ** 2 for i, j in places) / n**3) / chance
    if error < mpf(10) ** -100:
        p = mpf(1)
    else:
        mp.dps = 60
        p = erfc(abs(value) / error / sqrt(mpf(2)))
        mp.dps = 250
    return f"kappa {k} {weights} {' '.join(map(str, table))} = {numbers([p, value])}"


def cluster():
    n = draw.randrange(4, 10)
    x, groups = spread(n), [draw.randrange(4) for _ in range(n)]
    v = [mpf(a) for a in x]
    mean = sum(v) / n
    sums = {}
    for group, a in zip(groups, v):
        sums[group] = sums.get(group, 0) + a - mean
    g = len(sums)
    if g < 2:
        return cluster()
    error = sqrt(mpf(g) / (g - 1) * sum(s * s for s in sums.values())) / n
    if error < max(abs(a) for a in v) * mpf(10) ** -25 or error < mpf(2) ** -1000:
        return cluster()
    return f"cluster {n} {' '.join(map(str, groups))} {numbers(x)} = {numbers([error, mean])}"


lines = [make() for make, count in ((pearson, 150), (icc, 60), (kappa, 90), (cluster, 50)) for _ in range(count)]
path = pathlib.Path(__file__).parent / "data" / "stats" / "hard.txt"
path.write_text("\n".join(lines) + "\n")
