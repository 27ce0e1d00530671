#!/usr/bin/env python3
"""Makes goldens of pictures with LoRA: data/sd/CONFIG/loras and cases/f32_lora_*.safetensors, on checkpoints that are there:
python tests/golden/generate_lora_sd.py

The reference is diffusers' load_lora_weights and set_adapters, unfused, in f32; cases bf16_lora have the errors of its runs in
bf16 too, as all goldens of generate_sd.py have. kohya.safetensors has a part of every kind of
module of UNet and text encoders, filters too, with alpha unlike the rank, as kohya-ss names them: of sd15 after diffusers'
names, of sdxl after the authors' own (LDM). peft.safetensors has the attention of all, rank and alpha in its metadata.
"""

import argparse
import json
from importlib.metadata import version
from pathlib import Path

import generate_sd
from golden_file import check_versions, prepare, print_errors, save_case, set_modes, sort_metadata, version_text

PEFT = "0.21.2"
CASE = dict(prompt="A photo of a thief!!! in a store", negative_prompt="blurry", height=64, width=64, steps=2, seed=7)
CASES = {
    "sd15": {
        "kohya": dict(CASE, guidance=2.0, loras="kohya.safetensors=0.8"),
        "two": dict(CASE, guidance=2.0, loras="peft.safetensors=1.0 kohya.safetensors=-0.3"),
        "bf16": dict(CASE, guidance=2.0, loras="peft.safetensors=1.0"),
    },
    "sdxl": {
        "kohya": dict(CASE, guidance=5.0, loras="kohya.safetensors=0.8"),
        "two": dict(CASE, guidance=5.0, loras="kohya.safetensors=0.7 peft.safetensors=0.3"),
        "bf16": dict(CASE, guidance=5.0, loras="peft.safetensors=1.0"),
    },
}
SHARE = 0.1  # of |W| that |s B A| has
KOHYA = (
    "conv_in", "conv1", "conv_shortcut", "downsamplers.0.conv", "proj_in", "proj_out", "time_emb_proj", "ff.net.0.proj",
    "ff.net.2", "attn1.to_q", "attn2.to_k", "attn2.to_out.0", "linear_2", "conv_out", "q_proj", "out_proj", "mlp.fc1",
)  # fmt: skip
PEFT_PARTS = ("to_q", "to_v", "to_out.0", "k_proj", "v_proj")


def modules(model, parts):
    import torch

    kinds = (torch.nn.Linear, torch.nn.Conv2d)
    every = sorted((n, m.weight) for n, m in model.named_modules() if isinstance(m, kinds))
    return [(n, w) for n, w in every if n.endswith(parts)]


def matrices(weight, rank, s, generator):
    """A and B of a matrix or of filters, such that |s B A| is SHARE of |W|."""
    import torch

    a = torch.randn((rank, *weight.shape[1:]), generator=generator)
    b = torch.randn((weight.shape[0], rank, *(1 for _ in weight.shape[2:])), generator=generator)
    norm = (b.flatten(1) @ a.flatten(1)).norm()
    b *= SHARE * weight.norm() / norm / s
    return a.contiguous(), b.contiguous()


def ldm_names(path):
    """The UNet's modules: their names in the authors' code by those in diffusers (generate_sd_names.py)."""
    lines = [line.split() for line in path.read_text().splitlines()]
    return {
        ours.removesuffix(".weight"): theirs.removesuffix(".weight").removeprefix("model.diffusion_model.")
        for part, ours, theirs in lines
        if part == "unet"
    }


def kohya(pipeline, xl, names, generator):
    import torch

    out = {}
    for tag, part in (("unet", "unet"), ("te1" if xl else "te", "text_encoder"), ("te2", "text_encoder_2")):
        model = getattr(pipeline, part, None)
        if model is None:
            continue
        for name, weight in modules(model, KOHYA)[:: 2 if part == "unet" else 1]:
            rank, alpha = 4, 2.0  # of all: diffusers matches ranks by the ends of names, and mixes unlike ones up
            if part == "unet":
                module = names(name)
            else:
                module = name if name.startswith("text_model.") else f"text_model.{name}"
            key = f"lora_{tag}_{module.replace('.', '_')}"
            a, b = matrices(weight, rank, alpha / rank, generator)
            out.update({f"{key}.lora_down.weight": a, f"{key}.lora_up.weight": b, f"{key}.alpha": torch.tensor(alpha)})
    return out


