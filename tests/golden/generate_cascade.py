#!/usr/bin/env python3
"""Makes the goldens of Stable Cascade: python tests/golden/generate_cascade.py

data/cascade/checkpoint: tiny networks in the two released repositories, of which the prior's has .bf16 files alone; what the
decoder's has twice (text encoder, tokenizer) is left out. data/cascade/networks.safetensors: one forward of each network in f32
and bf16 (stage A's is equal to the bit on CPUs with AVX-512 alone); of the scheduler every step from predictions that do not depend
on the latents; guided: lerp. data/cascade/runs.safetensors: whole runs from prompts.
"""

import argparse
import json
import math
import shutil
from pathlib import Path

import sd_models
from golden_file import check_versions, prepare, save_case, set_modes, version_text

THREE = ("SDCascadeResBlock", "SDCascadeTimestepBlock", "SDCascadeAttnBlock")
SHARED = dict(timestep_ratio_embedding_dim=64, clip_seq=4, kernel_size=3, self_attn=True)
PRIOR = dict(
    SHARED,
    in_channels=16,
    out_channels=16,
    patch_size=1,
    conditioning_dim=24,
    block_out_channels=[16, 32],
    num_attention_heads=[2, 4],
    down_num_layers_per_block=[1, 2],
    up_num_layers_per_block=[2, 1],
    down_blocks_repeat_mappers=[1, 1],
    up_blocks_repeat_mappers=[1, 1],
    block_types_per_layer=[THREE, THREE],
    clip_text_in_channels=40,
    clip_text_pooled_in_channels=24,
    clip_image_in_channels=20,
    dropout=[0.1, 0.1],
    timestep_conditioning_type=["sca", "crp"],
    switch_level=[False],
)
DECODER = dict(
    SHARED,
    in_channels=4,
    out_channels=4,
    patch_size=2,
    conditioning_dim=24,
    block_out_channels=[8, 16, 16, 24],
    num_attention_heads=[0, 0, 2, 3],
    down_num_layers_per_block=[1, 2, 3, 1],
    up_num_layers_per_block=[1, 3, 2, 1],
    down_blocks_repeat_mappers=[1, 1, 1, 1],
    up_blocks_repeat_mappers=[3, 3, 2, 2],
    block_types_per_layer=[THREE[:2], THREE[:2], THREE, THREE],
    clip_text_pooled_in_channels=24,
    effnet_in_channels=16,
    pixel_mapper_in_channels=3,
    dropout=[0, 0, 0.1, 0.1],
    timestep_conditioning_type=["sca"],
)


def randomized(model, seed):
    """Weights under which no part of a network is without effect, rounded to bf16."""
    import torch

    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            n = torch.randn(p.shape, generator=g)
            fan = math.prod(p.shape[1:])
            if name.endswith(("gamma", "beta")):
                value = 0.5 * n
            elif name.endswith("gammas"):
                value = torch.tensor([0.3, -0.2, 0.5, -0.4, 0.3, 0.6]) + 0.2 * n
            elif name == "out_block.0.bias":
                value = 0.5 + 0.1 * n
            elif name.endswith("bias"):
                value = 0.2 * n
            elif ".mapper" in name and p.shape[1] == 64:  # high frequencies of the time make noise of roundings
                omega = torch.exp(-math.log(10000) / 31 * torch.arange(32).float())
                value = 1.5 / 8 * n * torch.clamp(0.005 / omega, max=1.0).repeat(2)
            else:
                gain = 0.5 if "channelwise.4" in name or "to_out" in name else 1.0
                gain = {"up_blocks.0.0.weight": 0.3, "out_block.0.weight": 0.15}.get(name, gain)
                value = gain / math.sqrt(fan) * n
            p.copy_(value.to(torch.bfloat16))
    return model.eval()


# height, width, steps, guidance, steps and guidance of the decoder, seed; prompt, negative prompt
RUNS = {
    "wide": ((128, 256, 3, 4.0, 2, 0.0, 7), "a photo of a dog", "blurry"),
    "both": ((128, 128, 4, 4.0, 3, 1.5, 8), " ".join(["cat and dog"] * 40), ""),
    "plain": ((256, 128, 2, 1.0, 2, 0.0, 9), "A photo of a thief!!! in a store", ""),
}
N_MERGES = 86


