#!/usr/bin/env python3
"""Golden of models/face/fairface.c: torchvision's resnet34 with 18 outputs, its weights by a formula that
tests/golden/test_fairface.c repeats, on chips; and dlib's chips. Run: python generate_fairface.py (torch, torchvision,
dlib-bin, numpy, Pillow)"""

import pathlib

import dlib
import numpy as np
import PIL
import torch
import torchvision
from PIL import Image

DATA = pathlib.Path(__file__).parent / "data/fairface.txt"
TEMPLATE = [(0.8595674595992, 0.2134981538014), (0.6460604764104, 0.2289674387677), (0.1205750620789, 0.2137274526848),
            (0.3340850613712, 0.2290642403242)]
EYES = [(50.4, 43.2, 78.1, 49.9), (40, 31, 61, 30), (61, 70, 52.5, 41.25)]  # right, then left of the person
SHAPES = [(120, 90), (90, 120), (131, 97)]


def uniform(name, shape):
    """From -0.5 to 0.5, exact in f32."""
    seed = np.zeros(1, np.uint32)
    for byte in name.encode():
        seed = seed * np.uint32(31) + np.uint32(byte)
    n = np.arange(int(np.prod(shape)), dtype=np.uint32)
    h = (n ^ seed) * np.uint32(0x9E3779B1)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(0x85EBCA77)
    h ^= h >> np.uint32(13)
    return ((h >> np.uint32(8)).astype(np.float32) / np.float32(1 << 24) - np.float32(0.5)).reshape(shape)


def weights(state):
    for name, value in state.items():
        if not value.dtype.is_floating_point:
            continue
        u = uniform(name, tuple(value.shape))
        if value.ndim > 1:
            u = u * np.float32(3) / np.sqrt(np.float32(np.prod(value.shape[1:])))
        elif name.endswith("running_var") or (name.endswith(".weight") and not name.startswith("fc")):
            u = np.float32(1) + u * np.float32(0.5)
        state[name] = torch.from_numpy(u)


def picture(w, h):
    y, x, c = np.mgrid[0:h, 0:w, 0:3]
    return ((x * 7 + y * 13 + c * 29 + x * y // 5) % 256).astype(np.uint8)


def chip(image, eyes):
    h, w, _ = image.shape
    rows, cols = (800 * h // max(h, w), 800 * w // max(h, w))
    image = dlib.resize_image(image, rows, cols)
    sx, sy = cols / w, rows / h
    at = [((0.25 + x) / 1.5 * 300, (0.25 + y) / 1.5 * 300) for x, y in TEMPLATE]
    mean = lambda a, b: dlib.dpoint((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
    chip_points, points = dlib.dpoints(), dlib.dpoints()
    for p in (mean(at[2], at[3]), mean(at[0], at[1])):
        chip_points.append(p)
    for x, y in (eyes[:2], eyes[2:]):
        points.append(dlib.dpoint(x * sx, y * sy))
    return dlib.extract_image_chip(image, dlib.chip_details(chip_points, points, dlib.chip_dims(300, 300)))


@torch.no_grad()
def main():
    torch.set_num_threads(1)
    net = torchvision.models.resnet34(weights=None, num_classes=18).eval()
    state = net.state_dict()
    weights(state)
    net.load_state_dict(state)
    ready = torchvision.transforms.Compose([
        torchvision.transforms.Resize((224, 224)), torchvision.transforms.ToTensor(),
        torchvision.transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])])
    lines = [f"torchvision {torchvision.__version__}, torch {torch.__version__}, Pillow {PIL.__version__}, dlib {dlib.__version__}"]
    for size, eyes in zip(SHAPES, EYES):
        lines.append(" ".join(map(str, (*size, *eyes))))
        c = chip(picture(*size), eyes)
        # Every 25th pixel of every 25th row, then the mean of all: black corners, turned and scaled.
        lines.append(" ".join(map(str, [*c[7::25, 4::25].ravel(), c.astype(np.float64).mean()])))
    for size in SHAPES[:2]:
        logits = net(ready(Image.fromarray(picture(*size)))[None])[0]
        lines.append(" ".join(f"{v:.9g}" for v in logits.tolist()))
    DATA.write_text("\n".join(lines) + "\n")
    print("\n".join(line[:200] for line in lines))


main()
