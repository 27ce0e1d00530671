"""Tiny random-weight Qwen2.5-VL checkpoints, built and saved by transformers, and the prompts and images they run on."""

import json
import math
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

# Per config: the sizes, and the cases. A case has a number of text tokens before, between and after its images, and the
# images' grids of patches (rows x columns).
CONFIGS = {
    # As transformers 5 holds and writes it: nested config, one key/value head for two query heads, uneven mrope
    # sections, the output head tied to the embedding. Windows are 4 x 4 merged patches.
    "nested": dict(
        text=dict(
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=3,
            num_attention_heads=2,
            num_key_value_heads=1,
            vocab_size=210,
            max_position_embeddings=512,
        ),
        mrope_section=[1, 3, 4],
        vision=dict(
            depth=4,
            hidden_size=24,
            num_heads=2,
            intermediate_size=36,
            out_hidden_size=32,
            patch_size=4,
            temporal_patch_size=2,
            window_size=32,
            fullatt_block_indexes=[2],
        ),
        tie_word_embeddings=True,
        seed=1,
        cases={
            "text": dict(text=[23], grids=[]),
            "square": dict(
                text=[7, 9],
                grids=[(8, 8)],
                every=2,
                bf16=("0.patch_embed", "0.block.0", "0.features", "hidden.1"),
            ),
            "two": dict(text=[5, 3, 8], grids=[(10, 6), (4, 18)], every=3),
        },
    ),
    # As released: everything of the language model at the top of the config. A key/value head per query head, more than
    # one block with full attention, an output head of its own. Windows are 3 x 3.
    "flat": dict(
        text=dict(
            hidden_size=24,
            intermediate_size=40,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            vocab_size=190,
            max_position_embeddings=512,
        ),
        mrope_section=[2, 1, 3],
        vision=dict(
            depth=3,
            hidden_size=24,
            num_heads=3,
            intermediate_size=44,
            out_hidden_size=24,
            patch_size=2,
            temporal_patch_size=1,
            window_size=12,
            fullatt_block_indexes=[0, 2],
        ),
        tie_word_embeddings=False,
        seed=2,
        released=True,
        cases={
            "text": dict(text=[17], grids=[]),
            "square": dict(text=[3, 6], grids=[(10, 10)]),
            "two": dict(
                text=[4, 2, 5],
                grids=[(8, 14), (12, 6)],
                every=3,
                bf16=("1.patch_embed", "1.block.0", "1.block.1"),
            ),
        },
    ),
}

# Gain over 1/sqrt(fan_in). Small where a norm follows, so that its eps shows in the result.
GAINS = [
    ("embed_tokens", 0.05),
    ("patch_embed", 0.03),
    ("visual.blocks", 1.0),
    ("merger.mlp.0", 2.0),
    ("merger.mlp.2", 0.05),
]
SMALL = ("attn.proj", "mlp.down_proj")  # of the vision tower: what is added to the residual stream


def token_ids(config):
    """Ids of the tokens that stand for images, at the end of the vocabulary."""
    vocab = config["text"]["vocab_size"]
    return dict(
        vision_start_token_id=vocab - 6,
        vision_end_token_id=vocab - 5,
        image_token_id=vocab - 3,
        video_token_id=vocab - 2,
    )


@torch.no_grad()
def randomize(model, seed):
    """Weights with which every part matters: nothing zero, one or negligible."""
    generator = torch.Generator("cpu").manual_seed(seed)
    for name, parameter in model.named_parameters():
        value = torch.randn(parameter.shape, generator=generator, dtype=torch.float32)
        small = "visual.blocks" in name and any(part in name for part in SMALL)
        if name.endswith("bias"):
            value *= 0.005 if small else 0.01 if "merger.mlp.2" in name else 0.2
        elif parameter.ndim == 1:
            value = 1.0 + 0.3 * value
        else:
            gain = 0.03 if small else next((g for part, g in GAINS if part in name), 1.0)
            fan_in = 1 if "embed_tokens" in name else math.prod(parameter.shape[1:])
            value *= gain / math.sqrt(fan_in)
        parameter.copy_(value)
    return model


def build(config):
    text = dict(
        config["text"],
        hidden_act="silu",
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6, "mrope_section": config["mrope_section"]},
        bos_token_id=1,
        eos_token_id=2,
        use_sliding_window=False,
    )
    vision = dict(config["vision"], hidden_act="silu", in_channels=3, spatial_merge_size=2, tokens_per_second=2)
    model_config = Qwen2_5_VLConfig(
        text_config=text,
        vision_config=vision,
        tie_word_embeddings=config["tie_word_embeddings"],
        **token_ids(config),
    )
    return Qwen2_5_VLForConditionalGeneration(model_config)


def rewrite_config(folder):
    """config.json in the form of the released models, which transformers 4.41 wrote."""
    path = folder / "config.json"
    content = json.loads(path.read_text())
    text, vision = content.pop("text_config"), content["vision_config"]
    rope = text.pop("rope_parameters")
    for key in ("model_type", "layer_types"):
        text.pop(key)
    content.update(text, rope_theta=rope["rope_theta"], torch_dtype=content.pop("dtype"))
    content["rope_scaling"] = {"type": "mrope", "mrope_section": rope["mrope_section"]}
    content.update(sliding_window=32768, vision_token_id=content["image_token_id"] - 1)
    for key in ("rope_parameters", "initializer_range", "model_type"):
        vision.pop(key)
    vision["in_chans"] = vision.pop("in_channels")
    vision["spatial_patch_size"] = vision["patch_size"]
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")


def rename_tensors(folder):
    """The names that the modules have in memory since transformers 4.52; save_pretrained writes the older ones."""
    path = folder / "model.safetensors"
    names = {"visual.": "model.visual.", "model.": "model.language_model."}
    renamed = {}
    for name, value in load_file(path).items():
        old = next((old for old in names if name.startswith(old)), None)
        renamed[names[old] + name[len(old) :] if old else name] = value
    save_file(renamed, path, metadata={"format": "pt"})


def save_checkpoint(name, folder):
    config = CONFIGS[name]
    folder = Path(folder)
    randomize(build(config), config["seed"]).to(torch.bfloat16).save_pretrained(folder)
    (folder / "generation_config.json").unlink()
    if config.get("released"):
        rewrite_config(folder)
    else:
        rename_tensors(folder)


def inputs(config, case, seed):
    """ids [n] i32, and per image its values u8 [rows, values] of which pixel_rows makes what the vision tower takes."""
    generator = torch.Generator("cpu").manual_seed(seed)
    special = token_ids(config)
    n_text = special["vision_start_token_id"]
    vision = config["vision"]
    values = 3 * vision["temporal_patch_size"] * vision["patch_size"] ** 2
    ids, images = [], []
    for i, n in enumerate(case["text"]):
        ids += torch.randint(0, n_text, (n,), generator=generator).tolist()
        if i < len(case["grids"]):
            height, width = case["grids"][i]
            ids.append(special["vision_start_token_id"])
            ids += [special["image_token_id"]] * (height * width // 4)
            ids.append(special["vision_end_token_id"])
            images.append(torch.randint(0, 256, (height * width, values), generator=generator).to(torch.uint8))
    return torch.tensor(ids, dtype=torch.int32), images


def pixel_rows(image):
    return (image.float() - 117.25) / 53
