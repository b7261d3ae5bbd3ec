"""Files of tracks, recognised by their columns.

| columns | format |
|---|---|
| frame, cell, parent, x, y | a row for each cell and frame; x_um and y_um for µm |
| ID, TRACK_ID, FRAME, POSITION_X, POSITION_Y | spots of TrackMate; divisions need its edges |
| L B E P, perhaps X Y | lineages of the Cell Tracking Challenge |
"""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from train.durotaxis.tracks.files import label_images, missing, trackmate
from train.durotaxis.tracks.tracks import Rows, Tracks, assemble
from train.host.numbers import quantity

Columns = dict[str, list[str]]
OWN = ("frame", "cell", "parent")
LINEAGE = ("L", "B", "E", "P")
EXPECTED = (
    "expected columns frame, cell, parent, x, y; spots of TrackMate with ID, TRACK_ID, FRAME, "
    "POSITION_X, POSITION_Y; or L B E P of the Cell Tracking Challenge"
)
LARGEST_FILE = 500 * 2**20  # bytes
LARGEST_NUMBER = 2**31


def read(path: str, edges: str = "", pixel_size: float | None = None) -> Tracks:
    """The tracks in a file, in px, with a first note that says what it was taken for.

    `edges` is TrackMate's table of links, `pixel_size` the µm of a px. Raises ValueError, in one
    line, for any other file and for tracks that cannot be.
    """
    columns = read_columns(path)
    upper = {name.upper(): name for name in columns}
    if set(trackmate.SPOTS) <= upper.keys():
        rows, unit = trackmate.read(path, columns, read_columns(edges) if edges else None, edges)
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


def read_columns(path: str) -> Columns:
    """The columns of a table with commas, semicolons, tabs or spaces, by the names above them."""
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"there is no file {path}; {EXPECTED}")
    if file.stat().st_size > LARGEST_FILE:
        raise ValueError(f"{path} is larger than {LARGEST_FILE / 2**20:.0f} MB: cut the recording")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        text = file.read_text(encoding="latin-1")  # µ in the units of a spreadsheet
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines or "\0" in text:
        raise ValueError(f"{path} is no table of text; {EXPECTED}")
    separator = next((x for x in ",;\t" if x in lines[0]), None)
    split: Callable[[Sequence[str]], list[list[str]]] = (
        (lambda x: [line.split() for line in x])
        if separator is None
        else (lambda x: list(csv.reader(x, delimiter=separator)))
    )
    try:
        table = [[word.strip() for word in row] for row in split(lines)]
    except csv.Error as error:
        raise ValueError(f"{path} is no table that can be read ({error}); {EXPECTED}") from None
    header, rows = table[0], table[1:]
    if all(is_number(word) for word in header):  # man_track.txt has no header
        names = {4: LINEAGE, 6: (*LINEAGE, "X", "Y")}.get(len(header))
        if names is None:
            raise ValueError(f"{path} has {len(header)} columns without names; {EXPECTED}")
        header, rows = list(names), table
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise ValueError(
                f"{path} has {len(row)} values in its row {number}; expected {len(header)}, one "
                "below each name"
            )
    return (
        dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
        if rows
        else {name: [] for name in header}
    )


def read_own(path: str, columns: Columns) -> tuple[Rows, str]:
    """Rows of the format of this program, and the unit of its places."""
    in_um = "x_um" in columns
    places = ("x_um", "y_um") if in_um else ("x", "y")
    missing = [name for name in (*OWN, *places) if name not in columns]
    if missing:
        raise ValueError(f"{path} has no column {' and '.join(missing)}; {EXPECTED}")
    frame, x, y = (numbers(path, name, columns[name]) for name in ("frame", *places))
    cell = [plain_name(word) for word in columns["cell"]]
    parent: dict[str, str] = {}
    for name, word in zip(cell, map(plain_name, columns["parent"]), strict=True):
        if word not in ("", "-1", "nan", "NaN", "None") and parent.setdefault(name, word) != word:
            raise ValueError(f"{path}: cell {name} has the parents {parent[name]} and {word}")
    return Rows(cell, frame, x, y, parent), "µm" if in_um else "px"


def read_lineage(path: str, columns: Columns) -> Rows:
    """Rows of `L B E P`: label, first and last frame, parent or 0.

    Places are in two columns more, or in the label images beside the file.
    """
    label, begin, end, parent = (numbers(path, name, columns[name]) for name in LINEAGE)
    table = np.stack([label, begin, end, parent])
    if not np.all(np.abs(table) < LARGEST_NUMBER) or np.any(table % 1):
        raise ValueError(f"{path} has gaps or fractions in L B E P; expected whole numbers")
    names = [plain_name(word) for word in columns["L"]]
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
    cell, frame, x, y = label_images.centroids(path)
    seen_cells = set(cell)
    absent = [name for name in names if name not in seen_cells]
    if absent:
        raise ValueError(f"{path} has track {absent[0]}, which no label image beside it shows")
    return Rows(cell, frame, x, y, parents, spans)


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


def numbers(path: str, name: str, words: Sequence[str]) -> np.ndarray:
    """A column as floats; NaN for an empty word. Raises ValueError for others."""
    try:
        return np.array([float(word or "nan") for word in words])
    except ValueError:
        row = next(i for i, word in enumerate(words) if word and not is_number(word))
        raise ValueError(
            f"{path} has {words[row]!r} in column {name}, row {row + 1}; expected a number with a "
            "decimal point"
        ) from None


def plain_name(word: str) -> str:
    """The name of a cell: 3.0, as spreadsheets write it, is 3."""
    return str(int(float(word))) if is_number(word) and float(word) % 1 == 0 else word


def is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
