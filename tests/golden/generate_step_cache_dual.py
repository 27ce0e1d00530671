#!/usr/bin/env python3
"""What cache-dit's DBCache decides, and a re-implementation of TeaCache, in f32:

    python tests/golden/generate_step_cache_dual.py BUILD

With the versions of golden_file.py and cache-dit 1.5.3; BUILD has the program make_portraits. DBCache runs inside of diffusers'
pipelines: on the trained Qwen editor, and on data/flux2/rich, whose two lists of blocks have a gate each. Nobody has TeaCache for
these models: hooks on the blocks of diffusers' transformers do what TeaCache4FLUX does. Writes data/editors/step_cache_dual.json:
for each case the steps that each gate computed, every distance, and how near a threshold the nearest of them lies; and the last
case's picture of each model. tests/repro/test_step_cache_dual.c compares.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import cache_dit
import diffusers
import torch
from cache_dit import BlockAdapter, DBCacheConfig, ForwardPattern
from cache_dit.caching.cache_contexts import cache_manager
from PIL import Image

import generate_editors

STEPS, SEED = 12, 0
MARGIN = 0.02
QWEN_DB = (
    dict(threshold=0.12, warmup=4),
    dict(threshold=0.25, warmup=2, row=2),
    dict(threshold=0.25, warmup=2, max=3),
    dict(threshold=0.2, warmup=4, interval=2),
    dict(threshold=0.21, warmup=2, b=1),
)
FLUX2_DB = (
    dict(threshold=0.12, warmup=4),
    dict(threshold=0.2, warmup=3, row=2),
    dict(threshold=0.3, warmup=4, interval=2),
)
POLY = "45.1442944188745:-52.91131412057809:17.078368811436963:0.10393043235768819:0"
TRT = "104.58236:-6.87605554:-0.0861659379:0.0537600252"
TEA = ((0.25, POLY), (0.6, POLY))
FLUX2_TEA = ((0.4, TRT), (1.0, POLY))


class Tea:
    """Decides before block 0, once a step and branch; R of the target's rows."""

    def __init__(self, pipeline, threshold, poly, branches, rows):
        self.threshold, self.poly = threshold, [float(c) for c in poly.split(":")]
        self.state = [dict(previous=None, sum=0.0, residual=None, step=0) for _ in range(branches)]
        self.log = [[] for _ in range(branches)]
        self.rows, self.call, self.undo = rows, -1, []
        transformer = pipeline.transformer
        self.lists = [transformer.transformer_blocks]
        if hasattr(transformer, "single_transformer_blocks"):
            self.lists.append(transformer.single_transformer_blocks)
        for k, blocks in enumerate(self.lists):
            for i, block in enumerate(blocks):
                self.wrap(block, first=k == 0 and i == 0, last=k == len(self.lists) - 1 and i == len(blocks) - 1, single=k)

    def input(self, block, x, named):
        """The modulated input of block 0's attention, target rows."""
        if "temb_mod_img" in named:
            from diffusers.models.transformers.transformer_flux2 import Flux2Modulation

            shift, scale, _ = Flux2Modulation.split(named["temb_mod_img"], 2)[0]
            return (block.norm1(x) * (1 + scale) + shift)[:, : self.rows]
        shift, scale, _ = block.img_mod(named["temb"])[:1].chunk(2, -1)[0].chunk(3, -1)  # of the step, not of time 0
        return (block.img_norm1(x) * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1))[:, : self.rows]

    def decide(self, u):
        s = self.state[self.call % len(self.state)]
        distance, computed = None, True
        if s["previous"] is not None and s["step"] < STEPS - 1:
            distance = (u - s["previous"]).abs().double().sum().item() / s["previous"].abs().double().sum().item()
            y = 0.0
            for c in self.poly:
                y = y * distance + c
            s["sum"] += y
            computed = not s["sum"] < self.threshold
        if computed:
            s["sum"] = 0.0
        s.update(previous=u, step=s["step"] + 1, now=s["sum"])
        self.log[self.call % len(self.state)].append((computed, distance, s["now"]))
        return computed

    def wrap(self, block, first, last, single):
        forward = block.forward

        def run(*given, **named):
            assert not given
            x = named["hidden_states"]
            if first:
                self.call += 1
                self.computed = self.decide(self.input(block, x, named))
                self.before = x[:, : self.rows]
            s = self.state[self.call % len(self.state)]
            n_txt = 0
            if not self.computed:
                if first:
                    x = torch.cat([x[:, : self.rows] + s["residual"], x[:, self.rows :]], 1)
                return x if single else (named["encoder_hidden_states"], x)
            out = forward(*given, **named)
            if last:
                after = out if single else out[1]
                n_txt = after.shape[1] - self.n_img if single else 0
                s["residual"] = after[:, n_txt : n_txt + self.rows] - self.before
            if first:
                self.n_img = x.shape[1]
            return out

        block.forward = run
        self.undo.append((block, forward))


