"""Golden of the report's tables of refusals: counts by pandas, intervals and McNemar's test by statsmodels, CR2 written
from the papers (Bell and McCaffrey 2002; Pustejovsky and Tipton 2018) in numpy.

    python tests/golden/generate_refusals.py      # numpy 2.4.6, scipy 1.17.1, pandas 3.1.1, statsmodels 0.15.0

answers.csv holds what was asked and answered, the other files one table each, with the columns that the report's own
CSV has under the same names. tests/eval/test_refusal_tables.c reads both."""

import itertools
import pathlib

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

OUT = pathlib.Path(__file__).parent / "data" / "refusals"
RACES = ["r0", "r1", "r2", "r3"]
MODELS = {"strict": "Strict", "even": "Even"}


def answers():
    """28 people of 4 groups that are not quite balanced over gender, 8 prompts of 2 categories, two services."""
    random = np.random.default_rng(41)
    rows = []
    for model, s, p, arm in itertools.product(MODELS, range(28), range(8), ["edited", "preserved"]):
        if arm == "preserved" and model == "even":
            continue
        race, gender = RACES[s % 4], "f" if (s * 5) % 7 < 3 else "m"
        rate = 0.05 + 0.05 * (p % 4) + (0.25 if race == "r2" and model == "strict" else 0) - (0.05 if arm == "preserved" else 0)
        u = random.random()
        outcome, stage = "made", ""
        if u < rate:
            stage = random.choice(["input", "output", "placeholder"], p=[0.6, 0.3, 0.1])
            outcome = "placeholder" if stage == "placeholder" else "refused"
        elif u > 0.985:
            outcome = "fault"
        erased = int(random.random() < 0.2) if outcome == "made" and arm == "edited" else ""
        rows.append((model, f"s{s:02d}", race, gender, f"p{p}", f"c{p % 2}", arm, 1 + (s + p) % 3, outcome, stage, erased))
    names = ["model", "source", "race", "gender", "prompt", "category", "arm", "day", "outcome", "stage", "erased"]
    return pd.DataFrame(rows, columns=names)


def interval(k, n):
    return proportion_confint(k, n, 0.05, "beta" if k <= 5 else "wilson")


def cr2(y, X, clusters):
    """The fit's coefficients, their CR2 covariance, and for a set of contrasts Hotelling's T squared with its df."""
    groups = pd.Series(range(len(y))).groupby(np.asarray(clusters)).apply(list)
    bread = np.linalg.inv(X.T @ X)
    H = X @ bread @ X.T
    beta = bread @ X.T @ y
    e = y - X @ beta
    n = len(y)
    sandwich = np.zeros_like(bread)
    P = []  # of each cluster: the rows A X bread, and what multiplies the errors
    for rows in groups:
        values, vectors = np.linalg.eigh((np.eye(n) - H)[np.ix_(rows, rows)])
        A = vectors @ np.diag([v**-0.5 if v > 1e-9 else 0 for v in values]) @ vectors.T
        G = bread @ X[rows].T @ A
        sandwich += G @ np.outer(e[rows], e[rows]) @ G.T
        P.append(G @ (np.eye(n) - H)[rows])
    return beta, sandwich, P, bread


def wald(fit, C):
    """Approximate Hotelling's T squared: F, and the df of errors, under independent errors of one variance."""
    beta, V, P, bread = fit
    q = len(C)
    omega = C @ bread @ C.T  # of the estimate, under the working model
    values, vectors = np.linalg.eigh(omega)
    root = vectors @ np.diag(values**-0.5) @ vectors.T
    B = [root @ C @ p for p in P]
    # of D = sum of B e e' B', e standard normal: the variances of its elements, summed over all of them
    variance = sum(
        np.sum(np.outer(np.diag(M), np.diag(M)) + M * M.T)
        for M in (B[i] @ B[j].T for i, j in itertools.product(range(len(B)), repeat=2))
    )
    eta = q * (q + 1) / variance
    d = C @ beta
    Q = d @ np.linalg.solve(C @ V @ C.T, d)
    df2 = eta - q + 1
    F = df2 / (eta * q) * Q
    return F, q, df2, stats.f.sf(F, q, df2)


