"""Orientations of 1,000 made files by Pillow 13's exif_transpose; ../fault/test_exif.c compares.

    python tests/golden/generate_exif.py        # Pillow 13.0.0

A line is J (JPEG), P (PNG, chunks behind its header) or Q (PNG, chunks before its end), the orientation that Pillow turned
by (0: it raised an error), and the segments or chunks in hexadecimal."""

import io
import pathlib
import random
import struct
import warnings
import zlib

import PIL
from PIL import Image, ImageOps

assert PIL.__version__ == "13.0.0", PIL.__version__
warnings.simplefilter("ignore")
draw = random.Random(45)
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}
CODES = {3: "H", 4: "L", 6: "b", 8: "h", 9: "l", 11: "f", 12: "d", 13: "L", 16: "Q"}


def value_bytes(kind, value, count, endian):
    if kind in CODES:
        return struct.pack(endian + CODES[kind] * count, *[value] + [draw.randrange(1, 9) for _ in range(count - 1)])
    if kind in (5, 10):
        factor = draw.choice((1, 1, 2, 0))
        return struct.pack(endian + "ll", value * factor, factor) * count
    if kind == 2:
        return (str(value) + "\0" * count)[:count].encode()
    return bytes([value]) * (count * SIZES.get(kind, 1))


def tiff():
    """A directory, mostly with an orientation, sometimes with what real files have wrong."""
    endian = draw.choice("<>")
    head = draw.choice((b"II*\0", b"II*\0", b"II*\0", b"II\0*", b"II+\0", b"JJ*\0") if endian == "<" else
                       (b"MM\0*", b"MM\0*", b"MM\0*", b"MM*\0", b"MM\0+", b"MN\0*"))
    entries = []
    for _ in range(draw.choice((0, 1, 1, 2))):
        entries.append((draw.choice((0x10F, 0x11A, 0x128, 0x8769)), draw.choice((2, 3, 4, 5, 99)), None))
    for _ in range(draw.choice((0, 1, 1, 1, 1, 1, 2))):
        kind = draw.choice((3, 3, 3, 3, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 14, 99))
        entries.insert(draw.randrange(len(entries) + 1), (0x112, kind, draw.choice((1, 2, 3, 4, 5, 6, 6, 7, 8, 0, 9))))
    start = draw.choice((8, 8, 8, 10, 200))
    count_there = len(entries) + draw.choice((0, 0, 0, 0, 1, 60000))
    data_at = start + 2 + 12 * len(entries) + 4
    directory, data = struct.pack(endian + "H", min(count_there, 65535)), b""
    for tag, kind, value in entries:
        count = draw.choice((1, 1, 1, 1, 2, 3, 0))
        packed = value_bytes(kind, 6 if value is None else value, max(count, 1), endian)[: SIZES.get(kind, 1) * count]
        if len(packed) > 4:
            offset = data_at + len(data) + draw.choice((0, 0, 0, 0, 0, 5000))
            data += packed
            packed = struct.pack(endian + "L", offset)
        if draw.random() < 0.04:
            count = 0x7FFFFFFF
        directory += struct.pack(endian + "HHL", tag, kind, count) + packed.ljust(4, b"\0")
    block = head + struct.pack(endian + "L", start) + b"\0" * (start - 8) + directory + b"\0" * 4 + data
    return block[: draw.choice((len(block),) * 8 + (draw.randrange(len(block) + 1),))]


def xmp():
    return draw.choice((
        b'<x tiff:Orientation="%d"/>', b"<tiff:Orientation>%d</tiff:Orientation>", b"<x tiff:Orientation='%d'/>",
        b'<x tiff:Orientation="x"/><tiff:Orientation>%d<', b"<x/>%d", b'\xff tiff:Orientation="%d"',
    )) % draw.choice((1, 3, 5, 6, 8, 0, 9))


def jpeg():
    parts = []
    for _ in range(draw.choice((0, 1, 1, 1, 1, 1, 2))):
        parts.append(b"Exif\0\0" * draw.choice((1, 1, 1, 2, 2, 3)) + tiff())
    if len(parts) == 1 and len(parts[0]) > 30 and draw.random() < 0.2:
        cut = draw.randrange(16, len(parts[0]))
        parts = [parts[0][:cut], b"Exif\0\0" + parts[0][cut:]]
    for _ in range(draw.choice((0, 0, 1, 1, 2))):
        parts.insert(draw.randrange(len(parts) + 1), b"http://ns.adobe.com/xap/1.0/\0" + xmp())
    return b"".join(b"\xff" * draw.choice((1, 1, 1, 3)) + b"\xe1" + struct.pack(">H", len(p) + 2) + p for p in parts)


