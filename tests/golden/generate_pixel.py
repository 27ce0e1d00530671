"""Golden of eval/judge/pixel.c: scikit-image's CIELAB and structural similarity, NumPy's medians, on 200 pairs of small
pictures that the study's generator makes (tests/eval/test_pixel.c makes the same). Run: python generate_pixel.py"""

import math

import numpy as np
from skimage.color import rgb2lab
from skimage.metrics import structural_similarity

import stats_cases as sc

CASES = 200
REGION = (0.22, 0.12, 0.56, 0.70)


def clamp(v):
    return max(0, min(255, v))


def pictures(case):
    """source, edited uint8 [height, width, 3]: noise around a skin or a cold colour, shifted in some cases."""
    stream = sc.case_stream("pixel", case)
    width, height = 12 + stream.bounded(24), 12 + stream.bounded(24)
    r = 60 + stream.bounded(180)
    base = [r, r * 7 // 10, r * 5 // 10] if case % 5 else [r // 2, r // 2, r]
    shift = [stream.bounded(61) - 30 for _ in range(3)] if case % 4 else [0, 0, 0]
    noise = 1 + stream.bounded(40)
    both = []
    for picture in range(2):
        pixels = np.zeros((height, width, 3), np.uint8)
        for y in range(height):
            for x in range(width):
                for c in range(3):
                    value = base[c] + stream.bounded(noise) - noise // 2
                    pixels[y, x, c] = clamp(value + (shift[c] if picture else 0))
        both.append(pixels)
    return both if case % 8 else [both[0], both[0]]


def inside(height, width):
    left, top, w, h = REGION
    x = ((np.arange(width) + 0.5) / width - left) / w * 2 - 1
    y = ((np.arange(height) + 0.5) / height - top) / h * 2 - 1
    return x[None, :] ** 2 + y[:, None] ** 2 <= 1


def skin(pixels):
    r, g, b = (pixels[..., c].astype(float) for c in range(3))
    cb = 128 - 0.168736 * r - 0.331264 * g + 0.5 * b
    cr = 128 + 0.5 * r - 0.418688 * g - 0.081312 * b
    return (cb >= 77) & (cb <= 127) & (cr >= 133) & (cr <= 173)


def angle(pixels, region):
    chosen = skin(pixels) & region
    share = chosen.sum() / region.sum()
    if share < 0.05:
        return share, math.nan
    lab = rgb2lab(pixels)[chosen]
    warmth = np.median(lab[:, 2])
    return share, math.degrees(math.atan((np.median(lab[:, 0]) - 50) / warmth)) if warmth > 0 else math.nan


def luminance(pixels):
    return pixels.astype(float) @ np.array([0.2125, 0.7154, 0.0721]) / 255


rows, inputs = [], sc.FNV_BASIS
for case in range(CASES):
    source, edited = pictures(case)
    inputs = sc.checksum([float(v) for v in source.ravel()] + [float(v) for v in edited.ravel()], inputs)
    region = inside(*source.shape[:2])
    change = np.sqrt(((rgb2lab(source) - rgb2lab(edited)) ** 2).sum(-1))
    similarity = structural_similarity(luminance(source), luminance(edited), gaussian_weights=True, sigma=1.5,
                                       use_sample_covariance=False, data_range=1)
    share_source, ita_source = angle(source, region)
    share_edited, ita_edited = angle(edited, region)
    rows.append([similarity, change[region].mean(), change[~region].mean(), share_source, share_edited, ita_source,
                 ita_edited])
sc.write("pixel", rows, inputs,
         ["ssim", "inside", "outside", "skin_source", "skin_edited", "ita_source", "ita_edited"],
         ["scikit-image", "numpy"])
