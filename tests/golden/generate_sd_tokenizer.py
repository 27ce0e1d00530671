#!/usr/bin/env python3
"""Makes data/sd_tokenizer.txt with transformers' CLIPTokenizer: a JSON object a line, prompt and the 77 ids of both tokenizers of
data/sd/sdxl/checkpoint. python tests/golden/generate_sd_tokenizer.py"""

import json
import random
from pathlib import Path

from golden_file import check_versions, prepare

PROMPTS = [
    "a photo of an astronaut riding a horse on mars",
    "",
    "A  thief\tin\n a STORE",
    "don't we'll it's 2024 1st café Ångström naïve",
    "hello!!! (world) #1 $5.00",
    "人 thief 🙂",
    "a_b c-d e/f ÀÉ ﬁ ①",
    "ΟΔΟΣ İstanbul ẞ",
    "<|startoftext|>x<|endoftext|> y",
    "<|ENDOFTEXT|> a <|StartOfText|> b",
    "&amp; &lt;b&gt;",
    "varied age, gender, and ethnicity",
    " ! ",
    "!a! b!c",
    "\u00a0\u0085\u2003wide\u200bzero",
    "e\u0301 \u1100\u1161\u11a8 \u0344",
    "cat " * 90,
    "1234 ٣ ½ Ⅷ",
    "it's'S 'LL I'm",
]
ALPHABET = list("abcdefgh THE in on 0179 !?.,'-_/<>|&;:()é ñÅ İßσΣ\t\n\u00a0\u0301漢字あ🙂ﬁ①½")


def main():
    check_versions()
    prepare()
    from transformers import CLIPTokenizer

    data = Path(__file__).parent / "data"
    tokenizers = [CLIPTokenizer.from_pretrained(data / "sd/sdxl/checkpoint" / name) for name in ("tokenizer", "tokenizer_2")]
    rng = random.Random(5)
    prompts = PROMPTS + ["".join(rng.choices(ALPHABET, k=rng.randint(1, 60))) for _ in range(80)]
    with open(data / "sd_tokenizer.txt", "w", encoding="utf-8") as out:
        for prompt in prompts:
            ids = [t(prompt, padding="max_length", max_length=77, truncation=True).input_ids for t in tokenizers]
            out.write(json.dumps({"prompt": prompt, "ids": ids[0], "ids_2": ids[1]}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
