"""Exclusion lists and tables of human answers under every quality-control policy, computed without our code.

    python generate_policies.py >data/policies.txt      (numpy, scipy, statsmodels, krippendorff; versions stand there)

30 raters answer about 42 outputs; most of them break rules. The rules are those of the study's table (Q1..Q12,
protocol 000), written down again here as plain loops over the answers; so are means, majorities, rates and changes.
Lines: versions; item ID, the judges' five scores; rater NAME submitted code sessions pilot; rating RATER ITEM
checked right five scores ms (0: skipped); excluded POLICY NAME...; value POLICY RESULT OF with without; rate POLICY
MEASURE k n k n; p POLICY TEST OF with without. "-" is no value."""
import random
import statistics
from fractions import Fraction
from importlib.metadata import version

import krippendorff
import numpy
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa

AXES = ["Edit Success", "Skin Tone Change", "Race Change", "Gender Change", "Age Change"]
RACES = ["white", "black", "eastasian", "southeastasian", "indian", "middleeastern", "latino"]
POLICIES = ["any", "two_flags", "none", "completion"]
FLAWS = ["gold", "pilot", "again", "quick", "flat", "same", "diagonal", "fast", "speeder", "straight", "skips", "left",
         "code"]
draw = random.Random(20260131)

items = []
for race in RACES:
    for prompt in ["O-01", "O-02", "V-01"]:
        for arm in ["", ".preserved"]:
            items.append({"id": f"flux_20s_male_{race}_{prompt}{arm}", "race": race, "preserved": bool(arm),
                          "judge": [draw.randint(1, 5) for _ in AXES]})

raters, ratings = [], []
for k in range(30):
    flaws = {FLAWS[k % 13], FLAWS[(k + 5) % 13]} if 13 <= k < 26 else {FLAWS[k]} if k < 13 else set()
    raters.append({"name": f"p{k:02d}", "submitted": "left" not in flaws, "code": "code" not in flaws,
                   "sessions": 2 if "again" in flaws else 1, "pilot": "pilot" in flaws})
    level = draw.randint(1, 5)
    for at, item in enumerate(draw.sample(items, 14)):
        ms = draw.randint(5000, 9000)
        if "speeder" in flaws: ms = draw.randint(2100, 2900)
        if "quick" in flaws: ms = 3050
        if "fast" in flaws and at == 3: ms = 1500
        scores = [min(5, max(1, item["judge"][a] + draw.choice([-1, 0, 0, 0, 1]))) for a in range(5)]
        if "flat" in flaws: scores = [3, 3, 3, 3, 3 + (at == 0)]
        if "same" in flaws: scores = [level] * 5
        if "straight" in flaws: scores = [4, 4, 4, 4, draw.choice([1, 4, 4])]
        if "diagonal" in flaws: scores = [(5 * at + a) % 5 + 1 for a in range(5)]
        if "skips" in flaws: scores[4] = 0
        ratings.append({"rater": k, "item": item, "checked": 0, "right": 0, "scores": scores, "ms": ms})
    for check in range(5):
        right = 0 if "gold" in flaws and check < 2 else 1
        ratings.append({"rater": k, "item": items[check], "checked": 1, "right": right, "scores": [3] * 5,
                        "ms": 3050 if "quick" in flaws else 6000})


def rules_of(k):
    mine = [r for r in ratings if r["rater"] == k]
    answers = [s for r in mine if not r["checked"] for s in r["scores"] if s]
    steps = list(zip(answers, answers[1:]))
    times = [r["ms"] for r in mine for s in r["scores"] if s]
    most = max(answers.count(level) for level in range(1, 6))
    checks = [r["right"] for r in mine if r["checked"]]
    asked = 5 * len(mine)
    skipped = sum(s == 0 for r in mine for s in r["scores"])
    seconds = sum(r["ms"] * sum(s > 0 for s in r["scores"]) for r in mine) / 1000
    hit = set()
    if sum(checks) / len(checks) < 0.80: hit.add("Q1")
    if raters[k]["sessions"] > 1 or raters[k]["pilot"]: hit.add("Q2")
    if raters[k]["submitted"] and seconds < 0.5 * 600: hit.add("Q3")
    if statistics.pvariance(answers) <= 0.05: hit.add("Q4")
    if len(set(answers)) == 1: hit.add("Q5")
    if sum(b == a % 5 + 1 for a, b in steps) >= 0.8 * len(steps): hit.add("Q6")
    if sum(a == b % 5 + 1 for a, b in steps) >= 0.8 * len(steps): hit.add("Q6")
    if min(times) < 2000: hit.add("Q7")
    if statistics.median(times) < 3000: hit.add("Q8")
    if most > 0.8 * len(answers): hit.add("Q9")
    if skipped > 0.1 * asked: hit.add("Q10")
    if not raters[k]["submitted"]: hit.add("Q11")
    if not raters[k]["code"]: hit.add("Q12")
    return hit


def excluded(hit, policy):
    if policy == "any": return bool(hit & {"Q1", "Q2", "Q8", "Q9", "Q10", "Q11", "Q12"})
    if policy == "two_flags": return "Q1" in hit or len(hit - {"Q7"}) >= 2
    if policy == "completion": return bool(hit & {"Q11", "Q12"})
    return False


def majority(levels):
    for level in set(levels):
        if 2 * levels.count(level) > len(levels): return level
    return round(statistics.median(levels))  # a half to the even level, as Python rounds


def fleiss(given):
    """Of the items that have the commonest number of answers, from two; of two as common the larger."""
    sizes = [len(levels) for levels in given if len(levels) >= 2]
    if not sizes: return None
    size = max(set(sizes), key=lambda n: (sizes.count(n), n))
    return fleiss_kappa([[levels.count(k) for k in range(1, 6)] for levels in given if len(levels) == size])


