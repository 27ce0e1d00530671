"""The Qwen-Image-Edit-2511 editor: diffusers' own classes, small; what its pipeline hands to the transformer."""

import inspect
import json

import numpy as np
import torch
from diffusers import FlowMatchEulerDiscreteScheduler, QwenImageEditPlusPipeline, QwenImageTransformer2DModel
from diffusers.pipelines.qwenimage.pipeline_qwenimage_edit_plus import calculate_shift
from PIL import Image
from transformers import Qwen2Tokenizer, Qwen2VLImageProcessor, Qwen2VLProcessor, Qwen2VLVideoProcessor

import qwen_text

AUTOENCODER = "qwen_edit"
EQUAL_LENGTHS = True  # no time goes into padding
SETTINGS = dict(num_inference_steps=4, true_cfg_scale=1.0)  # one forward a step: it never saw an empty prompt
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


def template():
    source = inspect.getsource(QwenImageEditPlusPipeline.__init__).splitlines()
    return json.loads(next(x for x in source if "prompt_template_encode =" in x).split("=", 1)[1])


def encoder_parts(prompts):
    known = [template().format("Picture 1: " + p) for p in prompts] + prompts
    tokenizer = qwen_text.tokenizer(known)
    fast = Qwen2Tokenizer(tokenizer_object=tokenizer, model_max_length=131072, pad_token="<|endoftext|>")
    fast._tokenizer = tokenizer
    processor = Qwen2VLProcessor(
        image_processor=Qwen2VLImageProcessor(**qwen_text.IMAGE_PROCESSOR),
        tokenizer=fast,
        video_processor=Qwen2VLVideoProcessor(**qwen_text.IMAGE_PROCESSOR),
    )
    return dict(tokenizer=fast, processor=processor, text_encoder=qwen_text.encoder(fast.get_vocab(), len(fast)))


def transformer():
    return QwenImageTransformer2DModel(
        patch_size=2,
        in_channels=64,
        out_channels=16,
        num_layers=3,
        attention_head_dim=32,
        num_attention_heads=3,
        joint_attention_dim=64,
        axes_dims_rope=[8, 12, 12],
        zero_cond_t=True,
    )


def autoencoder(vae):
    return vae


def scheduler():
    return FlowMatchEulerDiscreteScheduler(**SCHEDULER)


def sigmas(side):
    s, n = scheduler(), SETTINGS["num_inference_steps"]
    c = s.config
    shape = (c.base_image_seq_len, c.max_image_seq_len, c.base_shift, c.max_shift)
    s.set_timesteps(sigmas=np.linspace(1.0, 1 / n, n), mu=calculate_shift(side * side, *shape))
    return s.sigmas[:-1].clone()


def with_positions(text_encoder):
    """Says which tokens are a picture's, which from transformers 5 on is needed for positions along three axes and which
    the pipeline leaves out: the released model was trained with these."""
    forward = text_encoder.forward
    picture = text_encoder.config.image_token_id
    text_encoder.forward = lambda input_ids, **more: forward(
        input_ids=input_ids, mm_token_type_ids=(input_ids == picture).int(), **more
    )


@torch.no_grad()
def embed(parts, prompts):
    """Embeddings and masks, padded behind."""
    pipeline = QwenImageEditPlusPipeline(scheduler=scheduler(), vae=None, transformer=None, **parts)
    blank = Image.new("RGB", (64, 64))
    with_positions(parts["text_encoder"])
    found = [pipeline._get_qwen_prompt_embeds(prompt, [blank])[0][0] for prompt in prompts]
    del parts["text_encoder"].forward
    lengths = torch.tensor([len(e) for e in found])
    padded = torch.nn.utils.rnn.pad_sequence(found, batch_first=True)
    return padded, (torch.arange(padded.shape[1])[None] < lengths[:, None]).long()


@torch.no_grad()
def normalise(vae, latents=None):
    if latents is not None:
        spread = latents.std((0, 2, 3))
        vae.register_to_config(latents_mean=latents.mean((0, 2, 3)).tolist(), latents_std=spread.tolist())
    mean, std = torch.tensor(vae.config.latents_mean), torch.tensor(vae.config.latents_std)

    def packed(z):
        z = (z - mean.view(1, -1, 1, 1)) / std.view(1, -1, 1, 1)
        return QwenImageEditPlusPipeline._pack_latents(z, *z.shape)

    return packed


def velocity(model, noisy, reference, prompt, sigma, side):
    embeds, mask = prompt
    longest = int(mask.sum(1).max())
    return model(
        hidden_states=torch.cat([noisy, reference], dim=1),
        timestep=sigma,
        encoder_hidden_states=embeds[:, :longest].float(),
        encoder_hidden_states_mask=mask[:, :longest],
        img_shapes=[[(1, side, side), (1, side, side)]] * len(noisy),
        return_dict=False,
    )[0][:, : noisy.shape[1]]


def save(parts, folder):
    pipeline = QwenImageEditPlusPipeline(scheduler=scheduler(), **parts).to(torch.bfloat16)
    pipeline.save_pretrained(folder)
    # A file for pictures and one for videos, as released, instead of one for everything.
    (folder / "processor" / "processor_config.json").unlink()
    both = dict(qwen_text.IMAGE_PROCESSOR, processor_class="Qwen2VLProcessor")
    for name, kind in (("preprocessor", "image"), ("video_preprocessor", "video")):
        type_name = dict(image="Qwen2VLImageProcessorFast", video="Qwen2VLVideoProcessor")[kind]
        content = dict(both, **{f"{kind}_processor_type": type_name})
        (folder / "processor" / f"{name}_config.json").write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
