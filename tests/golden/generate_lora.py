#!/usr/bin/env python3
"""Makes goldens of edits with LoRA: data/FAMILY/CONFIG/loras and cases/lora_*.safetensors, on checkpoints that are there.

    python tests/golden/generate_lora.py [flux2] [qwen_edit]
    PYTHONPATH=TRANSFORMERS:FORK/src python tests/golden/generate_lora.py step1x     (see generate_step1x.py)

The reference is PEFT's side path on diffusers' model, unfused. "all" adapts every linear layer, with ranks 4 and 7 and
alpha 2, in f32; "attention" the attention's with rank 16, rank-stabilised, in bf16, as diffusers' training scripts write
it. Both are in the layout that diffusers reads: other layouts are made from these files by test_lora.c.

The cases have f32 stages only. PEFT rounds at other points than we do, so that two bf16 runs of one input say little:
loras/bf16.safetensors has N_INPUTS edits, of each the last latents in f32 and the error of PEFT's bf16 run.
"""

import argparse
import importlib
import json
from importlib.metadata import version
from pathlib import Path

from golden_file import check_versions, prepare, save_case, set_modes, version_text

PEFT = "0.21.2"
SHARE = 0.1  # of |W| that |B A| has, at scale alpha / r
FAMILIES = {"flux2": ("rich", "text"), "qwen_edit": ("edit2511", "one"), "step1x": ("rich", "text")}
SETS = {
    "all": dict(ranks=(4, 7), alpha=2.0, dtype="float32"),
    "attention": dict(ranks=(16,), alpha=8.0, dtype="bfloat16", stabilised=True),
}
N_INPUTS = 16
EVERY = 5  # rows of the latents are kept
CASES = {"lora_one": {"all": 0.7}, "lora_two": {"attention": 1.0, "all": -0.3}}


def wanted(name, kind):
    return kind == "all" or any(part in name for part in (".attn.to_", ".attn.add_"))


def linears(model, kind):
    import torch

    modules = sorted((n, m) for n, m in model.named_modules() if isinstance(m, torch.nn.Linear))
    return [(n, m) for n, m in modules if wanted(n, kind)]


def scale_of(kind, rank):
    alpha = SETS[kind]["alpha"]
    return alpha / rank**0.5 if SETS[kind].get("stabilised") else alpha / rank


# A layer's module in the authors' own code, and its place among those that are one matrix there.
STREAMS = {
    "attn.to_q": ("img_attn.qkv", 0), "attn.to_k": ("img_attn.qkv", 1), "attn.to_v": ("img_attn.qkv", 2),
    "attn.add_q_proj": ("txt_attn.qkv", 0), "attn.add_k_proj": ("txt_attn.qkv", 1),
    "attn.add_v_proj": ("txt_attn.qkv", 2), "attn.to_out.0": ("img_attn.proj", 0),
    "attn.to_add_out": ("txt_attn.proj", 0), "ff.linear_in": ("img_mlp.0", 0), "ff.linear_out": ("img_mlp.2", 0),
    "ff_context.linear_in": ("txt_mlp.0", 0), "ff_context.linear_out": ("txt_mlp.2", 0),
    "ff.net.0.proj": ("img_mlp.0", 0), "ff.net.2": ("img_mlp.2", 0), "ff_context.net.0.proj": ("txt_mlp.0", 0),
    "ff_context.net.2": ("txt_mlp.2", 0), "norm1.linear": ("img_mod.lin", 0), "norm1_context.linear": ("txt_mod.lin", 0),
}  # fmt: skip
SINGLE = {
    "attn.to_qkv_mlp_proj": ("linear1", 0), "attn.to_out": ("linear2", 0), "attn.to_q": ("linear1", 0),
    "attn.to_k": ("linear1", 1), "attn.to_v": ("linear1", 2), "proj_mlp": ("linear1", 3), "proj_out": ("linear2", 0),
    "norm.linear": ("modulation.lin", 0),
}  # fmt: skip
ENDS = {
    "x_embedder": "img_in", "context_embedder": "txt_in", "proj_out": "final_layer.linear",
    "norm_out.linear": "final_layer.adaLN_modulation.1",
    "double_stream_modulation_img.linear": "double_stream_modulation_img.lin",
    "double_stream_modulation_txt.linear": "double_stream_modulation_txt.lin",
    "single_stream_modulation.linear": "single_stream_modulation.lin",
    "time_guidance_embed.timestep_embedder.linear_1": "time_in.in_layer",
    "time_guidance_embed.timestep_embedder.linear_2": "time_in.out_layer",
    "time_guidance_embed.guidance_embedder.linear_1": "guidance_in.in_layer",
    "time_guidance_embed.guidance_embedder.linear_2": "guidance_in.out_layer",
    "time_embed.in_layer": "time_in.in_layer", "time_embed.out_layer": "time_in.out_layer",
    "vec_embed.in_layer": "vector_in.in_layer", "vec_embed.out_layer": "vector_in.out_layer",
}  # fmt: skip


