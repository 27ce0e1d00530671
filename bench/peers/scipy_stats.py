"""The analysis of bench_stats with SciPy, statsmodels, scikit-learn, krippendorff, pingouin, scikit-posthocs and NumPy, on
the same data (bench_stats --dump), beside bench_stats itself: one repetition of each in turn, because a shared
machine's speed changes from minute to minute.

    OPENBLAS_NUM_THREADS=1 python bench/peers/scipy_stats.py build/bench_stats [-r 3] [-t 2] [--way fast]

Prints, per step, medians of both in ms and the ratio; the numbers of both are compared (1e-8 relative; p below 1e-12 as
equal), those from random resamples loosely. Reading the data and importing the libraries is not timed. Three ways to
resample:

fast        products of matrices for rates, means and alpha (float32 where that is exact), random subsets by argpartition
            for the permutation test: the fastest plain NumPy that we found
libraries   scipy.stats.bootstrap, scipy.stats.permutation_test, krippendorff.alpha per resample; rates as in fast
plain       the libraries, and rates from drawn rows and sums per group, which is what one writes first

OpenBLAS is slower with two threads on products of this size."""

import argparse
import statistics
import subprocess
import tempfile
import time
import warnings

import krippendorff
import numpy as np
import pandas as pd
import pingouin
import scikit_posthocs
import statsmodels.formula.api as smf
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.inter_rater import fleiss_kappa
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint, proportions_ztest

AXES, RESAMPLES, ALPHA_RESAMPLES, N_SOURCES, BLOCK = 5, 10000, 1000, 84, 200


def drawn_counts(rng, n, times):
    """How often each of n was drawn, `times` resamples."""
    drawn = rng.integers(0, n, (times, n)) + n * np.arange(times)[:, None]
    return np.bincount(drawn.ravel(), minlength=times * n).reshape(times, n)


