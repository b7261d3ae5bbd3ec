"""Where the ids of a recording are: what a file says of them, and what a network sees."""

from collections.abc import Mapping

import numpy as np

from train.host.numbers import listing


def read(path: str, arrays: Mapping[str, np.ndarray], largest: float) -> np.ndarray | None:
    """`positions`, float64 `[S, 2 or 3]`; None if the file has none.

    Raises ValueError, in one line, for others and for numbers beyond `largest`.
    """
    if "positions" not in arrays:
        return None
    places = arrays["positions"]
    if places.ndim != 2 or places.shape[1] not in (2, 3) or not np.isfinite(places).all():
        raise ValueError(
            f"positions in {path} have shape {places.shape}; expected [S, 2] or [S, 3] of finite "
            "numbers"
        )
    places = places.astype(float)
    if np.abs(places).max(initial=0) > largest:
        raise ValueError(f"positions in {path} have values beyond {largest:g}: rescale them")
    return places


def inputs_of(positions: np.ndarray) -> np.ndarray:
    """The network's input for each id, float32 `[S, 2 or 3]`: the widest range from -1 to 1.

    It is float64 until then: positions far from 0 differ by less than float32 tells apart.
    """
    low, high = positions.min(axis=0), positions.max(axis=0)
    scale = (high - low).max() / 2 or 1.0
    return ((positions - (low + high) / 2) / scale).astype(np.float32)


def warning(path: str, inputs: np.ndarray, occurs: np.ndarray) -> str:
    """A line on ids that the network cannot tell apart; nothing if there are none.

    `inputs` `[S, ...]` are those of the network, and only ids that occur count, bool `[S]`.
    """
    ids = np.flatnonzero(occurs)
    _, group, sizes = np.unique(inputs[ids], axis=0, return_inverse=True, return_counts=True)
    shared = ids[sizes[group.reshape(-1)] > 1]
    if len(shared) == 0:
        return ""
    return (
        f"{path}: {len(shared):,} ids have the same position as another one "
        f"({listing(list(map(str, shared.tolist())))}), and the network cannot tell these apart: "
        "give each a place of its own, or choose network.observation one_hot"
    )
