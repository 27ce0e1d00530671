"""Agreement, groups, intervals, sample sizes and linear models of the golden of badly scaled data
(generate_stats_hard.py)."""

import math
from fractions import Fraction

from mpmath import betainc, eigsy, erfc, erfinv, lu_solve, matrix, mp, mpf, sqrt

from stats_hard_data import beta, draw, line, normal_both, ranks, scores, spread, whole

NAN = float("nan")


def t_both(t, df):
    return beta(df, 1, df / (df + t * t))


def f_sf(f, df1, df2):
    return beta(df2, df1, df2 / (df2 + df1 * f))


def normal_sf(z):
    return erfc(z / sqrt(mpf(2))) / 2


def quantile(share):
    mp.dps = 60
    value = sqrt(mpf(2)) * erfinv(2 * mpf(share) - 1)
    mp.dps = 250
    return value


def dunn():
    n = [draw.randrange(1, 12) for _ in range(draw.randrange(2, 5))]
    x = [v + (100 * g if draw.random() < 0.2 else 0) for g, size in enumerate(n) for v in scores(size)]
    r, ties = ranks(x)
    if len(ties) == 1:
        return line("dunn", [len(n), *n], x)
    total, found = sum(n), []
    variance = Fraction(total * (total + 1) - Fraction(sum(t**3 - t for t in ties), total - 1), 12)
    means = [Fraction(sum(r[sum(n[:g]):sum(n[:g + 1])]), 2 * n[g]) for g in range(len(n))]
    for i in range(len(n)):
        for j in range(i + 1, len(n)):
            z = whole(means[i] - means[j]) / sqrt(whole(variance * (Fraction(1, n[i]) + Fraction(1, n[j]))))
            found += [normal_both(z), z]
    return line("dunn", [len(n), *n], x, *found)


def fleiss():
    items, k, m = draw.randrange(1, 12), draw.randrange(2, 6), draw.choice((2, 3, 5, 60000))
    rare = draw.random() < 0.4
    table = []
    for _ in range(items):
        cuts = [m] * (k - 1) if rare and draw.random() < 0.9 else sorted(draw.randrange(m + 1) for _ in range(k - 1))
        table.append([b - a for a, b in zip([0, *cuts], [*cuts, m])])
    share = [Fraction(sum(column), items * m) for column in zip(*table)]
    flat = [v for row in table for v in row]
    if 1 in share:
        return line("fleiss", [items, k], flat)
    seen = Fraction(sum(v * (v - 1) for v in flat), items * m * (m - 1))
    chance = sum(s * s for s in share)
    return line("fleiss", [items, k], flat, whole((seen - chance) / (1 - chance)))


def gwet():
    items, k, weights = draw.randrange(1, 12), draw.randrange(1, 6), draw.randrange(3)
    most, rare = draw.choice((2, 4, 30000)), draw.random() < 0.5
    table = [[draw.randrange(most) if j == 0 or not rare or draw.random() < 0.1 else 0 for j in range(k)]
             for _ in range(items)]
    flat = [v for row in table for v in row]
    kept = [row for row in table if sum(row)]
    if k < 2 or not any(sum(row) >= 2 for row in kept):
        return line("gwet", [items, k, weights], flat)
    like = [[1 - (Fraction(abs(i - j), k - 1) ** weights if weights else Fraction(i != j)) for j in range(k)]
            for i in range(k)]
    n, compared = len(kept), sum(sum(row) >= 2 for row in kept)
    alike = [
        sum(row[i] * (sum(like[i][j] * row[j] for j in range(k)) - 1) for i in range(k)) / (sum(row) * (sum(row) - 1))
        if sum(row) >= 2 else Fraction(0) for row in kept
    ]
    share = [sum(Fraction(row[j], sum(row)) for row in kept) / n for j in range(k)]
    factor = sum(map(sum, like)) / (k * (k - 1))
    seen, chance = sum(alike) / compared, factor * sum(s * (1 - s) for s in share)
    value = (seen - chance) / (1 - chance)
    if n < 2:
        return line("gwet", [items, k, weights], flat, 1, whole(value))
    squares = Fraction(0)
    for row, a in zip(kept, alike):
        own = factor * sum(row[j] * (1 - share[j]) for j in range(k)) / sum(row)
        part = Fraction(n, compared) * (a - chance if sum(row) >= 2 else 0) - 2 * (1 - value) * (own - chance)
        squares += (part / (1 - chance) - value) ** 2
    p = t_both(whole(value) / sqrt(whole(squares) / (n * (n - 1))), n - 1) if squares else mpf(1)
    return line("gwet", [items, k, weights], flat, p, whole(value))


