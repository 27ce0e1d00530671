#!/usr/bin/env python3
"""Writes data/stats/*.csv for the hypothesis tests: what scipy, statsmodels and scikit-posthocs make of the cases.

    python tests/golden/generate_stats_tests.py [STATISTIC...]

Needs scipy (1.17.1), statsmodels (0.15.0), scikit-posthocs (0.17.1), mpmath (1.3.0); the versions in brackets made the
committed files. Where a peer is further than 1e-9 (relative) from what its definition gives with 50 digits, or with whole
numbers, the latter is written and the file's second line says in how many cases; the peer may not be further than 1e-4."""

import sys
import warnings
from fractions import Fraction
from math import comb, isnan, nan

import mpmath as mp
import numpy as np
import scikit_posthocs
import scipy.stats as st
from scipy.stats.contingency import association
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_effectsize, proportions_ztest
from statsmodels.stats.weightstats import DescrStatsW

import stats_cases as sc

N_CASES = 264  # all pairs of kinds seven times; more than 200 are defined everywhere
mp.mp.dps = 50
warnings.simplefilter("ignore")
replaced = 0


def judged(peer, exact):
    """The peer's value, or the exact one where the peer lost digits."""
    global replaced
    exact = float(exact)
    if peer == exact or abs(peer - exact) <= 1e-9 * abs(exact) + 1e-300:
        return peer
    assert abs(peer - exact) <= 1e-4 * abs(exact) + 1e-12, (peer, exact)
    replaced += 1
    return exact


def is_constant(values):
    return all(v == values[0] for v in values)


