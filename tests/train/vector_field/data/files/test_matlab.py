"""MATLAB files hold the same data as an npz file of the same arrays."""

import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

from tests.train.vector_field.data.files.formats import (
    EPISODES,
    RNG,
    TIMES,
    U,
    Y,
    assert_same,
    cell,
    counts_of,
    expected_of,
    refuse,
    save_mat,
)
from train.vector_field.data import step_time
from train.vector_field.data.files import loading
from train.vector_field.data.files.names import Names
from train.vector_field.data.step_time import StepTime


def test_matlab_arrays_in_all_directions(tmp_path):
    expected = expected_of(tmp_path, y=Y, u=U)
    load = lambda names=Names(), **variables: loading.load(
        save_mat(tmp_path, **variables), names=names
    )
    assert_same(load(y=Y, u=U), expected)
    assert_same(load(y=Y.T, u=U.T), expected)
    assert_same(load(session={"y": Y, "stim": U, "animal": "R7"}), expected)
    assert_same(load(Names(y=("lfp",), u=("a", "b")), lfp=Y, a=U[:, :1], b=U[:, 1:]), expected)
    assert_same(load(traces=Y, u=U, t=0.01 * np.arange(40)), expected)
    assert_same(load(y=Y.T), expected_of(tmp_path, y=Y, u=np.zeros((40, 1))))
    one = expected_of(tmp_path, y=Y[:, :1], u=U[:, :1])
    assert_same(load(y=Y[:, 0], u=U[:, 0]), one)  # a row, as scipy writes vectors
    y, u = EPISODES
    several = expected_of(tmp_path, y=y, u=u)
    assert_same(load(y=y, u=u), several)
    assert_same(load(y=y.transpose(2, 1, 0), u=u.transpose(2, 1, 0)), several)
    assert_same(load(y=cell(list(y)), u=cell([x.T for x in u])), several)
    unequal = expected_of(
        tmp_path, y=np.concatenate(y)[5:], u=np.concatenate(u)[5:], lengths=[25, 30, 30, 30]
    )
    assert_same(load(y=cell([y[0, 5:], *y[1:]]), u=cell([u[0, 5:], *u[1:]])), unequal)


def test_matlab_time_is_the_longer_axis_with_as_many_inputs_as_channels(tmp_path):
    y = Y[:, :2]
    expected = expected_of(tmp_path, y=y, u=U)
    for sides in ((y, U), (y.T, U.T), (y.T, U), (y, U.T)):
        path = save_mat(tmp_path, y=sides[0], u=sides[1])
        assert_same(loading.load(path), expected)
    episodes = save_mat(tmp_path, y=cell([y.T, y.T[:, :9]]), u=cell([U.T, U.T[:, :9]]))
    joined = expected_of(
        tmp_path, y=np.concatenate([y, y[:9]]), u=np.concatenate([U, U[:9]]), lengths=[40, 9]
    )
    assert_same(loading.load(episodes), joined)


def test_matlab_times_say_what_is_missing_and_how_long_a_step_is(tmp_path):
    keep = np.r_[0:10, 13:40]
    path = save_mat(tmp_path, y=Y[keep], u=U[keep], t=5 + 0.02 * keep, time_unit="s")
    data = loading.load(path)
    np.testing.assert_array_equal(data.observed[0].all(1), np.isin(np.arange(40), keep))
    np.testing.assert_allclose(data.y[0][keep], Y[keep], rtol=1e-6)
    np.testing.assert_allclose(data.u[0, 10:13], np.repeat(U[9:10], 3, 0), rtol=1e-6)  # held
    time = step_time.load([path], 1.0, None, "")
    assert time.unit == "s"
    assert time.length == pytest.approx(0.02)
    path = save_mat(tmp_path, y=Y, u=U, fs=250)
    assert step_time.load([path], 1.0, None, "ms") == StepTime(1 / 250, "ms")
    path = save_mat(tmp_path, y=Y, u=U, fs=250, t=np.arange(40))  # which only number the rows
    assert step_time.load([path], 1.0, None, "") == StepTime(1 / 250, "")
    path = save_mat(tmp_path, y=Y, u=U, dt=0.5, t=0.02 * np.arange(40))
    refuse(path, "a step lasts 0.5 by dt and 0.02 by t: leave one of them out")
    path = save_mat(tmp_path, spikes=cell(TIMES), dt=0.02, fs=30_000)
    with pytest.raises(ValueError, match=r"a step in .* is 0.02 and --env.bin-width, .* is 0.25"):
        step_time.load([path], 0.25, None, "")
    refuse(
        save_mat(tmp_path, y=Y, t=np.r_[0:20, 3:23]),
        "t does not rise at row 20 (counted from 0), from 19 to 3",
    )
    refuse(save_mat(tmp_path, y=Y, t=np.r_[0:20, 20.5:40.5]), "t has uneven steps")
    refuse(save_mat(tmp_path, y=Y, dt=-1.0), "dt is [-1.]")


