#!/usr/bin/env python3
"""Writes data/attended.txt: how much of the attention of a picture's rows goes to words of the prompt in diffusers'
pipelines, on the tiny checkpoints of data/.

    python tests/golden/generate_attended.py

Needs torch (2.15.0), diffusers (0.42.1), transformers (5.23.0), tokenizers (0.23.3). The weights are the softmax, in
f64, of the queries and keys that the blocks hand to the dispatcher; the words' tokens are those whose offsets the fast
tokenizer gives. Blocks, each behind a name and a number of values: of each layer and head the mean over rows, tokens and
steps."""

import pathlib

import diffusers
import numpy as np
import tokenizers
import torch
import transformers

import flux2_record
import qwen_edit_record

EXPECTED = {"torch": "2.15.0", "diffusers": "0.42.1", "transformers": "5.23.0", "tokenizers": "0.23.3"}
FOUND = {"torch": torch.__version__.split("+")[0], "diffusers": diffusers.__version__,
         "transformers": transformers.__version__, "tokenizers": tokenizers.__version__}
DATA = pathlib.Path(__file__).resolve().parent / "data"
PROMPT = "A Zoë of a male thief, an old man; no mane."
WORDS = ["male", "old", "man"]
CASE = dict(prompt=PROMPT, height=48, width=32, steps=2, seed=7)


def spans():
    """Of whole words, in characters."""
    return [(at, at + len(word)) for word in WORDS for at in range(len(PROMPT))
            if PROMPT[at:].startswith(word) and not PROMPT[at - 1].isalnum() and not PROMPT[at + len(word)].isalnum()]


def token_rows(tokenizer, ids):
    """Positions among `ids` of the tokens that have a character of the words. The prompt's own tokens are looked for in
    the ids of the whole chat, where they stand once."""
    rows, all_ids = set(), ids.tolist()
    whole = tokenizer.decode(all_ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    encoded = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
    assert encoded["input_ids"] == all_ids
    begin = whole.rindex(PROMPT)
    for row, (first, end) in enumerate(encoded["offset_mapping"]):
        if any(first < begin + b and begin + a < end for a, b in spans()):
            rows.add(row)
    return sorted(rows)


class Weights:
    """Put into a recorder's place of on_attention."""

    def __init__(self, recorder, n_txt):
        self.recorder, self.n_txt, self.sums, self.rows = recorder, n_txt, {}, None

    def add(self, layer, query, key):
        q, k = query[0].double(), key[0].double()  # [n, heads, head_dim]
        scores = torch.einsum("ihd,jhd->hij", q, k) / q.shape[2] ** 0.5
        weights = scores.softmax(-1)[:, -(q.shape[0] - self.n_txt()):, self.rows()]
        self.sums.setdefault(layer, []).append(weights.mean((1, 2)))

    def values(self):
        return [float(v) for layer in sorted(self.sums) for v in torch.stack(self.sums[layer]).mean(0)]


def flux2():
    case = dict(CASE, guidance=4.0, out_layers=(1, 2, 3), max_sequence_length=400)
    found = {}

    class Recorder(flux2_record.Recorder):
        def on_attention(self, output, query, key, value, **_):
            w = found.setdefault("w", Weights(self, lambda: self.stages["text_encoder.ids"].shape[0]))
            w.rows = lambda: token_rows_flux2(self)
            n = len(self.pipeline.transformer.transformer_blocks) + len(self.pipeline.transformer.single_transformer_blocks)
            w.add(self.n_attention % n, query, key)
            self.n_attention += 1

    def token_rows_flux2(recorder):
        ids = recorder.stages["text_encoder.ids"]
        pads = int((ids == recorder.pipeline.tokenizer.tokenizer.pad_token_id).sum())
        return [pads + row for row in token_rows(recorder.pipeline.tokenizer.tokenizer, ids[pads:])]

    flux2_record.Recorder, kept = Recorder, flux2_record.Recorder
    flux2_record.run(DATA / "flux2/rich/checkpoint", case, torch.float32, [])
    flux2_record.Recorder = kept
    return found["w"].values()


def qwen():
    case = dict(CASE, negative_prompt="blurry", true_cfg_scale=4.0)
    found = {}

    class Recorder(qwen_edit_record.Recorder):
        def on_attention(self, output, query, key, value, **_):
            i, self.n_attention = self.n_attention, self.n_attention + 1
            if self.branch != "cond":
                return
            drop = self.pipeline.prompt_template_encode_start_idx
            w = found.setdefault("w", Weights(self, lambda: self.stages["cond.text_encoder.ids"].shape[0] - drop))
            w.rows = lambda: [row - drop for row in
                              token_rows(self.pipeline.tokenizer, self.stages["cond.text_encoder.ids"])]
            w.add(i, query, key)

    qwen_edit_record.Recorder, kept = Recorder, qwen_edit_record.Recorder
    qwen_edit_record.run("text", DATA / "qwen_edit/text/checkpoint", case, torch.float32, [])
    qwen_edit_record.Recorder = kept
    return found["w"].values()


def main():
    assert FOUND == EXPECTED, FOUND
    lines = [f"# generate_attended.py: {' '.join(f'{k}={v}' for k, v in FOUND.items())}\n"]
    for name, values in (("flux2", flux2()), ("qwen_edit", qwen())):
        lines += [f"{name} {len(values)}\n"] + [f"{v:.9g}\n" for v in values]
    (DATA / "attended.txt").write_text("".join(lines))
    print(np.ceil(len(lines)))


if __name__ == "__main__":
    main()
