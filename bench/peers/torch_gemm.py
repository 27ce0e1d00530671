"""torch's CPU matrix products on the shapes of bench_gemm, beside bench_gemm itself: one repetition of each in turn,
because a shared machine's speed changes from minute to minute.

    OMP_NUM_THREADS=2 python bench/peers/torch_gemm.py build/bench_gemm [-m 1024] [-r 5] [-t 2] [-p f32|bf16]

Prints, per shape, medians and best of both (GFLOP/s by the clock), and the ratio of ours to torch's. torch has no
product of f32 activations with bf16 weights; f32 and bf16 are compared."""

import argparse
import csv
import io
import statistics
import subprocess
import time

import torch

SHAPES = [(6144, 6144), (18432, 6144), (36864, 6144), (55296, 6144), (6144, 18432), (6144, 24576)]


def ours(args, path, m, n, k):
    """Milliseconds of one repetition (after one to warm up), by the clock and of CPU time."""
    command = [args.bench, "-o", "csv", "-r", "1", "-t", str(args.t), "-m", str(m), "-p", path, "-s", f"{n},{k}"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    row = next(csv.DictReader(io.StringIO(out)))
    return float(row["median_ms"]), float(row["cpu_ms"])


def theirs(x, w):
    torch.nn.functional.linear(x, w)
    start, cpu = time.perf_counter(), time.process_time()
    torch.nn.functional.linear(x, w)
    return 1e3 * (time.perf_counter() - start), 1e3 * (time.process_time() - cpu)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("-m", type=int, default=1024)
    parser.add_argument("-r", type=int, default=5)
    parser.add_argument("-t", type=int, default=2)
    parser.add_argument("-p", choices=["f32", "bf16"])
    parser.add_argument("-s", help="N,K: one shape only")
    args = parser.parse_args()
    shapes = [tuple(int(v) for v in args.s.split(","))] if args.s else SHAPES
    torch.set_num_threads(args.t)
    print(f"torch {torch.__version__}, {args.t} threads, M = {args.m}, {args.r} repetitions, GFLOP/s\n")
    print("| path | N x K | torch median | ours | ratio | torch best | ours | ratio | ratio by CPU time |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for path, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        if args.p and args.p != path:
            continue
        for n, k in shapes:
            x, w = torch.randn(args.m, k).to(dtype), torch.randn(n, k).to(dtype)
            pairs = [(theirs(x, w), ours(args, path, args.m, n, k)) for _ in range(args.r)]
            gflop = 2e-6 * args.m * n * k
            t = [gflop / pair[0][0] for pair in pairs]
            o = [gflop / pair[1][0] for pair in pairs]
            cpu = statistics.median(p[0][1] for p in pairs) / statistics.median(p[1][1] for p in pairs)
            mt, mo = statistics.median(t), statistics.median(o)
            print(f"| {path} | {n} x {k} | {mt:.0f} | {mo:.0f} | {mo / mt:.2f} | {max(t):.0f} | {max(o):.0f} "
                  f"| {max(o) / max(t):.2f} | {cpu:.2f} |", flush=True)


if __name__ == "__main__":
    main()