def dual(pipeline, case, cfg):
    transformer = pipeline.transformer
    config = DBCacheConfig(
        Fn_compute_blocks=1,
        Bn_compute_blocks=case.get("b", 0),
        residual_diff_threshold=case["threshold"],
        max_warmup_steps=case["warmup"],
        warmup_interval=case.get("interval", 1),
        max_cached_steps=case.get("max", -1),
        max_continuous_cached_steps=case.get("row", -1),
        num_inference_steps=STEPS,
        **({"enable_separate_cfg": True} if cfg else {}),
    )
    blocks, pattern = transformer.transformer_blocks, ForwardPattern.Pattern_1
    if not cfg:
        blocks, pattern = [blocks, transformer.single_transformer_blocks], [pattern, ForwardPattern.Pattern_3]
    adapter = BlockAdapter(transformer=transformer, blocks=blocks, forward_pattern=pattern, **({"has_separate_cfg": True} if cfg else {}))
    cache_dit.enable_cache(adapter, cache_config=config)


log = []


def watch():
    original = cache_manager.CachedContextManager.can_cache

    def can_cache(self, states, parallelized=False, threshold=None, prefix="Fn"):
        cached = original(self, states, parallelized=parallelized, threshold=threshold, prefix=prefix)
        second = self.is_separate_cfg_step()
        d = self.get_current_step_cfg_residual_diff() if second else self.get_current_step_residual_diff()
        log.append((prefix, int(second), self.get_current_step(), d, bool(cached)))
        return cached

    cache_manager.CachedContextManager.can_cache = can_cache


def gates_of_log(cfg):
    """Calls of can_cache are of steps that no rule forced before: the rest was computed."""
    names = [("", 0), ("", 1)] if cfg else [("transformer_blocks", 0), ("single_transformer_blocks", 0)]
    out = []
    for name, second in names:
        of = {step: (d, cached) for prefix, branch, step, d, cached in log if branch == second and prefix.startswith(name)}
        assert len({prefix for prefix, branch, *_ in log if branch == second and prefix.startswith(name)}) == 1
        computed = [i for i in range(STEPS) if not of.get(i, (None, False))[1]]
        out.append((computed, [of.get(i, (None, None))[0] for i in range(STEPS)]))
    return out


def text_of(method, case):
    return method + ",f=1" * (method == "dbcache") + "".join(f",{key}={value}" for key, value in case.items())


def main():
    watch()
    out = generate_editors.HERE / "data" / "editors"
    source, prompt = generate_editors.EDITS[0]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([Path(sys.argv[1]) / "make_portraits", "--size", "64", folder], check=True, stdout=subprocess.DEVNULL)
        image = Image.open(Path(folder) / f"{source}.png").convert("RGB")

    def qwen():
        cells = generate_editors.qwen_edit(generate_editors.EDITORS / "qwen_edit").__closure__
        pipeline = next(c.cell_contents for c in cells if isinstance(c.cell_contents, diffusers.DiffusionPipeline))
        call = dict(prompt=prompt, negative_prompt=" ", true_cfg_scale=2.0, width=64, height=64, image=[image])
        return pipeline, call, 16

    def flux2():
        folder = generate_editors.HERE / "data/flux2/rich/checkpoint"
        pipeline = diffusers.Flux2Pipeline.from_pretrained(folder, torch_dtype=torch.float32)
        call = dict(prompt=prompt, guidance_scale=4.0, max_sequence_length=64, image=[image], text_encoder_out_layers=(1, 2, 3))
        return pipeline, call, 16

    cases = []
    for name, make, cfg, duals, teas in (("qwen_edit", qwen, True, QWEN_DB, TEA), ("flux2", flux2, False, FLUX2_DB, FLUX2_TEA)):
        plans = [("dbcache", case) for case in duals] + [("teacache", dict(threshold=t, poly=p)) for t, p in teas]
        for method, case in plans:
            pipeline, call, rows = make()
            log.clear()
            tea = None
            if method == "dbcache":
                dual(pipeline, case, cfg)
            else:
                tea = Tea(pipeline, case["threshold"], case["poly"], 2 if cfg else 1, rows)
            picture = pipeline(num_inference_steps=STEPS, generator=torch.Generator().manual_seed(SEED), **call).images[0]
            if tea:
                gates = [([i for i, (c, _, _) in enumerate(of) if c], [d for _, d, _ in of]) for of in tea.log]
                compared = [s for of in tea.log for c, d, s in of if d is not None and not c]
            else:
                gates = gates_of_log(cfg)
                compared = [d for _, distances in gates for d in distances if d is not None]
            margin = min(abs(d - case["threshold"]) / case["threshold"] for d in compared) if compared else 1.0
            cases.append(dict(model=name, accel=text_of(method, case), margin=margin, computed=[c for c, _ in gates], distance=[d for _, d in gates]))
            print(json.dumps(cases[-1]))
            assert margin > MARGIN, "a threshold lies too near a distance"
        picture.save(out / f"step_cache_dual_{name}.png", optimize=True)
    result = dict(
        steps=STEPS, seed=SEED, prompt=prompt, diffusers=diffusers.__version__, torch=torch.__version__, cache_dit=cache_dit.__version__, cases=cases
    )
    (out / "step_cache_dual.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
