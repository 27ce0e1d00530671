"""Agreement, adjustment and interval goldens: the peers' values for the cases of stats_cases.py (14 digits).

    python tests/golden/generate_stats_agreement.py [NAME...]
"""

import itertools
import math
import sys
import warnings

import krippendorff
import mpmath
import numpy as np
import pandas as pd
import pingouin
import statsmodels.api as sm
from scipy import stats
from scipy.stats._resampling import BootstrapResult
from sklearn.metrics import cohen_kappa_score, silhouette_samples, silhouette_score
from sklearn.metrics.pairwise import cosine_similarity
from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import NormalIndPower
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint, proportion_effectsize

import stats_cases as sc

warnings.filterwarnings("ignore")
pingouin.options["round"] = None
pingouin.options["round.column.CI95"] = None
NAN = math.nan
N_CASES = 220


def digits(row):
    return [v if isinstance(v, int) else float(f"{v:.14g}") for v in row]


def ratings_case(stream, case):
    """[n][k] ratings, 0 for missing: independent scores, scores that mostly agree, means, 0/1-like, nearly constant."""
    n, k = 1 + stream.bounded(40), 2 + stream.bounded(5)
    missing, mode = stream.bounded(5), case % 5
    rows = []
    for _ in range(n):
        first = 1.0 + stream.bounded(5)
        row = []
        for _ in range(k):
            if mode == 0:
                value = 1.0 + stream.bounded(5)
            elif mode == 1:
                value = first if stream.bounded(4) else 1.0 + stream.bounded(5)
            elif mode == 2:
                value = first / 2 + (3 + stream.bounded(13)) / 3
            elif mode == 3:
                value = 1.0 + stream.bounded(2)
            else:
                value = 3.0 if stream.bounded(12) else 1.0 + stream.bounded(5)
            row.append(0.0 if missing and stream.bounded(16) < missing else value)
        rows.append(row)
    return rows


def kappa():
    rows, inputs = [], sc.FNV_BASIS
    for case in range(N_CASES):
        stream = sc.case_stream("kappa", case)
        n, levels, agree = stream.bounded(60), 2 + stream.bounded(5), stream.bounded(4)
        a, b = [], []
        for _ in range(n):
            a.append(stream.bounded(levels + 1) if case % 7 else 1)
            b.append(a[-1] if stream.bounded(4) < agree else stream.bounded(levels + 1) if case % 11 else 1)
        inputs = sc.checksum([float(v) for v in a + b], inputs)
        pairs = [(x, y) for x, y in zip(a, b) if x and y]
        row = []
        table = np.zeros((levels, levels))
        for x, y in pairs:
            table[x - 1, y - 1] += 1
        for weights in (None, "linear", "quadratic"):
            value = se = se0 = low = high = NAN
            if pairs:
                value = cohen_kappa_score(*zip(*pairs), labels=range(1, levels + 1), weights=weights,
                                          replace_undefined_by=NAN)
            if value == value:
                result = cohens_kappa(table, wt=weights)
                se, se0 = math.sqrt(max(result.var_kappa, 0)), math.sqrt(max(result.var_kappa0, 0))
            row += [value, se, se0]
        rows.append(digits(row))
    names = [f"{w}_{c}" for w in ("unweighted", "linear", "quadratic") for c in ("kappa", "se", "se_null")]
    sc.write("kappa", rows, inputs, names, ["scikit-learn", "statsmodels"])


def fleiss():
    rows, inputs = [], sc.FNV_BASIS
    for case in range(N_CASES):
        stream = sc.case_stream("fleiss", case)
        ratings = ratings_case(stream, case)
        inputs = sc.checksum([v for r in ratings for v in r], inputs)
        domain = sorted({v for r in ratings for v in r if v})
        counts = np.array([[r.count(v) for v in domain] for r in ratings], int).reshape(len(ratings), len(domain))
        totals = counts.sum(1) if len(domain) else np.zeros(len(ratings), int)
        present = [m for m in set(totals.tolist()) if m >= 2]
        m = max(present, key=lambda m: ((totals == m).sum(), m), default=0)
        used = counts[totals == m] if m else counts[:0]
        value = NAN
        if m and (used.sum(0) == used.sum()).any() is np.False_:
            value = fleiss_kappa(used, method="fleiss")
        rows.append(digits([value, m, len(ratings) - len(used)]))
    sc.write("fleiss", rows, inputs, ["kappa", "raters", "left_out"], ["statsmodels"])


