"""Tracks of cells in a normal form, and what is refused of a recording.

A cell is born in its first frame and dies after its last, unless the recording ends there. n rows
(places that were seen), C cells.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from train.host.numbers import quantity


class Tracks(NamedTuple):
    """What a recording holds; frames count from 0."""

    cell: np.ndarray  # int [n], of each place
    frame: np.ndarray  # int [n]
    x: np.ndarray  # float [n] px
    y: np.ndarray  # float [n] px
    parent: np.ndarray  # int [C], -1 for none
    first: np.ndarray  # int [C], first frame
    last: np.ndarray  # int [C], last frame
    frames: int  # of the recording
    notes: tuple[str, ...] = ()  # what was done to bring the file into this form
    pixel_size: float | None = None  # µm of a px, of a file in µm

    @property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean place of every cell, `[C]` each: in the model they never move."""
        count = np.bincount(self.cell, minlength=len(self.parent))
        x, y = (np.bincount(self.cell, v, len(self.parent)) / count for v in (self.x, self.y))
        return x, y

    @property
    def num_births(self) -> int:
        return int(np.sum(self.parent >= 0))

    @property
    def num_deaths(self) -> int:
        return int(np.sum(self.last < self.frames - 1))


class Rows(NamedTuple):
    """What a file says, a row for each place; names are as in the file."""

    cell: Sequence[str]
    frame: np.ndarray  # float [n]
    x: np.ndarray  # float [n]
    y: np.ndarray  # float [n]
    parent: dict[str, str]  # of cells that have one
    spans: Mapping[str, tuple[int, int]] = MappingProxyType(
        {}
    )  # first and last frame, where places do not say
    notes: tuple[str, ...] = ()
    end: int | None = None  # last frame that was recorded, perhaps without cells; None: with some


