"""Runs diffusers' StableDiffusionPipeline and StableDiffusionXLPipeline and keeps the tensors of every stage, batch dropped,
channels last or token-major."""

import contextlib
import functools
import types

import diffusers
import numpy as np
import torch
from diffusers.pipelines.stable_diffusion import pipeline_stable_diffusion
from diffusers.pipelines.stable_diffusion_xl import pipeline_stable_diffusion_xl

from recorder import StageRecorder, pixels, plain_strides, tokens

SAMPLERS = {
    "pndm": ("PNDMScheduler", {}),
    "ddim": ("DDIMScheduler", {}),
    "euler": ("EulerDiscreteScheduler", {}),
    "euler-karras": ("EulerDiscreteScheduler", {"use_karras_sigmas": True}),
    "euler-a": ("EulerAncestralDiscreteScheduler", {}),
    "dpm++": ("DPMSolverMultistepScheduler", {}),
    "dpm++-karras": ("DPMSolverMultistepScheduler", {"use_karras_sigmas": True}),
    "unipc": ("UniPCMultistepScheduler", {}),
    "unipc-karras": ("UniPCMultistepScheduler", {"use_karras_sigmas": True}),
}


ARGUMENTS = (
    "eta",
    "negative_prompt",
    "prompt_2",
    "negative_prompt_2",
    "clip_skip",
    "guidance_rescale",
    "original_size",
    "crops_coords_top_left",
    "target_size",
)


class Recorder(StageRecorder):
    def __init__(self, pipeline, guided, blocks):
        super().__init__()
        self.pipeline = pipeline
        self.branches = ("negative", "positive") if guided else ("positive",)
        self.blocks = blocks
        self.seen = set()

    @contextlib.contextmanager
    def recording(self):
        pipeline, unet = self.pipeline, self.pipeline.unet
        with contextlib.ExitStack() as stack:
            plain_strides(stack, pipeline.vae)
            for name in ("text_encoder", "text_encoder_2"):
                if getattr(pipeline, name, None) is not None:
                    self.text_hooks(stack, name, getattr(pipeline, name))
            self.wrap(stack, pipeline, "encode_prompt", self.on_prompt)
            for module in (pipeline_stable_diffusion, pipeline_stable_diffusion_xl):
                self.wrap(stack, module, "randn_tensor", lambda out, *_, **__: self.keep("noise", tokens(out)))
            self.hook(stack, unet.time_embedding, self.on_time, first_step_only=False)
            if unet.config.addition_embed_type:
                self.hook(stack, unet.add_embedding, self.on_addition, first_step_only=False)
            if self.blocks:
                self.unet_hooks(stack, unet)
            self.hook(stack, unet, self.on_unet, first_step_only=False)
            self.wrap(stack, pipeline.scheduler, "step", self.on_step)
            self.wrap(stack, pipeline.vae, "decode", self.on_decode)
            yield self

    def wrap(self, stack, owner, name, observe):
        """The pipelines look at the signature of the scheduler's step: whether it takes eta and a generator."""
        original = getattr(owner, name)
        super().wrap(stack, owner, name, observe)
        functools.update_wrapper(getattr(owner, name), original)

    def once(self, name, value):
        """The positive prompt is encoded first."""
        if name not in self.seen:
            self.seen.add(name)
            self.keep(name, value)

    def text_hooks(self, stack, name, encoder):
        inner = encoder if hasattr(encoder, "embeddings") else encoder.text_model
        self.hook(stack, encoder, lambda _, ids, **__: self.once(f"{name}.ids", ids[0].to(torch.int32)))
        self.hook(stack, inner.embeddings, lambda out, *_, **__: self.once(f"{name}.hidden.0", out[0]))
        for i, layer in enumerate(inner.encoder.layers):

            def layer_done(out, *_, i=i, **__):
                self.once(f"{name}.hidden.{i + 1}", (out[0] if isinstance(out, tuple) else out)[0])

            self.hook(stack, layer, layer_done)

    def on_prompt(self, out, *_, **__):
        names = ("positive.prompt_embeds", "negative.prompt_embeds", "positive.pooled", "negative.pooled")
        for name, value in zip(names, out):
            if value is not None and name.split(".")[0] in self.branches:
                self.keep(name, value if name.endswith("pooled") else value[0])

    def unet_hooks(self, stack, unet):
        def hook(module, name):
            def called(out, *_, **__):
                out = out[0] if isinstance(out, tuple) else getattr(out, "sample", out)
                for i, branch in enumerate(self.branches):
                    self.keep(f"step.0.{branch}.{name}", pixels(out[i : i + 1]))

            self.hook(stack, module, called)

        for way, blocks in (("down", unet.down_blocks), ("up", unet.up_blocks)):
            for i, block in enumerate(blocks):
                for j, resnet in enumerate(block.resnets):
                    hook(resnet, f"{way}.{i}.resnet.{j}")
                for j, attention in enumerate(getattr(block, "attentions", ())):
                    hook(attention, f"{way}.{i}.attention.{j}")
        for j, resnet in enumerate(unet.mid_block.resnets):
            hook(resnet, f"mid.resnet.{j}")
        hook(unet.mid_block.attentions[0], "mid.attention.0")

    def on_time(self, out, *_, **__):
        self.temb = out
        self.keep(f"step.{self.step}.temb", out[-1])

    def on_addition(self, out, *_, **__):
        added = self.temb + out
        self.keep(f"step.{self.step}.temb", added[-1])
        if len(self.branches) == 2:
            self.keep(f"step.{self.step}.negative.temb", added[0])

    def on_unet(self, out, *_, **__):
        for i, branch in enumerate(self.branches):
            self.keep(f"step.{self.step}.{branch}.velocity", tokens(out[0][i : i + 1]))

    def on_step(self, out, prediction, *_, **__):
        self.keep(f"step.{self.step}.velocity", tokens(prediction))
        self.keep(f"step.{self.step}.latents", tokens(out[0]))
        self.step += 1

    def on_decode(self, out, latents, **_):
        self.keep("vae.decode.input", pixels(latents))
        self.keep("decoded", pixels(out[0]))