def alpha():
    rows, inputs = [], sc.FNV_BASIS
    for case in range(N_CASES):
        stream = sc.case_stream("alpha", case)
        ratings = ratings_case(stream, case)
        inputs = sc.checksum([v for r in ratings for v in r], inputs)
        data = np.array(ratings).T
        data[data == 0] = np.nan
        paired = data[:, (~np.isnan(data)).sum(0) >= 2]
        row = []
        for level in ("nominal", "ordinal", "interval", "ratio"):
            value = NAN
            if len(np.unique(paired[~np.isnan(paired)])) > 1:
                value = krippendorff.alpha(reliability_data=data, level_of_measurement=level)
            row.append(value)
        rows.append(digits(row))
    sc.write("alpha", rows, inputs, ["nominal", "ordinal", "interval", "ratio"], ["krippendorff"])


def icc():
    rows, inputs = [], sc.FNV_BASIS
    for case in range(N_CASES):
        stream = sc.case_stream("icc", case)
        ratings = ratings_case(stream, case)
        inputs = sc.checksum([v for r in ratings for v in r], inputs)
        full = np.array([r for r in ratings if all(r)])
        row = [NAN] * 22
        if len(full) >= 2:
            n, k = full.shape
            long = pd.DataFrame({"t": np.repeat(range(n), k), "r": np.tile(range(k), n), "y": full.ravel()})
            within = np.ptp(full, axis=1).max() > 0
            centred = full - full.mean(1, keepdims=True) - full.mean(0) + full.mean()
            residual, between = abs(centred).max() > 1e-9, np.ptp(full.mean(1)) > 1e-9
            if within and residual and between and full.size >= 5:
                table = pingouin.intraclass_corr(long, "t", "r", "y", nan_policy="raise")
                v, low, high = table["ICC"].tolist(), *zip(*table["CI95"])
                row = v + [table["F"][0], table["F"][1], table["pval"][0], table["pval"][1]]
                row += [x for pair in zip(low, high) for x in pair]
        rows.append(digits(row))
    names = ["icc1", "icc2", "icc3", "icc1k", "icc2k", "icc3k", "f1", "f3", "p1", "p3"]
    names += [f"{n}_{end}" for n in names[:6] for end in ("low", "high")]
    sc.write("icc", rows, inputs, names, ["pingouin", "scipy"],
             "no values where raters or targets do not differ or with under 5 ratings: the peer has none there")


def multiple():
    rows, inputs = [], sc.FNV_BASIS
    for case in range(N_CASES):
        stream = sc.case_stream("multiple", case)
        n = 1 + stream.bounded(8)
        scale = 2 + stream.bounded(1 << (1 + stream.bounded(20)))
        p = [stream.bounded(scale) / (scale - 1) / (1 << case % 8) for _ in range(n)]
        inputs = sc.checksum(p, inputs)
        row = []
        for method in ("bonferroni", "holm", "fdr_bh", "fdr_by"):
            adjusted = multipletests(p, alpha=0.05, method=method)[1]
            row += [float(adjusted @ np.arange(1, n + 1)), float(adjusted[0]), float(adjusted[-1])]
        rows.append(digits(row))
    names = [f"{m}_{c}" for m in ("bonferroni", "holm", "bh", "by") for c in ("weighted_sum", "first", "last")]
    sc.write("multiple", rows, inputs, names, ["statsmodels"], "weighted_sum: of adjusted p times 1, 2, 3, ...")


