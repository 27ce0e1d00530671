#!/usr/bin/env python3
"""Adds the f32 goldens of flat, near-flat and gradient pictures to a family's, whose checkpoints it takes:

    python tests/golden/generate_flat.py flux2|qwen_edit|step1x    # with the PYTHONPATH of the family's generator

Sums over a picture of one colour may err to one side at every step, which random pictures never show. The pictures
are large enough that a VAE's attention sees 16,384 places (Step1X-Edit: 1,600). See README.md."""

import io
import sys
from pathlib import Path

from golden_file import combine, prepare, save_case, version_text

KEPT = ("reference.", "noise", "velocity", "step.0.latents", "vae.decode.input", "decoded", "image", "sigmas", "timesteps")
STEPS = dict(steps=1, seed=17)
FAMILIES = {
    "flux2": ("fast", dict(height=64, width=64, guidance=4.0, max_sequence_length=16, **STEPS)),
    "qwen_edit": (
        "edit2509",
        dict(height=128, width=128, condition_area=64 * 64, vae_area=512 * 512, true_cfg_scale=1.0, **STEPS | dict(steps=2)),
    ),
    "step1x": ("plain", dict(size_level=320, true_cfg_scale=1.0, **STEPS)),
}


def pictures():
    """Name -> PNG of 128 x 128 pixels: one colour; white; one colour and the least noise; a gradient."""
    import numpy as np
    from PIL import Image

    y, x = np.mgrid[0:128, 0:128]
    noise = np.random.default_rng(3).integers(0, 2, (128, 128, 3))
    arrays = dict(
        colour=np.full((128, 128, 3), (200, 90, 40)),
        white=np.full((128, 128, 3), 255),
        near=np.full((128, 128, 3), 127) + noise * (x % 16 == 0)[..., None],
        gradient=np.stack([x, 255 - y, (x + y) // 2 + 64], -1),
    )
    out = {}
    for name, array in arrays.items():
        file = io.BytesIO()
        Image.fromarray(array.clip(0, 255).astype(np.uint8), "RGB").save(file, "PNG", optimize=True)
        out[name] = file.getvalue()
    return out


def exact_attention():
    """Attention in float64, rounded to f32 at its end: over 16,384 equal keys torch's own f32 errs by 8e-5 on some
    processors."""
    import torch

    original = torch.nn.functional.scaled_dot_product_attention

    def exact(query, key, value, attn_mask=None, **options):
        if attn_mask is not None and attn_mask.is_floating_point():
            attn_mask = attn_mask.double()
        out = original(query.double(), key.double(), value.double(), attn_mask=attn_mask, **options)
        return out.to(query.dtype)

    torch.nn.functional.scaled_dot_product_attention = exact


def run_flux2(config, folder, case, images):
    import torch

    from flux2_record import run

    return run(folder, case, torch.float32, images)


def run_qwen_edit(config, folder, case, images):
    import torch

    from qwen_edit_record import run

    return run(config, folder, case, torch.float32, images)


def run_step1x(config, folder, case, images):
    import torch

    from step1x_record import run

    return run(config, folder, case, torch.float32, images)[0]


def main():
    family = sys.argv[1]
    config, given = FAMILIES[family]
    if family == "step1x":
        import generate_step1x as generator
        import step1x_cases as cases

        generator.without_thinker()
        versions = generator.found_versions()
        thin = dict(thin=cases.thin(latents=37, picture=97))
    else:
        from golden_file import check_versions

        versions = check_versions(extra=("torchvision",) if family == "qwen_edit" else ())
        module = __import__(f"{family}_cases")
        thin = module.thin(latents=37, reference=97, picture=1) if family == "flux2" else module.thin(97, 63)
    prepare()
    exact_attention()
    from PIL import Image

    run = dict(flux2=run_flux2, qwen_edit=run_qwen_edit, step1x=run_step1x)[family]
    folder = Path(__file__).parent / "data" / family / config
    out_layers = {}
    if family == "flux2":
        from flux2_models import CONFIGS

        out_layers = dict(out_layers=CONFIGS[config]["out_layers"])
    for name, png in pictures().items():
        file = f"flat_{name}.png"
        (folder / "cases" / file).write_bytes(png)
        case = dict(given, prompt="make the sky red", hidden=1, **out_layers, **thin)
        stages = run(config, folder / "checkpoint", case, [Image.open(io.BytesIO(png))])
        size = stages["vae.decode.input"].shape[:2]
        stages = {stage: value for stage, value in stages.items() if any(part in stage for part in KEPT)}
        tensors = combine(case, stages, stages, {}, ())
        tensors = {stage: value for stage, value in tensors.items() if not stage.startswith("error.")}
        metadata = {key: value for key, value in case.items() if key not in ("thin", "scatter", "hidden", "out_layers")}
        metadata.update(config=config, images=file, versions=version_text(versions))
        if family == "flux2":
            metadata["out_layers"] = " ".join(map(str, case["out_layers"]))
        else:
            metadata["latent_height"], metadata["latent_width"] = size
        path = folder / "cases" / f"flat_{name}.safetensors"
        save_case(path, tensors, metadata)
        print(family, config, name, path.stat().st_size, sorted(tensors), flush=True)
        for made in (path, folder / "cases" / file):
            made.chmod(0o644)


if __name__ == "__main__":
    main()
