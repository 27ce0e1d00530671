"""The text encoder of Qwen-Image-Edit and Step1X-Edit, small: random, never trained, and blind. The tower sees the
picture, but its last matrix is zero, so that a prompt's embedding depends on the prompt alone."""

import torch
import transformers
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

import words

SPECIAL = (
    "<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|> "
    "<|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|>"
).split()
PLAIN = (
    "<tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|>"
).split()
IMAGE_PROCESSOR = dict(
    do_convert_rgb=True,
    do_normalize=True,
    do_rescale=True,
    do_resize=True,
    image_mean=[0.48145466, 0.4578275, 0.40821073],
    image_std=[0.26862954, 0.26130258, 0.27577711],
    max_pixels=12845056,
    merge_size=2,
    min_pixels=3136,
    patch_size=14,
    resample=3,
    rescale_factor=1 / 255,
    temporal_patch_size=2,
)


SECTIONS = [4, 6, 6]
if int(transformers.__version__.split(".")[0]) < 5:  # the fork's
    ROPE = dict(rope_theta=1000000.0, rope_scaling={"type": "mrope", "mrope_section": SECTIONS})
else:
    ROPE = dict(rope_parameters={"rope_type": "default", "rope_theta": 1000000.0, "mrope_section": SECTIONS})


def tokenizer(texts):
    spoken = list(texts)
    for token in SPECIAL:
        spoken = [text.replace(token, "\n") for text in spoken]
    return words.build(spoken, "", False, SPECIAL, whole=PLAIN, nfc=True)


@torch.no_grad()
def encoder(ids, n_words, patch_size=14):
    """ids: of the special tokens."""
    text = dict(
        vocab_size=n_words,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=128000,
        rms_norm_eps=1e-6,
        **ROPE,
        use_sliding_window=False,
        tie_word_embeddings=True,
        bos_token_id=ids["<|endoftext|>"],
        eos_token_id=ids["<|im_end|>"],
    )
    vision = dict(
        depth=1,
        hidden_size=4,
        intermediate_size=8,
        num_heads=1,
        fullatt_block_indexes=[0],
        out_hidden_size=64,
        patch_size=patch_size,
        temporal_patch_size=2,
        spatial_merge_size=2,
        window_size=112,
        tokens_per_second=2,
    )
    model = Qwen2_5_VLForConditionalGeneration(
        Qwen2_5_VLConfig(
            text_config=text,
            vision_config=vision,
            image_token_id=ids["<|image_pad|>"],
            video_token_id=ids["<|video_pad|>"],
            vision_start_token_id=ids["<|vision_start|>"],
            vision_end_token_id=ids["<|vision_end|>"],
            tie_word_embeddings=True,
        )
    )
    for name, p in model.named_parameters():
        if "merger.mlp.2.weight" in name:
            torch.nn.init.zeros_(p)
        elif p.ndim > 1:
            quiet = 0.3 if "o_proj" in name or "down_proj" in name else 1.0
            torch.nn.init.normal_(p, std=1.0 if "embed_tokens" in name else quiet * p[0].numel() ** -0.5)
    return model.to(torch.bfloat16).eval()