def text_encoder():
    """One whose rows of padding show what they attend to."""
    import torch

    from transformers import CLIPTextModelWithProjection

    config = sd_models.text_config(40, 3, 4, "gelu", 24)
    config.vocab_size = 512 + N_MERGES + 2
    config.intermediate_size = 72
    config.bos_token_id, config.eos_token_id = config.vocab_size - 2, config.vocab_size - 1
    gains = (("token_embedding", math.sqrt(40)), ("position_embedding", math.sqrt(40)))
    return sd_models.make(CLIPTextModelWithProjection(config), 4, gains)


def save_checkpoint(folder, models):
    """As the pipelines' save_pretrained has it."""
    import torch

    from diffusers import DDPMWuerstchenScheduler, StableCascadeDecoderPipeline, StableCascadePriorPipeline
    from transformers import CLIPTokenizer

    merges = Path(__file__).parent / "data/sd/sd15/checkpoint/tokenizer/merges.txt"
    sd_models.save_tokenizer(folder / "tokenizer", sd_models.END, False, merges.read_text().split("\n")[1 : 1 + N_MERGES])
    tokenizer = CLIPTokenizer.from_pretrained(folder / "tokenizer")
    half = {name: model.to(torch.bfloat16) for name, model in models.items()}
    prior = StableCascadePriorPipeline(tokenizer, half["text_encoder"], half["prior"], DDPMWuerstchenScheduler())
    decoder = StableCascadeDecoderPipeline(
        half["decoder"], tokenizer, half["text_encoder"], DDPMWuerstchenScheduler(), half["vqgan"]
    )
    prior.save_pretrained(folder / "stable-cascade-prior", variant="bf16")
    decoder.save_pretrained(folder / "stable-cascade")
    shutil.rmtree(folder / "stable-cascade-prior/tokenizer")
    (folder / "tokenizer").rename(folder / "stable-cascade-prior/tokenizer")
    for name in ("tokenizer", "text_encoder"):
        shutil.rmtree(folder / "stable-cascade" / name)
    for path in folder.rglob("*.json"):
        if path.name in ("config.json", "model_index.json", "scheduler_config.json"):
            path.write_text(json.dumps(json.loads(path.read_text()), indent=2, sort_keys=True) + "\n")
    return tokenizer


def whole_run(models, tokenizer, case, dtype):
    """Prompt embeddings and pooled text, latents of both stages at their ends, and the picture in [0, 255]."""
    import torch

    from diffusers import DDPMWuerstchenScheduler, StableCascadeDecoderPipeline, StableCascadePriorPipeline

    (height, width, steps, guidance, decoder_steps, decoder_guidance, seed), prompt, negative = case
    text = models["text_encoder"]
    prior = StableCascadePriorPipeline(tokenizer, text, models["prior"], DDPMWuerstchenScheduler())
    decoder = StableCascadeDecoderPipeline(models["decoder"], tokenizer, text, DDPMWuerstchenScheduler(), models["vqgan"])
    for pipeline in (prior, decoder):
        pipeline.set_progress_bar_config(disable=True)
    generator = torch.Generator().manual_seed(seed)
    told = dict(prompt=prompt, negative_prompt=negative or None, generator=generator)
    out = prior(height=height, width=width, num_inference_steps=steps, guidance_scale=guidance, **told)
    ends = out.image_embeddings.to(dtype).to(memory_format=torch.channels_last)
    z = []
    arguments = dict(num_inference_steps=decoder_steps, guidance_scale=decoder_guidance, output_type="np", **told)
    picture = decoder(ends, callback_on_step_end=lambda *a: z.append(a[3]["latents"]) or {}, **arguments).images
    embeds = [out.prompt_embeds[0], out.prompt_embeds_pooled[0, 0]]
    picture = torch.from_numpy((picture[0] * 255).round()).to(torch.uint8)
    return *(value.float() for value in embeds), *(value[0].permute(1, 2, 0).float() for value in (ends, z[-1])), picture[::4]


