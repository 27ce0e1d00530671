"""Tiny random-weight FLUX.2 checkpoints, built and saved by diffusers and transformers themselves."""

import json
from pathlib import Path

import torch
from diffusers import AutoencoderKLFlux2, FlowMatchEulerDiscreteScheduler, Flux2Pipeline, Flux2Transformer2DModel
from transformers import Mistral3Config, Mistral3ForConditionalGeneration, MistralConfig, PixtralVisionConfig

from flux2_tokenizer import VOCAB_SIZE, build_processor
from random_weights import randomize

# As released, apart from the sizes.
SCHEDULER = dict(
    num_train_timesteps=1000,
    shift=3.0,
    use_dynamic_shifting=True,
    base_shift=0.5,
    max_shift=1.15,
    base_image_seq_len=256,
    max_image_seq_len=4096,
)

CONFIGS = {
    # diffusers' own fast test, with a smaller vocabulary.
    "fast": dict(
        transformer=dict(
            patch_size=1,
            in_channels=4,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=16,
            timestep_guidance_channels=256,
            axes_dims_rope=[4, 4, 4, 4],
        ),
        text=dict(
            hidden_size=16,
            intermediate_size=37,
            max_position_embeddings=512,
            num_attention_heads=4,
            num_key_value_heads=2,
            num_hidden_layers=1,
            head_dim=4,
            tie_word_embeddings=True,
        ),
        vae=dict(
            sample_size=32,
            in_channels=3,
            out_channels=3,
            down_block_types=["DownEncoderBlock2D"],
            up_block_types=["UpDecoderBlock2D"],
            block_out_channels=[4],
            layers_per_block=1,
            latent_channels=1,
            norm_num_groups=1,
            use_quant_conv=False,
            use_post_quant_conv=False,
        ),
        scheduler={},
        out_layers=(1,),
        seed=0,
    ),
    # Every part that the released model has, small: level changes in the VAE, shared key/value heads, padding, shifting.
    "rich": dict(
        transformer=dict(
            patch_size=1,
            in_channels=16,
            num_layers=2,
            num_single_layers=3,
            attention_head_dim=32,
            num_attention_heads=2,
            joint_attention_dim=3 * 40,
            timestep_guidance_channels=128,
            mlp_ratio=1.5,
            axes_dims_rope=[8, 8, 8, 8],
        ),
        text=dict(
            hidden_size=40,
            intermediate_size=72,
            max_position_embeddings=131072,
            num_attention_heads=4,
            num_key_value_heads=2,
            num_hidden_layers=4,
            head_dim=16,
            tie_word_embeddings=False,
        ),
        vae=dict(
            sample_size=1024,
            block_out_channels=[8, 8, 8, 16],
            layers_per_block=2,
            latent_channels=4,
            norm_num_groups=4,
            use_quant_conv=True,
            use_post_quant_conv=True,
        ),
        scheduler=SCHEDULER,
        out_layers=(1, 2, 3),
        seed=1,
        shard_size="400KB",
    ),
    # Deep where "rich" is shallow; uneven rope axes, one key/value head, text length filled or exceeded.
    "deep": dict(
        transformer=dict(
            patch_size=1,
            in_channels=8,
            num_layers=3,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=3 * 24,
            timestep_guidance_channels=64,
            mlp_ratio=2.5,
            axes_dims_rope=[2, 4, 6, 4],
        ),
        text=dict(
            hidden_size=24,
            intermediate_size=40,
            max_position_embeddings=4096,
            num_attention_heads=4,
            num_key_value_heads=1,
            num_hidden_layers=8,
            head_dim=8,
            tie_word_embeddings=True,
        ),
        vae=dict(
            sample_size=64,
            down_block_types=["DownEncoderBlock2D"] * 2,
            up_block_types=["UpDecoderBlock2D"] * 2,
            block_out_channels=[4, 8],
            layers_per_block=1,
            latent_channels=2,
            norm_num_groups=2,
            use_quant_conv=True,
            use_post_quant_conv=False,
        ),
        scheduler=SCHEDULER,
        out_layers=(2, 4, 6),
        seed=2,
        released_text_config=True,
    ),
    # Five VAE levels: a reference of a megapixel becomes few enough tokens for a quick test.
    "coarse": dict(
        transformer=dict(
            patch_size=1,
            in_channels=8,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=3 * 16,
            timestep_guidance_channels=32,
            axes_dims_rope=[4, 4, 4, 4],
        ),
        text=dict(
            hidden_size=16,
            intermediate_size=24,
            max_position_embeddings=512,
            num_attention_heads=2,
            num_key_value_heads=1,
            num_hidden_layers=4,
            head_dim=8,
            tie_word_embeddings=True,
        ),
        vae=dict(
            sample_size=1024,
            down_block_types=["DownEncoderBlock2D"] * 5,
            up_block_types=["UpDecoderBlock2D"] * 5,
            block_out_channels=[4, 4, 8, 8, 8],
            layers_per_block=1,
            latent_channels=2,
            norm_num_groups=2,
            use_quant_conv=False,
            use_post_quant_conv=True,
        ),
        scheduler=SCHEDULER,
        out_layers=(1, 2, 3),
        seed=3,
    ),
}

