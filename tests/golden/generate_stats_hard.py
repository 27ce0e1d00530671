"""Golden of statistics on badly scaled data: shifted by up to 1e15, tiny, huge, nearly equal, nearly on a line, with one
label nearly always; counts from 0 to 1e9. References in 60 to 250 decimal digits (mpmath), exact tests in fractions;
../eval/test_hard_numbers.c compares.

    python tests/golden/generate_stats_hard.py              # mpmath 1.3
    python tests/golden/generate_stats_hard.py 100 7        # a sweep: 100 times as many lines, drawn from seed 7

A line is a statistic, its sizes, its inputs and, behind "=", what it is; doubles in hexadecimal."""

import math
import pathlib
import sys
from fractions import Fraction

from mpmath import erfc, mp, mpf, sqrt

import stats_hard_models
from stats_hard_data import beta, chi2_sf, draw, line, normal_both, numbers, ranks, scores, spread, whole

TIMES = int(sys.argv[1]) if len(sys.argv) > 1 else 1


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


def spearman():
    n = draw.randrange(3, 25)
    x = scores(n)
    y = [-v for v in x] if draw.random() < 0.1 else [v * draw.choice((1, 1, -1)) for v in x] if draw.random() < 0.3 else (
        scores(n))
    found = moments(ranks(x)[0], ranks(y)[0])
    if not found:
        return line("spearman", [n], x + y)
    rest = 0 if found[1] < mpf(10) ** -200 else found[1]
    return line("spearman", [n], x + y, beta(n - 2, 1, rest), found[0])


