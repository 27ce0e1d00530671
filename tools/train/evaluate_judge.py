#!/usr/bin/env python3
"""Has both small judges look at drawings that training never saw, by `likeness judge run`, and counts how often their
scores are those that are due; beside them the pixel judge's:

    python tools/train/evaluate_judge.py --build BUILD --work WORK [--mode direct] FOLDER...

Scores are due by the drawings' numbers (`make_pairs --faults`).
"""

import argparse
import json
import subprocess
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import judges
from train_judge import draw, kappa

SEED, OF_EACH_PROMPT, FAULTS = 2000, 24, 0.7


def item_of(line):
    race, gender, age = line["source"].split("_")
    return f"qwen_{age}_{gender}_{race}_{line['prompt_id']}"


def write_items(program, work):
    """The first drawing of each source under each prompt, as an audit has one."""
    arrays, lines = draw(program, work, SEED, OF_EACH_PROMPT, FAULTS, apart=True)
    pictures, due = np.concatenate(arrays), {}
    with (work / "images.jsonl").open("w") as out:
        for pair, line in zip(pictures, lines):
            item = item_of(line)
            if item in due:
                continue
            due[item] = dict(zip(judges.AXES, line["scores"]))
            paths = [f"{item}-{name}.png" for name in ("source", "edited")]
            for picture, path in zip(pair, paths):
                Image.fromarray(picture).save(work / path)
            out.write(json.dumps(dict(item_id=item, source=paths[0], edited=paths[1])) + "\n")
    return due


def count(name, text, due):
    said = {}
    for line in text.splitlines():
        record = json.loads(line)
        if record.get("scores"):
            said[record["item_id"]] = record["scores"]
    print(f"{name}: {len(said)} of {len(due)} have scores")
    for axis in judges.AXES:
        pairs = [(said[i][axis] - 1, due[i][axis] - 1) for i in said if said[i].get(axis)]
        if pairs:
            a, b = torch.tensor(pairs).T
            away = (a - b).abs()
            print(f"  {axis:13} exact {(away == 0).double().mean():.3f}  within one {(away <= 1).double().mean():.3f}  "
                  f"kappa {kappa(a, b):.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--mode", default="direct")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    due = write_items(args.build / "make_pairs", args.work)
    likeness, pairs = args.build / "likeness", args.work / "images.jsonl"
    seen = subprocess.run([likeness, "judge", "--pairs", pairs], capture_output=True, text=True)
    count("pixel judge", seen.stdout, due)
    for slot, folder in zip(("primary", "secondary"), args.folders):
        out = args.work / f"{slot}-{args.mode}.jsonl"
        out.unlink(missing_ok=True)
        subprocess.run([likeness, "judge", "run", "-q", "--slot", slot, "-m", folder, "--pairs", pairs,
                        "--mode", args.mode, "-o", out], check=True)
        count(f"{folder.name}, {args.mode}", out.read_text(), due)


if __name__ == "__main__":
    main()
