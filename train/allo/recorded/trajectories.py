"""Files of trajectories: what they must hold, and what is refused.

An .npz file with `states`: integers are ids of states 0..S-1, other numbers are vectors of D
coordinates. Its shape is `[T]` or `[E, T]` for ids, which may end in an axis of 1, `[T, D]` or
`[E, T, D]` for vectors: T moments of one trajectory, or of each of E. Optional arrays are

* `successors`, of the same shape: the state after each of `states`. A trajectory then goes on only
  where the successor is the next state.
* `ends`, of that shape (without D), 1 at the last of an episode: the last state or, with
  `successors`, the last transition.
* `lengths`: of T moments in a row, how many belong to each episode; of E rows, how many of each
  row count.
* `positions` `[S, 2]` or `[S, 3]`: where each id is, for the network and for pictures.
"""

from typing import NamedTuple

import numpy as np

from train.host.files import array_files
from train.host.machine.progress import print_once

NAMES = ("states", "successors", "ends", "lengths", "positions")
MOST_IDS = 5_000
"""Ids, at most: the truth is computed from a matrix of states by states."""
LARGEST = 1e15
FEW = 10
"""Moments: fewer, each of more numbers, are taken for an array that is transposed."""
EXPECTED = (
    "expected an .npz file with states: ids (integers) [T] or [E, T], or vectors [T, D] or "
    "[E, T, D]"
)


class Moments(NamedTuple):
    """The n moments of all trajectories in a row, without what only fills up short ones."""

    states: np.ndarray  # integers [n], or float64 [n, D]
    successors: np.ndarray | None  # as states; None: the next states of the trajectory
    ends: np.ndarray  # bool [n], the last of an episode


def are_ids(path: str, states: np.ndarray) -> bool:
    """Whether states are ids, or vectors. Raises ValueError for a shape of neither."""
    is_ids = states.dtype.kind in "iu" and states.ndim in (1, 2)
    if not is_ids and states.ndim not in (2, 3):
        raise ValueError(
            f"states in {path} have shape {states.shape} of {states.dtype}; {EXPECTED}: give "
            "states.astype(int) if these are ids, states[:, None] if they are a coordinate"
        )
    if not is_ids and states.ndim == 2 and len(states) < min(FEW, states.shape[1]):
        raise ValueError(
            f"states in {path} are {len(states)} moments of {states.shape[1]:,} numbers each; "
            "expected a row for each moment, [T, D]: transpose them"
        )
    return is_ids


def moments(path: str, arrays: dict[str, np.ndarray], is_ids: bool) -> Moments:
    """The moments of the arrays of a file. Raises ValueError for what does not fit."""
    shape = arrays["states"].shape
    axes, coordinates = (shape, ()) if is_ids else (shape[:-1], shape[-1:])
    ends, counts = endings(path, arrays, axes)

    def rows(name: str) -> np.ndarray:
        values = arrays[name].reshape(-1, *coordinates)[counts]
        return _check_ids(path, name, values) if is_ids else _vectors(path, name, values)

    has_successors = "successors" in arrays
    return Moments(rows("states"), rows("successors") if has_successors else None, ends[counts])


def read(path: str) -> dict[str, np.ndarray]:
    """The arrays of a file that are known. Raises ValueError if it cannot be read."""
    try:
        arrays = array_files.read_npz(path, NAMES)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}; {EXPECTED}") from None
    except ValueError as error:
        raise ValueError(f"{path} cannot be read ({error}); {EXPECTED}") from None
    unread = [name for name in array_files.npz_headers(path) if name not in NAMES]
    if unread:
        absent = [name for name in NAMES if name not in arrays]
        note = array_files.unread_note(unread, ", ".join(NAMES), absent)
        print_once(f"{path}: {note}")
    if "states" not in arrays:
        raise ValueError(f"{path} has no array 'states'; {EXPECTED}")
    if arrays["states"].size == 0:
        raise ValueError(f"states in {path} are empty; {EXPECTED}")
    states = arrays["states"]
    if states.dtype.kind in "iu" and states.ndim in (2, 3) and states.shape[-1] == 1:
        arrays["states"] = states[..., 0]
    if "successors" in arrays:
        arrays["successors"] = _successors(path, arrays["states"], arrays["successors"])
    return arrays


