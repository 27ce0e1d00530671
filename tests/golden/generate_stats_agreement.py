"""Agreement, adjustment and interval goldens: the peers' values for the cases of stats_cases.py (14 digits).

    python tests/golden/generate_stats_agreement.py [NAME...]
"""

import math
import sys
import warnings

import krippendorff
import numpy as np
import pandas as pd
import pingouin
from scipy import stats
from scipy.stats._resampling import BootstrapResult
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa
from statsmodels.stats.multitest import multipletests

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


ALL = [kappa, fleiss, alpha, icc, multiple, bootstrap]

if __name__ == "__main__":
    for make in ALL:
        if len(sys.argv) == 1 or make.__name__ in sys.argv[1:]:
            make()
