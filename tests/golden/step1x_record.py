"""Runs the authors' Step1XEditPipelineV1P2 and keeps the tensors of every stage."""

import contextlib
import types

import numpy as np
import torch
from diffusers.models.autoencoders import vae as vae_module
from diffusers.models.transformers import transformer_step1x_edit
from diffusers.pipelines.step1x_edit import pipeline_step1x_edit_v1p2 as pipeline_module

from recorder import StageRecorder, pixels, plain_strides
from step1x_models import CONFIGS, load_pipeline, load_transformer


class Recorder(StageRecorder):
    """Attention is recorded where the blocks hand it to the dispatcher. Prompts and forwards come cond, uncond, ..."""

    def __init__(self, pipeline, case):
        super().__init__()
        self.pipeline = pipeline
        self.hidden = case["hidden"]
        self.blocks = case.get("blocks", ())  # whose query, key and attention are kept: "cond.double.0", ...
        self.cfg = case["true_cfg_scale"] > 1
        self.prompt = self.branch = "cond"
        self.n_forwards = 0
        self.n_attention = 0

    def keep_branch(self, name, value):
        if self.step == 0:
            self.keep(f"step.0.{self.branch}.{name}", value)

    @contextlib.contextmanager
    def recording(self, given):
        """given: values instead of what randn_tensor would draw, in turn; None: drawn."""
        pipeline = self.pipeline
        with contextlib.ExitStack() as stack:
            plain_strides(stack, pipeline.vae)
            self.replace_noise(stack, given)
            self.hook(stack, pipeline.text_encoder, self.on_text_encoder)
            self.hook(stack, pipeline.text_encoder.visual, self.on_vision)
            self.wrap(stack, pipeline, "encode_prompt", self.on_prompt)
            self.wrap(stack, pipeline.vae, "encode", self.on_encode)
            self.wrap(stack, pipeline, "_encode_vae_image", self.on_reference_latents)
            self.wrap(stack, pipeline, "prepare_latents", lambda out, *_, **__: self.keep("noise", out[0][0]))
            self.record_transformer(stack)
            self.wrap(stack, pipeline.scheduler, "step", self.on_step)
            self.wrap(stack, pipeline.vae, "decode", self.on_decode)
            self.wrap(stack, pipeline, "_output_process_image", self.on_image)
            yield self

    def record_transformer(self, stack):
        transformer = self.pipeline.transformer
        stack.callback(transformer.register_forward_pre_hook(self.before_forward).remove)
        self.hook(stack, transformer, self.on_forward, first_step_only=False)
        self.hook(stack, transformer.connector, self.on_connector)
        self.hook(stack, transformer.context_embedder, lambda out, *_: self.keep_branch("txt_in", out[0]))
        self.hook(stack, transformer.x_embedder, lambda out, *_: self.keep_branch("img_in", out[0]))
        self.hook(stack, transformer.transformer_blocks[0], self.on_temb, first_step_only=False)
        for i, block in enumerate(transformer.transformer_blocks):
            self.hook(stack, block, lambda out, *_, i=i, **__: self.on_double(i, out))
        for i, block in enumerate(transformer.single_transformer_blocks):
            self.hook(stack, block, lambda out, *_, i=i, **__: self.on_single(i, out))
        self.wrap(stack, transformer_step1x_edit, "dispatch_attention_fn", self.on_attention)

    def replace_noise(self, stack, given):
        for module in (vae_module, pipeline_module):
            draw = module.randn_tensor

            def noise(shape, draw=draw, posterior=module is vae_module, **options):
                value = draw(shape, **options)
                if given is not None:
                    value = given[posterior].to(value.dtype)
                self.drawn[posterior] = value
                if posterior:
                    self.keep("posterior_noise.0", pixels(value))
                return value

            module.randn_tensor = noise
            stack.callback(setattr, module, "randn_tensor", draw)
        self.drawn = {}

    def on_text_encoder(self, output, **inputs):
        self.keep(f"{self.prompt}.text_encoder.ids", inputs["input_ids"][0].to(torch.int32))
        self.keep(f"{self.prompt}.text_encoder.hidden.{self.hidden}", output.hidden_states[self.hidden][0])

    def on_vision(self, output, *_, **__):
        self.stages.setdefault("vision.0.features", output.detach().clone())

    def on_prompt(self, output, **_):
        self.keep(f"{self.prompt}.quoted", output.text_masks[0].to(torch.int32))
        self.keep(f"{self.prompt}.prompt_embeds", output.embedding[0])
        self.keep(f"{self.prompt}.token_embeds", output.text_embeds[0])
        self.keep(f"{self.prompt}.text_positions", output.txt_ids)
        self.prompt = "uncond"

    def on_encode(self, output, image):
        self.keep("reference.0.pixels", pixels(image))
        self.keep("reference.0.moments", pixels(output.latent_dist.parameters))

    def on_reference_latents(self, output, **_):
        _, channels, height, width = output.shape
        self.keep("reference.0.latents", self.pipeline._pack_latents(output, 1, channels, height, width)[0])

    def before_forward(self, *_):
        self.branch = "uncond" if self.cfg and self.n_forwards % 2 else "cond"
        self.n_forwards += 1
        self.n_attention = 0

    def on_forward(self, output, **inputs):
        n_noise = self.stages["noise"].shape[0]
        if self.cfg:
            self.keep(f"step.{self.step}.{self.branch}.velocity", output[0][0, :n_noise])

    def on_connector(self, output, *_):
        self.keep_branch("connector", output[0][0])
        self.keep_branch("pooled", output[1][0])

    def on_temb(self, _, **inputs):
        if self.branch == "cond":
            self.keep(f"step.{self.step}.temb", inputs["temb"][0])

    def on_double(self, i, output):
        self.keep_branch(f"double.{i}.txt", output[0][0])
        self.keep_branch(f"double.{i}.img", output[1][0])

    def on_single(self, i, output):
        self.keep_branch(f"single.{i}", torch.cat([output[0][0], output[1][0]]))

    def on_attention(self, output, query, key, value, **_):
        n_double = len(self.pipeline.transformer.transformer_blocks)
        i, self.n_attention = self.n_attention, self.n_attention + 1
        block = f"double.{i}" if i < n_double else f"single.{i - n_double}"
        if f"{self.branch}.{block}" in self.blocks:
            self.keep_branch(f"{block}.query", query[0])
            self.keep_branch(f"{block}.key", key[0])
            self.keep_branch(f"{block}.attention", output[0].flatten(1))

    def on_step(self, output, velocity, *_, **__):
        self.keep(f"step.{self.step}.velocity", velocity[0])
        self.keep(f"step.{self.step}.latents", output[0][0])
        self.step += 1

    def on_decode(self, output, latents, **_):
        self.keep("vae.decode.input", pixels(latents))
        self.keep("decoded", pixels(output[0]))

    def on_image(self, output, images, *_):
        self.keep("image.unresized", torch.from_numpy(np.array(images[0])))
        self.keep("image", torch.from_numpy(np.array(output[0])))