def pair_inputs(stream, case):
    """Two lists of doubles: y has nothing to do with x, follows it, runs against it, or is it but for one exchange."""
    n = 3 + stream.bounded(10 if case % 4 == 0 else 150)
    x = sc.values(stream, n, case % 6)
    y = sc.values(stream, n, case // 6 % 6)
    link = stream.bounded(4)
    if link == 1:
        y = [b + a for a, b in zip(x, y)]
    if link == 2:
        y = [b - 2 * a for a, b in zip(x, y)]
    if link == 3:
        y = list(x)
        i, j = stream.bounded(n), stream.bounded(n)
        y[i], y[j] = y[j], y[i]
    return [x, y]


def exact_r(x, y):
    x, y = [mp.mpf(v) for v in x], [mp.mpf(v) for v in y]
    mx, my = mp.fsum(x) / len(x), mp.fsum(y) / len(y)
    sxy = mp.fsum((a - mx) * (b - my) for a, b in zip(x, y))
    sxx, syy = mp.fsum((a - mx) ** 2 for a in x), mp.fsum((b - my) ** 2 for b in y)
    rest = 1 - sxy**2 / (sxx * syy)
    p = mp.betainc(mp.mpf(len(x) - 2) / 2, mp.mpf(1) / 2, 0, rest, regularized=True) if rest > mp.mpf(10) ** -40 else 0
    return sxy / mp.sqrt(sxx * syy), p


def spearman(data):
    if is_constant(data[0]) or is_constant(data[1]):
        return [nan, nan]
    peer, (r, p) = st.spearmanr(*data), exact_r(st.rankdata(data[0]), st.rankdata(data[1]))
    return [judged(peer.statistic, r), float(p) if p < 1e-13 else judged(peer.pvalue, p)]


def pearson(data):
    if is_constant(data[0]) or is_constant(data[1]):
        return [nan] * 4
    peer, (r, p) = st.pearsonr(*data), exact_r(*data)
    z, half = mp.atanh(r) if abs(r) < 1 else mp.inf, mp.mpf(st.norm.ppf(0.975))
    interval = peer.confidence_interval(0.95)
    row = [judged(peer.statistic, r), float(p) if p < 1e-13 else judged(peer.pvalue, p)]
    if len(data[0]) == 3 or abs(float(r)) == 1:
        return [*row, interval.low, interval.high] if abs(float(r)) < 1 else [*row, float(r), float(r)]
    reach = half / mp.sqrt(len(data[0]) - 3)
    return [*row, judged(interval.low, mp.tanh(z - reach)), judged(interval.high, mp.tanh(z + reach))]


def kendall(data):
    if is_constant(data[0]) or is_constant(data[1]):
        return [nan, nan]
    peer = st.kendalltau(*data)
    return [peer.statistic, peer.pvalue]


def group_inputs(stream, case, n_groups=0):
    groups = []
    for _ in range(n_groups or 2 + stream.bounded(6)):
        n, shift = 1 + stream.bounded(6 if case % 4 == 0 else 40), float(stream.bounded(3))
        groups.append([v + shift for v in sc.values(stream, n, case % 6)])
    return groups


def kruskal(groups):
    if is_constant(sum(groups, [])):
        return [nan] * 3
    peer = st.kruskal(*groups)
    return [peer.statistic, peer.pvalue, peer.statistic / (sum(map(len, groups)) - 1)]


def dunn(groups):
    if is_constant(sum(groups, [])):
        return [nan] * 6
    p = scikit_posthocs.posthoc_dunn(groups, p_adjust=None).to_numpy()
    return [p[i, j] for i in range(4) for j in range(i + 1, 4)]


def friedman_inputs(stream, case):
    k, n = 3 + stream.bounded(6), 1 + stream.bounded(30)
    return [sc.values(stream, k, case % 6) for _ in range(n)]


def friedman(blocks):
    if all(is_constant(block) for block in blocks):
        return [nan] * 3
    peer = st.friedmanchisquare(*zip(*blocks))
    return [peer.statistic, peer.pvalue, peer.statistic / (len(blocks) * (len(blocks[0]) - 1))]


def two_samples(stream, case):
    most = (8, 30, 80)[case // 6 % 3]
    nx, ny, shift = 1 + stream.bounded(most), 1 + stream.bounded(most), float(stream.bounded(3))
    return [sc.values(stream, nx, case % 6), [v + shift for v in sc.values(stream, ny, case % 6)]]


def mann_whitney(data):
    x, y = data
    if is_constant(x + y):
        return [nan] * 7
    untied = len(set(x + y)) == len(x + y)

    def p(alternative, method, continuity=True):
        if method == "exact" and not untied:
            return nan
        return st.mannwhitneyu(x, y, continuity, alternative, method=method).pvalue

    u = st.mannwhitneyu(x, y).statistic
    auto = "exact" if untied and min(len(x), len(y)) <= 8 else "asymptotic"
    return [
        u, p("two-sided", auto), p("two-sided", "asymptotic", False), p("less", "asymptotic"), p("greater", "asymptotic"),
        p("two-sided", "exact"), p("greater", "exact"),
    ]  # fmt: skip


def difference_inputs(stream, case):
    n = 1 + stream.bounded((12, 50, 120)[case // 6 % 3])
    kind, shift = case % 6, float(stream.bounded(3)) / 2
    x, y = sc.values(stream, n, kind), sc.values(stream, n, kind)
    return [[a - b + shift for a, b in zip(x, y)]]


def wilcoxon(data):
    d = np.round(np.array(data[0]), 10)
    used = d[d != 0]
    if not len(used):
        return [nan] * 11
    untied = len(used) == len(d) == len(set(np.abs(d)))

    def test(zero_method="wilcox", correction=False, alternative="two-sided", method="asymptotic"):
        if method == "exact" and not untied:
            return [nan, nan]
        return list(st.wilcoxon(d, None, zero_method, correction, alternative, method))

    return [
        *test(method="exact" if untied and len(d) <= 50 else "asymptotic"), *test("pratt"), *test("zsplit"),
        test(correction=True)[1], test("pratt", True, "less")[1], test("zsplit", True, "greater")[1],
        test(method="exact")[1], test(method="exact", alternative="greater")[1],
    ]  # fmt: skip


def table_inputs(stream, case):
    rows, columns = (2, 2) if case % 3 == 0 else (2 + stream.bounded(6), 2 + stream.bounded(5))
    most = (4, 30, 1000)[case // 3 % 3]
    return [[float(stream.bounded(most)) for _ in range(columns)] for _ in range(rows)]


def contingency(data):
    table = np.array(data).astype(int)
    table = table[table.sum(1) > 0][:, table.sum(0) > 0]
    if min(table.shape) < 2:
        return [nan] * 7
    default, plain = st.chi2_contingency(table), st.chi2_contingency(table, correction=False)
    v = association(table, method="cramer")
    return [default[0], default[1], plain[0], plain[1], plain[2], v, (plain[3] < 5).sum()]


def fit_inputs(stream, case):
    k, most = 2 + stream.bounded(8), (4, 30, 1000)[case // 2 % 3]
    counts = [float(stream.bounded(most)) for _ in range(k)]
    return [counts, [1.0] * k if case % 2 else [float(1 + stream.bounded(9)) for _ in range(k)]]


def fit(data):
    counts, shares = data
    n = sum(counts)
    if n == 0:
        return [nan] * 4
    expected = [s / sum(shares) * n for s in shares]
    peer = st.chisquare(counts, expected)
    return [peer.statistic, peer.pvalue, (peer.statistic / n) ** 0.5, sum(e < 5 for e in expected)]


def fourfold_inputs(stream, case):
    most = (6, 40, 300)[case % 3]
    return [[float(stream.bounded(most)) for _ in range(4)]]


def fisher(data):
    a, b, c, d = map(int, data[0])
    if 0 in (a + b, c + d, a + c, b + d):
        return [nan] * 4
    weights = {i: comb(a + b, i) * comb(c + d, a + c - i) for i in range(max(0, a - d), min(a + b, a + c) + 1)}
    every = sum(weights.values())
    exact = [
        sum(w for w in weights.values() if w <= weights[a]),
        sum(w for i, w in weights.items() if i <= a),
        sum(w for i, w in weights.items() if i >= a),
    ]
    peers = [st.fisher_exact([[a, b], [c, d]], alternative) for alternative in ("two-sided", "less", "greater")]
    return [peers[0][0], *(judged(peer[1], Fraction(e, every)) for peer, e in zip(peers, exact))]


def mcnemar_row(data):
    a, b, c, d = map(int, data[0])
    if b + c == 0:
        return [nan] * 6
    row = []
    for options in ({"exact": True}, {"exact": False, "correction": True}, {"exact": False, "correction": False}):
        peer = mcnemar([[a, b], [c, d]], **options)
        row += [peer.statistic, peer.pvalue]
    return row


def proportion_inputs(stream, case):
    most = (8, 60, 3000)[case % 3]
    n1, n2 = 1 + stream.bounded(most), 1 + stream.bounded(most)
    return [[float(stream.bounded(n1 + 1)), float(n1), float(stream.bounded(n2 + 1)), float(n2)]]


def proportions(data):
    k1, n1, k2, n2 = data[0]
    if k1 + k2 in (0, n1 + n2):
        return [nan] * 5
    peers = [proportions_ztest([k1, k2], [n1, n2], alternative=a) for a in ("two-sided", "smaller", "larger")]
    return [peers[0][0], *(peer[1] for peer in peers), proportion_effectsize(k1 / n1, k2 / n2)]


def binomial_inputs(stream, case):
    n = 1 + stream.bounded((8, 60, 1500)[case % 3])
    p = 0.5 if case % 2 else stream.bounded(65) / 64
    k = stream.bounded(n + 1) if case % 5 else min(n, int(n * p) + stream.bounded(4))
    return [[float(k), float(n), p]]


def binomial(data):
    k, n, p = int(data[0][0]), int(data[0][1]), Fraction(data[0][2])
    weights = [comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(n + 1)]
    limit = weights[k] * (1 + Fraction(1, 10**7))
    exact = [
        1 if k == n * p else sum(w for w in weights if w <= limit),
        sum(weights[: k + 1]),
        sum(weights[k:]),
    ]
    peers = [st.binomtest(k, n, float(p), alternative).pvalue for alternative in ("two-sided", "less", "greater")]
    return [judged(peer, e) for peer, e in zip(peers, exact)]


def four_groups(stream, case):
    return group_inputs(stream, case, 4)


def equivalence_inputs(stream, case):
    data = difference_inputs(stream, case)
    return [data[0], [(1 + stream.bounded(40)) / 8]]


def equivalence(data):
    d, margin = np.array(data[0]), data[1][0]
    if len(d) < 2 or is_constant(data[0]):
        return [nan] * 3
    p, low, high = DescrStatsW(d).ttost_mean(-margin, margin)
    return [p, low[1], high[1]]


# name: inputs, values, columns, peers
STATISTICS = {
    "spearman": (pair_inputs, spearman, "rho p", "scipy mpmath"),
    "pearson": (pair_inputs, pearson, "r p low high", "scipy mpmath"),
    "kendall": (pair_inputs, kendall, "tau p", "scipy"),
    "kruskal": (group_inputs, kruskal, "h p epsilon2", "scipy"),
    "dunn": (four_groups, dunn, "p01 p02 p03 p12 p13 p23", "scikit-posthocs"),
    "friedman": (friedman_inputs, friedman, "chi2 p w", "scipy"),
    "mann_whitney": (two_samples, mann_whitney, "u p p_plain p_less p_greater p_exact p_exact_greater", "scipy"),
    "wilcoxon": (
        difference_inputs,
        wilcoxon,
        "t p t_pratt p_pratt t_zsplit p_zsplit p_continuity p_pratt_less p_zsplit_greater p_exact p_exact_greater",
        "scipy",
    ),
    "chi2_contingency": (table_inputs, contingency, "chi2 p plain p_plain df v n_small", "scipy"),
    "chi2_fit": (fit_inputs, fit, "chi2 p w n_small", "scipy"),
    "fisher_exact": (fourfold_inputs, fisher, "odds p p_less p_greater", "scipy"),
    "mcnemar": (fourfold_inputs, mcnemar_row, "exact p_exact continuity p_continuity plain p_plain", "statsmodels scipy"),
    "two_proportions": (proportion_inputs, proportions, "z p p_less p_greater h", "statsmodels scipy"),
    "equivalence": (equivalence_inputs, equivalence, "p p_low p_high", "statsmodels scipy"),
    "binomial_test": (binomial_inputs, binomial, "p p_less p_greater", "scipy"),
}


def main():
    global replaced
    for name in sys.argv[1:] or STATISTICS:
        inputs, function, columns, peers = STATISTICS[name]
        checksum, rows, replaced = sc.FNV_BASIS, [], 0
        for case in range(N_CASES):
            data = inputs(sc.case_stream(name, case), case)
            for part in data:
                checksum = sc.checksum(part, checksum)
            rows.append(function(data))
        note = f"{replaced} of the peer's values had lost digits: 50 digits or whole numbers in their place"
        sc.write(name, rows, checksum, columns.split(), peers.split(), note if replaced else "")
        undefined = sum(isnan(row[0]) for row in rows)
        print(f"{name}: {len(rows)} cases, {undefined} undefined, {replaced} values judged")


if __name__ == "__main__":
    main()