def alpha():
    units, raters, level = draw.randrange(1, 9), draw.randrange(2, 5), draw.randrange(4)
    x = [v if draw.random() < 0.8 else NAN for v in scores(units * raters)]
    kept = [[v for v in x[u * raters:(u + 1) * raters] if v == v] for u in range(units)]
    kept = [unit for unit in kept if len(unit) >= 2]
    every = sorted(v for unit in kept for v in unit)
    n = len(every)
    place = {v: Fraction(every.index(v) * 2 + every.count(v), 2) for v in every}

    def apart(a, b):
        if level == 2:
            return (mpf(a) - mpf(b)) ** 2
        if level == 3:
            return ((mpf(a) - mpf(b)) / (mpf(a) + mpf(b))) ** 2 if a != -b else mpf(0)
        return mpf(a != b) if level == 0 else whole((place[a] - place[b]) ** 2)

    chance = sum(apart(a, b) for a in every for b in every) / (n - 1) if kept else 0
    if not chance:
        return line("alpha", [level, units, raters], x)
    seen = sum(apart(a, b) / (len(unit) - 1) for unit in kept for a in unit for b in unit)
    return line("alpha", [level, units, raters], x, 1 - seen / chance)


def icc_forms():
    """Each form's value and p against 0, in the order of Shrout and Fleiss with single ratings first."""
    n, k = draw.randrange(2, 7), draw.randrange(2, 5)
    x = spread(n * k) if draw.random() < 0.7 else [
        1e6 + target + draw.gauss(0, 1) for target in [draw.gauss(0, 1) for _ in range(n)] for _ in range(k)
    ]
    v = [mpf(a) for a in x]
    grand, targets = sum(v) / (n * k), [sum(v[i * k:(i + 1) * k]) / k for i in range(n)]
    raters = [sum(v[j::k]) / n for j in range(k)]
    b = k * sum((t - grand) ** 2 for t in targets) / (n - 1)
    j = n * sum((r - grand) ** 2 for r in raters) / (k - 1)
    left = sum((v[i * k + r] - targets[i] - raters[r] + grand) ** 2 for i in range(n) for r in range(k))
    e, w = left / ((n - 1) * (k - 1)), (left + j * (k - 1)) / (n * (k - 1))
    if not b or left < b * mpf(10) ** -50 or b < w * mpf(10) ** -50:
        return icc_forms()
    below = [b + (k - 1) * w, b + (k - 1) * e + k * (j - e) / n, b + (k - 1) * e, b, b + (j - e) / n, b]
    if below[4] < b / 1000:
        return icc_forms()
    found = []
    for over, under, one_way in zip([b - w, b - e, b - e] * 2, below, (1, 0, 0) * 2):
        df2 = n * (k - 1) if one_way else (n - 1) * (k - 1)
        found += [over / under, f_sf(b / (w if one_way else e), n - 1, df2)]
    return line("icc_forms", [n, k], x, *found)


def summary():
    n = draw.randrange(2, 12)
    x = spread(n)
    mean = sum(map(mpf, x)) / n
    sd = sqrt(sum((mpf(v) - mean) ** 2 for v in x) / (n - 1))
    if 0 < sd < mpf(2) ** -1000:
        return summary()
    if sd > mpf(2) ** 1024:
        return line("summary", [n], x)
    return line("summary", [n], x, mean, sd)


def cluster_cr2():
    """A mean's error with bias-reduced linearisation, its degrees of freedom, p against 0."""
    n = draw.randrange(4, 10)
    x, groups = spread(n), [draw.randrange(4) for _ in range(n)]
    mean = sum(map(mpf, x)) / n
    sums, sizes = {}, {}
    for group, v in zip(groups, x):
        sums[group] = sums.get(group, 0) + mpf(v) - mean
        sizes[group] = sizes.get(group, 0) + 1
    if len(sums) < 2:
        return cluster_cr2()
    left = {g: 1 - mpf(m) / n for g, m in sizes.items()}
    error = sqrt(sum(v * v / left[g] for g, v in sums.items())) / n
    alone = {g: m / left[g] / n**2 for g, m in sizes.items()}
    along = {g: m / sqrt(left[g]) / n for g, m in sizes.items()}
    both = {(g, h): (alone[g] if g == h else 0) - along[g] * along[h] / n for g in sizes for h in sizes}
    df = sum(both[g, g] for g in sizes) ** 2 / sum(v * v for v in both.values())
    if error < max(abs(mpf(v)) for v in x) * mpf(10) ** -25 or error < mpf(2) ** -1000:
        return cluster_cr2()
    return line("cluster_cr2", [n, *groups], x, error, df, t_both(mean / error, df))


