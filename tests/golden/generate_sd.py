#!/usr/bin/env python3
"""Makes the goldens of Stable Diffusion 1.5 and SDXL: python tests/golden/generate_sd.py [--into FOLDER] [CONFIG...]

As generate.py; needs open_clip_torch beside, for the first merges of CLIP's vocabulary. Cases f32_* are of samplers that
draw noise in every step: one f32 run each, since a run with given noise draws the steps' from another place.
"""

import argparse
import shutil
from pathlib import Path

from golden_file import check_versions, combine, prepare, print_errors, save_case, set_modes, thinned, version_text, wanted

N_DITHERED = 24
SIZE = dict(height=64, width=128, steps=4, seed=7, guidance=7.5)
PROMPT = "A photo of a thief!!! in a store,\n 2 Tigers &amp; café"
LONG = " ".join(["cat and dog"] * 40)
CASES = {
    "sd15": {
        "pndm": dict(SIZE, prompt=PROMPT, negative_prompt="blurry", blocks=True, n_dithered=100),
        "ddim": dict(SIZE, prompt=PROMPT, scheduler="ddim"),
        "euler": dict(SIZE, prompt=LONG, scheduler="euler", negative_prompt=""),
        "dpm": dict(SIZE, prompt=PROMPT, scheduler="dpm++-karras", steps=6),
        "unipc": dict(SIZE, prompt=PROMPT, scheduler="unipc", steps=6, guidance=1.0),
        "skip": dict(SIZE, prompt=PROMPT, clip_skip=1, guidance_rescale=0.7, scheduler="unipc"),
        "f32_euler_a": dict(SIZE, prompt=PROMPT, scheduler="euler-a"),
        "f32_ddim_eta": dict(SIZE, prompt=PROMPT, scheduler="ddim", eta=1.0),
    },
    "sdxl": {
        "euler": dict(SIZE, prompt=PROMPT, guidance=5.0, blocks=True, n_dithered=100),
        "negative": dict(SIZE, prompt="hi! there!", negative_prompt="", scheduler="dpm++"),
        "karras": dict(SIZE, prompt=PROMPT, negative_prompt="blurry", scheduler="euler-karras", clip_skip=1),
        "sizes": dict(
            SIZE,
            prompt=PROMPT,
            negative_prompt="blurry",
            prompt_2="a red sky",
            negative_prompt_2="low quality",
            original_size=(1023, 150),
            crops_coords_top_left=(4, 8),
            target_size=(96, 640),
            guidance_rescale=0.3,
        ),
        "one": dict(SIZE, prompt=PROMPT, guidance=1.0, scheduler="unipc-karras", steps=5, height=96, width=64),
    },
}
THIN = {"decoded": 8, "image": 8}


def trimmed(case, stages, xl):
    """Of the steps in between the latents alone; hidden states and blocks where the case says blocks."""
    out = {}
    for name, value in stages.items():
        parts = name.split(".")
        detail = "hidden" in parts or "negative" in parts[2:3] or "positive" in parts[2:3] or parts[-1] == "temb"
        if (detail and not case.get("blocks")) or (xl and name == "text_encoder.hidden.3"):
            continue  # the last state of SDXL's first encoder is not computed
        if parts[0] == "step" and int(parts[1]) > 0 and parts[-1] not in ("latents", "temb"):
            continue
        if value.any():  # what there is of zeros shows in all that follows
            out[name] = value
    return out


def make_case(folder, name, case):
    import torch

    from recorder import dithered
    from sd_record import run

    case = dict(case, thin=THIN)
    xl = folder.parent.name == "sdxl"
    seeded = trimmed(case, run(folder, case, torch.float32), xl)
    height, width = case["height"] // 8, case["width"] // 8

    def latents(stages):
        return stages["noise"].float().T.reshape(1, 4, height, width)

    if name.startswith("f32_"):
        plain = trimmed(case, run(folder, case, torch.float32, latents=latents(seeded)), xl)
        return dict(thinned(case, key, value) for key, value in plain.items() if wanted(case, key))
    bf16 = trimmed(case, run(folder, case, torch.bfloat16), xl)
    plain = trimmed(case, run(folder, case, torch.float32, latents=latents(bf16)), xl)
    others = []
    for seed in range(case.get("n_dithered", N_DITHERED)):
        with dithered(seed):
            others.append(trimmed(case, run(folder, case, torch.bfloat16), xl))
    # What no text encoder has part in: ours works in f32.
    early = ("step.0.negative.temb", "step.0.negative.down.1.attention.0") if xl else ("step.0.temb",)
    early = early if case.get("blocks") else ()
    return combine(case, plain, bf16, seeded, early, others)


def main():
    versions = check_versions(("open_clip_torch",))
    prepare()
    from sd_models import save_checkpoint

    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, default=Path(__file__).parent / "data" / "sd")
    parser.add_argument("--cases", nargs="*")
    parser.add_argument("configs", nargs="*")
    args = parser.parse_args()
    for config in args.configs or CASES:
        folder = args.into / config
        if not args.cases:
            shutil.rmtree(folder, ignore_errors=True)
            save_checkpoint(config, folder / "checkpoint")
            (folder / "cases").mkdir()
        for name, case in CASES[config].items():
            if args.cases and name not in args.cases:
                continue
            tensors = make_case(folder / "checkpoint", name, case)
            metadata = {key: value for key, value in case.items() if key not in ("blocks", "n_dithered")}
            metadata.update(config=config, versions=version_text(versions))
            save_case(folder / "cases" / f"{name}.safetensors", {k: v.contiguous() for k, v in tensors.items()}, metadata)
            print_errors(config, name, tensors)
        set_modes(folder)


if __name__ == "__main__":
    main()
