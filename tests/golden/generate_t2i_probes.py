#!/usr/bin/env python3
"""Writes data/t2i_probes.txt: what scipy, scikit-learn and umap-learn make of small probes of the text-to-image study.

    python tests/golden/generate_t2i_probes.py

Needs numpy (2.4.6), scipy (1.17.1), scikit-learn (1.9.1), umap-learn (0.5.12). The inputs come from formulas that
tests/eval/test_t2i_probes.c repeats. Blocks, each behind its name and its number of values:

spearman    rho and p of co-occurrence, PMI and cosine with SPD, over twelve roles
knn         of 60 rows in 5 dimensions: sigma and rho of each, of 10 neighbours that count the row itself
graph       the fuzzy union's weights, row after row [60, 60]
trust       trustworthiness of a made-up projection of the rows, for 5, 10 and 20 neighbours"""

import pathlib

import numpy as np
import scipy
import scipy.stats as st
import sklearn
import umap
from sklearn.manifold import trustworthiness
from sklearn.metrics import pairwise_distances
from umap.umap_ import fuzzy_simplicial_set, nearest_neighbors, smooth_knn_dist

EXPECTED = {"numpy": "2.4.6", "scipy": "1.17.1", "scikit-learn": "1.9.1", "umap-learn": "0.5.12"}
FOUND = {"numpy": np.__version__, "scipy": scipy.__version__, "scikit-learn": sklearn.__version__,
         "umap-learn": umap.__version__}
ROLES, PROMPTS, NEIGHBOURS = 12, 5, 10


def spearman():
    n_prompts, both, spd = ROLES * PROMPTS, [], []
    for role in range(ROLES):
        both.append((role * 7 + 3) % 6)
        spd.append(np.mean([((role * 37 + i * 11) % 41) / 20.5 for i in range(PROMPTS)]))
    n_male = sum(both)
    pmi = [np.log2(n_prompts * b / (PROMPTS * n_male)) if b else np.nan for b in both]
    vectors = np.array([[((j * 29 + k * 17) % 23 - 11) / 7 for k in range(3)] for j in range(ROLES + 1)])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    out = []
    for x in (both, pmi, unit[:ROLES] @ unit[ROLES]):
        keep = ~np.isnan(np.asarray(x, float))
        out += list(st.spearmanr(np.asarray(x, float)[keep], np.asarray(spd)[keep]))
    return out


def rows():
    """Three clusters of 20 rows; the last dimension separates them least."""
    return np.array([[((i * 131 + k * 57 + i * i * (k + 3)) % 101) / 100 + (6 if i // 20 == k else 0)
                      for k in range(5)] for i in range(60)])


def main():
    assert FOUND == EXPECTED, f"expected {EXPECTED}, found {FOUND}"
    x = rows()
    indices, distances, _ = nearest_neighbors(pairwise_distances(x), NEIGHBOURS, "precomputed", {}, False,
                                              np.random.RandomState(0))
    sigmas, rhos = smooth_knn_dist(distances.astype(np.float32), float(NEIGHBOURS))
    graph, _, _ = fuzzy_simplicial_set(x, NEIGHBOURS, np.random.RandomState(0), "euclidean", knn_indices=indices,
                                       knn_dists=distances.astype(np.float32))
    y = np.array([[(i * 17 + (i // 20) * 40) % 89 / 10 + i * i / 977, (i * 7) % 31 / 10 + i**3 / 99991] for i in range(60)])
    blocks = {
        "spearman": spearman(),
        "knn": np.concatenate([sigmas, rhos]),
        "graph": graph.toarray().ravel(),
        "trust": [trustworthiness(x, y, n_neighbors=k) for k in (5, 10, 20)],
    }
    text = "# generate_t2i_probes.py: " + ", ".join(f"{k} {v}" for k, v in FOUND.items()) + "\n"
    for name, values in blocks.items():
        text += f"{name} {len(values)}\n" + "\n".join(f"{v:.9g}" if name == "graph" else f"{v:.17g}" for v in values)
        text += "\n"
    (pathlib.Path(__file__).parent / "data/t2i_probes.txt").write_text(text)


main()
