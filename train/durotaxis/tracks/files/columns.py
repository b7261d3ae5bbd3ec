"""Tables of text: their columns by name, and numbers and names in them."""

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import dropwhile
from pathlib import Path
from types import MappingProxyType

import numpy as np

from train.host.numbers import parse_cell

Columns = dict[str, list[str]]
LARGEST_FILE = 500 * 2**20  # bytes
WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")


def read_columns(
    path: str, expected: str, nameless: Mapping[int, Sequence[str]] = MappingProxyType({})
) -> Columns:
    """The columns of a table with commas, semicolons, tabs or spaces, by the names above them.

    `nameless` has the names of tables without any, by their number of columns. Raises ValueError,
    which ends in what was `expected`, for other files.
    """
    text = read_text(path, expected)
    if text.lstrip().startswith("<"):
        button = ", as TrackMate's buttons Spots and Edges do" * ("TrackMate" in text)
        raise ValueError(f"{path} is XML and no table: export CSV{button}; {expected}")
    filled = [line for line in text.splitlines() if line.strip()]
    lines = list(dropwhile(lambda x: x.startswith("#"), filled))  # later # is that of #N/A
    if not lines or "\0" in text:
        raise ValueError(f"{path} is no table of text; {expected}")
    table = split_into_words(path, lines, expected)
    header, rows = table[0], table[1:]
    if all(is_number(word) for word in header):
        names = nameless.get(len(header))
        if names is None:
            raise ValueError(f"{path} has {len(header)} columns without names; {expected}")
        header, rows = list(names), table
    refuse_repeated_names(path, header)
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


def read_text(path: str, expected: str) -> str:
    """The text of a file. Raises ValueError for one that is not there, or too large."""
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"there is no file {path}; {expected}")
    if file.stat().st_size > LARGEST_FILE:
        raise ValueError(f"{path} is larger than {LARGEST_FILE / 2**20:.0f} MB: cut it")
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        return file.read_text(encoding="latin-1")  # µ in the units of a spreadsheet


def split_into_words(path: str, lines: Sequence[str], expected: str) -> list[list[str]]:
    """The words of each line, by the separator that the first one has, or by spaces."""
    separator = next((x for x in ",;\t" if x in lines[0]), None)
    split: Callable[[Sequence[str]], list[list[str]]] = (
        (lambda x: [line.split() for line in x])
        if separator is None
        else (lambda x: list(csv.reader(x, delimiter=separator)))
    )
    try:
        return [[word.strip() for word in row] for row in split(lines)]
    except csv.Error as error:
        raise ValueError(f"{path} is no table that can be read ({error}); {expected}") from None


def refuse_repeated_names(path: str, header: Sequence[str]) -> None:
    """Raises ValueError for two columns of a name, in capitals or not; without one none is read."""
    names = [name.lower() for name in header if name]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise ValueError(
            f"{path} has {names.count(repeated)} columns called {repeated!r}, in capitals or not; "
            "expected one: rename or remove the others"
        )


def numbers(
    path: str, name: str, words: Sequence[str], rows: Sequence[int] | None = None
) -> np.ndarray:
    """Words of a column as floats `[n]`; NaN for an empty word. Raises ValueError for others.

    `rows` says which of the file's they are of, counted from 0; None: the first ones.
    """
    try:
        return np.array([parse_cell(word or "nan") for word in words])
    except ValueError:
        place, word = next((i, x) for i, x in enumerate(words) if x and not is_number(x))
        row = place if rows is None else rows[place]
        raise ValueError(
            f"{path} has {word!r} in column {name}, row {row + 1}; expected a number with a "
            "decimal point"
        ) from None


def plain_name(word: str) -> str:
    """The name of a cell: 3.0, as spreadsheets write it, is 3.

    All others stay as they are, as text: 01, 1_1 and 1E2 are names of other cells than 1, 11, 100.
    """
    match = WHOLE.fullmatch(word)
    return match[1] if match else word


def is_number(word: str) -> bool:
    try:
        parse_cell(word)
    except ValueError:
        return False
    return True
