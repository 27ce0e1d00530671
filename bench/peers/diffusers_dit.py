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
CLASSES = dict(
    flux2=("transformer", "Flux2Transformer2DModel"),
    qwen=("transformer", "QwenImageTransformer2DModel"),
    step1x=("transformer", "Step1XEditTransformer2DModel"),
    sd=("unet", "UNet2DConditionModel"),
    stage_c=("prior", "StableCascadeUNet"),
    vae=("vae", "AutoencoderKL"),
)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--family", choices=("flux2", "qwen", "step1x", "sd", "stage_c", "vae"), default="flux2")
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

    return getattr(diffusers, CLASSES[args.family][1])


def released_unet(args):
    """Stable Diffusion 1.5's."""
    return dict(sample_size=64, cross_attention_dim=768, attention_head_dim=8)


def released_stage_c(args):
    """Stable Cascade's widths; --num-layers of each level and kind."""
    layers = (args.num_layers, args.num_layers)
    return dict(
        clip_image_in_channels=768,
        clip_text_in_channels=1280,
        down_num_layers_per_block=layers,
        up_num_layers_per_block=layers,
        switch_level=(False,),
    )


def released_vae(args):
    """Stable Diffusion 1.5's."""
    return dict(
        block_out_channels=(128, 256, 512, 512),
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        layers_per_block=2,
        norm_num_groups=32,
        latent_channels=4,
    )


SQUARES = dict(sd=released_unet, stage_c=released_stage_c, vae=released_vae)


def make(args):
    """Weights with standard deviation 1 / sqrt(fan in): every layer keeps its input's size."""
    import torch

    given = dict(num_attention_heads=args.num_attention_heads, joint_attention_dim=args.joint_attention_dim)
    options = {key: value for key, value in given.items() if value is not None}
    if args.family in SQUARES:
        options = SQUARES[args.family](args)
    elif args.family == "qwen":
        options.update(zero_cond_t=True, num_layers=args.num_layers)
    else:
        options.update(num_single_layers=args.num_single_layers, num_layers=args.num_layers)
    with torch.device("meta"):
        model = model_class(args)(**options)
    model = model.to(torch.bfloat16).to_empty(device="cpu")
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.fill_(1.0)
            else:
                bound = (3.0 / parameter[0].numel()) ** 0.5
                for row in parameter.split(4096):
                    row.copy_(torch.empty(row.shape).uniform_(-bound, bound))
    model.save_pretrained(args.folder / CLASSES[args.family][0], max_shard_size="100GB")


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


def square_run(args, model, dtype):
    """What one forward of a network over a square of latents is: a function; its result as rows of pixels."""
    import torch

    def noise(seed, *shape):
        return torch.randn(shape, generator=torch.Generator("cpu").manual_seed(seed)).to(dtype)[None]

    side = int(args.noise**0.5)
    channels = model.config.latent_channels if args.family == "vae" else model.config.in_channels
    x = noise(1, args.noise, channels).reshape(1, side, side, channels).permute(0, 3, 1, 2).contiguous()

    def rows(y):
        return y.permute(0, 2, 3, 1).reshape(1, args.noise, -1)

    if args.family == "vae":
        return lambda: rows(model.decode(x).sample)
    text_dim = 1280 if args.family == "stage_c" else model.config.cross_attention_dim
    text = noise(2, args.txt, text_dim)
    if args.family == "sd":
        return lambda: rows(model(x, 500, text).sample)
    image, ratio = torch.zeros(1, 1, 768, dtype=dtype), torch.tensor([0.5]).to(dtype)
    return lambda: rows(
        model(x, ratio, clip_text_pooled=text[:, :1], clip_text=text, clip_img=image, return_dict=False)[0]
    )


def serve(args):
    import diffusers
    import torch

    torch.set_num_threads(args.threads)
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[args.dtype]
    model = model_class(args).from_pretrained(args.folder / CLASSES[args.family][0], torch_dtype=dtype).eval()
    if args.family in SQUARES:
        forward = square_run(args, model, dtype)
    else:
        model_inputs = inputs(args, model, dtype)

        def forward():
            return model(**model_inputs)[0]

    isa = torch.backends.cpu.get_cpu_capability().lower()
    reply(f"ready diffusers {diffusers.__version__}, torch {torch.__version__} ({isa}, {args.threads} threads)")
    velocity = None
    for line in sys.stdin:
        words = line.split()
        if words == ["run"]:
            start, cpu_start = time.perf_counter_ns(), time.process_time_ns()
            with torch.inference_mode():
                velocity = forward()
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
