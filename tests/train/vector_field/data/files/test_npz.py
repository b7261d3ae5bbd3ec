"""Files of NumPy: names of arrays, times, and what is not read."""

from typing import Any

import numpy as np
import pytest

from tests.train.vector_field.data.files.formats import (
    U,
    Y,
    assert_same,
    expected_of,
    refuse,
    save_mat,
)
from train.vector_field.data import step_time
from train.vector_field.data.files import loading
from train.vector_field.data.files.names import Names
from train.vector_field.data.step_time import StepTime
from train.vector_field.experiment.experiments import Sample
from train.vector_field.stream.simulated_rig import RigRecord


def test_npz_arrays_of_other_names(tmp_path):
    path = str(tmp_path / "a.npz")
    np.savez(path, lfp=Y, light=U[:, 0], force=U[:, 1])
    data = loading.load(path, names=Names(y=("lfp",), u=("light", "force")))
    assert_same(data, expected_of(tmp_path, y=Y, u=U))
    refuse(path, "no array 'LFP', which --names.y asks for", Names(y=("LFP",), u=("light",)))


def test_npz_times_say_what_is_missing_and_how_long_a_step_is(tmp_path, capsys):
    """The same as in a MATLAB file."""
    keep = np.r_[0:10, 13:40]
    arrays = {"y": Y[keep], "u": U[keep], "t": 5 + 0.02 * keep, "time_unit": "s"}
    path = str(tmp_path / "gap.npz")
    np.savez(path, **arrays)
    assert_same(loading.load(path), loading.load(save_mat(tmp_path, **arrays)))
    assert "gap.npz: times from t, 3 steps missing\n" in capsys.readouterr().err
    time = step_time.load([path], 1.0, None, "")
    assert (time.length, time.unit) == (pytest.approx(0.02), "s")
    np.savez(path, y=Y[keep, 0], u=U[keep, 0], stamp=keep[:, None])  # one channel, no axis
    data = loading.load(path, names=Names(time="stamp"))
    np.testing.assert_array_equal(data.observed[0, :, 0], np.isin(np.arange(40), keep))
    refuse(path, "there is no when; there are y, u, stamp", Names(time="when"))
    np.savez(path, y=Y, u=U, Fs=250, t=np.arange(40))
    assert step_time.load([path], 1.0, None, "") == StepTime(1 / 250, "")
    np.savez(path, y=Y, u=U, t=np.r_[0:20, 3:23])
    refuse(path, "gap.npz: t does not rise at row 20 (counted from 0), from 19 to 3")


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({"length": [20, 20], "z": Y}, "length, z;"),
        ({"lengths": [20, 20], "t": np.arange(40)}, "t;"),  # of episodes, which may begin anew
        ({"t": np.datetime64("2026-01-01") + np.arange(40), "who": np.array([None])}, "t, who;"),
        ({"dt": 0.1, "time_unit": "s", "num_units": 3}, ""),
    ],
)
def test_npz_arrays_that_are_not_read_are_named(tmp_path, more, names, capsys):
    path = str(tmp_path / "more.npz")
    np.savez(path, y=Y, u=U, **more)
    loading.load(path)
    line = capsys.readouterr().err
    assert line.startswith(f"{path}: not read: {names} read are y or" if names else "")
    assert ("t (a number for each step of one episode), dt" in line) == bool(names)
    assert len(line.splitlines()) == bool(names)


@pytest.mark.parametrize("arrays", [Sample._fields, RigRecord._fields])
def test_arrays_that_the_library_writes_are_not_reported(tmp_path, arrays, capsys):
    path = str(tmp_path / "own.npz")
    beside: dict[str, Any] = {x: Y for x in arrays if x not in ("y", "u")}
    np.savez(path, y=Y, u=U, **beside)
    loading.load(path)
    assert capsys.readouterr().err == ""
    np.savez(path, y=Y, u=U, Z=Y, **beside)  # which is no longer a file of the library
    loading.load(path)
    assert f"not read: Z, {', '.join(beside)};" in capsys.readouterr().err
