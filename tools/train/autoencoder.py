"""Trains a small autoencoder of a family's own class on the drawings, before and after alike."""

import time

import numpy as np
import torch
from diffusers import AutoencoderKL, AutoencoderKLQwenImage
from torch import nn
from torch.nn import functional as F

LATENT_NOISE = 0.1  # that the decoder learns to bear; a denoiser is never exact
LOG_VARIANCE = -20.0  # of the posterior: nothing, so that a sampled latent is the mean

KL = dict(
    block_out_channels=[8, 16, 32, 48],
    layers_per_block=1,
    norm_num_groups=8,
    latent_channels=8,
    down_block_types=["DownEncoderBlock2D"] * 4,
    up_block_types=["UpDecoderBlock2D"] * 4,
    use_quant_conv=False,
    use_post_quant_conv=False,
)
QWEN = dict(base_dim=8, z_dim=8, dim_mult=[1, 2, 3, 3], num_res_blocks=1, temperal_downsample=[False, False, False])


class KlNet(nn.Module):
    """diffusers' AutoencoderKL, without what its encode and decode add."""

    def __init__(self, vae):
        super().__init__()
        self.vae = vae

    def encode(self, x):
        return self.vae.encoder(x).chunk(2, dim=1)[0]

    def decode(self, z):
        return self.vae.decoder(z)


class QwenNet(nn.Module):
    """diffusers' AutoencoderKLQwenImage for single pictures: of a causal convolution's three taps in time the last one
    meets the picture and the others meet zeros, so that it is a convolution in two dimensions."""

    def __init__(self, vae):
        super().__init__()
        self.vae = vae
        for module in vae.modules():
            if isinstance(module, nn.Conv3d):
                module.forward = lambda x, cache=None, m=module: self.flat(m, x)

    @staticmethod
    def flat(m, x):
        pad = (m._padding[2], m._padding[0])
        return F.conv2d(x.squeeze(2), m.weight[:, :, -1], m.bias, padding=pad).unsqueeze(2)

    def encode(self, x):
        vae = self.vae
        return vae.quant_conv(vae.encoder(x.unsqueeze(2))).squeeze(2).chunk(2, dim=1)[0]

    def decode(self, z):
        vae = self.vae
        return vae.decoder(vae.post_quant_conv(z.unsqueeze(2))).squeeze(2)


def start_plain(vae):
    """Residual branches begin at nothing: the net begins nearly linear, and learns several times faster."""
    for name, parameter in vae.named_parameters():
        if "resnets" in name and ".conv2.weight" in name:
            nn.init.zeros_(parameter)


def pictures(array, index):
    return torch.from_numpy(np.array(array[index])).permute(0, 3, 1, 2).float().div_(127.5).sub_(1)


def train(net, array, steps, batch, lr, seed, checkpoint, log=print):
    """array: uint8 [n, H, W, 3]. checkpoint: file that is continued when it is there."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(net.parameters(), lr=lr, betas=(0.9, 0.99), weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, steps, pct_start=0.05)
    began, total = time.time(), 0.0
    for step in range(steps):
        x = pictures(array, torch.randint(len(array), (batch,), generator=generator).numpy())
        mean = net.encode(x)
        error = net.decode(mean + LATENT_NOISE * torch.randn_like(mean)) - x
        loss = error.abs().mean() + error.square().mean() + 1e-4 * mean.square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        total += error.abs().mean().item() * 127.5
        if (step + 1) % 100 == 0:
            rate = batch * (step + 1) / (time.time() - began)
            log(f"autoencoder {step + 1}/{steps}: mean error {total / 100:.2f} levels, {rate:.0f} pictures/s", flush=True)
            total = 0.0
            torch.save(net.vae.state_dict(), checkpoint)
    torch.save(net.vae.state_dict(), checkpoint)


@torch.no_grad()
def finish(net, kind):
    """The posterior's variance becomes nothing; taps in time that single pictures never meet become zero."""
    vae = net.vae
    z = vae.config.z_dim if kind == "qwen_edit" else vae.config.latent_channels
    last = vae.quant_conv if kind == "qwen_edit" else vae.encoder.conv_out
    last.weight[z:] = 0
    last.bias[z:] = LOG_VARIANCE
    for module in vae.modules():
        if isinstance(module, nn.Conv3d):
            module.weight[:, :, :-1] = 0


@torch.no_grad()
def encode_all(net, array, batch=100):
    out = [net.encode(pictures(array, slice(i, i + batch))) for i in range(0, len(array), batch)]
    return torch.cat(out)


def make(kind):
    if kind == "qwen_edit":
        vae = AutoencoderKLQwenImage(**QWEN, latents_mean=[0.0] * 8, latents_std=[1.0] * 8)
        start_plain(vae)
        return QwenNet(vae)
    vae = AutoencoderKL(**KL)
    start_plain(vae)
    return KlNet(vae)
