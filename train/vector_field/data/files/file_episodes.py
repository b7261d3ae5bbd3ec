"""The episodes that one file holds, as its arrays have them.

Axes: E episodes, T steps of the longest, n channels, m inputs.
"""

import numpy as np

from train.host.files import array_files
from train.vector_field.data import data_checks, spike_times
from train.vector_field.data.files import recording_file


def episodes_of(
    path: str, arrays: dict[str, np.ndarray], bin_width: float, units: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The episodes of one file: y `[T, n]`, NaN where missing, and u `[T, m]` of each."""
    y, u = _with_all_axes(path, arrays.get("y"), arrays["u"])
    with array_files.value_errors_with_path(path):
        lengths = _lengths(arrays.get("lengths"), y, u)
        if y is None:
            spikes = spike_times.read(arrays, len(u))
            if not units:
                raise ValueError("there are no spikes")
            data_checks.refuse_turned(u, spikes.times, bin_width)
            rows = lengths
            lengths, end = spike_times.lengths(arrays, rows, bin_width)
            y = spike_times.counts(spikes, lengths, end, bin_width, units)
            spike_times.tell_gaps(path, spikes, rows, lengths, bin_width)
    if len(lengths) > len(u):  # episodes in a row
        y, u = (np.split(x[0], np.cumsum(lengths)[:-1]) for x in (y, u))
    y, u = ([x[:n] for x, n in zip(sequences, lengths, strict=True)] for sequences in (y, u))
    data_checks.refuse_infinite(path, y, u)
    return list(zip(y, u, strict=True))


def _with_all_axes(
    path: str, y: np.ndarray | None, u: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray]:
    """y `[E, T, n]`, None for spike times, and u `[E, T, m]`; one channel needs no axis.

    Raises ValueError for shapes that do not fit together.
    """
    arrays = {"u": u} if y is None else {"y": y, "u": u}
    axes = max(2, max(x.ndim for x in arrays.values()))
    full = {name: x[..., None] if x.ndim == axes - 1 else x for name, x in arrays.items()}
    for name, x in full.items():
        if x.ndim not in (2, 3) or not x.size or x.ndim != axes:
            raise ValueError(
                f"{name} in {path} has shape {arrays[name].shape}; {recording_file.EXPECTED}"
            )
    if len({x.shape[:-1] for x in full.values()}) > 1:
        shapes = " and ".join(str(x.shape) for x in arrays.values())
        raise ValueError(
            f"y and u in {path} have shapes {shapes}; expected as many steps of both, T in [T, n] "
            "and [T, m]: transpose what has time along its last axis"
        )
    if all(x.ndim == 2 and len(x) == 1 < x.shape[1] for x in full.values()):
        shapes = " and ".join(f"{name} {x.shape}" for name, x in full.items())
        raise ValueError(
            f"{path} has one step of many channels, {shapes}; expected a row for each step: "
            "transpose them"
        )
    # float64 only where float32 would round: the largest files are of small whole numbers.
    full = {
        name: x.astype(np.result_type(x, np.float32), copy=False).reshape(-1, *x.shape[-2:])
        for name, x in full.items()
    }
    return full.get("y"), full["u"]


def _lengths(numbers: np.ndarray | None, y: np.ndarray | None, u: np.ndarray) -> np.ndarray:
    """Steps `[E]` of each episode: as the file says, or up to where y and u are NaN to the end.

    One row of y may hold several episodes that follow each other.
    """
    count, steps = u.shape[:2]
    if numbers is None:
        is_missing = np.all(np.isnan(u if y is None else np.concatenate([y, u], -1)), axis=2)
        last = steps - np.argmin(is_missing[:, ::-1], axis=1)
        return np.where(is_missing.all(axis=1), steps, last)
    lengths, is_row = array_files.to_integers(numbers.reshape(-1)), count == 1 and y is not None
    if lengths is None or np.any(lengths < 1) or np.any(lengths > steps):
        lengths = np.zeros(0, int)  # which fit nothing
    if len(lengths) != count and not (is_row and lengths.sum() == steps):
        together = f", or add up to {steps}, one episode after the other" if is_row else ""
        raise ValueError(
            f"lengths must be [{count}] whole numbers from 1 to {steps}, steps of each{together}"
        )
    return lengths