def original(name):
    kind, _, rest = name.partition(".")
    number, _, rest = rest.partition(".")
    if kind == "transformer_blocks" and rest in STREAMS:
        module, place = STREAMS[rest]
        return f"double_blocks.{number}.{module}", place
    if kind == "single_transformer_blocks":
        module, place = SINGLE[rest]
        return f"single_blocks.{number}.{module}", place
    return ENDS.get(name, name), 0


def save_original(tensors, path):
    """The same adapters under the authors' names: what is one matrix there gets the ranks of its parts one after the
    other, with a block-diagonal B, as kohya's scripts write it."""
    import torch
    from safetensors.torch import save_file

    modules, out = {}, {}
    for key, a in tensors.items():
        if key.endswith(".lora_A.weight"):
            name = key.removeprefix("transformer.").removesuffix(".lora_A.weight")
            module, place = original(name)
            modules.setdefault(module, {})[place] = (a, tensors[key.replace("lora_A", "lora_B")], tensors[f"transformer.{name}.alpha"])
    for module, parts in modules.items():
        parts = [parts[place] for place in range(len(parts))]
        a, b = torch.cat([p[0] for p in parts]), torch.block_diag(*(p[1] for p in parts))
        if module == "final_layer.adaLN_modulation.1":
            b = torch.cat(list(reversed(b.chunk(2))))
        out[f"{module}.lora_down.weight"] = a.contiguous()
        out[f"{module}.lora_up.weight"] = b.contiguous()
        out[f"{module}.alpha"] = parts[0][2] * len(parts)  # so that alpha / rank stays
    save_file(out, path, metadata={"format": "pt"})


def make_set(model, family, kind, path):
    """Writes the file; random A, B of such a length that |s B A| is SHARE of |W|."""
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(len(kind))
    dtype = getattr(torch, SETS[kind]["dtype"])
    tensors, metadata = {}, {"format": "pt"}
    ranks, alike = SETS[kind]["ranks"], {}  # layers that are one in the original have one rank
    for name, module in linears(model, kind):
        group = alike.setdefault(name if family == "qwen_edit" else original(name)[0], len(alike))
        rank, weight = ranks[group % len(ranks)], module.weight.detach().float()
        a = torch.randn(rank, weight.shape[1], generator=generator) / weight.shape[1] ** 0.5
        b = torch.randn(weight.shape[0], rank, generator=generator)
        b *= SHARE * weight.norm() / (scale_of(kind, rank) * (b @ a).norm())
        tensors[f"transformer.{name}.lora_A.weight"] = a.to(dtype).contiguous()
        tensors[f"transformer.{name}.lora_B.weight"] = b.to(dtype).contiguous()
        if not SETS[kind].get("stabilised"):
            tensors[f"transformer.{name}.alpha"] = torch.tensor(SETS[kind]["alpha"])
    if SETS[kind].get("stabilised"):
        config = dict(r=ranks[0], lora_alpha=SETS[kind]["alpha"], use_rslora=True, use_dora=False, lora_bias=False,
                      rank_pattern={}, alpha_pattern={}, bias="none", peft_type="LORA")  # fmt: skip
        config["target_modules"] = sorted({n.split(".")[-1] for n, _ in linears(model, kind)})
        metadata["lora_adapter_metadata"] = json.dumps({f"transformer.{k}": v for k, v in config.items()})
    path.parent.mkdir(exist_ok=True)
    save_file(tensors, path, metadata=metadata)
    if kind == "all" and family != "qwen_edit":
        save_original(tensors, path.parent / "all_original.safetensors")


