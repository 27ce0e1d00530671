#!/usr/bin/env python3
"""Makes the FLUX.2 goldens with diffusers and transformers: python tests/golden/generate.py [--into FOLDER] [CONFIG...]

Per case three runs of the reference pipeline on the CPU: f32 with the seed; bf16 with the seed, as users run it; f32
with the bf16 run's noise, against which both bf16 runs, the reference's and ours, are measured. See README.md.
"""

import argparse
import json
import logging
import os
import shutil
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

from flux2_cases import CASES, photographs

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

VERSIONS = {
    "torch": "2.15.0",
    "diffusers": "0.42.1",
    "transformers": "5.23.0",
    "tokenizers": None,
    "safetensors": None,
    "pillow": "13.0.0",
    "numpy": None,
}


def check_versions():
    """The installed versions; stops when one is not the version that this script was written against."""
    found = {name: version(name) for name in VERSIONS}
    wrong = [
        f"{name} {found[name]} (expected {wanted})"
        for name, wanted in VERSIONS.items()
        if wanted and found[name].split("+")[0] != wanted
    ]
    if wrong:
        sys.exit("generate.py: other versions than the pinned ones: " + ", ".join(wrong))
    return found


def relative_error(a, b):
    a, b = a.double(), b.double()
    return ((a - b).norm() / b.norm()).item()


def wanted(case, name):
    return not any(part in name for part in case.get("without", ()))


def thinned(case, name, value, prefix=""):
    """(name, value), the prefix before the name, with every n-th row of it where the case says so."""
    every = next((n for part, n in case["thin"].items() if part in prefix + name), 1)
    if every == 1 or name.endswith(".txt"):
        return prefix + name, value
    return f"{prefix}every{every}.{name}", value[::every].contiguous()


def make_case(folder, case, images):
    import torch

    from flux2_record import run

    seeded = run(folder, case, torch.float32, images)
    bf16 = run(folder, case, torch.bfloat16, images)
    channels = bf16["noise"].shape[1]
    height, width = bf16["vae.decode.input"].shape[:2]
    noise = bf16["noise"].float().T.reshape(1, channels, height // 2, width // 2)
    exact = run(folder, case, torch.float32, images, latents=noise)
    assert torch.equal(exact["text_encoder.ids"], bf16["text_encoder.ids"])
    assert torch.equal(exact["sigmas"], bf16["sigmas"]) and torch.equal(exact["noise"], bf16["noise"].float())

    last = f"step.{case['steps'] - 1}.latents"
    out = {}
    exact["noise"] = bf16["noise"]  # the same numbers, shorter
    for name, value in exact.items():
        if not wanted(case, name):
            continue
        stored_name, stored = thinned(case, name, value)
        out[stored_name] = stored
        if name not in ("text_encoder.ids", "noise", "sigmas", "timesteps"):
            error = relative_error(thinned(case, name, bf16[name])[1], stored)
            out[f"error.{stored_name}"] = torch.tensor([error], dtype=torch.float32)
    for name in ("noise", "step.0.velocity", last, "image"):
        stored_name, stored = thinned(case, name, seeded[name], "f32.")
        out[stored_name] = stored
    early = ("step.0.temb", "step.1.temb", f"text_encoder.hidden.{case['out_layers'][0]}") if "blocks" in case else ()
    for name in early:
        out[f"bf16.{name}"] = bf16[name]
    return {name: value.contiguous() for name, value in out.items()}


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
    given["versions"] = ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))
    return {key: str(value) for key, value in given.items()}


def sort_metadata(path):
    """safetensors writes metadata in an order that changes from run to run; the file should not."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])


def main():
    versions = check_versions()
    import torch
    from PIL import Image
    from safetensors.torch import save_file

    import diffusers
    import transformers

    from flux2_models import CONFIGS, save_checkpoint

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    diffusers.utils.logging.disable_progress_bar()
    transformers.utils.logging.disable_progress_bar()
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
            path = folder / "cases" / f"{name}.safetensors"
            save_file(tensors, path, metadata=metadata(config, case, versions))
            sort_metadata(path)
            errors = {n[6:]: round(v.item(), 6) for n, v in tensors.items() if n.startswith("error.")}
            print(config, name, json.dumps(errors), flush=True)
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


if __name__ == "__main__":
    main()