def assemble(path: str, rows: Rows) -> Tracks:
    """The tracks of a file. Raises ValueError, in one line, for what is no recording of cells."""
    refuse_numbers(path, rows)
    names = list(dict.fromkeys([*rows.cell, *rows.spans]))
    index = {name: i for i, name in enumerate(names)}
    frame, cell = rows.frame.astype(int), np.array([index[name] for name in rows.cell])
    refuse_repeats(path, names, cell, frame)
    limits = np.iinfo(int)  # numbers of frames may be negative
    first, last = np.full(len(names), limits.max), np.full(len(names), limits.min)
    np.minimum.at(first, cell, frame)
    np.maximum.at(last, cell, frame)
    for name, (begin, end) in rows.spans.items():
        first[index[name]], last[index[name]] = begin, end
    parent = parents(path, rows.parent, index, first)
    start, step = spacing(first, last, frame)
    end = max(last.max(), last.max() if rows.end is None else rows.end)
    if end == start:
        raise ValueError(f"{path} has one frame only; a fit needs two at least")
    frame, first, last, end = ((x - start) // step for x in (frame, first, last, end))
    notes = rows.notes + (f"frames are numbered by {step}: a step is {step} of them",) * (step > 1)
    order = np.lexsort((frame, cell))
    places = (cell[order], frame[order], rows.x[order], rows.y[order])
    return continue_mothers(Tracks(*places, parent, first, last, int(end) + 1, notes))


def refuse_numbers(path: str, rows: Rows) -> None:
    """Raises ValueError for no rows, and for numbers that no place or frame can have."""
    if not len(rows.frame):
        raise ValueError(f"{path} has no cells; expected a row for every cell and frame")
    for name, values in (("frame", rows.frame), ("x", rows.x), ("y", rows.y)):
        wrong = int(np.sum(~np.isfinite(values)))
        if wrong:
            raise ValueError(
                f"{path} has {quantity(wrong, 'rows')} whose {name} is no finite number, the first "
                f"of cell {rows.cell[int(np.argmin(np.isfinite(values)))]}: leave such rows out"
            )
    if np.any(rows.frame % 1) or np.abs(rows.frame).max() > 2**31 - 1:
        raise ValueError(f"{path} has frames that are no whole numbers; expected 0, 1, 2, …")


def refuse_repeats(path: str, names: Sequence[str], cell: np.ndarray, frame: np.ndarray) -> None:
    """Raises ValueError for a cell with two places in one frame."""
    pairs, counts = np.unique(np.stack([cell, frame]), axis=1, return_counts=True)
    if counts.max() > 1:
        which, when = pairs[:, np.argmax(counts > 1)]
        raise ValueError(
            f"{path} has cell {names[which]} {counts.max()} times in frame {when}; expected a row "
            "for each cell and frame: give daughters names of their own"
        )


def parents(
    path: str, named: dict[str, str], index: dict[str, int], first: np.ndarray
) -> np.ndarray:
    """The parent of every cell, int `[C]`, -1 for none. Raises ValueError for impossible ones."""
    parent = np.full(len(index), -1)
    for child, name in named.items():
        if name not in index:
            raise ValueError(
                f"{path}: the parent of cell {child} is {name}, which has no rows; leave the "
                "parent of cells without one empty"
            )
        if first[index[name]] >= first[index[child]]:
            raise ValueError(
                f"{path}: cell {child} appears in frame {first[index[child]]}, but its parent "
                f"{name} in frame {first[index[name]]}; expected parents before their children"
            )
        parent[index[child]] = index[name]
    return parent


def spacing(first: np.ndarray, last: np.ndarray, frame: np.ndarray) -> tuple[int, int]:
    """The first frame, and by how much frames are numbered on."""
    numbers = np.unique(np.concatenate([first, last, frame]))
    return int(numbers[0]), math.gcd(*np.diff(numbers).tolist()) or 1


def continue_mothers(tracks: Tracks) -> Tracks:
    """Tracks in which a mother that ends where daughters begin lives on as the nearest of them.

    Many tracking programs end a cell when it divides and name two daughters; in the model the
    mother stays and has one child. A single daughter is a track that was interrupted.
    """
    x, y = tracks.places
    first, last, parent = tracks.first.copy(), tracks.last.copy(), tracks.parent.copy()
    children, owner = defaultdict(list), np.arange(len(parent))
    for child in np.flatnonzero(parent >= 0):
        children[int(parent[child])].append(int(child))
    for mother in np.argsort(first, kind="stable").tolist():
        while owner[mother] == mother:
            later = [c for c in children[mother] if first[c] > last[mother]]
            if not later:
                break
            begin = min(first[c] for c in later)
            distance = lambda c, at=mother: math.hypot(x[c] - x[at], y[c] - y[at])
            heir = min((c for c in later if first[c] == begin), key=distance)
            owner[heir], last[mother] = mother, last[heir]
            parent[children[heir]] = mother
            children[mother] += children.pop(heir, [])
            children[mother].remove(heir)
    count = int(np.sum(owner != np.arange(len(owner))))
    if not count:
        return tracks
    survivors = np.flatnonzero(owner == np.arange(len(owner)))
    number = np.cumsum(owner == np.arange(len(owner))) - 1
    number = number[roots(owner)]
    cell = number[tracks.cell]
    order = np.lexsort((tracks.frame, cell))
    parent = np.where(parent[survivors] >= 0, number[parent[survivors]], -1)
    mothers = f"{quantity(count, 'mothers')} that ended at a division"
    note = f"{mothers} {'lives' if count == 1 else 'live'} on as the nearest daughter"
    return Tracks(
        cell=cell[order],
        frame=tracks.frame[order],
        x=tracks.x[order],
        y=tracks.y[order],
        parent=parent,
        first=first[survivors],
        last=last[survivors],
        frames=tracks.frames,
        notes=(*tracks.notes, note),
    )


def roots(owner: np.ndarray) -> np.ndarray:
    """Who owns each in the end, int `[C]`, by following `owner` until nothing changes."""
    while np.any(owner[owner] != owner):
        owner = owner[owner]
    return owner
