"""Edits under a mask by diffusers' inpaint pipelines on tiny models: python tests/golden/generate_mask.py

writes data/mask.safetensors: QwenImageEditInpaintPipeline on data/qwen_edit/edit, whole, whose latents after every step
and picture test_mask_inpaint.c compares with those of an edit; and of Flux2KleinInpaintPipeline, whose model has no counterpart here,
what its blending is given and gives, with masks of quarters.
"""

import contextlib
from pathlib import Path

import numpy as np
from golden_file import check_versions, prepare, version_text

HERE = Path(__file__).resolve().parent
STEPS, WIDTH, HEIGHT = 5, 96, 64


def masks():
    """White where it is edited."""
    box = np.zeros((HEIGHT, WIDTH), np.uint8)
    box[15:41, 23:65] = 255
    on = np.zeros_like(box)
    on[16, 32] = 255  # the pixel that is sampled
    beside = np.zeros_like(box)
    beside[17, 33] = beside[32, 48] = 255
    stripes = np.zeros_like(box)
    stripes[:, ::3] = 200
    stripes[40:] = 127
    hole = np.full_like(box, 255)
    hole[24:32, 40:48] = 0
    return dict(box=box, on=on, beside=beside, stripes=stripes, hole=hole)


def source():
    from PIL import Image

    return Image.fromarray(np.random.default_rng(3).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8))


def qwen(tensors):
    import torch
    from diffusers import QwenImageEditInpaintPipeline
    from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_inpaint as module
    from PIL import Image
    from qwen_edit_record import plain_strides, with_mrope
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    module.calculate_dimensions = lambda area, ratio: (WIDTH, HEIGHT, None)  # the released 1024^2 made small
    # The inpaint pipeline samples the source's posterior, from the generator of the noise; the edit pipeline, whose
    # conditioning is kept here, takes its mode.
    module.retrieve_latents = lambda encoded, generator=None: encoded.latent_dist.mode()
    folder = HERE / "data/qwen_edit/edit/checkpoint"
    cases = [("box", 1.0), ("box", 0.6), ("on", 1.0), ("beside", 0.6), ("stripes", 1.0), ("hole", 0.8)]
    for dtype, kind in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
        pipeline = QwenImageEditInpaintPipeline.from_pretrained(folder, torch_dtype=dtype)
        pipeline.processor.image_processor = Qwen2VLImageProcessorPil.from_pretrained(folder / "processor")
        pipeline.set_progress_bar_config(disable=True)
        for mask, strength in cases:
            latents, given = [], {}
            original = pipeline.scheduler.scale_noise

            def scale_noise(sample, timestep, noise):
                given.update(source=sample.clone(), noise=noise.clone())  # packed but in the first call
                return original(sample, timestep, noise)

            pipeline.scheduler.scale_noise = scale_noise
            with contextlib.ExitStack() as stack:
                plain_strides(stack, pipeline.vae)
                with_mrope(stack, pipeline.text_encoder)
                image = pipeline(
                    image=source(),
                    mask_image=Image.fromarray(masks()[mask]),
                    prompt="Give the person red hair.",
                    negative_prompt=" ",
                    true_cfg_scale=4.0,
                    num_inference_steps=STEPS,
                    strength=strength,
                    generator=torch.Generator().manual_seed(7),
                    callback_on_step_end=lambda _, i, t, kw: latents.append(kw["latents"].clone()) or {},
                ).images[0]
            pipeline.scheduler.scale_noise = original
            name = f"qwen.{mask}.{strength}.{kind}"
            for i, value in enumerate(latents):
                tensors[f"{name}.{i}"] = value[0]
            tensors[f"{name}.source"] = given["source"][0]
            tensors[f"{name}.noise"] = given["noise"][0]
            tensors[f"{name}.picture"] = torch.from_numpy(np.array(image)).bfloat16()  # bytes are exact in bf16
            print(name, len(latents), np.array(image).shape)