def bootstrap():
    """Draws by the definition (a stream per replicate), intervals by numpy and scipy."""
    rows, inputs, replicates = [], sc.FNV_BASIS, 99
    for case in range(N_CASES):
        stream = sc.case_stream("bootstrap", case)
        n = 1 + stream.bounded(24)
        kind = [sc.SCORES, sc.FINE, sc.BINARY, sc.CONSTANT, sc.SCORES][case % 5]
        x = np.array(sc.values(stream, n, kind))
        clusters = [stream.bounded(6) * 3 - 5 for _ in range(n)]
        groups = [stream.bounded(4) - 1 for _ in range(n)]
        inputs = sc.checksum([*x, *map(float, clusters), *map(float, groups)], inputs)
        ids = sorted(set(clusters))
        members = [[i for i in range(n) if clusters[i] == c] for c in ids]
        means, spreads, of_clusters = [], [], []
        for b in range(replicates):
            s = sc.Stream(f"boot|{b}", case)
            drawn = [s.bounded(n) for _ in range(n)]
            means.append(x[drawn].mean())
            of_groups = [[x[i] for i in drawn if groups[i] == g] for g in range(3)]
            of_groups = [sum(g) / len(g) for g in of_groups if g]
            spreads.append(max(of_groups) - min(of_groups) if of_groups else NAN)
            s = sc.Stream(f"boot|{b}", case)
            drawn = [i for _ in ids for i in members[s.bounded(len(ids))]]
            of_clusters.append(x[drawn].mean())
        means, spreads = np.array(means), np.array(spreads)
        row = list(np.percentile(means, [2.5, 97.5]))
        bca = [NAN, NAN]
        if n > 1:
            given = BootstrapResult(None, means, None)
            bca = stats.bootstrap((x,), np.mean, n_resamples=0, bootstrap_result=given, method="BCa").confidence_interval
        row += list(bca)
        row += list(np.percentile(of_clusters, [2.5, 97.5]))
        row += list(np.nanpercentile(spreads, [2.5, 97.5])) if len(set(groups) - {-1}) > 1 else [NAN, NAN]
        # permutation p of mean(group 1) - mean(group 0), all shuffled and within clusters
        for blocks in ([list(range(n))], members):
            def difference(labels):
                one, zero = [v for v, g in zip(x, labels) if g == 1], [v for v, g in zip(x, labels) if g == 0]
                return sum(one) / len(one) - sum(zero) / len(zero) if one and zero else NAN
            observed, reached, counted = difference(groups), 0, 0
            for b in range(replicates):
                s, labels = sc.Stream(f"perm|{b}", case), list(groups)
                for block in blocks:
                    shuffled = [labels[i] for i in block]
                    s.shuffle(shuffled)
                    for i, label in zip(block, shuffled):
                        labels[i] = label
                d = difference(labels)
                counted += d == d
                reached += abs(d) >= abs(observed) - 1e-12
            row.append((1 + reached) / (1 + counted) if observed == observed else NAN)
        rows.append(digits(row))
    names = [f"{w}_{end}" for w in ("percentile", "bca", "cluster", "disparity") for end in ("low", "high")]
    sc.write("bootstrap", rows, inputs, [*names, "permutation_p", "swap_p"], ["numpy", "scipy"],
             "seed: the case; 99 replicates")


def proportion():
    rows, inputs = [], sc.FNV_BASIS
    for case in range(N_CASES):
        stream = sc.case_stream("proportion", case)
        size = 1 << stream.bounded(14)
        n1, n2 = 1 + stream.bounded(size), 1 + stream.bounded(size)
        first, second = stream.bounded(n1 + 1), stream.bounded(n1 + 1)
        k1 = [0, n1, first, second][case % 4]
        k2 = [0, n2, stream.bounded(n2 + 1)][case % 3]
        alpha = [0.05, 0.1, 0.01][case % 3]
        inputs = sc.checksum([float(v) for v in (k1, n1, k2, n2)], inputs)
        row = [*proportion_confint(k1, n1, alpha, "wilson"), *proportion_confint(k1, n1, alpha, "beta")]
        row += confint_proportions_2indep(k1, n1, k2, n2, method="newcomb", compare="diff", alpha=alpha)
        rows.append(digits([*row, proportion_effectsize(k1 / n1, k2 / n2)]))
    names = [f"{w}_{end}" for w in ("wilson", "clopper_pearson", "newcombe") for end in ("low", "high")]
    sc.write("proportion", rows, inputs, [*names, "cohen_h"], ["statsmodels", "scipy"])


