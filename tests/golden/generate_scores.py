#!/usr/bin/env python3
"""Goldens of eval/scores, eval/judge and eval/study/sampling.

    python generate_scores.py tests/golden/data

Writes judge_answers.json (the verdicts of Python's json module with the reading rules of the study on
top), csv_cases.bin (files and what pandas reads from them) and sampling.csv (what pandas samples). The versions that
made them are in scores_versions.txt.
"""
import io
import json
import platform
import random
import re
import sys

import numpy
import pandas

from stats_cases import Stream, fnv1a64

AXES = ["edit_success", "skin_tone", "race_drift", "gender_drift", "age_drift"]
ALIASES = {"skin_stone": "skin_tone", "skin_tone_change": "skin_tone", "race_change": "race_drift",
           "gender_change": "gender_drift", "age_change": "age_drift"}


class Invalid(Exception):
    pass


def unique(pairs):
    if len({key for key, _ in pairs}) != len(pairs):
        raise Invalid
    return pairs


THOUGHTS = [("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("<reasoning>", "</reasoning>")]


def behind_thoughts(text):
    """What follows the last closed thought; a thought that is left open is no answer."""
    at = max([text.rfind(close) + len(close) for _, close in THOUGHTS if close in text] or [0])
    if any(text.find(begin, at) >= 0 for begin, _ in THOUGHTS) or (at and not text[at:].strip()):
        raise Invalid
    return text[at:]


def objects(text):
    """Where each object begins and ends that stands in no other; one that is not closed makes all of it invalid."""
    end = 0
    while (start := text.find("{", end)) >= 0:
        depth, inside, escaped = 0, False, False
        for i in range(start, len(text)):
            c = text[i]
            if inside:
                inside = escaped or c != '"'
                escaped = not escaped and c == "\\"
            elif c == '"':
                inside = True
            elif c in "{}":
                depth += 1 if c == "{" else -1
            if depth == 0:
                break
        else:
            raise Invalid
        end = i + 1
        yield start, end


def without_trailing_commas(text):
    """Commas outside strings that a bracket follows and a value precedes."""
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text, flags=re.S)
    for i in range(0, len(parts), 2):
        before = (i > 0) * "s" + parts[i]
        parts[i] = re.sub(r"(?<=[^,{[\s])(\s*),(\s*[}\]])", r"\1\2", before)[i > 0:]
    return "".join(parts)


def is_marked(words):
    words = words[-120:].lower()
    has = lambda *list: any(re.search(r"(?<![a-z])" + w + r"(?![a-z])", words) for w in list)
    return (has("final", "corrected", "correction", "revised", "revision", "updated") and
            not has("not", "draft", "example", "previous", "first") and "n't" not in words)


def no_constant(_):
    raise Invalid


def of_object(prompt, text):
    """The five digits; None for an object that is no answer. Invalid: an answer that is none."""
    try:
        pairs = json.loads(without_trailing_commas(text), strict=False, object_pairs_hook=unique,
                           parse_constant=no_constant)
    except (Invalid, json.JSONDecodeError):
        if re.match(r'{\s*"', text) or any(re.match(r"[\"' \t\r\n]*:", text[at + len(a):])
                                             for a in AXES if (at := text.lower().find(a)) >= 0):
            raise Invalid
        return None
    inner = [value for key, value in pairs if key.lower() == "scores"]
    if len(inner) > 1 or (inner and not (isinstance(inner[0], list) and
                                         all(isinstance(p, tuple) for p in inner[0]))):
        raise Invalid
    if inner and inner[0] == [] and '[]' in text.replace(" ", ""):
        raise Invalid
    found = {}
    for key, value in (inner[0] if inner else pairs):
        key = key.lower().replace(" ", "_")
        key = ALIASES.get(key, key)
        if prompt == "V-03" and key == "age_accuracy":
            key = "age_drift"
        if key not in AXES:
            continue
        if isinstance(value, bool):
            raise Invalid
        if isinstance(value, str):
            if value not in list("12345"):
                raise Invalid
            value = int(value)
        if not isinstance(value, (int, float)) or value not in (1, 2, 3, 4, 5):
            raise Invalid
        if found.setdefault(key, int(value)) != int(value):
            raise Invalid
    if not found and not inner:
        return None
    if set(found) != set(AXES):
        raise Invalid
    return "".join(str(found[a]) for a in AXES)


def verdict(prompt, text):
    """The five digits, or "" for an invalid answer: of several that answer the last that is marked and what follows it
    must agree."""
    try:
        text = behind_thoughts(text)
        said, end = None, 0
        for start, stop in list(objects(text)):
            try:
                digits = of_object(prompt, text[start:stop])
            except Invalid:
                digits = ""
            if digits is None:
                continue
            if said is None or is_marked(text[end:start]):
                said = digits
            elif said != digits:
                said = ""
            end = stop
        return said or ""
    except Invalid:
        return ""


def spelled(r, axis, prompt):
    names = [axis] * 4 + [k for k, v in ALIASES.items() if v == axis]
    if axis == "age_drift" and (prompt == "V-03" or r.random() < 0.03):
        names += ["age_accuracy"] * 3
    name = r.choice(names)
    return "".join(c.upper() if r.random() < 0.5 else c for c in name) if r.random() < 0.3 else name


def value(r):
    level = r.randint(1, 5)
    if r.random() < 0.05:
        return r.choice([0, 6, 3.5, "4/5", None, "", -1, True, [3], {"v": 3}, "4.0", "high", 55])
    return r.choice([level] * 8 + [str(level), float(level)])


def one_answer(r):
    prompt = r.choice(["O-01", "V-03", "V-03", "V-10", "O-07"])
    scores = {spelled(r, a, prompt): value(r) for a in AXES}
    if r.random() < 0.12:
        axis = r.choice(AXES)
        scores[spelled(r, axis, prompt)] = r.choice([r.randint(1, 5)] + [v for v in scores.values()])
    if r.random() < 0.06:
        scores.pop(r.choice(list(scores)))
    if r.random() < 0.2:
        scores["overall"] = r.choice([7, "fine", None])
    items = list(scores.items())
    r.shuffle(items)
    scores = dict(items)
    kind = r.random()
    if kind < 0.75:
        answer = {"observations": r.choice([{}, {"edit": "a } in a string {"}, {"skin": "\"same\"", "n": [1, {"x": 2}]}]),
                  r.choice(["scores"] * 5 + ["Scores"]): scores, "evidence_summary": r.choice(["", "naïve — “ok”", "\\ {"])}
    elif kind < 0.97:
        answer = scores
    else:
        answer = {"scores": r.choice([[], None, list(scores.values())]), **scores}
    text = json.dumps(answer, ensure_ascii=r.random() < 0.5, indent=r.choice([None, None, 1]))
    if r.random() < 0.1:
        at = r.randrange(len(text))
        text = r.choice([text[:at], text[:at] + r.choice("{}\",:'x") + text[at:], text[:at] + text[at + 1:]])
    wrap = r.random()
    if wrap < 0.25:
        text = "```json\n" + text + "\n```"
    elif wrap < 0.35:
        text = "Here is my answer:\n```\n" + text + "\n```\nThank {you}."
    elif wrap < 0.45:
        text = "  \n" + text + r.choice(["", " Done.", "\n{}"])
    return [prompt, text, verdict(prompt, text)]


def one_of_several(r):
    """Drafts in thoughts, answers beside each other, raw line ends, trailing commas."""
    prompt, text, _ = one_answer(r)
    other = one_answer(r)[1]
    if r.random() < 0.3:
        other = text.replace(str(r.randint(1, 5)), str(r.randint(1, 5)), 1)
    begin, close = r.choice(THOUGHTS)
    marks = ["\n", "\nOr:\n", "\nFinal answer:\n", "\n**Corrected**:\n", "\nThis is not final:\n", "\nFinally, ",
             "\nAn updated draft:\n", "\nI don't think so. Revised:\n"]
    kind = r.random()
    if kind < 0.3:
        text = begin + "Perhaps " + other + " no." + r.choice([close, close, close + "\n", ""]) + text
    elif kind < 0.4:
        text = r.choice([close + text, text + close, text + begin + "hm", begin + "a" + close + text + begin + "b" + close + text])
    elif kind < 0.75:
        text = other + r.choice(marks) + text + r.choice(["", "", r.choice(marks) + other])
    else:
        at = r.randrange(1, len(text))
        text = re.sub(r"(?<=[\d\"}\]])(\s*})", r",\1", text, count=r.randint(0, 2))
        text = text.replace("“ok”", "ok\nand\tmore", 1) if r.random() < 0.5 else text[:at] + r.choice(",\n\t") + text[at:]
    return [prompt, text, verdict(prompt, text)]


def judge_answers(folder):
    r = random.Random(7)
    cases = [one_answer(r) for _ in range(260)] + [one_of_several(r) for _ in range(400)]
    with open(folder + "/judge_answers.json", "w", encoding="utf-8", newline="\n") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n]\n")


