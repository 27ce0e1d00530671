#!/usr/bin/env python3
"""Makes the Qwen2.5-VL goldens with transformers: python tests/golden/generate_qwen25_vl.py [--into FOLDER]

Per case an f32 and a bf16 run of Qwen2_5_VLForConditionalGeneration on the CPU. See README.md.
"""

import argparse
import os
import shutil
from pathlib import Path

from generate import check_versions, relative_error, sort_metadata

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = ""


def segments(grids, model):
    """What the vision blocks must hand to attention: rows per call, for window and for full attention."""
    import torch
    from transformers.vision_utils import get_vision_window_index

    c = model.config.vision_config
    index, ends = get_vision_window_index(
        torch.tensor([(1, *g) for g in grids]), c.spatial_merge_size, c.window_size, c.patch_size
    )
    return index, ends.diff().tolist(), [h * w for h, w in grids]


class Attention:
    """Counts the keys of every call of torch's attention."""

    def __enter__(self):
        import torch

        self.original = torch.nn.functional.scaled_dot_product_attention
        self.keys = []

        def counted(query, key, *args, **kwargs):
            self.keys.append(key.shape[-2])
            return self.original(query, key, *args, **kwargs)

        torch.nn.functional.scaled_dot_product_attention = counted
        return self

    def __exit__(self, *_):
        import torch

        torch.nn.functional.scaled_dot_product_attention = self.original


def record_vision(model, grids, stages, hooks):
    """Hooks that keep the vision tower's states per image, in window order."""
    import torch

    index, _, rows = segments(grids, model)
    unit = model.config.vision_config.spatial_merge_size**2

    def keep(name, value, per_token=1):
        for i, part in enumerate(torch.split(value.detach(), [n // per_token for n in rows])):
            stages[f"vision.{i}.{name}"] = part.clone()

    def on_patches(_, __, output):
        keep("patch_embed", output.view(len(index), unit, -1)[index].flatten(0, 1))

    visual = model.model.visual
    hooks.append(visual.patch_embed.register_forward_hook(on_patches))
    for i, block in enumerate(visual.blocks):
        hooks.append(block.register_forward_hook(lambda _, __, output, i=i: keep(f"block.{i}", output)))
    hooks.append(visual.register_forward_hook(lambda _, __, output: keep("features", output.pooler_output, unit)))


def run(folder, dtype, ids, images, grids):
    """The stages of one forward pass, as the tests name them."""
    import torch
    from qwen25_vl_models import pixel_rows
    from transformers import Qwen2_5_VLForConditionalGeneration

    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa").eval()
    assert model.model.visual.config._attn_implementation == "sdpa"
    stages, hooks, seen = {}, [], {}
    input_ids = ids.long()[None]
    arguments = {}
    if images:
        # Without mm_token_type_ids transformers 5 counts positions up on all axes, images or not.
        arguments = dict(
            pixel_values=torch.cat([pixel_rows(image) for image in images]),
            image_grid_thw=torch.tensor([(1, *grid) for grid in grids]),
            mm_token_type_ids=(input_ids == model.config.image_token_id).int(),
        )
        record_vision(model, grids, stages, hooks)
    text = model.model.language_model
    hooks.append(text.rotary_emb.register_forward_hook(lambda _, args, __: seen.update(positions=args[1])))
    with torch.no_grad(), Attention() as attention:
        output = model(input_ids=input_ids, use_cache=False, output_hidden_states=True, logits_to_keep=1, **arguments)
        check_attention(model, grids, attention.keys)
    for hook in hooks:
        hook.remove()
    for i, hidden in enumerate(output.hidden_states):
        stages[f"cond.text_encoder.hidden.{i}"] = hidden[0].detach()
    expected = torch.arange(len(ids)).expand(3, -1)
    if images:
        arguments.pop("pixel_values")
        expected = model.model.get_rope_index(input_ids, **arguments)[0][:, 0]
        assert not torch.equal(expected[0], expected[1])
    assert torch.equal(seen["positions"][:, 0], expected)
    stages["positions"] = expected.T.to(torch.int32)
    return stages


def check_attention(model, grids, keys):
    """Vision attention must have gone window by window, and image by image in the blocks with full attention."""
    expected = []
    if grids:
        c = model.config.vision_config
        _, windows, whole = segments(grids, model)
        for i in range(c.depth):
            expected += whole if i in c.fullatt_block_indexes else windows
    n_layers = model.config.text_config.num_hidden_layers
    assert keys[: len(keys) - n_layers] == expected, (keys, expected)


def make_case(folder, case, ids, images):
    import torch

    exact = run(folder, torch.float32, ids, images, case["grids"])
    rounded = run(folder, torch.bfloat16, ids, images, case["grids"])
    assert torch.equal(exact["positions"], rounded["positions"])
    out = {"input.ids": ids}
    for i, image in enumerate(images):
        out[f"input.image.{i}"] = image
    for name, value in exact.items():
        every = case.get("every", 1) if ".block." in name or "patch_embed" in name or "hidden" in name else 1
        stored = f"every{every}.{name}" if every > 1 else name
        out[stored] = value[::every].contiguous()
        if name == "positions":
            continue
        error = relative_error(rounded[name][::every], out[stored])
        out[f"error.{stored}"] = torch.tensor([error], dtype=torch.float32)
        if any(part in name for part in case.get("bf16", ())):
            out[f"bf16.{stored}"] = rounded[name][::every].contiguous()
    return out


def main():
    versions = check_versions()
    import torch
    import transformers
    from safetensors.torch import save_file

    from qwen25_vl_models import CONFIGS, inputs, save_checkpoint

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, default=Path(__file__).parent / "data" / "qwen25_vl")
    root = parser.parse_args().into
    for name, config in CONFIGS.items():
        folder = root / name
        shutil.rmtree(folder, ignore_errors=True)
        save_checkpoint(name, folder / "checkpoint")
        (folder / "cases").mkdir()
        for i, (case_name, case) in enumerate(config["cases"].items()):
            ids, images = inputs(config, case, 100 * config["seed"] + i)
            tensors = make_case(folder / "checkpoint", case, ids, images)
            metadata = {
                "grids": " ".join(f"{h}x{w}" for h, w in case["grids"]),
                "config": name,
                "versions": ", ".join(f"{package} {number}" for package, number in sorted(versions.items())),
            }
            path = folder / "cases" / f"{case_name}.safetensors"
            save_file(tensors, path, metadata=metadata)
            sort_metadata(path)
            print(name, case_name, {n[6:]: round(v.item(), 5) for n, v in tensors.items() if n.startswith("error.")})
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


if __name__ == "__main__":
    main()
