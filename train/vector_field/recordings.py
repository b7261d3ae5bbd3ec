"""Files of recorded data: what they must hold, what is refused, what is unusual about them."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from train.host import array_files
from train.host.records import write_arrays

HUGE, TINY = 1e15, 1e-15
"""Numbers beyond these have squares and sums of squares that float32 cannot hold."""
USUAL = (1e-3, 1e3)
"""Standard deviations of data that learn well; others are named."""
SHOWN_CHANNELS = 8


class Data(NamedTuple):
    """Episodes of one length; float32."""

    y: np.ndarray  # [E, T, n]
    u: np.ndarray  # [E, T, m]


def write_experiments(
    directory: Path,
    samples: dict[str, np.ndarray],
    seeds: list[int],
    policies: tuple[str, ...],
    fields: tuple[str, ...],
) -> list[Path]:
    """Writes `recordings/POLICY-FIELD-seedN.npz` for each experiment.

    `samples` are `[S, P, F, T, ...]`. Each file holds what `load` reads, `y` `[T, n]` and `u`
    `[T, m]`, and beside it the true state `z` `[T, 2]` and the learner's `belief` `[T, d]`.
    """
    folder, paths = directory / "recordings", []
    folder.mkdir(exist_ok=True)
    for s, seed in enumerate(seeds):
        for p, policy in enumerate(policies):
            for f, field in enumerate(fields):
                paths.append(folder / f"{policy}-{field}-seed{seed}.npz")
                write_arrays(paths[-1], {name: x[s, p, f] for name, x in samples.items()})
    return paths


def load(path: str) -> Data:
    """Reads and checks a file. Raises ValueError, which says what is wrong with it."""
    wanted = "expected an npz file with y [T, n] or [E, T, n] and u [T, m] or [E, T, m]"
    try:
        arrays = array_files.read_npz(path, ("y", "u"))
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}; {wanted}") from None
    except ValueError as error:
        raise ValueError(f"{path} cannot be read ({error}); {wanted}") from None
    for name in ("y", "u"):
        if name not in arrays:
            raise ValueError(f"{path} has no array {name!r}; {wanted}")
    if arrays["y"].ndim == 2 and arrays["u"].ndim == 1:
        arrays["u"] = arrays["u"][:, None]  # one input
    for name, array in arrays.items():
        if array.ndim not in (2, 3) or array.ndim != arrays["y"].ndim or not array.size:
            raise ValueError(f"{name} in {path} has shape {array.shape}; {wanted}")
        if not np.isfinite(array).all():
            count = int(np.sum(~np.isfinite(array)))
            raise ValueError(
                f"{name} in {path} has {count} values that are NaN or infinite; cut them out or "
                "fill them in"
            )
    _refuse_scale(path, arrays)
    y, u = arrays["y"], arrays["u"]
    if y.shape[:-1] != u.shape[:-1]:
        raise ValueError(
            f"y and u in {path} have shapes {y.shape} and {u.shape}; expected as many steps of both"
        )
    if y.ndim == 2:
        y, u = y[None], u[None]
    return Data(y.astype(np.float32), u.astype(np.float32))


def _refuse_scale(path: str, arrays: dict[str, np.ndarray]) -> None:
    """Raises ValueError for numbers that float32 cannot learn from, and y that never changes."""
    for name, array in arrays.items():
        largest = np.abs(array).max()
        if largest > HUGE:
            raise ValueError(
                f"{name} in {path} has values up to {largest:.2g}; expected at most {HUGE:g}: "
                "divide by their standard deviation"
            )
    y = arrays["y"].reshape(-1, arrays["y"].shape[-1])
    span = np.ptp(y, axis=0).max()
    if span == 0:
        raise ValueError(f"y in {path} is constant in every channel; there is nothing to forecast")
    if span < TINY:
        raise ValueError(
            f"y in {path} varies by {span:.2g}; expected more than {TINY:g}: divide by its "
            "standard deviation"
        )
    if np.ptp(y.astype(np.float32), axis=0).max() == 0:
        raise ValueError(
            f"y in {path} varies by {span:.2g} around {np.abs(y).max():.2g}, less than float32 "
            "resolves: subtract the mean"
        )


def oddities(data: Data) -> list[str]:
    """What is unusual about data that can be learned from, a line each; u may be constant."""
    y, found = data.y.reshape(-1, data.y.shape[-1]).astype(float), []
    constant = np.flatnonzero(np.ptp(y, axis=0) == 0)
    if len(constant):
        shown = ", ".join(map(str, constant[:SHOWN_CHANNELS]))
        more = ", …" if len(constant) > SHOWN_CHANNELS else ""
        found.append(
            f"y is constant in {len(constant)} of {y.shape[1]} channels ({shown}{more}, counted "
            "from 0), which adds nothing to the scores: leave them out"
        )
    if not np.any(y < 0) and np.all(y == np.round(y)):
        found.append(
            "y holds counts; --env.noise poisson with --env.observation loglinear is their model"
        )
    for name, array in zip(data._fields, data, strict=True):
        scale = float(np.std(array, axis=(0, 1), dtype=float).max())
        if scale and not USUAL[0] <= scale <= USUAL[1]:
            found.append(
                f"{name} has a standard deviation of {scale:.2g}; learning expects numbers of "
                "order 1: rescale them"
            )
    return found
