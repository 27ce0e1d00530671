#!/usr/bin/env python3
"""Makes goldens of checkpoints whose transformer bitsandbytes has written: data/FAMILY/bnb.

    python tests/golden/generate_bnb.py [--into FOLDER] [flux2] [qwen_edit]
    PYTHONPATH=TRANSFORMERS:FORK/src python tests/golden/generate_bnb.py step1x     (see generate_step1x.py)

The checkpoint is another config's with other weights: of its matrices, in turn, one is plain NF4, one has nested scales,
one is stored as bfloat16, one has blocks of 32, and one is left alone; companions lie in a shard of their own. diffusers'
loader of such files wants an accelerator, so the reference runs on the bf16 weights that bitsandbytes' own
dequantize_4bit gives.
"""

import argparse
import json
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

from golden_file import check_versions, prepare, print_errors, save_case, set_modes, version_text

BITSANDBYTES = "0.50.2"
FAMILIES = {"flux2": ("rich", "text"), "qwen_edit": ("text", "cut"), "step1x": ("plain", "text")}
FORMS = [dict(), dict(nested=True), dict(storage="bfloat16"), dict(block=32), None]


def pack(weight, nested=False, storage="uint8", block=64):
    """The tensors of a file and the bf16 weight that they stand for."""
    import bitsandbytes.functional as F
    import torch

    flat = weight.reshape(1, -1)  # on AVX-512 bitsandbytes reads wrong scales where rows are no whole blocks
    codes, state = F.quantize_4bit(
        flat, blocksize=block, quant_type="nf4", compress_statistics=nested, quant_storage=getattr(torch, storage)
    )
    values = F.dequantize_4bit(codes, state).reshape(weight.shape)
    state.shape = weight.shape
    return codes, state.as_dict(packed=True), values



def rewrite(folder, plain):
    """Packs the transformer in FOLDER; its dequantised twin goes to PLAIN."""
    import torch
    from safetensors.torch import load_file, save_file

    shutil.copytree(folder, plain)
    transformer = folder / "transformer"
    weights, companions, values = {}, {}, {}
    for path in sorted(transformer.glob("*.safetensors")):
        values.update(load_file(path))
        path.unlink()
    n, skipped = 0, []
    for name in sorted(values):
        weights[name] = values[name]
        if values[name].ndim != 2 or values[name].numel() % 64:
            continue
        form = FORMS[n % len(FORMS)]
        n += 1
        if form is None:
            skipped.append(name.removesuffix(".weight"))
            continue
        weights[name], state, values[name] = pack(values[name], **form)
        companions.update({f"{name}.{key}": value for key, value in state.items()})
    shards = {"diffusion_pytorch_model-00001-of-00002.safetensors": weights,
              "diffusion_pytorch_model-00002-of-00002.safetensors": companions}  # fmt: skip
    for file, tensors in shards.items():
        save_file({k: v.contiguous() for k, v in tensors.items()}, transformer / file, metadata={"format": "pt"})
    size = sum(t.numel() * t.element_size() for shard in shards.values() for t in shard.values())
    index = {"metadata": {"total_size": size}, "weight_map": {k: f for f, s in shards.items() for k in s}}
    (transformer / "diffusion_pytorch_model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
    config = json.loads((transformer / "config.json").read_text())
    config["quantization_config"] = dict(
        _load_in_4bit=True, _load_in_8bit=False, bnb_4bit_compute_dtype="bfloat16", bnb_4bit_quant_storage="uint8",
        bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=False, llm_int8_enable_fp32_cpu_offload=False,
        llm_int8_has_fp16_weight=False, llm_int8_skip_modules=skipped, llm_int8_threshold=6.0, load_in_4bit=True,
        load_in_8bit=False, quant_method="bitsandbytes")  # fmt: skip
    (transformer / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    for path in (plain / "transformer").glob("*.safetensors*"):
        path.unlink()
    save_file({k: v.to(torch.bfloat16).contiguous() for k, v in values.items()},
              plain / "transformer/diffusion_pytorch_model.safetensors", metadata={"format": "pt"})  # fmt: skip
    print(f"{folder}: {n} matrices, {len(skipped)} left alone")


def flux2(folder, plain, config, name, versions):
    from flux2_cases import CASES
    from flux2_models import CONFIGS, save_checkpoint
    from generate import make_case, metadata

    save_checkpoint(config, folder)
    rewrite(folder, plain)
    case = dict(CASES[config][name], out_layers=CONFIGS[config]["out_layers"])
    return make_case(plain, case, []), metadata("bnb", case, versions)


def qwen_edit(folder, plain, config, name, versions):
    from generate_qwen_edit import GIVEN, make_case
    from qwen_edit_cases import CASES
    from qwen_edit_models import save_checkpoint

    save_checkpoint(config, folder)
    rewrite(folder, plain)
    case = CASES[config][name]
    tensors, latents = make_case(config, plain, case, [])
    given = {key: case[key] for key in GIVEN if key in case}
    given.update(config="bnb", images="", latent_height=latents[0], latent_width=latents[1])
    given["versions"] = version_text(versions)
    return tensors, given


def step1x(folder, plain, config, name, versions):
    from generate_step1x import HIDDEN, make_case, metadata
    from step1x_cases import CASES
    from step1x_models import save_checkpoint

    save_checkpoint(config, folder)
    rewrite(folder, plain)
    case = dict(CASES[config][name], hidden=HIDDEN)
    tensors, latents = make_case(config, plain, case, [])
    return tensors, metadata("bnb", case, latents, versions)


def check(families):
    if "step1x" not in families:
        return check_versions()
    from generate_step1x import found_versions, without_thinker

    without_thinker()
    return found_versions()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, default=Path(__file__).parent / "data")
    parser.add_argument("families", nargs="*", default=["flux2", "qwen_edit"])
    args = parser.parse_args()
    versions = check(args.families)
    if version("bitsandbytes") != BITSANDBYTES:
        raise SystemExit(f"bitsandbytes: expected {BITSANDBYTES}, got {version('bitsandbytes')}")
    versions["bitsandbytes"] = BITSANDBYTES
    prepare()
    for family in args.families:
        config, name = FAMILIES[family]
        folder = args.into / family / "bnb"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "cases").mkdir(parents=True)
        with tempfile.TemporaryDirectory() as scratch:
            make = dict(flux2=flux2, qwen_edit=qwen_edit, step1x=step1x)[family]
            tensors, given = make(folder / "checkpoint", Path(scratch) / "plain", config, name, versions)
        save_case(folder / "cases" / f"{name}.safetensors", tensors, given)
        print_errors("bnb", name, tensors)
        set_modes(folder)


if __name__ == "__main__":
    main()