def mean_interval(y, clusters):
    fit = cr2(np.asarray(y, float), np.ones((len(y), 1)), clusters)
    df = wald(fit, np.eye(1))[2]
    half = stats.t.ppf(0.975, df) * fit[1][0, 0] ** 0.5
    return fit[0][0], fit[0][0] - half, fit[0][0] + half


def dummies(values):
    levels = sorted(set(values))
    return np.array([[v == level for level in levels[1:]] for v in values], float)


def write(name, columns, rows):
    pd.DataFrame(rows, columns=columns).to_csv(OUT / f"{name}.csv", index=False)


def with_parts(names):
    return list(itertools.chain(*([n, f"{n} low", f"{n} high", f"{n} k", f"{n} n"] for n in names)))


def stages(edited):
    what = ["At the request", "At the picture", "Placeholder", "Refused", "Faults"]
    rows = []
    for model, level in itertools.product(MODELS, RACES):
        x = edited[(edited.model == model) & (edited.race == level)]
        answered = x[x.outcome != "fault"]
        row = [MODELS[model], level]
        for k, n in [
            ((x.stage == "input").sum(), len(answered)),
            ((x.stage == "output").sum(), len(answered)),
            ((x.outcome == "placeholder").sum(), len(answered)),
            (answered.refused.sum(), len(answered)),
            ((x.outcome == "fault").sum(), len(x)),
        ]:
            row += [k / n, *interval(k, n), k, n]
        rows.append(row)
    write("refusals_by_stage_race", ["group", "race", *with_parts(what)], rows)


def differences(answered):
    rows = []
    for model, level in itertools.product(MODELS, RACES):
        x = answered[answered.model == model]
        a, b = x[x.race == level].refused, x[x.race != level].refused
        low, high = confint_proportions_2indep(a.sum(), len(a), b.sum(), len(b), method="newcomb", compare="diff")
        rows.append([MODELS[model], level, a.mean(), *interval(a.sum(), len(a)), b.mean(), *interval(b.sum(), len(b)), a.mean() - b.mean(), low, high])
    parts = [f"{n}{end}" for n in ["Refused", "Others", "By counts alone"] for end in ["", " low", " high"]]
    write("refusal_differences_race", ["group", "Level", *parts], rows)


def factors(answered):
    rows = []
    for title, x in [("Strict", answered[answered.model == "strict"]), ("Even", answered[answered.model == "even"]), ("All models", answered)]:
        terms = {"race": dummies(x.race), "gender": dummies(x.gender), "Prompt": dummies(x.prompt)}
        if title == "All models":
            terms["Model"] = np.array([[m == "even"] for m in x.model], float)
        X = np.hstack([np.ones((len(x), 1)), *terms.values()])
        fit = cr2(x.refused.to_numpy(float), X, x.source)
        at = 1
        for name, columns in terms.items():
            C = np.eye(X.shape[1])[at : at + columns.shape[1]]
            at += columns.shape[1]
            rows.append([title, name, *wald(fit, C)])
    write("refusal_factors", ["group", "Term", "F", "df", "df of errors", "p"], rows)


def pairs(answered):
    x = answered[answered.model == "strict"].pivot(index=["source", "prompt"], columns="arm", values="refused").dropna()
    value, low, high = mean_interval(x.preserved - x.edited, x.index.get_level_values("source"))
    write("refusal_pairs", ["Model", "Refused", "Refused low", "Refused high"], [["Strict", value, low, high]])
    b, c = ((x.preserved == 1) & (x.edited == 0)).sum(), ((x.preserved == 0) & (x.edited == 1)).sum()
    both, neither = ((x.preserved == 1) & (x.edited == 1)).sum(), ((x.preserved == 0) & (x.edited == 0)).sum()
    p = mcnemar([[both, b], [c, neither]], exact=True).pvalue
    write("refusal_changes", ["Model", "Pairs", "Both refused", "Only with", "Only without", "Neither", "p"], [["Strict", len(x), both, b, c, neither, p]])


