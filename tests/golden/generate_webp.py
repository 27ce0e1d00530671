"""Goldens of WebP decoding from Pillow: data/webp.pack (encoded files, one after another) and data/webp.txt (lines "file" as in
generate_images.py).

    python tests/golden/generate_webp.py               # Pillow 13.0.0 with libwebp 1.6.0
    python tests/golden/generate_webp.py 500 7 FOLDER  # a sweep: so many pictures, drawn from seed 7

Lossy and lossless, grey, with alpha (also where it is constant), animations (also with frames that do not fill the canvas),
metadata that turns the picture in every place that a file can have it, files cut off and damaged."""

import hashlib
import io
import random
import struct
import sys
from pathlib import Path

from PIL import Image, ImageOps

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 90
draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
DATA = Path(sys.argv[3] if len(sys.argv) > 3 else Path(__file__).parent / "data")


def picture(mode):
    width, height = draw.randrange(1, 49), draw.randrange(1, 49)
    n, kind = len(mode), draw.randrange(3)
    def value(x, y, c):
        if mode[c] == "A":
            return (255, 0, 128, x * 5 % 256)[draw.randrange(4)] if kind else x * 7 % 256
        return draw.randrange(256) if kind == 0 else (x * 5 + y * 3 + c * 40) % 256 if kind == 1 else 60 * c
    return Image.frombytes(mode, (width, height),
                           bytes(value(x, y, c) for y in range(height) for x in range(width) for c in range(n)))


def tiff(orientation, little=True):
    order = "<" if little else ">"
    return (b"II*\0" if little else b"MM\0*") + struct.pack(order + "IHHHIHHI", 8, 1, 0x112, 3, 1, orientation, 0, 0)


def chunk(kind, body):
    return kind + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def chunks(file):
    at = 12
    while at + 8 <= len(file):
        n = struct.unpack("<I", file[at + 4:at + 8])[0]
        yield file[at:at + 4], file[at + 8:at + 8 + n]
        at += 8 + n + n % 2


def with_metadata(file, width, height, alpha):
    """Behind VP8X, with flags that may not tell of it."""
    parts = [(kind, body) for kind, body in chunks(file) if kind in (b"VP8 ", b"VP8L", b"ALPH")]
    orientation, flags = draw.randrange(0, 10), 16 * alpha
    exif = draw.choice((b"", b"Exif\0\0", b"Exif\0\0" * 2, b"Exif\0\0" * 3)) + tiff(orientation, draw.random() < 0.5)
    xmp = draw.choice((b'<x tiff:Orientation="%d"/>', b"<tiff:Orientation>%d</tiff:Orientation>")) % draw.randrange(10)
    after = []
    if draw.random() < 0.7:
        flags |= 8 if draw.random() < 0.85 else 0
        after.append((b"EXIF", exif))
    if draw.random() < 0.5:
        flags |= 4 if draw.random() < 0.85 else 0
        after.append((b"XMP ", xmp))
    draw.shuffle(after)
    if draw.random() < 0.3:
        parts.insert(0, (b"ICCP", bytes(20)))
        flags |= 32
    head = struct.pack("<I", flags) + struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    body = b"WEBP" + b"".join(chunk(*part) for part in [(b"VP8X", head), *parts, *after])
    return b"RIFF" + struct.pack("<I", len(body)) + body


def moving():
    frames = [picture(draw.choice(("RGB", "RGBA"))) for _ in range(draw.randrange(2, 4))]
    size = frames[0].size
    out = io.BytesIO()
    frames[0].save(out, "WEBP", save_all=True, append_images=[f.resize(size) for f in frames[1:]],
                   lossless=draw.random() < 0.5, background=(10, 200, 30, 40))
    return out.getvalue()


def cornered(file):
    """The first frame of an animation on a canvas that is larger."""
    parts = list(chunks(file))
    grown = []
    for kind, body in parts:
        if kind == b"VP8X":
            width, height = (int.from_bytes(body[a:a + 3], "little") + 9 for a in (4, 7))
            body = body[:4] + width.to_bytes(3, "little") + height.to_bytes(3, "little")
        if kind == b"ANMF":
            body = bytes([2, 0, 0, 1, 0, 0]) + body[6:]
        grown.append((kind, body))
    body = b"WEBP" + b"".join(chunk(*part) for part in grown)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def one():
    kind = draw.randrange(10)
    if kind == 0:
        return "animation", moving()
    if kind == 1:
        return "animation of small frames", cornered(moving())
    image, out = picture(draw.choice(("L", "RGB", "RGB", "RGBA"))), io.BytesIO()
    lossless = draw.random() < 0.4
    image.save(out, "WEBP", lossless=lossless, quality=draw.choice((1, 50, 80, 100)), exact=draw.random() < 0.5,
               method=draw.randrange(7), alpha_quality=draw.choice((0, 50, 100)))
    file, name = out.getvalue(), image.mode + (" lossless" if lossless else " lossy")
    if kind < 5:
        return name + " with metadata", with_metadata(file, *image.size, image.mode == "RGBA")
    if kind == 5:
        return name + " cut off", file[:draw.randrange(12, len(file))]
    if kind == 6:
        at = draw.randrange(12, len(file))
        return name + " damaged", file[:at] + bytes([file[at] ^ 1 << draw.randrange(8)]) + file[at + 1:]
    if kind == 7:
        return name + " with bytes behind", file + b"behind"
    return name, file


def seen(file, exif):
    """Pillow's picture, or None where it refuses the file."""
    try:
        image = Image.open(io.BytesIO(file))
        image.load()
    except Exception:
        return None
    if exif:
        try:
            image = ImageOps.exif_transpose(image)
        except Exception:
            pass
    return image


pack, lines = b"", []
for number in range(COUNT):
    name, file = one()
    for exif in (0, 1):
        image = seen(file, exif)
        n = {"RGB": 3, "RGBA": 4}[image.mode] if image else 0
        digest = hashlib.sha256(image.tobytes()).hexdigest()[:16] if image else "0"
        width, height = image.size if image else (0, 0)
        lines.append(f"file {len(pack)} {len(file)} {exif} {width} {height} {n} {digest} {name} {number}")
    pack += file
(DATA / "webp.pack").write_bytes(pack)
(DATA / "webp.txt").write_text("\n".join(lines) + "\n")