def klein(tensors):
    import torch
    from diffusers import (
        AutoencoderKLFlux2,
        FlowMatchEulerDiscreteScheduler,
        Flux2KleinInpaintPipeline,
        Flux2Transformer2DModel,
    )
    from PIL import Image

    torch.manual_seed(0)
    blocks = dict(down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4)
    vae = AutoencoderKLFlux2(
        block_out_channels=(4, 4, 4, 4), layers_per_block=1, latent_channels=4, norm_num_groups=2, sample_size=64, **blocks
    ).eval()
    transformer = Flux2Transformer2DModel(
        in_channels=16,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=48,
        axes_dims_rope=(4, 4, 4, 4),
        guidance_embeds=False,
    ).eval()
    for dtype, kind in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
        pipeline = Flux2KleinInpaintPipeline(
            scheduler=FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
            vae=vae.to(dtype),
            text_encoder=None,
            tokenizer=None,
            transformer=transformer.to(dtype),
            is_distilled=True,
        )
        pipeline.set_progress_bar_config(disable=True)
        for mask, strength in (("box", 1.0), ("stripes", 0.8), ("hole", 0.8)):
            seen = dict(step=[], blended=[], given=[])
            scale, step = pipeline.scheduler.scale_noise, pipeline.scheduler.step

            def scale_noise(sample, timestep, noise):
                seen["given"].append((sample.clone(), noise.clone()))
                return scale(sample, timestep, noise)

            def one_step(velocity, timestep, x, return_dict=True):
                out = step(velocity, timestep, x, return_dict=False)
                seen["step"].append(out[0].clone())
                return out

            pipeline.scheduler.scale_noise, pipeline.scheduler.step = scale_noise, one_step
            starts, forward = [], pipeline.transformer.forward

            def started(*given, **named):
                starts.append(named["hidden_states"].clone())
                return forward(*given, **named)

            pipeline.transformer.forward = started
            embeds = torch.randn(1, 9, 48, generator=torch.Generator().manual_seed(5)).to(dtype)
            pipeline(
                image=source(),
                mask_image=Image.fromarray(masks()[mask]),
                num_inference_steps=STEPS,
                strength=strength,
                generator=torch.Generator().manual_seed(7),
                callback_on_step_end=lambda _, i, t, kw: seen["blended"].append(kw["latents"].clone()) or {},
                prompt_embeds=embeds,
                output_type="latent",
            )
            pipeline.scheduler.scale_noise, pipeline.scheduler.step = scale, step
            pipeline.transformer.forward = forward
            name = f"klein.{mask}.{strength}.{kind}"
            first = pipeline.scheduler.begin_index or 0
            tensors[f"{name}.sigmas"] = pipeline.scheduler.sigmas[first:].float().clone()
            tensors[f"{name}.source"], tensors[f"{name}.noise"] = (value[0] for value in seen["given"][-1])
            tensors[f"{name}.start"] = starts[0][0, : seen["blended"][0].shape[1]]
            for i, (x, y) in enumerate(zip(seen["step"], seen["blended"], strict=True)):
                tensors[f"{name}.step.{i}"], tensors[f"{name}.{i}"] = x[0], y[0]
            print(name, first, tuple(seen["blended"][0].shape))


def main():
    versions = check_versions()
    prepare()
    import torch
    from golden_file import sort_metadata
    from safetensors.torch import save_file

    tensors = {f"mask.{name}": torch.from_numpy(mask).bfloat16() for name, mask in masks().items()}
    tensors["picture"] = torch.from_numpy(np.array(source())).bfloat16()
    qwen(tensors)
    klein(tensors)
    path = HERE / "data/mask.safetensors"
    save_file({key: value.contiguous() for key, value in tensors.items()}, path, metadata=dict(made_with=version_text(versions)))
    sort_metadata(path)


if __name__ == "__main__":
    main()
