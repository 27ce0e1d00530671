#!/usr/bin/env python3
"""Writes data/schedules.txt: diffusers' sigmas and timesteps of few-step presets and of given sigmas.

    python tests/golden/generate_schedules.py

preset NAME TOKENS SIGMAS: hexadecimal bits of the floats. given CONFIG TOKENS SUM: of the lists that lists() makes, as
test_flow_match.c makes them too."""

import math
import pathlib
import warnings

import diffusers
import numpy as np
import torch
from diffusers import FlowMatchEulerDiscreteScheduler
from diffusers.pipelines.flux2.pipeline_flux2 import compute_empirical_mu
from diffusers.pipelines.qwenimage.pipeline_qwenimage_edit_plus import calculate_shift
from generate_flow_match import CONFIGS, FLUX2, bits, hexes, weighted_sum

QWEN = dict(
    num_train_timesteps=1000, use_dynamic_shifting=True, time_shift_type="exponential", shift=1.0,
    base_image_seq_len=256, max_image_seq_len=8192, base_shift=0.5, max_shift=0.9, shift_terminal=0.02,
)  # fmt: skip
# ModelTC/Qwen-Image-Lightning, generate_with_diffusers.py
LIGHTNING = QWEN | dict(base_shift=math.log(3), max_shift=math.log(3), shift_terminal=None)
# The model card of fal/FLUX.2-dev-Turbo
TURBO = [1.0, 0.6509, 0.4374, 0.2932, 0.1893, 0.1108, 0.0495, 0.00031]
# Those whose mu is a line through two numbers of tokens.
LINEAR = {"qwen": QWEN, "lightning": LIGHTNING, "step1x": FLUX2}
N_LISTS = 1000


def lists():
    state = 1
    for k in range(N_LISTS):
        n, out = 1 + k % 40, []
        for i in range(n):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            out.append((n - i - 0.999 * ((state >> 40) / 2**24)) / n)
        yield out


def sigmas_of(scheduler, given, mu):
    scheduler.set_timesteps(sigmas=np.array(given), mu=mu)
    return scheduler.sigmas.numpy(), scheduler.timesteps.numpy()


def mu_of(config, tokens, n):
    if config not in LINEAR:
        return compute_empirical_mu(tokens, n)
    c = LINEAR[config]
    return calculate_shift(tokens, c["base_image_seq_len"], c["max_image_seq_len"], c["base_shift"], c["max_shift"])


def main():
    warnings.simplefilter("ignore")
    lines = [f"# diffusers {diffusers.__version__}, torch {torch.__version__}, tests/golden/generate_schedules.py"]
    for n in (4, 8):
        scheduler = FlowMatchEulerDiscreteScheduler(**LIGHTNING)
        for tokens in (64, 1024, 4096):
            mu = calculate_shift(tokens, 256, 8192, math.log(3), math.log(3))
            lines.append(f"preset qwen-lightning-{n} {tokens} {hexes(sigmas_of(scheduler, np.linspace(1, 1 / n, n), mu)[0])}")
    scheduler = FlowMatchEulerDiscreteScheduler(**FLUX2)
    for tokens in (1024, 4096):
        lines.append(f"preset flux2-turbo-8 {tokens} {hexes(sigmas_of(scheduler, TURBO, compute_empirical_mu(tokens, 8))[0])}")
    for name, config in (CONFIGS | LINEAR).items():
        scheduler = FlowMatchEulerDiscreteScheduler(**config)
        for tokens in (64, 1024, 4096):
            found = []
            for given in lists():
                if config["shift_terminal"] and len(given) < 2:
                    continue
                found += [bits(a) for a in sigmas_of(scheduler, given, mu_of(name, tokens, len(given)))]
            lines.append(f"given {name} {tokens} {weighted_sum(found)}")
    path = pathlib.Path(__file__).parent / "data" / "schedules.txt"
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
