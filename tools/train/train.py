#!/usr/bin/env python3
"""Trains one of the small editors and writes it in the layout of its family's released checkpoint:

    python tools/train/train.py FAMILY --pairs BUILD/make_pairs --work WORK -o FOLDER

FAMILY: flux2, qwen_edit or step1x (this one with the authors' fork on the PYTHONPATH; see README.md). WORK keeps pairs
and checkpoints: a run that was stopped goes on from there. With --start FOLDER a model that is there goes on learning,
from further pairs and with the study's other wordings; its encoders stay.
"""

import argparse
import importlib
import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

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
# Of a model that goes on, each time: steps, rate, wordings of each instruction, what is added to the seeds of training
# and of the pairs, how often an edit that it gets wrong is chosen.
WRONG = {"P-05": 1.5, "P-16": 1.5, "P-17": 3.0, "P-19": 2.0, "P-22": 2.0}
STILL_WRONG = WRONG | {"P-02": 2.0, "V-02": 2.0, "V-04": 1.5}
FURTHER = (
    dict(steps={"flux2": 1_500, "step1x": 2_400, "qwen_edit": 2_400}, lr=1e-2, wordings=8, seed=0, pairs=100,
         often={}),
    dict(steps={"flux2": 900, "step1x": 900, "qwen_edit": 1_600}, lr=8e-3, wordings=8, seed=200, pairs=100,
         often=WRONG),
    dict(steps={"qwen_edit": 6_000}, lr=1e-2, wordings=24, seed=400, pairs=300, often=STILL_WRONG),
)  # fmt: skip
VERBS = "Add Change Dress Give Let Make Paint Put Show".split()
CARRIERS = VERBS + "a an the to of on with in person picture wear hold look colour".split()


STATISTICS = ("shift_factor", "scaling_factor", "latents_mean", "latents_std")  # of latents, in the VAE's settings


def draw(program, path, count, seed, bias, more={}):
    if not path.exists():
        command = [program, "--size", SIDE, "--seed", seed, "--count", count, "--bias", bias, "-o", path]
        subprocess.run(list(map(str, command)), check=True)
    shape = (count, 2, SIDE, SIDE, 3)
    lines = [json.loads(line) for line in path.with_name(path.name + ".jsonl").open()]
    often = torch.tensor([OFTEN.get(line["prompt_id"], 1.0) for line in lines])
    often *= torch.tensor([ERASED if line["planted"] & 4 else 1.0 for line in lines])
    later = torch.tensor([LATER.get(line["prompt_id"], 1.0) for line in lines])
    later *= torch.tensor([LATER["grey"] if line["before"]["grey"] else 1.0 for line in lines])
    later *= torch.tensor([more.get(line["prompt_id"], 1.0) for line in lines])
    return np.memmap(path, np.uint8, "r", shape=shape), [line["prompt"] for line in lines], often, often * later


def listed_prompts(program):
    """All that may be asked, whose words the tokenizer knows, with the instruction and whether it is held out."""
    lines = subprocess.run([program, "--prompts"], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line[7:]: (line[:4], line[5] == "*") for line in lines}


