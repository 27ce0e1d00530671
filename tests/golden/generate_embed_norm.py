#!/usr/bin/env python3
"""Golden of models/embeds_norm.c: scikit-learn's StandardScaler over tokens, each token's norm given back. Run: python
generate_embed_norm.py (numpy, scikit-learn)"""

import pathlib

import numpy as np
import sklearn
from sklearn.preprocessing import StandardScaler, normalize

N, WIDTH = 9, 6
i, k = np.mgrid[0:N, 0:WIDTH]
rows = ((i * 37 + k * 101 + i * i * k * 13) % 97 - 40) / 8.0
rows[:, 4] = 2.5  # a channel that says nothing
lines = [f"scikit-learn {sklearn.__version__}, numpy {np.__version__}"]
for with_std in (False, True):
    scaled = StandardScaler(with_std=with_std).fit_transform(rows)
    restored = normalize(scaled) * np.linalg.norm(rows, axis=1, keepdims=True)
    lines += [" ".join(f"{v:.17g}" for v in row) for row in restored]
(pathlib.Path(__file__).parent / "data/embed_norm.txt").write_text("\n".join(lines) + "\n")
print("\n".join(lines[:4]))
