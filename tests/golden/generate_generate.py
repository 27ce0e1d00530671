#!/usr/bin/env python3
"""Makes the goldens of text generation with transformers: python tests/golden/generate_generate.py [--into FOLDER]

generate.safetensors holds ids that Qwen2_5_VLForConditionalGeneration.generate gives for prompts of data/qwen25_vl, and
the distribution that some of them were drawn from. sampler.safetensors holds the same for logits from torch.randn: what
the logits processors make of them, and what torch.multinomial draws. The settings stand in the metadata. decode.txt holds
the text that tokenizers makes of random ids of data/tokenizer. See README.md.
"""

import argparse
import json
from pathlib import Path

from golden_file import check_versions, prepare, sort_metadata, version_text

ROOT = Path(__file__).parent / "data"
STEPS = (0, 1, 7, 31)  # whose distribution is kept

# name: config, case, and what generate is told; "stop" is an index into the ids that it gives without a stop id
GENERATIONS = {
    "greedy": dict(config="flat", case="two", do_sample=False, repetition_penalty=1.0),
    "greedy_penalty": dict(config="flat", case="two", do_sample=False, repetition_penalty=1.05),
    "greedy_tied": dict(config="nested", case="two", do_sample=False, repetition_penalty=2.5),
    "greedy_text": dict(config="flat", case="text", do_sample=False, repetition_penalty=1.1),
    "greedy_text_stop": dict(config="flat", case="text", do_sample=False, repetition_penalty=1.1, stop=29),
    "sample": dict(
        config="flat", case="two", do_sample=True, repetition_penalty=1.05, temperature=0.7, top_k=20, top_p=0.9, seed=7
    ),
    "sample_all": dict(
        config="nested", case="square", do_sample=True, repetition_penalty=1.0, temperature=0.2, top_k=0, seed=42
    ),
    "sample_released": dict(
        config="flat", case="square", do_sample=True, repetition_penalty=1.05, temperature=0.1, top_k=1, top_p=0.001
    ),
}

# name: seed of the logits (and of the draws), times `scale`, rounded to multiples of 1 / `grain` if that is not 0
SAMPLERS = {
    "plain": dict(seed=1, scale=3, temperature=1.0, top_k=0, top_p=1.0, penalty=1.0),
    "penalty": dict(seed=2, scale=3, temperature=1.0, top_k=0, top_p=1.0, penalty=1.3),
    "reward": dict(seed=3, scale=3, temperature=1.0, top_k=0, top_p=1.0, penalty=0.8),
    "cold": dict(seed=4, scale=1, temperature=0.25, top_k=0, top_p=1.0, penalty=1.0),
    "hot": dict(seed=5, scale=3, temperature=4.0, top_k=0, top_p=1.0, penalty=1.0),
    "top_k": dict(seed=6, scale=2, temperature=1.0, top_k=17, top_p=1.0, penalty=1.0),
    "top_k_ties": dict(seed=7, scale=2, grain=2, temperature=1.0, top_k=10, top_p=1.0, penalty=1.0),
    "top_p": dict(seed=8, scale=2, temperature=1.0, top_k=0, top_p=0.6, penalty=1.0),
    "top_p_one": dict(seed=10, scale=2, temperature=1.0, top_k=0, top_p=0.0, penalty=1.0),
    "all": dict(seed=11, scale=2, temperature=1.7, top_k=50, top_p=0.8, penalty=1.05),
}
VOCAB = 600
N_SEEN = 60
N_DRAWS = 64


def text(settings):
    return " ".join(f"{key}={value}" for key, value in settings.items())


def generate(name, settings, tensors):
    """Ids of one generation, and probabilities of some steps."""
    import torch
    from safetensors.torch import load_file
    from transformers import Qwen2_5_VLForConditionalGeneration

    from qwen25_vl_models import CONFIGS, pixel_rows

    settings = dict(settings)
    config, case, stop = settings.pop("config"), settings.pop("case"), settings.pop("stop", None)
    folder = ROOT / "qwen25_vl" / config
    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(folder / "checkpoint", dtype=torch.float32).eval()
    golden = load_file(folder / "cases" / f"{case}.safetensors")
    ids = golden["input.ids"].long()[None]
    grids = CONFIGS[config]["cases"][case]["grids"]
    arguments = dict(input_ids=ids, attention_mask=torch.ones_like(ids))
    if grids:
        arguments.update(
            pixel_values=torch.cat([pixel_rows(golden[f"input.image.{i}"]) for i in range(len(grids))]),
            image_grid_thw=torch.tensor([(1, *grid) for grid in grids]),
            mm_token_type_ids=(ids == model.config.image_token_id).int(),
        )
    stop_ids = [] if stop is None else [int(tensors[f"{name.removesuffix('_stop')}.ids"][stop])]
    model.generation_config.eos_token_id = stop_ids or None
    model.generation_config.pad_token_id = 0
    torch.manual_seed(settings.pop("seed", 0))
    settings.setdefault("temperature", 1.0)
    settings.setdefault("top_k", 50)
    settings.setdefault("top_p", 1.0)
    with torch.no_grad():
        out = model.generate(
            **arguments, **settings, max_new_tokens=64, output_scores=True, return_dict_in_generate=True
        )
    new = out.sequences[0, ids.shape[1] :].to(torch.int32)
    tensors[f"{name}.ids"] = new.clone()
    for step in STEPS:
        if settings["do_sample"] and step < len(new):
            tensors[f"{name}.{step}.probabilities"] = torch.softmax(out.scores[step][0], -1)
    print(name, new.tolist())
    return stop_ids


