"""Small files by the safetensors package for tests/fault/test_safetensors.c, and a check of a file of ours.

    python tests/golden/generate_weights.py                # tests/data/weights/python_*.safetensors, versions.json
    python tests/golden/generate_weights.py OURS           # reads OURS (written by the test), then keeps it as the golden

safetensors 0.6+, torch 2.x; versions.json records which.
"""
import json
import pathlib
import shutil
import sys

import safetensors
import safetensors.torch
import torch

here = pathlib.Path(__file__).resolve().parent.parent / "data" / "weights"
here.mkdir(parents=True, exist_ok=True)

dtypes = {
    "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64, "u8": torch.uint8,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool,
}

if len(sys.argv) > 1:
    read = safetensors.torch.load_file(sys.argv[1])
    with safetensors.safe_open(sys.argv[1], "pt") as f:
        assert f.metadata() == {"made_by": "likeness"}
    assert sorted(read) == sorted(["z.weight", "scalar", 'bf16 "\\\né', "empty"])
    assert torch.equal(read["z.weight"], torch.arange(-2, 4, dtype=torch.float32).reshape(2, 3))
    assert read["scalar"].shape == () and read["scalar"].item() == 0.5
    assert torch.equal(read['bf16 "\\\né'], torch.tensor([1, 2, -2], dtype=torch.bfloat16))
    assert read["empty"].shape == (0, 4)
    shutil.copyfile(sys.argv[1], here / "ours.safetensors")
    sys.exit()

tensors = {}
for name, dtype in dtypes.items():
    values = torch.arange(6)
    if name == "bool":
        values = values % 2
    elif name != "u8":
        values = values - 2
    tensors[name] = values.to(dtype).reshape(2, 3)
tensors["scalar"] = torch.tensor(0.5)
tensors["empty"] = torch.zeros(3, 0, 5)
tensors['a "quoted" name, 人😀'] = torch.zeros(1)
safetensors.torch.save_file(tensors, here / "python_dtypes.safetensors", metadata={"format": "pt"})
safetensors.torch.save_file({}, here / "python_empty.safetensors")
(here / "versions.json").write_text(json.dumps({
    "safetensors": safetensors.__version__, "torch": torch.__version__.split("+")[0], "python": sys.version.split()[0],
}, indent=1) + "\n")