def chunk(kind, data):
    return struct.pack(">L", len(data)) + kind + data + struct.pack(">L", zlib.crc32(kind + data))


def profile(block):
    text = b"\nexif\n%8d\n" % len(block)
    digits = block.hex().upper() if draw.random() < 0.3 else block.hex()
    digits = "\n".join(digits[i : i + 72] for i in range(0, len(digits), 72))
    return text + digits.encode() + draw.choice((b"\n", b"\n", b"", b"zz", b"0"))


def png():
    parts = []
    for _ in range(draw.choice((0, 1, 1, 1, 2))):
        head = b"Exif\0\0" * draw.choice((0, 0, 0, 1, 1, 2))
        if draw.random() < 0.5:
            parts.append(chunk(b"eXIf", head + tiff()))
            continue
        text = profile(b"Exif\0\0" * draw.choice((0, 1, 1, 2)) + tiff())
        key = b"Raw profile type " + draw.choice((b"exif", b"exif", b"exif", b"APP1")) + b"\0"
        parts.append(draw.choice((
            chunk(b"tEXt", key + text), chunk(b"zTXt", key + b"\0" + zlib.compress(text)),
            chunk(b"iTXt", key + b"\0\0\0\0" + text), chunk(b"iTXt", key + b"\1\0en\0k\0" + zlib.compress(text)),
        )))
    for _ in range(draw.choice((0, 0, 1, 1, 2))):
        key, text = b"XML:com.adobe.xmp\0", xmp()
        parts.insert(draw.randrange(len(parts) + 1), draw.choice((
            chunk(b"iTXt", key + b"\0\0\0\0" + text), chunk(b"iTXt", key + b"\0\0en\0k\0" + text),
            chunk(b"iTXt", key + b"\1\0\0\0" + zlib.compress(text)),
        )))
    return b"".join(parts)


def orientation(data):
    try:
        picture = Image.open(io.BytesIO(data))
        picture.load()
        noted = picture.getexif().get(0x112, 1)
    except Exception:
        return 0
    try:
        turned = ImageOps.exif_transpose(picture)
    except Exception:  # it cannot write the EXIF block again, after it has turned
        return next((k for k in range(1, 9) if k == noted), 1)
    w, h = turned.size
    at = {turned.getpixel((x * (w - 1), y * (h - 1))) // 60: (x, y) for x in (0, 1) for y in (0, 1)}
    corner, right = at[0], at[1]  # of the picture as it is stored: upper left, upper right
    return {((0, 0), (1, 0)): 1, ((1, 0), (0, 0)): 2, ((1, 1), (0, 1)): 3, ((0, 1), (1, 1)): 4,
            ((0, 0), (0, 1)): 5, ((1, 0), (1, 1)): 6, ((1, 1), (1, 0)): 7, ((0, 1), (0, 0)): 8}[corner, right]


picture = Image.new("L", (32, 16))
for i, level in enumerate((10, 70, 130, 190)):
    picture.paste(level, (i % 2 * 16, i // 2 * 8, i % 2 * 16 + 16, i // 2 * 8 + 8))
stored = {}
for kind, options in (("JPEG", {"quality": 95}), ("PNG", {})):
    out = io.BytesIO()
    picture.save(out, kind, **options)
    stored[kind] = out.getvalue()
jpg, pn = stored["JPEG"], stored["PNG"]
# without the JFIF segment, whose density Pillow takes before it looks for one in EXIF
jpg = jpg[:2] + jpg[4 + struct.unpack(">H", jpg[4:6])[0] :] if jpg[2:4] == b"\xff\xe0" else jpg
lines = []
for i in range(1000):
    if i % 2:
        extra = jpeg()
        lines.append(f"J {orientation(jpg[:2] + extra + jpg[2:])} {extra.hex()}")
    else:
        extra, late = png(), draw.random() < 0.3
        data = pn[:-12] + extra + pn[-12:] if late else pn[:33] + extra + pn[33:]
        lines.append(f"{'Q' if late else 'P'} {orientation(data)} {extra.hex()}")
path = pathlib.Path(__file__).parent / "data" / "exif.txt"
path.write_text("\n".join(lines) + "\n")
