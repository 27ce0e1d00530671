#!/usr/bin/env python3
"""Pictures of the trained editors (tools/editors) by the original pipelines, in f32:

    python tests/golden/generate_editors.py BUILD [FAMILY...]

BUILD has the program make_portraits. step1x as generate_step1x.py, with the fork and transformers 4.55.0 on the PYTHONPATH; the
others with the versions of golden_file.py. Writes data/editors/FAMILY-N.png, which tests/repro/test_editors.c compares.
"""

import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from PIL import Image
from tokenizers import Tokenizer

HERE = Path(__file__).resolve().parent
EDITORS = HERE.parents[1] / "tools" / "editors"
EDITS = (
    ("Black_Female_30s", "Give the person red hair."),
    ("White_Male_50s", "Make the person a senior executive."),
    ("EastAsian_Female_20s", "Change the background to a beach."),
)


def flux2(folder):
    from diffusers import Flux2Pipeline

    pipeline = Flux2Pipeline.from_pretrained(folder, torch_dtype=torch.float32)
    return lambda image, **more: pipeline(image=[image], guidance_scale=4.0, max_sequence_length=48, **more)


def qwen_edit(folder):
    import diffusers.pipelines.qwenimage.pipeline_qwenimage_edit_plus as original
    from qwen_edit_record import with_mrope

    original.VAE_IMAGE_SIZE = original.CONDITION_IMAGE_SIZE = 64 * 64
    pipeline = original.QwenImageEditPlusPipeline.from_pretrained(folder, torch_dtype=torch.float32)
    # transformers 5 builds the tokenizer anew from its words and merges, and leaves "ignore_merges" out.
    words = Tokenizer.from_file(str(folder / "tokenizer" / "tokenizer.json"))
    pipeline.tokenizer._tokenizer = pipeline.processor.tokenizer._tokenizer = words
    with_mrope(contextlib.ExitStack(), pipeline.text_encoder)
    return lambda image, **more: pipeline(image=[image], true_cfg_scale=1.0, width=64, height=64, **more)


def step1x(folder):
    sys.path.insert(0, str(HERE.parents[1] / "tools" / "train"))
    import step1x_editor
    from safetensors.torch import load_file

    # The released model's mapping of quoted text has another size than this one's; the pipeline encodes in bf16.
    transformer = step1x_editor.transformer()
    transformer.load_state_dict(load_file(folder / "transformer" / "diffusion_pytorch_model.safetensors"))
    pipeline = step1x_editor.original.Step1XEditPipelineV1P2.from_pretrained(
        folder, transformer=transformer.float().eval(), torch_dtype=torch.float32
    )
    encode = pipeline._get_qwenvl_embeds
    pipeline._get_qwenvl_embeds = lambda *a, **k: encode(*a, dtype=torch.float32, **k)
    fixed = dict(true_cfg_scale=1.0, size_level=64, enable_reflection_mode=False)
    return lambda image, **more: pipeline(image=image, **fixed, **more)


def main():
    build, names = Path(sys.argv[1]), sys.argv[2:] or ["flux2", "qwen_edit"]
    out = HERE / "data" / "editors"
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([build / "make_portraits", "--size", "64", folder], check=True, stdout=subprocess.DEVNULL)
        for name in names:
            pipeline = globals()[name](EDITORS / name)
            for i, (source, prompt) in enumerate(EDITS):
                image = Image.open(Path(folder) / f"{source}.png").convert("RGB")
                noise = torch.Generator().manual_seed(i)
                result = pipeline(image, prompt=prompt, num_inference_steps=4, generator=noise).images[0]
                result.save(out / f"{name}-{i}.png", optimize=True)


if __name__ == "__main__":
    main()
