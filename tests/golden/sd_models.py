"""Tiny checkpoints of Stable Diffusion 1.5 and SDXL in the released layouts.

sd15: no variant in the names; the VAE's attention under its first names, without scaling_factor; CLIPTextModel as
transformers 5 writes it. sdxl: .fp16 files alone; heads and depths that differ by level; tokenizer_2 as tokenizer.json.
"""

import json
import math
import shutil

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from safetensors.torch import save_file
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection, CLIPTokenizer

from golden_file import sort_metadata
from random_weights import randomize

UNETS = {
    "sd15": dict(
        sample_size=8,
        block_out_channels=(8, 16, 16, 24),
        attention_head_dim=2,
        cross_attention_dim=24,
        norm_num_groups=4,
        down_block_types=("CrossAttnDownBlock2D",) * 3 + ("DownBlock2D",),
        up_block_types=("UpBlock2D",) + ("CrossAttnUpBlock2D",) * 3,
    ),
    "sdxl": dict(
        sample_size=16,
        block_out_channels=(8, 16, 24),
        attention_head_dim=(1, 4, 6),
        transformer_layers_per_block=(1, 1, 2),
        use_linear_projection=True,
        cross_attention_dim=40,
        addition_embed_type="text_time",
        addition_time_embed_dim=6,
        projection_class_embeddings_input_dim=20 + 36,
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
    ),
}
BETAS = dict(num_train_timesteps=1000, beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", steps_offset=1)
SCHEDULERS = {
    "sd15": dict(
        BETAS,
        _class_name="PNDMScheduler",
        skip_prk_steps=True,
        set_alpha_to_one=False,
        trained_betas=None,
        clip_sample=False,
    ),
    "sdxl": dict(
        BETAS,
        _class_name="EulerDiscreteScheduler",
        prediction_type="epsilon",
        interpolation_type="linear",
        timestep_spacing="leading",
        clip_sample=False,
        sample_max_value=1.0,
        set_alpha_to_one=False,
        skip_prk_steps=True,
        trained_betas=None,
        use_karras_sigmas=False,
    ),
}
N_MERGES = 486
START, END = "<|startoftext|>", "<|endoftext|>"
OLD_NAMES = {"to_q": "query", "to_k": "key", "to_v": "value", "to_out.0": "proj_attn"}


def clip_merges():
    """The first merges of CLIP's own vocabulary, as open_clip ships it."""
    import gzip
    from pathlib import Path

    import open_clip

    path = Path(open_clip.__file__).parent / "bpe_simple_vocab_16e6.txt.gz"
    return gzip.decompress(path.read_bytes()).decode("utf-8").split("\n")[1 : 1 + N_MERGES]


def byte_alphabet():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) for byte in printable] + [chr(256 + i) for i in range(len(others))]


def save_tokenizer(folder, pad, as_json, merges=None):
    """The released files; as_json: what transformers 5 makes of them instead."""
    folder.mkdir(parents=True)
    merges = merges or clip_merges()
    tokens = byte_alphabet()
    tokens += [token + "</w>" for token in tokens] + ["".join(merge.split()) for merge in merges] + [START, END]
    added = {"__type": "AddedToken", "lstrip": False, "normalized": True, "rstrip": False, "single_word": False}
    config = {
        "add_prefix_space": False,
        "bos_token": dict(added, content=START),
        "clean_up_tokenization_spaces": True,
        "do_lower_case": True,
        "eos_token": dict(added, content=END),
        "errors": "replace",
        "model_max_length": 77,
        "pad_token": pad,
        "tokenizer_class": "CLIPTokenizer",
        "unk_token": dict(added, content=END),
    }
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}, sort_keys=True))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    if as_json:
        tokenizer = CLIPTokenizer.from_pretrained(folder)
        shutil.rmtree(folder)
        tokenizer.save_pretrained(folder)


def text_config(hidden, layers, heads, act, projection):
    return CLIPTextConfig(
        vocab_size=256 + 256 + N_MERGES + 2,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        hidden_act=act,
        projection_dim=projection,
        eos_token_id=2,
        bos_token_id=0,
        pad_token_id=1,
    )