def fnv(rows):
    h = 0xcbf29ce484222325
    for row in rows:
        for cell in row:
            h = fnv1a64(cell.encode() + b"\x1f", h)
        h = fnv1a64(b"\x1e", h)
    return h


def csv_cases(folder):
    r = random.Random(11)
    pieces = ["a", "4", "x y", "é", "“q”", "", "", "-1.5e3", "NA", "null", ",", '"', "\n", '""', " ", "日本", "#", "\t"]
    out = bytearray()
    for case in range(200):
        n_columns, n_rows = r.randint(1, 6), r.randint(0, 7)
        rows = [["c%d%s" % (i, r.choice(["", " x", ",", '"'])) for i in range(n_columns)]]
        for _ in range(n_rows):
            rows.append(["".join(r.choice(pieces) for _ in range(r.choice([0, 1, 1, 2, 3]))) for _ in range(n_columns)])
            if n_columns == 1 and rows[-1] == [""]:
                rows[-1] = ["one"]  # pandas passes over an empty line
        end, lines = r.choice(["\n", "\r\n"]), []
        for row in rows:
            cells = []
            for cell in row:
                must = any(c in cell for c in ',"\n\r')
                # pandas takes leading spaces of quoted cells as ours do; quoting is otherwise free
                cells.append('"' + cell.replace('"', '""') + '"' if must or r.random() < 0.25 else cell)
            lines.append(",".join(cells))
        text = end.join(lines) + (end if r.random() < 0.8 else "")
        data = (b"\xef\xbb\xbf" if r.random() < 0.15 else b"") + text.encode()
        frame = pandas.read_csv(io.BytesIO(data), dtype=str, keep_default_na=False, na_filter=False, encoding="utf-8",
                                skip_blank_lines=False)
        read = [list(frame.columns)] + [[str(v) for v in row] for row in frame.itertuples(index=False)]
        assert read == rows, (data, read, rows)
        out += b"%d %d %d %016x\n" % (len(data), len(read), n_columns, fnv(read)) + data + b"\n"
    with open(folder + "/csv_cases.bin", "wb") as f:
        f.write(out)


