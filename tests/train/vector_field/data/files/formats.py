"""Recordings of one content in files of several formats, and what must hold of what is read."""

import re

import numpy as np
import pytest
import scipy.io

from train.vector_field.data.files import loading
from train.vector_field.data.files.names import Names
from train.vector_field.data.recordings import Data

RNG = np.random.default_rng(0)
Y, U = RNG.normal(size=(40, 3)), RNG.normal(size=(40, 2))
EPISODES = RNG.poisson(1.0, (4, 30, 5)).astype(float), RNG.normal(size=(4, 30, 2))
TIMES = [np.sort(RNG.uniform(0, 4, n)) for n in (9, 1, 30, 0, 14)]
"""Of the spikes of five units, one of which is silent."""


def expected_of(tmp_path, **arrays) -> Data:
    path = tmp_path / "expected.npz"
    np.savez(path, **arrays)
    return loading.load(str(path), arrays.pop("bin_width", 1.0))


def counts_of(width: float, num_bins: int) -> np.ndarray:
    """Counts of `TIMES`, one spike after the other."""
    counts = np.zeros((num_bins, len(TIMES)))
    for unit, times in enumerate(TIMES):
        for time in times:
            counts[int(time / width), unit] += 1
    return counts


def assert_same(data: Data, expected: Data) -> None:
    for a, b in zip(data, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def refuse(path, message: str, names: Names = Names(), **options) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        loading.load(str(path), names=names, **options)
    assert "\n" not in str(error.value)


def save_mat(tmp_path, **variables) -> str:
    path = str(tmp_path / "data.mat")
    scipy.io.savemat(path, variables, do_compression=True)
    return path


def cell(items) -> np.ndarray:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def write(tmp_path, text: str, name: str = "data.csv") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def table(header: str, *columns, separator: str = ",") -> str:
    rows = [separator.join(map(str, row)) for row in zip(*columns, strict=True)]
    return "\n".join([header.replace(",", separator), *rows]) + "\n"
