#!/usr/bin/env python3
"""Writes data/stats/t2i.csv: what numpy, scipy and statsmodels make of the labels of a small text-to-image study.

    python tests/golden/generate_t2i.py

Needs numpy (2.4.6), scipy (1.17.1), statsmodels (0.15.0). Labels come from the study's own generator, as in
tests/eval/test_t2i.c: 2 models x 2 prompts x 3 arms x 12 seeds. Rows: first a cell each (model, prompt, arm, attribute):
SPD, its interval, BiasAmp, chi-square, p, adjusted p; then a change each (arms after the first): SPD of base and other,
ΔSPD, its interval, p, adjusted p, Cohen's h of the first group and its interval."""

import numpy as np
import scipy.stats as st
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_effectsize

import stats_cases as sc

REPLICATES = 99
TARGETS = [np.array([32, 32]) / 64, np.array([16, 16, 8, 8, 4, 8, 4]) / 64]
NAN = float("nan")


def labels():
    """{(model, prompt, arm, seed): (gender, race), or (-1, -1) without a face}, and all draws."""
    stream, out, drawn = sc.Stream("t2i/labels"), {}, []

    def draw(n):
        drawn.append(stream.bounded(n))
        return drawn[-1]

    for model in range(2):
        for prompt in range(2):
            for arm in range(3):
                for seed in range(12):
                    missing, face = draw(12) == 0, draw(10) > 0
                    gender = int(draw(8) >= 6 - 2 * arm)
                    race = draw(3 + 2 * arm)
                    if not missing:
                        out[model, prompt, arm, seed] = (gender, race) if face else (-1, -1)
    return out, drawn


def counts(groups, k):
    return np.bincount([g for g in groups if g >= 0], minlength=k).astype(float)


def spd(groups, target):
    n = counts(groups, len(target))
    return float(np.abs(n / n.sum() - target).sum()) if n.sum() else NAN


def effect(base, other, k):
    a, b = counts(base, k), counts(other, k)
    if not a.sum() or not b.sum():
        return NAN
    return float(proportion_effectsize(b[0] / b.sum(), a[0] / a.sum()))


def interval(n, statistic):
    replicates = []
    for b in range(REPLICATES):
        stream = sc.Stream(f"boot|{b}")
        replicates.append(statistic([stream.bounded(n) for _ in range(n)]))
    return [float(v) for v in np.percentile([r for r in replicates if r == r], [2.5, 97.5])]


def permutation_p(base, other, target):
    observed, reached, counted = spd(other, target) - spd(base, target), 0, 0
    for b in range(REPLICATES):
        stream, arms = sc.Stream(f"perm|{b}"), ([], [])
        for pair in zip(base, other):
            order = [0, 1]
            stream.shuffle(order)
            for label, group in zip(order, pair):
                arms[label].append(group)
        change = spd(arms[1], target) - spd(arms[0], target)
        counted += change == change
        reached += abs(change) >= abs(observed) - 1e-12
    return (1 + reached) / (counted + 1)


def cell(all_labels, key, attribute):
    target = TARGETS[attribute]
    groups = [all_labels[key + (s,)][attribute] for s in range(12) if key + (s,) in all_labels]
    groups = [g for g in groups if g >= 0]
    value, n = spd(groups, target), counts(groups, len(target))
    test = st.chisquare(n, target * n.sum())
    reference = float(np.abs(1 / len(target) - target).sum())
    low, high = interval(len(groups), lambda drawn: spd([groups[i] for i in drawn], target))
    return [value, low, high, value - reference, test.statistic, test.pvalue]


def change(all_labels, model, prompt, arm, attribute):
    target, pairs = TARGETS[attribute], []
    for s in range(12):
        sides = [all_labels.get((model, prompt, a, s)) for a in (0, arm)]
        if None not in sides and max(side[attribute] for side in sides) >= 0:
            pairs.append([side[attribute] for side in sides])
    base, other = zip(*pairs)
    pick = lambda side, drawn: [side[i] for i in drawn]
    delta = interval(len(pairs), lambda d: spd(pick(other, d), target) - spd(pick(base, d), target))
    h = interval(len(pairs), lambda d: effect(pick(base, d), pick(other, d), len(target)))
    return (
        [spd(base, target), spd(other, target), spd(other, target) - spd(base, target), *delta],
        permutation_p(base, other, target),
        [effect(base, other, len(target)), *h],
    )


def adjust(rows, arms, column):
    """Benjamini-Hochberg within each arm."""
    out = [NAN] * len(rows)
    for arm in sorted(set(arms)):
        where = [i for i, a in enumerate(arms) if a == arm]
        for i, p in zip(where, multipletests([rows[i][column] for i in where], method="fdr_bh")[1]):
            out[i] = float(p)
    return out


def main():
    all_labels, drawn = labels()
    keys = [(m, p, a, attribute) for m in range(2) for p in range(2) for a in range(3) for attribute in range(2)]
    cells = [cell(all_labels, key[:3], key[3]) for key in keys]
    rows = [c + [p, NAN, NAN, NAN] for c, p in zip(cells, adjust(cells, [k[2] for k in keys], 5))]
    keys = [key for key in keys if key[2]]
    changes = [change(all_labels, *key) for key in keys]
    adjusted = adjust([[c[1]] for c in changes], [k[2] for k in keys], 0)
    rows += [c[0] + [c[1], p] + c[2] for c, p in zip(changes, adjusted)]
    sc.write("t2i", rows, sc.checksum([float(d) for d in drawn]), [f"v{i}" for i in range(10)],
             ["numpy", "scipy", "statsmodels"], "24 cells, then 16 changes; columns: see generate_t2i.py")


main()
