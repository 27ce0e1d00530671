#!/usr/bin/env python3
"""Decisions of step caches on Step1X-Edit, in f32:

    PYTHONPATH=TRANSFORMERS:FORK/src python tests/golden/generate_step_cache_step1x.py BUILD

With the fork and the versions of generate_step1x.py, and cache-dit 1.5.3. DBCache is cache-dit's own, on data/step1x/rich, whose two
lists of blocks have a gate each; the fork hands text and picture to its single-stream blocks apart, and cache-dit is shown them as one
sequence, as it sees FLUX.2's. FirstBlockCache and TeaCache, which nobody has for this model, are hooks on the blocks of the trained
editor. Writes data/editors/step_cache_dual_step1x.json and the last picture of each model, as generate_step_cache_dual.py does.
"""

import inspect
import json
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import generate_editors
import torch

sys.path.insert(0, str(generate_editors.HERE.parents[1] / "tools" / "train"))
import step1x_editor  # noqa: E402, F401  (it takes the fork's thinker out)
import diffusers  # noqa: E402
import cache_dit  # noqa: E402
from cache_dit import BlockAdapter, DBCacheConfig, ForwardPattern  # noqa: E402
from diffusers.models.transformers import transformer_step1x_edit  # noqa: E402
from generate_step_cache_dual import MARGIN, POLY, SEED, STEPS, Tea, gates_of_log, log, text_of, watch  # noqa: E402
from PIL import Image  # noqa: E402
from step1x_models import load_pipeline  # noqa: E402

DB = (dict(threshold=0.38, warmup=4), dict(threshold=0.45, warmup=3, row=2), dict(threshold=0.34, warmup=4, interval=2))
FIRST = (dict(threshold=0.1), dict(threshold=0.2))
TEA = (dict(threshold=0.33, poly=POLY), dict(threshold=0.8, poly=POLY))


class Hooks(Tea):
    """Step1X's blocks, which all return text and picture. first: FirstBlockCache in place of TeaCache."""

    def __init__(self, pipeline, case, rows):
        self.first = "poly" not in case
        super().__init__(pipeline, case["threshold"], case.get("poly", "0"), 1, rows)

    def input(self, block, x, named):
        return block.norm1(x, emb=named["temb"])[0][:, : self.rows]

    def compare(self, change):
        """Of FirstBlockCache: what the first block adds to all of the picture's rows."""
        s, distance = self.state[0], None
        if s["previous"] is not None:
            distance = (change - s["previous"]).abs().double().sum().item() / s["previous"].abs().double().sum().item()
        self.computed = distance is None or distance > self.threshold
        if self.computed:
            s["previous"] = change
        self.log[0].append((self.computed, distance, distance))

    def wrap(self, block, first, last, single):
        forward = block.forward

        def run(**named):
            x, s = named["hidden_states"], self.state[0]
            if first and not self.first:
                self.call += 1
                self.computed = self.decide(self.input(block, x, named))
                self.before = x[:, : self.rows]
            if not self.computed and not (first and self.first):
                if first:
                    x = torch.cat([x[:, : self.rows] + s["residual"], x[:, self.rows :]], 1)
                return named["encoder_hidden_states"], x
            text, out = forward(**named)
            if first and self.first:
                self.compare(out - x)
                if not self.computed:
                    return text, torch.cat([out[:, : self.rows] + s["residual"], out[:, self.rows :]], 1)
                self.before = out[:, : self.rows]
            if last:
                s["residual"] = out[:, : self.rows] - self.before
            return text, out

        self.computed = True
        block.forward = run


class Joined(torch.nn.Module):
    """A single-stream block of one sequence."""

    def __init__(self, block, transformer):
        super().__init__()
        self.block, self.of = block, [transformer]

    def forward(self, hidden_states, temb, image_rotary_emb=None, joint_attention_kwargs=None):
        n = self.of[0].n_txt
        more = dict(temb=temb, image_rotary_emb=image_rotary_emb, joint_attention_kwargs=joint_attention_kwargs)
        hidden_states = torch.cat(self.block(hidden_states=hidden_states[:, n:], encoder_hidden_states=hidden_states[:, :n], **more), 1)
        return hidden_states