def adapters(case):
    """[(file, scale)] of "FILE=SCALE FILE=SCALE"."""
    return [(name, float(scale)) for name, scale in (one.split("=") for one in case.get("loras", "").split())]


def run(folder, case, dtype, latents=None):
    """All stages of one run, in the order they were computed."""
    xl = folder.parent.name == "sdxl"
    cls = diffusers.StableDiffusionXLPipeline if xl else diffusers.StableDiffusionPipeline
    options = {"variant": "fp16", "add_watermarker": False} if xl else {"safety_checker": None}
    pipeline = cls.from_pretrained(folder, torch_dtype=dtype, **options)
    pipeline.vae.register_to_config(force_upcast=False)
    pipeline.set_progress_bar_config(disable=True)
    if "scheduler" in case:
        name, changes = SAMPLERS[case["scheduler"]]
        given = {key: value for key, value in pipeline.scheduler.config.items()}
        pipeline.scheduler = getattr(diffusers, name).from_config(given, **changes)
    for i, (name, scale) in enumerate(adapters(case)):
        pipeline.load_lora_weights(folder.parent / "loras", weight_name=name, adapter_name=f"a{i}")
    if adapters(case):
        pipeline.set_adapters([f"a{i}" for i in range(len(adapters(case)))], [scale for _, scale in adapters(case)])
    guided = case["guidance"] > 1
    recorder = Recorder(pipeline, guided, case.get("blocks", False))
    arguments = {key: case[key] for key in ARGUMENTS if key in case}
    if not xl and "clip_skip" in case:  # where diffusers looks for the final norm in vain with transformers 5
        pipeline.text_encoder.text_model = types.SimpleNamespace(final_layer_norm=pipeline.text_encoder.final_layer_norm)
    with recorder.recording():
        result = pipeline(
            prompt=case["prompt"],
            height=case["height"],
            width=case["width"],
            num_inference_steps=case["steps"],
            guidance_scale=case["guidance"],
            generator=torch.Generator("cpu").manual_seed(case["seed"]),
            latents=latents,
            output_type="pil",
            **arguments,
        )
    stages = recorder.stages
    if latents is not None:
        stages["noise"] = tokens(latents)
    stages["sampler.timesteps"] = pipeline.scheduler.timesteps.float().clone()
    if hasattr(pipeline.scheduler, "sigmas"):
        stages["sampler.levels"] = pipeline.scheduler.sigmas.float().clone()
    stages["image"] = torch.from_numpy(np.array(result.images[0]))
    return stages