def _successors(path: str, states: np.ndarray, array: np.ndarray) -> np.ndarray:
    """The successors in the shape of the states; as integers if these are, and they are whole."""
    successors = array_files.reshape_unit_axes(array, states.shape)
    if successors is None:
        raise ValueError(
            f"successors in {path} have shape {array.shape}; expected {states.shape}, as states "
            "have"
        )
    integers = array_files.to_integers(successors) if states.dtype.kind in "iu" else None
    return successors if integers is None else integers


def endings(
    path: str, arrays: dict[str, np.ndarray], axes: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """`(ends, counts)`, bool, of all moments in a row: the last of an episode; part of one.

    `axes` are those of `states`: T, or E and T. Raises ValueError for arrays that do not fit.
    """
    ends, counts = np.zeros(axes, bool), np.ones(axes, bool)
    if "ends" in arrays and "lengths" in arrays:
        raise ValueError(f"{path} has both ends and lengths; expected one of them")
    if "ends" in arrays:
        end_flags = array_files.reshape_unit_axes(arrays["ends"], axes)
        expected = f"{axes}, 1 at the last of an episode and else 0"
        if end_flags is None:
            shape = arrays["ends"].shape
            raise ValueError(f"ends in {path} have shape {shape}; expected {expected}")
        others = end_flags[~np.isin(end_flags, (0, 1))]
        if others.size:
            raise ValueError(f"ends in {path} hold {others[0]}; expected {expected}")
        ends = end_flags.astype(bool)
    if "lengths" in arrays:
        ends, counts = _endings_by_length(path, arrays["lengths"], axes)
    ends[..., -1] = True  # a row of [E, T] ends; so does the recording
    return ends.reshape(-1), counts.reshape(-1)


def _endings_by_length(
    path: str, array: np.ndarray, axes: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """The same from lengths: of episodes in a row, or of the rows of E."""
    lengths = array_files.to_integers(array_files.to_vector(array))
    if lengths is None or lengths.ndim != 1 or lengths.min(initial=1) < 1:
        lengths = np.zeros(0, int)  # which fit nothing
    ends, counts = np.zeros(axes, bool), np.ones(axes, bool)
    if len(axes) == 1:
        if lengths.sum(dtype=object) != axes[0]:
            raise ValueError(
                f"lengths in {path} must be integers from 1 on that add up to {axes[0]:,} states"
            )
        ends[np.cumsum(lengths) - 1] = True
        return ends, counts
    if len(lengths) != axes[0] or lengths.max() > axes[1]:
        raise ValueError(
            f"lengths in {path} must be {axes[0]:,} integers from 1 to {axes[1]:,}, one of each row"
        )
    ends[np.arange(axes[0]), lengths - 1] = True
    return ends, np.arange(axes[1]) < lengths[:, None]


def _check_ids(path: str, name: str, ids: np.ndarray) -> np.ndarray:
    """The ids. Raises ValueError where they are out of range."""
    if ids.dtype.kind not in "iu" or ids.min() < 0 or ids.max() >= MOST_IDS:
        raise ValueError(
            f"{name} in {path} are {ids.dtype} from {ids.min()} to {ids.max()}; expected ids "
            f"from 0 to at most {MOST_IDS - 1:,}: number the states that occur (np.unique with "
            "return_inverse), or give vectors"
        )
    return ids


def _vectors(path: str, name: str, values: np.ndarray) -> np.ndarray:
    """The vectors as float64. Raises ValueError for numbers that cannot be learned from."""
    vectors = values.astype(float)
    if vectors.size == 0:
        raise ValueError(f"{name} in {path} have shape {vectors.shape}; {EXPECTED}")
    if not np.isfinite(vectors).all():
        count = int(np.sum(~np.isfinite(vectors)))
        raise ValueError(
            f"{name} in {path} have {count} values that are NaN or infinite; cut them out"
        )
    if np.abs(vectors).max() > LARGEST:
        raise ValueError(f"{name} in {path} have values beyond {LARGEST:g}: rescale them")
    return vectors