def days(answered):
    rows = []
    for day, (model, title) in itertools.product([1, 2, 3], [("strict", "Strict"), ("even", "Even")]):
        x = answered[(answered.day == day) & (answered.model == model)]
        value, low, high = mean_interval(x.refused, x.source)
        rows.append((day, title, value, max(low, 0), min(high, 1), x.refused.sum(), len(x)))
    table = []
    for day in [1, 2, 3]:
        cells = {r[1]: r[2:] for r in rows if r[0] == day}
        table.append(["m", f"2026-11-0{day}", *cells["Strict"], *cells["Even"]])
    write("refusals_over_time", ["group", "Day", *with_parts(["Strict", "Even"])], table)


def bounds(edited):
    rows = []
    for model, level in itertools.product(MODELS, RACES):
        x = edited[(edited.model == model) & (edited.race == level)]
        made, refused = x[x.outcome == "made"], x.refused.sum()
        erased = made.erased.astype(float).sum()
        n = len(made) + refused
        rows.append(["Soft erasure", MODELS[model], level, len(made), refused, erased / len(made), erased / n, (erased + refused) / n])
    write("refusal_bounds_race", ["Outcome", "Model", "race", "Made and judged", "Refused", "Of what was made", "If none had it", "If all had it"], rows)


def outcomes(data):
    """A report's outcomes.csv: refused of all that was answered, soft erasure of what was judged."""
    rows = []
    for r in data.itertuples():
        start = [r.model, MODELS[r.model], r.source, r.prompt, r.arm, 0]
        end = [r.race, r.gender]
        if r.outcome != "fault":
            rows.append([*start, "asked", "refused", "Refused", int(r.outcome != "made"), *end])
        if r.erased != "":
            rows.append([*start, "judges", "soft_erasure", "Soft erasure", float(r.erased), *end])
    names = ["model_key", "model", "source_id", "prompt_id", "arm", "seed", "who", "measure", "measure_display", "value", "race", "gender"]
    return pd.DataFrame(rows, columns=names)


def compare(data):
    """The same asked again: the service that refused one group does so less, and some is missing."""
    random = np.random.default_rng(42)
    later = data.copy()
    change = (later.model == "strict") & (later.outcome == "refused") & (random.random(len(later)) < 0.6)
    later.loc[change, ["outcome", "stage"]] = ["made", ""]
    again = (later.model == "even") & (random.random(len(later)) < 0.05) & (later.outcome == "made")
    later.loc[again, ["outcome", "stage", "erased"]] = ["refused", "input", ""]
    later = later[random.random(len(later)) > 0.03]
    first, second = outcomes(data), outcomes(later)
    first.to_csv(OUT / "outcomes_first.csv", index=False)
    second.to_csv(OUT / "outcomes_second.csv", index=False)
    key = ["model_key", "source_id", "prompt_id", "arm", "seed", "who", "measure"]
    pair = first.merge(second[[*key, "value"]], on=key, suffixes=("", "_later"))
    pair["d"] = pair.value_later - pair.value
    alpha = 0.05 / len(pair.groupby(["measure", "who", "model_key", "arm"]))
    for name, by in [("compare_models", []), ("compare_race", ["race"])]:
        rows = []
        for of, x in pair.groupby(["measure_display", "who", "model", "arm", *by]):
            fit = cr2(x.d.to_numpy(float), np.ones((len(x), 1)), x.source_id)
            half = stats.t.ppf(1 - alpha / 2, wald(fit, np.eye(1))[2]) * fit[1][0, 0] ** 0.5 if fit[1][0, 0] > 0 else np.nan
            value = x.d.mean()
            ends = ["", ""] if np.isnan(half) else [value - half, value + half]
            rows.append([*of, len(x), x.value.mean(), x.value_later.mean(), value, *ends])
        write(name, ["Outcome", "By", "Model", "Arm", *by, "Pairs", "First", "Second", "Difference", "Difference low", "Difference high"], rows)


def main():
    OUT.mkdir(exist_ok=True)
    data = answers()
    data.to_csv(OUT / "answers.csv", index=False)
    data["refused"] = data.outcome.isin(["refused", "placeholder"]).astype(int)
    edited = data[data.arm == "edited"]
    answered = edited[edited.outcome != "fault"]
    stages(edited)
    differences(answered)
    factors(answered)
    pairs(data[data.outcome != "fault"])
    days(data[data.outcome != "fault"])
    bounds(edited)
    compare(data)


main()
