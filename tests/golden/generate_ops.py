#!/usr/bin/env python3
"""Writes data/ops.bin: inputs and outputs of single ops in bf16, to hold the rounding points of engine/ops.h against.

    python tests/golden/generate_ops.py

torch 2.15.0, diffusers 0.42.1 and transformers 5.23.0 made the committed file. The file is a row of arrays of 16-bit
values, each after its length (u32, little endian), in the order in which test_ops.c reads them. f32 values (rope tables,
dt) are stored as two 16-bit halves, low half first."""

import pathlib

import numpy as np
import torch
from diffusers import FlowMatchEulerDiscreteScheduler
from diffusers.models.autoencoders.autoencoder_kl_qwenimage import QwenImageRMS_norm
from diffusers.models.autoencoders.vae import DiagonalGaussianDistribution
from diffusers.models.embeddings import apply_rotary_emb
from transformers.models.mistral.modeling_mistral import MistralRMSNorm

arrays = []


def put(tensor):
    arrays.append(tensor.detach().contiguous().reshape(-1).view(torch.int16).numpy())
    return tensor


def normal(*shape):
    return torch.randn(*shape, generator=generator).bfloat16()


generator = torch.Generator().manual_seed(20)
functional = torch.nn.functional

# layer norm with modulation, layer norm with weight and bias
x, scale, shift = put(normal(4, 192)), put(normal(192)), put(normal(192))
put(functional.layer_norm(x, (192,), eps=1e-6) * (1 + scale) + shift)
weight, bias = put(normal(192)), put(normal(192))
put(functional.layer_norm(x, (192,), weight, bias, 1e-6))

# rms norm: Mistral's, torch's
mistral = MistralRMSNorm(192, eps=1e-5).bfloat16()
mistral.weight.data = weight
put(mistral(x))
rms = torch.nn.RMSNorm(192, eps=1e-6).bfloat16()
rms.weight.data = weight
put(rms(x))

# group norm [6, 6, 32] in 8 groups, then SiLU
image, gain, offset = put(normal(6, 6, 32)), put(normal(32)), put(normal(32))
norm = functional.group_norm(image.permute(2, 0, 1)[None], 8, gain, offset, 1e-6)
put(norm[0].permute(1, 2, 0))
put(functional.silu(norm)[0].permute(1, 2, 0))

# activations
values = put(normal(512) * 3)
put(functional.silu(values))
put(functional.gelu(values, approximate="tanh"))
put(functional.gelu(values))

# rope on [16 tokens, 2 heads, 32], interleaved pairs
query = put(normal(1, 16, 2, 32))
angle = torch.rand(16, 16, generator=generator) * 50
cos, sin = put(angle.cos()), put(angle.sin())
both = cos.repeat_interleave(2, 1), sin.repeat_interleave(2, 1)
put(apply_rotary_emb(query, both, use_real=True, use_real_unbind_dim=-1, sequence_dim=1))

# one Euler step
scheduler = FlowMatchEulerDiscreteScheduler()
scheduler.set_timesteps(sigmas=[1.0, 0.81, 0.37])
sample, velocity = put(normal(16, 64)), put(normal(16, 64))
put(scheduler.sigmas[1] - scheduler.sigmas[0])
put(scheduler.step(velocity, scheduler.timesteps[0], sample, return_dict=False)[0])

# attention [80, 1, 32], without and with mask
q, k, v = (put(normal(80, 1, 32)) for _ in range(3))
for causal in (False, True):
    heads = (t.transpose(0, 1)[None] for t in (q, k, v))
    put(functional.scaled_dot_product_attention(*heads, is_causal=causal)[0].transpose(0, 1))

# channel norm of the Qwen-Image VAE [12, 96], then SiLU; the second row is as good as zero
norm = QwenImageRMS_norm(96, images=False).bfloat16()
norm.gamma.data = normal(96, 1, 1, 1)
image = normal(12, 96)
image[1] *= 1e-14
put(image), put(norm.gamma)
channels_first = image.T.reshape(1, 96, 1, 3, 4)
put(norm(channels_first)[0].reshape(96, 12).T)
put(functional.silu(norm(channels_first))[0].reshape(96, 12).T)

# Step1X-Edit's mean over an integer mask (transformer_step1x_edit.py): 257 tokens, a count that bf16 does not have
tokens, mask = put(normal(1, 257, 8)), torch.ones(1, 257, 1, dtype=torch.long)
put((tokens * mask).sum(dim=1) / mask.sum(dim=1))

# a sample of the VAE's posterior [5, 7, 16]; the deviation of logvar is 12, so that both clamps are met
moments = normal(1, 32, 5, 7)
moments[:, 16:] *= 12
put(moments[0].permute(1, 2, 0))
put(torch.randn(1, 16, 5, 7, generator=torch.Generator().manual_seed(3), dtype=torch.bfloat16)[0].permute(1, 2, 0))
put(DiagonalGaussianDistribution(moments).sample(torch.Generator().manual_seed(3))[0].permute(1, 2, 0))

# latents [16, 16] to the transformer's scale and back, with Python numbers
z = put(normal(1, 16, 4, 4).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
put(((z - 0.1159) * 0.3611).permute(0, 2, 3, 1))
put((z / 0.3611 + 0.1159).permute(0, 2, 3, 1))
# ... and with tensors
mean, std = put(normal(16)).view(16, 1, 1), put(normal(16).abs() + 1).view(16, 1, 1)
inverse = put(1.0 / std)
put(((z - mean) / std).permute(0, 2, 3, 1))
put((z / inverse + mean).permute(0, 2, 3, 1))

# guidance [24, 64]; the differences' lengths are between 0.05 and 60
cond = put(normal(1, 24, 64))
uncond = put(cond + (normal(1, 24, 64) * torch.logspace(-2, 1, 24)[:, None]).bfloat16())
combined = uncond + 4.3 * (cond - uncond)  # pipeline_qwenimage_edit_plus.py
cond_norm, norm = torch.norm(cond, dim=-1, keepdim=True), torch.norm(combined, dim=-1, keepdim=True)
put(combined * (cond_norm / norm))
difference = torch.norm(cond - uncond, dim=2, keepdim=True)  # Step1X-Edit's pipeline_step1x_edit_v1p2.py
power = torch.where(difference < 1.0, torch.ones_like(difference), torch.pow(difference, 0.4))
put(uncond + 4.3 * (cond - uncond) / power)
put(uncond + 4.3 * (cond - uncond))

with open(pathlib.Path(__file__).parent / "data" / "ops.bin", "wb") as out:
    for array in arrays:
        out.write(np.uint32(len(array)).tobytes() + array.tobytes())
