"""The FLUX.2 cases: which checkpoint, what is asked of it, and the photographs it is asked about."""

import io

import numpy as np
from PIL import Image

ALL_BLOCKS = ("double.0", "single.0")

# height and width are what the user asks for; the pipeline floors them to its multiple.
CASES = {
    "fast": {
        "text": dict(prompt="a dog is dancing", height=8, width=8, steps=2, guidance=5.0, seed=0, max_sequence_length=8),
        "oblong": dict(
            prompt="make the sky red",
            height=7,
            width=20,
            steps=3,
            guidance=2.5,
            seed=7,
            max_sequence_length=48,
            blocks=ALL_BLOCKS,
        ),
    },
    "rich": {
        "text": dict(
            prompt="Turn the house into a wooden sculpture under warm light.",
            height=48,
            width=80,
            steps=4,
            guidance=4.0,
            seed=42,
            max_sequence_length=64,
            without=("hidden",),
        ),
        "one_reference": dict(
            prompt="change the jacket",
            images=["portrait.jpg"],
            steps=3,
            guidance=4.0,
            seed=1234567890123,
            max_sequence_length=64,
            blocks=ALL_BLOCKS,
        ),
        "two_references": dict(
            prompt="Place the person of image 1 behind the glass: 人物の髪を赤く, größer — 🎉!",
            images=["alpha.png", "grey.jpg"],
            height=70,
            width=50,
            steps=2,
            guidance=2.3,
            seed=3,
            max_sequence_length=80,
            without=("pixels", "hidden", "double.0", "single.1"),
        ),
    },
    "deep": {
        # The first fills the text length to the last token, the second is cut.
        "full": dict(prompt="remove the lamp", height=24, width=16, steps=5, guidance=3.5, seed=11, fill=True, blocks=ALL_BLOCKS),
        "cut": dict(
            prompt="[INST] keep the [IMG]bicycle's colour, please; it's   number 12345 ",
            images=["small.png"],
            height=12,
            width=28,
            steps=2,
            guidance=1.0,
            seed=12,
            max_sequence_length=52,
            without=("pixels", "hidden", "double.0", "double.1"),
        ),
    },
    "coarse": {
        # Above 1024 * 1024 pixels: resized, then cropped. Of the reference's tensors every 16th row is kept.
        "large_reference": dict(
            prompt="",
            images=["large.jpg"],
            height=64,
            width=64,
            steps=1,
            guidance=4.0,
            seed=5,
            max_sequence_length=40,
            without=("pixels", "double", "single", "x_embedder", "hidden", "decoded"),
            thin=16,
        ),
    },
}


def picture(width, height, channels, seed):
    """A smooth scene with edges and a little noise, u8 [height, width, channels]."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    y, x = y / height, x / width
    layers = []
    for c in range(channels):
        fx, fy, phase = random.uniform(1, 4, 3)
        layer = 0.5 + 0.3 * np.sin(2 * np.pi * (fx * x + fy * y) + phase)
        layer = np.where((x - 0.4) ** 2 + (y - 0.55) ** 2 < 0.06, 1 - layer, layer)
        layers.append(np.where(np.abs(x - y) < 0.03, 0.1 * (c + 1), layer))
    return (np.stack(layers, -1) * 255).clip(0, 255).astype(np.uint8)


def photographs():
    """File name -> bytes. Sizes are no multiples of 16, so that the crop matters."""

    def encode(array, mode, kind, **options):
        out = io.BytesIO()
        Image.fromarray(array, mode).save(out, kind, **options)
        return out.getvalue()

    noise = np.random.default_rng(9).integers(0, 30, (77, 101, 3)).astype(np.uint8)
    return {
        "portrait.jpg": encode(picture(101, 77, 3, 1) // 2 + noise, "RGB", "JPEG", quality=90),
        "alpha.png": encode(picture(70, 90, 4, 2), "RGBA", "PNG"),
        "grey.jpg": encode(picture(117, 69, 1, 3)[..., 0], "L", "JPEG", quality=85),
        "large.jpg": encode(picture(1210, 1003, 3, 4), "RGB", "JPEG", quality=40),
        "small.png": encode(picture(67, 64, 3, 5), "RGB", "PNG"),
    }