def test_matlab_variables_that_are_not_read_are_named(tmp_path, capsys):
    """Trials in a vector of their own would be taken for one record without a word."""
    loading.load(save_mat(tmp_path, lfp=Y, stim=U, trial=np.repeat([1, 2], 20), t=np.arange(40)))
    assert "; not read: trial\n" in capsys.readouterr().err
    loading.load(save_mat(tmp_path, spikes=cell(TIMES), duration=12.0, depth=3.0), 0.25)
    assert "; not read: depth\n" in capsys.readouterr().err
    loading.load(save_mat(tmp_path, y=Y, u=U, fs=250, lengths=[25, 15]))
    assert "not read" not in capsys.readouterr().err


@pytest.mark.parametrize("order", ["<", ">"])
def test_matlab_files_of_version_4(tmp_path, order):
    """Written as its format says: a header, the name and the numbers, column by column."""
    path, content = tmp_path / "old.mat", b""
    for name, x in (("y", Y), ("u", U)):
        header = struct.pack(f"{order}5i", 1000 * (order == ">"), *x.shape, 0, len(name) + 1)
        content += header + name.encode() + b"\0" + x.T.astype(f"{order}f8").tobytes()
    path.write_bytes(content)
    assert_same(loading.load(str(path)), expected_of(tmp_path, y=Y, u=U))
    path.write_bytes(content[:300])
    refuse(path, "old.mat cannot be read (")
    path.write_bytes(content[1:])
    refuse(path, "its bytes are of no known format")


def test_matlab_cell_of_spike_times(tmp_path):
    path = save_mat(tmp_path, spikes=cell(TIMES))
    data = loading.load(path, 0.25)
    bins = int(max(x.max(initial=0) for x in TIMES) / 0.25) + 1
    np.testing.assert_array_equal(data.y[0], counts_of(0.25, bins))
    assert not data.u.any()
    path = save_mat(tmp_path, spikes=cell(TIMES), stim=np.ones((16, 2)))
    data = loading.load(path, 0.25)
    np.testing.assert_array_equal(data.y[0], counts_of(0.25, 16))
    assert data.u.shape == (1, 16, 2)
    units = np.repeat(np.arange(5), [len(x) for x in TIMES])
    path = save_mat(
        tmp_path, spike_times=np.concatenate(TIMES), spike_units=units, u=np.ones((16, 2))
    )
    assert_same(loading.load(path, 0.25), data)
    assert step_time.load([path], 0.25, None, "") == StepTime(0.25, "")


def test_matlab_cell_of_spike_times_lasts_as_long_as_the_file_says(tmp_path):
    """So do vectors of times and units; inputs may have time along either axis."""
    last = max(x.max(initial=0) for x in TIMES)
    for end in ({"duration": 6.0}, {"lengths": 24}):
        data = loading.load(save_mat(tmp_path, d={"spikes": cell(TIMES), **end}), 0.25)
        np.testing.assert_array_equal(data.y[0], counts_of(0.25, 24))
        assert data.u.shape == (1, 24, 1)
    u = RNG.normal(size=(2, 24))
    path = save_mat(tmp_path, spikes=cell(TIMES), stim=u, duration=6.0)
    data = loading.load(path, 0.25)
    np.testing.assert_array_equal(data.y[0], counts_of(0.25, 24))
    np.testing.assert_array_equal(data.u[0], u.T.astype(np.float32))
    refuse(save_mat(tmp_path, spikes=cell(TIMES), duration=last / 2), "spikes are later than the")
    units = np.repeat(np.arange(5), [len(x) for x in TIMES])
    arrays = {"spike_times": np.concatenate(TIMES), "spike_units": units, "u": u}
    assert_same(loading.load(save_mat(tmp_path, **arrays, duration=6.0), 0.25), data)
    np.savez(tmp_path / "turned.npz", **arrays)
    refuse(tmp_path / "turned.npz", "u has 2 rows of 24 columns, and spikes are in", bin_width=0.25)