# Gain over 1/sqrt(fan_in). Small where a norm follows, so that its eps shows in the result; large where a shift, scale
# or gate comes out, so that swapping them does.
GAINS = [
    ("embed_tokens", 0.05),
    ("linear.weight", 2.0),
    ("x_embedder", 0.15),
    ("context_embedder", 0.15),
    ("to_q.", 0.3),
    ("to_k.", 0.3),
    ("add_q_proj", 0.3),
    ("add_k_proj", 0.3),
    ("conv_in", 0.05),
    ("decoder.conv_out", 0.6),
]
TIME_WEIGHTS = "embedder.linear_1.weight"


def vision_config():
    return PixtralVisionConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=37,
        image_size=28,
        patch_size=14,
        num_channels=3,
    )


def text_encoder(config):
    text = dict(config["text"])
    tie = text.pop("tie_word_embeddings")
    text_config = MistralConfig(
        vocab_size=VOCAB_SIZE,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000000.0},
        sliding_window=None,
        hidden_act="silu",
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=11,
        tie_word_embeddings=tie,
        **text,
    )
    return Mistral3ForConditionalGeneration(
        Mistral3Config(
            text_config=text_config,
            vision_config=vision_config(),
            image_token_index=10,
            tie_word_embeddings=tie,
        )
    )


def save_as_released(folder):
    """The text encoder's config with rope_theta as a plain key, as transformers before 5 wrote it."""
    path = folder / "text_encoder" / "config.json"
    content = json.loads(path.read_text())
    rope = content["text_config"].pop("rope_parameters")
    content["text_config"]["rope_theta"] = rope["rope_theta"]
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")


def save_checkpoint(name, folder):
    """Writes FOLDER in the layout of a FLUX.2 repository."""
    config = CONFIGS[name]
    folder = Path(folder)
    seed = 100 * config["seed"]
    random = dict(gains=GAINS, time_weights=TIME_WEIGHTS)
    transformer = randomize(Flux2Transformer2DModel(**config["transformer"]), seed + 1, **random).to(torch.bfloat16)
    encoder = randomize(text_encoder(config), seed + 2, **random).to(torch.bfloat16)
    vae = randomize(AutoencoderKLFlux2(**config["vae"]), seed + 3, **random)
    processor = build_processor()
    pipeline = Flux2Pipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(**config["scheduler"]),
        vae=vae,
        text_encoder=encoder,
        tokenizer=processor,
        transformer=transformer,
    )
    pipeline.save_pretrained(folder, max_shard_size=config.get("shard_size", "10GB"))
    tokenizer = folder / "tokenizer" / "tokenizer.json"
    tokenizer.write_text(json.dumps(json.loads(tokenizer.read_text()), separators=(",", ":")))
    if config.get("released_text_config"):
        save_as_released(folder)
