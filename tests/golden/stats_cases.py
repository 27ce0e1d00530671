"""The inputs of the statistics' cases, and the files of what the peers make of them.

A case's inputs come from the study's own generator (eval/study/random.h, mirrored here), so that only results are
stored: C makes the same doubles (tests/common/stats_cases.h). A file is a CSV: comment lines with the peers' versions
and a hash of all inputs, then one line a case: its number and the peer's values; "nan" is a value that does not exist."""

import pathlib
import struct
from importlib.metadata import version

MASK = 2**64 - 1
FOLDER = pathlib.Path(__file__).parent / "data" / "stats"
SEED = 42
FNV_BASIS, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def fnv1a64(data, value=FNV_BASIS):
    for byte in data:
        value = (value ^ byte) * FNV_PRIME & MASK
    return value


class Stream:
    """xoshiro256** from splitmix64(seed XOR FNV-1a of the label)."""

    def __init__(self, label, seed=SEED):
        z, self.s = seed ^ fnv1a64(label.encode()), []
        for _ in range(4):
            z = z + 0x9E3779B97F4A7C15 & MASK
            x = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
            x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
            self.s.append(x ^ x >> 31)

    def u64(self):
        s = self.s
        x = s[1] * 5 & MASK
        result = (x << 7 | x >> 57) * 9 & MASK
        t = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = (s[3] << 45 | s[3] >> 19) & MASK
        return result

    def bounded(self, n):
        product = self.u64() * n
        if product & MASK < n:
            threshold = (2**64 - n) % n
            while product & MASK < threshold:
                product = self.u64() * n
        return product >> 64

    def shuffle(self, values):
        for i in range(len(values) - 1, 0, -1):
            j = self.bounded(i + 1)
            values[i], values[j] = values[j], values[i]


# The kinds of data, in the order of enum stats_kind.
SCORES, MEANS, FINE, BINARY, WIDE, CONSTANT = range(6)


def values(stream, n, kind):
    """n doubles: judges' scores 1 to 5; means of three such; many-valued; 0 or 1; of very different sizes; one value."""
    if kind == SCORES:
        return [float(1 + stream.bounded(5)) for _ in range(n)]
    if kind == MEANS:
        return [(3 + stream.bounded(13)) / 3 for _ in range(n)]
    if kind == FINE:
        return [(stream.bounded(1 << 20) - (1 << 19)) / 1024 for _ in range(n)]
    if kind == BINARY:
        return [float(stream.bounded(2)) for _ in range(n)]
    if kind == WIDE:
        out = []
        for _ in range(n):
            mantissa = stream.bounded(1 << 20) - (1 << 19)
            out.append(mantissa * 2.0 ** (stream.bounded(41) - 20))
        return out
    return [float(1 + stream.bounded(5))] * n


def case_stream(statistic, case):
    return Stream(f"{statistic}/{case}")


def checksum(numbers, value=FNV_BASIS):
    """FNV-1a over the little-endian doubles."""
    return fnv1a64(struct.pack(f"<{len(numbers)}d", *numbers), value)


def write(statistic, rows, inputs, columns, packages, note="", folder=FOLDER):
    """rows: one list of numbers a case; inputs: the checksum over all cases' inputs, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# " + ", ".join(f"{name} {version(name)}" for name in packages)]
    if note:
        lines.append("# " + note)
    lines.append(f"# inputs {inputs:016x}")
    lines.append("case," + ",".join(columns))
    for case, row in enumerate(rows):
        assert len(row) == len(columns)
        lines.append(",".join([str(case), *(number_text(float(v)) for v in row)]))
    (folder / f"{statistic}.csv").write_text("\n".join(lines) + "\n")


def number_text(v):
    return str(int(v)) if v == v and abs(v) < 2**53 and v == int(v) else repr(v)
