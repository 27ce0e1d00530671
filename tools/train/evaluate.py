#!/usr/bin/env python3
"""Edits drawings that training never saw with `likeness edit`, and has make_measure read the results back:

    python tools/train/evaluate.py FAMILY FOLDER --build BUILD [--count 1000] [--held-out] [--options "--quantize q8"]

Prints the share of right edits; all lines of make_measure stay in --work.
"""

import argparse
import json
import subprocess
from pathlib import Path

import numpy as np
from PIL import Image

SIDE = 64
OPTIONS = {  # as tools/editors/models.json says
    "flux2": "--steps 4 --guidance-scale 4 --max-sequence-length 48",
    "step1x": "--steps 4 --allow-steps --true-cfg-scale 1 --size-level 64",
    "qwen_edit": "--steps 4 --true-cfg-scale 1 --vae-image-size 4096 --condition-image-size 4096 -W 64 -H 64",
}
SEED = 1000  # training's are below


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=OPTIONS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--options", default="", help="further ones of edit")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    pairs = args.work / "pairs"
    draw = [args.build / "make_pairs", "--seed", SEED, "--count", args.count, "--bias", args.family, "-o", pairs]
    subprocess.run(list(map(str, draw + ["--held-out"] * args.held_out)), check=True)
    before = np.fromfile(pairs, np.uint8).reshape(-1, 2, SIDE, SIDE, 3)[:, 0]
    lines = [json.loads(line) for line in (args.work / "pairs.jsonl").open()]

    jobs = args.work / "jobs.jsonl"
    with jobs.open("w") as out:
        for i, (picture, line) in enumerate(zip(before, lines)):
            source = args.work / f"{i}-before.png"
            Image.fromarray(picture).save(source)
            job = dict(images=[str(source)], prompt=line["prompt"], output=str(args.work / f"{i}-after.png"))
            out.write(json.dumps(job) + "\n")
    command = [args.build / "likeness", "edit", "-q", "-m", args.folder, "--overwrite", "--jobs", jobs]
    subprocess.run(list(map(str, command + OPTIONS[args.family].split() + args.options.split())), check=True)
    edited = [np.array(Image.open(args.work / f"{i}-after.png").convert("RGB")) for i in range(len(lines))]
    (args.work / "edited").write_bytes(np.stack(edited).tobytes())
    measure = [args.build / "make_measure", "--raw", pairs, "--edited", args.work / "edited"]
    with (args.work / "measured.jsonl").open("w") as out:
        subprocess.run(list(map(str, measure)), stdout=out, check=True)


if __name__ == "__main__":
    main()
