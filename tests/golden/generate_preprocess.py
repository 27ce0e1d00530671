#!/usr/bin/env python3
"""Goldens of what happens to pictures and prompts before the models of Qwen-Image-Edit and Step1X-Edit, from diffusers,
transformers and the fork of Step1X-Edit's authors (branch step1xedit_v1p2), whose own functions are run.

    python tests/golden/generate_preprocess.py FORK/src     # data/preprocess.txt, data/step1x_prompts.txt

Lines of preprocess.txt; pictures by picture() of generate_images.py; digests: SHA-256 cut to 16 digits:
    sizes NAME PARAMETERS BLOCK HASH     hash of the sizes of 1000 random sizes, see write_sizes()
    qwen KIND SEED WIDTH HEIGHT CONDITION_AREA VAE_AREA MIN MAX  WIDTH HEIGHT DIGEST of the condition image
        GRID_H GRID_W DIGEST of its rows (f32)  WIDTH HEIGHT DIGEST DIGEST of the VAE's input (CHW; f32, bf16)
    step1x KIND SEED WIDTH HEIGHT CHANNELS LEVEL MIN MAX  WIDTH HEIGHT DIGEST of ref_image
        GRID_H GRID_W DIGEST of its rows (f32)  DIGEST of the VAE's input (f32, HWC)
    resize KIND SEED WIDTH HEIGHT WIDTH HEIGHT DIGEST of bytes, bicubic  DIGEST of 2 x - 1 of f32, bilinear (HWC)
Lines of step1x_prompts.txt:
    fragment HEX                         what prompts are made of, see step1x_prompt()
    prompt INDEX IMAGE_TOKENS HASH       over 2 * id + quoted
    vector HEX IMAGE_TOKENS ID ID ...    a "q" behind an id that comes from quoted text
"""

import ast
import functools
import logging
import math
import operator
import random
import re
import sys
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from diffusers.image_processor import VaeImageProcessor
from diffusers.pipelines.qwenimage.pipeline_qwenimage_edit_plus import calculate_dimensions
from generate_images import DATA, as_image, digest, picture
from generate_tokenizer import Random, hash32
from PIL import Image
from tokenizers import Tokenizer
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as tvF
from transformers import Qwen2VLImageProcessor
from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize

VERSIONS = {"torch": "2.15.0", "torchvision": "0.29.2", "diffusers": "0.42.1", "transformers": "5.23.0", "pillow": "13.0.0"}
FORK_FILE = "diffusers/pipelines/step1x_edit/pipeline_step1x_edit_v1p2.py"
FORK_NAMES = (
    "EDIT_PREFIX split_string_in_quotation split_string_in_quotation_and_special_tokens _special_token_strings encode_image"
).split()
FORK_PIXELS = dict(min_pixels=256 * 28 * 28, max_pixels=400 * 28 * 28)


def fork(source):
    """The fork's constant and functions by name, compiled out of its file; methods as functions of self."""
    space = dict(np=np, torch=torch, math=math, re=re, functools=functools, operator=operator, List=list, Union=None)
    space |= {"Optional": __import__("typing").Optional, "logger": logging.getLogger("fork")}
    tree = ast.parse((Path(source) / FORK_FILE).read_text())
    nodes = tree.body + [n for c in tree.body if isinstance(c, ast.ClassDef) for n in c.body]
    found = {}
    for node in nodes:
        name = node.targets[0].id if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) else None
        name = getattr(node, "name", name)
        if name in FORK_NAMES and name not in found:
            node.decorator_list = []
            exec(compile(ast.Module([node], []), FORK_FILE, "exec"), space)
            found[name] = space[name]
    assert sorted(found) == sorted(FORK_NAMES)
    return SimpleNamespace(**found)


# --- sizes -----------------------------------------------------------------------------------------------------------


