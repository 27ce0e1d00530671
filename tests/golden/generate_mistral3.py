#!/usr/bin/env python3
"""Makes the goldens of Mistral-Small-3 with its vision tower, with transformers:
python tests/golden/generate_mistral3.py [--into FOLDER]

data/mistral3/CONFIG/checkpoint: tiny random checkpoints. cases/NAME.safetensors: stages of one forward pass of
Mistral3ForConditionalGeneration in f32, with the errors of its bf16 runs, and the ids that generate gives in f32.
data/pixtral.txt: sizes and digests of pictures as PixtralImageProcessor prepares them with Pillow. See README.md.
"""

import argparse
import json
import random
import shutil
from pathlib import Path

from golden_file import check_versions, prepare, relative_error, set_modes, sort_metadata, version_text

ROOT = Path(__file__).parent / "data"
N_NEW = 64
BREAK, END = 12, 13  # released ids

CONFIGS = {
    # silu in the tower, as released; names, their order and ten shards as in FLUX.2-dev's text_encoder.
    "silu": dict(
        vision=dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48, patch_size=4,
                    image_size=64, hidden_act="silu"),
        text=dict(hidden_size=24, num_attention_heads=4, num_key_value_heads=2, head_dim=8, intermediate_size=40,
                  num_hidden_layers=3, vocab_size=64),
        image_token=10, names="released",  seed=1,
    ),
    # gelu in the tower and biases in the projector, names as the modules have them in memory, rope_theta as a plain key.
    "gelu": dict(
        vision=dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48, patch_size=4,
                    image_size=64, hidden_act="gelu"),
        text=dict(hidden_size=24, num_attention_heads=4, num_key_value_heads=2, head_dim=8, intermediate_size=40,
                  num_hidden_layers=3, vocab_size=64),
        image_token=10, names="memory", projector_bias=True, old_rope=True, seed=2,
    ),
    # The size of transformers' own tests; names as writers of single files have them.
    "single": dict(
        vision=dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, patch_size=6,
                    image_size=30, hidden_act="gelu"),
        text=dict(hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=8, intermediate_size=37,
                  num_hidden_layers=2, vocab_size=99),
        image_token=1, names="single", seed=3,
    ),
}
# Numbers of text tokens around the images, and their grids of patches, rows x columns.
CASES = {
    "text": dict(text=[11], grids=[]),
    "one": dict(text=[3, 5], grids=[(6, 4)]),
    "two": dict(text=[3, 2, 6], grids=[(4, 6), (6, 4)]),
}
GENERATIONS = {
    "greedy": dict(do_sample=False),
    **{f"t{t}.seed{s}": dict(do_sample=True, temperature=t, seed=s) for t in (0.1, 1.0) for s in (1, 2, 3)},
}
# Stages of the bf16 run that are stored themselves: there equal roundings give equal bits.
EARLY = ("vision.0.patch_conv", "vision.0.ln_pre", "vision.1.layer.0")
# Gain of what a norm follows at once: small, so that its eps shows.
SMALL = {"patch_conv": 0.02, "embed_tokens": 0.02, "linear_2": 0.05}


def build(config):
    import torch
    from transformers import Mistral3Config, Mistral3ForConditionalGeneration, MistralConfig, PixtralVisionConfig

    text = MistralConfig(
        **config["text"], rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 1e9},
        sliding_window=None, hidden_act="silu", bos_token_id=None, eos_token_id=2, pad_token_id=11,
        max_position_embeddings=4096, tie_word_embeddings=False,
    )
    model = Mistral3ForConditionalGeneration(
        Mistral3Config(
            text_config=text, vision_config=PixtralVisionConfig(num_channels=3, **config["vision"]),
            image_token_index=config["image_token"], tie_word_embeddings=False,
            multimodal_projector_bias=config.get("projector_bias", False),
        )
    )
    generator = torch.Generator("cpu").manual_seed(config["seed"])
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            value = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim == 1 and not name.endswith("bias"):
                value = 1 + 0.2 * value
            else:
                value *= next((g for part, g in SMALL.items() if part in name), 0.3)
            parameter.copy_(value)
    return model.to(torch.bfloat16)


def rename(folder, how):
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    tensors = {}
    for name, value in load_file(path).items():
        if how == "memory":
            name = name.replace("language_model.model.", "model.language_model.").replace("language_model.lm_head", "lm_head")
            if name.startswith(("vision_tower.", "multi_modal_projector.")):
                name = "model." + name
        elif how == "single":
            name = name.replace("language_model.model.", "model.").replace("language_model.lm_head", "lm_head")
        tensors[name] = value
    save_file(tensors, path, metadata={"format": "pt"})


