"""Runs diffusers' Qwen-Image pipelines and keeps the tensors of every stage, batch and frame dropped, channels last or
token-major."""

import contextlib

import numpy as np
import torch
from diffusers.models.transformers import transformer_qwenimage
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit, pipeline_qwenimage_edit_plus

from qwen_edit_models import CONFIGS
from recorder import StageRecorder, plain_strides

RELEASED_AREA = 1024 * 1024


def frame(value):
    """[1, C, 1, H, W] -> [H, W, C]"""
    return value[0, :, 0].permute(1, 2, 0)


class Recorder(StageRecorder):
    """Collects stages while a pipeline runs. Attention is recorded where the blocks hand it to the dispatcher."""

    def __init__(self, pipeline, case):
        super().__init__()
        self.pipeline = pipeline
        self.blocks = case.get("blocks", ())  # of which query, key and attention are kept: "0", ...
        self.branch = None  # of the transformer: "cond" or "uncond"
        self.prompts = ["uncond", "cond"]  # names of the prompts that are still to be encoded, in reverse
        self.n_attention = 0
        self.n_references = 0

    @contextlib.contextmanager
    def recording(self):
        pipeline, transformer = self.pipeline, self.pipeline.transformer
        with contextlib.ExitStack() as stack:
            plain_strides(stack, pipeline.vae)
            with_mrope(stack, pipeline.text_encoder)
            self.hook(stack, pipeline.text_encoder, self.on_text_encoder)
            self.wrap(stack, pipeline.text_encoder.model, "get_image_features", self.on_features)
            self.wrap(stack, pipeline, "encode_prompt", self.on_prompt)
            self.wrap(stack, pipeline.vae, "encode", self.on_encode)
            if hasattr(pipeline, "_encode_vae_image"):
                self.wrap(stack, pipeline, "_encode_vae_image", self.on_reference_latents)
            self.wrap(stack, pipeline, "prepare_latents", self.on_latents)
            self.watch_branch(stack)
            self.hook(stack, transformer.time_text_embed, self.on_temb, first_step_only=False)
            for name in ("img_in", "txt_in"):
                module = getattr(transformer, name)
                self.hook(stack, module, lambda out, *_, name=name, **__: self.keep_branch(name, out[0]))
            for i, block in enumerate(transformer.transformer_blocks):
                self.hook(stack, block, lambda out, *_, i=i, **__: self.on_block(i, out))
            self.hook(stack, transformer, self.on_transformer, first_step_only=False)
            self.wrap(stack, transformer_qwenimage, "dispatch_attention_fn", self.on_attention)
            self.wrap(stack, pipeline.scheduler, "step", self.on_step)
            self.wrap(stack, pipeline.vae, "decode", lambda _, z, **__: self.keep("vae.decode.input", frame(z)))
            self.hook(stack, pipeline.vae.decoder, self.on_decoder, first_step_only=False)
            yield self

    def watch_branch(self, stack):
        transformer = self.pipeline.transformer
        original = transformer.cache_context

        def cache_context(name):
            self.branch = name
            self.n_attention = 0
            return original(name)

        transformer.cache_context = cache_context
        stack.callback(setattr, transformer, "cache_context", original)

    def keep_branch(self, name, value):
        self.keep(f"step.{self.step}.{self.branch}.{name}", value)

    def on_text_encoder(self, output, input_ids, **_):
        name = self.prompts[-1]
        self.keep(f"{name}.text_encoder.ids", input_ids[0].to(torch.int32))
        last = len(output.hidden_states) - 1
        for layer in (1, last) if name == "cond" else (last,):
            self.keep(f"{name}.text_encoder.hidden.{layer}", output.hidden_states[layer][0])

    def on_features(self, output, *_, **__):
        if self.prompts[-1] == "cond":
            for i, features in enumerate(output.pooler_output):
                self.keep(f"vision.{i}.features", features)

    def on_prompt(self, output, *_, **__):
        self.keep(f"{self.prompts.pop()}.prompt_embeds", output[0][0])

    def on_encode(self, output, image):
        self.keep(f"reference.{self.n_references}.pixels", frame(image))
        self.keep(f"reference.{self.n_references}.mean", frame(output.latent_dist.mean))

    def on_reference_latents(self, output, **_):
        channels, height, width = output.shape[1], output.shape[3], output.shape[4]
        packed = self.pipeline._pack_latents(output, 1, channels, height, width)
        self.keep(f"reference.{self.n_references}.latents", packed[0])
        self.n_references += 1

    def on_latents(self, output, *_, **__):
        self.keep("noise", (output[0] if isinstance(output, tuple) else output)[0])

    def on_temb(self, output, *_, **__):
        if self.branch == "cond":
            self.keep(f"step.{self.step}.temb", output[0])

    def on_block(self, i, output):
        if i + 1 < len(self.pipeline.transformer.transformer_blocks):  # of the last, most rows are not read any more
            self.keep_branch(f"block.{i}.txt", output[0][0])
            self.keep_branch(f"block.{i}.img", output[1][0])

    def on_attention(self, output, query, key, value, **_):
        i, self.n_attention = str(self.n_attention), self.n_attention + 1
        if self.step == 0 and i in self.blocks:
            self.keep_branch(f"block.{i}.query", query[0])
            self.keep_branch(f"block.{i}.key", key[0])
            self.keep_branch(f"block.{i}.attention", output[0].flatten(1))

    def on_transformer(self, output, *_, **__):
        n_noise = self.stages["noise"].shape[0]
        self.keep_branch("velocity", output[0][0, :n_noise])

    def on_step(self, output, velocity, *_, **__):
        self.keep(f"step.{self.step}.velocity", velocity[0])
        self.keep(f"step.{self.step}.latents", output[0][0])
        self.step += 1

    def on_decoder(self, output, *_, **__):
        self.keep("decoded", frame(output))