def adjust():
    n = draw.randrange(1, 12)
    p = [draw.choice((draw.random(), draw.random() ** 40, 10.0 ** -draw.randrange(320), 0.0, 1.0)) for _ in range(n)]
    p = [draw.choice(p) if draw.random() < 0.2 else v for v in p]
    exact = [Fraction(v) for v in p]
    order = sorted(range(n), key=lambda i: exact[i])
    holm, rates, before, after = [0] * n, [0] * n, Fraction(0), None
    for rank, i in enumerate(order):
        before = holm[i] = max(before, exact[i] * (n - rank))
    for rank in range(n - 1, -1, -1):
        value = exact[order[rank]] * n / (rank + 1)
        after = rates[order[rank]] = value if after is None else min(after, value)
    harmonic = sum(Fraction(1, i + 1) for i in range(n))
    found = [v * n for v in exact] + holm + rates + [v * harmonic for v in rates]
    return line("adjust", [n], p, *(whole(min(Fraction(1), v)) for v in found))


def silhouette():
    n, width, k = draw.randrange(3, 9), draw.randrange(1, 4), draw.randrange(1, 5)
    groups, x = [draw.randrange(k) for _ in range(n)], spread(n * width)
    if draw.random() < 0.3:
        x = scores(n * width)
    sizes = [groups.count(g) for g in range(k)]
    used = sum(map(bool, sizes))
    if used < 2 or used == n:
        return line("silhouette", [n, width, k, *groups], x)
    rows, total = [[mpf(v) for v in x[i * width:(i + 1) * width]] for i in range(n)], mpf(0)
    mp.dps = 60
    for i in range(n):
        far = [mpf(0)] * k
        for j in range(n):
            far[groups[j]] += sqrt(sum((a - b) ** 2 for a, b in zip(rows[i], rows[j])))
        if sizes[groups[i]] > 1:
            inside = far[groups[i]] / (sizes[groups[i]] - 1)
            nearest = min(far[g] / sizes[g] for g in range(k) if g != groups[i] and sizes[g])
            total += (nearest - inside) / max(nearest, inside) if max(nearest, inside) else 0
    mp.dps = 250
    return line("silhouette", [n, width, k, *groups], x, total / n)


def cosine():
    n = draw.randrange(1, 9)
    u, v = spread(n), spread(n)
    if draw.random() < 0.2:
        v = [a / 2 for a in u]
    if not any(u) or not any(v):
        return line("cosine", [n], u + v)
    over = sum(mpf(a) * mpf(b) for a, b in zip(u, v))
    return line("cosine", [n], u + v, over / sqrt(sum(mpf(a) ** 2 for a in u) * sum(mpf(b) ** 2 for b in v)))


def prediction():
    """The mean of ratings with a judge's help: the estimate, its standard error and lambda."""
    n, others = draw.randrange(1, 9), draw.randrange(0, 12)
    x = spread(n + others)
    y = [v * draw.choice((1, 0.75)) for v in x[:n]] if draw.random() < 0.5 else spread(n)
    if n < 2 or not others:
        return line("prediction", [n, others], y + x)
    if not 1e-100 < max(map(abs, y)) / (max(map(abs, x)) or 1) < 1e100:
        return prediction()

    def about(values):
        mean = sum(map(mpf, values)) / len(values)
        return mean, [mpf(v) - mean for v in values]
    (my, dy), (mf, df), (mo, do), (_, da) = about(y), about(x[:n]), about(x[n:]), about(x)
    all_squares = (1 + mpf(n) / others) * sum(d * d for d in da) / (n + others - 1)
    products = [a * b for a, b in zip(dy, df)]
    if abs(sum(products)) < sum(map(abs, products)) / 10**6:
        return prediction()
    slope = sum(products) / n / all_squares if all_squares else mpf(0)
    chosen = min(max(slope, mpf(0)), mpf(1))
    rest = sum((a - chosen * b) ** 2 for a, b in zip(dy, df)) / mpf(n) ** 2
    variance = rest + chosen**2 * sum(d * d for d in do) / mpf(others) ** 2
    value, most = chosen * mo + my - chosen * mf, max(map(abs, x + y))
    if abs(value) < most / 1000 or variance < (mpf(most) * mpf(10) ** -20) ** 2 or variance < mpf(2) ** -2000:
        return prediction()
    return line("prediction", [n, others], y + x, value, sqrt(variance), chosen)


