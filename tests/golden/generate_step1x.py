#!/usr/bin/env python3
"""Makes the Step1X-Edit goldens with the authors' fork of diffusers:

    PYTHONPATH=TRANSFORMERS:FORK/src python tests/golden/generate_step1x.py [--into FOLDER] [CONFIG...]

FORK: branch step1xedit_v1p2 of github.com/Peyton-Chen/diffusers. TRANSFORMERS: a folder with transformers 4.55.0, which
the model's authors name, and the tokenizers that it needs. The runs and what is kept of them are those of generate.py;
the posterior's noise is drawn as well, and the run that is the reference gets both noises of the bf16 run.
"""

import argparse
import shutil
import sys
import types
from pathlib import Path

from golden_file import combine, prepare, print_errors, save_case, set_modes, version_text
from step1x_cases import CASES, photographs

VERSIONS = {"torch": "2.15.0", "transformers": "4.55.0", "diffusers": "0.36.0.dev0", "pillow": "13.0.0"}
N_DITHERED = 24
# Of one forward, up to where both runs are the same but for a few values that summing in another order rounds otherwise.
ROUNDED_ALIKE = "connector pooled img_in txt_in double.0.query double.0.key".split()
HIDDEN = 1  # the language model's state that is kept: after so many layers


def found_versions():
    """Of the modules that are imported: packages in folders of PYTHONPATH hide installed ones."""
    import numpy
    import PIL
    import safetensors
    import tokenizers
    import torch
    import torchvision
    import transformers

    import diffusers

    modules = dict(torch=torch, torchvision=torchvision, diffusers=diffusers, transformers=transformers)
    modules.update(tokenizers=tokenizers, safetensors=safetensors, pillow=PIL, numpy=numpy)
    found = {name: module.__version__ for name, module in modules.items()}
    wrong = [f"{n} {found[n]} (expected {v})" for n, v in VERSIONS.items() if found[n].split("+")[0] != v]
    if wrong:
        sys.exit("generate_step1x.py: other versions than the pinned ones: " + ", ".join(wrong))
    return found


def without_thinker():
    """The fork's module for thinking and reflection wants packages for remote files; these runs use neither."""
    name = "diffusers.pipelines.step1x_edit.pipeline_step1x_edit_thinker"
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].Step1XEditThinker = None


def report_limiter(stages):
    """Both sides of the guidance's limit should be met."""
    if "step.0.uncond.velocity" in stages:
        norms = (stages["step.0.cond.velocity"] - stages["step.0.uncond.velocity"]).norm(dim=-1)
        print(f"limited rows: {(norms > 1).float().mean().item():.2f}")


def make_case(config, folder, case, images):
    """The tensors of the golden file, and the latents' height and width."""
    import torch

    from recorder import dithered
    from step1x_record import run

    seeded, _ = run(config, folder, case, torch.float32, images)
    bf16, drawn = run(config, folder, case, torch.bfloat16, images)
    plain, _ = run(config, folder, case, torch.float32, images, drawn)
    report_limiter(plain)
    others = []
    for seed in range(N_DITHERED):
        with dithered(seed):
            others.append(run(config, folder, case, torch.bfloat16, images)[0])
    return combine(case, plain, bf16, seeded, (), others), plain["vae.decode.input"].shape[:2]


def make_forward(config, folder):
    """The tensors of a golden of one forward: its inputs and the stages of a bf16 run."""
    import torch

    from step1x_record import run_transformer, transformer_inputs

    given = transformer_inputs(config)
    plain, bf16 = (run_transformer(config, folder, given, dtype) for dtype in (torch.float32, torch.bfloat16))
    stages = ["step.0.temb"] + [f"step.0.cond.{name}" for name in ROUNDED_ALIKE]
    tensors = combine(dict(thin={}, steps=0), {name: plain[name] for name in stages}, bf16, {}, stages)
    tensors.update({f"input.{name}": value for name, value in given.items()})
    return {name: value for name, value in tensors.items() if name not in stages}


def metadata(config, case, latent_size, versions):
    keys = "prompt negative_prompt height width size_level steps true_cfg_scale seed".split()
    given = {key: case[key] for key in keys if key in case}
    given["images"] = " ".join(case.get("images", ()))
    given["config"] = config
    given["latent_height"], given["latent_width"] = latent_size
    given["versions"] = version_text(versions)
    return given


def main():
    without_thinker()
    versions = found_versions()
    prepare()
    from PIL import Image

    from step1x_models import CONFIGS, save_checkpoint

    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, default=Path(__file__).parent / "data" / "step1x")
    parser.add_argument("configs", nargs="*")
    args = parser.parse_args()
    for config in args.configs or CONFIGS:
        folder = args.into / config
        shutil.rmtree(folder, ignore_errors=True)
        save_checkpoint(config, folder / "checkpoint")
        files = photographs()
        (folder / "cases").mkdir()
        for name, case in CASES[config].items():
            case = dict(case, hidden=HIDDEN)
            for image in case.get("images", ()):
                (folder / "cases" / image).write_bytes(files[image])
            images = [Image.open(folder / "cases" / image) for image in case.get("images", ())]
            tensors, latent_size = make_case(config, folder / "checkpoint", case, images)
            path = folder / "cases" / f"{name}.safetensors"
            save_case(path, tensors, metadata(config, case, latent_size, versions))
            print_errors(config, name, tensors)
        if CONFIGS[config].get("forward"):
            tensors = make_forward(config, folder / "checkpoint")
            save_case(folder / "forward.safetensors", tensors, dict(config=config, versions=version_text(versions)))
        set_modes(folder)


if __name__ == "__main__":
    main()
