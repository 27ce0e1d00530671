#!/usr/bin/env python3
"""What diffusers' first-block cache decides on the trained Qwen editor (tools/editors/qwen_edit), in f32:

    python tests/golden/generate_step_cache.py BUILD

With the versions of golden_file.py; BUILD has the program make_portraits. Writes data/editors/step_cache.json: for each threshold
the steps that each branch computed, every distance, and how near a threshold the nearest of them lies; and the picture of the
middle one. tests/repro/test_step_cache.c compares.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import diffusers
import torch
from diffusers.hooks import FirstBlockCacheConfig
from diffusers.hooks.first_block_cache import FBCHeadBlockHook
from PIL import Image

import generate_editors

STEPS, CFG, SEED = 12, 2.0, 0
THRESHOLDS = (0.06, 0.08, 0.17, 0.2)  # each 2 % away from every distance


def main():
    log = []
    decide = FBCHeadBlockHook._should_compute_remaining_blocks

    def logged(self, residual):
        state = self.state_manager.get_state()
        before, distance = state.head_block_residual, None
        if before is not None:
            distance = ((residual - before).abs().mean() / before.abs().mean()).item()
        computed = bool(decide(self, residual))
        log.append((self.state_manager.context.name if hasattr(self.state_manager, "context") else None, computed, distance))
        return computed

    FBCHeadBlockHook._should_compute_remaining_blocks = logged
    out = generate_editors.HERE / "data" / "editors"
    source, prompt = generate_editors.EDITS[0]
    result = {"steps": STEPS, "true_cfg_scale": CFG, "seed": SEED, "diffusers": diffusers.__version__, "torch": torch.__version__, "cases": []}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([Path(sys.argv[1]) / "make_portraits", "--size", "64", folder], check=True, stdout=subprocess.DEVNULL)
        image = Image.open(Path(folder) / f"{source}.png").convert("RGB")
    for threshold in THRESHOLDS:
        pipeline = generate_editors.qwen_edit(generate_editors.EDITORS / "qwen_edit").__closure__
        pipeline = next(c.cell_contents for c in pipeline if isinstance(c.cell_contents, diffusers.DiffusionPipeline))
        pipeline.transformer.enable_cache(FirstBlockCacheConfig(threshold=threshold))
        log.clear()
        picture = pipeline(
            image=[image], prompt=prompt, negative_prompt=" ", true_cfg_scale=CFG, width=64, height=64,
            num_inference_steps=STEPS, generator=torch.Generator().manual_seed(SEED),
        ).images[0]  # fmt: skip
        branches = [log[0::2], log[1::2]]
        assert len(log) == 2 * STEPS and all(len({name for name, _, _ in b}) == 1 for b in branches)
        margin = min(abs(d - threshold) / threshold for _, _, d in log if d is not None)
        result["cases"].append({
            "threshold": threshold, "margin": margin,
            "computed": [[i for i, (_, computed, _) in enumerate(b) if computed] for b in branches],
            "distance": [[d for _, _, d in b] for b in branches],
        })  # fmt: skip
        print(result["cases"][-1])
        if threshold == THRESHOLDS[1]:
            picture.save(out / "step_cache.png", optimize=True)
    (out / "step_cache.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
