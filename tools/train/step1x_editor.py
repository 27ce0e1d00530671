"""The Step1X-Edit-v1p2 editor: the classes of the authors' fork of diffusers, small; what its pipeline hands to the
transformer. The pipeline shows the text encoder no less than 448 x 448 pixels: with patches of 56 instead of 14 pixels
these are 16 tokens instead of 256."""

import sys
import tempfile
import types
from pathlib import Path

import numpy as np
import torch

# The fork's module for thinking and reflection wants packages for remote files; edits use neither.
THINKER = "diffusers.pipelines.step1x_edit.pipeline_step1x_edit_thinker"
sys.modules[THINKER] = types.ModuleType(THINKER)
sys.modules[THINKER].Step1XEditThinker = None

from diffusers import FlowMatchEulerDiscreteScheduler, Step1XEditTransformer2DModel  # noqa: E402
from diffusers.pipelines.step1x_edit import pipeline_step1x_edit_v1p2 as original  # noqa: E402
from PIL import Image  # noqa: E402
from transformers import AutoProcessor, Qwen2_5_VLProcessor, Qwen2TokenizerFast  # noqa: E402
from transformers import Qwen2VLImageProcessorFast, Qwen2VLVideoProcessor  # noqa: E402

import qwen_text  # noqa: E402

AUTOENCODER = "kl"
EQUAL_LENGTHS = True  # the transformer takes one list of positions for a batch and no mask
SETTINGS = dict(num_inference_steps=4, true_cfg_scale=1.0, size_level=64)
PATCH = 56
SCHEDULER = dict(
    num_train_timesteps=1000,
    shift=3.0,
    use_dynamic_shifting=True,
    base_shift=0.5,
    max_shift=1.15,
    base_image_seq_len=256,
    max_image_seq_len=4096,
)
CHAT_TEMPLATE = (
    "{% set pictures = namespace(count=0) %}{% for message in messages %}"
    "{% if loop.first and message.role != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}"
    "{{ '<|im_start|>' + message.role + '\n' }}"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}{% set pictures.count = pictures.count + 1 %}"
    "{% if add_vision_id %}{{ 'Picture ' ~ pictures.count ~ ': ' }}{% endif %}"
    "{{ '<|vision_start|><|image_pad|><|vision_end|>' }}{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}"
    "{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def encoder_parts(prompts):
    chat = f"system\nYou are a helpful assistant.\nuser\n{original.EDIT_PREFIX} Picture 1: \nassistant\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        qwen_text.tokenizer([chat] + [original.EDIT_PREFIX + " " + p + "Picture 1: " for p in prompts]).save(str(path))
        fast = Qwen2TokenizerFast(
            tokenizer_file=str(path),
            eos_token="<|im_end|>",
            pad_token="<|endoftext|>",
            unk_token=None,
            additional_special_tokens=qwen_text.SPECIAL[1:],
            model_max_length=131072,
        )
    processor = Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessorFast(min_pixels=3136, max_pixels=12845056, patch_size=PATCH),
        tokenizer=fast,
        video_processor=Qwen2VLVideoProcessor(),
        chat_template=CHAT_TEMPLATE,
    )
    text_encoder = qwen_text.encoder(fast.get_vocab(), len(fast), PATCH)
    text_encoder.config.hidden_size = text_encoder.config.text_config.hidden_size  # where the pipeline reads it
    return dict(processor=processor, text_encoder=text_encoder)


def autoencoder(vae):
    return vae


def transformer():
    """The size of the mapping of quoted text is fixed in the original; a small one is put in its place."""
    model = Step1XEditTransformer2DModel(
        in_channels=64,
        num_layers=1,
        num_single_layers=2,
        attention_head_dim=32,
        num_attention_heads=4,
        joint_attention_dim=64,
        connector_in_channels=64,
        connector_hidden_size=64,
        connector_heads_num=2,
        connector_depth=1,
        axes_dims_rope=[8, 12, 12],
    )
    model.text_token_mapping = torch.nn.Linear(64, 64)
    model.register_to_config(enable_text_token_mapping=True)
    return model


def scheduler():
    return FlowMatchEulerDiscreteScheduler(**SCHEDULER)


def sigmas(side):
    s, n = scheduler(), SETTINGS["num_inference_steps"]
    s.set_timesteps(sigmas=np.linspace(1.0, 1 / n, n), mu=original.calculate_shift(side * side))
    return s.sigmas[:-1].clone()


def pipeline(parts, folder, **more):
    """The original reads its processor once more from where it lies."""
    parts["processor"].save_pretrained(folder)
    processor = AutoProcessor.from_pretrained(folder)
    return original.Step1XEditPipelineV1P2(
        scheduler=scheduler(), processor=processor, text_encoder=parts["text_encoder"], **more
    )


@torch.no_grad()
def embed(parts, prompts):
    """Of each prompt: embedding, mask, positions, embedding and mask of quoted text; padded behind."""
    blank = Image.new("RGB", (64, 64))
    with tempfile.TemporaryDirectory() as folder:
        encode = pipeline(parts, folder, vae=None, transformer=None)
        encode.vae_scale_factor, encode.latent_channels = 8, 16
        found = [encode.encode_prompt([blank], [p], device="cpu") for p in prompts]
    pad = torch.nn.utils.rnn.pad_sequence
    fields = [
        ([f.embedding[0] for f in found]),
        ([f.mask[0] for f in found]),
        ([f.txt_ids for f in found]),
        ([f.text_embeds[0] for f in found]),
        ([f.text_masks[0] for f in found]),
    ]
    return tuple(pad(field, batch_first=True) for field in fields)


@torch.no_grad()
def normalise(vae, latents=None):
    """One shift and one factor for all channels, as this family has it."""
    if latents is not None:
        vae.register_to_config(shift_factor=latents.mean().item(), scaling_factor=1 / latents.std().item())
    shift, factor = vae.config.shift_factor, vae.config.scaling_factor
    return lambda z: original.Step1XEditPipelineV1P2._pack_latents((z - shift) * factor, *z.shape)


def velocity(model, noisy, reference, prompt, sigma, side):
    embedding, mask, positions, text, text_mask = prompt
    n = int(mask[0].sum())
    ids = original.Step1XEditPipelineV1P2._prepare_latent_image_ids(1, side, side, "cpu", torch.float32)
    seen = ids.clone()
    seen[..., 0] = 1
    return model(
        hidden_states=torch.cat([noisy, reference], dim=1),
        timestep=sigma,
        encoder_hidden_states=embedding[:, :n].float(),
        prompt_embeds_mask=mask[:, :n],
        txt_ids=positions[0, :n],
        img_ids=torch.cat([ids, seen], dim=0),
        text_embeddings=text[:, :n].float(),
        text_mask=text_mask[:, :n],
        return_dict=False,
    )[0][:, : noisy.shape[1]]


def save(parts, folder):
    folder.mkdir(parents=True, exist_ok=True)
    nets = {name: parts[name].to(torch.bfloat16) for name in ("vae", "transformer")}
    with tempfile.TemporaryDirectory() as apart:
        pipeline(parts, apart, **nets).save_pretrained(folder)
    parts["processor"].save_pretrained(folder / "processor")