def fork_size(f, level, width, height):
    """encode_image's size, without its resizing."""
    class Sized:
        size = (width, height)

    class Stop(Exception):
        pass

    def stop(image, height, width):
        raise Stop(width, height)

    self = SimpleNamespace(latent_channels=16, vae_scale_factor=8, image_processor=SimpleNamespace(resize=stop))
    try:
        f.encode_image(self, Sized(), size_level=level)
    except Stop as e:
        return e.args


def random_sides(block):
    """1000 pairs; the same in C. Small sides, so that halves to round come up, and all up to 16384."""
    r = Random(block)
    for _ in range(1000):
        bits = 4 + r.below(11)
        yield 1 + r.below(2**bits), 1 + r.below(2 ** (4 + r.below(11)) if r.below(2) else 2**bits)


def usable(size):
    """The runtime refuses sizes that are nothing or beyond what images can be: (0, 0) here."""
    return size if min(size) > 0 and max(size) <= 65535 and size[0] * size[1] <= 178956970 else (0, 0)


def smart(width, height, low, high):
    try:
        h, w = smart_resize(height, width, 28, low, high)
        return usable((w, h))
    except ValueError:
        return 0, 0


def write_sizes(f, lines):
    rules = [("smart", (low, high)) for low, high in ((3136, 12845056), tuple(FORK_PIXELS.values()), (784, 50176))]
    rules += [("dimensions", (area,)) for area in (384 * 384, 1024 * 1024, 64 * 64)]
    rules += [("step1x", (level,)) for level in (1024, 512, 64)]
    for name, parameters in rules:
        for block in range(4):
            numbers = []
            for width, height in random_sides(block):
                if name == "smart":
                    size = smart(width, height, *parameters)
                elif name == "dimensions":
                    size = usable(calculate_dimensions(*parameters, width / height))
                else:
                    size = usable(fork_size(f, *parameters, width, height))
                numbers += size
            lines.append(f"sizes {name} {','.join(map(str, parameters))} {block} {hash32(numbers)}")


# --- pictures --------------------------------------------------------------------------------------------------------


def sides(rng, low, high):
    """Mostly moderate aspect ratios, some extreme ones."""
    a = rng.randrange(low, high)
    b = rng.randrange(low, high) if rng.random() < 0.7 else max(2, int(a / rng.uniform(1, 12)))
    return (a, b) if rng.random() < 0.5 else (b, a)


def qwen_line(vae, kind, seed, width, height, condition_area, vae_area, low, high):
    image = as_image(picture(kind, seed, width, height, 3))
    cw, ch = calculate_dimensions(condition_area, width / height)
    vw, vh = calculate_dimensions(vae_area, width / height)
    if min(cw, ch, vw, vh) == 0:
        return None
    condition = vae.resize(image, ch, cw)
    processor = Qwen2VLImageProcessor(min_pixels=low, max_pixels=high)
    out = processor(images=[condition], return_tensors="pt")
    _, gh, gw = out["image_grid_thw"][0].tolist()
    pixels = vae.preprocess(image, vh, vw)[0]
    bf16 = pixels.contiguous().to(torch.bfloat16).view(torch.int16).numpy()
    return (
        f"qwen {kind} {seed} {width} {height} {condition_area} {vae_area} {low} {high}"
        f" {cw} {ch} {digest(np.asarray(condition))} {gh} {gw} {digest(out['pixel_values'].numpy())}"
        f" {vw} {vh} {digest(pixels.contiguous().numpy())} {digest(bf16)}"
    )


