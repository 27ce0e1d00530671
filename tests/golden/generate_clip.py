#!/usr/bin/env python3
"""Makes data/clip: a tiny CLIPModel with both towers in the layout of openai/clip-vit-large-patch14, and clip.safetensors with what
transformers makes of texts and pictures: python tests/golden/generate_clip.py

config.json has the keys that transformers 4.16 wrote into both towers' objects, as the released file does. `pictures.I`: bytes
[height, width, channels]; image_embeds, text_embeds: projected states; cosines [pictures, texts].
"""

import argparse
import json
import shutil
from pathlib import Path

from golden_file import check_versions, prepare, save_case, set_modes, version_text

TEXTS = ["A photo of a thief.", "", "a hacker beside a machine!!", " ".join(["cat and dog"] * 40)]
SIZES = [(61, 40, 3), (30, 100, 3), (28, 28, 3), (57, 57, 1), (29, 64, 4)]  # height, width, channels
OLD = {
    "add_cross_attention": False, "bad_words_ids": None, "chunk_size_feed_forward": 0, "cross_attention_hidden_size": None,
    "decoder_start_token_id": None, "diversity_penalty": 0.0, "do_sample": False, "early_stopping": False,
    "encoder_no_repeat_ngram_size": 0, "exponential_decay_length_penalty": None, "finetuning_task": None,
    "forced_bos_token_id": None, "forced_eos_token_id": None, "id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "is_decoder": False,
    "is_encoder_decoder": False, "label2id": {"LABEL_0": 0, "LABEL_1": 1}, "length_penalty": 1.0, "max_length": 20, "min_length": 0,
    "no_repeat_ngram_size": 0, "num_beam_groups": 1, "num_beams": 1, "num_return_sequences": 1, "output_attentions": False,
    "output_hidden_states": False, "output_scores": False, "prefix": None, "problem_type": None, "pruned_heads": {},
    "remove_invalid_values": False, "repetition_penalty": 1.0, "return_dict": True, "return_dict_in_generate": False,
    "sep_token_id": None, "task_specific_params": None, "temperature": 1.0, "tie_encoder_decoder": False,
    "tie_word_embeddings": True, "tokenizer_class": None, "top_k": 50, "top_p": 1.0, "torch_dtype": None, "torchscript": False,
    "transformers_version": "4.16.0.dev0", "typical_p": 1.0, "use_bfloat16": False,
}  # fmt: skip


def save_checkpoint(folder):
    import torch
    from random_weights import randomize
    from sd_models import N_MERGES, save_tokenizer, save_weights
    from transformers import CLIPConfig, CLIPModel

    shared = dict(hidden_size=32, intermediate_size=48, num_attention_heads=4)
    text = dict(shared, num_hidden_layers=4, vocab_size=512 + N_MERGES + 2, hidden_act="gelu", eos_token_id=2, bos_token_id=0,
                pad_token_id=1)  # fmt: skip
    vision = dict(shared, num_hidden_layers=3, image_size=28, patch_size=14, hidden_act="quick_gelu", layer_norm_eps=1e-4)
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    gains = (("token_embedding", 4.5), ("position_embedding", 4.5))
    model = randomize(CLIPModel(config), 40, gains, ()).eval()
    for parameter in model.parameters():
        parameter.data = parameter.data.half().float()
    save_tokenizer(folder, "<|endoftext|>", False)
    model.config.save_pretrained(folder)
    values = json.loads((folder / "config.json").read_text())
    for tower in ("text_config", "vision_config"):
        values[tower] = {**OLD, **values[tower]}
    values.update(text_config_dict=None, vision_config_dict=None)
    (folder / "config.json").write_text(json.dumps(values, indent=2, sort_keys=True) + "\n")
    save_weights(model, folder, "model", torch.float16)
    processor = {
        "crop_size": 28, "do_center_crop": True, "do_normalize": True, "do_resize": True,
        "feature_extractor_type": "CLIPFeatureExtractor", "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711], "resample": 3, "size": 28,
    }  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=2) + "\n")
    return model


def picture(index, shape):
    """Smooth waves, so that a resize shows, and some noise."""
    import numpy as np

    rng = np.random.default_rng(index)
    y, x, c = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij")
    wave = 120 * np.sin(y / 5 + c) * np.cos(x / 7 - index)
    return np.clip(128 + wave + rng.normal(0, 20, shape), 0, 255).astype(np.uint8)


def main():
    versions = check_versions(("open_clip_torch",))
    prepare()
    import numpy as np
    import torch
    from PIL import Image
    from transformers import CLIPTokenizer
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, default=Path(__file__).parent / "data" / "clip")
    folder = parser.parse_args().into
    shutil.rmtree(folder, ignore_errors=True)
    model = save_checkpoint(folder / "checkpoint")
    tokenizer = CLIPTokenizer.from_pretrained(folder / "checkpoint")
    processor = CLIPImageProcessorPil(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28})
    pictures = [picture(i, shape) for i, shape in enumerate(SIZES)]
    images = [Image.fromarray(p[:, :, 0] if p.shape[2] == 1 else p) for p in pictures]
    with torch.no_grad():
        pixels = processor(images, return_tensors="pt").pixel_values
        ids = tokenizer(TEXTS, padding="max_length", truncation=True, max_length=77, return_tensors="pt").input_ids
        out = model(input_ids=ids, pixel_values=pixels)
        image = model.visual_projection(model.vision_model(pixels).pooler_output)
        text = model.text_projection(model.text_model(ids).pooler_output)
    tensors = {f"pictures.{i}": torch.from_numpy(p) for i, p in enumerate(pictures)}
    cosines = (out.image_embeds @ out.text_embeds.T).contiguous()
    tensors.update(image_embeds=image, text_embeds=text, cosines=cosines)
    assert np.isfinite(cosines.numpy()).all() and cosines.std() > 0.05, cosines
    save_case(folder / "clip.safetensors", tensors, {"texts": "|".join(TEXTS), "versions": version_text(versions)})
    set_modes(folder)
    print(cosines)


if __name__ == "__main__":
    main()
