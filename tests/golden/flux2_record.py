"""Runs diffusers' Flux2Pipeline and keeps the tensors of every stage, batch dropped, channels last or token-major."""

import contextlib

import numpy as np
import torch
from diffusers import Flux2Pipeline
from diffusers.models.transformers import transformer_flux2

from recorder import StageRecorder, pixels, plain_strides, tokens


class Recorder(StageRecorder):
    """Collects stages while a pipeline runs. Attention is recorded where the blocks hand it to the dispatcher."""

    def __init__(self, pipeline, out_layers, blocks):
        super().__init__()
        self.pipeline = pipeline
        self.out_layers = out_layers
        self.blocks = blocks  # names of the blocks whose query, key and attention are kept: "double.0", ...
        self.n_attention = 0
        self.n_references = 0

    @contextlib.contextmanager
    def recording(self):
        pipeline, transformer = self.pipeline, self.pipeline.transformer
        with contextlib.ExitStack() as stack:
            plain_strides(stack, pipeline.vae)
            self.hook(stack, pipeline.text_encoder, self.on_text_encoder)
            self.wrap(stack, pipeline, "encode_prompt", lambda out, **_: self.keep("prompt_embeds", out[0][0]))
            self.wrap(stack, pipeline.vae, "encode", self.on_encode)
            self.wrap(stack, pipeline, "_encode_vae_image", self.on_reference_latents)
            self.wrap(stack, pipeline, "prepare_latents", lambda out, **_: self.keep("noise", out[0][0]))
            self.hook(stack, transformer.time_guidance_embed, self.on_temb, first_step_only=False)
            for name in ("x_embedder", "context_embedder"):
                module = getattr(transformer, name)
                self.hook(stack, module, lambda out, *_, name=name, **__: self.keep(f"step.0.{name}", out[0]))
            for i, block in enumerate(transformer.transformer_blocks):
                self.hook(stack, block, lambda out, *_, i=i, **__: self.on_double(i, out))
            for i, block in enumerate(transformer.single_transformer_blocks):
                self.hook(stack, block, lambda out, *_, i=i, **__: self.keep(f"step.0.single.{i}", out[0]))
            self.wrap(stack, transformer_flux2, "dispatch_attention_fn", self.on_attention)
            self.wrap(stack, pipeline.scheduler, "step", self.on_step)
            self.wrap(stack, pipeline.vae, "decode", self.on_decode)
            yield self

    def on_text_encoder(self, output, input_ids, **_):
        self.keep("text_encoder.ids", input_ids[0].to(torch.int32))
        for layer in self.out_layers:
            self.keep(f"text_encoder.hidden.{layer}", output.hidden_states[layer][0])

    def on_encode(self, output, image):
        self.keep(f"reference.{self.n_references}.pixels", pixels(image))
        self.keep(f"reference.{self.n_references}.mean", pixels(output.latent_dist.mean))

    def on_reference_latents(self, output, **_):
        self.keep(f"reference.{self.n_references}.latents", tokens(output))
        self.n_references += 1

    def on_temb(self, output, *_, **__):
        self.keep(f"step.{self.step}.temb", output[0])

    def on_double(self, i, output):
        self.keep(f"step.0.double.{i}.txt", output[0][0])
        self.keep(f"step.0.double.{i}.img", output[1][0])

    def on_attention(self, output, query, key, value, **_):
        n_double = len(self.pipeline.transformer.transformer_blocks)
        i, self.n_attention = self.n_attention, self.n_attention + 1
        block = f"double.{i}" if i < n_double else f"single.{i - n_double}"
        if block in self.blocks:
            self.keep(f"step.0.{block}.query", query[0])
            self.keep(f"step.0.{block}.key", key[0])
            self.keep(f"step.0.{block}.attention", output[0].flatten(1))

    def on_step(self, output, velocity, *_, **__):
        self.keep(f"step.{self.step}.velocity", velocity[0])
        self.keep(f"step.{self.step}.latents", output[0][0])
        self.step += 1

    def on_decode(self, output, latents, **_):
        self.keep("vae.decode.input", pixels(latents))
        self.keep("decoded", pixels(output[0]))


def run(folder, case, dtype, images, latents=None):
    """All stages of one run, in the order they were computed. images: PIL images as a user would open them."""
    pipeline = Flux2Pipeline.from_pretrained(folder, dtype=dtype)
    pipeline.set_progress_bar_config(disable=True)
    recorder = Recorder(pipeline, case["out_layers"], case.get("blocks", ()))
    with recorder.recording():
        result = pipeline(
            image=list(images) or None,
            prompt=case["prompt"],
            height=case.get("height"),
            width=case.get("width"),
            num_inference_steps=case["steps"],
            guidance_scale=case["guidance"],
            generator=torch.Generator("cpu").manual_seed(case["seed"]),
            latents=latents,
            max_sequence_length=case["max_sequence_length"],
            text_encoder_out_layers=case["out_layers"],
        )
    stages = recorder.stages
    stages["sigmas"] = pipeline.scheduler.sigmas.clone()
    stages["timesteps"] = pipeline.scheduler.timesteps.clone()
    stages["image"] = torch.from_numpy(np.array(result.images[0]))
    return stages
