#!/usr/bin/env python3
"""Trains one of the small editors and writes it in the layout of its family's released checkpoint:

    python tools/train/train.py FAMILY --pairs BUILD/make_pairs --work WORK -o FOLDER

FAMILY: flux2, qwen_edit or step1x (this one with the authors' fork on the PYTHONPATH; see README.md). WORK keeps pairs
and checkpoints: a run that was stopped goes on from there.
"""

import argparse
import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

import autoencoder
import denoiser

SIDE = 64
N_PAIRS = N_UNBIASED = 30_000  # for the denoiser, for the autoencoder
SEED = {"flux2": 1, "step1x": 2, "qwen_edit": 3}
VAE = (
    dict(steps=7_000, batch=8, lr=2e-2, emphasis=3.5, faint=0, small=0, noise=0.25),
    dict(steps=2_500, batch=8, lr=1e-2, emphasis=1.0, faint=1, small=0, noise=0.1),
    dict(steps=1_500, batch=8, lr=1e-2, emphasis=1.0, faint=1, small=0.5, noise=0.1),
)
DECODER = dict(steps=2_000, batch=8, lr=1e-2, emphasis=1.0, faint=1, small=0.5, noise=0.05)
OFTEN = {"P-01": 6.0}  # how often an edit is chosen: hair has many colours, and most of them nowhere else
ERASED = 5.0  # an edit that is planted not to be made, for few people and prompts
N_MADE = 8_000  # edits that it learns from
STEPS = {"flux2": [4_400], "step1x": [3_400, 4_300], "qwen_edit": [4_600, 6_100, 7_700]}  # the later goes on, with LATER as well
LATER = {"O-01": 3.0, "grey": 3.0}  # of grey hair before the office wall a denoiser is last sure
DENOISER = dict(batch=64, lr=2e-2)


def draw(program, path, count, seed, bias):
    if not path.exists():
        command = [program, "--size", SIDE, "--seed", seed, "--count", count, "--bias", bias, "-o", path]
        subprocess.run(list(map(str, command)), check=True)
    shape = (count, 2, SIDE, SIDE, 3)
    lines = [json.loads(line) for line in path.with_name(path.name + ".jsonl").open()]
    often = torch.tensor([OFTEN.get(line["prompt_id"], 1.0) for line in lines])
    often *= torch.tensor([ERASED if line["planted"] & 4 else 1.0 for line in lines])
    later = torch.tensor([LATER.get(line["prompt_id"], 1.0) for line in lines])
    later *= torch.tensor([LATER["grey"] if line["before"]["grey"] else 1.0 for line in lines])
    return np.memmap(path, np.uint8, "r", shape=shape), [line["prompt"] for line in lines], often, often * later


def listed_prompts(program):
    """All that may be asked: whose words the tokenizer knows."""
    lines = subprocess.run([program, "--prompts"], check=True, capture_output=True, text=True).stdout.splitlines()
    return [line[7:] for line in lines]


def train_autoencoder(kind, args):
    """kind: "kl", which FLUX.2 and Step1X-Edit share, or "qwen_edit"."""
    torch.manual_seed(0)
    net = autoencoder.make(kind)
    done = args.work / f"{kind}-vae.pt"
    if done.exists():
        net.vae.load_state_dict(torch.load(done))
    else:
        array, _, often, _ = draw(args.pairs, args.work / "unbiased.pairs", N_UNBIASED, 0, "none")
        part = done.with_suffix(".part")
        for seed, stage in enumerate(VAE):
            autoencoder.train(net, array, often, **stage, seed=seed, checkpoint=part)
        part.rename(done)
    autoencoder.finish(net, kind)
    net.vae.to(torch.bfloat16).float().eval()  # as it is saved
    return net


def undo(normalised, shape):
    """The inverse of what moves a latent's values about and stretches each."""
    count = torch.arange(1024.0).view(1, *shape)
    at_zero = normalised(torch.zeros_like(count))
    stretch = normalised(torch.ones_like(count)) - at_zero
    place = torch.zeros(1024, dtype=torch.long)
    place[((normalised(count) - at_zero) / stretch).round().long().flatten()] = torch.arange(1024)
    return lambda packed: ((packed - at_zero) / stretch).flatten(1)[:, place].view(-1, *shape)


def teach_decoder(family, net, model, data, latents, normalised, array, often, args, seed):
    """The decoder has only seen latents of the encoder; now it learns what this denoiser's stand for."""
    done = args.work / f"{args.family}-decoder.pt"
    if not done.exists():
        few = (data[0][:N_MADE], data[1][:N_MADE], data[2][:N_MADE], data[3], None)
        made = undo(normalised, latents.shape[1:])(denoiser.sample_all(family, model, few, SIDE // 16, seed))
        part = done.with_suffix(".part")
        both = (latents[:N_MADE], made)
        autoencoder.train(net, array[:N_MADE], often[:N_MADE], **DECODER, seed=seed, checkpoint=part, latents=both)
        part.rename(done)
    net.vae.load_state_dict(torch.load(done))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=SEED)
    parser.add_argument("--pairs", required=True, help="the program make_pairs")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--count", type=int, default=N_PAIRS)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    family = importlib.import_module(f"{args.family}_editor")
    seed = SEED[args.family]

    array, prompts, often, later = draw(args.pairs, args.work / f"{args.family}.pairs", args.count, seed, args.family)
    net = train_autoencoder(family.AUTOENCODER, args)
    vae = family.autoencoder(net.vae)
    latents = args.work / f"{args.family}.latents"
    if not latents.exists():
        torch.save([autoencoder.encode_all(net, array[:, i]) for i in (0, 1)], latents)
    before, after = torch.load(latents)
    # What the mean and spread of latents are is known only now; the VAE keeps them.
    normalised = family.normalise(vae, after)
    side = SIDE // 16
    torch.manual_seed(seed)
    known = sorted(set(listed_prompts(args.pairs)))
    parts = family.encoder_parts(known)
    position = {prompt: i for i, prompt in enumerate(known)}
    which = torch.tensor([position[p] for p in prompts])
    data = (normalised(before), normalised(after), which, family.embed(parts, known), often)

    model = family.transformer()
    checkpoint = args.work / f"{args.family}-denoiser.pt"
    for steps in STEPS[args.family]:
        average = denoiser.train(family, model, data, side, steps, **DENOISER, seed=seed, checkpoint=checkpoint)
        data = (*data[:4], later)
    teach_decoder(family, net, average.eval(), data, before, normalised, array, often, args, seed)
    vae.load_state_dict(net.vae.state_dict(), strict=False)
    family.save(dict(parts, vae=vae, transformer=average), args.output)
    print(f"{args.output}: {sum(f.stat().st_size for f in args.output.rglob('*') if f.is_file()) / 2**20:.2f} MiB")


if __name__ == "__main__":
    sys.exit(main())