def main():
    versions = check_versions()
    prepare()
    import torch

    from diffusers import DDPMWuerstchenScheduler, StableCascadeUNet
    from diffusers.pipelines.deprecated.wuerstchen.modeling_paella_vq_model import PaellaVQModel

    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, default=Path(__file__).parent / "data" / "cascade")
    args = parser.parse_args()
    torch.set_grad_enabled(False)
    shutil.rmtree(args.into, ignore_errors=True)
    makers = {
        "prior": lambda: randomized(StableCascadeUNet(**PRIOR), 1),
        "decoder": lambda: randomized(StableCascadeUNet(**DECODER), 2),
        "vqgan": lambda: randomized(PaellaVQModel(embed_dim=24, bottleneck_blocks=2, num_vq_embeddings=16, scale_factor=0.3764), 3),
        "text_encoder": text_encoder,
    }
    tokenizer = save_checkpoint(args.into / "checkpoint", {name: make() for name, make in makers.items()})
    g = torch.Generator().manual_seed(9)
    given = {
        "prior.x": torch.randn(1, 16, 6, 9, generator=g),
        "prior.text": torch.randn(1, 77, 40, generator=g),
        "pooled": torch.randn(1, 1, 24, generator=g),
        "unused.1": torch.randn(1, 77, 40, generator=g),
        "unused.2": torch.randn(1, 1, 24, generator=g),
        "decoder.x": torch.randn(1, 4, 32, 48, generator=g),
        "decoder.effnet": torch.randn(1, 16, 3, 5, generator=g),
        "vqgan.x": torch.randn(1, 4, 5, 7, generator=g) * 0.4,
    }
    given = {key: value.to(torch.bfloat16).float() for key, value in given.items() if "unused" not in key}
    runs = {}
    last = lambda t: t[0].permute(1, 2, 0).float().contiguous()
    out = {key: last(value) if value.ndim == 4 else value[0] for key, value in given.items()}
    for label, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        models = {name: make().to(dtype) for name, make in makers.items()}
        cast = {key: value.to(dtype) for key, value in given.items()}
        effnet = cast["decoder.effnet"].to(memory_format=torch.channels_last)
        time = lambda t: torch.tensor([t]).to(dtype)
        image = torch.zeros(1, 1, 20).to(dtype)
        prior = models["prior"](cast["prior.x"], time(0.65), cast["pooled"], cast["prior.text"], image, return_dict=False)[0]
        decoder = models["decoder"](cast["decoder.x"], time(0.35), cast["pooled"], effnet=effnet, return_dict=False)[0]
        out[f"prior.{label}"], out[f"decoder.{label}"] = last(prior), last(decoder)
        out[f"vqgan.{label}"] = last(models["vqgan"].decode(cast["vqgan.x"]).sample)
        for name, case in RUNS.items():
            ends = whole_run(models, tokenizer, case, dtype)
            for key, value in zip(("embeds", "pooled", "prior", "decoder", "picture"), ends):
                if key in ("prior", "decoder", "picture") or dtype == torch.float32:
                    runs[f"{name}.{key}.{label}"] = value.contiguous()
    noise, predictions, start = (torch.randn(20, 30, generator=g) for _ in range(3))
    out.update({"steps.noise": noise, "steps.predictions": predictions, "steps.start": start[0]})
    for label, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        for n in (1, 10, 20):
            scheduler = DDPMWuerstchenScheduler()
            scheduler.set_timesteps(n)
            drawn = iter(noise)
            import diffusers.schedulers.scheduling_ddpm_wuerstchen as module

            module.randn_tensor = lambda *_, **__: next(drawn)[None].to(dtype)
            x, every = start[:1].to(dtype), []
            for i, t in enumerate(scheduler.timesteps[:-1]):
                x = scheduler.step(predictions[i : i + 1].to(dtype), t.to(dtype).expand(1), x).prev_sample
                every.append(x[0].float())
            out[f"steps.{label}.{n}"] = torch.stack(every)
            out[f"times.{n}"] = scheduler.timesteps.float().clone()
        guided = [torch.lerp(noise.to(dtype), predictions.to(dtype), scale).float() for scale in (4.0, 1.5, 1.1)]
        out[f"guided.{label}"] = torch.stack(guided)
    save_case(args.into / "networks.safetensors", {k: v.contiguous() for k, v in out.items()}, {"versions": version_text(versions)})
    metadata = {"versions": version_text(versions)}
    for name, (numbers, prompt, negative) in RUNS.items():
        metadata.update({name: " ".join(map(str, numbers)), f"{name}.prompt": prompt, f"{name}.negative": negative})
    save_case(args.into / "runs.safetensors", runs, metadata)
    for label in ("prior", "decoder", "vqgan"):
        error = ((out[f"{label}.bf16"] - out[f"{label}.f32"]).norm() / out[f"{label}.f32"].norm()).item()
        print(label, tuple(out[f"{label}.f32"].shape), "deviation", out[f"{label}.f32"].std().item(), "bf16 off by", error)
    set_modes(args.into)


if __name__ == "__main__":
    main()