def peft(pipeline, xl, generator):
    out, config = {}, {}
    for part in ("unet", "text_encoder", "text_encoder_2")[: 3 if xl else 2]:
        targets = []
        for name, weight in modules(getattr(pipeline, part), PEFT_PARTS):
            a, b = matrices(weight, 5, 2.0 / 5, generator)
            out[f"{part}.{name}.lora_A.weight"], out[f"{part}.{name}.lora_B.weight"] = a, b
            targets.append(name)
        values = dict(r=5, lora_alpha=2.0, target_modules=targets, peft_type="LORA", bias="none", use_rslora=False,
                      use_dora=False, lora_bias=False, rank_pattern={}, alpha_pattern={})  # fmt: skip
        config.update({f"{part}.{key}": value for key, value in values.items()})
    return out, {"lora_adapter_metadata": json.dumps(config, sort_keys=True)}


def make_files(folder, config):
    import diffusers
    import torch
    from safetensors.torch import save_file

    xl = config == "sdxl"
    cls = diffusers.StableDiffusionXLPipeline if xl else diffusers.StableDiffusionPipeline
    options = {"variant": "fp16", "add_watermarker": False} if xl else {"safety_checker": None}
    pipeline = cls.from_pretrained(folder / "checkpoint", torch_dtype=torch.float32, **options)
    names = ldm_names(folder / "ldm_names.txt") if xl else {}
    generator = torch.Generator().manual_seed(3)
    (folder / "loras").mkdir(exist_ok=True)
    files = {
        "kohya": (kohya(pipeline, xl, lambda n: names.get(n, n), generator), {"format": "pt"}),
        "peft": peft(pipeline, xl, generator),
    }
    for name, (tensors, metadata) in files.items():
        path = folder / "loras" / f"{name}.safetensors"
        save_file(tensors, path, metadata=metadata)
        sort_metadata(path)
        print(config, name, len(tensors), "tensors")


def make_case(folder, case):
    import torch

    from sd_record import run

    drawn = run(folder / "checkpoint", case, torch.float32)["noise"]
    latents = drawn.T.reshape(1, 4, case["height"] // 8, case["width"] // 8).contiguous()
    stages = run(folder / "checkpoint", case, torch.float32, latents=latents)
    plain = run(folder / "checkpoint", {key: value for key, value in case.items() if key != "loras"}, torch.float32, latents=latents)
    last = max((name for name in stages if name.endswith(".latents")), key=lambda name: int(name.split(".")[1]))
    print("  effect on the latents", ((stages[last] - plain[last]).norm() / plain[last].norm()).item())
    kept = {name: value for name, value in stages.items()
            if name == "noise" or name.startswith("sampler.") or name.endswith((".latents", "prompt_embeds", ".pooled"))
            or (name.startswith("step.") and name.endswith(".velocity") and name.count(".") == 2)}  # fmt: skip
    return {name: value.contiguous() for name, value in kept.items()}


def main():
    versions = check_versions(("open_clip_torch", "peft"))
    prepare()
    if version("peft") != PEFT:
        raise SystemExit(f"peft: expected {PEFT}, got {version('peft')}")
    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, default=Path(__file__).parent / "data" / "sd")
    args = parser.parse_args()
    for config, cases in CASES.items():
        folder = args.into / config
        make_files(folder, config)
        for name, case in cases.items():
            metadata = dict(case, config=config, versions=version_text(versions))
            if name == "bf16":
                tensors = generate_sd.make_case(folder / "checkpoint", "bf16_lora", case)
                print_errors(config, name, tensors)
                save_case(folder / "cases" / "bf16_lora.safetensors", tensors, metadata)
            else:
                save_case(folder / "cases" / f"f32_lora_{name}.safetensors", make_case(folder, case), metadata)
        set_modes(folder)


if __name__ == "__main__":
    main()