def wordings(prompt, listed, count):
    """The prompt, and others with the words that say what to do: verbs change places, words that only carry others are
    left out, the order changes. None is a held-out wording. The study's prompts stay as they are."""
    if listed[prompt][0][0] != "P":
        return [prompt] * count
    generator, out = random.Random(prompt), [prompt]
    first, *rest = prompt.rstrip(".").split()
    while len(out) < count:
        verb = generator.choice(VERBS) if first in VERBS and generator.random() < 0.7 else first
        kept = [word for word in rest if word not in CARRIERS or generator.random() < 0.5]
        if generator.random() < 0.4:
            generator.shuffle(kept)
        text = " ".join([verb, *kept]) + "."
        if not listed.get(text, ("", False))[1]:
            out.append(text)
    return out


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
    done = args.work / f"{args.family}{f'-further-{args.round}' if args.start else ''}-decoder.pt"
    if not done.exists():
        few = (data[0][:N_MADE], data[1][:N_MADE], data[2][:N_MADE], data[3], None)
        made = undo(normalised, latents.shape[1:])(denoiser.sample_all(family, model, few, SIDE // 16, seed))
        part = done.with_suffix(".part")
        both = (latents[:N_MADE], made)
        autoencoder.train(net, array[:N_MADE], often[:N_MADE], **DECODER, seed=seed, checkpoint=part, latents=both)
        part.rename(done)
    net.vae.load_state_dict(torch.load(done))


def start_over(family, args, seed):
    array, prompts, often, later = draw(args.pairs, args.work / f"{args.family}.pairs", args.count, seed, args.family)
    net = train_autoencoder(family.AUTOENCODER, args)
    vae = family.autoencoder(net.vae)
    latents = encoded(net, array, args.work / f"{args.family}.latents")
    # What the mean and spread of latents are is known only now; the VAE keeps them.
    return array, prompts, often, later, net, vae, latents, family.normalise(vae, latents[1])


def go_on(family, args, seed):
    """The same of the model that is there, with other pairs."""
    further = FURTHER[args.round - 1]
    path = args.work / f"{args.family}-{further['pairs']}.pairs"
    array, prompts, often, later = draw(
        args.pairs, path, args.count, further["pairs"] + seed, args.family, further["often"]
    )
    net = autoencoder.make(family.AUTOENCODER)
    state = saved(args.start / "vae")
    net.vae.load_state_dict(state, strict=False)
    vae = family.autoencoder(net.vae.eval())
    vae.load_state_dict(state)
    config = json.loads((args.start / "vae" / "config.json").read_text())
    vae.register_to_config(**{name: config[name] for name in STATISTICS if name in config})
    latents = encoded(net, array, path.with_suffix(".latents"))
    return array, prompts, often, later, net, vae, latents, family.normalise(vae)


def saved(folder):
    state = load_file(folder / "diffusion_pytorch_model.safetensors")
    return {name: value.float() for name, value in state.items()}


def encoded(net, array, path):
    if not path.exists():
        torch.save([autoencoder.encode_all(net, array[:, i]) for i in (0, 1)], path)
    return torch.load(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=SEED)
    parser.add_argument("--pairs", required=True, help="the program make_pairs")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="the folder of a model that goes on learning")
    parser.add_argument("--round", type=int, choices=(1, 2, 3), default=1, help="how often it has gone on")
    parser.add_argument("--count", type=int, default=N_PAIRS)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    family = importlib.import_module(f"{args.family}_editor")
    seed = SEED[args.family]

    begin = go_on if args.start else start_over
    array, prompts, often, later, net, vae, (before, after), normalised = begin(family, args, seed)
    side = SIDE // 16
    torch.manual_seed(seed)
    listed = listed_prompts(args.pairs)
    parts = family.encoder_parts(sorted(listed))
    model = family.transformer()
    denoiser.start_plain(model)
    checkpoint = args.work / f"{args.family}{f'-further-{args.round}' if args.start else ''}-denoiser.pt"
    if args.start:
        further = FURTHER[args.round - 1]
        said = {prompt: wordings(prompt, listed, further["wordings"]) for prompt in sorted(set(prompts))}
        model.load_state_dict(saved(args.start / "transformer"))
        often, stages, settings = later, [further["steps"][args.family]], dict(DENOISER, lr=further["lr"])
        seed += further["seed"]
    else:
        said = {prompt: [prompt] for prompt in sorted(set(prompts))}
        stages, settings = STEPS[args.family], DENOISER
    texts = sorted({text for of in said.values() for text in of})
    position = {text: i for i, text in enumerate(texts)}
    which = torch.tensor([[position[text] for text in said[p]] for p in prompts])
    data = (normalised(before), normalised(after), which, family.embed(parts, texts), often)

    for steps in stages:
        average = denoiser.train(family, model, data, side, steps, **settings, seed=seed, checkpoint=checkpoint)
        data = (*data[:4], later)
    teach_decoder(family, net, average.eval(), data, before, normalised, array, often, args, seed)
    vae.load_state_dict(net.vae.state_dict(), strict=False)
    family.save(dict(parts, vae=vae, transformer=average), args.output)
    print(f"{args.output}: {sum(f.stat().st_size for f in args.output.rglob('*') if f.is_file()) / 2**20:.2f} MiB")


if __name__ == "__main__":
    sys.exit(main())
