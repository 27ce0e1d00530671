"""bitsandbytes' and gguf-py's dequantisation on a CPU, beside bench_dequantize: one of each in turn, one thread,
nanoseconds of CPU time a weight, medians.

    OMP_NUM_THREADS=1 python bench/peers/dequantize.py build/bench_dequantize [-r 7]

bitsandbytes 0.50.2, gguf 0.19 and torch 2.15 from PyPI. bitsandbytes gives bf16, of a whole matrix; gguf-py gives f32."""

import argparse
import csv
import io
import statistics
import subprocess
import time

import bitsandbytes.functional as F
import gguf
import numpy as np
import torch

SIDE = 3072
TYPES = {"q8_0": "Q8_0", "q4_0": "Q4_0", "q4_k": "Q4_K", "q5_k": "Q5_K", "q6_k": "Q6_K"}


def ours(bench):
    out = subprocess.run([bench, "-o", "csv", "-r", "3"], check=True, capture_output=True, text=True).stdout
    return {row["format"]: float(row["ns_per_weight"]) for row in csv.DictReader(io.StringIO(out))}


def theirs():
    """Functions by format."""
    weight = torch.randn(SIDE, SIDE).to(torch.bfloat16)
    codes, state = F.quantize_4bit(weight, blocksize=64, quant_type="nf4", compress_statistics=False)
    functions = {"nf4": lambda: F.dequantize_4bit(codes, state)}
    for name, kind in TYPES.items():
        kind = gguf.GGMLQuantizationType[kind]
        block, size = gguf.GGML_QUANT_SIZES[kind]
        data = np.full((SIDE, SIDE // block * size), 0x2C, dtype=np.uint8)
        functions[name] = lambda data=data, kind=kind: gguf.quants.dequantize(data, kind)
    return functions


def seconds(function):
    start = time.process_time()
    function()
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("-r", type=int, default=7)
    args = parser.parse_args()
    torch.set_num_threads(1)
    functions = theirs()
    mine, peers = [], {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(args.r):
        mine.append(ours(args.bench))
        for name, function in functions.items():
            peers[name].append(1e9 * seconds(function) / SIDE**2)
    print("| format | ours | peer | ratio |\n|---|--:|--:|--:|")
    for name in functions:
        own, peer = (statistics.median(x) for x in ([row[name] for row in mine], peers[name]))
        print(f"| {name} | {own:.3f} | {peer:.3f} | {peer / own:.2f} |")


if __name__ == "__main__":
    main()
