"""Tiny random-weight checkpoints of the Qwen-Image pipelines, built and saved by diffusers and transformers themselves."""

import json
import math
from pathlib import Path

import torch
from diffusers import (
    AutoencoderKLQwenImage,
    FlowMatchEulerDiscreteScheduler,
    QwenImageEditPipeline,
    QwenImageEditPlusPipeline,
    QwenImagePipeline,
    QwenImageTransformer2DModel,
)
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

from qwen_edit_tokenizer import IMAGE_PROCESSOR, VOCAB_SIZE, build_processor, build_tokenizer
from random_weights import randomize

# As released.
SCHEDULER = dict(
    num_train_timesteps=1000,
    shift=1.0,
    use_dynamic_shifting=True,
    base_shift=0.5,
    max_shift=0.9,
    base_image_seq_len=256,
    max_image_seq_len=8192,
    shift_terminal=0.02,
    time_shift_type="exponential",
)

LATENTS = dict(z_dim=4, latents_mean=[-0.7571, 0.4134, 0.1075, -0.2921], latents_std=[1.4184, 2.1526, 0.8327, 1.7708])

TEXT = dict(
    hidden_size=16,
    intermediate_size=24,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    mrope_section=[1, 1, 2],
    tie_word_embeddings=True,
)
VISION = dict(depth=2, hidden_size=8, intermediate_size=20, num_heads=2, fullatt_block_indexes=[1])
SMALL_VAE = dict(base_dim=3, dim_mult=[1, 2, 2, 2], num_res_blocks=1, temperal_downsample=[False, True, True])
SMALL_TRANSFORMER = dict(num_layers=2, attention_head_dim=6, num_attention_heads=2, axes_dims_rope=[2, 2, 2])

CONFIGS = {
    # Qwen-Image-Edit-2511: references as at time zero; every part the released model has.
    "edit2511": dict(
        pipeline=QwenImageEditPlusPipeline,
        transformer=dict(
            num_layers=2, attention_head_dim=12, num_attention_heads=2, axes_dims_rope=[2, 4, 6], zero_cond_t=True
        ),
        text=dict(
            hidden_size=24,
            intermediate_size=40,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            mrope_section=[1, 1, 1],
            tie_word_embeddings=True,
        ),
        vision=dict(depth=3, hidden_size=16, intermediate_size=36, num_heads=2, fullatt_block_indexes=[1]),
        vae=dict(base_dim=4, dim_mult=[1, 2, 2, 2], num_res_blocks=1, temperal_downsample=[False, True, True]),
        seed=1,
        released_text_config=True,
    ),
    # Qwen-Image-Edit-2509: no zero_cond_t. Three VAE levels, one head in the transformer, one key/value head.
    "edit2509": dict(
        pipeline=QwenImageEditPlusPipeline,
        transformer=dict(num_layers=3, attention_head_dim=16, num_attention_heads=1, axes_dims_rope=[4, 8, 4]),
        text=dict(TEXT, hidden_size=24, num_attention_heads=3),
        vision=VISION,
        vae=dict(base_dim=3, dim_mult=[1, 2, 2], num_res_blocks=1, temperal_downsample=[True, False]),
        seed=2,
    ),
    # Qwen-Image-Edit, the first: another template, one size for text encoder and VAE.
    "edit": dict(
        pipeline=QwenImageEditPipeline,
        transformer=SMALL_TRANSFORMER,
        text=TEXT,
        vision=VISION,
        vae=SMALL_VAE,
        seed=3,
    ),
    # Qwen-Image: text to image; no processor among its files.
    "text": dict(
        pipeline=QwenImagePipeline,
        transformer=SMALL_TRANSFORMER,
        text=TEXT,
        vision=VISION,
        vae=SMALL_VAE,
        seed=4,
    ),
}

# Gain over 1/sqrt(fan_in). Small where a norm follows, so that its eps shows in the result; large where a shift, scale
# or gate comes out, so that swapping them does.
GAINS = [
    ("embed_tokens", 0.02),
    ("_mod.1.weight", 2.0),
    ("norm_out.linear.weight", 2.0),
    ("img_in", 0.15),
    ("txt_in", 0.15),
    ("to_q.", 0.3),
    ("to_k.", 0.3),
    ("add_q_proj", 0.3),
    ("add_k_proj", 0.3),
]

# One temporal tap of three is used.
VAE_GAINS = [("decoder.conv_out", 1.0)] + [
    (name, math.sqrt(3)) for name in ("conv1.weight", "conv2.weight", "conv_in.weight", "conv_out.weight")
]