def inject(model, path, kind, name):
    """PEFT's own layers, each with the rank and alpha of its file."""
    from peft import LoraConfig, inject_adapter_in_model
    from safetensors.torch import load_file

    tensors = load_file(path)
    modules = {key.removeprefix("transformer.").removesuffix(".lora_A.weight") for key in tensors if ".lora_A." in key}
    ranks = {n: tensors[f"transformer.{n}.lora_A.weight"].shape[0] for n in modules}
    config = LoraConfig(r=1, lora_alpha=SETS[kind]["alpha"], target_modules=sorted(modules),
                        rank_pattern={f"^{n}": r for n, r in ranks.items()}, use_rslora=SETS[kind].get("stabilised", False),
                        init_lora_weights=False)  # fmt: skip
    inject_adapter_in_model(config, model, adapter_name=name)
    dtype = next(model.parameters()).dtype
    n_set = 0  # module_name is the adapted layer's own, also where another adapter was there before
    for module_name, module in model.named_modules():
        if hasattr(module, "lora_A") and name in module.lora_A:
            module.lora_A[name].weight.data = tensors[f"transformer.{module_name}.lora_A.weight"].to(dtype)
            module.lora_B[name].weight.data = tensors[f"transformer.{module_name}.lora_B.weight"].to(dtype)
            assert module.scaling[name] == scale_of(kind, ranks[module_name]), module_name
            n_set += 1
    assert n_set == len(modules), (n_set, len(modules))


def adapt(transformer, folder, scales):
    from peft.tuners.tuners_utils import BaseTunerLayer

    for kind in scales:
        inject(transformer, folder / f"{kind}.safetensors", kind, kind)
    for module in transformer.modules():
        if not isinstance(module, BaseTunerLayer):
            continue
        present = [kind for kind in scales if kind in module.lora_A]
        module.set_adapter(present)
        for kind in present:
            module.set_scale(kind, scales[kind])


def with_loras(module, name, folder, scales):
    """Every model that the recorder loads has the adapters."""
    original = getattr(module, name)

    def load(*args, **options):
        loaded = original(*args, **options)
        adapt(getattr(loaded, "transformer", loaded), folder, scales)
        return loaded

    setattr(module, name, load)
    return lambda: setattr(module, name, original)


def flux2(root, config, name, scales, versions):
    from diffusers import Flux2Pipeline
    from flux2_cases import CASES as BASE
    from flux2_models import CONFIGS
    from generate import make_case, metadata

    case = dict(BASE[config][name], out_layers=CONFIGS[config]["out_layers"])
    restore = with_loras(Flux2Pipeline, "from_pretrained", root / "loras", scales)
    tensors = make_case(root / "checkpoint", case, images_of(root, case))
    restore()
    return tensors, metadata(config, case, versions)


def qwen_edit(root, config, name, scales, versions):
    from generate_qwen_edit import GIVEN, make_case
    from qwen_edit_cases import CASES as BASE
    from qwen_edit_models import CONFIGS

    case = BASE[config][name]
    restore = with_loras(CONFIGS[config]["pipeline"], "from_pretrained", root / "loras", scales)
    tensors, latents = make_case(config, root / "checkpoint", case, images_of(root, case))
    restore()
    given = {key: case[key] for key in GIVEN if key in case}
    given.update(config=config, images=" ".join(case.get("images", ())), latent_height=latents[0], latent_width=latents[1])
    given["versions"] = version_text(versions)
    return tensors, given


def step1x(root, config, name, scales, versions):
    import step1x_record
    from generate_step1x import HIDDEN, make_case, metadata
    from step1x_cases import CASES as BASE

    case = dict(BASE[config][name], hidden=HIDDEN)
    restore = with_loras(step1x_record, "load_pipeline", root / "loras", scales)
    tensors, latents = make_case(config, root / "checkpoint", case, images_of(root, case))
    restore()
    return tensors, metadata(config, case, latents, versions)


