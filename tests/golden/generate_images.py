"""Goldens of image decoding and resizing from Pillow: tests/golden/data/images.pack (encoded files, one after another) and
images.txt (what Pillow makes of them and of generated pictures; SHA-256 cut to 16 digits).

    python tests/golden/generate_images.py

Lines of images.txt, fields separated by spaces:
    file OFFSET BYTES EXIF WIDTH HEIGHT CHANNELS DIGEST NAME     Pillow's pixels; EXIF 1: after exif_transpose
    resized WIDTH HEIGHT FILTER DIGEST                           of the file above, resized in its own mode
    resize KIND SEED WIDTH HEIGHT CHANNELS WIDTH HEIGHT FILTER DIGEST    of a generated picture (see picture())
    text BYTES DIGEST KEY                                        a text of the file above, in UTF-8
"""

import hashlib
import io
import random
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, features
from PIL.PngImagePlugin import PngInfo

DATA = Path(__file__).parent / "data"
FILTERS = {"nearest": Image.Resampling.NEAREST, "bicubic": Image.Resampling.BICUBIC, "lanczos": Image.Resampling.LANCZOS,
           "bilinear": Image.Resampling.BILINEAR}
MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def digest(pixels):
    return hashlib.sha256(np.ascontiguousarray(pixels).tobytes()).hexdigest()[:16]


def splitmix64(seed, n):
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def picture(kind, seed, width, height, channels):
    """kind 0: noise; 1: ramps; 2: black and white; 3: rings with a little noise. The same in C: tests/common/picture.c."""
    r = splitmix64(seed, width * height * channels).reshape(height, width, channels)
    y, x, c = np.mgrid[:height, :width, :channels].astype(np.uint64)
    noise = (r >> np.uint64(56)).astype(np.uint64)
    if kind == 0:
        v = noise
    elif kind == 1:
        v = (x * np.uint64(1 + seed % 7) + y * np.uint64(1 + seed // 7 % 5) + c * np.uint64(40)) & np.uint64(255)
    elif kind == 2:
        v = (r >> np.uint64(63)) * np.uint64(255)
    else:
        v = ((((x * x + y * y * np.uint64(3)) >> np.uint64(4)) + c * np.uint64(60)) & np.uint64(239)) + (noise >> np.uint64(4))
    if channels in (2, 4):
        levels = np.stack([np.zeros_like(noise), np.full_like(noise, 255), noise, np.full_like(noise, 128)])
        which = ((r >> np.uint64(8)) & np.uint64(3)).astype(int)
        alpha = np.take_along_axis(levels, which[None], 0)[0]
        v[..., channels - 1] = alpha[..., channels - 1]
    return v.astype(np.uint8)


def as_image(pixels):
    return Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def as_pixels(image, mode):
    """Of an image in any mode, in the mode that the runtime keeps it in."""
    pixels = np.asarray(image.convert(mode))
    return pixels.reshape(image.height, image.width, -1)


def runtime_mode(image, name):
    if name.startswith("png-4-16"):  # Pillow makes RGBA of 16-bit grey with alpha
        return "LA"
    if image.mode == "P":
        return "RGBA" if "transparency" in image.info else "RGB"
    return {"1": "L", "I;16": "L", "CMYK": "RGB"}.get(image.mode, image.mode)


# --- encoded files ---------------------------------------------------------------------------------------------------


def jpeg(pixels, mode=None, **options):
    image = as_image(pixels)
    out = io.BytesIO()
    (image.convert(mode) if mode else image).save(out, "JPEG", **options)
    return out.getvalue()


def cjpeg(pixels, *options):
    """libjpeg-turbo's own encoder: sampling factors and arithmetic coding that Pillow cannot write."""
    ppm = io.BytesIO()
    as_image(pixels).save(ppm, "PPM")
    return subprocess.run(["cjpeg", *options], input=ppm.getvalue(), stdout=subprocess.PIPE, check=True).stdout


def ycck(pixels):
    """A CMYK file whose Adobe marker says that its components are YCCK."""
    bytes_ = bytearray(jpeg(pixels, "CMYK", quality=80))
    at = bytes_.index(b"Adobe")
    bytes_[at + 11] = 2
    return bytes(bytes_)


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(rng, width, height, depth, color, interlaced, trns=None, n_palette=None):
    """Random samples in any format of the PNG standard, all five row filters."""
    n_channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]

    def rows(w, h):
        n = (w * n_channels * depth + 7) // 8
        return b"".join(bytes([rng.randrange(5)]) + rng.randbytes(n) for _ in range(h if w else 0))

    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    if interlaced:
        raw = b"".join(rows((width - x + dx - 1) // dx, (height - y + dy - 1) // dy) for x, y, dx, dy in passes)
    else:
        raw = rows(width, height)
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced))
    if color == 3:
        out += chunk(b"PLTE", rng.randbytes(3 * n_palette))
    if trns is not None:
        out += chunk(b"tRNS", trns)
    return out + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")


def oriented(pixels, orientation, kind, how):
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010F] = "maker"
    xmp = f'<x:xmpmeta><rdf:Description tiff:Orientation="{orientation}"/></x:xmpmeta>'.encode()
    options = {}
    if how == "exif":
        options["exif"] = exif
    elif kind == "JPEG":
        options["xmp"] = xmp
    else:
        options["pnginfo"] = PngInfo()
        options["pnginfo"].add_itxt("XML:com.adobe.xmp", xmp)
    out = io.BytesIO()
    as_image(pixels).save(out, kind, **options)
    return out.getvalue()