def test_matlab_vectors_of_spike_times_in_a_structure_are_spikes(tmp_path, capsys):
    """They are read as outside of one, with what stands beside them."""
    arrays = {
        "spike_times": np.concatenate(TIMES),
        "spike_units": np.repeat(np.arange(5), [len(x) for x in TIMES]),
    }
    inputs = {"stim": np.ones((16, 1)), "light": np.zeros((16, 1))}
    named = Names(u=("d.stim", "d.light"))
    path = save_mat(tmp_path, d={**arrays, **inputs, "num_units": 7})
    data = loading.load(path, 0.25, names=named)
    np.testing.assert_array_equal(data.y[0, :, :5], counts_of(0.25, 16))
    assert data.y.shape == (1, 16, 7)
    assert not data.y[..., 5:].any()
    np.testing.assert_array_equal(data.u[0], np.repeat([[1.0, 0.0]], 16, 0))
    bins = int(arrays["spike_times"].max() / 0.25) + 1
    data = loading.load(save_mat(tmp_path, **arrays, num_units=7), 0.25)
    np.testing.assert_array_equal(data.y[0, :, :5], counts_of(0.25, bins))
    assert data.y.shape == (1, bins, 7)
    capsys.readouterr()
    day = save_mat(tmp_path, **{name: x[:10] for name, x in arrays.items()})
    paths = [day, str(shutil.copy(day, tmp_path / "first.mat"))]
    save_mat(tmp_path, **arrays)  # in which more units fired
    assert loading.load(paths, 0.25).y.shape[-1] == 5
    assert "5 units, 0 to 4, up to the last that fired" in capsys.readouterr().err
    data = loading.load(save_mat(tmp_path, d={"y": Y, "u": U, "lengths": [15, 25]}))
    assert data.lengths.tolist() == [15, 25]


@pytest.mark.parametrize("sizes", [{}, {"duration": [5.0, 6.0]}, {"lengths": [20, 24]}])
def test_matlab_vectors_of_spike_times_need_no_inputs(tmp_path, sizes):
    """They are zeros for as long as the record says, in every episode, as of an npz file."""
    spikes = {
        "spike_times": np.array([0.1, 0.3, 1.2, 0.6]),
        "spike_units": np.array([0, 1, 1, 2]),
        "spike_episodes": np.array([0, 0, 0, 1]),
    }
    data = loading.load(save_mat(tmp_path, **spikes, **sizes), 0.25)
    assert data.lengths.tolist() == ([20, 24] if sizes else [5, 3])
    np.savez(tmp_path / "a.npz", **spikes, **sizes, u=np.zeros((2, 24 if sizes else 5, 1)))
    expected = loading.load(str(tmp_path / "a.npz"), 0.25)
    np.testing.assert_array_equal(data.u, expected.u)
    np.testing.assert_array_equal(data.y[0], expected.y[0])
    np.testing.assert_array_equal(data.y[1, :3], expected.y[1, :3])
    one = {name: x[:3] for name, x in spikes.items() if name != "spike_episodes"}
    data = loading.load(save_mat(tmp_path, **one, duration=4.0), 0.25)
    assert data.lengths.tolist() == [16]
    refuse(save_mat(tmp_path, **one, duration=-1.0), "duration must be a time above 0")
    refuse(save_mat(tmp_path, **one, duration=1e13), "bins of 1 are too many")


