"""Recorded trajectories as transitions between ids or vectors, as a network takes them."""

from functools import cache
from typing import NamedTuple

import numpy as np

from jaxrl.spectral import recorded_pairs
from train.allo.recorded import id_positions, trajectories
from train.allo.recorded.trajectories import LARGEST, MOST_IDS, Moments
from train.host.files import array_files
from train.host.machine.progress import print_once
from train.host.numbers import listing, quantity

NARROW = 1 / 50
"""Of the widest range of a coordinate: what varies less may be in another unit, and is not seen."""


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
    arrays = trajectories.read(path)
    is_ids = trajectories.are_ids(path, arrays["states"])
    moments = trajectories.moments(path, arrays, is_ids)
    first, second, ends = _transitions(moments)
    if len(first) == 0:
        raise ValueError(f"{path} holds no transition; expected trajectories of two states or more")
    # Numbers as the network takes them.
    parts = first, second, recorded_pairs.transitions_left(ends), moments.states
    if is_ids:
        recording = _make_id_recording(path, *parts, id_positions.read(path, arrays, LARGEST))
    else:
        if "positions" in arrays:
            print_once(f"{path}: not read: positions; they are of ids, and states are vectors")
        recording = _make_vector_recording(path, *parts)
    _print_once(_line(path, arrays["states"], recording))
    return recording


def _transitions(moments: Moments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States, their successors and whether a trajectory ends: else it is the next of an episode."""
    states, successors, ends = moments
    if successors is None:
        begins = np.flatnonzero(~ends)
        return states[begins], states[begins + 1], ends[begins + 1]
    is_break = successors[:-1] != states[1:]
    breaks = np.any(is_break, axis=tuple(range(1, is_break.ndim)))
    return states, successors, ends | np.append(breaks, False)


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
