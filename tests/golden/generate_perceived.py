#!/usr/bin/env python3
"""Golden of eval/judge/perceived.c: what the tiny checkpoints of make_checkpoint think of a closed set of labels, by
transformers in f32. Probabilities of labels come from whole vocabularies and the chain rule over a label's characters.
Run: BUILD_DIR=build python tests/golden/generate_perceived.py (torch, transformers, tokenizers, numpy)"""

import os
import pathlib
import re
import subprocess
import tempfile

import numpy as np
import tokenizers
import torch
import transformers

HERE = pathlib.Path(__file__).parent
WIDTH, HEIGHT = 84, 56  # no model resizes it
SOURCE = (HERE.parents[1] / "eval/judge/perceived.c").read_text()
QUESTION = "".join(
    re.findall(r'"((?:[^"\\]|\\.)*)"', SOURCE[SOURCE.index("lk_perceived_question[]") : SOURCE.index(";\n", SOURCE.index("lk_perceived_question[]"))])
).replace("\\n", "\n")
SYSTEM = "You are a helpful assistant."
SETS = {
    "race": ["White", "Black", "East Asian", "Southeast Asian", "Indian", "Middle Eastern", "Latino"],
    "gender": ["Male", "Female"],
    "age": ["0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "70+"],
}


def picture(n):
    y, x, c = np.mgrid[0:HEIGHT, 0:WIDTH, 0:3]
    return ((x * (7 + n) + y * 13 + c * 29 + x * y // 5) % 256).astype(np.uint8)


def pixels(n):
    mean = np.array([0.48145466, 0.4578275, 0.40821073])
    std = np.array([0.26862954, 0.26130258, 0.27577711])
    return torch.tensor((picture(n) / 255 - mean) / std, dtype=torch.float32).permute(2, 0, 1)


class Qwen:
    def __init__(self, folder):
        self.model = transformers.Qwen2_5_VLForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
        self.tokenizer = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
        self.pad = self.model.config.image_token_id

    def ids(self, begin):
        image = "<|vision_start|><|image_pad|><|vision_end|>"
        text = (f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{image}{QUESTION}<|im_end|>\n"
                "<|im_start|>assistant\n")
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        ids += self.tokenizer.encode(begin, add_special_tokens=False).ids
        at = ids.index(self.pad)
        return ids[:at] + [self.pad] * (WIDTH // 28 * HEIGHT // 28) + ids[at + 1 :]

    def logits(self, n, begin):
        ids = torch.tensor([self.ids(begin)])
        x = pixels(n)[None].repeat(2, 1, 1, 1)  # a picture is two equal frames
        h, w = HEIGHT // 14, WIDTH // 14
        x = x.reshape(1, 2, 3, h // 2, 2, 14, w // 2, 2, 14).permute(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(h * w, -1)
        kinds = (ids == self.pad).int()
        out = self.model(input_ids=ids, attention_mask=torch.ones_like(ids), pixel_values=x, mm_token_type_ids=kinds,
                         image_grid_thw=torch.tensor([[1, h, w]]))
        return out.logits[0, -1].double()


class Mistral:
    def __init__(self, folder):
        self.model = transformers.Mistral3ForConditionalGeneration.from_pretrained(
            f"{folder}/text_encoder", dtype=torch.float32).eval()
        self.tokenizer = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer/tokenizer.json")

    def logits(self, n, begin):
        row = "[IMG]" * (WIDTH // 28)
        image = "[IMG_BREAK]".join([row] * (HEIGHT // 28)) + "[IMG_END]"
        text = f"<s>[SYSTEM_PROMPT]{SYSTEM}[/SYSTEM_PROMPT][INST]{image}{QUESTION}[/INST]"
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        ids += self.tokenizer.encode(begin, add_special_tokens=False).ids
        out = self.model(input_ids=torch.tensor([ids]), pixel_values=pixels(n)[None],
                         image_sizes=torch.tensor([[HEIGHT, WIDTH]]))
        return out.logits[0, -1].double()


def first_tokens(model, words):
    return [model.tokenizer.encode(w, add_special_tokens=False).ids[0] for w in words]


def closed(logits, ids):
    p = torch.softmax(logits, 0)[ids]
    return (p / p.sum()).tolist(), p.sum().item()


@torch.no_grad()
def labels(model, n):
    lines = []
    for key, words in SETS.items():
        begin = '{"%s": "' % key
        if key != "age":
            p, mass = closed(model.logits(n, begin), first_tokens(model, words))
        else:
            digits = sorted({w[0] for w in words})
            by_digit, mass = closed(model.logits(n, begin), first_tokens(model, digits))
            p = []
            for word in words:
                same = [w for w in words if w[0] == word[0]]
                value = by_digit[digits.index(word[0])]
                if len(same) > 1:
                    value *= closed(model.logits(n, begin + word[0]), first_tokens(model, [w[1:2] for w in same]))[0][same.index(word)]
                p.append(value)
        assert abs(sum(p) - 1) < 1e-12
        lines.append(" ".join(f"{v:.9g}" for v in [mass, *p]))
    return lines


def main():
    torch.set_num_threads(1)
    tool = pathlib.Path(os.environ["BUILD_DIR"]) / "make_checkpoint"
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for family, kind in (("qwen25_vl", Qwen), ("flux2", Mistral)):
            path = f"{folder}/{family}"
            subprocess.run([tool, "--family", family, "--seed", "0", "--preset", "tiny", path], check=True)
            model = kind(path)
            for n in range(2):
                lines += labels(model, n)
    text = f"transformers {transformers.__version__}, torch {torch.__version__}\n" + "\n".join(lines) + "\n"
    (HERE / "data/perceived.txt").write_text(text)
    print(text)


main()