def wilson(k, n, z):
    p, scale = mpf(k) / n, 1 + z * z / n
    centre, reach = (p + z * z / (2 * n)) / scale, z * sqrt(p * (1 - p) / n + z * z / (4 * mpf(n) ** 2)) / scale
    return (mpf(0) if k == 0 else centre - reach), (mpf(1) if k == n else centre + reach)


def clopper_pearson(k, n, tail):
    """Of 1 - the upper end, the lower end of the others."""
    if not k:
        return mpf(0)
    mp.dps = 30
    low, high = mp.log(mpf(k) / n) - 40 / sqrt(mpf(k)), mp.log(mpf(k) / n) if k < n else mpf(0)
    for _ in range(90):
        middle = (low + high) / 2
        if betainc(k, n - k + 1, 0, mp.exp(middle), regularized=True) < tail:
            low = middle
        else:
            high = middle
    mp.dps = 250
    return mp.exp(low)


def rate():
    n = draw.randrange(1, 10 ** draw.randrange(1, 4))
    k = draw.choice((0, 1, n, n - 1, draw.randrange(n + 1)))
    confidence = draw.choice((0.95, 0.9, 0.5, 0.999999))
    tail = (1 - mpf(confidence)) / 2
    low, high = wilson(k, n, -quantile(tail))
    return line("rate", [k, n], [confidence], low, high, clopper_pearson(k, n, tail), 1 - clopper_pearson(n - k, n, tail))


def difference():
    n1, n2 = (draw.randrange(1, 10 ** draw.randrange(1, 10)) for _ in range(2))
    k1, k2 = (draw.choice((0, 1 % (n + 1), n, draw.randrange(n + 1))) for n in (n1, n2))
    z = -quantile((1 - mpf(0.95)) / 2)
    (l1, u1), (l2, u2) = wilson(k1, n1, z), wilson(k2, n2, z)
    p1, p2 = mpf(k1) / n1, mpf(k2) / n2
    return line("difference", [], [k1, n1, k2, n2], p1 - p2, p1 - p2 - sqrt((p1 - l1) ** 2 + (u2 - p2) ** 2),
                p1 - p2 + sqrt((p2 - l2) ** 2 + (u1 - p1) ** 2))


def sample_size():
    """Of rates: how many, and what power a number has; of Cohen's h likewise."""
    share = lambda: draw.choice((0.0, 1.0, draw.random(), draw.random() * 10.0 ** -draw.randrange(300)))
    alpha, power = draw.choice((0.05, 0.01, 1e-12, draw.random())), draw.choice((0.8, 0.999, draw.random()))
    p1, n = share(), 10.0 ** draw.randrange(-2, 9)
    p2 = share() if draw.random() < 0.7 else p1 * (1 - 2.0 ** -draw.randrange(1, 50))
    h, ratio = draw.gauss(0, 1) * 10.0 ** -draw.randrange(200), draw.choice((1.0, 0.5, 3.0))
    given = [p1, p2, alpha, power, n, h, ratio]
    apart, spread_of = abs(mpf(p1) - mpf(p2)), mpf(p1) * (1 - mpf(p1)) + mpf(p2) * (1 - mpf(p2))
    if not apart or not spread_of or power <= alpha * 1.001:
        return sample_size()
    z = -quantile(mpf(alpha) / 2)
    both = z - quantile(1 - mpf(power))
    many = both**2 * spread_of / apart**2 if both > 0 else mpf(0)
    if 0 < abs(both) < 1e-3 or not many < mpf(2) ** 1000:
        return sample_size()
    mp.dps = 60
    of_shift = lambda s: normal_sf(z - s) + normal_sf(z + s)
    low, high = mpf(0), mpf(60)
    for _ in range(160):
        shift = (low + high) / 2
        low, high = (shift, high) if of_shift(shift) < mpf(power) else (low, shift)
    found = [many, normal_sf(z - apart * sqrt(mpf(n) / spread_of)), shift**2 / mpf(h) ** 2 * (1 + 1 / mpf(ratio)),
             of_shift(abs(mpf(h)) * sqrt(mpf(n) * mpf(ratio) / (1 + mpf(ratio))))]
    mp.dps = 250
    if not found[2] < mpf(2) ** 1000:
        return sample_size()
    return line("sample_size", [], given, *found)


def fitted(x, y, groups):
    """Least squares of y on x [n, k] with errors of clusters: (X'X)^-1, b, residuals."""
    k, n = x.cols, x.rows
    gram = x.T * x
    inverse = matrix(k, k)
    for c in range(k):
        unit = matrix(k, 1)
        unit[c] = 1
        solved = lu_solve(gram, unit)
        for r in range(k):
            inverse[r, c] = solved[r]
    b = inverse * (x.T * y)
    return inverse, b, y - x * b