def step1x_line(f, vae, kind, seed, width, height, channels, level, low, high):
    image = as_image(picture(kind, seed, width, height, channels))
    size = fork_size(f, level, width, height)
    if min(size) == 0 or max(size) / min(size) > 199:
        return None
    self = SimpleNamespace(latent_channels=16, vae_scale_factor=8, image_processor=vae)
    pixels, ref_image, _, w, h = f.encode_image(self, image, size_level=level)
    ref_image = ref_image.convert("RGB")
    processor = Qwen2VLImageProcessor(min_pixels=low, max_pixels=high)
    out = processor(images=[ref_image], return_tensors="pt")
    _, gh, gw = out["image_grid_thw"][0].tolist()
    return (
        f"step1x {kind} {seed} {width} {height} {channels} {level} {low} {high} {w} {h} {digest(np.asarray(ref_image))}"
        f" {gh} {gw} {digest(out['pixel_values'].numpy())} {digest(pixels[0].permute(1, 2, 0).numpy())}"
    )


def resize_line(kind, seed, width, height, new_width, new_height):
    bytes_ = torch.from_numpy(picture(kind, seed, width, height, 3)).permute(2, 0, 1)
    size, how = [new_height, new_width], InterpolationMode.BICUBIC
    planar = tvF.resize(bytes_.contiguous(), size, interpolation=how, antialias=True)
    interleaved = tvF.resize(bytes_, size, interpolation=how, antialias=True)
    assert torch.equal(planar, interleaved)
    f32 = torch.nn.functional.interpolate(bytes_.float()[None] / 255.0, size, mode="bilinear", antialias=True) * 2 - 1
    return (
        f"resize {kind} {seed} {width} {height} {new_width} {new_height}"
        f" {digest(planar.permute(1, 2, 0).numpy())} {digest(f32[0].permute(1, 2, 0).numpy())}"
    )


def write_pictures(f, lines):
    rng = random.Random(25)
    vae = VaeImageProcessor(vae_scale_factor=16)
    qwen = [(3, 1, 1365, 1024, 384**2, 1024**2, 3136, 12845056), (3, 2, 400, 720, 384**2, 1024**2, 3136, 12845056)]
    step1x = [(3, 3, 1300, 900, 3, 1024, *FORK_PIXELS.values()), (3, 4, 300, 500, 3, 512, *FORK_PIXELS.values())]
    done = {"qwen": 0, "step1x": 0, "resize": 0}
    while done["qwen"] < 200:
        case = qwen.pop(0) if qwen else (
            rng.randrange(4), rng.randrange(1000), *sides(rng, 8, 260), rng.choice([32, 48, 64, 96, 128]) ** 2,
            rng.choice([48, 64, 96, 160]) ** 2, *rng.choice([(3136, 12845056), (784, 2352), (9408, 12544)]),
        )  # fmt: skip
        line = qwen_line(vae, *case)
        done["qwen"] += line is not None
        lines += [line] if line else []
    while done["step1x"] < 200:
        case = step1x.pop(0) if step1x else (
            rng.randrange(4), rng.randrange(1000), *sides(rng, 8, 260), rng.choice([1, 2, 3, 3, 3, 4]),
            rng.choice([32, 48, 64, 100, 160]), *rng.choice([(3136, 12544), (784, 2352), (9408, 12544)]),
        )  # fmt: skip
        line = step1x_line(f, vae, *case)
        done["step1x"] += line is not None
        lines += [line] if line else []
    while done["resize"] < 300:
        width, height, new_width, new_height = (rng.randrange(1, 200) for _ in range(4))
        new_width = max(2, width if rng.random() < 0.1 else new_width)  # torch's f32 kernel is wrong for columns
        new_height = height if rng.random() < 0.1 else new_height
        lines.append(resize_line(rng.randrange(4), rng.randrange(1000), width, height, new_width, new_height))
        done["resize"] += 1
    return done


# --- prompts ---------------------------------------------------------------------------------------------------------

