"""What the generators of all families share: pinned versions, three runs made into one file of stages."""

import json
import logging
import os
import sys
import warnings
from importlib.metadata import version

VERSIONS = {
    "torch": "2.15.0",
    "diffusers": "0.42.1",
    "transformers": "5.23.0",
    "tokenizers": None,
    "safetensors": None,
    "pillow": "13.0.0",
    "numpy": None,
}


def check_versions(extra=()):
    """The installed versions; stops when one is not the version that the generators were written against."""
    found = {name: version(name) for name in (*VERSIONS, *extra)}
    wrong = [
        f"{name} {found[name]} (expected {wanted})"
        for name, wanted in VERSIONS.items()
        if wanted and found[name].split("+")[0] != wanted
    ]
    if wrong:
        sys.exit("other versions than the pinned ones: " + ", ".join(wrong))
    return found


def version_text(versions):
    return ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))


def prepare():
    """One thread, deterministic kernels, no network, no warnings. Before diffusers and transformers are used."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import torch

    import diffusers
    import transformers

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    diffusers.utils.logging.disable_progress_bar()
    transformers.utils.logging.disable_progress_bar()


def relative_error(a, b):
    a, b = a.double(), b.double()
    return ((a - b).norm() / b.norm()).item()


def wanted(case, name):
    return not any(part in name for part in case.get("without", ()))


def thinned(case, name, value, prefix=""):
    """(name, value), the prefix before the name, with every n-th row of it (thin) or every n-th pixel (scatter) where the
    case says so; text rows are few."""
    every = next((n for part, n in case.get("scatter", {}).items() if part in prefix + name), 1)
    if every > 1:
        return f"{prefix}every{every}.{name}", value.flatten(0, 1)[::every].contiguous()
    thin = {".txt": 1, **case["thin"]}
    every = next((n for part, n in thin.items() if part in prefix + name), 1)
    if every == 1:
        return prefix + name, value
    return f"{prefix}every{every}.{name}", value[::every].contiguous()


EXACT = ("text_encoder.ids", "quoted", "noise", "posterior_noise.0", "sigmas", "timesteps")  # how their names end
DRAWN = ("noise", "posterior_noise.0")
# A stage that is not computed in bf16 has no error in the reference's bf16 runs; another way to the same f32 may have
# this.
LEAST_ERROR = 1e-6


def combine(case, plain, bf16, seeded, early, others=()):
    """The tensors of a golden file. plain: f32 with the bf16 run's noise; seeded: f32 with noise of its own. early: stages
    of the bf16 run that are stored themselves. others: more bf16 runs that fell on other sides of roundings (dithered);
    with them there are two errors: the geometric mean of all runs' and the largest."""
    import torch

    assert all(torch.equal(plain[name].double(), bf16[name].double()) for name in plain if name.endswith(EXACT))
    out = {}
    for name, value in plain.items():
        if not wanted(case, name):
            continue
        stored_name, stored = thinned(case, name, bf16[name] if name in DRAWN else value)  # the same numbers, shorter
        out[stored_name] = stored
        if not name.endswith(EXACT):
            runs = [relative_error(thinned(case, name, run[name])[1], stored) for run in (bf16, *others)]
            errors = torch.tensor(runs, dtype=torch.float32)
            both = torch.stack([errors.log().mean().exp(), errors.max().clamp(min=LEAST_ERROR)])
            out[f"error.{stored_name}"] = both if others else errors
    for name in (*DRAWN, "step.0.velocity", f"step.{case['steps'] - 1}.latents", "image"):
        if name in seeded:
            stored_name, stored = thinned(case, name, seeded[name], "f32.")
            out[stored_name] = stored
    for name in early:
        stored_name, stored = thinned(case, name, bf16[name], "bf16.")
        out[stored_name] = stored
    return {name: value.contiguous() for name, value in out.items()}


def sort_metadata(path):
    """safetensors writes metadata in an order that changes from run to run; the file should not."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])


def print_errors(config, name, tensors):
    errors = {n[6:]: round(v[-1].item(), 6) for n, v in tensors.items() if n.startswith("error.")}
    print(config, name, json.dumps(errors), flush=True)


def save_case(path, tensors, metadata):
    from safetensors.torch import save_file

    save_file(tensors, path, metadata={key: str(value) for key, value in metadata.items()})
    sort_metadata(path)


def set_modes(folder):
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
