#!/usr/bin/env python3
"""What the trained judges (tools/judges) think of each score, by transformers in f32:

    python tests/golden/generate_judges.py BUILD

BUILD has the programs make_pairs and likeness, which draw the pictures and word the question. Writes data/judges.txt,
which tests/repro/test_judges.c compares: an item, and of each axis the probabilities of 1 to 5 among the digits and
what they have together of all tokens. Versions as in golden_file.py.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from golden_file import check_versions, prepare
from PIL import Image

HERE = Path(__file__).resolve().parent
JUDGES = HERE.parents[1] / "tools" / "judges"
PROMPTS = ("O-01", "O-06", "V-02", "V-03")
AXES = ("edit_success", "skin_tone", "race_drift", "gender_drift", "age_drift")
SYSTEM, SIDE = "You are a helpful assistant.", 64


def qwen2_5_vl(folder):
    import torch
    from transformers import Qwen2_5_VLForConditionalGeneration, Qwen2VLImageProcessor

    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    processor = Qwen2VLImageProcessor.from_pretrained(folder)
    picture = "<|vision_start|><|image_pad|><|vision_end|>"
    merged = processor.merge_size**2

    def logits(encode, pictures, question, lead):
        given = processor(pictures, return_tensors="pt")
        text = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\nSOURCE IMAGE:{picture}EDITED IMAGE:{picture}"
        text = f"{text}{question}<|im_end|>\n<|im_start|>assistant\n"
        n = int(given["image_grid_thw"][0].prod()) // merged
        ids = encode(text.replace("<|image_pad|>", "<|image_pad|>" * n)) + encode(lead)
        ids = torch.tensor([ids])
        kinds = (ids == model.config.image_token_id).int()
        return model(input_ids=ids, attention_mask=torch.ones_like(ids), mm_token_type_ids=kinds, **given).logits[0, -1]

    return logits


def mistral3(folder):
    import torch
    from transformers import Mistral3ForConditionalGeneration
    from transformers.models.pixtral.image_processing_pil_pixtral import PixtralImageProcessorPil

    model = Mistral3ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    processor = PixtralImageProcessorPil.from_pretrained(folder)
    block = model.config.vision_config.patch_size * model.config.spatial_merge_size

    def logits(encode, pictures, question, lead):
        given = processor(pictures, return_tensors="pt")
        rows = ["[IMG]" * (SIDE // block)] * (SIDE // block)
        picture = "[IMG_BREAK]".join(rows) + "[IMG_END]"
        text = f"<s>[SYSTEM_PROMPT]{SYSTEM}[/SYSTEM_PROMPT][INST]SOURCE IMAGE:{picture}EDITED IMAGE:{picture}{question}[/INST]"
        return model(input_ids=torch.tensor([encode(text) + encode(lead)]), **given).logits[0, -1]

    return logits


def pairs(build):
    """Item, both pictures, the question."""
    with tempfile.TemporaryDirectory() as folder:
        for prompt in PROMPTS:
            path = Path(folder) / prompt
            command = [build / "make_pairs", "--size", SIDE, "--seed", 4000, "--count", 1, "--faults", 1, "--prompt", prompt]
            subprocess.run(list(map(str, [*command, "-o", path])), check=True)
            race, gender, age = json.loads((path.parent / f"{prompt}.jsonl").read_text())["source"].split("_")
            item = f"qwen_{age}_{gender}_{race}_{prompt}"
            asked = subprocess.run([build / "likeness", "judge", "prompt", item], check=True, capture_output=True, text=True)
            pictures = np.fromfile(path, np.uint8).reshape(2, SIDE, SIDE, 3)
            yield item, [Image.fromarray(p) for p in pictures], asked.stdout.removesuffix("\n")


def main():
    check_versions()
    prepare()
    import torch
    from tokenizers import Tokenizer

    asked = list(pairs(Path(sys.argv[1])))
    with (HERE / "data" / "judges.txt").open("w") as out, torch.no_grad():
        for make in (qwen2_5_vl, mistral3):
            folder = JUDGES / make.__name__
            words, logits = Tokenizer.from_file(str(folder / "tokenizer.json")), make(folder)
            encode = lambda text: words.encode(text, add_special_tokens=False).ids  # noqa: B023, E731
            digits = [words.token_to_id(str(d)) for d in range(1, 6)]
            for item, pictures, question in asked:
                print(item, file=out)
                for axis in AXES:
                    lead = '{\n  "scores": {\n    "%s": ' % axis
                    p = logits(encode, pictures, question, lead).double().softmax(0)[digits]
                    print(*(f"{v:.9f}" for v in (p / p.sum()).tolist()), f"{p.sum():.9f}", file=out)


if __name__ == "__main__":
    main()
