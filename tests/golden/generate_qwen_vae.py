"""Writes data/qwen_vae/: tiny AutoencoderKLQwenImage checkpoints of diffusers, and what they make of one frame.

    python tests/golden/generate_qwen_vae.py

CONFIG/config.json and diffusion_pytorch_model.safetensors are what save_pretrained writes, in bf16.
CONFIG/cases.safetensors holds the inputs ("f32.pixels" [H, W, 3], "f32.latents" [h, w, C], exact in bf16), the stages in
f32 (vae.encode.level.I and .mid, mean [h, w, C], vae.decode.mid and .level.I, decoded [H, W, 3], not clamped), the
error of the bf16 run of each under "error." (norm of the difference to f32 over the norm), the bf16 run's first level,
where few values have yet fallen on the other side of a rounding, and mean, std and 1 / std of the latents
("f32.statistics", "f32.statistics_bf16", [3, C]).
"""

import json
import pathlib
import struct
import sys
from importlib.metadata import version

VERSIONS = {"torch": "2.15.0", "diffusers": "0.42.1"}
OUT = pathlib.Path(__file__).parent / "data" / "qwen_vae"

CONFIGS = {
    # the channel multipliers, temporal samplers and statistics of the released model
    "released": dict(base_dim=2, z_dim=16, dim_mult=[1, 2, 4, 4], num_res_blocks=2, temperal_downsample=[False, True, True]),
    # three levels, one residual block, odd channel counts
    "small": dict(
        base_dim=3,
        z_dim=4,
        dim_mult=[1, 2, 4],
        num_res_blocks=1,
        temperal_downsample=[False, True],
        latents_mean=[0.1, -0.2, 0.3, -0.4],
        latents_std=[1.5, 0.7, 2.1, 1.1],
    ),
}
SIZES = {"released": (32, 48), "small": (40, 28)}


def randomise(vae, seed):
    import torch

    generator = torch.Generator().manual_seed(seed)
    for name, p in vae.named_parameters():
        values = torch.randn(p.shape, generator=generator)
        if name.endswith("gamma"):
            p.data = 1 + 0.3 * values
        elif name.endswith("bias"):
            p.data = 0.2 * values
        else:
            taps = p[0].numel() if p.dim() < 5 else p[0].numel() // p.shape[2]
            p.data = values * (1.5 / taps) ** 0.5
    return vae.to(torch.bfloat16)


def one_run(vae, pixels, latents):
    """[H, W, 3] and [h, w, C] -> mean, decoded; clamping is left to the pipeline."""
    import torch

    stages = {}

    def keep(name):
        return lambda module, args, output: stages.__setitem__(name, output[0, :, 0].permute(1, 2, 0))

    n_resnets, last = vae.config.num_res_blocks, len(vae.config.dim_mult) - 1
    hooks = [
        vae.encoder.mid_block.register_forward_hook(keep("vae.encode.mid")),
        vae.decoder.mid_block.register_forward_hook(keep("vae.decode.mid")),
    ]
    for i in range(last + 1):
        ends = vae.encoder.down_blocks[i * (n_resnets + 1) + n_resnets - (i == last)]
        hooks.append(ends.register_forward_hook(keep(f"vae.encode.level.{i}")))
        hooks.append(vae.decoder.up_blocks[i].register_forward_hook(keep(f"vae.decode.level.{i}")))
    frame = pixels.permute(2, 0, 1)[None, :, None]
    mean = vae.encode(frame).latent_dist.mode()
    clamp, torch.clamp = torch.clamp, lambda value, **_: value
    try:
        decoded = vae.decode(latents.permute(2, 0, 1)[None, :, None]).sample
    finally:
        torch.clamp = clamp
    for hook in hooks:
        hook.remove()
    return {**stages, "mean": mean[0, :, 0].permute(1, 2, 0), "decoded": decoded[0, :, 0].permute(1, 2, 0)}


def statistics(vae):
    """[3, C]: mean, std and 1 / std as the pipelines make them of the config, in the VAE's dtype."""
    import torch

    mean, std = (torch.tensor(values).to(vae.dtype) for values in (vae.config.latents_mean, vae.config.latents_std))
    return torch.stack([mean, std, 1.0 / std])


def sort_metadata(path):
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + size])
    if "__metadata__" in header:
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + size :])


def main():
    found = {name: version(name) for name in VERSIONS}
    if found != VERSIONS:
        sys.exit(f"generate_qwen_vae.py: written against {VERSIONS}, found {found}")
    import torch
    from diffusers import AutoencoderKLQwenImage
    from safetensors.torch import save_file

    torch.set_num_threads(1)
    for seed, (name, config) in enumerate(CONFIGS.items()):
        half = randomise(AutoencoderKLQwenImage(**config), seed)
        half.save_pretrained(OUT / name)
        full = AutoencoderKLQwenImage(**config).to(torch.float32)
        full.load_state_dict({key: value.float() for key, value in half.state_dict().items()})
        height, width = SIZES[name]
        factor = 2 ** len(config["temperal_downsample"])
        generator = torch.Generator().manual_seed(100 + seed)
        pixels = (torch.rand(height, width, 3, generator=generator) * 2 - 1).to(torch.bfloat16)
        latents = torch.randn(height // factor, width // factor, config["z_dim"], generator=generator).to(torch.bfloat16)
        with torch.no_grad():
            plain = one_run(full, pixels.float(), latents.float())
            rounded = one_run(half, pixels, latents)
        tensors = {"f32.pixels": pixels, "f32.latents": latents, "bf16.vae.encode.level.0": rounded["vae.encode.level.0"]}
        tensors |= {"f32.statistics": statistics(full), "f32.statistics_bf16": statistics(half)}
        for stage, value in plain.items():
            tensors[stage] = value
            error = (rounded[stage].double() - value.double()).norm() / value.double().norm()
            tensors[f"error.{stage}"] = error.float()[None]
            print(name, stage, list(value.shape), f"bf16 error {error:.2e}")
        tensors = {key: value.contiguous() for key, value in tensors.items()}
        versions = ", ".join(f"{key} {value}" for key, value in sorted(found.items()))
        save_file(tensors, OUT / name / "cases.safetensors", metadata={"versions": versions})
        for file in (OUT / name).glob("*.safetensors"):
            sort_metadata(file)


main()
