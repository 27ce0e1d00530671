"""Tiny random-weight Step1X-Edit checkpoints, built and saved by the authors' fork of diffusers and by transformers."""

import json
from pathlib import Path

import torch
from diffusers import AutoencoderKL, FlowMatchEulerDiscreteScheduler, Step1XEditTransformer2DModel
from diffusers.pipelines.step1x_edit.pipeline_step1x_edit_v1p2 import EDIT_PREFIX, Step1XEditPipelineV1P2
from transformers import AutoProcessor, Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

from random_weights import randomize
from step1x_tokenizer import VOCAB_SIZE, build_processor

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
    # Two of every kind of block, quoted text mapped; sharded, and configs in the form of the released repository.
    "rich": dict(
        transformer=dict(
            in_channels=16,
            num_layers=2,
            num_single_layers=2,
            attention_head_dim=10,
            num_attention_heads=2,
            joint_attention_dim=20,
            connector_in_channels=24,
            connector_hidden_size=20,
            connector_heads_num=5,
            connector_depth=2,
            axes_dims_rope=[2, 2, 6],
        ),
        text=dict(
            hidden_size=24,
            intermediate_size=40,
            num_attention_heads=3,
            num_key_value_heads=1,
            num_hidden_layers=2,
            mrope_section=[1, 1, 2],
            tie_word_embeddings=False,
        ),
        vision=dict(hidden_size=8, intermediate_size=20, num_heads=2, depth=2, fullatt_block_indexes=[1]),
        vae=dict(block_out_channels=[4, 4, 8, 8], layers_per_block=1, norm_num_groups=2),
        seed=41,
        shard_size="150KB",
        as_released=True,
    ),
    # A config that does not speak of the mapping of quoted text; one block of every kind.
    "plain": dict(
        transformer=dict(
            in_channels=16,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=8,
            num_attention_heads=2,
            joint_attention_dim=24,
            connector_in_channels=16,
            connector_hidden_size=24,
            connector_heads_num=3,
            connector_depth=1,
            axes_dims_rope=[4, 2, 2],
        ),
        mapping_unsaid=True,
        forward=True,
        text=dict(
            hidden_size=16,
            intermediate_size=40,
            num_attention_heads=2,
            num_key_value_heads=2,
            num_hidden_layers=2,
            mrope_section=[2, 1, 1],
            tie_word_embeddings=True,
        ),
        vision=dict(hidden_size=8, intermediate_size=12, num_heads=1, depth=2, fullatt_block_indexes=[0]),
        vae=dict(block_out_channels=[4, 4, 4, 8], layers_per_block=1, norm_num_groups=4),
        seed=12,
    ),
}

# As flux2_models.py explains.
GAINS = [
    ("embed_tokens", 0.05),
    ("linear.weight", 2.0),
    ("adaLN_modulation", 2.0),
    ("S.input_embedder", 0.15),
    ("x_embedder", 0.15),
    ("context_embedder", 0.15),
    ("to_q.", 0.3),
    ("to_k.", 0.3),
    ("add_q_proj", 0.3),
    ("add_k_proj", 0.3),
    ("conv_in", 0.05),
    ("decoder.conv_out", 0.6),
]
TIME_WEIGHTS = ("time_embed.in_layer.weight", "t_embedder.mlp.0.weight")


def make_transformer(config):
    """The mapping's sizes are fixed in the original; a small one is put in its place."""
    c = config["transformer"]
    transformer = Step1XEditTransformer2DModel(**c)
    transformer.text_token_mapping = torch.nn.Linear(c["connector_in_channels"], c["connector_hidden_size"])
    return transformer


def make_text_encoder(config, ids):
    text = dict(config["text"])
    tie = text.pop("tie_word_embeddings")
    sections = text.pop("mrope_section")
    return Qwen2_5_VLForConditionalGeneration(
        Qwen2_5_VLConfig(
            text_config=dict(
                text,
                vocab_size=VOCAB_SIZE,
                max_position_embeddings=128000,
                rms_norm_eps=1e-6,
                rope_theta=1000000.0,
                rope_scaling={"type": "mrope", "mrope_section": sections},
                use_sliding_window=False,
                tie_word_embeddings=tie,
                bos_token_id=ids["<|endoftext|>"],
                eos_token_id=ids["<|im_end|>"],
            ),
            vision_config=dict(
                config["vision"],
                out_hidden_size=text["hidden_size"],
                patch_size=14,
                temporal_patch_size=2,
                spatial_merge_size=2,
                window_size=112,
                tokens_per_second=2,
            ),
            image_token_id=ids["<|image_pad|>"],
            video_token_id=ids["<|video_pad|>"],
            vision_start_token_id=ids["<|vision_start|>"],
            vision_end_token_id=ids["<|vision_end|>"],
            tie_word_embeddings=tie,
        )
    )


