#!/usr/bin/env python3
"""How far the reference's bf16 errors are from themselves: python tests/golden/scatter.py FOLDER...

Each FOLDER is what generate.py --into FOLDER wrote with other kernels in torch, as ONEDNN_MAX_CPU_ISA=AVX2 gives. Prints
per stage the worst quotient of two errors, the larger over the smaller.
"""

import re
import sys
from pathlib import Path

from safetensors.torch import load_file

root = Path(__file__).parent / "data" / "flux2"
worst = {}
for path in sorted(root.glob("*/cases/*.safetensors")):
    ours = load_file(path)
    for folder in sys.argv[1:]:
        theirs = load_file(Path(folder) / path.relative_to(root))
        for name in ours:
            if not name.startswith("error."):
                continue
            a, b = sorted((ours[name].item(), theirs[name].item()))
            stage = re.sub(r"[.][0-9]+(?=[.]|$)", ".*", re.sub("^error[.](every[0-9]+[.])?", "", name))
            quotient = 1.0 if a == b else b / a
            if quotient > worst.get(stage, (0, ""))[0]:
                worst[stage] = quotient, f"{path.parent.parent.name}/{path.stem}"
for stage, (quotient, case) in worst.items():
    print(f"{stage:32} {quotient:.3f}  {case}")
