#!/usr/bin/env python3
"""Writes data/flow_match.txt: diffusers' sigmas, timesteps, mu, time embeddings and RoPE tables, transformers' RoPE.

    python tests/golden/generate_flow_match.py

Needs diffusers (0.42.1), transformers (5.23.0), torch (2.15.0), numpy (2.4.6); the versions in brackets made the
committed file. Floats are written as the hexadecimal of their bits."""

import pathlib
import warnings

import diffusers
import numpy as np
import torch
import transformers
from diffusers import FlowMatchEulerDiscreteScheduler
from diffusers.models.embeddings import get_timestep_embedding
from diffusers.models.transformers.transformer_flux2 import Flux2PosEmbed
from diffusers.pipelines.flux2.pipeline_flux2 import compute_empirical_mu
from transformers.models.mistral.modeling_mistral import MistralRotaryEmbedding

LENGTHS = [1, 16, 64, 256, 777, 1024, 1536, 2304, 3600, 4096, 4300, 4301, 6000, 8192, 16384]
FLUX2 = dict(
    num_train_timesteps=1000, use_dynamic_shifting=True, time_shift_type="exponential", shift=3.0,
    base_image_seq_len=256, max_image_seq_len=4096, base_shift=0.5, max_shift=1.15, shift_terminal=None,
)  # fmt: skip
CONFIGS = {
    "flux2": FLUX2,
    "linear": FLUX2 | dict(time_shift_type="linear"),
    "terminal": FLUX2 | dict(shift_terminal=0.02),
    "shift1": FLUX2 | dict(use_dynamic_shifting=False, shift=1.0),
    "shift3": FLUX2 | dict(use_dynamic_shifting=False),
    "shift3_terminal": FLUX2 | dict(use_dynamic_shifting=False, shift_terminal=0.1),
}
IDS = [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 511], [0, 63, 63, 0], [10, 1, 5, 0], [20, 127, 90, 0], [40, 300, 7, 0]]


def bits(array, kind=np.uint32):
    return np.ascontiguousarray(array).view(kind).ravel()


def weighted_sum(values):
    values = np.concatenate(values).astype(np.uint64)
    weight = np.arange(len(values), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C16) + np.uint64(1)
    return int(((values + np.uint64(1)) * weight).sum(dtype=np.uint64))


def hexes(array):
    return " ".join(f"{v:x}" for v in bits(np.asarray(array)))


def schedule(scheduler, n, length):
    scheduler.set_timesteps(sigmas=np.linspace(1.0, 1 / n, n), mu=compute_empirical_mu(length, n))
    return scheduler.sigmas.numpy(), scheduler.timesteps.numpy()


def sigma_lines():
    lengths = range(1, 6000, 7)
    mus = [np.array([compute_empirical_mu(length, n) for n in range(1, 101)]) for length in lengths]
    lines = [f"mu 1 6000 7 {weighted_sum([bits(m, np.uint64) for m in mus])}"]
    for name, config in CONFIGS.items():
        scheduler = FlowMatchEulerDiscreteScheduler(**config)
        first = 2 if config["shift_terminal"] else 1  # one step has nothing to stretch: NaN
        for length in LENGTHS if config["use_dynamic_shifting"] else [1]:
            values = [bits(a) for n in range(first, 101) for a in schedule(scheduler, n, length)]
            lines.append(f"sigmas {name} {length} {first} {weighted_sum(values)}")
    sigmas, timesteps = schedule(FlowMatchEulerDiscreteScheduler(**FLUX2), 8, 4096)
    lines += [f"schedule 8 4096 {hexes(sigmas)} {hexes(timesteps)}"]
    return lines


def table_lines():
    lines = []
    for timestep in (1000.0, 997.3090, 500.0, 4000.0, 2496.0):
        t = torch.tensor([timestep], dtype=torch.float32)
        embedding = get_timestep_embedding(t, 256, flip_sin_to_cos=True, downscale_freq_shift=0)
        lines.append(f"embedding {hexes(t)} {hexes(embedding)}")
    cos, sin = Flux2PosEmbed(2000, [32, 32, 32, 32])(torch.tensor(IDS))
    for row, row_ids in enumerate(IDS):
        assert torch.equal(cos[row, ::2], cos[row, 1::2]) and torch.equal(sin[row, ::2], sin[row, 1::2])
        ids = " ".join(map(str, row_ids))
        lines.append(f"rope {ids} {hexes(cos[row, ::2])} {hexes(sin[row, ::2])}")
    config = transformers.MistralConfig(
        hidden_size=512, num_attention_heads=4, head_dim=128, rope_parameters=dict(rope_type="default", rope_theta=1e9)
    )
    rope = MistralRotaryEmbedding(config)
    for position in (0, 1, 7, 100, 511):
        for dtype, name in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
            cos, sin = rope(torch.zeros(1, dtype=dtype), torch.tensor([[position]]))
            cos, sin = cos[0, 0, :64].float(), sin[0, 0, :64].float()
            lines.append(f"rope_lm {position} {name} {hexes(cos)} {hexes(sin)}")
    return lines


def main():
    warnings.simplefilter("ignore")
    versions = f"diffusers {diffusers.__version__}, transformers {transformers.__version__}"
    lines = [f"# {versions}, torch {torch.__version__}, numpy {np.__version__}, tests/golden/generate_flow_match.py"]
    lines += [
        "# mu FIRST END STEP SUM: noise tokens x steps 1..100; sigmas CONFIG TOKENS FIRST_N SUM: sigmas, timesteps to n = 100",
        "# schedule N TOKENS SIGMAS TIMESTEPS; embedding TIMESTEP VALUES; rope IDS COS SIN; rope_lm POSITION DTYPE COS SIN",
    ]
    path = pathlib.Path(__file__).parent / "data" / "flow_match.txt"
    path.write_text("\n".join(lines + sigma_lines() + table_lines()) + "\n")
    print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
