"""The cells of a text with a first line of names, and the numbers in them."""

import csv
import re
from collections.abc import Iterable, Sequence
from itertools import dropwhile

import numpy as np

from train.host.numbers import parse_cell
from train.vector_field.data.packed import read_bytes

MISSING = ("", "nan", "na", "null", "none")


def numbers_of(name: str, cells: Sequence[str]) -> np.ndarray:
    """The numbers of a column, NaN where a cell is empty. Raises ValueError for a text."""
    try:
        return np.array([parse_cell(cell) for cell in cells])
    except ValueError:
        pass
    numbers = np.empty(len(cells))
    for row, cell in enumerate(cells):
        number = np.nan if cell.lower() in MISSING else number_of(cell)
        if number is None:
            comma = ", with points instead of decimal commas" if "," in cell else ""
            raise ValueError(
                f"column {name} has {cell[:20]!r} in row {row} (counted from 0); expected "
                f"numbers{comma}, or choose the columns by --names.y and --names.u"
            )
        numbers[row] = number
    return numbers


def number_of(cell: str) -> float | None:
    """The number in a cell; None for a text."""
    try:
        return parse_cell(cell)
    except ValueError:
        return None


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels once each, numbers by their size and before texts."""
    key = lambda x: (number_of(x) is None, number_of(x) or 0.0, x)
    return tuple(sorted(set(labels), key=key))


def cells_of(path: str) -> tuple[list[str], list[list[str]]]:
    """The names of the columns, and the cells of each row. Raises ValueError for other texts.

    A column without a name is called by its place, `column 3`, and left out if it is empty. The
    names may stand behind a #, as NumPy writes them.
    """
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is no text in UTF-8: if it is a table, save it as UTF-8") from None
    not_empty = [x for x in text.splitlines() if x.strip()]
    lines = list(dropwhile(lambda x: x.startswith("#"), not_empty))  # later # is that of #N/A
    if len(lines) < 2:
        raise ValueError("there are no rows")
    rows = _rows_of(lines)
    if _are_numbers(rows[0]) and len(lines) < len(not_empty):
        with_comment = _rows_of([not_empty[-len(lines) - 1].lstrip("# "), *lines])
        has_names = not any(number_of(x) is not None for x in with_comment[0])
        rows = with_comment if has_names and len(with_comment[0]) == len(rows[0]) else rows
    header = rows[0]
    if _are_numbers(header):
        raise ValueError("its first line holds numbers: expected the names of the columns")
    for k, row in enumerate(rows[1:]):
        if len(row) != len(header):
            raise ValueError(
                f"row {k} (counted from 0) has {len(row)} cells where the first line has "
                f"{len(header)}"
            )
    filled = [k for k, name in enumerate(header) if name or any(row[k] for row in rows)]
    names = [header[k] or f"column {k + 1}" for k in filled]
    if len(set(names)) < len(names):
        twice = next(x for x in names if names.count(x) > 1)
        raise ValueError(f"two columns are called {twice!r}: give each a name of its own")
    return names, [[row[k] for k in filled] for row in rows[1:]]


def _are_numbers(cells: Sequence[str]) -> bool:
    return all(number_of(x) is not None for x in cells)


def _rows_of(lines: Sequence[str]) -> list[list[str]]:
    """The cells of each line, by the separator that the first has most of; quoted cells may hold
    it, too."""
    unquoted = re.sub(r'"[^"]*"', "", lines[0])
    separator = max(",;\t", key=unquoted.count)
    if separator not in unquoted:
        return [[cell.strip('"') for cell in x.split()] for x in lines]
    try:
        rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    except csv.Error as error:  # such as a quote that is never closed
        raise ValueError(f"its cells cannot be told apart ({error})") from None
    return [[cell.strip() for cell in row] for row in rows]
