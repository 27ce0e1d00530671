"""Trains a small autoencoder of a family's own class on the drawings, before and after alike."""

import time

import numpy as np
import torch
from diffusers import AutoencoderKL, AutoencoderKLQwenImage
from torch import nn
from torch.nn import functional as F

import muon

NEAR = 17  # points: the width of a place
LOG_VARIANCE = -20.0  # of the posterior: nothing, so that a sampled latent is the mean

KL = dict(
    block_out_channels=[16, 16, 32, 40],
    layers_per_block=1,
    norm_num_groups=8,
    latent_channels=16,
    down_block_types=["DownEncoderBlock2D"] * 4,
    up_block_types=["UpDecoderBlock2D"] * 4,
    use_quant_conv=False,
    use_post_quant_conv=False,
)
QWEN = dict(base_dim=16, z_dim=16, dim_mult=[1, 1, 2, 2], num_res_blocks=1, temperal_downsample=[False, False, False])


class KlNet(nn.Module):
    """diffusers' AutoencoderKL, without what its encode and decode add."""

    def __init__(self, vae):
        super().__init__()
        self.vae = vae.to(memory_format=torch.channels_last)  # what is faster

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


def blurred(x, width):
    """The mean of the points around each, those outside counted as 0: along rows, then along columns."""
    rows = F.avg_pool2d(x, (1, width), stride=1, padding=(0, width // 2))
    return F.avg_pool2d(rows, (width, 1), stride=1, padding=(width // 2, 0))


def weights(before, after, emphasis, faint):
    """Of an error's places, mean 1: what differs from its surroundings counts more, and what an edit changes the more,
    the less it changes nearby and, with faint 1 instead of 0, the fainter the change: a frown on dark skin. Lips and scars
    are a few points of 4,096, which nets else leave out."""
    both = torch.cat([before, after])
    around = blurred(both, 9) / blurred(torch.ones_like(both[:1, :1]), 9)
    weight = 1 + 2 * (both - around).abs().mean(1, keepdim=True)
    change = (before - after).abs().amax(1, keepdim=True)
    changed = (change > 0.06).float()
    nearby = blurred(changed, NEAR)
    contrast = change.clamp(0.06, 0.8) ** faint
    weight = weight * (1 + emphasis * changed / contrast / (nearby + 0.05)).repeat(2, 1, 1, 1)
    return weight / weight.mean()


def chances(array, often, small):
    """Of pairs to be chosen: often, and the higher, the less the edit changes."""
    total = [np.abs(pair[0].astype(np.int16) - pair[1]).sum() / 255 for pair in array] if small else 0.0
    return torch.as_tensor(often) * (torch.as_tensor(total) + 1) ** -small


def train(net, array, often, steps, batch, lr, emphasis, faint, small, noise, seed, checkpoint, latents=None, log=print):
    """array: uint8 [n, 2, H, W, 3], before and after. often, small: of chances(). emphasis, faint: of weights().
    noise: of a latent's spread, that the decoder learns to bear, for a denoiser is never exact. latents: of before, and
    what a denoiser makes of it; the decoder alone learns then to draw what was meant."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    parts = ("decoder", "post_quant") if latents else ("",)
    trained = [(name, p) for name, p in net.named_parameters() if any(part in name for part in parts)]
    optimizer = muon.Muon(trained, lr, adam_lr=lr / 5, adam=["conv_in", "conv_out"])
    schedule = muon.schedule(optimizer, steps)
    chance = chances(array, often, small)
    encode, decode = torch.compile(net.encode), torch.compile(net.decode)
    began, total = time.time(), 0.0
    for step in range(steps):
        i = torch.multinomial(chance, batch // 2, generator=generator).numpy()
        before, after = pictures(array[:, 0], i), pictures(array[:, 1], i)
        x = torch.cat([before, after]).contiguous(memory_format=torch.channels_last)
        mean = torch.cat([of[i] for of in latents]) if latents else encode(x)
        spread = mean.detach().std((0, 2, 3), keepdim=True)
        error = decode(mean + noise * spread * torch.randn_like(mean)) - x
        size = (error.abs() + error.square()) * weights(before, after, emphasis, faint)
        loss = size.mean() + 1e-4 * mean.square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_([p for _, p in trained], 1.0)
        optimizer.step()
        schedule.step()
        total += error.abs().mean().item() * 127.5
        if (step + 1) % 200 == 0:
            rate = batch * (step + 1) / (time.time() - began)
            log(f"autoencoder {step + 1}/{steps}: mean error {total / 200:.2f} levels, {rate:.0f} pictures/s", flush=True)
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
        vae = AutoencoderKLQwenImage(**QWEN, latents_mean=[0.0] * 16, latents_std=[1.0] * 16)
        start_plain(vae)
        return QwenNet(vae)
    vae = AutoencoderKL(**KL)
    start_plain(vae)
    return KlNet(vae)