def run_bf16(family, root, config, name, scales):
    """The last latents of one edit per seed, and the errors of the reference's bf16 runs."""
    import torch
    from golden_file import relative_error

    if family == "flux2":
        from diffusers import Flux2Pipeline as owner
        from flux2_cases import CASES as BASE
        from flux2_models import CONFIGS
        from flux2_record import run

        case = dict(BASE[config][name], out_layers=CONFIGS[config]["out_layers"])
        restore = with_loras(owner, "from_pretrained", root / "loras", scales)
        edit = lambda case, dtype, **given: run(root / "checkpoint", case, dtype, images_of(root, case), **given)
    elif family == "qwen_edit":
        from qwen_edit_cases import CASES as BASE
        from qwen_edit_models import CONFIGS
        from qwen_edit_record import run

        case = BASE[config][name]
        restore = with_loras(CONFIGS[config]["pipeline"], "from_pretrained", root / "loras", scales)
        edit = lambda case, dtype, **given: run(config, root / "checkpoint", case, dtype, images_of(root, case), **given)
    else:
        import step1x_record
        from generate_step1x import HIDDEN
        from step1x_cases import CASES as BASE

        case = dict(BASE[config][name], hidden=HIDDEN)
        restore = with_loras(step1x_record, "load_pipeline", root / "loras", scales)

        def edit(case, dtype, **given):
            stages, drawn = step1x_record.run(config, root / "checkpoint", case, dtype, images_of(root, case), **given)
            return dict(stages, given=drawn)

    out = {}
    for seed in range(1, N_INPUTS + 1):
        case = dict(case, seed=seed)
        bf16 = edit(case, torch.bfloat16)
        last = f"step.{case['steps'] - 1}.latents"
        plain = edit(case, torch.float32, **noise_of(family, bf16))[last][::EVERY].contiguous()
        out[f"every{EVERY}.latents.{seed}"] = plain
        out[f"error.{seed}"] = torch.tensor([relative_error(bf16[last][::EVERY], plain)], dtype=torch.float32)
    restore()
    print(config, "bf16", torch.cat([out[k] for k in out if k.startswith("error")]).log().mean().exp().item())
    return out


def noise_of(family, bf16):
    """A run's noise as another is given it."""
    noise = bf16["noise"].float()
    if family == "flux2":
        height, width = bf16["vae.decode.input"].shape[:2]
        return dict(latents=noise.T.reshape(1, noise.shape[1], height // 2, width // 2))
    if family == "qwen_edit":
        return dict(latents=noise[None])
    return dict(given=bf16["given"])


def images_of(root, case):
    from PIL import Image

    return [Image.open(root / "cases" / image) for image in case.get("images", ())]


def load_model(family, config, folder):
    import torch

    if family == "step1x":
        from step1x_models import CONFIGS, load_transformer

        return load_transformer(folder, CONFIGS[config], torch.float32)
    from diffusers import Flux2Transformer2DModel, QwenImageTransformer2DModel

    classes = dict(flux2=Flux2Transformer2DModel, qwen_edit=QwenImageTransformer2DModel)
    return classes[family].from_pretrained(folder / "transformer", torch_dtype=torch.float32)


def check(families):
    if "step1x" not in families:
        return check_versions()
    from generate_step1x import found_versions, without_thinker

    without_thinker()
    return found_versions()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, default=Path(__file__).parent / "data")
    parser.add_argument("families", nargs="*", default=["flux2", "qwen_edit"])
    args = parser.parse_args()
    versions = check(args.families)
    if version("peft") != PEFT:
        raise SystemExit(f"peft: expected {PEFT}, got {version('peft')}")
    versions["peft"] = PEFT
    prepare()
    for module in ("generate", "generate_qwen_edit", "generate_step1x"):
        if module != "generate_step1x" or "step1x" in args.families:
            importlib.import_module(module).N_DITHERED = 0
    for family in args.families:
        config, base = FAMILIES[family]
        root = args.into / family / config
        if family == "step1x":  # for tests that edit with the other checkpoint
            other = args.into / family / "plain"
            make_set(load_model(family, "plain", other / "checkpoint"), family, "all", other / "loras" / "all.safetensors")
            (other / "loras" / "all_original.safetensors").unlink()
            set_modes(other / "loras")
        for kind in SETS:
            make_set(load_model(family, config, root / "checkpoint"), family, kind, root / "loras" / f"{kind}.safetensors")
        for name, scales in CASES.items():
            make = dict(flux2=flux2, qwen_edit=qwen_edit, step1x=step1x)[family]
            tensors, given = make(root, config, base, scales, versions)
            given["loras"] = " ".join(f"{kind}.safetensors={scale}" for kind, scale in scales.items())
            tensors = {key: value for key, value in tensors.items() if not key.startswith("error.")}
            save_case(root / "cases" / f"{name}.safetensors", tensors, given)
            (root / "cases" / f"{name}.safetensors").chmod(0o644)
        save_case(root / "loras" / "bf16.safetensors", run_bf16(family, root, config, base, CASES["lora_two"]), given)
        set_modes(root / "loras")


if __name__ == "__main__":
    main()
