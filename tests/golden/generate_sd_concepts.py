#!/usr/bin/env python3
"""Makes the goldens of semantic guidance with diffusers' SemanticStableDiffusionPipeline: python tests/golden/generate_sd_concepts.py

data/sd_concepts.safetensors has, per case and dtype: predictions [calls, 2 + concepts, positions, 4] of the negative prompt, the
prompt and each concept, added (sem_guidance) and guided [calls, positions, 4], and in f32 the latents after each call. Whole runs go
beside those of generate_sd.py as data/sd/sd15/cases/f32_concepts_*; margin is the least relative distance of a value from its
threshold, which must be far above the error of a run. diffusers has no such pipeline for SDXL: of the case in data/sd/sdxl the pipeline
is the same one, given SDXL's network and texts in place of Stable Diffusion's.
"""

import argparse
import functools
import types
from pathlib import Path

from golden_file import check_versions, prepare, save_case, version_text

PROMPT = "a photo of the face of a thief"
PAIR = ("male person;reverse", "female person")
UNEVEN = (
    "male person;reverse;warmup=2;weight=0.7",
    "female person;warmup=4;threshold=0.9;scale=5",
    "old person;warmup=6;weight=1.5;scale=3",
)
COOL = ("male person;reverse;warmup=2;cooldown=8", "female person;warmup=2;cooldown=8")
NEGATIVE = ("male person;reverse;weight=-1", "female person")
ENDS = ("male person;threshold=1;warmup=0", "female person;threshold=0;warmup=0")
CASES = {
    "pair": dict(concepts=PAIR, guidance=7.0, scheduler="pndm"),
    "pair_ddim": dict(concepts=PAIR, guidance=7.0, scheduler="ddim"),
    "uneven": dict(concepts=UNEVEN, guidance=7.5, momentum_scale=0.3, scheduler="ddim"),
    "cool": dict(concepts=COOL, guidance=7.5, momentum_scale=0.3, momentum_beta=0.4, scheduler="ddim"),
    "negative_weight": dict(concepts=NEGATIVE, guidance=7.5, momentum_scale=0.3, momentum_beta=0.4, scheduler="ddim"),
    "ends": dict(concepts=ENDS, guidance=7.0, scheduler="ddim"),
    "eta": dict(concepts=PAIR, guidance=7.0, scheduler="ddim", eta=1.0),
}
SHAPE = dict(height=64, width=64, steps=12, seed=7, momentum_scale=0.5, momentum_beta=0.6, negative_prompt="low quality")
WHOLE = {"sd15": {"pair": 20, "uneven": 39, "cool": 3}, "sdxl": {"uneven": 38}}  # seeds
XL = dict(guidance=5.0, scheduler="euler")  # as SDXL's repository has it


class Tokenizer:
    """A text's number for its tokens."""

    model_max_length = 77

    def __init__(self, texts):
        self.texts = texts

    def __call__(self, texts, **_):
        import torch

        texts = [texts] if isinstance(texts, str) else texts
        return types.SimpleNamespace(input_ids=torch.tensor([[self.texts.index(text)] for text in texts]))


class UNet:
    """Adds what SDXL's network is told beside the texts, whose order is that of the rows."""

    def __init__(self, unet, pooled, size):
        self.unet, self.pooled, self.config = unet, pooled, unet.config
        self.time_ids = pooled.new_tensor([[*size, 0, 0, *size]]).repeat(len(pooled), 1)

    def __call__(self, *args, **kwargs):
        return self.unet(*args, added_cond_kwargs={"text_embeds": self.pooled, "time_ids": self.time_ids}, **kwargs)


def as_xl(pipeline, parts, case, texts):
    import torch

    encoded = [parts.encode_prompt(text, do_classifier_free_guidance=False) for text in texts]
    embeds, pooled = torch.cat([one[0] for one in encoded]), torch.cat([one[2] for one in encoded])
    size = (case["height"], case["width"])
    for name, part in (
        ("tokenizer", Tokenizer(texts)),
        ("text_encoder", lambda ids: (embeds[ids[:, 0]],)),
        ("unet", UNet(parts.unet, pooled, size)),
    ):
        object.__setattr__(pipeline, name, part)


def settings(text):
    out = dict(scale=4.0, threshold=0.95, weight=1.0, warmup=5, cooldown=None, reverse=False)
    text, *rest = text.split(";")
    for item in rest:
        key, _, value = item.partition("=")
        out[key] = True if key == "reverse" else int(value) if key in ("warmup", "cooldown") else float(value)
    return dict(out, text=text)