RACES = ["White", "Black", "EastAsian", "SoutheastAsian", "Indian", "MiddleEastern", "Latino"]
AGES = ["20s", "30s", "40s", "50s", "60s", "70plus"]
GROUPS = ["Young", "Young", "Middle", "Middle", "Old", "Old"]
MODELS = ["flux", "step1x", "qwen"]


def sampling(folder):
    """What pandas samples from n of the 5,040 outputs in an order of ours: DataFrame.sample(random_state) in every group
    of groupby, as the printed code does it."""
    lines = []
    for case in range(200):
        stream = Stream("sampling|%d" % case)
        order = list(range(5040))
        stream.shuffle(order)
        n = 1 + stream.bounded(5040 if case < 20 else 700)
        by_model, per_stratum = stream.bounded(2), 1 + stream.bounded(9)
        seed = 42 if case < 100 else stream.bounded(2**32)
        rows = []
        for x in order[:n]:
            model, source = x // 1680, x // 20 % 84
            rows.append((RACES[source // 12], ["Male", "Female"][source // 6 % 2], GROUPS[source % 6], MODELS[model]))
        frame = pandas.DataFrame(rows, columns=["race", "gender", "age_group", "model"])
        frame["age_group"] = pandas.Categorical(frame["age_group"], ["Young", "Middle", "Old"], ordered=True)
        keys = ["race", "gender", "age_group"] + ["model"] * by_model
        drawn = []
        for _, group in frame.groupby(keys, observed=True, sort=True):
            drawn += list(group.sample(n=min(per_stratum, len(group)), random_state=seed).index)
        lines.append("%d,%d,%016x" % (case, len(drawn), fnv1a64("".join("%d," % i for i in drawn).encode())))
    with open(folder + "/sampling.csv", "w") as f:
        f.write("# case, items drawn, FNV-1a 64 of their input positions in the order drawn\n")
        f.write("\n".join(lines) + "\n")


def main():
    folder = sys.argv[1]
    judge_answers(folder)
    csv_cases(folder)
    sampling(folder)
    with open(folder + "/scores_versions.txt", "w") as f:
        f.write("python %s\nnumpy %s\npandas %s\n" % (platform.python_version(), numpy.__version__, pandas.__version__))


if __name__ == "__main__":
    main()
