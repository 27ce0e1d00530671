#!/usr/bin/env python3
"""Writes data/clip_probes.safetensors: what CLIP's text encoders of the tiny checkpoints of data/sd find alike, and prompts that
embed_norm has normalised: python tests/golden/generate_clip_probes.py

CONFIG.cosines [phrases, phrases]: of sd15 the mean of a phrase's final-normed states between beginning and end, of sdxl
the projected state of the second encoder (text_embeds). CONFIG.HOW.embeds [prompts, 77, width] for HOW none, center and zscore:
diffusers' embeddings, of which rows 1 to the first end are normalised by scikit-learn's StandardScaler over the tokens of all
prompts, each encoder's columns by themselves, and each row gets its norm back.
"""

import argparse
from pathlib import Path

from golden_file import check_versions, prepare, save_case, version_text

PHRASES = ["thief", "male", "an old woman", "Latino Hispanic", "hacker beside a machine!!"]
PROMPTS = ["A photo of a thief.", "A photo of a hacker!!!, an old man; no mane", "red"]
PROMPTS_2 = [PROMPTS[0], PROMPTS[1], "a red sky, far away"]  # of sdxl's second encoder


def normalised(rows, how):
    import numpy as np
    from sklearn.preprocessing import StandardScaler

    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    out = StandardScaler(with_std=how == "zscore").fit_transform(rows)
    return out * norms / np.linalg.norm(out, axis=1, keepdims=True)


def embed_norm(embeds, ends, widths, how):
    """embeds [prompts, 77, width] in f64; ends: for each encoder the first end of each prompt."""
    import numpy as np

    out, first = embeds.copy(), 0
    for of_encoder, width in zip(ends, widths):
        places = [(i, row) for i, end in enumerate(of_encoder) for row in range(1, end + 1)]
        rows = np.stack([embeds[i, row, first : first + width] for i, row in places])
        for (i, row), value in zip(places, normalised(rows, how)):
            out[i, row, first : first + width] = value
        first += width
    return out


def first_ends(tokenizer, prompts):
    return [tokenizer(prompt)["input_ids"].index(tokenizer.eos_token_id) for prompt in prompts]


def probe(config, folder):
    import diffusers
    import numpy as np
    import torch

    xl = config == "sdxl"
    cls = diffusers.StableDiffusionXLPipeline if xl else diffusers.StableDiffusionPipeline
    options = {"variant": "fp16", "add_watermarker": False} if xl else {"safety_checker": None}
    pipeline = cls.from_pretrained(folder, torch_dtype=torch.float32, **options)
    tokenizer, encoder = (
        (pipeline.tokenizer_2, pipeline.text_encoder_2) if xl else (pipeline.tokenizer, pipeline.text_encoder)
    )
    states = []
    with torch.no_grad():
        for phrase in PHRASES:
            n = len(tokenizer(phrase)["input_ids"])
            ids = tokenizer(phrase, padding="max_length", max_length=77, return_tensors="pt").input_ids
            out = encoder(ids)
            states.append((out.text_embeds[0] if xl else out.last_hidden_state[0, 1 : n - 1].double().mean(0)).double())
        embeds, pooled = [], []
        for prompt, second in zip(PROMPTS, PROMPTS_2):
            more = {"prompt_2": second} if xl else {}
            made = pipeline.encode_prompt(
                prompt, device="cpu", num_images_per_prompt=1, do_classifier_free_guidance=False, **more
            )
            embeds.append(made[0][0])
            if xl:
                pooled.append(made[2][0])
    states = torch.nn.functional.normalize(torch.stack(states), dim=1)
    ends = [first_ends(pipeline.tokenizer, PROMPTS)] + ([first_ends(pipeline.tokenizer_2, PROMPTS_2)] if xl else [])
    widths = [e.config.hidden_size for e in ((pipeline.text_encoder, pipeline.text_encoder_2) if xl else (encoder,))]
    out = {"cosines": (states @ states.T).float(), "none.embeds": torch.stack(embeds)}
    for how in ("center", "zscore"):
        done = embed_norm(torch.stack(embeds).double().numpy(), ends, widths, how)
        out[f"{how}.embeds"] = torch.from_numpy(done.astype(np.float32))
    if xl:
        out["pooled"] = torch.stack(pooled)
    return out


def main():
    versions = check_versions(("open_clip_torch", "scikit-learn"))
    prepare()
    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, default=Path(__file__).parent / "data")
    args = parser.parse_args()
    tensors = {}
    for config in ("sd15", "sdxl"):
        for name, value in probe(config, args.into / "sd" / config / "checkpoint").items():
            tensors[f"{config}.{name}"] = value.contiguous()
    metadata = {"phrases": "|".join(PHRASES), "prompts": "|".join(PROMPTS), "prompt_2": PROMPTS_2[2], "versions": version_text(versions)}
    save_case(args.into / "clip_probes.safetensors", tensors, metadata)


if __name__ == "__main__":
    main()