def run(folder, case, dtype, latents=None):
    import diffusers
    import torch

    from recorder import tokens
    from sd_record import SAMPLERS

    xl = folder.parent.name == "sdxl"
    cls = diffusers.StableDiffusionXLPipeline if xl else diffusers.StableDiffusionPipeline
    options = {"variant": "fp16", "add_watermarker": False} if xl else {"safety_checker": None}
    parts = cls.from_pretrained(folder, torch_dtype=dtype, **options)
    name, changes = SAMPLERS[case["scheduler"]]
    scheduler = getattr(diffusers, name).from_config(dict(parts.scheduler.config), **changes)
    names = ("vae", "text_encoder", "tokenizer", "unet")
    pipeline = diffusers.SemanticStableDiffusionPipeline(
        **{name: getattr(parts, name) for name in names}, scheduler=scheduler, safety_checker=None, feature_extractor=None
    )
    pipeline.set_progress_bar_config(disable=True)
    concepts = [settings(text) for text in case["concepts"]]
    if xl:
        as_xl(pipeline, parts, case, [case["negative_prompt"], case["prompt"], *(c["text"] for c in concepts)])
    every = {"predictions": [], "guided": [], "latents": []}
    parts.unet.register_forward_hook(
        lambda _, __, out: every["predictions"].append(torch.stack([tokens(x[None]) for x in out.sample]))
    )
    step = scheduler.step

    @functools.wraps(step)
    def recorded(prediction, *args, **kwargs):
        out = step(prediction, *args, **kwargs)
        every["guided"].append(tokens(prediction))
        every["latents"].append(tokens(out.prev_sample))
        return out

    scheduler.step = recorded
    prepare_latents = pipeline.prepare_latents

    def noise(*args):
        out = prepare_latents(*args)
        every["noise"] = [tokens(out)]
        return out

    pipeline.prepare_latents = noise
    each = {key: [c[key] for c in concepts] for key in concepts[0]}
    pipeline(
        case.get("prompt", PROMPT),
        height=case["height"],
        width=case["width"],
        num_inference_steps=case["steps"],
        guidance_scale=case["guidance"],
        negative_prompt=case["negative_prompt"],
        generator=torch.Generator().manual_seed(case["seed"]),
        output_type="latent",
        latents=latents,
        eta=case.get("eta", 0.0),
        editing_prompt=each["text"],
        reverse_editing_direction=each["reverse"],
        edit_guidance_scale=each["scale"],
        edit_warmup_steps=each["warmup"],
        edit_cooldown_steps=None if each["cooldown"][0] is None else each["cooldown"],
        edit_threshold=each["threshold"],
        edit_weights=each["weight"],
        edit_momentum_scale=case["momentum_scale"],
        edit_mom_beta=case["momentum_beta"],
    )
    out = {key: torch.stack(value).contiguous() for key, value in every.items()}
    out["timesteps"] = scheduler.timesteps.float()
    out["added"] = torch.stack([tokens(x.to(dtype)) for x in pipeline.sem_guidance[: len(every["guided"])]])
    return out


def margin(stages, case):
    """The least of | |d| - threshold | / threshold over all calls, concepts and channels, but of the value that is the threshold."""
    import torch

    least = 1.0
    for c, concept in enumerate(settings(text) for text in case["concepts"]):
        d = ((stages["predictions"][:, 2 + c] - stages["predictions"][:, 0]) * concept["scale"]).abs()
        t = torch.quantile(d, concept["threshold"], dim=1, keepdim=True)
        least = min(least, ((d - t).abs() / t).min().item())
    return least


def main():
    versions = check_versions(("open_clip_torch",))
    prepare()
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, default=Path(__file__).parent / "data")
    args = parser.parse_args()
    folder = args.into / "sd" / "sd15" / "checkpoint"
    tensors, metadata = {}, {"versions": version_text(versions)}
    for name, case in CASES.items():
        case = {**SHAPE, **case}
        for label, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
            stages = run(folder, case, dtype)
            keys = ("predictions", "added", "guided") + (("latents", "noise") if label == "f32" and "eta" not in case else ())
            tensors.update({f"{name}.{label}.{key}": stages[key] for key in keys})
        metadata[name] = "|".join(case["concepts"])
        metadata[f"{name}.settings"] = " ".join(str(case[key]) for key in ("guidance", "momentum_scale", "momentum_beta"))
        metadata[f"{name}.scheduler"] = case["scheduler"]
    save_case(args.into / "sd_concepts.safetensors", tensors, metadata)
    for config, name, seed in ((config, *item) for config, cases in WHOLE.items() for item in cases.items()):
        case = {**SHAPE, **CASES[name], **(XL if config == "sdxl" else {}), "seed": seed, "prompt": PROMPT}
        folder = args.into / "sd" / config / "checkpoint"
        drawn = run(folder, case, torch.float32)["noise"][0]
        stages = run(folder, case, torch.float32, latents=drawn.T.reshape(1, 4, case["height"] // 8, case["width"] // 8))
        print(config, name, "calls", len(stages["guided"]), "margin", margin(stages, case))
        kept = {"noise": drawn, "sampler.timesteps": stages["timesteps"]}
        for i, (guided, latents) in enumerate(zip(stages["guided"], stages["latents"])):
            kept[f"step.{i}.velocity"], kept[f"step.{i}.latents"] = guided, latents
        case.update(concepts="|".join(case["concepts"]), config=config, versions=version_text(versions))
        save_case(args.into / "sd" / config / "cases" / f"f32_concepts_{name}.safetensors", {k: v.contiguous() for k, v in kept.items()}, case)


if __name__ == "__main__":
    main()