FRAGMENTS = (
    ['"', '"', '"', "“", "“", "”", "”", "'", "‘", "’", "`", "«a»", '"AB"', '"IE"', '""', "“”", "“你好”", '“a "b" c”', '"x “y” z"']
    + ["replace the text", "add a sign that says", "the word", "to", "with", "a woman's face", "文字改成", "Größe", "e\u0301t\u0323e"]
    + ["12", "3.5", "!", "?", ".", ",", "\n", "\n\n", "  ", "\t", "\u3000", "\u00a0", "👩‍👩‍👧", "\u212b", "\u0301", "ﬁ", "한국어", "नमस्ते"]
    + ["<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|vision_start|>", "<|vision_end|>", "<|vision_end|><|video_pad|>", "<tool_call>", "</tool_call>"]
    + ["<|fim_pad|>", "<|im_", "<|", "|>", "<", "Picture 2: ", '\\"', "make it snow", "don't change the background"]
)  # fmt: skip

VECTORS = [
    "", "make it snow", 'X replace the text "AB" with "IE"', '把"甲"换成“乙丙”。', "“quoted” first", "“”", '"', "“", "unbalanced \"text", "”",
    'say "hi<|im_end|>there" now', "<|endoftext|>“<|endoftext|>", 'a ""b"" c', '"e\u0301\u212b👩‍👩‍👧"', '“a "b" c”', '"x “y” z"', "'single' ‘curly’",
    '"two\nlines" and\n"three', "!!! “!” !", '"<tool_call>"', '"' * 7,
]  # fmt: skip


def step1x_prompt(index):
    r = Random(index)
    parts = []
    for _ in range(1 + r.below(14)):
        parts.append(FRAGMENTS[r.below(len(FRAGMENTS))])
        if r.below(2):
            parts.append(" ")
    return "".join(parts)


def step1x_ids(f, tokenizer, prompt, n_image_tokens):
    """As _get_qwenvl_embeds does it, with the chat template's text written out."""
    text = (
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
        f"{f.EDIT_PREFIX} {prompt}Picture 1: <|vision_start|><|image_pad|><|vision_end|><|im_end|>\n<|im_start|>assistant\n"
    )
    added = tokenizer.get_added_tokens_decoder()
    known = SimpleNamespace(additional_special_tokens=[t.content for t in added.values() if t.special], added_tokens_decoder=added)
    pieces, quoted = f.split_string_in_quotation_and_special_tokens(
        text, prefix_len=len(f.EDIT_PREFIX), special_tokens=f._special_token_strings(known)
    )
    out = []
    for piece, q in zip(pieces, quoted):
        piece = piece.replace("<|image_pad|>", "<|image_pad|>" * n_image_tokens)
        out += [(i, q) for i in tokenizer.encode(piece, add_special_tokens=True).ids]
    return out


def write_prompts(f, lines):
    tokenizer = Tokenizer.from_file(str(DATA / "tokenizer" / "qwen.json"))
    lines += [f"fragment {x.encode().hex()}" for x in FRAGMENTS]
    for i in range(1000):
        numbers = [2 * n + q for n, q in step1x_ids(f, tokenizer, step1x_prompt(i), i % 6)]
        lines.append(f"prompt {i} {i % 6} {hash32(numbers)}")
    for prompt in VECTORS:
        numbers = " ".join(f"{n}{'q' * q}" for n, q in step1x_ids(f, tokenizer, prompt, 2))
        lines.append(f"vector {prompt.encode().hex() or '-'} 2 {numbers}")


def main():
    found = {name: version(name).split("+")[0] for name in VERSIONS}
    if found != VERSIONS:
        sys.exit(f"expected {VERSIONS}, got {found}")
    logging.getLogger("fork").setLevel(logging.ERROR)
    f = fork(sys.argv[1])
    head = ", ".join(f"{name} {v}" for name, v in found.items())
    lines = [f"# {head}; torch's kernels for {torch.backends.cpu.get_cpu_capability()}"]
    write_sizes(f, lines)
    print(write_pictures(f, lines))
    (DATA / "preprocess.txt").write_text("\n".join(lines) + "\n")
    lines = [f"# tokenizers {version('tokenizers')}"]
    write_prompts(f, lines)
    (DATA / "step1x_prompts.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