def make_vae(config):
    return AutoencoderKL(
        down_block_types=["DownEncoderBlock2D"] * 4,
        up_block_types=["UpDecoderBlock2D"] * 4,
        latent_channels=4,
        sample_size=1024,
        scaling_factor=0.3611,
        shift_factor=0.1159,
        use_quant_conv=False,
        use_post_quant_conv=False,
        **config["vae"],
    )


def write_json(path, content):
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_text_config(path, flat):
    """flat: as it was before transformers put the language model into "text_config". The pipeline reads hidden_size at
    the top in either form."""
    content = json.loads(path.read_text())
    if not flat:
        content["hidden_size"] = content["text_config"]["hidden_size"]
        return write_json(path, content)
    text = content.pop("text_config")
    for key in ("model_type", "torch_dtype", "layer_types"):
        text.pop(key, None)
    text["rope_scaling"] = {"type": "mrope", "mrope_section": text["rope_scaling"]["mrope_section"]}
    content.update({key: value for key, value in text.items() if key not in content})
    write_json(path, content)


def slow_image_processor(path):
    """The image processor's config as the released repository has it."""
    given = json.loads(path.read_text())
    kept = "patch_size temporal_patch_size merge_size image_mean image_std".split()
    write_json(
        path,
        dict(
            {key: given[key] for key in kept},
            min_pixels=3136,
            max_pixels=12845056,
            image_processor_type="Qwen2VLImageProcessor",
            processor_class="Qwen2_5_VLProcessor",
        ),
    )


def finish_folder(folder, config):
    path = folder / "transformer" / "config.json"
    content = json.loads(path.read_text())
    content.pop("enable_text_token_mapping")
    if not config.get("mapping_unsaid"):
        content["enable_text_token_mapping"] = True
    write_json(path, content)
    for name in ("vocab.json", "merges.txt"):  # tokenizer.json says the same
        (folder / "processor" / name).unlink(missing_ok=True)
    write_text_config(folder / "text_encoder" / "config.json", flat=config.get("as_released", False))
    if config.get("as_released"):
        slow_image_processor(folder / "processor" / "preprocessor_config.json")
        path = folder / "model_index.json"
        content = json.loads(path.read_text())
        write_json(path, dict(content, _class_name="Step1XEditPipeline"))


def save_checkpoint(name, folder):
    """Writes FOLDER in the layout of a Step1X-Edit repository."""
    config = CONFIGS[name]
    folder = Path(folder)
    seed = 100 * config["seed"]
    random = dict(gains=GAINS, time_weights=TIME_WEIGHTS)
    build_processor(EDIT_PREFIX).save_pretrained(folder / "processor")
    processor = AutoProcessor.from_pretrained(folder / "processor")
    ids = processor.tokenizer.get_vocab()
    pipeline = Step1XEditPipelineV1P2(
        scheduler=FlowMatchEulerDiscreteScheduler(**SCHEDULER),
        vae=randomize(make_vae(config), seed + 3, **random),
        text_encoder=randomize(make_text_encoder(config, ids), seed + 2, **random).to(torch.bfloat16),
        processor=processor,
        transformer=randomize(make_transformer(config), seed + 1, **random).to(torch.bfloat16),
    )
    pipeline.save_pretrained(folder, max_shard_size=config.get("shard_size", "10GB"))
    finish_folder(folder, config)


def load_transformer(folder, config, dtype):
    from safetensors.torch import load_file

    transformer = make_transformer(config)
    weights = {}
    for path in sorted((folder / "transformer").glob("*.safetensors")):
        weights.update(load_file(path))
    transformer.load_state_dict(weights)
    return transformer.to(dtype).eval()


def load_pipeline(name, folder, dtype):
    """As users do it, with text embeddings in the dtype of the run; the pipeline's own choice is bf16."""
    pipeline = Step1XEditPipelineV1P2.from_pretrained(
        folder, transformer=load_transformer(folder, CONFIGS[name], dtype), torch_dtype=dtype
    )
    pipeline.set_progress_bar_config(disable=True)
    embeds = pipeline._get_qwenvl_embeds
    pipeline._get_qwenvl_embeds = lambda *args, **kwargs: embeds(*args, dtype=dtype, **kwargs)
    return pipeline
