#!/usr/bin/env python3
"""Makes data/sd_samplers.safetensors with diffusers' schedulers: python tests/golden/generate_sd_samplers.py

Each run is named by what it was asked for, "dpm++-karras/leading/7/v": sampler, timestep_spacing, steps, prediction ("z": of a
schedule with zero SNR). Its predictions do not depend on the latents: the first values of "predictions", the noise of step i
is "noise". Stored: timesteps, sigmas (where the scheduler has any), init, and the latents after every call.
"""

import argparse
from pathlib import Path

from golden_file import check_versions, prepare, save_case, version_text

N, WIDTH = 7, 12
STEPS = (1, 2, 4, 7)


def combinations():
    for name in ("pndm", "ddim", "ddim-eta", "euler", "euler-karras", "euler-a", "dpm++", "dpm++-karras", "unipc", "unipc-karras"):
        for spacing in ("leading", "linspace", "trailing"):
            for steps in STEPS:
                for prediction in ("e", "v", "z"):
                    if prediction != "e" and (steps != 7 or spacing == "linspace"):
                        continue
                    if prediction == "z" and (spacing != "trailing" or name in ("pndm", "ddim-eta")):  # a NaN of ddim's
                        continue
                    if name == "pndm" and (spacing != "leading" or steps == 1):  # 1: diffusers raises
                        continue
                    yield name, spacing, steps, prediction


def main():
    versions = check_versions()
    prepare()
    import diffusers
    import torch

    from sd_models import BETAS
    from sd_record import SAMPLERS

    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, default=Path(__file__).parent / "data")
    args = parser.parse_args()
    generator = torch.Generator("cpu").manual_seed(1)
    latents = torch.randn(1, WIDTH, generator=generator)
    predictions = torch.randn(N + 1, WIDTH, generator=generator)
    noise = torch.randn(N + 1, WIDTH, generator=generator)
    out = {"latents": latents, "predictions": predictions, "noise": noise}
    for name, spacing, steps, prediction in combinations():
        cls, changes = SAMPLERS[name.removesuffix("-eta")]
        config = dict(BETAS, timestep_spacing=spacing, skip_prk_steps=True, set_alpha_to_one=False, clip_sample=False)
        if prediction != "e":
            config["prediction_type"] = "v_prediction"
        if prediction == "z":
            config["rescale_betas_zero_snr"] = True
        scheduler = getattr(diffusers, cls).from_config({**config, **changes})
        key = f"{name}/{spacing}/{steps}/{prediction}"
        try:
            scheduler.set_timesteps(steps)
        except Exception as error:
            print(key, error)
            continue
        drawn = iter(noise)
        for module in ("scheduling_ddim", "scheduling_euler_ancestral_discrete"):
            getattr(diffusers.schedulers, module).randn_tensor = lambda *_, **__: next(drawn)[None]
        x = latents * scheduler.init_noise_sigma
        every = []
        extra = {"eta": 1.0} if name == "ddim-eta" else {}
        for i, t in enumerate(scheduler.timesteps):
            scheduler.scale_model_input(x, t)
            x = scheduler.step(predictions[i : i + 1], t, x, **extra)[0]
            every.append(x[0].clone())
        out[f"{key}.steps"] = torch.stack(every)
        out[f"{key}.timesteps"] = scheduler.timesteps.float()
        out[f"{key}.init"] = torch.tensor([float(scheduler.init_noise_sigma)])
        if hasattr(scheduler, "sigmas"):
            out[f"{key}.sigmas"] = scheduler.sigmas.float()
    save_case(args.into / "sd_samplers.safetensors", {k: v.contiguous() for k, v in out.items()}, {"versions": version_text(versions)})
    print(len(out), "tensors")


if __name__ == "__main__":
    main()
