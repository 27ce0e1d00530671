#!/usr/bin/env python3
"""Makes data/sd/CONFIG/ldm_names.txt: "COMPONENT NAME LDM_NAME" of every tensor of data/sd/CONFIG/checkpoint, as single files have
them. Diffusers' own converters must make the checkpoint's tensors of a file under these names.
python tests/golden/generate_sd_names.py"""

from pathlib import Path

from golden_file import check_versions, prepare

RESNET = {
    "norm1": "in_layers.0",
    "conv1": "in_layers.2",
    "time_emb_proj": "emb_layers.1",
    "norm2": "out_layers.0",
    "conv2": "out_layers.3",
    "conv_shortcut": "skip_connection",
}
TOP = {
    "conv_in": "input_blocks.0.0",
    "conv_norm_out": "out.0",
    "conv_out": "out.2",
    "time_embedding.linear_1": "time_embed.0",
    "time_embedding.linear_2": "time_embed.2",
    "add_embedding.linear_1": "label_emb.0.0",
    "add_embedding.linear_2": "label_emb.0.2",
}
VAE_ATTENTION = {"group_norm": "norm", "to_q": "q", "to_k": "k", "to_v": "v", "to_out.0": "proj_out"}
VAE_ATTENTION.update({"query": "q", "key": "k", "value": "v", "proj_attn": "proj_out"})
CLIP = {"layer_norm1": "ln_1", "layer_norm2": "ln_2", "mlp.fc1": "mlp.c_fc", "mlp.fc2": "mlp.c_proj", "self_attn.out_proj": "attn.out_proj"}


def module_name(table, module):
    return next(new + module[len(old) :] for old, new in table.items() if module == old or module.startswith(old + "."))


def unet_name(name, names):
    for old, new in TOP.items():
        if name.startswith(old + "."):
            return new + name[len(old) :]
    parts = name.split(".")
    if parts[0] == "mid_block":
        place = {"attentions.0": 1, "resnets.0": 0, "resnets.1": 2}[".".join(parts[1:3])]
        rest = ".".join(parts[3:])
        return f"middle_block.{place}." + (rest if parts[1] == "attentions" else module_name(RESNET, rest))
    i, kind, j, rest = int(parts[1]), parts[2], int(parts[3]), ".".join(parts[4:])
    down = parts[0] == "down_blocks"
    if kind == "downsamplers":
        return f"input_blocks.{3 * (i + 1)}.0.op.{parts[-1]}"
    if kind == "upsamplers":
        attends = any(other.startswith(f"up_blocks.{i}.attentions.") for other in names)
        return f"output_blocks.{3 * i + 2}.{2 if attends else 1}.conv.{parts[-1]}"
    block = f"input_blocks.{1 + 3 * i + j}" if down else f"output_blocks.{3 * i + j}"
    return f"{block}.1.{rest}" if kind == "attentions" else f"{block}.0.{module_name(RESNET, rest)}"


def vae_name(name):
    parts = name.split(".")
    if parts[1] == "conv_norm_out":
        return ".".join([parts[0], "norm_out", *parts[2:]])
    if parts[1] == "mid_block":
        rest = ".".join(parts[4:])
        if parts[2] == "attentions":
            return f"{parts[0]}.mid.attn_1.{module_name(VAE_ATTENTION, rest)}"
        return f"{parts[0]}.mid.block_{int(parts[3]) + 1}.{rest}"
    if len(parts) < 4:
        return name
    level = int(parts[2]) if parts[0] == "encoder" else 3 - int(parts[2])
    way = "down" if parts[0] == "encoder" else "up"
    if parts[3] == "resnets":
        return f"{parts[0]}.{way}.{level}.block.{parts[4]}." + ".".join(parts[5:]).replace("conv_shortcut", "nin_shortcut")
    return f"{parts[0]}.{way}.{level}.{way}sample.conv.{parts[-1]}"


def open_clip_name(name):
    top = {
        "text_model.embeddings.token_embedding.weight": "token_embedding.weight",
        "text_model.embeddings.position_embedding.weight": "positional_embedding",
        "text_model.final_layer_norm.weight": "ln_final.weight",
        "text_model.final_layer_norm.bias": "ln_final.bias",
        "text_projection.weight": "text_projection",
    }
    if name in top:
        return top[name]
    layer, rest = name.removeprefix("text_model.encoder.layers.").split(".", 1)
    for part in "qkv":
        for end in ("weight", "bias"):
            if rest == f"self_attn.{part}_proj.{end}":
                return f"transformer.resblocks.{layer}.attn.in_proj_{end}"
    return f"transformer.resblocks.{layer}.{module_name(CLIP, rest)}"


def main():
    check_versions()
    prepare()
    import json

    import torch
    from diffusers.loaders.single_file_utils import convert_ldm_unet_checkpoint, convert_ldm_vae_checkpoint
    from safetensors.torch import load_file

    for config in ("sd15", "sdxl"):
        root = Path(__file__).parent / "data/sd" / config
        xl = config == "sdxl"
        suffix = ".fp16.safetensors" if xl else ".safetensors"

        def tensors(component, stem):
            return load_file(root / "checkpoint" / component / f"{stem}{suffix}")

        lines, ldm = [], {}

        def add(component, found, prefix, rename):
            for name, value in found.items():
                to = prefix + rename(name)
                lines.append(f"{component} {name} {to}")
                if "mid.attn_1" in to and value.ndim == 2:
                    value = value[:, :, None, None]
                ldm[to] = value

        unet, vae = tensors("unet", "diffusion_pytorch_model"), tensors("vae", "diffusion_pytorch_model")
        add("unet", unet, "model.diffusion_model.", lambda name: unet_name(name, unet))
        add("vae", vae, "first_stage_model.", vae_name)
        text = tensors("text_encoder", "model")
        prefix = "conditioner.embedders.0.transformer." if xl else "cond_stage_model.transformer."
        add("text_encoder", text, prefix, lambda n: n if n.startswith("text_model.") else f"text_model.{n}")
        made = convert_ldm_unet_checkpoint(dict(ldm), json.loads((root / "checkpoint/unet/config.json").read_text()))
        assert set(made) == set(unet) and all(torch.equal(made[name], unet[name]) for name in unet)
        made = convert_ldm_vae_checkpoint(dict(ldm), json.loads((root / "checkpoint/vae/config.json").read_text()))
        new = {name: value for name, value in made.items()}
        for name, value in vae.items():
            for old, to in (("query", "to_q"), ("key", "to_k"), ("value", "to_v"), ("proj_attn", "to_out.0")):
                name = name.replace(f"attentions.0.{old}.", f"attentions.0.{to}.")
            assert torch.equal(new.pop(name), value), name
        assert not new
        if xl:
            add("text_encoder_2", tensors("text_encoder_2", "model"), "conditioner.embedders.1.model.", open_clip_name)
        (root / "ldm_names.txt").write_text("\n".join(sorted(lines)) + "\n")
        print(config, len(lines))


if __name__ == "__main__":
    main()