def quadratic(pairs):
    table = numpy.zeros((5, 5))
    for judge, rater in pairs: table[judge - 1, rater - 1] += 1
    return cohens_kappa(table, wt="quadratic").kappa if pairs else None


def wilcoxon(changes):
    """The study's choice: exact without zeros and ties up to 50, else the normal approximation."""
    sizes = [abs(change) for change in changes]
    plain = all(sizes) and len(set(sizes)) == len(sizes) and len(sizes) <= 50
    return stats.wilcoxon(changes, method="exact" if plain else "asymptotic")


def tables(out):
    """Every number about the answers of all raters but those of the set."""
    kept = [r for r in ratings if not r["checked"] and r["rater"] not in out]
    levels = {(i["id"], a): [r["scores"][a] for r in kept if r["item"] is i and r["scores"][a]]
              for i in items for a in range(5)}
    mean = {key: sum(given) / len(given) for key, given in levels.items() if len(given) >= 2}
    most = {key: majority(given) for key, given in levels.items() if len(given) >= 2}
    values, p, rates = {("Answers", "outputs times raters"): len(kept)}, {}, {}
    for a, axis in enumerate(AXES):
        found = [mean[i["id"], a] for i in items if (i["id"], a) in mean]
        values["Human mean", axis] = sum(found) / len(found) if found else None
        changes = [mean[i["id"] + ".preserved", a] - mean[i["id"], a] for i in items
                   if (i["id"], a) in mean and (i["id"] + ".preserved", a) in mean]
        exact = lambda i: Fraction(sum(levels[i, a]), len(levels[i, a]))  # what is equal ties, whatever its floats are
        ranked = [float(exact(i["id"] + ".preserved") - exact(i["id"])) for i in items
                  if (i["id"], a) in mean and (i["id"] + ".preserved", a) in mean]
        values["Δ by the feature prompt", axis] = sum(changes) / len(changes) if changes else None
        grid = numpy.full((len(raters), len(items)), numpy.nan)
        for r in kept:
            if r["scores"][a]: grid[r["rater"], items.index(r["item"])] = r["scores"][a]
        values["Fleiss κ", axis] = fleiss([levels[i["id"], a] for i in items])
        values["κ quadratic, judges against raters", axis] = quadratic(
            [(i["judge"][a], most[i["id"], a]) for i in items if (i["id"], a) in most])
        values["α interval", axis] = krippendorff.alpha(reliability_data=grid, level_of_measurement="interval")
        apart = [i["judge"][a] - mean[i["id"], a] for i in items if (i["id"], a) in mean]
        values["VLM − human", axis] = sum(apart) / len(apart) if apart else None
        groups = [[mean[i["id"], a] for i in items if i["race"] == race and not i["preserved"] and (i["id"], a) in mean]
                  for race in RACES]
        done = {"Kruskal–Wallis H": stats.kruskal(*groups) if all(groups) else None,
                "Mann–Whitney U": stats.mannwhitneyu(groups[0], sum(groups[1:], [])) if any(groups[1:]) else None,
                "Wilcoxon T": wilcoxon(ranked) if any(ranked) else None}
        for name, test in done.items():
            values[name, axis], p[name, axis] = (test.statistic, test.pvalue) if test else (None, None)
    score = lambda i, a: most.get((i["id"], a))
    measures = {"Edit success": (0, lambda s: s >= 4), "Soft erasure": (0, lambda s: s <= 2),
                "Race change": (2, lambda s: s >= 3), "Gender change": (3, lambda s: s >= 3),
                "Skin lightening": (1, lambda s: s > 3), "Skin darkening": (1, lambda s: s < 3),
                "Age change": (4, lambda s: s != 3)}
    baseline = [i for i in items if not i["preserved"]]
    for name, (a, holds) in measures.items():
        given = [score(i, a) for i in baseline if score(i, a)]
        rates[name] = (sum(map(holds, given)), len(given))
    both = [(score(i, 2), score(i, 3)) for i in baseline if score(i, 2) and score(i, 3)]
    rates["Identity erasure"] = (sum(max(pair) >= 4 for pair in both), len(both))
    return values, p, rates


print("versions", *(f"{name}-{version(name)}" for name in ["numpy", "scipy", "statsmodels", "krippendorff"]))
for i in items: print("item", i["id"], *i["judge"])
for r in raters: print("rater", r["name"], int(r["submitted"]), int(r["code"]), r["sessions"], int(r["pilot"]))
for r in ratings:
    print("rating", raters[r["rater"]]["name"], r["item"]["id"], r["checked"], r["right"], *r["scores"], r["ms"])
print("rules", *("+".join(sorted(rules_of(k))) or "-" for k in range(len(raters))))
text = lambda value: "-" if value is None else repr(float(value))
all_values, all_p, all_rates = tables(set())
for policy in POLICIES:
    out = {k for k in range(len(raters)) if excluded(rules_of(k), policy)}
    values, p, rates = tables(out)
    print("excluded", policy, *(raters[k]["name"] for k in sorted(out)))
    for (result, of), value in values.items():
        print("value", policy, result.replace(" ", "_"), of.replace(" ", "_"), text(value), text(all_values[result, of]))
    for (test, of), value in p.items():
        print("p", policy, test.replace(" ", "_"), of.replace(" ", "_"), text(value), text(all_p[test, of]))
    for name, rate in rates.items(): print("rate", policy, name.replace(" ", "_"), *rate, *all_rates[name])