def sample_size():
    rows, inputs = [], sc.FNV_BASIS
    mpmath.mp.dps = 40
    for case in range(N_CASES):
        stream = sc.case_stream("sample_size", case)
        p1, p2 = stream.bounded(65) / 64, stream.bounded(65) / 64
        n, ratio = 1.0 + stream.bounded(2000), (1 + stream.bounded(16)) / 8
        alpha, power = [0.05, 0.01, 0.125][case % 3], (33 + stream.bounded(31)) / 64
        inputs = sc.checksum([p1, p2, n, ratio, power], inputs)
        z = stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(power)
        spread = p1 * (1 - p1) + p2 * (1 - p2)
        size = z**2 * spread / (p1 - p2) ** 2 if p1 != p2 else NAN
        reach = -stats.norm.ppf(alpha / 2) - abs(p1 - p2) * math.sqrt(n / spread) if spread else NAN
        h = proportion_effectsize(p1, p2)
        row = [size, stats.norm.sf(reach), NormalIndPower().power(h, n, alpha, ratio)]
        needed = NAN
        if h:
            crit, target = mpmath.mpf(-stats.norm.ppf(alpha / 2)), mpmath.mpf(power)
            crit = mpmath.findroot(lambda x: mpmath.ncdf(-x) - mpmath.mpf(alpha) / 2, crit)
            def off(s):
                return mpmath.ncdf(s - crit) + mpmath.ncdf(-s - crit) - target
            shift = mpmath.findroot(off, float(z))
            needed = float(shift**2 / mpmath.mpf(h) ** 2 * (1 + mpmath.mpf(ratio)) / mpmath.mpf(ratio))
            peer = NormalIndPower().solve_power(h, None, alpha, power, ratio)
            assert peer != peer or abs(peer - needed) < 1e-5 * needed, (peer, needed)
        rows.append(digits([*row, needed]))
    sc.write("sample_size", rows, inputs, ["size", "power", "power_h", "size_h"], ["statsmodels", "scipy", "mpmath"],
             "size_h: mpmath, 40 digits; statsmodels' root search stops at about 1e-6")


def summary():
    rows, inputs = [], sc.FNV_BASIS
    for case in range(N_CASES):
        stream = sc.case_stream("summary", case)
        x = sc.values(stream, 1 + stream.bounded(50), case % 6)
        inputs = sc.checksum(x, inputs)
        rows.append(digits([np.mean(x), np.std(x, ddof=1) if len(x) > 1 else NAN]))
    sc.write("summary", rows, inputs, ["mean", "sd"], ["numpy"])


def target_case(stream, n_groups, case):
    """Shares in 64ths that sum to 1; mostly uniform where that is exact."""
    if case % 3 == 0 and n_groups in (2, 4):
        return [1 / n_groups] * n_groups
    cuts = sorted(stream.bounded(65) for _ in range(n_groups - 1))
    return [(b - a) / 64 for a, b in zip([0, *cuts], [*cuts, 64])]


def spd():
    rows, inputs, replicates = [], sc.FNV_BASIS, 99

    def spd_of(labels, target):
        counts = np.array([labels.count(g) for g in range(len(target))])
        return abs(counts / counts.sum() - target).sum() if counts.sum() else NAN

    for case in range(N_CASES):
        stream = sc.case_stream("spd", case)
        n_groups, n = 1 + stream.bounded(5), 1 + stream.bounded(16)
        target = target_case(stream, n_groups, case)
        base = [stream.bounded(n_groups + 1) - 1 for _ in range(n)]
        other = [stream.bounded(n_groups + 1) - 1 if case % 5 else b for b in base]
        inputs = sc.checksum([*target, *map(float, base), *map(float, other)], inputs)
        triples, reached, counted = [], 0, 0
        observed = spd_of(other, target) - spd_of(base, target)
        h = 2 * math.asin(math.sqrt(other.count(0) / max(n - other.count(-1), 1)))
        h -= 2 * math.asin(math.sqrt(base.count(0) / max(n - base.count(-1), 1)))
        for b in range(replicates):
            s = sc.Stream(f"boot|{b}", case)
            drawn = [s.bounded(n) for _ in range(n)]
            both = [spd_of([arm[i] for i in drawn], target) for arm in (base, other)]
            triples.append([*both, both[1] - both[0]])
            s, first, second = sc.Stream(f"perm|{b}", case), [], []
            for x, y in zip(base, other):
                arms = [0, 1]
                s.shuffle(arms)
                first.append(y if arms[0] else x)
                second.append(x if arms[0] else y)
            d = spd_of(second, target) - spd_of(first, target)
            counted += d == d
            reached += abs(d) >= abs(observed) - 1e-12
        row = [spd_of(base, target), spd_of(other, target), observed]
        for i, value in enumerate(list(row)):
            row += list(np.nanpercentile([t[i] for t in triples], [2.5, 97.5])) if value == value else [NAN, NAN]
        p = (1 + reached) / (1 + counted) if observed == observed else NAN
        rows.append(digits([*row, p, h if observed == observed else NAN]))
    names = ["base", "other", "change", *(f"{w}_{e}" for w in ("base", "other", "change") for e in ("low", "high"))]
    sc.write("spd", rows, inputs, [*names, "p", "cohen_h_0"], ["numpy"], "seed: the case; 99 replicates")


