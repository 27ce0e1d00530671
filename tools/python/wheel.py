#!/usr/bin/env python3
"""Makes a wheel of an installed prefix: wheel.py PREFIX VERSION FOLDER. It holds the Python package with the program and the shared
library, linked statically but for the C library, cJSON and OpenMP, of which the latter two go along. No packages are needed."""

import base64
import hashlib
import pathlib
import sys
import zipfile

METADATA = """Metadata-Version: 2.1
Name: likeness
Version: {version}
Summary: Instruction-based image editing and text-to-image models in C and CUDA, and the audit of what they make
License: Apache-2.0
Requires-Python: >=3.8
Provides-Extra: arrays
Requires-Dist: numpy; extra == "arrays"
Requires-Dist: pandas; extra == "arrays"
Description-Content-Type: text/markdown

"""
WHEEL = "Wheel-Version: 1.0\nGenerator: likeness\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_2_34_x86_64\n"
FILES = ("bin/likeness", "lib/liblikeness.so", "lib/likeness/libcjson.so.1", "lib/likeness/libgomp.so.1")


def main():
    prefix, version, folder = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    documents = prefix / "share/doc/likeness"
    info = f"likeness-{version}.dist-info"
    members = [(f"likeness/{path.name}", path.read_bytes(), 0o644) for path in sorted((prefix / "lib/likeness/python/likeness").glob("*"))]
    members = [m for m in members if m[0].endswith((".py", ".typed"))]
    members += [(f"likeness/{name}", (prefix / name).read_bytes(), 0o755) for name in FILES]
    readme = (prefix / "lib/likeness/python/likeness/__init__.py").read_text().split('"""')[1]
    members += [
        (f"{info}/METADATA", (METADATA.format(version=version) + readme).encode(), 0o644),
        (f"{info}/WHEEL", WHEEL.encode(), 0o644),
        (f"{info}/entry_points.txt", b"[console_scripts]\nlikeness = likeness:main\n", 0o644),
        (f"{info}/LICENSE", (documents / "LICENSE").read_bytes(), 0o644),
    ]
    record = ""
    for name, content, _ in members:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    members.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))
    path = folder / f"likeness-{version}-py3-none-manylinux_2_34_x86_64.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content, mode in members:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
    print(path)


if __name__ == "__main__":
    main()