@torch.no_grad()
def random_vae(config, seed):
    vae = randomize(AutoencoderKLQwenImage(**LATENTS, **config), seed, VAE_GAINS, ())
    generator = torch.Generator("cpu").manual_seed(seed + 50)
    for name, parameter in vae.named_parameters():
        if name.endswith("gamma"):
            parameter.copy_(1.0 + 0.3 * torch.randn(parameter.shape, generator=generator))
    return vae


def text_encoder(config, tokenizer):
    ids = {name: tokenizer.convert_tokens_to_ids(f"<|{name}|>") for name in
           ("endoftext", "im_end", "image_pad", "video_pad", "vision_start", "vision_end")}  # fmt: skip
    text = dict(config["text"])
    rope = {"rope_type": "default", "rope_theta": 1000000.0, "mrope_section": text.pop("mrope_section")}
    return Qwen2_5_VLForConditionalGeneration(
        Qwen2_5_VLConfig(
            text_config=dict(
                vocab_size=VOCAB_SIZE,
                rms_norm_eps=1e-6,
                rope_parameters=rope,
                max_position_embeddings=128000,
                bos_token_id=ids["endoftext"],
                eos_token_id=ids["im_end"],
                **text,
            ),
            vision_config=dict(
                out_hidden_size=text["hidden_size"], window_size=112, tokens_per_second=2, **config["vision"]
            ),
            image_token_id=ids["image_pad"],
            video_token_id=ids["video_pad"],
            vision_start_token_id=ids["vision_start"],
            vision_end_token_id=ids["vision_end"],
            tie_word_embeddings=text["tie_word_embeddings"],
        )
    )


def write_json(path, content):
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")


def save_config_as_released(path):
    """The text encoder's config as transformers 4 wrote it: the language model's keys on the top level and once more under
    text_config, rope_theta a plain key, rope_scaling for the M-RoPE sections."""
    content = json.loads(path.read_text())
    text, vision = content.pop("text_config"), content.pop("vision_config")
    rope = text.pop("rope_parameters")
    for key in ("layer_types", "pad_token_id", "dtype"):
        text.pop(key, None)
    text.update(
        rope_theta=rope["rope_theta"],
        rope_scaling={"mrope_section": rope["mrope_section"], "rope_type": "default", "type": "default"},
        sliding_window=32768,
        max_window_layers=text["num_hidden_layers"],
        initializer_range=0.02,
    )
    vision.pop("rope_parameters")
    vision.update(in_chans=vision.pop("in_channels"), spatial_patch_size=14, model_type="qwen2_5_vl")
    content.pop("dtype")
    flat = {key: value for key, value in text.items() if key != "model_type"}
    content.update(flat, text_config=dict(text, torch_dtype="bfloat16"), vision_config=vision, torch_dtype="bfloat16")
    content["transformers_version"] = "4.53.1"
    write_json(path, content)


def save_processor_as_released(folder):
    """A file for images and one for videos instead of one for everything, which transformers writes from version 5 on."""
    (folder / "processor_config.json").unlink()
    both = dict(IMAGE_PROCESSOR, processor_class="Qwen2VLProcessor")
    write_json(folder / "preprocessor_config.json", dict(both, image_processor_type="Qwen2VLImageProcessorFast"))
    write_json(folder / "video_preprocessor_config.json", dict(both, video_processor_type="Qwen2VLVideoProcessor"))


def save_checkpoint(name, folder):
    """Writes FOLDER in the layout of a Qwen-Image repository."""
    config = CONFIGS[name]
    folder = Path(folder)
    seed = 1000 + 100 * config["seed"]
    tokenizer = build_tokenizer()
    transformer = QwenImageTransformer2DModel(
        patch_size=2,
        in_channels=4 * LATENTS["z_dim"],
        out_channels=LATENTS["z_dim"],
        joint_attention_dim=config["text"]["hidden_size"],
        **config["transformer"],
    )
    parts = dict(
        scheduler=FlowMatchEulerDiscreteScheduler(**SCHEDULER),
        vae=random_vae(config["vae"], seed + 3),
        text_encoder=randomize(text_encoder(config, tokenizer), seed + 2, GAINS, ()),
        tokenizer=tokenizer,
        transformer=randomize(transformer, seed + 1, GAINS, "timestep_embedder.linear_1.weight"),
    )
    if config["pipeline"] is not QwenImagePipeline:
        parts["processor"] = build_processor(tokenizer)
    pipeline = config["pipeline"](**parts).to(torch.bfloat16)
    pipeline.save_pretrained(folder)
    if "processor" in parts:
        save_processor_as_released(folder / "processor")
    if config.get("released_text_config"):
        save_config_as_released(folder / "text_encoder" / "config.json")
    for path in folder.rglob("tokenizer.json"):
        path.write_text(json.dumps(json.loads(path.read_text()), separators=(",", ":")))
