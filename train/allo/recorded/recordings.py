"""Files of recorded trajectories: what they must hold, and what is refused.

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

from functools import cache
from typing import NamedTuple

import numpy as np

from jaxrl.spectral import recorded_pairs
from train.allo.recorded import id_positions
from train.host.files import array_files
from train.host.machine.progress import print_once
from train.host.numbers import listing, quantity

NAMES = ("states", "successors", "ends", "lengths", "positions")
MOST_IDS = 5_000
"""Ids, at most: the truth is computed from a matrix of states by states."""
LARGEST = 1e15
NARROW = 1 / 50
"""Of the widest range of a coordinate: what varies less may be in another unit, and is not seen."""
FEW = 10
"""Moments: fewer, each of more numbers, are taken for an array that is transposed."""
EXPECTED = (
    "expected an .npz file with states: ids (integers) [T] or [E, T], or vectors [T, D] or "
    "[E, T, D]"
)


class Recording(NamedTuple):
    """n transitions, trajectory after trajectory."""

    state: np.ndarray  # int32 [n], or float32 [n, D] in -1 to 1
    next_state: np.ndarray
    left: np.ndarray  # int32 [n], transitions left in the trajectory, this one included
    places: np.ndarray  # int32 [m] or float32 [m, D]: all recorded states, in the file's order
    num_ids: int  # S; 0 for vectors
    positions: np.ndarray | None  # float64 [S, 2 or 3], as given
    middle: np.ndarray  # float64 [D]: a vector x is seen as (x - middle) / scale
    scale: float

    @property
    def trajectories(self) -> int:
        return int(np.sum(self.left == 1))

    @property
    def occurs(self) -> np.ndarray:
        """Which ids are before or after a transition, bool `[S]`: of others nothing is learned."""
        occurs = np.zeros(self.num_ids, bool)
        if self.num_ids:
            occurs[self.state] = occurs[self.next_state] = True
        return occurs

    @property
    def points(self) -> np.ndarray | None:
        """Where the recorded places are, in 2 or 3 dimensions; None if nobody can say."""
        if self.num_ids:
            return None if self.positions is None else self.positions[self.places]
        vectors = self.places * self.scale + self.middle
        return vectors if vectors.shape[1] in (2, 3) else None


def load(path: str) -> Recording:
    """Reads and checks a file. Raises ValueError, in one line, which says what is wrong with it."""
    # The shape says whether states are ids or vectors.
    arrays = read(path)
    states = arrays["states"]
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
    # One row for each moment; those that only fill up short episodes are left out.
    rows = states.reshape(-1) if is_ids else states.reshape(-1, states.shape[-1])
    ends, counts = endings(path, arrays, states.shape if is_ids else states.shape[:-1])
    rows_by_name = {"states": rows[counts]}  # without what only fills rows up
    if "successors" in arrays:
        rows_by_name["successors"] = arrays["successors"].reshape(rows.shape)[counts]
    for name, values in rows_by_name.items():
        if is_ids:
            _check_ids(path, name, values)
        else:
            rows_by_name[name] = _vectors(path, name, values)
    # Transitions: from each state to its successor, else to the next state of its episode.
    places, ends = rows_by_name["states"], ends[counts]
    if "successors" in rows_by_name:
        first, second = places, rows_by_name["successors"]
        is_break = second[:-1] != first[1:]
        ends[:-1] |= np.any(is_break, axis=tuple(range(1, is_break.ndim)))
    else:
        begins = np.flatnonzero(~ends)
        first, second, ends = places[begins], places[begins + 1], ends[begins + 1]
    if len(first) == 0:
        raise ValueError(f"{path} holds no transition; expected trajectories of two states or more")
    # Numbers as the network takes them.
    left = recorded_pairs.transitions_left(ends)
    if is_ids:
        recording = _make_id_recording(
            path, first, second, left, places, id_positions.read(path, arrays, LARGEST)
        )
    else:
        if "positions" in arrays:
            print_once(f"{path}: not read: positions; they are of ids, and states are vectors")
        recording = _make_vector_recording(path, first, second, left, places)
    _print_once(_line(path, states, recording))
    return recording


@cache
def _print_once(line: str) -> None:
    """Says what was read, once for each file."""
    print(line)


def _line(path: str, states: np.ndarray, recording: Recording) -> str:
    """What a recording was taken for.

    Whole coordinates look like ids of many short episodes, ids saved as floats like vectors.
    """
    contents = (
        f"{recording.num_ids:,} ids"
        if recording.num_ids
        else f"vectors of {quantity(recording.places.shape[1], 'numbers')}"
    )
    amount = f"{quantity(len(recording.left), 'transitions')} in "
    amount += quantity(recording.trajectories, "trajectories")
    hint = ""
    if recording.num_ids > 0 and states.ndim == 2 and states.shape[1] in (2, 3):
        hint = "; if they are coordinates, save states.astype(float)"
    if recording.num_ids == 0 and _are_like_ids(states):
        hint = "; if they are ids of episodes in rows, save states.astype(int)"
    count = int(np.sum(recording.occurs))
    occurring = f"; {count:,} of {recording.num_ids:,} ids occur" * (count < recording.num_ids)
    return f"{path}: {amount}, between {contents}{hint}{occurring}"


def _are_like_ids(states: np.ndarray) -> bool:
    """Whether vectors could be ids `[E, T]`: whole, none negative, and no two or three to a row."""
    if states.ndim != 2 or states.shape[1] <= 3 or states.dtype.kind != "f":
        return False
    ids = array_files.to_integers(states)
    return ids is not None and ids.min() >= 0 and 1 < ids.max() < MOST_IDS


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


def _check_ids(path: str, name: str, ids: np.ndarray) -> None:
    """Raises ValueError for ids out of range."""
    if ids.dtype.kind not in "iu" or ids.min() < 0 or ids.max() >= MOST_IDS:
        raise ValueError(
            f"{name} in {path} are {ids.dtype} from {ids.min()} to {ids.max()}; expected ids "
            f"from 0 to at most {MOST_IDS - 1:,}: number the states that occur (np.unique with "
            "return_inverse), or give vectors"
        )


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


def _make_id_recording(
    path: str,
    first: np.ndarray,
    second: np.ndarray,
    left: np.ndarray,
    places: np.ndarray,
    positions: np.ndarray | None,
) -> Recording:
    num_ids = int(max(first.max(), second.max(), places.max())) + 1
    if positions is not None:
        if not num_ids <= len(positions) <= MOST_IDS:
            raise ValueError(
                f"positions in {path} are of {len(positions):,} ids; expected {num_ids:,} to "
                f"{MOST_IDS:,}, one of each id"
            )
        num_ids = len(positions)
    if num_ids < 2:
        raise ValueError(f"{path} holds one state only; expected at least two ids")
    first, second = first.astype(np.int32), second.astype(np.int32)
    empty = np.zeros(0)
    return Recording(first, second, left, places.astype(np.int32), num_ids, positions, empty, 1.0)


def narrow_warning(path: str, ranges: np.ndarray) -> str:
    """What is said of coordinates that hardly vary beside the widest; empty if there are none.

    One scale serves all, so that distances stay what they are. A constant tells nothing in any.
    """
    widest, top = int(np.argmax(ranges)), float(ranges.max())
    narrow = {i: x for i, x in enumerate(ranges.tolist()) if 0 < x < NARROW * top}
    if not narrow:
        return ""
    one = len(narrow) == 1
    return (
        f"{path}: coordinate{'s' * (not one)} {listing(list(map(str, narrow)))} (counted from 0) "
        f"var{'ies' if one else 'y'} over {listing([f'1/{top / x:,.0f}' for x in narrow.values()])}"
        f" of the range of coordinate {widest}, {top:.4g}, and one scale serves all, so "
        f"{'it is' if one else 'they are'} hardly seen: give all in the same unit, or scale them "
        "before"
    )


def _make_vector_recording(path: str, *parts: np.ndarray) -> Recording:
    """Centred, and the widest coordinate scaled to -1 to 1."""
    first, second, left, places = (np.asarray(x, float) for x in parts)
    low = np.minimum(places.min(axis=0), second.min(axis=0))
    high = np.maximum(places.max(axis=0), second.max(axis=0))
    middle, scale = (low + high) / 2, float((high - low).max() / 2)
    if scale == 0:
        raise ValueError(f"states in {path} never change; there is nothing to learn")
    warning = narrow_warning(path, high - low)
    if warning:
        print_once(warning)
    scaled = [((x - middle) / scale).astype(np.float32) for x in (first, second, places)]
    left = left.astype(np.int32)
    return Recording(scaled[0], scaled[1], left, scaled[2], 0, None, middle, scale)
