"""Recorded vectors divided into cells, on which their pairs can be counted."""

from typing import NamedTuple

import numpy as np
from scipy.cluster import vq
from scipy.spatial import KDTree

CELLS = 400
"""Cells, at most: their matrix of pairs is exact, and finer ones would hold few pairs."""
SHOWN = 20_000
"""Vectors that the cells are chosen by, at most."""


class Cells(NamedTuple):
    """P cells: a vector belongs to the one whose middle is nearest."""

    middles: np.ndarray  # float32 [P, D]
    first_cells: np.ndarray  # int32 [n]
    second_cells: np.ndarray  # int32 [n]


def divide(first: np.ndarray, second: np.ndarray, least: int) -> Cells:
    """Cells of recorded transitions, `[n, D]` each, by k-means (Ulam's method on Voronoi cells).

    There are at most `CELLS`, and about 50 transitions begin in each. The same data give the same
    cells. Raises ValueError if there are fewer distinct vectors than `least`.
    """
    rng = np.random.default_rng(0)
    sample = np.unique(first[rng.permutation(len(first))[:SHOWN]].astype(float), axis=0)
    distinct = len(sample)
    count = int(min(CELLS, distinct, max(len(first) // 50, least)))
    if count < least:
        raise ValueError(
            f"{distinct} different vectors were recorded; expected at least {least}, as many as "
            "agent.num_features"
        )
    first_middles = sample[rng.permutation(len(sample))[:count]]
    middles, label = vq.kmeans2(sample, first_middles, minit="matrix", iter=20)
    middles = middles[np.unique(label)].astype(np.float32)  # none is empty
    tree = KDTree(middles)
    nearest = lambda x: np.asarray(tree.query(x)[1], np.int32)
    return Cells(middles, nearest(first), nearest(second))
