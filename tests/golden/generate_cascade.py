#!/usr/bin/env python3
"""Makes the goldens of Stable Cascade's networks and scheduler: python tests/golden/generate_cascade.py

data/cascade/{prior,decoder,vqgan}: tiny networks with the config keys of the released ones. data/cascade/networks.safetensors: one
forward of each in f32 and bf16, and of the scheduler every step from predictions that do not depend on the latents; guided: lerp.
"""

import argparse
import json
import math
import shutil
from pathlib import Path

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


RUNS = {
    "wide": dict(height=128, width=256, steps=3, guidance=4.0, decoder_steps=2, decoder_guidance=0.0, seed=7),
    "both": dict(height=128, width=128, steps=4, guidance=4.0, decoder_steps=3, decoder_guidance=1.5, seed=8),
    "plain": dict(height=256, width=128, steps=2, guidance=1.0, decoder_steps=2, decoder_guidance=0.0, seed=9),
}


def whole_run(models, case, given, dtype):
    """Latents of both stages at their ends, and the picture in [0, 1]."""
    import torch

    from diffusers import DDPMWuerstchenScheduler, StableCascadeDecoderPipeline, StableCascadePriorPipeline

    encoder = torch.nn.Module()  # not run: embeddings are given
    encoder.dtype, encoder.device = dtype, torch.device("cpu")
    prior = StableCascadePriorPipeline(None, encoder, models["prior"], DDPMWuerstchenScheduler())
    decoder = StableCascadeDecoderPipeline(models["decoder"], None, encoder, DDPMWuerstchenScheduler(), models["vqgan"])
    for pipeline in (prior, decoder):
        pipeline.set_progress_bar_config(disable=True)
    told = {key: value.to(dtype) for key, value in given.items()}

    def prompts(guidance):
        positive = dict(prompt_embeds=told["prior.text"], prompt_embeds_pooled=told["pooled"])
        negative = dict(negative_prompt_embeds=told["negative.text"], negative_prompt_embeds_pooled=told["negative.pooled"])
        return {**positive, **(negative if guidance > 1 else {})}

    generator = torch.Generator().manual_seed(case["seed"])
    size = dict(height=case["height"], width=case["width"])
    arguments = dict(num_inference_steps=case["steps"], guidance_scale=case["guidance"], generator=generator)
    ends = prior(**size, **arguments, **prompts(case["guidance"])).image_embeddings
    scale = case["decoder_guidance"]
    arguments = dict(num_inference_steps=case["decoder_steps"], guidance_scale=scale, generator=generator, output_type="latent")
    z = decoder(ends.to(dtype).to(memory_format=torch.channels_last), **arguments, **prompts(scale)).images
    picture = models["vqgan"].decode(models["vqgan"].config.scale_factor * z).sample.clamp(0, 1)
    return ends, z, picture


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
    }
    for name, make in makers.items():
        make().to(torch.bfloat16).save_pretrained(args.into / name)
        path = args.into / name / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()), indent=2, sort_keys=True) + "\n")
    g = torch.Generator().manual_seed(9)
    given = {
        "prior.x": torch.randn(1, 16, 6, 9, generator=g),
        "prior.text": torch.randn(1, 77, 40, generator=g),
        "pooled": torch.randn(1, 1, 24, generator=g),
        "negative.text": torch.randn(1, 77, 40, generator=g),
        "negative.pooled": torch.randn(1, 1, 24, generator=g),
        "decoder.x": torch.randn(1, 4, 32, 48, generator=g),
        "decoder.effnet": torch.randn(1, 16, 3, 5, generator=g),
        "vqgan.x": torch.randn(1, 4, 5, 7, generator=g) * 0.4,
    }
    given = {key: value.to(torch.bfloat16).float() for key, value in given.items()}
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
            ends = whole_run(models, case, given, dtype)
            for key, value in zip(("prior", "decoder", "picture"), ends):
                value = last(value)
                out[f"run.{name}.{key}.{label}"] = value[::4] if key == "picture" else value
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
            out[f"times.{n}"] = scheduler.timesteps.clone()
        guided = [torch.lerp(noise.to(dtype), predictions.to(dtype), scale).float() for scale in (4.0, 1.5, 1.1)]
        out[f"guided.{label}"] = torch.stack(guided)
    save_case(args.into / "networks.safetensors", {k: v.float().contiguous() for k, v in out.items()}, {"versions": version_text(versions), **{name: " ".join(map(str, case.values())) for name, case in RUNS.items()}})
    for label in ("prior", "decoder", "vqgan"):
        error = ((out[f"{label}.bf16"] - out[f"{label}.f32"]).norm() / out[f"{label}.f32"].norm()).item()
        print(label, tuple(out[f"{label}.f32"].shape), "deviation", out[f"{label}.f32"].std().item(), "bf16 off by", error)
    set_modes(args.into)


if __name__ == "__main__":
    main()
