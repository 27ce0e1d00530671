#!/usr/bin/env python3
"""Makes data/icc: small pictures with ICC profiles, by Pillow and LittleCMS: python tests/golden/generate_icc.py

srgb.*: LittleCMS's own sRGB profile. wide.*: the same with the colorants of Display P3 and that name (v4, mluc); old.png: with a
description as version 2 writes it, which says sRGB though the colorants are Adobe RGB's; split.jpg: a profile of 90 KB in two
segments; grey.png: a grey profile of dot gain; plain.png: none.

to_srgb.pack, to_srgb.txt: pictures of every mode and format with profiles, and what ImageCms makes of them, perceptual intent:
"FILE_AT FILE_BYTES PIXELS_AT WIDTH HEIGHT CHANNELS PROFILE NAME", 0 channels where it must be refused. Pillow 13.0.0, LittleCMS 2.19.
"""

import io
import random
import struct
from pathlib import Path

from PIL import Image, ImageCms

# X, Y, Z of red, green, blue, adapted to D50, from the ICC's registry of profiles.
P3 = ((0.51512, 0.24120, -0.00105), (0.29198, 0.69225, 0.04189), (0.15710, 0.06657, 0.78407))
ADOBE = ((0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457))


def s15(value):
    return struct.pack(">i", round(value * 65536))


def mluc(text):
    words = text.encode("utf-16-be")
    return b"mluc" + bytes(4) + struct.pack(">II2s2sII", 1, 12, b"en", b"US", len(words), 28) + words


def desc(text):
    return b"desc" + bytes(4) + struct.pack(">I", len(text) + 1) + text.encode() + bytes(1 + 4 + 4 + 2 + 1 + 67)


def profile(base, space=b"RGB ", **tags):
    """A profile with some tags of another's in place of its own; others stay."""
    n = struct.unpack(">I", base[128:132])[0]
    table = {}
    for i in range(n):
        name, at, size = struct.unpack(">4sII", base[132 + 12 * i : 144 + 12 * i])
        table[name] = base[at : at + size]
    table.update({name.encode(): value for name, value in tags.items()})
    table = {name: value for name, value in sorted(table.items()) if value}
    at, head, body = 132 + 12 * len(table), b"", b""
    for name, value in table.items():
        value += bytes(-len(value) % 4)
        head += struct.pack(">4sII", name, at + len(body), len(value))
        body += value
    out = base[:128] + struct.pack(">I", len(table)) + head + body
    return struct.pack(">I", len(out)) + out[4:16] + space + out[20:]


def colorants(values):
    return {f"{c}XYZ": b"XYZ " + bytes(4) + b"".join(map(s15, v)) for c, v in zip("rgb", values)}


def curve(gamma):
    return b"curv" + bytes(4) + struct.pack(">IHH", 1, round(gamma * 256), 0)


def noise(mode, seed):
    draw = random.Random(seed)
    n = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    return Image.frombytes(mode, (12, 10), bytes(draw.randrange(256) for _ in range(120 * n)))


def to_srgb(folder, srgb, profiles):
    """What ImageCms makes of pictures, channel by channel as the engine keeps them."""
    pack, lines = b"", []
    for seed, (title, icc) in enumerate(profiles):
        for mode in ("L", "LA", "RGB", "RGBA"):
            for kind in ("png", "jpg", "webp", "tif"):
                if kind == "jpg" and "A" in mode or kind == "webp" and mode == "LA":
                    continue
                options = {"lossless": True, "exact": True} if kind == "webp" else {}
                out = io.BytesIO()
                noise(mode, seed).save(out, {"jpg": "JPEG", "tif": "TIFF"}.get(kind, kind), icc_profile=icc, **options)
                seen = Image.open(io.BytesIO(out.getvalue()))
                alpha = seen.getchannel("A") if "A" in seen.mode else None
                grey = icc[16:20] == b"GRAY"
                try:
                    colours = seen.convert("L") if grey and seen.mode in ("L", "LA") else seen.convert("RGB")
                    made = ImageCms.profileToProfile(colours, io.BytesIO(icc), io.BytesIO(srgb), outputMode="RGB")
                except ImageCms.PyCMSError:
                    made = None
                if made and alpha:
                    made.putalpha(alpha)
                pixels = made.tobytes() if made else b""
                channels = len(made.getbands()) if made else 0
                lines.append(f"{len(pack)} {len(out.getvalue())} {len(pack) + len(out.getvalue())} 12 10 {channels} {title} {mode}.{kind}")
                pack += out.getvalue() + pixels
    (folder / "to_srgb.pack").write_bytes(pack)
    (folder / "to_srgb.txt").write_text("\n".join(lines) + "\n")


def main():
    folder = Path(__file__).parent / "data" / "icc"
    folder.mkdir(exist_ok=True)
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    wide = profile(srgb, desc=mluc("Display P3"), **colorants(P3))
    old = profile(srgb, desc=desc("my sRGB"), **colorants(ADOBE))
    large = profile(srgb, desc=mluc("Large"), A2B0=bytes(90000), **colorants(P3))
    grey = profile(srgb, b"GRAY", desc=desc("Dot Gain 20%"), rXYZ=b"", gXYZ=b"", bXYZ=b"")
    gamma = {f"{c}TRC": curve(1.8) for c in "rgb"}
    ink = profile(srgb, b"GRAY", desc=desc("Gamma 1.8 grey"), kTRC=curve(1.8), **{f"{c}{t}": b"" for c in "rgb" for t in ("XYZ", "TRC")})
    to_srgb(folder, srgb, [("P3", wide), ("Adobe", profile(srgb, desc=mluc("Adobe"), **colorants(ADOBE), **{f"{c}TRC": curve(2.2) for c in "rgb"})),
                           ("Wide", profile(srgb, desc=mluc("Wide"), **colorants(P3), **gamma)), ("Grey", ink), ("Broken", grey)])
    picture = Image.new("RGB", (4, 4), (200, 120, 90))
    for name, icc in (("srgb", srgb), ("wide", wide)):
        for kind in ("png", "jpg", "webp"):
            picture.save(folder / f"{name}.{kind}", icc_profile=icc)
    picture.save(folder / "old.png", icc_profile=old)
    picture.save(folder / "split.jpg", icc_profile=large)
    picture.save(folder / "plain.png")
    picture.convert("L").save(folder / "grey.png", icc_profile=grey)
    for path in folder.glob("*.*[gp]"):  # what LittleCMS says of them
        icc = Image.open(path).info.get("icc_profile")
        if icc and path.name not in ("split.jpg", "grey.png"):
            print(path.name, len(icc), ImageCms.getProfileDescription(io.BytesIO(icc)).strip())
        path.chmod(0o644)


if __name__ == "__main__":
    main()