def rebalance():
    rows, inputs = [], sc.FNV_BASIS
    for case in range(N_CASES):
        stream = sc.case_stream("rebalance", case)
        n_groups = 1 + stream.bounded(4)
        target = target_case(stream, n_groups, case)
        tolerance = stream.bounded(9) / 64
        available = [stream.bounded(8) for _ in range(n_groups)]
        inputs = sc.checksum([*target, tolerance, *map(float, available)], inputs)
        best = None  # all counts tried, in 64ths of whole numbers
        t64, tol64 = [round(t * 64) for t in target], round(tolerance * 64)
        for counts in itertools.product(*(range(a + 1) for a in available)):
            n = sum(counts)
            if n < 2 or any(abs(64 * c - n * t) > n * tol64 for c, t in zip(counts, t64)):
                continue
            key = (-n, sum((64 * c - n * t) ** 2 for c, t in zip(counts, t64)), [-c for c in counts])
            if best is None or key < best:
                best = key
        counts = [-c for c in best[2]] if best else []
        rows.append([-best[0] if best else 0, *counts, *[0] * (4 - len(counts))])
    sc.write("rebalance", rows, inputs, ["kept", "c0", "c1", "c2", "c3"], [], "exhaustive search in whole numbers")


def silhouette():
    rows, inputs = [], sc.FNV_BASIS
    for case in range(N_CASES):
        stream = sc.case_stream("silhouette", case)
        n, d, k = 2 + stream.bounded(24), 1 + stream.bounded(4), 1 + stream.bounded(4)
        groups = [stream.bounded(k) for _ in range(n)]
        x = np.array([[stream.bounded(9) + 4 * g if case % 2 else stream.bounded(9) for _ in range(d)] for g in groups])
        inputs = sc.checksum([*x.ravel().astype(float), *map(float, groups)], inputs)
        row = [NAN] * 3
        if 2 <= len(set(groups)) < n:
            samples = silhouette_samples(x.astype(float), groups)
            row[0] = silhouette_score(x.astype(float), groups)
            row[1:] = [samples[np.array(groups) == g].mean() if g in groups else NAN for g in (0, 1)]
        u, v = x[0].astype(float), x[1].astype(float)
        row.append(cosine_similarity([u], [v])[0, 0] if u.any() and v.any() else NAN)
        rows.append(digits(row))
    sc.write("silhouette", rows, inputs, ["score", "group_0", "group_1", "cosine"], ["scikit-learn"])


def cluster_mean():
    rows, inputs = [], sc.FNV_BASIS
    for case in range(N_CASES):
        stream = sc.case_stream("cluster_mean", case)
        n, n_clusters = 1 + stream.bounded(40), 1 + stream.bounded(12)
        y = np.array(sc.values(stream, n, [sc.SCORES, sc.MEANS, sc.BINARY, sc.FINE][case % 4]))
        clusters = np.array([stream.bounded(n_clusters) for _ in range(n)])
        if case % 3 == 0:
            y = y + 2.0 * clusters
        inputs = sc.checksum([*y, *map(float, clusters)], inputs)
        present = np.unique(clusters)
        row = [NAN] * 9
        if n > 1 and np.ptp(y) > 0:
            plain = sm.OLS(y, np.ones(n)).fit()
            row[:3] = [plain.bse[0], *plain.conf_int()[0]]
            if len(present) > 1:
                fit = sm.OLS(y, np.ones(n)).fit(cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True)
                row[3:6] = [fit.bse[0], *fit.conf_int()[0]]
                row[6] = fit.cov_params()[0, 0] / plain.cov_params()[0, 0]
            if 1 < len(present) < n:
                table = sm.OLS(y, (clusters[:, None] == present).astype(float)).fit()
                sizes = (clusters[:, None] == present).sum(0)
                within = table.ssr / (n - len(present))
                between = (plain.ssr - table.ssr) / (len(present) - 1)
                m0 = (n - (sizes**2).sum() / n) / (len(present) - 1)
                row[7] = (between - within) / (between + (m0 - 1) * within)
                row[8] = 1 + ((sizes**2).sum() / n - 1) * row[7]
        rows.append(digits(row))
    names = ["se", "low", "high", "cluster_se", "cluster_low", "cluster_high", "design_effect", "icc", "kish"]
    sc.write("cluster_mean", rows, inputs, names, ["statsmodels"])


