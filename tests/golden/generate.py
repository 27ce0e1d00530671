#!/usr/bin/env python3
"""Makes the FLUX.2 goldens with diffusers and transformers: python tests/golden/generate.py [--into FOLDER] [CONFIG...]

Per case three runs of the reference pipeline on the CPU: f32 with the seed; bf16 with the seed, as users run it; f32
with the bf16 run's noise, against which both bf16 runs, the reference's and ours, are measured. And more bf16 runs whose
roundings fall otherwise. See README.md.
"""

import argparse
import shutil
from pathlib import Path

from flux2_cases import CASES, photographs
from golden_file import check_versions, combine, prepare, print_errors, save_case, set_modes, version_text

N_DITHERED = 24


def make_case(folder, case, images):
    import torch

    from flux2_record import run
    from recorder import dithered

    seeded = run(folder, case, torch.float32, images)
    bf16 = run(folder, case, torch.bfloat16, images)
    channels = bf16["noise"].shape[1]
    height, width = bf16["vae.decode.input"].shape[:2]
    noise = bf16["noise"].float().T.reshape(1, channels, height // 2, width // 2)
    plain = run(folder, case, torch.float32, images, latents=noise)
    others = []
    for seed in range(case.get("n_dithered", N_DITHERED)):
        with dithered(seed):
            others.append(run(folder, case, torch.bfloat16, images))
    early = ("step.0.temb", "step.1.temb", f"text_encoder.hidden.{case['out_layers'][0]}") if "blocks" in case else ()
    return combine(case, plain, bf16, seeded, early, others)


def fill_length(folder, case):
    """The max_sequence_length that the prompt fills exactly."""
    from diffusers.pipelines.flux2.pipeline_flux2 import format_input
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(folder / "tokenizer")
    text = processor.apply_chat_template(format_input([case["prompt"]])[0], tokenize=False)
    return len(processor.tokenizer(text, add_special_tokens=False)["input_ids"])


def metadata(config, case, versions):
    given = {key: case[key] for key in ("prompt", "height", "width", "steps", "guidance", "seed") if key in case}
    given["max_sequence_length"] = case["max_sequence_length"]
    given["images"] = " ".join(case.get("images", ()))
    given["config"] = config
    given["out_layers"] = " ".join(map(str, case["out_layers"]))
    given["versions"] = version_text(versions)
    return given


def main():
    versions = check_versions()
    prepare()
    from PIL import Image

    from flux2_models import CONFIGS, save_checkpoint

    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, default=Path(__file__).parent / "data" / "flux2")
    parser.add_argument("configs", nargs="*")
    args = parser.parse_args()
    root = args.into
    for config in args.configs or CONFIGS:
        folder = root / config
        shutil.rmtree(folder, ignore_errors=True)
        save_checkpoint(config, folder / "checkpoint")
        files = photographs()
        (folder / "cases").mkdir()
        for name, case in CASES[config].items():
            case = dict(case, out_layers=CONFIGS[config]["out_layers"])
            if case.pop("fill", False):
                case["max_sequence_length"] = fill_length(folder / "checkpoint", case)
            for image in case.get("images", ()):
                (folder / "cases" / image).write_bytes(files[image])
            images = [Image.open(folder / "cases" / image) for image in case.get("images", ())]
            tensors = make_case(folder / "checkpoint", case, images)
            save_case(folder / "cases" / f"{name}.safetensors", tensors, metadata(config, case, versions))
            print_errors(config, name, tensors)
        set_modes(folder)


if __name__ == "__main__":
    main()
