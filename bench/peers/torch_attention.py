#!/usr/bin/env python3
"""bench_attention beside torch's scaled_dot_product_attention on the same shapes and threads, in turns.

    python bench/peers/torch_attention.py build/bench_attention [--threads 2] [--rounds 3] [--s 1024]

Prints for each shape and dtype the best of each and their ratio (above 1: ours is faster). The two take turns because
the machine may be shared; a round is one run of ours (two repetitions) and two calls of torch's."""

import argparse
import json
import subprocess
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("bench")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--s", type=int, default=0, help="only shapes with this S_q")
args = parser.parse_args()
torch.set_num_threads(args.threads)

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
best = {}
for _ in range(args.rounds):
    command = [args.bench, "-o", "json", "-r", "2", "-t", str(args.threads)]
    if args.s:
        command += ["-s", str(args.s)]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for row in rows:
        dtype = DTYPES[row["dtype"]]
        q = torch.randn(row["s_q"], row["n_heads"], row["head_dim"]).to(dtype).transpose(0, 1)[None]
        k, v = (torch.randn(row["s_k"], row["n_kv_heads"], row["head_dim"]).to(dtype).transpose(0, 1)[None] for _ in "kv")
        took = []
        for _ in range(2):
            start = time.perf_counter()
            torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=bool(row["causal"]), enable_gqa=row["n_heads"] != row["n_kv_heads"]
            )
            took.append(1e3 * (time.perf_counter() - start))
        key = (row["what"], row["s_q"], row["n_heads"], row["head_dim"], row["dtype"])
        ours, theirs = best.get(key, (float("inf"), float("inf")))
        best[key] = min(ours, row["best_ms"]), min(theirs, min(took))

print(f"torch {torch.__version__}, {args.threads} threads\n")
print("| what | S | heads x head_dim | dtype | ours ms | torch ms | ratio |\n|---|---|---|---|---|---|---|")
for (what, s, heads, head_dim, dtype), (ours, theirs) in best.items():
    print(f"| {what} | {s} | {heads} x {head_dim} | {dtype} | {ours:.1f} | {theirs:.1f} | {theirs / ours:.2f} |")
