"""Goldens of the statistics of judges: Gwet's coefficient (irrCAC), prediction-powered means (ppi_py), and the
difference estimator of a stratified draw, for which no package was found: by its definition, in exact fractions.

    python tests/golden/generate_stats_judges.py [NAME...]
"""

import math
import sys
import warnings
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pandas as pd
from irrCAC.raw import CAC
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
from scipy.stats import t as student

import stats_cases as sc

warnings.filterwarnings("ignore")
NAN = math.nan
N_CASES = 220


def digits(row):
    return [v if isinstance(v, int) else float(f"{v:.14g}") for v in row]


def gwet():
    rows, inputs = [], sc.FNV_BASIS
    for case in range(N_CASES):
        stream = sc.case_stream("gwet", case)
        n, k, levels = 1 + stream.bounded(50), 2 + stream.bounded(3), 2 + stream.bounded(5)
        agree, missing = stream.bounded(8), stream.bounded(4)
        ratings = []
        for _ in range(n):
            first = 1 + stream.bounded(levels) if case % 3 else 1 + (stream.bounded(12) == 0)
            row = []
            for _ in range(k):
                value = first if stream.bounded(8) < agree else 1 + stream.bounded(levels)
                row.append(0 if stream.bounded(16) < missing else value)
            ratings.append(row)
        inputs = sc.checksum([float(v) for r in ratings for v in r], inputs)
        frame = pd.DataFrame([[v or NAN for v in r] for r in ratings if any(r)], dtype=float)
        row = []
        for weights in ("identity", "linear", "quadratic"):
            values = [NAN] * 6
            if len(frame) >= 2 and (frame.notna().sum(axis=1) >= 2).any():
                categories = [float(v) for v in range(1, levels + 1)]
                with np.errstate(all="ignore"):
                    est = CAC(frame, weights=weights, categories=categories, digits=15).gwet()["est"]
                values = [est["coefficient_value"], est["pa"], est["pe"], est["se"], *est["confidence_interval"]]
            row += values
        rows.append(digits(row))
    names = [f"{n}_{w}" for w in ("none", "linear", "quadratic") for n in ("ac", "pa", "pe", "se", "low", "high")]
    sc.write("gwet", rows, inputs, names, ["irrCAC"])


def judged_case(stream, n, good):
    """Pairs of a rating and a judge's score that is right so often."""
    pairs = []
    for _ in range(n):
        y = 1.0 + stream.bounded(5)
        pairs.append((y, y if stream.bounded(8) < good else 1.0 + stream.bounded(5)))
    return pairs


def prediction_powered():
    rows, inputs = [], sc.FNV_BASIS
    for case in range(N_CASES):
        stream = sc.case_stream("prediction_powered", case)
        n, n_other, good = 2 + stream.bounded(60), 1 + stream.bounded(200), stream.bounded(9)
        rated, others = judged_case(stream, n, good), judged_case(stream, n_other, good)
        fixed = (-1.0, 0.0, 0.5, 1.0)[stream.bounded(4)]
        inputs = sc.checksum([v for pair in rated for v in pair] + [pair[1] for pair in others] + [fixed], inputs)
        y, f = (np.array(v) for v in zip(*rated))
        other = np.array([pair[1] for pair in others])
        lam = None if fixed < 0 else fixed
        with np.errstate(all="ignore"):
            point = ppi_mean_pointestimate(y, f, other, lam=lam)[0]
            low, high = ppi_mean_ci(y, f, other, alpha=0.05, lam=lam)
        rows.append(digits([point, low[0], high[0]]))
    sc.write("prediction_powered", rows, inputs, ["mean", "low", "high"], ["ppi-python", "numpy"])


def slope(groups):
    """Pooled within groups: slope and correlation."""
    yy = yf = ff = Fraction(0)
    for pairs in groups:
        if pairs:
            my, mf = (sum(v, Fraction(0)) / len(v) for v in zip(*pairs))
            yy += sum((y - my) ** 2 for y, _ in pairs)
            yf += sum((y - my) * (f - mf) for y, f in pairs)
            ff += sum((f - mf) ** 2 for _, f in pairs)
    return yf / ff if ff else Fraction(0), float(yf) / math.sqrt(yy * ff) if yy * ff else 0.0


def merged(strata):
    out, open_ = [], []
    for items in strata:
        open_ += items
        if sum(y is not None for y, _ in open_) >= 2:
            out.append(open_)
            open_ = []
    if out:
        out[-1] += open_
    return out


def difference():
    rows, inputs, z = [], sc.FNV_BASIS, Fraction(NormalDist().inv_cdf(0.975))
    for case in range(N_CASES):
        stream = sc.case_stream("difference", case)
        n_strata, good = 1 + stream.bounded(12), stream.bounded(9)
        most = 60 if case % 4 == 0 else 6
        strata, flat = [], []
        for _ in range(n_strata):
            n_rated, n_more = stream.bounded(most), stream.bounded(20)
            pairs = judged_case(stream, n_rated + n_more, good)
            flat += [v for pair in pairs for v in pair] + [float(n_rated)]
            strata.append([(Fraction(y) if i < n_rated else None, Fraction(f)) for i, (y, f) in enumerate(pairs)])
        inputs = sc.checksum(flat, inputs)
        total = sum(len(s) for s in strata)
        groups = merged(strata)
        rated = [[(y, f) for y, f in g if y is not None] for g in groups]
        n = sum(len(r) for r in rated)
        if n < 2:
            rows.append([NAN] * 8)
            continue
        whole, r = slope(rated)
        low_r = math.tanh(math.atanh(max(-0.999, min(r, 1 - 1e-15))) - float(z) / math.sqrt(n - len(groups) - 2)) if n - len(groups) > 2 else 0
        lam = [Fraction(0)] * 2
        if low_r >= 0.2 and whole:
            lam = [whole] * 2 if n >= 200 else [slope([p[1 - half :: 2] for p in rated])[0] for half in (0, 1)]
        row = []
        for use in (lam, [Fraction(0)] * 2):
            value = variance = squares = Fraction(0)
            for group, pairs in zip(groups, rated):
                mean_f, share = sum(f for _, f in group) / len(group), Fraction(len(group), total)
                of = [Fraction(0)] * 2 if len(pairs) == len(group) else use
                e = [y - of[i % 2] * (f - mean_f) for i, (y, f) in enumerate(pairs)]
                m = sum(e) / len(e)
                s2 = sum((v - m) ** 2 for v in e) / (len(e) - 1)
                value += share * m
                part = share**2 * (1 - Fraction(len(e), len(group))) * s2 / len(e)
                variance += part
                squares += part**2 / (len(e) - 1)
            reach = student.ppf(0.975, float(variance**2 / squares)) * math.sqrt(variance) if squares else 0.0
            row += [float(value), math.sqrt(variance), float(value) + reach]
        rows.append(digits([*row, float(r), n_strata - len(groups)]))
    names = ["mean", "error", "high", "mean_rated", "error_rated", "high_rated", "correlation", "merged"]
    sc.write("difference", rows, inputs, names, ["numpy", "scipy"], "by the definition, in fractions")


ALL = [gwet, prediction_powered, difference]

if __name__ == "__main__":
    for make in ALL:
        if len(sys.argv) == 1 or make.__name__ in sys.argv[1:]:
            make()