def save_weights(model, folder, stem, dtype, rename=lambda name: name):
    tensors = {rename(name): value.to(dtype).contiguous() for name, value in model.state_dict().items()}
    path = folder / f"{stem}.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    sort_metadata(path)


def make(model, seed, gains=()):
    """Random weights that F16 and BF16 files hold without a further rounding."""
    model = randomize(model, seed, gains, ("time_embedding.linear_1.weight",)).eval()
    for parameter in model.parameters():
        parameter.data = parameter.data.bfloat16().float()
        parameter.data[parameter.data.abs() < 2**-14] = 0
    return model


def old_name(name):
    for new, old in OLD_NAMES.items():
        name = name.replace(f"mid_block.attentions.0.{new}.", f"mid_block.attentions.0.{old}.")
    return name


def save_checkpoint(config, folder):
    xl = config == "sdxl"
    suffix, dtype = (".fp16", torch.float16) if xl else ("", torch.bfloat16)
    gains = (("token_embedding", math.sqrt(20)), ("position_embedding", math.sqrt(20)))
    texts = {"text_encoder": CLIPTextModel(text_config(20 if xl else 24, 3, 2, "quick_gelu", 24))}
    if xl:
        texts["text_encoder_2"] = CLIPTextModelWithProjection(text_config(20, 3, 2, "gelu", 20))
    vae = AutoencoderKL(
        in_channels=3,
        out_channels=3,
        latent_channels=4,
        block_out_channels=(8, 8, 8, 12),
        layers_per_block=2,
        norm_num_groups=4,
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        sample_size=64,
        scaling_factor=0.13025 if xl else 0.18215,
        force_upcast=xl,
    )
    unet = UNet2DConditionModel(in_channels=4, out_channels=4, layers_per_block=2, **UNETS[config])
    index = {
        "_class_name": "StableDiffusionXLPipeline" if xl else "StableDiffusionPipeline",
        "_diffusers_version": "0.42.1",
        "feature_extractor": [None, None],
        "scheduler": ["diffusers", SCHEDULERS[config]["_class_name"]],
        "tokenizer": ["transformers", "CLIPTokenizer"],
        "unet": ["diffusers", "UNet2DConditionModel"],
        "vae": ["diffusers", "AutoencoderKL"],
    }
    index.update({name: ["transformers", type(model).__name__] for name, model in texts.items()})
    if xl:
        index.update({"tokenizer_2": ["transformers", "CLIPTokenizer"], "force_zeros_for_empty_prompt": True})
        index.update({"add_watermarker": None, "image_encoder": [None, None]})
    else:
        index.update({"safety_checker": [None, None], "requires_safety_checker": False})
    folder.mkdir(parents=True)
    (folder / "model_index.json").write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")
    (folder / "scheduler").mkdir()
    (folder / "scheduler/scheduler_config.json").write_text(json.dumps(SCHEDULERS[config], indent=2) + "\n")
    save_tokenizer(folder / "tokenizer", END, False)
    if xl:
        save_tokenizer(folder / "tokenizer_2", "!", True)
    for i, (name, model) in enumerate(texts.items()):
        make(model, 10 + i, gains).save_pretrained(folder / name)
        (folder / name / "model.safetensors").unlink()
        save_weights(model, folder / name, f"model{suffix}", dtype)
    small = (("conv_in", 0.3), ("conv2", 0.3))  # so that the eps of the norms behind them shows
    for name, model, seed, gains in (("unet", unet, 20, small), ("vae", vae, 30, ())):
        model = make(model, seed, () if xl else gains)
        model.save_config(folder / name)
        save_weights(
            model,
            folder / name,
            f"diffusion_pytorch_model{suffix}",
            dtype,
            old_name if name == "vae" and not xl else lambda n: n,
        )
    if not xl:  # as the released file: the defaults
        path = folder / "vae/config.json"
        values = json.loads(path.read_text())
        for key in ("scaling_factor", "shift_factor", "force_upcast", "latents_mean", "latents_std"):
            values.pop(key, None)
        path.write_text(json.dumps(values, indent=2, sort_keys=True) + "\n")