def sample(settings):
    """Probabilities after the processors, and a row of draws from them."""
    import torch
    from transformers import (
        LogitsProcessorList,
        RepetitionPenaltyLogitsProcessor,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    generator = torch.Generator("cpu").manual_seed(settings["seed"])
    logits = torch.randn(VOCAB, generator=generator) * settings["scale"]
    if settings.get("grain"):
        logits = (logits * settings["grain"]).round() / settings["grain"]
    seen = torch.arange(N_SEEN)[None] * 7 % VOCAB
    processors = LogitsProcessorList([RepetitionPenaltyLogitsProcessor(settings["penalty"])])
    processors.append(TemperatureLogitsWarper(settings["temperature"]))
    if settings["top_k"]:
        processors.append(TopKLogitsWarper(settings["top_k"]))
    if settings["top_p"] < 1:
        processors.append(TopPLogitsWarper(settings["top_p"]))
    probabilities = torch.softmax(processors(seen, logits[None])[0], -1)
    generator = torch.Generator("cpu").manual_seed(settings["seed"])
    draws = [torch.multinomial(probabilities, 1, generator=generator).item() for _ in range(N_DRAWS)]
    return probabilities, torch.tensor(draws, dtype=torch.int32)


def decode_lines(name):
    """TOKENIZER, whether special tokens are left out, ids, the text in hexadecimal."""
    import random

    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(ROOT / "tokenizer" / f"{name}.json"))
    assert json.loads(tokenizer.to_str())["decoder"]["type"] == "ByteLevel"
    draw = random.Random(5)
    n = tokenizer.get_vocab_size()
    # Tokens of one byte make text that is not UTF-8.
    bytes_ = [i for i in range(n) if len(tokenizer.id_to_token(i)) == 1]
    added = sorted(tokenizer.get_added_tokens_decoder())
    lines = []
    for i in range(30):
        kinds = [bytes_] if i % 3 == 0 else [range(n), bytes_, added]
        ids = [draw.choice(draw.choice(kinds)) for _ in range(1 + i)]
        for skip in (0, 1):
            text = tokenizer.decode(ids, skip_special_tokens=bool(skip))
            lines.append(f"{name} {skip} {','.join(map(str, ids))} {text.encode().hex() or '-'}")
    return lines


def main():
    versions = check_versions()
    prepare()
    from safetensors.torch import save_file

    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, default=ROOT / "generate")
    folder = parser.parse_args().into
    folder.mkdir(parents=True, exist_ok=True)
    tensors, metadata = {}, {"versions": version_text(versions)}
    for name, settings in GENERATIONS.items():
        stop_ids = generate(name, settings, tensors)
        settings = {key: value for key, value in settings.items() if key != "stop"}
        settings["do_sample"] = int(settings["do_sample"])
        if stop_ids:
            settings["stop_id"] = stop_ids[0]
        metadata[name] = text(settings)
    save_file(tensors, folder / "generate.safetensors", metadata=metadata)
    sort_metadata(folder / "generate.safetensors")
    tensors, metadata = {}, {"versions": version_text(versions)}
    for name, settings in SAMPLERS.items():
        tensors[f"{name}.probabilities"], tensors[f"{name}.draws"] = sample(settings)
        metadata[name] = text(settings)
    save_file(tensors, folder / "sampler.safetensors", metadata=metadata)
    sort_metadata(folder / "sampler.safetensors")
    lines = decode_lines("qwen") + decode_lines("mistral")
    (folder / "decode.txt").write_text("\n".join(lines) + "\n")
    for path in folder.iterdir():
        path.chmod(0o644)
        print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