def jpeg_files(rng):
    def some(channels=3, least=1):
        return picture(rng.choice([1, 3, 3]), rng.randrange(1000), rng.randrange(least, 61), rng.randrange(least, 61), channels)

    for i in range(24):
        for mode in ("RGB", "L", "CMYK"):
            options = {"quality": rng.randrange(10, 100), "progressive": i % 2 == 1, "optimize": i % 3 == 0}
            if mode == "RGB":
                options["subsampling"] = i % 3
            if i % 4 == 0:
                options["restart_marker_blocks"] = rng.randrange(1, 6)
            yield f"jpeg-{mode}-{i}", 0, jpeg(some(), mode, **options)
    for i in range(4):
        yield f"jpeg-YCCK-{i}", 0, ycck(some())
    for sampling in ("1x2", "4x1", "1x4", "4x2", "2x4", "2x2,1x2,2x1", "1x1,2x2,2x2", "2x1,1x2,1x1"):
        yield f"jpeg-sampling-{sampling}", 0, cjpeg(some(least=20), "-sample", sampling)
    for options in (["-arithmetic"], ["-arithmetic", "-progressive"], ["-rgb"], ["-restart", "1B"]):
        yield "jpeg" + "".join(options), 0, cjpeg(some(), *options)


def png_files(rng):
    for color, depths in ((0, (1, 2, 4, 8, 16)), (2, (8, 16)), (3, (1, 2, 4, 8)), (4, (8, 16)), (6, (8, 16))):
        for depth in depths:
            for interlaced in (0, 1):
                for trns in (False, True):
                    if trns and color > 3:
                        continue
                    width, height = rng.randrange(1, 25), rng.randrange(1, 25)
                    n_palette = rng.randrange(1, 2**depth + 1) if color == 3 else None
                    body = {0: b"\0\1", 2: b"\0\1\0\2\0\3"}.get(color) or rng.randbytes(min(n_palette or 0, 6))
                    name = f"png-{color}-{depth}-{interlaced}" + ("-trns" if trns else "")
                    yield name, 0, png(rng, width, height, depth, color, interlaced, body if trns else None, n_palette)


def orientation_files():
    pixels = picture(3, 5, 21, 13, 3)
    for kind in ("JPEG", "PNG"):
        for orientation in range(1, 10):
            yield f"exif-{kind}-{orientation}", 1, oriented(pixels, orientation, kind, "exif")
        for orientation in (3, 6, 8, 9):
            yield f"xmp-{kind}-{orientation}", 1, oriented(pixels, orientation, kind, "xmp")
        yield f"exif-{kind}-ignored", 0, oriented(pixels, 6, kind, "exif")


def turned_files():
    """What is resized before it is converted, with black ink and samples above 255, turned."""
    inks = Image.fromarray(picture(3, 6, 37, 22, 4), "CMYK")
    grey = Image.fromarray(picture(0, 7, 30, 19, 1)[..., 0].astype(np.uint16) * 3)
    for kind, image in (("JPEG", inks), ("PNG", grey)):
        for orientation in (1, 3, 6, 7):
            exif = Image.Exif()
            exif[0x0112] = orientation
            out = io.BytesIO()
            image.save(out, kind, exif=exif)
            yield f"exif-{image.mode}-{orientation}", 1, out.getvalue()


TEXTS = {"parameters": "a cat, Steps: 28, Größe: 1024\nzweite Zeile", "Title": "", "Comment": "猫 in Zürich €", "likeness": '{"seed": 42}'}


def text_files():
    for zipped in (False, True):
        info = PngInfo()
        for key, text in TEXTS.items():
            info.add_text(key, text, zip=zipped)
        out = io.BytesIO()
        as_image(picture(1, 3, 9, 7, 3)).save(out, "PNG", pnginfo=info)
        yield f"text-{'zipped' if zipped else 'plain'}", 0, out.getvalue()


