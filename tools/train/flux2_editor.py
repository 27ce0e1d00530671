"""The FLUX.2 editor: diffusers' own classes, small; what its pipeline hands to the transformer, for a whole batch."""

import inspect

import numpy as np
import torch
from diffusers import AutoencoderKLFlux2, FlowMatchEulerDiscreteScheduler, Flux2Pipeline, Flux2Transformer2DModel
from diffusers.pipelines.flux2.pipeline_flux2 import compute_empirical_mu
from diffusers.pipelines.flux2.system_messages import SYSTEM_MESSAGE
from transformers import Mistral3Config, Mistral3ForConditionalGeneration, MistralConfig, PixtralImageProcessor
from transformers import PixtralProcessor, PixtralVisionConfig, PreTrainedTokenizerFast

import words

AUTOENCODER = "kl"
SETTINGS = dict(num_inference_steps=4, guidance_scale=4.0, max_sequence_length=48)
SPECIAL = (
    "<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS] [TOOL_CALLS] "
    "[IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]"
).split()
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message.role == 'system' %}{{ '[SYSTEM_PROMPT]' }}{% else %}{{ '[INST]' }}{% endif %}"
    "{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for block in message.content %}{% if block.type == 'text' %}{{ block.text }}{% endif %}{% endfor %}{% endif %}"
    "{% if message.role == 'system' %}{{ '[/SYSTEM_PROMPT]' }}{% else %}{{ '[/INST]' }}{% endif %}{% endfor %}"
)
SCHEDULER = dict(
    num_train_timesteps=1000,
    shift=3.0,
    use_dynamic_shifting=True,
    base_shift=0.5,
    max_shift=1.15,
    base_image_seq_len=256,
    max_image_seq_len=4096,
)
TEXT = dict(hidden_size=48, intermediate_size=8, num_attention_heads=1, num_key_value_heads=1, head_dim=16)


def processor(prompts):
    tokenizer = words.build(prompts, "{1,3}", True, SPECIAL, whole=[SYSTEM_MESSAGE])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        padding_side="left",
        model_max_length=131072,
    )
    image = PixtralImageProcessor(patch_size=14, size={"longest_edge": 1540})
    return PixtralProcessor(
        image_processor=image, tokenizer=fast, patch_size=14, spatial_merge_size=2, chat_template=CHAT_TEMPLATE
    )


def text_encoder(n_words):
    """Random and never trained: its 31 thin layers, which the released hidden states 10, 20 and 30 ask for, add little
    to the words' embeddings, so that the transformer sees a word and its place."""
    text = MistralConfig(
        vocab_size=n_words,
        num_hidden_layers=31,
        max_position_embeddings=131072,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000000.0},
        sliding_window=None,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=11,
        tie_word_embeddings=True,
        **TEXT,
    )
    vision = PixtralVisionConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=4, intermediate_size=16, image_size=28, patch_size=14
    )
    model = Mistral3ForConditionalGeneration(
        Mistral3Config(
            text_config=text, vision_config=vision, image_token_index=10, spatial_merge_size=2, vision_feature_layer=-1
        )
    )
    for name, p in model.named_parameters():
        if p.ndim > 1:
            gain = 1.0 if "embed_tokens" in name else 0.15 if ("o_proj" in name or "down_proj" in name) else 1.0
            torch.nn.init.normal_(p, std=gain if "embed_tokens" in name else gain * p[0].numel() ** -0.5)
    return model.to(torch.bfloat16).eval()


def transformer():
    return Flux2Transformer2DModel(
        patch_size=1,
        in_channels=64,
        num_layers=1,
        num_single_layers=4,
        attention_head_dim=32,
        num_attention_heads=4,
        joint_attention_dim=3 * TEXT["hidden_size"],
        timestep_guidance_channels=256,
        mlp_ratio=2.0,
        axes_dims_rope=[8, 8, 8, 8],
    )


def encoder_parts(prompts):
    tokenizer = processor(prompts)
    return dict(tokenizer=tokenizer, text_encoder=text_encoder(len(tokenizer.tokenizer)))


def autoencoder(vae):
    """The same net as FLUX.2's class, which adds the latents' statistics."""
    settings = {k: v for k, v in vae.config.items() if k in inspect.signature(AutoencoderKLFlux2).parameters}
    own = AutoencoderKLFlux2(**settings)
    own.load_state_dict(vae.state_dict(), strict=False)
    return own.eval()


def scheduler():
    return FlowMatchEulerDiscreteScheduler(**SCHEDULER)


def sigmas(side):
    """That inference goes through, without the last 0."""
    s, n = scheduler(), SETTINGS["num_inference_steps"]
    s.set_timesteps(sigmas=np.linspace(1.0, 1 / n, n), mu=compute_empirical_mu(side * side, n))
    return s.sigmas[:-1].clone()


@torch.no_grad()
def embed(parts, prompts, batch=64):
    """What encode_prompt gives, [n, tokens, 3 * hidden], in the order of the prompts."""
    out = []
    for i in range(0, len(prompts), batch):
        out.append(
            Flux2Pipeline._get_mistral_3_small_prompt_embeds(
                parts["text_encoder"],
                parts["tokenizer"],
                prompts[i : i + batch],
                max_sequence_length=SETTINGS["max_sequence_length"],
            )
        )
    return (torch.cat(out),)


@torch.no_grad()
def normalise(vae, latents=None):
    """Writes the statistics of latents, if they are given, into the VAE; the packed latents as the transformer sees them."""
    if latents is not None:
        patched = Flux2Pipeline._patchify_latents(latents)
        vae.bn.running_mean.copy_(patched.mean((0, 2, 3)).to(torch.bfloat16))  # as they are saved
        vae.bn.running_var.copy_(patched.var((0, 2, 3)).to(torch.bfloat16))
    mean = vae.bn.running_mean.view(1, -1, 1, 1)
    std = (vae.bn.running_var.view(1, -1, 1, 1) + vae.config.batch_norm_eps).sqrt()
    return lambda z: Flux2Pipeline._pack_latents((Flux2Pipeline._patchify_latents(z) - mean) / std)


def velocity(model, noisy, reference, prompt, sigma, side):
    """Of a batch; sigma [batch]."""
    n = noisy.shape[1]
    latent = Flux2Pipeline._prepare_latent_ids(torch.zeros(1, 1, side, side))
    image = Flux2Pipeline._prepare_image_ids([torch.zeros(1, 1, side, side)])
    text = Flux2Pipeline._prepare_text_ids(prompt[0][:1])
    return model(
        hidden_states=torch.cat([noisy, reference], dim=1),
        timestep=sigma,
        guidance=torch.full_like(sigma, SETTINGS["guidance_scale"]),
        encoder_hidden_states=prompt[0].float(),
        txt_ids=text,
        img_ids=torch.cat([latent, image], dim=1),
        return_dict=False,
    )[0][:, :n]


def save(parts, folder):
    parts = {name: p.to(torch.bfloat16) if isinstance(p, torch.nn.Module) else p for name, p in parts.items()}
    parts["vae"].bn.float()  # the released file has float32 throughout
    Flux2Pipeline(scheduler=scheduler(), **parts).save_pretrained(folder)