def linear_model():
    rows, inputs, terms = [], sc.FNV_BASIS, [(0,), (1,), (0, 1)]
    for case in range(N_CASES):
        stream = sc.case_stream("linear_model", case)
        small = case % 12 == 5  # too little for some of the columns or clusters
        n, n_clusters = (1 if small else 30) + stream.bounded(90), (1 if small else 10) + stream.bounded(24)
        levels = [(1 if small else 2) + stream.bounded(3), (1 if small else 2) + stream.bounded(2)]
        clusters = np.array([stream.bounded(n_clusters) for _ in range(n)])
        factors = [np.array([stream.bounded(k) for _ in range(n)]) for k in levels]
        if case % 4 == 0:
            factors[0] = clusters % levels[0]
        y = np.array(sc.values(stream, n, [sc.SCORES, sc.MEANS, sc.BINARY, sc.FINE][case % 4])) + 2.0 * factors[1]
        inputs = sc.checksum([*y, *map(float, clusters), *map(float, factors[0]), *map(float, factors[1])], inputs)
        columns, owner = [np.ones(n)], [-1]
        for t, term in enumerate(terms[: 2 + case % 2]):
            for cell in itertools.product(*(range(levels[f]) for f in term)):
                if any(c == factors[f].min() for c, f in zip(cell, term)):
                    continue
                column = np.all([factors[f] == c for c, f in zip(cell, term)], axis=0).astype(float)
                if column.any():
                    columns.append(column)
                    owner.append(t)
        x, owner, k = np.array(columns).T, np.array(owner), len(columns)
        row = [NAN] * 18
        if n > k and np.linalg.matrix_rank(x) == k:
            plain = sm.OLS(y, x).fit()
            weights = np.arange(1, k + 1)
            if plain.ssr > 1e-9:
                row[:2] = [plain.params @ weights, plain.bse @ weights]
                fit = None
                if len(np.unique(clusters)) > 1:
                    fit = sm.OLS(y, x).fit(cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True)
                    if fit.bse.min() > 1e-6 * plain.bse.min():
                        row[2] = fit.bse @ weights
                for t in range(3):
                    pick = np.eye(k)[owner == t]
                    if not len(pick):
                        continue
                    test = plain.wald_test(pick, use_f=True, scalar=True)
                    row[3 + 5 * t : 5 + 5 * t] = [test.statistic, test.pvalue]
                    if row[2] == row[2] and np.linalg.cond(pick @ fit.cov_params() @ pick.T) < 1e5:
                        test = fit.wald_test(pick, use_f=True, scalar=True)
                        chi2 = fit.wald_test(pick, use_f=False, scalar=True)
                        row[5 + 5 * t : 8 + 5 * t] = [test.statistic, test.pvalue, chi2.pvalue]
        rows.append(digits(row))
    names = ["coefficients", "errors", "cluster_errors"]
    names += [f"{t}_{c}" for t in ("a", "b", "ab") for c in ("f", "p", "cluster_f", "cluster_p", "cluster_p_chi2")]
    sc.write("linear_model", rows, inputs, names, ["statsmodels"], "sums weighted by 1, 2, 3, ... over the columns; no clustered values where an error is 0 but for rounding")


ALL = [kappa, fleiss, alpha, icc, multiple, bootstrap, proportion, sample_size, summary, spd, rebalance, silhouette]
ALL += [cluster_mean, linear_model]

if __name__ == "__main__":
    for make in ALL:
        if len(sys.argv) == 1 or make.__name__ in sys.argv[1:]:
            make()
