#!/usr/bin/env python3
"""Writes data/rng.txt: sums over torch.randn draws of a CPU generator, and first values.

    python tests/golden/generate_rng.py

Needs torch (2.15.0 made the committed file) on an x86 machine with AVX2."""

import pathlib

import numpy as np
import torch

SEEDS = [0, 1, 42, 2**31, 2**32 - 1, 2**32 + 5, 2**63, 2**64 - 1]
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def bits(draw):
    kind = np.uint32 if draw.dtype == torch.float32 else np.uint16
    return draw.view(torch.uint8).numpy().view(kind).astype(np.uint64)


def weighted_sum(values):
    """Sum of (bits + 1) times an odd weight of the position, modulo 2^64."""
    weight = np.arange(len(values), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C16) + np.uint64(1)
    return int(((values + np.uint64(1)) * weight).sum(dtype=np.uint64))


def draws(seed, sizes, dtypes, fresh):
    generator = torch.Generator("cpu").manual_seed(seed)
    out = []
    for i, n in enumerate(sizes):
        if fresh:
            generator.manual_seed(seed)
        out.append(bits(torch.randn(n, generator=generator, dtype=DTYPES[dtypes[i % len(dtypes)]])))
    return np.concatenate(out)


def main():
    assert torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    lines = [
        f"# torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, tests/golden/generate_rng.py",
        "# sum SEED fresh|chain DTYPES FIRST_SIZE LAST_SIZE SUM: sizes FIRST..LAST drawn one after the other, all bits",
        "# values SEED DTYPE N BITS...: the first (up to) 20 of N",
    ]
    for seed in SEEDS:
        for dtypes in (["f32"], ["bf16"], ["f32", "bf16"]):
            for kind, first, last in (("fresh", 1, 200), ("chain", 1, 300)):
                if kind == "fresh" and len(dtypes) > 1:
                    continue
                total = weighted_sum(draws(seed, range(first, last + 1), dtypes, kind == "fresh"))
                lines.append(f"sum {seed} {kind} {'+'.join(dtypes)} {first} {last} {total}")
    for dtype in DTYPES:
        lines.append(f"sum 42 chain {dtype} 1 1000 {weighted_sum(draws(42, range(1, 1001), [dtype], False))}")
        for n in (1 << 20, (1 << 20) + 7):
            lines.append(f"sum 7 fresh {dtype} {n} {n} {weighted_sum(draws(7, [n], [dtype], True))}")
        for seed in (0, 42, 2**64 - 1):
            for n in (3, 15, 16, 17, 20, 64):
                values = draws(seed, [n], [dtype], True)[:20]
                lines.append(f"values {seed} {dtype} {n} " + " ".join(f"{v:x}" for v in values))
    path = pathlib.Path(__file__).parent / "data" / "rng.txt"
    path.write_text("\n".join(lines) + "\n")
    print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
