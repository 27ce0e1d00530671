#!/usr/bin/env python3
"""What `likeness quantize` writes is read by diffusers' own loader of bitsandbytes' format, and stands for the values that
bitsandbytes makes of the bf16 weights:

    python tests/golden/check_quantize.py build/likeness

diffusers asks for an accelerator before it loads such files; that question alone is left out here."""

import subprocess
import sys
import tempfile
from pathlib import Path

from golden_file import check_versions, prepare

BITSANDBYTES = "0.50.2"
MODELS = {"flux2/rich": "Flux2Transformer2DModel", "qwen_edit/edit2511": "QwenImageTransformer2DModel"}


def expected(weight, torch, functional):
    codes, state = functional.quantize_4bit(
        weight.reshape(1, -1), blocksize=64, quant_type="nf4", compress_statistics=False
    )
    return functional.dequantize_4bit(codes, state).reshape(weight.shape).to(torch.bfloat16)


def compare(model, written):
    import bitsandbytes.functional as functional
    import diffusers
    import torch

    cls = getattr(diffusers, MODELS[model])
    plain = cls.from_pretrained(Path(__file__).parent / "data" / model / "checkpoint/transformer", dtype=torch.bfloat16)
    loaded = cls.from_pretrained(written / "transformer", dtype=torch.bfloat16)
    parameters, packed, kept, values = dict(plain.named_parameters()), 0, 0, 0
    for name, got in loaded.named_parameters():
        want = parameters[name].data
        if hasattr(got, "quant_state"):
            want, packed, values = expected(want, torch, functional), packed + 1, values + want.numel()
            state = got.quant_state
            shape, state.shape = state.shape, torch.Size((1, want.numel()))  # as in generate_bnb.py
            data = functional.dequantize_4bit(got.data, state).reshape(shape)
        else:
            kept, data = kept + 1, got.data
        if not torch.equal(data, want.to(data.dtype)):
            sys.exit(f"{model}: {name}: other values")
    if not packed:
        sys.exit(f"{model}: nothing was packed")
    print(f"{model}: {packed} packed matrices ({values} weights) and {kept} others, no value differs")


def main():
    check_versions()
    prepare()
    import bitsandbytes
    from diffusers.quantizers.bitsandbytes import bnb_quantizer

    if bitsandbytes.__version__ != BITSANDBYTES:
        sys.exit(f"bitsandbytes: expected {BITSANDBYTES}, got {bitsandbytes.__version__}")
    bnb_quantizer.BnB4BitDiffusersQuantizer.validate_environment = lambda *_, **__: None
    bnb_quantizer.BnB4BitDiffusersQuantizer.update_device_map = lambda self, device_map: {"": "cpu"}
    with tempfile.TemporaryDirectory() as scratch:
        for model in MODELS:
            source = Path(__file__).parent / "data" / model / "checkpoint"
            written = Path(scratch) / model.replace("/", "-")
            subprocess.run([sys.argv[1], "quantize", str(source), "-o", str(written)], check=True, stdout=sys.stderr)
            compare(model, written)


main()