class Analysis:
    def __init__(self, folder):
        self.items = pd.read_csv(f"{folder}/items.csv")
        self.ratings = pd.read_csv(f"{folder}/ratings.csv")
        self.judges = np.stack(
            [[self.items[f"{judge}_{axis}"].to_numpy() for axis in range(AXES)] for judge in ("primary", "secondary")]
        )
        self.found, self.family = {}, []

    def note(self, name, axis, value):
        self.found[f"{name}_{axis}"] = float(value)

    def test(self, name, axis, p):
        self.note(name, axis, p)
        self.family.append(float(p))

    def complete(self, axis):
        x, y = self.judges[0, axis], self.judges[1, axis]
        both = ~(np.isnan(x) | np.isnan(y))
        return x[both], y[both]

    def prepare(self):
        self.found, self.family = {}, []
        self.mean = (self.judges[0] + self.judges[1]) / 2
        self.failed = np.where(np.isnan(self.mean), np.nan, self.mean <= 2)
        self.values = np.concatenate([self.mean, self.failed]).T

    def kappas(self):
        for axis in range(AXES):
            x, y = (v.astype(int) for v in self.complete(axis))
            for name, weights in (("kappa", None), ("kappa_linear", "linear"), ("kappa_quadratic", "quadratic")):
                self.note(name, axis, cohen_kappa_score(x, y, labels=[1, 2, 3, 4, 5], weights=weights))

    def correlations(self):
        for axis in range(AXES):
            x, y = self.complete(axis)
            r = stats.pearsonr(x, y)
            r.confidence_interval()
            self.note("pearson", axis, r.statistic)
            self.note("spearman", axis, stats.spearmanr(x, y).statistic)
            self.note("kendall", axis, stats.kendalltau(x, y).statistic)

    def table(self, axis):
        """Items by raters."""
        return self.ratings[f"axis_{axis}"].to_numpy().reshape(-1, 3)

    def counts(self, axis):
        table = self.table(axis)
        return np.stack([(table == level).sum(axis=1) for level in range(1, 6)], axis=1)

    def raters(self):
        for axis in range(AXES):
            table = self.table(axis)
            for level in ("nominal", "ordinal", "interval", "ratio"):
                self.note(level, axis, krippendorff.alpha(reliability_data=table.T, level_of_measurement=level))
            icc = pingouin.intraclass_corr(
                self.ratings, targets="item", raters="rater", ratings=f"axis_{axis}", nan_policy="omit"
            )
            self.note("icc2", axis, icc["ICC"].to_numpy()[1])
            counts = self.counts(axis)
            self.note("fleiss", axis, fleiss_kappa(counts[counts.sum(axis=1) == 3], method="fleiss"))

    def alpha_intervals(self):
        """From the coincidences of each unit, which a resample adds up."""
        rng, scores = np.random.default_rng(42), np.arange(1, 6)
        apart = scores[:, None] - scores
        fixed = {"nominal": apart != 0, "interval": apart**2, "ratio": (apart / (scores[:, None] + scores)) ** 2}
        for axis in range(AXES):
            counts = self.counts(axis)
            counts = counts[counts.sum(axis=1) > 1]
            pairs = counts[:, :, None] * (counts[:, None, :] - np.eye(5)) / (counts.sum(axis=1) - 1)[:, None, None]
            found = (drawn_counts(rng, len(counts), ALPHA_RESAMPLES) @ pairs.reshape(-1, 25)).reshape(-1, 5, 5)
            n = found.sum(axis=2)
            by_chance = n[:, :, None] * n[:, None, :] / (n.sum(axis=1) - 1)[:, None, None]
            place = n.cumsum(axis=1) - n / 2
            for distance in (*fixed.values(), (place[:, :, None] - place[:, None, :]) ** 2):
                alphas = 1 - (found * distance).sum(axis=(1, 2)) / (by_chance * distance).sum(axis=(1, 2))
                np.percentile(alphas, [2.5, 97.5])

    def alpha_intervals_libraries(self):
        rng = np.random.default_rng(42)
        for axis in range(AXES):
            counts = self.counts(axis)
            draws = rng.integers(0, len(counts), (ALPHA_RESAMPLES, len(counts)))
            for level in ("nominal", "ordinal", "interval", "ratio"):
                alphas = [
                    krippendorff.alpha(
                        value_counts=counts[draw], value_domain=[1, 2, 3, 4, 5], level_of_measurement=level
                    )
                    for draw in draws
                ]
                np.percentile(alphas, [2.5, 97.5])

    def rank_tests(self):
        race, gender = self.items["race"].to_numpy(), self.items["gender"].to_numpy()
        for axis in range(AXES):
            mean = self.mean[axis]
            there = ~np.isnan(mean)
            groups = [mean[there & (race == g)] for g in range(7)]
            self.test("kruskal", axis, stats.kruskal(*groups).pvalue)
            dunn = scikit_posthocs.posthoc_dunn(groups).to_numpy()
            for k, (a, b) in enumerate(zip(*np.triu_indices(7, 1))):
                self.test("dunn", axis * 100 + k, dunn[a, b])
            result = stats.mannwhitneyu(mean[there & (gender == 0)], mean[there & (gender == 1)])
            self.test("mann_whitney", axis, result.pvalue)
            x, y = self.complete(axis)
            self.test("wilcoxon", axis, stats.wilcoxon(x - y).pvalue)
            blocks = mean.reshape(-1, 3)
            blocks = blocks[~np.isnan(blocks).any(axis=1)]
            self.test("friedman", axis, stats.friedmanchisquare(*blocks.T).pvalue)

    def count_tests(self):
        for axis in range(AXES):
            there = ~np.isnan(self.mean[axis])
            failed = self.failed[axis][there] == 1
            race = pd.crosstab(self.items["race"][there], failed).to_numpy()
            gender = pd.crosstab(self.items["gender"][there], failed).to_numpy()
            judges = pd.crosstab(self.judges[0, axis][there] <= 2, self.judges[1, axis][there] <= 2).to_numpy()
            self.test("chi2", axis, stats.chi2_contingency(race).pvalue)
            stats.contingency.association(race)
            self.test("fisher", axis, stats.fisher_exact(gender).pvalue)
            self.test("mcnemar", axis, mcnemar(judges, exact=False, correction=True).pvalue)
            k, n = gender[:, 1], gender.sum(axis=1)
            self.test("proportions", axis, proportions_ztest(k, n)[1])
            for g in range(7):
                self.note("wilson", axis * 100 + g, proportion_confint(race[g, 1], race[g].sum(), method="wilson")[0])
                self.note("clopper", axis * 100 + g, proportion_confint(race[g, 1], race[g].sum(), method="beta")[0])
            low = confint_proportions_2indep(k[0], n[0], k[1], n[1], method="newcomb", compare="diff")[0]
            self.note("newcombe", axis, low)

    def groupings(self):
        names = ("race", "gender", "model", "prompt")
        return [np.eye(self.items[name].max() + 1)[self.items[name]].T for name in names] + [np.ones((1, len(self.items)))]

    def summarise(self, prefix, rates, sizes):
        """rates [B, 33, 10]: intervals of all groups and of the disparities of each grouping."""
        lows = np.nanpercentile(rates, [2.5, 97.5], axis=0)[0]
        at = 0
        for size in sizes:
            part = rates[:, at : at + size]
            if size > 1:
                np.nanpercentile(part.max(axis=1) - part.min(axis=1), [2.5, 97.5], axis=0)
            at += size
        for m in range(2 * AXES):
            by_race = [np.nanmean(self.values[self.items["race"] == g, m]) for g in range(7)]
            self.note(f"{prefix}disparity", m, max(by_race) - min(by_race))
            self.note(f"~{prefix}low", m, lows[-1, m])

    def summed(self):
        """Of all items, 33 groups times (values, or 0, and whether there is one)."""
        there = ~np.isnan(self.values)
        columns = np.concatenate([np.where(there, self.values, 0), there], axis=1)
        groupings = self.groupings()
        cells = np.concatenate(groupings)
        return (cells.T[:, :, None] * columns[:, None, :]).reshape(len(columns), -1), [len(g) for g in groupings]

    def rates(self, totals):
        totals = totals.reshape(len(totals), -1, 4 * AXES)
        return totals[..., : 2 * AXES] / totals[..., 2 * AXES :]

    def resample_items(self):
        rng = np.random.default_rng(42)
        summed, sizes = self.summed()
        summed = summed.astype(np.float32)  # halves up to 50,400: exact
        rates = [
            self.rates((drawn_counts(rng, len(summed), BLOCK).astype(np.float32) @ summed).astype(float))
            for _ in range(RESAMPLES // BLOCK)
        ]
        self.summarise("", np.concatenate(rates), sizes)

    def resample_sources(self):
        rng = np.random.default_rng(42)
        summed, sizes = self.summed()
        per_source = np.eye(N_SOURCES)[self.items["source"]].T @ summed
        self.summarise("cluster_", self.rates(drawn_counts(rng, N_SOURCES, RESAMPLES) @ per_source), sizes)

    def resample_plainly(self, prefix, draw):
        """Drawn rows, then sums per group: what one writes without rearranging the sums as products of matrices."""
        codes = [self.items[name].to_numpy() for name in ("race", "gender", "model", "prompt")]
        codes.append(np.zeros(len(self.items), int))
        sizes = [code.max() + 1 for code in codes]
        there = ~np.isnan(self.values)
        filled = np.where(there, self.values, 0)
        rates = np.empty((RESAMPLES, sum(sizes), 2 * AXES))
        for b in range(RESAMPLES):
            rows = draw()
            values, valid, at = filled[rows], there[rows], 0
            for code, size in zip(codes, sizes):
                group = code[rows]
                for m in range(2 * AXES):
                    n = np.bincount(group, valid[:, m], size)
                    rates[b, at : at + size, m] = np.bincount(group, values[:, m], size) / n
                at += size
        self.summarise(prefix, rates, sizes)

    def resample_items_plainly(self):
        rng, n = np.random.default_rng(42), len(self.items)
        self.resample_plainly("", lambda: rng.integers(0, n, n))

    def resample_sources_plainly(self):
        rng = np.random.default_rng(42)
        rows = [np.flatnonzero(self.items["source"] == s) for s in range(N_SOURCES)]
        self.resample_plainly(
            "cluster_", lambda: np.concatenate([rows[s] for s in rng.integers(0, N_SOURCES, N_SOURCES)])
        )

    def resample_means(self):
        rng = np.random.default_rng(42)
        there = ~np.isnan(self.mean.T)
        columns = np.concatenate([np.where(there, self.mean.T, 0), there], axis=1).astype(np.float32)
        totals = np.concatenate(
            [
                drawn_counts(rng, len(columns), BLOCK).astype(np.float32) @ columns
                for _ in range(RESAMPLES // BLOCK)
            ]
        ).astype(float)
        lows = np.percentile(totals[:, :AXES] / totals[:, AXES:], [2.5, 97.5], axis=0)[0]
        for axis in range(AXES):
            self.note("~mean_low", axis, lows[axis])

    def permute(self):
        """Which of the values are the first group's: the smallest of random keys."""
        rng, there = np.random.default_rng(42), ~np.isnan(self.mean[0])
        mean, gender = self.mean[0][there], self.items["gender"].to_numpy()[there]
        n, n_first, total = len(mean), np.count_nonzero(gender == 1), mean.sum()
        observed = abs(mean[gender == 1].mean() - mean[gender == 0].mean())
        sums = np.array(
            [
                mean[np.argpartition(rng.random(n, dtype=np.float32), n_first)[:n_first]].sum()
                for _ in range(RESAMPLES)
            ]
        )
        reached = abs(sums / n_first - (total - sums) / (n - n_first)) >= observed - 1e-12
        self.note("~permutation", 0, (1 + np.count_nonzero(reached)) / (RESAMPLES + 1))

    def resample_means_libraries(self):
        for axis in range(AXES):
            x, y = self.complete(axis)
            result = stats.bootstrap(
                ((x + y) / 2,), np.mean, n_resamples=RESAMPLES, batch=100, method="percentile", rng=42
            )
            self.note("~mean_low", axis, result.confidence_interval.low)

    def permute_libraries(self):
        there = ~np.isnan(self.mean[0])
        mean, gender = self.mean[0][there], self.items["gender"].to_numpy()[there]
        result = stats.permutation_test(
            (mean[gender == 1], mean[gender == 0]),
            lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
            vectorized=True,
            n_resamples=RESAMPLES,
            batch=100,
            rng=42,
        )
        self.note("~permutation", 0, result.pvalue)

    def models(self):
        for axis in range(AXES):
            frame = self.items[["race", "model", "source"]].assign(y=self.mean[axis]).dropna()
            how = {"cov_type": "cluster", "cov_kwds": {"groups": frame["source"]}, "use_t": True}
            mean = smf.ols("y ~ 1", frame).fit(**how)
            self.note("clustered_low", axis, mean.conf_int().to_numpy()[0, 0])
            table = smf.ols("y ~ C(race) * C(model)", frame).fit(**how).wald_test_terms(scalar=True).table
            for term, name in enumerate(("C(race)", "C(model)", "C(race):C(model)")):
                self.note("wald", axis * 100 + term, table.loc[name, "pvalue"])

    def adjustments(self):
        for k, method in enumerate(("bonferroni", "holm", "fdr_bh", "fdr_by")):
            self.note("adjusted", k, multipletests(self.family, method=method)[1].sum())


STEPS = [name for name in vars(Analysis) if name in (
    "prepare kappas correlations raters alpha_intervals rank_tests count_tests resample_items resample_sources "
    "resample_means permute models adjustments").split()]


def theirs(analysis, way):
    """Milliseconds of each step, by the clock and of CPU time."""
    took, suffixes = {}, {"fast": [""], "libraries": ["_libraries", ""], "plain": ["_plainly", "_libraries", ""]}[way]
    for step in STEPS:
        run = next(getattr(analysis, step + suffix) for suffix in suffixes if hasattr(analysis, step + suffix))
        before, cpu = time.perf_counter(), time.process_time()
        run()
        took[step] = (1e3 * (time.perf_counter() - before), 1e3 * (time.process_time() - cpu))
    took["total"] = tuple(map(sum, zip(*took.values())))
    return took


def lines(text):
    return {key: tuple(map(float, values)) for key, *values in (line.split(",") for line in text.split())}


def compare(ours, found):
    bad = 0
    for name, (value,) in ours.items():
        peer = found.get(name, float("nan"))
        near = 0.05 * abs(peer) + 0.05 if name[0] == "~" else 1e-8 * abs(peer) + 1e-12
        if not abs(value - peer) <= near:
            print(f"differs: {name}: {value!r}, {peer!r}")
            bad += 1
    print(f"{len(ours)} numbers compared, {bad} differ")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("-r", type=int, default=3)
    parser.add_argument("-t", default="2")
    parser.add_argument("--way", choices=("fast", "libraries", "plain"), default="fast", help="how resampling is written")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    ours, peers = [], []
    with tempfile.TemporaryDirectory() as folder:
        command = [args.bench, "-r", "1", "-t", args.t, "--dump", folder, "--results", f"{folder}/found"]
        for _ in range(args.r):
            ours.append(lines(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
            analysis = Analysis(folder)
            peers.append(theirs(analysis, args.way))
        compare(lines(open(f"{folder}/found").read()), analysis.found)
    print("| step | ours, ms | of CPU time | Python, ms | of CPU time | ratio | by CPU time |\n|---|--:|--:|--:|--:|--:|--:|")
    for step in ours[0]:  # models_cr2, which statsmodels does not have, counts in our total alone
        if step not in peers[0]:
            print(f"| {step} | {statistics.median(run[step][0] for run in ours):.2f} | | none | | | |")
            continue
        a, a_cpu = (statistics.median(run[step][i] for run in ours) for i in range(2))
        b, b_cpu = (statistics.median(run[step][i] for run in peers) for i in range(2))
        print(f"| {step} | {a:.2f} | {a_cpu:.2f} | {b:.1f} | {b_cpu:.1f} | {b / a:.1f} | {b_cpu / a_cpu:.1f} |")


if __name__ == "__main__":
    main()
