"""Goldens of TIFF and BMP decoding from Pillow: data/tiff.pack (encoded files, one after another) and data/tiff.txt (lines "file"
as in generate_images.py; 0 pixels: refused by name).

    python tests/golden/generate_tiff.py               # Pillow 13.0.0 with libtiff 4.7.1
    python tests/golden/generate_tiff.py 500 7 FOLDER  # a sweep: so many pictures, drawn from seed 7

Files that Pillow wrote (grey, palettes, 16 bit, CMYK, alpha, every compression, strips, several pictures), files put together
here (both byte orders, tiles, planes, samples that are no colours, narrow samples, inverted grey, orientations in a tag or in
XMP; BMP of every width and mask, upside down, with short palettes), and files cut off."""

import hashlib
import io
import random
import struct
import sys
import zlib
from pathlib import Path

from PIL import Image, ImageOps

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 110
draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
DATA = Path(sys.argv[3] if len(sys.argv) > 3 else Path(__file__).parent / "data")
READ = {"1": 1, "L": 1, "I;16": 1, "I;16B": 1, "LA": 2, "RGB": 3, "P": 3, "CMYK": 3, "RGBA": 4}


def noise(n):
    kind = draw.randrange(3)
    return bytes(draw.randrange(256) if kind == 0 else i * 5 % 256 if kind == 1 else i // 40 % 256 for i in range(n))


def size():
    return draw.randrange(1, 41), draw.randrange(1, 41)


def written():
    """By Pillow."""
    width, height = size()
    mode = draw.choice(("1", "L", "LA", "P", "I;16", "RGB", "RGB", "RGBA", "CMYK", "F", "I", "LAB", "YCbCr"))
    if mode == "P":
        image = Image.frombytes("RGB", (width, height), noise(width * height * 3)).quantize(draw.randrange(2, 60))
    elif mode == "1":
        image = Image.frombytes("L", (width, height), noise(width * height)).convert("1")
    else:
        n = {"I;16": 2, "L": 1, "LA": 2, "F": 4, "I": 4}.get(mode, 4 if mode in ("RGBA", "CMYK") else 3)
        image = Image.frombytes(mode, (width, height), noise(width * height * n))
    packing = draw.choice((None, "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "packbits", "jpeg", "group4", "zstd", "lzma"))
    options = {} if packing is None else {"compression": packing}
    if draw.random() < 0.4:
        options["tiffinfo"] = {278: draw.randrange(1, height + 1)}
    if packing in ("tiff_lzw", "tiff_adobe_deflate") and mode in ("L", "RGB", "RGBA", "I;16") and draw.random() < 0.6:
        options.setdefault("tiffinfo", {})[317] = 2
    if draw.random() < 0.3:
        options.setdefault("tiffinfo", {})[274] = draw.randrange(1, 9)
    if draw.random() < 0.2 and mode == "RGB":
        options.update(save_all=True, append_images=[image.rotate(180)])
    out = io.BytesIO()
    try:
        image.save(out, "TIFF", **options)
    except Exception:
        return written()
    return f"written {mode} {packing}", out.getvalue()


def packed(data):
    """PackBits."""
    out, at = b"", 0
    while at < len(data):
        run = 1
        while run < 128 and at + run < len(data) and data[at + run] == data[at]:
            run += 1
        if run > 2:
            out += bytes([257 - run, data[at]])
        else:
            run = min(draw.randrange(1, 9), len(data) - at)
            out += bytes([run - 1]) + data[at:at + run]
        at += run
    return out


def built():
    """Tiles, planes and samples that Pillow does not write."""
    width, height = size()
    order = draw.choice("<>")
    photometric, bits, extras = draw.choice((
        (0, 1, ()), (1, 1, ()), (0, 2, ()), (1, 2, ()), (0, 4, ()), (1, 4, ()), (0, 8, ()), (1, 8, ()), (1, 16, ()), (0, 16, ()),
        (1, 8, (0,)), (1, 8, (1,)), (1, 8, (2,)), (2, 8, ()), (2, 8, (0,)), (2, 8, (1,)), (2, 8, (2,)), (2, 8, (999,)), (2, 8, None),
        (2, 8, (2, 0)), (2, 8, (1, 0, 0)), (2, 8, (0, 0)), (2, 16, ()), (2, 16, (0,)), (2, 16, (1,)), (2, 16, (2,)), (2, 16, None),
        (3, 1, ()), (3, 2, ()), (3, 4, ()), (3, 8, ()), (3, 8, (0,)), (5, 8, ()), (5, 8, (0,)), (5, 16, ()), (8, 8, ()), (1, 32, ())))
    samples = {2: 3, 5: 4, 8: 3}.get(photometric, 1) + (1 if extras is None else len(extras))
    planes = samples > 1 and bits == 8 and photometric != 3 and extras in ((), (2,)) and draw.random() < 0.3
    tiles = draw.random() < 0.4 and bits >= 8
    step = (16 * draw.randrange(1, 3), 16 * draw.randrange(1, 3)) if tiles else (width, draw.randrange(1, height + 1))
    compression = draw.choice((1, 8, 32946, 32773)) if not (planes or tiles) else draw.choice((8, 32946, 32773))
    per_pixel = 1 if planes else samples
    parts = []
    for _plane in range(samples if planes else 1):
        for y in range(0, height, step[1]):
            for _x in range(0, width, step[0]):
                rows = step[1] if tiles else min(step[1], height - y)
                data = noise((step[0] * per_pixel * bits + 7) // 8 * rows)
                parts.append(data if compression == 1 else packed(data) if compression == 32773 else zlib.compress(data))
    tags = [(256, 3, [width]), (257, 4, [height]), (258, 3, [bits] * samples), (259, 3, [compression]), (262, 3, [photometric]),
            (277, 3, [samples]), (284, 3, [2 if planes else 1])]
    if extras:
        tags.append((338, 3, extras))
    if photometric == 3:
        tags.append((320, 3, [draw.randrange(65536) for _ in range(3 << bits)]))
    if draw.random() < 0.3:
        tags.append((274, 3, [draw.randrange(1, 9)]))
    elif draw.random() < 0.3:
        tags.append((700, 1, list(b'<x tiff:Orientation="%d"/>' % draw.randrange(1, 9))))
    if tiles:
        tags += [(322, 3, [step[0]]), (323, 3, [step[1]])]
    else:
        tags.append((278, 3, [step[1]]))
    at, places = 8, []
    for part in parts:
        places.append(at)
        at += len(part) + len(part) % 2
    tags += [(324 if tiles else 273, 4, places), (325 if tiles else 279, 4, [len(p) for p in parts])]
    tags.sort()
    body, directory = b"".join(p + b"\0" * (len(p) % 2) for p in parts), struct.pack(order + "H", len(tags))
    beyond, behind = b"", at + 2 + 12 * len(tags) + 4
    for tag, kind, values in tags:
        data = struct.pack(order + str(len(values)) + {1: "B", 3: "H", 4: "I"}[kind], *values)
        directory += struct.pack(order + "HHI", tag, kind, len(values))
        if len(data) <= 4:
            directory += data.ljust(4, b"\0")
        else:
            directory += struct.pack(order + "I", behind + len(beyond))
            beyond += data + b"\0" * (len(data) % 2)
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", at)
    kind = "tiles" if tiles else "planes" if planes else "strips"
    return f"built {kind} {photometric} {bits} {extras} {compression}".replace(", ", "-"), head + body + directory + bytes(4) + beyond


MASKS = {32: [(0xFF0000, 0xFF00, 0xFF, 0), (0xFF000000, 0xFF0000, 0xFF00, 0), (0xFF000000, 0xFF0000, 0xFF00, 0xFF), (0, 0, 0, 0),
              (0xFF, 0xFF00, 0xFF0000, 0xFF000000), (0xFF0000, 0xFF00, 0xFF, 0xFF000000), (0xFF000000, 0xFF00, 0xFF, 0xFF0000),
              (0xFF000000, 0xFF00, 0xFF, 0), (0xF, 0xFF00, 0xFF0000, 0)],
         24: [(0xFF0000, 0xFF00, 0xFF, 0)], 16: [(0xF800, 0x7E0, 0x1F, 0), (0x7C00, 0x3E0, 0x1F, 0), (0xF00, 0xF0, 0xF, 0)]}


def bitmap():
    width, height = size()
    if draw.random() < 0.3:
        mode = draw.choice(("1", "L", "P", "RGB", "RGBA"))
        image = Image.frombytes("RGBA", (width, height), noise(width * height * 4)).convert(mode)
        out = io.BytesIO()
        image.save(out, "BMP")
        return f"bmp written {mode}", out.getvalue()
    bits, header = draw.choice((1, 4, 8, 16, 24, 32)), draw.choice((12, 40, 52, 56, 64, 108, 124))
    compression = 3 if bits >= 16 and header in (40, 52, 56, 108, 124) and draw.random() < 0.6 else 0
    if draw.random() < 0.05 and header > 12:
        compression = draw.choice((1, 2, 4))
    entry, colors = (3 if header == 12 else 4), (0 if header == 12 or draw.random() < 0.5 else draw.randrange(2, 1 + (1 << min(bits, 8))))
    n = (colors or 1 << bits) if bits <= 8 else 0
    palette = bytes(draw.randrange(256) for _ in range(n * entry))
    if bits in (1, 8) and draw.random() < 0.3:
        palette = b"".join(bytes([255 * i if n == 2 else i] * entry) for i in range(n))
    rows = noise((width * bits + 31) // 32 * 4 * height)
    masks = struct.pack("<4I", *draw.choice(MASKS[bits])) if compression == 3 else bytes(16)
    if header == 12:
        body = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        up = -height if draw.random() < 0.3 else height
        body = struct.pack("<IiiHHIIiiII", header, width, up, 1, bits, compression, len(rows), 2835, 2835, colors, 0)
        body += (masks[:12] if compression == 3 else b"") if header == 40 else (masks + bytes(100))[:header - 40]
    at = 14 + len(body) + (0 if draw.random() < 0.2 and compression == 0 else len(palette))
    head = b"BM" + struct.pack("<IHHI", 14 + len(body) + len(palette) + len(rows), 0, 0, at)
    return f"bmp {bits} bits {header} {compression}", head + body + palette + rows


def fixed():
    """What a short draw may not have: codes of 12 bits, tables of a JPEG in a tag, 5-6-5, differences."""
    for packing, mode, (width, height) in (("tiff_lzw", "RGB", (60, 40)), ("jpeg", "RGB", (33, 24)), ("jpeg", "L", (33, 24))):
        out = io.BytesIO()
        pixels = bytes(draw.randrange(256) for _ in range(width * height * len(mode)))
        Image.frombytes(mode, (width, height), pixels).save(out, "TIFF", compression=packing)
        yield f"fixed {mode} {packing}", out.getvalue()
    rows = noise(12 * 4 * 4) + bytes(draw.randrange(256) for _ in range(12 * 4 * 4))
    body = struct.pack("<IiiHHIIiiII", 56, 24, 8, 1, 16, 3, len(rows), 0, 0, 0, 0) + struct.pack("<4I", 0xF800, 0x7E0, 0x1F, 0)
    yield "fixed bmp 5-6-5", b"BM" + struct.pack("<IHHI", 70 + len(rows), 0, 0, 70) + body + rows
    for mode, n in (("RGB", 3), ("I;16", 2)):
        out = io.BytesIO()
        Image.frombytes(mode, (9, 5), bytes(i * i * 7 % 256 for i in range(45 * n))).save(
            out, "TIFF", compression="tiff_adobe_deflate", tiffinfo={317: 2})
        yield f"fixed {mode} differences", out.getvalue()


def one():
    name, file = draw.choice((written, built, built, bitmap))()
    if draw.random() < 0.08:
        return name + " cut off", file[:draw.randrange(20, len(file))]
    return name, file


def seen(file, exif):
    """Pillow's picture as the engine has it, or None where Pillow or the engine, by name, refuses the file."""
    try:
        image = Image.open(io.BytesIO(file))
        image.load()
    except Exception:
        return None
    if image.mode not in READ:
        return None
    if image.format == "TIFF" and (image.tag_v2.get(259, 1) not in (1, 5, 7, 8, 32946, 32773) or
                                   (image.tag_v2.get(259) == 7 and image.mode not in ("L", "RGB")) or
                                   (image.tag_v2.get(259) == 7 and image.tag_v2.get(277, 1) == 4) or
                                   (image.tag_v2.get(284) == 2 and image.mode == "LA") or
                                   (image.tag_v2.get(262) == 6 and image.tag_v2.get(259) != 7)):
        return None
    if image.format == "BMP" and image.info["compression"] in (1, 2):
        return None
    if exif and image.format == "BMP":
        image = ImageOps.exif_transpose(image)
    return image.convert("L" if READ[image.mode] == 1 else "RGB") if READ[image.mode] in (1, 3) else image


if __name__ == "__main__":
    pack, lines = b"", []
    files = [*fixed(), *(one() for _ in range(COUNT))]
    for number, (name, file) in enumerate(files):
        for exif in (0, 1):
            image = seen(file, exif)
            digest = hashlib.sha256(image.tobytes()).hexdigest()[:16] if image else "0"
            width, height = image.size if image else (0, 0)
            n = len(image.getbands()) if image else 0
            lines.append(f"file {len(pack)} {len(file)} {exif} {width} {height} {n} {digest} {name} {number}")
        pack += file
    (DATA / "tiff.pack").write_bytes(pack)
    (DATA / "tiff.txt").write_text("\n".join(lines) + "\n")
