"""Prints tensors in gdb by dtype, shape and their first values, where those lie in host memory: source tools/gdb/tensors.py"""

import struct

import gdb

SHOWN = 6


class Tensor:
    def __init__(self, value):
        self.value = value

    def first_values(self, dtype, n):
        kind = {"LK_F32": ("f", 4), "LK_BF16": ("H", 2), "LK_U8": ("B", 1)}.get(dtype)
        if not kind or not n:
            return ""
        try:
            raw = gdb.selected_inferior().read_memory(int(self.value["data"]), n * kind[1]).tobytes()
        except gdb.MemoryError:
            return ", not in host memory"
        values = struct.unpack(f"<{n}{kind[0]}", raw)
        if dtype == "LK_BF16":
            values = [struct.unpack("<f", struct.pack("<I", v << 16))[0] for v in values]
        return ": " + ", ".join(f"{v:.6g}" for v in values)

    def to_string(self):
        shape = [int(self.value["shape"][i]) for i in range(int(self.value["n_dims"]))]
        if not shape:
            return "no tensor"
        dtype, n = str(self.value["dtype"]), 1
        for side in shape:
            n *= side
        shown = min(n, SHOWN, shape[-1])  # rows may lie apart
        more = ", ..." if n > shown else ""
        values = self.first_values(dtype, shown)
        return f"{dtype[3:].lower()} {shape} at {int(self.value['data']):#x}{values}{more if values.startswith(':') else ''}"


def find(value):
    return Tensor(value) if value.type.strip_typedefs().tag == "lk_tensor" else None


gdb.pretty_printers.append(find)