def all_files(rng):
    files = [*jpeg_files(rng), *png_files(rng), *orientation_files(), *text_files()]
    while len(files) < 200:
        i = len(files)
        image = as_image(picture(3, i, rng.randrange(8, 60), rng.randrange(8, 60), (1, 2, 3, 4)[i % 4]))
        if i % 3 == 0:
            image = image.convert("RGBA" if i % 2 else "RGB").quantize(rng.randrange(2, 200))
        out = io.BytesIO()
        image.save(out, "PNG")
        files.append((f"png-{i}-{image.mode}", 0, out.getvalue()))
    return files


def write_files(files, rng, lines, pack):
    for name, exif, encoded in files:
        image = Image.open(io.BytesIO(encoded))
        if exif:
            image = ImageOps.exif_transpose(image)
        mode = runtime_mode(image, name)
        pixels = as_pixels(image, mode)
        lines.append(f"file {len(pack)} {len(encoded)} {exif} {image.width} {image.height} {pixels.shape[2]} {digest(pixels)} {name}")
        pack += encoded
        size = (rng.randrange(1, 90), rng.randrange(1, 90))
        how = rng.choice(["bicubic", "lanczos", "lanczos"])
        resized = image.resize(size, FILTERS[how])  # in the file's own mode
        lines.append(f"resized {size[0]} {size[1]} {how} {digest(as_pixels(resized, mode))}")
        for key, text in getattr(Image.open(io.BytesIO(encoded)), "text", {}).items():
            if name.startswith("text"):
                raw = str(text).encode()
                lines.append(f"text {len(raw)} {hashlib.sha256(raw).hexdigest()[:16]} {key}")
    return pack


def write_resizes(rng, lines):
    cases = [
        (3, 1, 4032, 3024, 3, 1182, 886, "lanczos"),
        (3, 2, 1365, 2048, 3, 836, 1254, "lanczos"),
        (3, 3, 1024, 1024, 3, 392, 392, "bicubic"),
        (0, 4, 65500, 1, 3, 1000, 1, "lanczos"),
        (0, 5, 1, 9000, 4, 1, 77, "lanczos"),
        (0, 6, 3, 2, 3, 4000, 3, "lanczos"),
        (2, 7, 900, 7200, 1, 300, 2400, "bicubic"),
        (0, 8, 1, 1, 3, 64, 64, "lanczos"),
        (0, 9, 64, 64, 2, 1, 1, "lanczos"),
        (0, 10, 40, 40, 4, 40, 40, "lanczos"),
    ]
    while len(cases) < 500:
        width, height, new_width, new_height = (rng.randrange(1, 129) for _ in range(4))
        if rng.random() < 0.1:
            new_width = width
        if rng.random() < 0.1:
            new_height = height
        how = rng.choice(["nearest", "bicubic", "bicubic", "lanczos", "lanczos", "lanczos"])
        cases.append((rng.randrange(4), rng.randrange(1000), width, height, rng.randrange(1, 5), new_width, new_height, how))
    add_resizes(cases, lines)


def bilinear_resizes(rng):
    cases = [(3, 1, 300, 300, 3, 224, 224, "bilinear"), (0, 2, 3, 2, 4, 400, 3, "bilinear"), (0, 3, 1, 900, 1, 1, 7, "bilinear")]
    while len(cases) < 40:
        sides = [rng.randrange(1, 129) for _ in range(4)]
        cases.append((rng.randrange(4), rng.randrange(1000), *sides[:2], rng.randrange(1, 5), *sides[2:], "bilinear"))
    return cases


def add_resizes(cases, lines):
    for kind, seed, width, height, channels, new_width, new_height, how in cases:
        resized = as_image(picture(kind, seed, width, height, channels)).resize((new_width, new_height), FILTERS[how])
        result = digest(as_pixels(resized, MODES[channels]))
        lines.append(f"resize {kind} {seed} {width} {height} {channels} {new_width} {new_height} {how} {result}")


def main():
    cjpeg_version = subprocess.run(["cjpeg", "-version"], stderr=subprocess.PIPE, text=True, check=True).stderr.split("\n")[0]
    lines = [f"# pillow {Image.__version__}, libjpeg-turbo {features.version('libjpeg_turbo')}, numpy {np.__version__}; {cjpeg_version}"]
    rng = random.Random(20)
    pack = write_files(all_files(rng), rng, lines, b"")
    write_resizes(rng, lines)
    pack = write_files(turned_files(), random.Random(21), lines, pack)
    add_resizes(bilinear_resizes(random.Random(22)), lines)
    (DATA / "images.pack").write_bytes(pack)
    (DATA / "images.txt").write_text("\n".join(lines) + "\n")
    print(f"{len(lines) - 1} lines, {len(pack)} bytes of files")


if __name__ == "__main__":
    main()
