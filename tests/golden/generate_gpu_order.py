#!/usr/bin/env python3
"""Adds to the goldens of a whole family what the reference makes in bf16 when it sums as GPUs do:

    python tests/golden/generate_gpu_order.py flux2|qwen_edit|step1x [CONFIG/CASE...]

after that family's generator, and with its PYTHONPATH. Of bf16 runs with attention in blocks of 64 keys
(flash_attention.py), all but one with dithered products, error.gpu.STAGE holds the geometric mean and the largest error
against the stored f32 stage; bf16.gpu.STAGE is the first run's, where the file has bf16.STAGE. See README.md.
"""

import argparse
import contextlib
import json
from pathlib import Path

from golden_file import EXACT, LEAST_ERROR, prepare, relative_error, save_case, thinned, wanted

# Runs beside the first. A few of Step1X-Edit's drift far away: in 25 there may be none of them, in 100 there are some.
N_DITHERED = {"flux2": 24, "qwen_edit": 24, "step1x": 99}
DATA = Path(__file__).parent / "data"


def flux2(config, folder):
    """The family's cases by name, and run(case, images) -> stages."""
    import torch
    from flux2_cases import CASES
    from flux2_models import CONFIGS
    from flux2_record import run
    from generate import fill_length

    cases = {name: dict(case, out_layers=CONFIGS[config]["out_layers"]) for name, case in CASES[config].items()}
    for case in cases.values():
        if case.pop("fill", False):
            case["max_sequence_length"] = fill_length(folder, case)
    return cases, lambda case, images: run(folder, case, torch.bfloat16, images)


def qwen_edit(config, folder):
    import torch
    from qwen_edit_cases import CASES
    from qwen_edit_record import run

    return CASES[config], lambda case, images: run(config, folder, case, torch.bfloat16, images)


def step1x(config, folder):
    from generate_step1x import HIDDEN, found_versions, without_thinker

    without_thinker()
    found_versions()
    import torch
    from step1x_cases import CASES
    from step1x_record import run

    cases = {name: dict(case, hidden=HIDDEN) for name, case in CASES[config].items()}
    return cases, lambda case, images: run(config, folder, case, torch.bfloat16, images)[0]


def runs_of(run, case, images, n_dithered):
    from flash_attention import flash_attention
    from recorder import dithered

    for seed in range(-1, n_dithered):
        with flash_attention(), dithered(seed) if seed >= 0 else contextlib.nullcontext():
            yield run(case, images)


def add(path, run, case, n_dithered):
    import torch
    from PIL import Image
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys() if ".gpu." not in name}
    images = [Image.open(path.parent / image) for image in case.get("images", ())]
    errors = {}
    for i, stages in enumerate(runs_of(run, case, images, n_dithered)):
        for name, value in stages.items():
            if name.endswith(EXACT) or not wanted(case, name):
                continue
            stored_name, stored = thinned(case, name, value)
            errors.setdefault(stored_name, []).append(relative_error(stored, tensors[stored_name]))
            bf16_name, stored = thinned(case, name, value, "bf16.")
            if i == 0 and bf16_name in tensors:
                tensors[bf16_name.replace("bf16.", "bf16.gpu.", 1)] = stored.contiguous()
    for name, values in errors.items():
        values = torch.tensor(values, dtype=torch.float32)
        largest = values.max().clamp(min=LEAST_ERROR)
        tensors[f"error.gpu.{name}"] = torch.stack([values.log().mean().exp(), largest])
    save_case(path, tensors, metadata)
    shown = {n: [round(v.item(), 6) for v in t] for n, t in tensors.items() if n.startswith("error.gpu.")}
    print(path.relative_to(DATA), json.dumps(shown), flush=True)


def main():
    prepare()
    parser = argparse.ArgumentParser()
    parser.add_argument("family", choices=("flux2", "qwen_edit", "step1x"))
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args()
    for folder in sorted((DATA / args.family).iterdir()):
        cases, run = globals()[args.family](folder.name, folder / "checkpoint")
        for name, case in cases.items():
            if not args.cases or f"{folder.name}/{name}" in args.cases:
                add(folder / "cases" / f"{name}.safetensors", run, case, N_DITHERED[args.family])


if __name__ == "__main__":
    main()
