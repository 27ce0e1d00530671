#!/usr/bin/env python3
"""Writes data/rope_table.txt: rotary tables of diffusers (Qwen-Image; ids in double) and transformers (Qwen2.5-VL).

    python tests/golden/generate_rope_table.py

Needs diffusers (0.42.1), transformers (5.23.0), torch (2.15.0); the versions in brackets made the committed file. A
line is KIND IDS COS SIN, one value per pair of channels, floats as the hexadecimal of their bits:
  f32    frame, row and column of a Qwen-Image token: QwenEmbedRope, theta 10000, axes 16, 56, 56
  vision row and column of a patch: Qwen2.5-VL's vision tower, theta 10000, head_dim 80
  mrope, mrope_bf16  time, row and column: Qwen2.5-VL's language model, theta 1e6, sections 16, 24, 24, head_dim 128
  f64    Step1X-Edit's ids, negative and fractional: get_1d_rotary_pos_embed in double, theta 10000, axes 16, 56, 56"""

import pathlib

import diffusers
import numpy as np
import torch
import transformers
from diffusers.models.embeddings import get_1d_rotary_pos_embed
from diffusers.models.transformers.transformer_qwenimage import QwenEmbedRope
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLTextConfig, Qwen2_5_VLVisionConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import (
    Qwen2_5_VLRotaryEmbedding,
    Qwen2_5_VLVisionRotaryEmbedding,
)

AXES = [16, 56, 56]


def hexes(tensor):
    return " ".join(f"{v:x}" for v in tensor.float().contiguous().numpy().view(np.uint32))


def line(kind, ids, cos, sin):
    return f"{kind} {' '.join(map(str, ids))} {hexes(cos)} {hexes(sin)}"


def qwen_image():
    """Two images of 6 x 9 and 64 x 33 tokens, then text; ids as the rows of the table are built."""
    rope = QwenEmbedRope(theta=10000, axes_dim=AXES, scale_rope=True)
    images, text = rope([[(1, 6, 9), (1, 64, 33)]], max_txt_seq_len=900)
    places = []
    for frame, height, width in ((0, 6, 9), (1, 64, 33)):
        rows = range(-(height - height // 2), height // 2)
        places += [(frame, y, x) for y in rows for x in range(-(width - width // 2), width // 2)]
    assert len(places) == len(images)
    for i in (0, 30, 54, 1200, len(places) - 1):
        yield line("f32", places[i], images[i].real, images[i].imag)
    first = max(64 // 2, 33 // 2)
    for i in (0, 777):
        yield line("f32", [first + i] * 3, text[i].real, text[i].imag)


def qwen_vl():
    vision = Qwen2_5_VLVisionRotaryEmbedding(Qwen2_5_VLVisionConfig(hidden_size=1280, num_heads=16))
    for ids in ((0, 0), (1, 2), (27, 45), (200, 3)):
        cos, sin = vision(torch.zeros(1), torch.tensor([ids]))
        yield line("vision", ids, cos[0, :40], sin[0, :40])
    config = Qwen2_5_VLTextConfig(
        hidden_size=3584,
        num_attention_heads=28,
        rope_parameters=dict(rope_type="default", rope_theta=1e6, mrope_section=[16, 24, 24]),
    )
    language = Qwen2_5_VLRotaryEmbedding(config)
    for ids in ((0, 0, 0), (63, 63, 63), (15, 21, 37), (1300, 1300, 1300)):
        for dtype, kind in ((torch.float32, "mrope"), (torch.bfloat16, "mrope_bf16")):
            cos, sin = language(torch.zeros(1, dtype=dtype), torch.tensor(ids)[:, None, None])
            yield line(kind, ids, cos[0, 0, :64], sin[0, 0, :64])


def step1x():
    for ids in ((0, 0, 0), (0, -0.5, 12.25), (1, -31.375, 0.1), (0, 1023, -640.75)):
        tables = [
            get_1d_rotary_pos_embed(dim, torch.tensor([x]), 10000, use_real=True, freqs_dtype=torch.float64)
            for dim, x in zip(AXES, map(float, ids))
        ]
        cos, sin = (torch.cat([t[k][0, ::2] for t in tables]) for k in (0, 1))
        yield line("f64", ids, cos, sin)


def main():
    versions = f"diffusers {diffusers.__version__}, transformers {transformers.__version__}, torch {torch.__version__}"
    lines = [f"# {versions}, tests/golden/generate_rope_table.py", *qwen_image(), *qwen_vl(), *step1x()]
    path = pathlib.Path(__file__).parent / "data" / "rope_table.txt"
    path.write_text("\n".join(lines) + "\n")
    print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
