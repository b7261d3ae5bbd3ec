"""Parts of recorded data that no transition connects."""

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

SHOWN = 6
"""Sizes of parts that are told, at most."""


def sizes(first: np.ndarray, second: np.ndarray) -> list[int]:
    """How many places each part has, largest first; transitions connect in either direction.

    `first` and `second` are places before and after, int `[n]` each; others do not count.
    """
    occurring, index = np.unique(np.concatenate([first, second]), return_inverse=True)
    links = (np.ones(len(first)), (index[: len(first)], index[len(first) :]))
    graph = sparse.coo_array(links, shape=(len(occurring), len(occurring))).tocsr()
    labels = csgraph.connected_components(graph, connection="weak")[1]
    return sorted(np.bincount(labels).tolist(), reverse=True)


def warning(path: str, first: np.ndarray, second: np.ndarray, things: str) -> str:
    """A line on parts that never meet; nothing if all places are connected."""
    parts = sizes(first, second)
    if len(parts) == 1:
        return ""
    largest = " and ".join(f"{size:,}" for size in parts[:SHOWN])
    smaller = " in the largest" * (len(parts) > SHOWN)
    return (
        f"{path}: no transition connects {len(parts):,} parts of the data, of {largest} {things}"
        f"{smaller}; the first {len(parts):,} eigenvectors then only tell the parts apart"
    )