def join(transformer):
    text = textwrap.dedent(inspect.getsource(type(transformer).forward))
    begin = text.index("    for index_block, block in enumerate(self.single_transformer_blocks)")
    end = text.index("    hidden_states = self.norm_out")
    more = "temb=temb, image_rotary_emb=image_rotary_emb, joint_attention_kwargs=joint_attention_kwargs"
    loop = [
        "self.n_txt = encoder_hidden_states.shape[1]",
        "hidden_states = torch.cat([encoder_hidden_states, hidden_states], 1)",
        "for block in self.single_transformer_blocks:",
        f"    hidden_states = block(hidden_states=hidden_states, {more})",
        "hidden_states = hidden_states[:, self.n_txt :]\n",
    ]
    scope = dict(vars(transformer_step1x_edit))
    exec(text[:begin] + "\n".join("    " + line for line in loop) + text[end:], scope)
    transformer.forward = scope["forward"].__get__(transformer)
    transformer.single_transformer_blocks = torch.nn.ModuleList([Joined(b, transformer) for b in transformer.single_transformer_blocks])


def dual(pipeline, case):
    transformer = pipeline.transformer
    join(transformer)
    config = DBCacheConfig(
        Fn_compute_blocks=1,
        Bn_compute_blocks=0,
        residual_diff_threshold=case["threshold"],
        max_warmup_steps=case["warmup"],
        warmup_interval=case.get("interval", 1),
        max_cached_steps=-1,
        max_continuous_cached_steps=case.get("row", -1),
        num_inference_steps=STEPS,
    )
    adapter = BlockAdapter(
        transformer=transformer,
        blocks=[transformer.transformer_blocks, transformer.single_transformer_blocks],
        forward_pattern=[ForwardPattern.Pattern_1, ForwardPattern.Pattern_3],
    )
    cache_dit.enable_cache(adapter, cache_config=config)


def rich(folder):
    return load_pipeline("rich", folder, torch.float32)


def editor(folder):
    cells = generate_editors.step1x(folder).__closure__
    return next(c.cell_contents for c in cells if isinstance(c.cell_contents, diffusers.DiffusionPipeline))


def main():
    watch()
    out = generate_editors.HERE / "data" / "editors"
    source, prompt = generate_editors.EDITS[0]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([Path(sys.argv[1]) / "make_portraits", "--size", "64", folder], check=True, stdout=subprocess.DEVNULL)
        image = Image.open(Path(folder) / f"{source}.png").convert("RGB")
    cases = []
    hooked = [("fbcache", c) for c in FIRST] + [("teacache", c) for c in TEA]
    folders = generate_editors.HERE / "data/step1x/rich/checkpoint", generate_editors.EDITORS / "step1x"
    for name, make, folder, plans in (("step1x", rich, folders[0], [("dbcache", c) for c in DB]), ("step1x_editor", editor, folders[1], hooked)):
        for method, case in plans:
            pipeline = make(folder)
            log.clear()
            hooks = Hooks(pipeline, case, 16) if method != "dbcache" else dual(pipeline, case)
            picture = pipeline(
                image=image, prompt=prompt, true_cfg_scale=1.0, size_level=64, num_inference_steps=STEPS,
                generator=torch.Generator().manual_seed(SEED), enable_thinking_mode=False, enable_reflection_mode=False,
            ).images[0]  # fmt: skip
            picture = picture[0] if isinstance(picture, list) else picture
            gates = gates_of_log(False) if not hooks else [([i for i, (c, *_) in enumerate(of) if c], [d for _, d, _ in of]) for of in hooks.log]
            compared = [d for _, distances in gates for d in distances if d is not None]
            if method == "teacache":
                compared = [s for c, d, s in hooks.log[0] if d is not None and not c]
            margin = min(abs(d - case["threshold"]) / case["threshold"] for d in compared) if compared else 1.0
            text = text_of(method, case) + ",last=off" * (method == "fbcache")
            cases.append(dict(model=name, accel=text, margin=margin, computed=[c for c, _ in gates], distance=[d for _, d in gates]))
            print(json.dumps(cases[-1]))
        picture.save(out / f"step_cache_dual_{name}.png", optimize=True)
    assert all(case["margin"] > MARGIN for case in cases), "a threshold lies too near a distance"
    versions = dict(diffusers=diffusers.__version__, torch=torch.__version__, cache_dit=cache_dit.__version__)
    result = dict(steps=STEPS, seed=SEED, prompt=prompt, **versions, cases=cases)
    (out / "step_cache_dual_step1x.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
