#!/usr/bin/env python3
"""diffusers' transformers on the CPU, as the peer of bench_dit.

    diffusers_dit.py --make DIR [--num-layers 1 --num-single-layers 2 ...]   # a checkpoint of random bf16 weights
    diffusers_dit.py DIR --family flux2 --dtype bf16 --threads 2 --txt 512 --noise 256 --ref 256

The second form loads DIR/transformer, prints "ready DESCRIPTION" and then answers lines on stdin: "run" with "ns WALL
CPU" (one forward, inputs as bench_dit draws them), "dump PATH" with "ok" (the last velocity as f32). Needs torch and
diffusers; for step1x PYTHONPATH has the src folder of its authors' fork (tests/golden/generate_step1x.py)."""

import argparse
import os
import pathlib
import sys
import time

DTYPES = ("f32", "bf16")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--family", choices=("flux2", "qwen", "step1x"), default="flux2")
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--num-layers", type=int, default=1)
    parser.add_argument("--num-single-layers", type=int, default=2)
    parser.add_argument("--num-attention-heads", type=int, help="default: as released")
    parser.add_argument("--joint-attention-dim", type=int, help="default: as released")
    for name, n in (("txt", 512), ("noise", 256), ("ref", 256)):
        parser.add_argument(f"--{name}", type=int, default=n, help="tokens")
    return parser.parse_args()


def model_class(args):
    import diffusers

    names = dict(flux2="Flux2Transformer2DModel", qwen="QwenImageTransformer2DModel", step1x="Step1XEditTransformer2DModel")
    return getattr(diffusers, names[args.family])


def make(args):
    """Weights with standard deviation 1 / sqrt(fan in): every layer keeps its input's size."""
    import torch

    given = dict(num_attention_heads=args.num_attention_heads, joint_attention_dim=args.joint_attention_dim)
    options = {key: value for key, value in given.items() if value is not None}
    if args.family == "qwen":
        options["zero_cond_t"] = True
    else:
        options["num_single_layers"] = args.num_single_layers
    with torch.device("meta"):
        model = model_class(args)(num_layers=args.num_layers, **options)
    model = model.to(torch.bfloat16).to_empty(device="cpu")
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.fill_(1.0)
            else:
                bound = (3.0 / parameter.shape[1]) ** 0.5
                for row in parameter.split(4096):
                    row.copy_(torch.empty(row.shape).uniform_(-bound, bound))
    model.save_pretrained(args.folder / "transformer", max_shard_size="100GB")


def grid(n):
    """The widest grid of n tokens with at most as many rows as columns."""
    height = int(n**0.5)
    while n % height:
        height -= 1
    return height, n // height


def grid_ids(t, n):
    """Rows (t, y, x, 0)."""
    import torch

    height, width = grid(n)
    return torch.cartesian_prod(torch.tensor([t]), torch.arange(height), torch.arange(width), torch.tensor([0]))


def step1x_inputs(args, common):
    import torch

    def ids(t, n):
        return grid_ids(t, n)[:, :3].float()

    txt_ids = torch.zeros(args.txt, 3)
    txt_ids[:, 0] = torch.arange(args.txt) - args.txt
    img_ids = [ids(0, args.noise)] + ([ids(1, args.ref)] if args.ref else [])
    return dict(
        common,
        prompt_embeds_mask=torch.ones(1, args.txt, dtype=torch.long),
        txt_ids=txt_ids,
        img_ids=torch.cat(img_ids),
    )


def inputs(args, model, dtype):
    import torch

    text_dim = model.config.connector_in_channels if args.family == "step1x" else model.config.joint_attention_dim

    def noise(seed, *shape):
        return torch.randn(shape, generator=torch.Generator("cpu").manual_seed(seed)).to(dtype)[None]

    common = dict(
        hidden_states=noise(1, args.noise + args.ref, model.config.in_channels),
        encoder_hidden_states=noise(2, args.txt, text_dim),
        timestep=torch.tensor([500.0]).to(dtype) / 1000,
        return_dict=False,
    )
    if args.family == "qwen":
        return dict(common, img_shapes=[[(1, *grid(n)) for n in (args.noise, args.ref) if n]])
    if args.family == "step1x":
        return step1x_inputs(args, common)
    txt_ids = torch.cartesian_prod(*[torch.tensor([0])] * 3, torch.arange(args.txt))
    img_ids = [grid_ids(0, args.noise)] + ([grid_ids(10, args.ref)] if args.ref else [])
    return dict(
        common,
        guidance=torch.tensor([4.0]).to(dtype),
        txt_ids=txt_ids[None],
        img_ids=torch.cat(img_ids)[None],
    )


def serve(args):
    import diffusers
    import torch

    torch.set_num_threads(args.threads)
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[args.dtype]
    model = model_class(args).from_pretrained(args.folder / "transformer", torch_dtype=dtype).eval()
    model_inputs = inputs(args, model, dtype)
    isa = torch.backends.cpu.get_cpu_capability().lower()
    reply(f"ready diffusers {diffusers.__version__}, torch {torch.__version__} ({isa}, {args.threads} threads)")
    velocity = None
    for line in sys.stdin:
        words = line.split()
        if words == ["run"]:
            start, cpu_start = time.perf_counter_ns(), time.process_time_ns()
            with torch.inference_mode():
                velocity = model(**model_inputs)[0]
            reply(f"ns {time.perf_counter_ns() - start} {time.process_time_ns() - cpu_start}")
        elif len(words) == 2 and words[0] == "dump" and velocity is not None:
            velocity[0, : args.noise].float().numpy().tofile(words[1])
            reply("ok")
        else:
            reply(f"error: not understood: {line.strip()}")


def reply(text):
    print(text, flush=True)


def main():
    args = arguments()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    if args.make:
        make(args)
    else:
        serve(args)


if __name__ == "__main__":
    main()
