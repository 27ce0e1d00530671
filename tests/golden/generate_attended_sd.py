#!/usr/bin/env python3
"""Writes data/attended_sd.txt: how much of the cross-attention of Stable Diffusion's UNets goes to words of the prompt, and
where (DAAM), in diffusers' pipelines on the tiny checkpoints of data/sd: python tests/golden/generate_attended_sd.py

The weights are the softmax, in f64, of the queries and keys that each attn2 makes of the prompt's branch; a word's tokens are
those whose offsets the tokenizer gives. Blocks, each behind a name and a number of values: weights and shares of each layer
and head, the same of each word [heads, words], maps [words, height, width], and the layers' names with their heads.
"""

import argparse
from pathlib import Path

from golden_file import check_versions, prepare, version_text

PROMPT = "A photo of a male thief, an old man; no mane."
WORDS = ["male", "old", "man"]
CASE = dict(prompt=PROMPT, negative_prompt="blurry", height=64, width=128, num_inference_steps=3, guidance_scale=5.0)
LEFT_OUT_FROM = 8  # times smaller than the latents


def token_rows(tokenizer):
    """For each word the positions of its tokens, and how many tokens the prompt has."""
    encoded = tokenizer(PROMPT, return_offsets_mapping=True)
    spans = [
        [
            (at, at + len(word))
            for at in range(len(PROMPT))
            if PROMPT[at:].startswith(word) and not PROMPT[at - 1].isalnum() and not PROMPT[at + len(word)].isalnum()
        ]
        for word in WORDS
    ]
    rows = []
    for of_word in spans:
        rows.append([i for i, (a, b) in enumerate(encoded["offset_mapping"]) if b > a and any(a < e and s < b for s, e in of_word)])
    return rows, len(encoded["input_ids"]) - 2


class Watch:
    def __init__(self, unet):
        self.layers = {}  # name: [steps][heads, rows, 77]
        for name, module in unet.named_modules():
            if name.endswith(".attn2"):
                way, *rest = name.split(".")
                block = rest[-2]
                inner = rest[rest.index("attentions") + 1]
                where = "mid" if way == "mid_block" else f"{way.split('_')[0]}.{rest[0]}"
                label = f"{where}.attentions.{inner}.block.{block}"
                module.register_forward_pre_hook(self.hook(label, module), with_kwargs=True)

    def hook(self, label, attn):
        def called(_, args, kwargs):
            x, context = args[0][-1:], kwargs["encoder_hidden_states"][-1:]  # the prompt's branch
            q = attn.to_q(x)[0].double().unflatten(-1, (attn.heads, -1))
            k = attn.to_k(context)[0].double().unflatten(-1, (attn.heads, -1))
            import torch

            weights = (torch.einsum("ihd,jhd->hij", q, k) / q.shape[2] ** 0.5).softmax(-1)
            self.layers.setdefault(label, []).append(weights)

        return called


def look(config, folder):
    import diffusers
    import torch

    xl = config == "sdxl"
    cls = diffusers.StableDiffusionXLPipeline if xl else diffusers.StableDiffusionPipeline
    options = {"variant": "fp16", "add_watermarker": False} if xl else {"safety_checker": None}
    pipeline = cls.from_pretrained(folder, torch_dtype=torch.float32, **options)
    pipeline.set_progress_bar_config(disable=True)
    watch = Watch(pipeline.unet)
    pipeline(generator=torch.Generator().manual_seed(7), output_type="latent", **CASE)
    rows, n_words = token_rows(pipeline.tokenizer)
    every = sorted({row for of_word in rows for row in of_word})
    height, width = CASE["height"] // 8, CASE["width"] // 8
    weights, shares, words, maps = [], [], [], []
    for label, steps in watch.layers.items():
        mean = torch.stack([step.mean(1) for step in steps]).mean(0)  # [heads, 77]
        weights.append(mean[:, every].mean(1))
        shares.append(weights[-1] / mean[:, 1 : 1 + n_words].sum(1))
        words.append(torch.stack([mean[:, of_word].mean(1) for of_word in rows], 1))
        total = torch.stack(steps).sum(0)  # [heads, rows, 77]
        factor = round((height * width / total.shape[1]) ** 0.5)
        if label.startswith("mid") or factor >= LEFT_OUT_FROM:
            continue
        pictures = total.unflatten(1, (height // factor, width // factor)).permute(0, 3, 1, 2)
        maps.append(torch.nn.functional.interpolate(pictures, size=(height, width), mode="bicubic").clamp(min=0))
    mean_map = torch.cat(maps).mean(0)  # [77, height, width]
    names = [f"{label} {steps[0].shape[0]}" for label, steps in watch.layers.items()]
    return {
        "weights": torch.cat(weights),
        "shares": torch.cat(shares),
        "words": torch.cat(words).flatten(),
        "maps": torch.stack([mean_map[of_word].mean(0) for of_word in rows]).flatten(),
    }, names


def main():
    versions = check_versions(("open_clip_torch",))
    prepare()
    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, default=Path(__file__).parent / "data")
    args = parser.parse_args()
    lines = [f"# generate_attended_sd.py: {version_text(versions)}"]
    for config in ("sd15", "sdxl"):
        blocks, names = look(config, args.into / "sd" / config / "checkpoint")
        for name, values in blocks.items():
            lines += [f"{config}.{name} {len(values)}"] + [f"{value:.9g}" for value in values.tolist()]
        lines += [f"{config}.layers {len(names)}", *names]
    (args.into / "attended_sd.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
