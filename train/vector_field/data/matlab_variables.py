"""Variables of a MATLAB file: arrays and cells of them; fields of structures by dotted names."""

from typing import Any

import numpy as np

from train.host.errors import in_one_line
from train.host.files.array_files import MAX_BYTES


class Cell(list[np.ndarray]):
    """The arrays of a cell, with its shape."""

    def __init__(self, cell: np.ndarray):
        super().__init__(np.asarray(x) for x in cell.ravel())
        self.shape = cell.shape
        self.is_table = len(self) > max(self.shape)  # with more than one axis


Variable = np.ndarray | Cell
"""An array of numbers, or a cell of them."""


def variables_of(path: str) -> tuple[dict[str, Variable], dict[str, str]]:
    """Numbers by name, fields of structures included, and texts by name."""
    import scipy.io  # here, as it takes half a second

    try:
        for name, shape, _ in scipy.io.whosmat(path):
            if np.prod([float(x) for x in shape]) * 8 > MAX_BYTES:
                raise ValueError(f"{name} has shape {shape}, more than {MAX_BYTES:,} bytes: cut it")
        content = scipy.io.loadmat(path)
    except ValueError:
        raise
    except Exception as error:  # a damaged file makes scipy raise almost anything
        raise ValueError(in_one_line(error)[:200] or type(error).__name__) from None
    variables: dict[str, Variable] = {}
    texts: dict[str, str] = {}
    for name, value in content.items():
        if not name.startswith("__"):
            _collect(name, value, variables, texts)
    return variables, texts


def _collect(name: str, value: Any, variables: dict[str, Variable], texts: dict[str, str]) -> None:
    """Adds a variable, or the fields of a structure, by dotted name."""
    if hasattr(value, "toarray"):
        value = _to_dense(name, value)
    if not isinstance(value, np.ndarray):
        return
    if value.dtype.names:
        for field in value.dtype.names:
            _collect(f"{name}.{field}", _field_of(value, field), variables, texts)
    elif value.dtype.kind in "fiub" and value.size:
        variables[name] = value
    elif value.dtype.kind == "U" and value.size == 1:
        texts[name.split(".")[-1]] = str(value.item())
    elif value.dtype.kind == "O" and value.size:
        cell = Cell(value)
        if all(x.dtype.kind in "fiub" for x in cell):
            variables[name] = cell


def _to_dense(name: str, value: Any) -> np.ndarray:
    """A sparse matrix as an array. Raises ValueError for one that would be too large."""
    if np.prod([float(x) for x in value.shape]) * 8 > MAX_BYTES:
        raise ValueError(f"{name} is sparse, of shape {value.shape}: too large, cut it")
    return value.toarray()


def _field_of(structures: np.ndarray, field: str) -> Any:
    """A field of one structure; of several, a cell with that of each."""
    items = list(structures[field].ravel())
    if len(items) == 1:
        return items[0]
    # with None at the end NumPy makes no axes of items of equal shape
    return np.array([*items, None], object)[:-1].reshape(structures.shape)


def beside(name: str, other: str, variables: dict[str, Variable]) -> str:
    """The variable `other` in the structure that `name` is in, else outside of any; empty: none."""
    candidates = name[: name.rfind(".") + 1] + other, other
    return next((x for x in candidates if x in variables), "")


def to_plain(variable: Variable) -> np.ndarray:
    """An array. Raises ValueError for a cell."""
    if isinstance(variable, list):
        raise ValueError(f"a cell of {len(variable)} stands where one array was expected")
    return variable
