#!/usr/bin/env python3
"""Makes data/quantized/bitsandbytes.csv: what bitsandbytes makes of bf16 weights on a CPU, as SHA-256 of the packed codes, of
the scales and of the values they stand for; and data/quantized/gguf.csv: what gguf-py makes of random blocks, rounded to
bf16. python tests/golden/generate_quant.py [--full N] [--gguf] [--fp8]   (--fp8 prints what stands in test_quantized.c)

A case is n weights from splitmix64(seed): sign z >> 63, mantissa z >> 51 & 127, exponent by kind. Block `zeros` of a case
is zero, with both signs. Values are bitsandbytes' own where its CPU code takes whole blocks; of others, where it reads the
wrong scale (its issue 2072), and of subnormal values, which its AVX-512 code makes zero, they are level * scale in f32, rounded to bf16.
"""

import argparse
import hashlib
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

GGUF_VERSION = "0.19.0"
VERSIONS = {"bitsandbytes": "0.50.2", "torch": "2.15.0"}
# name, n, seed, kind: least exponent and how many
CASES = [
    ("square", 1 << 20, 42, (112, 8)),
    ("wide", 1 << 18, 1, (96, 64)),
    ("largest", 1 << 14, 2, (239, 16)),
    ("smallest", 1 << 14, 3, (0, 4)),
    ("subnormal", 1 << 14, 4, (0, 1)),
    ("odd", 12345, 5, (118, 6)),
    ("ragged", 3420 * 33, 6, (116, 8)),
    ("short", 7, 7, (120, 4)),
    ("one", 1, 8, (120, 4)),
]


def splitmix64(seed, n):
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def weights(n, seed, least, count):
    z = splitmix64(seed, n)
    exponent = np.uint64(least) + ((z >> np.uint64(58)) & np.uint64(31)) % np.uint64(count)
    bits = ((z >> np.uint64(63)) << np.uint64(15)) | (exponent << np.uint64(7)) | ((z >> np.uint64(51)) & np.uint64(127))
    if n > 1000:
        bits[256:384] &= np.uint64(0x8000)  # blocks of zeros
    return bits.astype("<u2")


def rounded(x):
    u = x.astype("<f4").view("<u4").astype(np.uint64)
    return ((u + 0x7FFF + ((u >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)).astype("<u2")


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def row(name, n, seed, kind, block):
    import bitsandbytes.functional as F
    import torch

    bits = weights(n, seed, *kind)
    w = torch.from_numpy(bits.view("<i2").copy()).view(torch.bfloat16).reshape(1, n)
    codes, state = F.quantize_4bit(w, blocksize=block, quant_type="nf4", compress_statistics=False)
    packed, absmax = codes.numpy().reshape(-1), state.absmax.numpy()
    each = np.stack([packed >> 4, packed & 15], 1).reshape(-1)[:n]
    with np.errstate(over="ignore"):
        values = rounded(state.code.numpy()[each] * np.repeat(absmax, block)[:n])
    if n % block == 0:
        theirs = F.dequantize_4bit(codes, state).view(torch.int16).numpy().view("<u2").reshape(-1)
        differ = theirs != values  # AVX-512's conversion to bf16 makes subnormal values zero
        assert ((values[differ] & 0x7F80) == 0).all() and ((theirs[differ] & 0x7FFF) == 0).all()
    if n % 2:
        packed[-1] &= 0xF0  # the padding
    return ",".join([name, str(n), str(seed), str(kind[0]), str(kind[1]), str(block), digest(packed), digest(absmax),
                     digest(values)])


# A GGUF type: bytes where its f16 fields lie, which are made sane.
GGUF = {"Q8_0": (0,), "Q4_0": (0,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}
GGUF_RUNS = [(11, 64)] + [(1000 + i, 1 << 16) for i in range(16)]  # seed, blocks; all but the first in the full run


def gguf_rows():
    import gguf

    if version("gguf") != GGUF_VERSION:
        raise SystemExit(f"gguf: expected {GGUF_VERSION}, got {version('gguf')}")
    rows = ["type,seed,blocks,values"]
    for seed, n in GGUF_RUNS:
        for name, halves in GGUF.items():
            kind = gguf.GGMLQuantizationType[name]
            size = gguf.GGML_QUANT_SIZES[kind][1]
            data = splitmix64(seed, (n * size + 7) // 8).astype("<u8").view(np.uint8)[: n * size].reshape(n, size).copy()
            for at in halves:
                data[:, at + 1] = (data[:, at + 1] & 0x83) | 0x2C
            values = gguf.quants.dequantize(data, kind)
            rows.append(f"{name.lower()},{seed},{n},{digest(rounded(values))}")
    return rows


def print_fp8():
    """SHA-256 of torch's code * scale in f32, rounded to bf16, of all 256 codes with each of 1,000 scales; NaN is 7fc0."""
    import torch

    z = splitmix64(21, 1000)
    bits = (np.uint64(100) + ((z >> np.uint64(58)) & np.uint64(31))) << np.uint64(23) | (z >> np.uint64(35)) & np.uint64(0x7FFFFF)
    scales = torch.from_numpy(bits.astype("<u4").view("<f4"))
    codes = torch.arange(256, dtype=torch.uint8)
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        values = (codes.view(dtype).float()[None, :] * scales[:, None]).to(torch.bfloat16).view(torch.int16).numpy().view("<u2")
        print(dtype, digest(np.where((values & 0x7FFF) > 0x7F80, np.uint16(0x7FC0), values)))


def main():
    if "--fp8" in sys.argv:
        return print_fp8()
    if "--gguf" in sys.argv:
        (Path(__file__).parent / "data/quantized/gguf.csv").write_text("\n".join(gguf_rows()) + "\n")
        return
    import bitsandbytes
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--full", type=int, default=96, help="cases of 2^20 weights for the full run")
    count = parser.parse_args().full
    for module, name in ((bitsandbytes, "bitsandbytes"), (torch, "torch")):
        if module.__version__.split("+")[0] != VERSIONS[name]:
            raise SystemExit(f"{name}: expected {VERSIONS[name]}, got {module.__version__}")
    rows = ["name,n,seed,least_exponent,exponents,block,codes,scales,values"]
    rows += [row(*case, block) for case in CASES for block in (64, 32)]
    rows += [row("full", 1 << 20, 100 + i, (110 + i % 10, 2 + i % 15), 32 if i % 4 == 3 else 64) for i in range(count)]
    folder = Path(__file__).parent / "data/quantized"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bitsandbytes.csv").write_text("\n".join(rows) + "\n")


main()
