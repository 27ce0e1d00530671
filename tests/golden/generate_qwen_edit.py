#!/usr/bin/env python3
"""Makes the Qwen-Image goldens with diffusers and transformers:

    python tests/golden/generate_qwen_edit.py [--into FOLDER] [CONFIG...]

Per case three runs of the reference pipeline on the CPU, as for FLUX.2 (generate.py). See README.md.
"""

import argparse
import shutil
from pathlib import Path

from golden_file import check_versions, combine, prepare, print_errors, save_case, set_modes, version_text

N_DITHERED = 24

GIVEN = (
    "prompt negative_prompt true_cfg_scale condition_area vae_area height width steps seed max_sequence_length"
).split()


def make_case(config, folder, case, images):
    import torch

    from qwen_edit_record import run
    from recorder import dithered

    seeded = run(config, folder, case, torch.float32, images)
    bf16 = run(config, folder, case, torch.bfloat16, images)
    plain = run(config, folder, case, torch.float32, images, latents=bf16["noise"].float()[None])
    others = []
    for seed in range(N_DITHERED):
        with dithered(seed):
            others.append(run(config, folder, case, torch.bfloat16, images))
    return combine(case, plain, bf16, seeded, case.get("bf16", ()), others), plain["vae.decode.input"].shape


def main():
    versions = check_versions(extra=("torchvision",))
    prepare()
    from PIL import Image

    from qwen_edit_cases import CASES, photographs
    from qwen_edit_models import CONFIGS, save_checkpoint

    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, default=Path(__file__).parent / "data" / "qwen_edit")
    parser.add_argument("configs", nargs="*")
    args = parser.parse_args()
    for config in args.configs or CONFIGS:
        folder = args.into / config
        shutil.rmtree(folder, ignore_errors=True)
        save_checkpoint(config, folder / "checkpoint")
        files = photographs()
        (folder / "cases").mkdir()
        for name, case in CASES[config].items():
            for image in case.get("images", ()):
                (folder / "cases" / image).write_bytes(files[image])
            images = [Image.open(folder / "cases" / image) for image in case.get("images", ())]
            tensors, latents = make_case(config, folder / "checkpoint", case, images)
            metadata = {key: case[key] for key in GIVEN if key in case}
            metadata.update(
                config=config,
                images=" ".join(case.get("images", ())),
                latent_height=latents[0],
                latent_width=latents[1],
                versions=version_text(versions),
            )
            save_case(folder / "cases" / f"{name}.safetensors", tensors, metadata)
            print_errors(config, name, tensors)
        if (folder / "checkpoint" / "processor").exists():  # which is where the pipelines take the tokenizer from
            (folder / "checkpoint" / "tokenizer" / "tokenizer.json").unlink()
        set_modes(folder)


if __name__ == "__main__":
    main()