def root_inverse(block):
    """The symmetric inverse square root, without directions in which nothing is left."""
    mp.dps = 60
    values, vectors = eigsy(block)
    m = block.rows
    out = matrix(m, m)
    for i in range(m):
        for j in range(m):
            out[i, j] = sum(vectors[i, c] * vectors[j, c] / sqrt(values[c]) for c in range(m) if values[c] > 1e-12)
    mp.dps = 250
    return out


def linear():
    """Two factors, of 2 and 3 levels: p of each with independent and with clustered errors (CR1), and of the first by
    CR2 with Satterthwaite's degrees of freedom."""
    n, n_groups = draw.randrange(8, 15), draw.randrange(4, 7)
    groups = sorted(draw.randrange(n_groups) for _ in range(n))
    a, b = [draw.randrange(2) for _ in range(n)], [draw.randrange(3) for _ in range(n)]
    if draw.random() < 0.3:
        a = [g % 2 for g in groups]
    values = spread(n)
    if draw.random() < 0.3:
        values = [v + a[i] * 1e6 for i, v in enumerate(values)]
    used = sorted(set(groups))
    columns = [[1] * n, a, [int(v == 1) for v in b], [int(v == 2) for v in b]]
    x, k, g = matrix(list(zip(*columns))), 4, len(used)
    if len(set(a)) < 2 or len(set(b)) < 3 or g < 3 or len({tuple(c) for c in zip(*columns)}) < 4:
        return linear()
    try:
        inverse, beta_of, e = fitted(x, matrix([mpf(v) for v in values]), groups)
    except ZeroDivisionError:
        return linear()
    left, raw = sum(v * v for v in e), sum(mpf(v) ** 2 for v in values)
    if not raw or left < raw * mpf(10) ** -100 or max(map(abs, inverse)) > 1e6:
        return linear()
    if left < raw * mpf(5) * mpf(10) ** -31:
        return linear() if left > raw * mpf(10) ** -33 else line("linear", [n, *groups, *a, *b], values)
    meat = matrix(k, k)
    for group in used:
        rows = [i for i in range(n) if groups[i] == group]
        score = [sum(x[i, c] * e[i] for i in rows) for c in range(k)]
        meat += matrix([[s * t for t in score] for s in score])
    covariance = inverse * meat * inverse * (mpf(g) / (g - 1) * (n - 1) / (n - k))
    found = []
    for first, last in ((1, 2), (2, 4)):
        q = last - first
        for matrix_of, df2 in ((inverse * (left / (n - k)), n - k), (covariance, g - 1)):
            block, part = matrix_of[first:last, first:last], beta_of[first:last]
            ends = [block[i, i] / (inverse[first + i, first + i] * left / (n - k)) for i in range(q)]
            apart = block[0, 0] * block[1, 1] - block[0, 1] ** 2 if q == 2 else mpf(1)
            if min(ends) < 1e-12 or q == 2 and apart < block[0, 0] * block[1, 1] * mpf(10) ** -6:
                return linear()
            found.append(f_sf((part.T * lu_solve(block, part))[0] / q, q, df2))
    unit, hats, square = matrix([0, 1, 0, 0]), [], mpf(0)
    for group in used:
        rows = [i for i in range(n) if groups[i] == group]
        own = matrix([[x[i, c] for c in range(k)] for i in rows])
        inner = own * inverse * own.T
        weights = root_inverse(matrix([[int(i == j) - inner[i, j] for j in range(len(rows))]
                                       for i in range(len(rows))])) * own * inverse * unit
        square += sum(weights[i] * e[r] for i, r in enumerate(rows)) ** 2
        spread_out = matrix(n, 1)
        for i, r in enumerate(rows):
            spread_out[r] = weights[i]
        hats.append(spread_out - x * (inverse * (x.T * spread_out)))
    products = [[(u.T * v)[0] for v in hats] for u in hats]
    df = sum(products[i][i] for i in range(g)) ** 2 / sum(v * v for row in products for v in row)
    if square < left * mpf(10) ** -15 or df < 1.001:
        return linear()
    return line("linear", [n, *groups, *a, *b], values, *found, t_both(beta_of[1] / sqrt(square), df))


MAKERS = ((dunn, 30), (fleiss, 30), (gwet, 40), (alpha, 60), (icc_forms, 30), (summary, 40),
          (cluster_cr2, 30), (adjust, 30), (silhouette, 50), (cosine, 25),
          (prediction, 90), (rate, 25), (difference, 30), (sample_size, 30), (linear, 30))