def run(name, folder, case, dtype, images, given=None):
    """(all stages of one run in the order they were computed, the noise that was drawn). given: noise of another run."""
    pipeline = load_pipeline(name, folder, dtype)
    recorder = Recorder(pipeline, case)
    with recorder.recording(given):
        pipeline(
            image=images[0] if images else None,
            prompt=case["prompt"],
            negative_prompt=case.get("negative_prompt"),
            true_cfg_scale=case["true_cfg_scale"],
            height=case.get("height"),
            width=case.get("width"),
            size_level=case["size_level"],
            num_inference_steps=case["steps"],
            generator=torch.Generator("cpu").manual_seed(case["seed"]),
            enable_thinking_mode=False,
            enable_reflection_mode=False,
        )
    stages = recorder.stages
    stages["sigmas"] = pipeline.scheduler.sigmas.clone()
    stages["timesteps"] = pipeline.scheduler.timesteps.clone()
    return stages, recorder.drawn


def transformer_inputs(name):
    """Of one forward: a few tokens, some of them quoted, at positions as an edit has them; bf16 values."""
    c = CONFIGS[name]["transformer"]
    generator = torch.Generator("cpu").manual_seed(CONFIGS[name]["seed"] + 2)
    n_txt, height, width = 23, 4, 5

    def normal(*shape):
        return torch.randn(shape, generator=generator).to(torch.bfloat16)

    positions = torch.zeros(n_txt, 3)
    positions[:, 0] = torch.arange(n_txt) - n_txt
    positions[3:15, 0] = -20
    positions[3:15, 1:] = 1.75 * torch.cartesian_prod(torch.arange(3.0), torch.arange(4.0)) - 0.31
    quoted = torch.zeros(n_txt, dtype=torch.int32)
    quoted[[0, 1, 17, 19, 20, 22]] = 1
    grid = torch.cartesian_prod(torch.arange(2.0), torch.arange(float(height)), torch.arange(float(width)))
    return dict(
        x=normal(2 * height * width, c["in_channels"]),
        hidden=normal(n_txt, c["connector_in_channels"]) + 0.5,
        embeds=normal(n_txt, c["connector_in_channels"]),
        quoted=quoted,
        positions=torch.cat([positions, grid]),
        timestep=torch.tensor([251.03]),  # not 251 when divided and multiplied by 1000
    )


def run_transformer(name, folder, given, dtype):
    """The stages of one forward; the names are those of a pipeline's cond branch."""
    transformer = load_transformer(folder, CONFIGS[name], dtype)
    blocks = [f"cond.{kind}.{i}" for kind in ("double", "single") for i in range(2)]
    recorder = Recorder(types.SimpleNamespace(transformer=transformer), dict(hidden=0, true_cfg_scale=2, blocks=blocks))
    n_txt = len(given["quoted"])
    recorder.stages["noise"] = given["x"][: len(given["x"]) // 2]
    with contextlib.ExitStack() as stack, torch.no_grad():
        recorder.record_transformer(stack)
        transformer(
            hidden_states=given["x"][None].to(dtype),
            timestep=given["timestep"].to(dtype) / 1000,
            encoder_hidden_states=given["hidden"][None].to(dtype),
            prompt_embeds_mask=torch.ones(1, n_txt, dtype=torch.long),
            txt_ids=given["positions"][:n_txt],
            img_ids=given["positions"][n_txt:],
            text_embeddings=given["embeds"][None].to(dtype),
            text_mask=given["quoted"][None].long(),
            return_dict=False,
        )
    recorder.stages.pop("noise")
    return recorder.stages
