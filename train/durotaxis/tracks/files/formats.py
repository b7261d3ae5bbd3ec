"""Files of tracks, recognised by their columns.

| columns | format |
|---|---|
| frame, cell, parent, x, y | a row for each cell and frame; x_um and y_um for µm |
| ID, TRACK_ID, FRAME, POSITION_X, POSITION_Y | spots of TrackMate; divisions need its edges |
| L B E P, perhaps X Y | lineages of the Cell Tracking Challenge |
"""

import numpy as np

from train.durotaxis.tracks.files import label_images, missing, trackmate
from train.durotaxis.tracks.files.columns import (
    Columns,
    is_number,
    numbers,
    plain_name,
    read_columns,
)
from train.durotaxis.tracks.tracks import Rows, Tracks, assemble
from train.host.numbers import quantity

OWN = ("frame", "cell", "parent")
LINEAGE = ("L", "B", "E", "P")
EXPECTED = (
    "expected columns frame, cell, parent, x, y; spots of TrackMate with ID, TRACK_ID, FRAME, "
    "POSITION_X, POSITION_Y; or L B E P of the Cell Tracking Challenge"
)
NAMELESS = {4: LINEAGE, 6: (*LINEAGE, "X", "Y")}
"""The columns of tables without names, as man_track.txt is, by their number."""
NO_CELL = ("", "nan", "NaN", "None")
LARGEST_NUMBER = 2**31


def read(path: str, edges: str = "", pixel_size: float | None = None) -> Tracks:
    """The tracks in a file, in px, with a first note that says what it was taken for.

    `edges` is TrackMate's table of links, `pixel_size` the µm of a px. Raises ValueError, in one
    line, for any other file and for tracks that cannot be.
    """
    columns = read_columns(path, EXPECTED, NAMELESS)
    upper = {name.upper(): name for name in columns}
    if set(trackmate.SPOTS) <= upper.keys():
        links = read_columns(edges, trackmate.EXPECTED_EDGES) if edges else None
        rows, unit = trackmate.read(path, columns, links, edges)
        name = "spots of TrackMate"
    elif edges:
        raise ValueError(
            f"--edges belongs to spots of TrackMate, but {path} has none: leave it out"
        )
    elif set(LINEAGE) <= upper.keys():
        rows, unit = read_lineage(path, {x.upper(): columns[x] for x in columns}), "px"
        name = "lineages of the Cell Tracking Challenge"
    else:
        rows, unit = read_own(path, {x.lower(): columns[x] for x in columns})
        name = "a row for each cell and frame"
    rows = to_pixels(path, rows, unit, pixel_size)
    tracks = assemble(path, rows)
    size = f"{quantity(len(tracks.parent), 'cells')} in {quantity(tracks.frames, 'frames')}"
    counts = f"{quantity(tracks.num_births, 'births')}, {quantity(tracks.num_deaths, 'deaths')}"
    line = f"{path}: {name}, places in {unit}; {size}, {counts}"
    has_spans_alone = bool(rows.spans) and {"X", "Y"} <= upper.keys()  # a place for each track
    gaps = () if has_spans_alone else missing.notes(tracks)
    pixel_size = pixel_size if unit == "µm" else None
    return tracks._replace(notes=(line, *tracks.notes, *gaps), pixel_size=pixel_size)


def read_own(path: str, columns: Columns) -> tuple[Rows, str]:
    """Rows of the format of this program, and the unit of its places."""
    in_um = "x_um" in columns
    places = ("x_um", "y_um") if in_um else ("x", "y")
    missing = [name for name in (*OWN, *places) if name not in columns]
    if missing:
        raise ValueError(f"{path} has no column {' and '.join(missing)}; {EXPECTED}")
    frame, x, y = (numbers(path, name, columns[name]) for name in ("frame", *places))
    cell = [plain_name(word) for word in columns["cell"]]
    unnamed = next((i for i, word in enumerate(cell) if word in NO_CELL), None)
    if unnamed is not None:
        raise ValueError(
            f"{path} has no cell in row {unnamed + 1}; expected its name: leave such rows out"
        )
    parent: dict[str, str] = {}
    for name, word in zip(cell, map(plain_name, columns["parent"]), strict=True):
        if not is_no_parent(word) and parent.setdefault(name, word) != word:
            raise ValueError(f"{path}: cell {name} has the parents {parent[name]} and {word}")
    return Rows(cell, frame, x, y, parent), "µm" if in_um else "px"


def is_no_parent(word: str) -> bool:
    """Whether a cell has no parent: -1, as numpy.savetxt writes it too, or a gap."""
    return word in NO_CELL or (is_number(word) and float(word) == -1)


def read_lineage(path: str, columns: Columns) -> Rows:
    """Rows of `L B E P`: label, first and last frame, parent or 0.

    Places are in two columns more, or in the label images beside the file.
    """
    label, begin, end, parent = (numbers(path, name, columns[name]) for name in LINEAGE)
    table = np.stack([label, begin, end, parent])
    if not np.all(np.abs(table) < LARGEST_NUMBER) or np.any(table % 1):
        raise ValueError(f"{path} has gaps or fractions in L B E P; expected whole numbers")
    names = [str(int(number)) for number in label]
    if len(set(names)) < len(names):
        raise ValueError(f"{path} has a label twice; expected a row for each track")
    if np.any(end < begin):
        raise ValueError(
            f"{path}: track {names[int(np.argmax(end < begin))]} ends before it begins"
        )
    parents = {n: str(int(p)) for n, p in zip(names, parent, strict=True) if p > 0}
    spans = {n: (int(b), int(e)) for n, b, e in zip(names, begin, end, strict=True)}
    if {"X", "Y"} <= columns.keys():
        x, y = (numbers(path, name, columns[name]) for name in ("X", "Y"))
        return Rows(names, begin, x, y, parents, spans)
    cell, frame, x, y, last_image = label_images.centroids(path)
    refuse_other_labels(path, spans, cell, frame)
    return Rows(cell, frame, x, y, parents, spans, end=last_image)


def refuse_other_labels(
    path: str, spans: dict[str, tuple[int, int]], cell: list[str], frame: np.ndarray
) -> None:
    """Raises ValueError where label images show other tracks than a lineage, or in other frames."""
    seen_cells = set(cell)
    absent = [name for name in spans if name not in seen_cells]
    if absent:
        raise ValueError(f"{path} has track {absent[0]}, which no label image beside it shows")
    for name, time in zip(cell, frame, strict=True):
        if name not in spans:
            raise ValueError(
                f"{path} has no track {name}, which the label image of frame {time:.0f} shows: add "
                "its row, or set these px to 0"
            )
        begin, end = spans[name]
        if not begin <= time <= end:
            raise ValueError(
                f"{path} has track {name} in frames {begin} to {end}, but the label image of frame "
                f"{time:.0f} shows it, too; expected a table and images of the same tracks"
            )


def to_pixels(path: str, rows: Rows, unit: str, pixel_size: float | None) -> Rows:
    """The rows with places in px of the ground. Raises ValueError for µm without a scale."""
    if unit == "px":
        return rows
    if pixel_size is None:
        raise ValueError(
            f"{path} has places in µm; say how many µm a px of the ground is with --pixel-size "
            "(1, if the law of the ground is one of µm)"
        )
    return rows._replace(x=rows.x / pixel_size, y=rows.y / pixel_size)