def shard(folder):
    """Tower, projector, language model, head, cut into ten files of about the same size."""
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    tensors = load_file(path)
    order = ("vision_tower.", "multi_modal_projector.", "language_model.model.embed", "language_model.model.layers.",
             "language_model.model.norm", "language_model.lm_head")
    names = sorted(tensors, key=lambda name: (next(i for i, p in enumerate(order) if name.startswith(p)), name))
    total, at, places = sum(t.nbytes for t in tensors.values()), 0, {}
    for name in names:
        places[name] = f"model-{1 + 10 * at // total:05d}-of-00010.safetensors"
        at += tensors[name].nbytes
    for file in sorted(set(places.values())):
        save_file({n: tensors[n] for n in names if places[n] == file}, folder / file, metadata={"format": "pt"})
    path.unlink()
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(places.items()))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def save_checkpoint(config, folder):
    build(config).save_pretrained(folder)
    (folder / "generation_config.json").unlink()
    if config["names"] == "released":
        shard(folder)
    if config.get("old_rope"):
        path = folder / "config.json"
        content = json.loads(path.read_text())
        for part in ("text_config", "vision_config"):
            content[part]["rope_theta"] = content[part].pop("rope_parameters")["rope_theta"]
        path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")


def inputs(config, case, seed):
    """ids, and per image its values u8 [patches, 3 p p] of which the test makes rows."""
    import torch

    generator = torch.Generator("cpu").manual_seed(seed)
    ids, images = [], []
    values = 3 * config["vision"]["patch_size"] ** 2
    for i, n in enumerate(case["text"]):
        ids += torch.randint(14, config["text"]["vocab_size"], (n,), generator=generator).tolist()
        if i < len(case["grids"]):
            height, width = (side // 2 for side in case["grids"][i])
            for row in range(height):
                ids += [config["image_token"]] * width + [BREAK if row + 1 < height else END]
            images.append(torch.randint(0, 256, (4 * height * width, values), generator=generator).to(torch.uint8))
    return torch.tensor(ids, dtype=torch.int32), images


def pictures(images, grids, patch):
    """Images as the model takes them: [n, 3, H, W], padded right and below."""
    import torch

    pixels = []
    for image, (h, w) in zip(images, grids):
        rows = (image.float() - 117.25) / 53
        pixels.append(rows.view(h, w, 3, patch, patch).permute(2, 0, 3, 1, 4).reshape(3, h * patch, w * patch))
    height, width = max(p.shape[1] for p in pixels), max(p.shape[2] for p in pixels)
    padded = torch.zeros(len(pixels), 3, height, width)
    for i, p in enumerate(pixels):
        padded[i, :, : p.shape[1], : p.shape[2]] = p
    return dict(pixel_values=padded, image_sizes=torch.tensor([p.shape[1:] for p in pixels]))


def record(model, grids, stages, hooks):
    import torch

    tower, projector = model.model.vision_tower, model.model.multi_modal_projector
    rows = [h * w for h, w in grids]

    def keep(name, value, divisor=1):
        for i, part in enumerate(torch.split(value.detach().reshape(-1, value.shape[-1]), [n // divisor for n in rows])):
            stages[f"vision.{i}.{name}"] = part.clone()

    def on_conv(_, __, output):
        for i, (h, w) in enumerate(grids):
            stages[f"vision.{i}.patch_conv"] = output[i, :, :h, :w].detach().flatten(1).T.contiguous()

    hooks.append(tower.patch_conv.register_forward_hook(on_conv))
    hooks.append(tower.ln_pre.register_forward_hook(lambda _, __, output: keep("ln_pre", output)))
    for i, layer in enumerate(tower.transformer.layers):
        hooks.append(layer.register_forward_hook(lambda _, __, output, i=i: keep(f"layer.{i}", output)))
    hooks.append(projector.patch_merger.register_forward_hook(lambda _, __, output: keep("merged", output, 4)))
    hooks.append(projector.register_forward_hook(lambda _, __, output: keep("features", output, 4)))


def open_model(folder, dtype):
    from transformers import Mistral3ForConditionalGeneration

    model, loading = Mistral3ForConditionalGeneration.from_pretrained(
        folder, dtype=dtype, attn_implementation="sdpa", output_loading_info=True
    )
    assert not any(loading.values()), loading
    return model.eval()


def forward(model, ids, given, grids):
    import torch

    stages, hooks = {}, []
    if given:
        given = dict(given, pixel_values=given["pixel_values"].to(model.dtype))
        record(model, grids, stages, hooks)
    with torch.no_grad():
        out = model(input_ids=ids.long()[None], use_cache=False, output_hidden_states=True, logits_to_keep=1, **given)
    for hook in hooks:
        hook.remove()
    for i, hidden in enumerate(out.hidden_states[:-1]):
        stages[f"generate.text_encoder.hidden.{i}"] = hidden[0]
    stages["generate.0.logits"] = out.logits[0]
    return stages


def make_case(folder, config, case, seed):
    import torch
    from recorder import dithered

    ids, images = inputs(config, case, seed)
    given = pictures(images, case["grids"], config["vision"]["patch_size"]) if images else {}
    exact_model, rounded_model = open_model(folder, torch.float32), open_model(folder, torch.bfloat16)
    exact = forward(exact_model, ids, given, case["grids"])
    runs = [forward(rounded_model, ids, given, case["grids"])]
    for dither in range(24):
        with dithered(dither):
            runs.append(forward(rounded_model, ids, given, case["grids"]))
    out = {"input.ids": ids, **{f"input.image.{i}": image for i, image in enumerate(images)}}
    for name, value in exact.items():
        out[name] = value.contiguous()
        errors = torch.tensor([relative_error(run[name], value) for run in runs])
        out[f"error.{name}"] = torch.stack([errors.log().mean().exp(), errors.max()])
        if name in EARLY:
            out[f"bf16.{name}"] = runs[0][name].contiguous()
    exact_model.generation_config.pad_token_id = 0
    exact_model.generation_config.eos_token_id = None
    for name, settings in GENERATIONS.items():
        settings = dict(temperature=1.0, top_k=0, top_p=1.0, **settings) if "temperature" not in settings else settings
        settings = dict(settings, top_k=0, top_p=1.0)
        torch.manual_seed(settings.pop("seed", 0))
        ids_long = ids.long()[None]
        with torch.no_grad():
            said = exact_model.generate(
                input_ids=ids_long, attention_mask=torch.ones_like(ids_long), max_new_tokens=N_NEW, **settings, **given
            )
        out[f"input.reply.{name}"] = said[0, len(ids) :].to(torch.int32)
    return out


def write_checkpoints(root, versions):
    from safetensors.torch import save_file

    for name, config in CONFIGS.items():
        folder = root / name
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "cases").mkdir(parents=True)
        save_checkpoint(config, folder / "checkpoint")
        for i, (case_name, case) in enumerate(CASES.items()):
            tensors = make_case(folder / "checkpoint", config, case, 100 * config["seed"] + i)
            path = folder / "cases" / f"{case_name}.safetensors"
            metadata = dict(grids=" ".join(f"{h}x{w}" for h, w in case["grids"]), versions=version_text(versions))
            save_file(tensors, path, metadata=metadata)
            sort_metadata(path)
            print(name, case_name, tensors["input.reply.greedy"].tolist()[:8])
        if config["names"] != "released":  # transformers itself reads not all of them
            rename(folder / "checkpoint", config["names"])
        set_modes(folder)


def write_pictures(path):
    import numpy as np
    from generate_images import as_image, digest, picture
    from transformers.models.pixtral.image_processing_pil_pixtral import (
        PixtralImageProcessorPil,
        get_resize_output_image_size,
    )

    draw = random.Random(11)
    lines = []
    for i in range(400):
        width, height = (draw.randrange(1, 5001) for _ in range(2))
        h, w = get_resize_output_image_size(np.zeros((1, height, width), np.uint8), (1540, 1540), (28, 28), "channels_first")
        lines.append(f"size {width} {height} {w} {h}")
    for i in range(400):
        edge = draw.choice((1540, 140, 84))
        sides = [draw.randrange(8, 160) for _ in range(2)]
        if i % 4 == 0:
            sides = [28 * (1 + side // 28) for side in sides]
        kind, channels = i % 4, draw.choice((1, 3, 3, 4))
        image = as_image(picture(kind, i, sides[0], sides[1], channels))
        processor = PixtralImageProcessorPil(patch_size={"height": 28, "width": 28}, size={"longest_edge": edge})
        pixels = np.asarray(processor(image, return_tensors="np")["pixel_values"][0])
        c, h, w = pixels.shape
        rows = pixels.reshape(c, h // 14, 14, w // 14, 14).transpose(1, 3, 0, 2, 4)
        assert pixels.dtype == np.float32
        lines.append(
            f"picture {kind} {i} {sides[0]} {sides[1]} {channels} {edge} {h // 14} {w // 14} {digest(rows.tobytes())}"
        )
    path.write_text("\n".join(lines) + "\n")


def main():
    versions = check_versions()
    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, default=ROOT)
    root = parser.parse_args().into
    prepare()
    write_pictures(root / "pixtral.txt")
    write_checkpoints(root / "mistral3", versions)


if __name__ == "__main__":
    main()
