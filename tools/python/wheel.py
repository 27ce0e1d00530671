#!/usr/bin/env python3
"""Makes a wheel of an installed prefix and a shared library: wheel.py PREFIX LIBRARY VERSION FOLDER PORTRAITS. It holds the Python package, the
program, the library and what that needs beside the C library, and for `likeness demo` two small editors, a judge and drawn portraits. No packages are needed to make it."""

import base64
import hashlib
import pathlib
import re
import subprocess
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
OF_THE_SYSTEM = re.compile(r"lib(c|m|dl|pthread|rt)\.so|ld-linux|linux-vdso")


def needed(library):
    """Libraries that go along: name and file."""
    lines = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout.splitlines()
    found = [re.match(r"\s*(\S+) => (\S+)", line) for line in lines if not OF_THE_SYSTEM.search(line)]
    return sorted((match[1], pathlib.Path(match[2])) for match in found if match)


def demo(tools, portraits):
    """What `likeness demo` needs."""
    folders = {"step1x": tools / "editors/step1x", "qwen_edit": tools / "editors/qwen_edit", "judge": tools / "judges/qwen2_5_vl", "portraits": portraits}
    return [(f"likeness/demo_data/{name}/{path.relative_to(folder)}", path.read_bytes(), 0o644)
            for name, folder in folders.items() for path in sorted(folder.rglob("*")) if path.is_file()]


def main():
    prefix, library, version, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3], pathlib.Path(sys.argv[4])
    package = pathlib.Path(__file__).resolve().parent / "likeness"
    documents = prefix / "share/doc/likeness"
    info = f"likeness-{version}.dist-info"
    members = [(f"likeness/{path.name}", path.read_bytes(), 0o644) for path in [*sorted(package.glob("*.py")), package / "py.typed"]]
    members += demo(package.parent.parent, pathlib.Path(sys.argv[5]))
    files = {"bin/likeness": prefix / "bin/likeness", "lib/liblikeness.so": library}
    files.update({f"lib/likeness/{name}": file for name, file in [*needed(library), *needed(prefix / "bin/likeness")]})
    members += [(f"likeness/{name}", file.read_bytes(), 0o755) for name, file in files.items()]
    readme = (package / "__init__.py").read_text().split('"""')[1]
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