def with_mrope(stack, text_encoder):
    """Says which tokens are an image's. From transformers 5 on positions along three axes are made only then, and the
    pipelines do not say it: the tokens of a picture would get the positions of a text, which the model was not trained
    with."""
    original = text_encoder.forward

    def forward(input_ids, **kwargs):
        kinds = (input_ids == text_encoder.config.image_token_id).int()
        return original(input_ids=input_ids, mm_token_type_ids=kinds, **kwargs)

    text_encoder.forward = forward
    stack.callback(setattr, text_encoder, "forward", original)


@contextlib.contextmanager
def areas(case):
    """References of the case's areas instead of the released ones."""
    plus, first = pipeline_qwenimage_edit_plus, pipeline_qwenimage_edit
    before = plus.CONDITION_IMAGE_SIZE, plus.VAE_IMAGE_SIZE, first.calculate_dimensions

    def dimensions(area, ratio):
        return before[2](case.get("vae_area", area) if area == RELEASED_AREA else area, ratio)

    plus.CONDITION_IMAGE_SIZE = case.get("condition_area", before[0])
    plus.VAE_IMAGE_SIZE = case.get("vae_area", before[1])
    first.calculate_dimensions = dimensions
    yield
    plus.CONDITION_IMAGE_SIZE, plus.VAE_IMAGE_SIZE, first.calculate_dimensions = before


def run(config, folder, case, dtype, images, latents=None):
    """All stages of one run, in the order they were computed. images: PIL images as a user would open them."""
    pipeline = CONFIGS[config]["pipeline"].from_pretrained(folder, dtype=dtype)
    pipeline.set_progress_bar_config(disable=True)
    recorder = Recorder(pipeline, case)
    given = {key: case[key] for key in ("true_cfg_scale", "max_sequence_length") if key in case}
    if images:
        given["image"] = images if len(images) > 1 else images[0]
    with recorder.recording(), areas(case):
        result = pipeline(
            prompt=case["prompt"],
            negative_prompt=case.get("negative_prompt"),
            height=case["height"],
            width=case["width"],
            num_inference_steps=case["steps"],
            generator=torch.Generator("cpu").manual_seed(case["seed"]),
            latents=latents,
            **given,
        )
    stages = recorder.stages
    stages["sigmas"] = pipeline.scheduler.sigmas.clone()
    stages["timesteps"] = pipeline.scheduler.timesteps.clone()
    stages["image"] = torch.from_numpy(np.array(result.images[0]))
    return stages