def kendall():
    n = draw.randrange(3, 45)
    x, y = scores(n), scores(n)
    pairs = [(i, j) for i in range(n) for j in range(i)]
    sign = [((x[i] > x[j]) - (x[i] < x[j])) * ((y[i] > y[j]) - (y[i] < y[j])) for i, j in pairs]
    tx, ty = ranks(x)[1], ranks(y)[1]
    if len(tx) == 1 or len(ty) == 1:
        return line("kendall", [n], x + y)
    half = [sum(t * (t - 1) // 2 for t in ties) for ties in (tx, ty)]
    tau = sum(sign) / sqrt(mpf(len(pairs) - half[0]) * (len(pairs) - half[1]))
    wrong = sign.count(-1)
    fewest = min(wrong, len(pairs) - wrong)
    if not any(half) and (n <= 33 or fewest <= 1):
        ways = [1]
        for k in range(2, n + 1):
            longer = [0] * (len(ways) + k - 1)
            for i, w in enumerate(ways):
                for step in range(k):
                    longer[i + step] += w
            ways = longer
        p = whole(min(Fraction(2 * sum(ways[:fewest + 1]), math.factorial(n)), Fraction(1)))
    else:
        m = n * (n - 1)
        v0, v1 = [[sum(t * (t - 1) * f(t) for t in ties) for ties in (tx, ty)]
                  for f in (lambda t: t - 2, lambda t: 2 * t + 5)]
        variance = (Fraction(m * (2 * n + 5) - v1[0] - v1[1], 18) + Fraction(2 * half[0] * half[1], m) +
                    Fraction(v0[0] * v0[1], 9 * m * (n - 2)))
        p = normal_both(sum(sign) / sqrt(whole(variance)))
    return line("kendall", [n], x + y, p, tau)


def kruskal():
    n = [draw.randrange(1, 12) for _ in range(draw.randrange(2, 6))]
    x, total = scores(sum(n)), sum(n)
    if draw.random() < 0.3:  # groups apart
        x = [v + 100 * g for g, size in enumerate(n) for v in scores(size)]
    r, ties = ranks(x)
    if len(ties) == 1:
        return line("kruskal", [len(n), *n], x)
    h, first = Fraction(0), 0
    for size in n:
        h += Fraction(sum(r[first:first + size]) ** 2, 4 * size)
        first += size
    h = (12 * h / (total * (total + 1)) - 3 * (total + 1)) / (
        1 - Fraction(sum(t**3 - t for t in ties), total**3 - total))
    return line("kruskal", [len(n), *n], x, chi2_sf(whole(h), len(n) - 1), whole(h))


def friedman():
    n, k = draw.randrange(1, 15), draw.randrange(3, 6)
    x = scores(n * k) if draw.random() < 0.7 else [float(j) for _ in range(n) for j in range(k)]
    blocks = [ranks(x[i * k:i * k + k]) for i in range(n)]
    tied = sum(t**3 - t for _, ties in blocks for t in ties)
    if tied == n * (k**3 - k):
        return line("friedman", [n, k], x)
    sums = [sum(b[0][j] for b in blocks) for j in range(k)]
    q = (Fraction(12 * sum(s * s for s in sums), 4 * n * k * (k + 1)) - 3 * n * (k + 1)) / (
        1 - Fraction(tied, n * (k**3 - k)))
    return line("friedman", [n, k], x, chi2_sf(whole(q), k - 1), whole(q))


def mann_whitney():
    nx, ny = draw.randrange(1, 30), draw.randrange(1, 30)
    x = scores(nx) + (scores(ny) if draw.random() < 0.7 else [v * 1.5 + 3 for v in scores(ny)])
    if not all(map(math.isfinite, x)):
        return mann_whitney()
    r, ties = ranks(x)
    if len(ties) == 1:
        return line("mann_whitney", [nx, ny], x)
    u = Fraction(sum(r[:nx]) - nx * (nx + 1), 2)
    most = max(u, nx * ny - u)
    if min(nx, ny) <= 8 and max(ties) == 1:
        ways = {(0, 0): 1}
        for value in range(1, nx + ny + 1):  # ways to choose i of the first values with that sum of ranks
            for (i, total), w in list(ways.items()):
                if i < nx:
                    ways[i + 1, total + value] = ways.get((i + 1, total + value), 0) + w
        upper = sum(w for (i, total), w in ways.items() if i == nx and total - nx * (nx + 1) // 2 >= most)
        p = whole(min(Fraction(2 * upper, math.comb(nx + ny, nx)), Fraction(1)))
    else:
        n = nx + ny
        variance = Fraction(nx * ny, 12) * (n + 1 - Fraction(sum(t**3 - t for t in ties), n * (n - 1)))
        z = (whole(most) - mpf(nx * ny) / 2 - mpf(1) / 2) / sqrt(whole(variance))
        p = normal_both(z) if z > 0 else mpf(1)
    return line("mann_whitney", [nx, ny], x, p, whole(u))


def wilcoxon():
    n = draw.randrange(1, 60)
    x = [v - draw.randrange(3) for v in scores(n)]
    kept = [v for v in x if v]
    if not kept:
        return line("wilcoxon", [n], x)
    r, ties = ranks([abs(v) for v in kept])
    plus, m = sum(a for a, v in zip(r, kept) if v > 0), len(kept)
    least = min(plus, sum(r) - plus)
    if len(kept) == n <= 50 and max(ties) == 1:
        ways = [1]
        for value in range(1, n + 1):
            longer = ways + [0] * value
            for i, w in enumerate(ways):
                longer[i + value] += w
            ways = longer
        p = whole(min(Fraction(2 * sum(ways[:least // 2 + 1]), 2**n), Fraction(1)))
    else:
        variance = Fraction(m * (m + 1) * (2 * m + 1), 24) - Fraction(sum(t**3 - t for t in ties), 48)
        p = normal_both((mpf(least) / 2 - mpf(m * (m + 1)) / 4) / sqrt(whole(variance)))
    return line("wilcoxon", [n], x, p, mpf(least) / 2)


def count():
    return draw.choice((0, draw.randrange(12), draw.randrange(200), draw.randrange(10 ** draw.randrange(1, 9))))


def contingency():
    r, c = draw.randrange(2, 5), draw.randrange(2, 5)
    table = [[count() for _ in range(c)] for _ in range(r)]
    kept = [row for row in table if sum(row)]
    kept = [[v for v, column in zip(row, zip(*kept)) if sum(column)] for row in kept]
    flat = [v for row in table for v in row]
    if len(kept) < 2 or len(kept[0]) < 2:
        return line("contingency", [r, c], flat)
    n, rows, columns = sum(map(sum, kept)), [sum(row) for row in kept], [sum(column) for column in zip(*kept)]
    found = []
    for correct in (False, len(kept) == len(kept[0]) == 2):
        x = Fraction(0)
        for i, row in enumerate(kept):
            for j, v in enumerate(row):
                expected = Fraction(rows[i] * columns[j], n)
                off = abs(v - expected)
                x += (off - (min(off, Fraction(1, 2)) if correct else 0)) ** 2 / expected
        found += [chi2_sf(whole(x), (len(kept) - 1) * (len(kept[0]) - 1)), whole(x)]
    return line("contingency", [r, c], flat, *found)


def fit():
    k = draw.randrange(2, 7)
    counts, shares = [count() for _ in range(k)], [10.0 ** draw.randrange(-6, 3) for _ in range(k)]
    n, whole_share = sum(counts), sum(map(Fraction, shares))
    if not n:
        return line("fit", [k], counts + shares)
    expected = [n * Fraction(s) / whole_share for s in shares]
    x = sum((v - e) ** 2 / e for v, e in zip(counts, expected))
    return line("fit", [k], counts + shares, chi2_sf(whole(x), k - 1), whole(x))


def fisher():
    small = draw.random() < 0.8
    a, b, c, d = (draw.randrange(40) if small else draw.randrange(3000) for _ in range(4))
    if not (a + b and c + d and a + c and b + d):
        return line("fisher", [], [a, b, c, d])
    ways = [math.comb(a + b, k) * math.comb(c + d, a + c - k)
            for k in range(max(0, a - d), min(a + b, a + c) + 1)]
    seen = math.comb(a + b, a) * math.comb(c + d, c)
    return line("fisher", [], [a, b, c, d],
                whole(Fraction(sum(w for w in ways if w <= seen), math.comb(a + b + c + d, a + c))))


def mcnemar():
    b, c = (draw.randrange(10 ** draw.randrange(1, 5)) for _ in range(2))
    if not b + c:
        return line("mcnemar", [], [b, c])
    exact = Fraction(2 * sum(math.comb(b + c, k) for k in range(min(b, c) + 1)), 2 ** (b + c))
    return line("mcnemar", [], [b, c], whole(min(exact, Fraction(1))),
                *(chi2_sf(mpf((abs(b - c) - off) ** 2) / (b + c), 1) for off in (1, 0)))


def proportions():
    size = draw.choice((0, 9))
    n1, n2 = (draw.randrange(1, 10 ** (size or draw.randrange(1, 10))) for _ in range(2))
    few = draw.randrange(21)
    k1, k2 = (draw.choice((0, n, draw.randrange(n + 1), min(n, few), n - min(n, few))) for n in (n1, n2))
    pooled = Fraction(k1 + k2, n1 + n2)
    if pooled in (0, 1):
        return line("proportions", [], [k1, n1, k2, n2])
    z = whole(Fraction(k1, n1) - Fraction(k2, n2)) / sqrt(whole(pooled * (1 - pooled) * (Fraction(1, n1) + Fraction(1, n2))))
    return line("proportions", [], [k1, n1, k2, n2], normal_both(z), z)


def binomial():
    n = draw.randrange(1, 400)
    share = draw.choice((0.5, 0.25, draw.random(), draw.random() ** 8, 1 - draw.random() ** 4 / 2))
    k = draw.choice((0, n, draw.randrange(n + 1), min(n, round(n * share) + draw.randrange(3))))
    p = Fraction(share)
    ways = [math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(n + 1)]
    return line("binomial", [], [k, n, share], whole(sum(w for w in ways if w <= ways[k])))


MAKERS = ((pearson, 150), (icc, 60), (kappa, 90), (cluster, 50), (spearman, 40), (kendall, 40), (kruskal, 40),
          (friedman, 30), (mann_whitney, 40), (wilcoxon, 40), (contingency, 50), (fit, 30), (fisher, 30), (mcnemar, 30),
          (proportions, 40), (binomial, 20))
lines = [make() for make, n in MAKERS + stats_hard_models.MAKERS for _ in range(n * TIMES)]
path = pathlib.Path(__file__).parent / "data" / "stats" / "hard.txt"
path.write_text("\n".join(lines) + "\n")