@pytest.mark.parametrize("name", ["spike_times", "SpikeTimes", "spikes"])
def test_matlab_times_of_spikes_without_units_are_refused(tmp_path, name):
    path = save_mat(tmp_path, **{name: TIMES[2]})
    refuse(path, f"{name} holds times of spikes without the unit of each: give spike_units beside")
    refuse(save_mat(tmp_path, d={name: TIMES[2]}), f"d.{name} holds times of spikes without")
    counts = counts_of(0.25, 16)[:, 2]
    if name == "spikes":  # which may be counts
        data = loading.load(save_mat(tmp_path, spikes=counts))
        np.testing.assert_array_equal(data.y[0, :, 0], counts)
    else:
        path = save_mat(tmp_path, **{name: cell([TIMES[2], TIMES[0][::-1]])})
        refuse(path, f"{name} is a cell, but not of a vector of rising times for each unit")


def test_matlab_times_that_are_not_read_are_told(tmp_path, capsys):
    episodes, times = cell([Y[:20], Y[20:]]), cell([np.arange(20.0), np.arange(20.0)])
    for variables in ({"y": episodes, "t": times}, {"y": Y, "t": np.arange(39.0)}):
        loading.load(save_mat(tmp_path, **variables))
        assert "t is not read, as it is no time for each step of one" in capsys.readouterr().err


def test_the_only_array_of_a_matlab_file_may_be_one_channel(tmp_path):
    data = loading.load(save_mat(tmp_path, voltage=Y[:, 0], fs=500, t=0.002 * np.arange(40)))
    np.testing.assert_array_equal(data.y[0, :, 0], Y[:, 0].astype(np.float32))


def test_matlab_cells_of_units_and_trials_are_refused(tmp_path):
    table = np.empty((2, 3), object)
    for k in np.ndindex(2, 3):
        table[k] = np.array([0.1, 0.4, 0.9]) + sum(k)
    path = save_mat(tmp_path, spikes=table)
    refuse(path, "spikes is a cell of 2×3; expected one row of cells, a vector of spike times for")
    assert loading.load(save_mat(tmp_path, spikes=table[:1])).y.shape == (1, 3, 3)
    units, trials = np.repeat(np.indices((2, 3)).reshape(2, -1), 3, 1)
    arrays = {"spike_times": np.concatenate(table.ravel()), "u": np.zeros((3, 4, 1))}
    path = save_mat(tmp_path, **arrays, spike_units=units, spike_episodes=trials)
    assert loading.load(path).y.shape == (3, 4, 2)  # the way out
    fields = np.zeros((2, 3), [("times", object)])
    fields["times"] = table
    refuse(save_mat(tmp_path, unit=fields), "unit.times is a cell of 2×3", Names(y=("unit.times",)))


def test_matlab_axes_of_episodes_are_told_where_shapes_do_not_say_which_is_which(tmp_path, capsys):
    y = EPISODES[0]
    assert loading.load(save_mat(tmp_path, y=y)).y.shape == y.shape
    assert "; y is read as 4 episodes of 30 steps of 5 channels: turn" in capsys.readouterr().err
    both = loading.load(save_mat(tmp_path, y=y[:3], u=y[1:]))  # as many inputs as channels
    assert both.y.shape == (3, 30, 5)
    assert "; y is read as 3 episodes of 30 steps of 5 channels: turn" in capsys.readouterr().err


def test_matlab_names_that_are_not_clear_are_refused_with_the_candidates(tmp_path):
    path = save_mat(tmp_path, lfp=Y, dff=Y[:, :2], label="x")
    refuse(path, "which variable is y? There are lfp 40×3, dff 40×2: choose by --names.y")
    refuse(path, "there is no variable LFP; there are lfp 40×3, dff 40×2", Names(y=("LFP",)))
    assert loading.load(path, names=Names(y=("lfp",))).y.shape == (1, 40, 3)
    refuse(save_mat(tmp_path, y=Y, stim=U, input=U), "which variable is u?")
    refuse(save_mat(tmp_path, y=cell([Y, Y]), u=U), "expected a cell of as many for u")
    path = tmp_path / "new.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file, Platform: GLNXA64" + bytes(500) + b"\x89HDF\r\n\x1a\n")
    refuse(path, "of version 7.3: save it in MATLAB by save(")
    path = Path(save_mat(tmp_path, y=Y, u=U))
    path.write_bytes(path.read_bytes()[:300])
    refuse(path, "data.mat cannot be read (")
