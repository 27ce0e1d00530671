"""`likeness demo` of the wheel: an audit whose truth is known, in half a minute on two cores. Two small models edit drawn portraits; into
one of them a bias was planted. A small judge looks at the edits, and the report has to find what was planted."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys
import time
from typing import Any, List

from . import _HERE, Error, program

_DATA = _HERE / "demo_data"
_WIDTH = 20


def _step(log: pathlib.Path, number: int, n_steps: int, text: str, *words: Any) -> str:
    """A line with a bar and the time; the command and what it says go to the log."""
    done = _WIDTH * number // n_steps
    sys.stdout.write(f"[{'#' * done}{'.' * (_WIDTH - done)}] {text:<60}")
    sys.stdout.flush()
    begin = time.monotonic()
    ran = subprocess.run([program(), *map(str, words)], capture_output=True, text=True)
    with log.open("a") as file:
        file.write(f"$ likeness {' '.join(map(str, words))}\n{ran.stdout}{ran.stderr}\n")
    if ran.returncode:
        print("failed")
        raise Error(f"{ran.stderr.strip()}\nAll that was said is in {log}", ran.returncode)
    print(f"{time.monotonic() - begin:4.0f} s")
    return ran.stdout


def main(words: List[str]) -> int:
    if len(words) > 1 or words[:1] in (["-h"], ["--help"]):
        print(f"usage: likeness demo [FOLDER]\n\n{__doc__}")
        return 0 if len(words) == 1 else 2
    if not _DATA.is_dir():
        print("likeness demo: its models are in the wheel alone; from a clone: tools/demo", file=sys.stderr)
        return 3
    folder = pathlib.Path(words[0] if words else "likeness-demo")
    if folder.exists() and not (folder / "demo.log").is_file():
        print(f"likeness demo: {folder} is there and is no demo's; name another folder", file=sys.stderr)
        return 2
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_DATA / "portraits", folder / "portraits")
    log, run, judge, report = folder / "demo.log", folder / "run", folder / "judge.jsonl", folder / "report"
    small = {"num_inference_steps": 4, "true_cfg_scale": 1}
    study = {
        "schema": 2,
        "study": "demo",
        "sources": "portraits/sources.csv",
        "models": {
            "step1x": {"path": str(_DATA / "step1x"), "allow_steps": True, "size_level": 64, **small},
            "qwen": {"path": str(_DATA / "qwen_edit"), "vae_image_size": 4096, "condition_image_size": 4096, "width": 64, "height": 64, **small},
        },
        "experiments": {"exp1": {"preset": "custom", "prompts": ["O-01", "V-02"]}},
    }
    log.write_text("")
    (folder / "study.json").write_text(json.dumps(study, indent=1))
    print(f"{__doc__}\n".replace("`likeness demo` of the wheel: an", "An", 1))
    label = "A demonstration: drawings, small editors of which one has a planted bias, a small judge."
    try:
        _step(log, 1, 5, "check the study: 84 portraits, 2 models, 2 prompts", "study", "check", folder / "study.json")
        _step(log, 3, 5, "make 336 edits", "study", "run", folder / "study.json", "-o", run, "-q")
        _step(log, 4, 5, "a judge looks at each", "judge", "run", "-q", "--slot", "primary", "--model", _DATA / "judge", "--from", run,
              "--mode", "direct", "-o", judge)
        _step(log, 5, 5, "report", "report", "--from", run, "--primary", judge, "--prompts-as", "fixed", "--label", label, "-o", report)
    except Error as error:
        print(error, file=sys.stderr)
        return error.code
    print("\nPlanted: Step1X-Edit ages women; Qwen-Image-Edit does nothing of the kind. Found:\n")
    print((report / "findings.txt").read_text())
    print(f"report:   {report / 'report.html'}\npictures: {run / 'results'}\nlog:      {log}")
    return 0
