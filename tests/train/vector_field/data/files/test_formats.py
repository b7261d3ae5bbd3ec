"""Files of MATLAB, CSV and NWB hold the same data as an npz file of the same arrays."""

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

from train.vector_field.data import recordings, step_time
from train.vector_field.data.files.names import Names
from train.vector_field.data.recordings import Data
from train.vector_field.data.step_time import StepTime
from train.vector_field.experiment.experiments import Sample
from train.vector_field.stream.simulated_rig import RigRecord

RNG = np.random.default_rng(0)
Y, U = RNG.normal(size=(40, 3)), RNG.normal(size=(40, 2))
EPISODES = RNG.poisson(1.0, (4, 30, 5)).astype(float), RNG.normal(size=(4, 30, 2))
TIMES = [np.sort(RNG.uniform(0, 4, n)) for n in (9, 1, 30, 0, 14)]
"""Of the spikes of five units, one of which is silent."""


def expected_of(tmp_path, **arrays) -> Data:
    path = tmp_path / "expected.npz"
    np.savez(path, **arrays)
    return recordings.load(str(path), arrays.pop("bin_width", 1.0))


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
        recordings.load(str(path), names=names, **options)
    assert "\n" not in str(error.value)


def save_mat(tmp_path, **variables) -> str:
    path = str(tmp_path / "data.mat")
    scipy.io.savemat(path, variables, do_compression=True)
    return path


def cell(items) -> np.ndarray:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def test_matlab_arrays_in_all_directions(tmp_path):
    expected = expected_of(tmp_path, y=Y, u=U)
    load = lambda names=Names(), **variables: recordings.load(
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
        assert_same(recordings.load(path), expected)
    episodes = save_mat(tmp_path, y=cell([y.T, y.T[:, :9]]), u=cell([U.T, U.T[:, :9]]))
    joined = expected_of(
        tmp_path, y=np.concatenate([y, y[:9]]), u=np.concatenate([U, U[:9]]), lengths=[40, 9]
    )
    assert_same(recordings.load(episodes), joined)


def test_matlab_times_say_what_is_missing_and_how_long_a_step_is(tmp_path):
    keep = np.r_[0:10, 13:40]
    path = save_mat(tmp_path, y=Y[keep], u=U[keep], t=5 + 0.02 * keep, time_unit="s")
    data = recordings.load(path)
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
    refuse(save_mat(tmp_path, y=Y, t=np.r_[0:20, 3:23]), "t does not rise at row 20, from 19 to 3")
    refuse(save_mat(tmp_path, y=Y, t=np.r_[0:20, 20.5:40.5]), "t has uneven steps")
    refuse(save_mat(tmp_path, y=Y, dt=-1.0), "dt is [-1.]")


def test_matlab_cell_of_spike_times(tmp_path):
    path = save_mat(tmp_path, spikes=cell(TIMES))
    data = recordings.load(path, 0.25)
    bins = int(max(x.max(initial=0) for x in TIMES) / 0.25) + 1
    np.testing.assert_array_equal(data.y[0], counts_of(0.25, bins))
    assert not data.u.any()
    path = save_mat(tmp_path, spikes=cell(TIMES), stim=np.ones((16, 2)))
    data = recordings.load(path, 0.25)
    np.testing.assert_array_equal(data.y[0], counts_of(0.25, 16))
    assert data.u.shape == (1, 16, 2)
    units = np.repeat(np.arange(5), [len(x) for x in TIMES])
    path = save_mat(
        tmp_path, spike_times=np.concatenate(TIMES), spike_units=units, u=np.ones((16, 2))
    )
    assert_same(recordings.load(path, 0.25), data)
    assert step_time.load([path], 0.25, None, "") == StepTime(0.25, "")


def test_matlab_cells_of_units_and_trials_are_refused(tmp_path):
    table = np.empty((2, 3), object)
    for k in np.ndindex(2, 3):
        table[k] = np.array([0.1, 0.4, 0.9]) + sum(k)
    path = save_mat(tmp_path, spikes=table)
    refuse(path, "spikes is a cell of 2×3; expected one row of cells, a vector of spike times for")
    assert recordings.load(save_mat(tmp_path, spikes=table[:1])).y.shape == (1, 3, 3)
    units, trials = np.repeat(np.indices((2, 3)).reshape(2, -1), 3, 1)
    arrays = {"spike_times": np.concatenate(table.ravel()), "u": np.zeros((3, 4, 1))}
    path = save_mat(tmp_path, **arrays, spike_units=units, spike_episodes=trials)
    assert recordings.load(path).y.shape == (3, 4, 2)  # the way out
    fields = np.zeros((2, 3), [("times", object)])
    fields["times"] = table
    refuse(save_mat(tmp_path, unit=fields), "unit.times is a cell of 2×3", Names(y=("unit.times",)))


def test_matlab_axes_of_episodes_are_told_where_shapes_do_not_say_which_is_which(tmp_path, capsys):
    y = EPISODES[0]
    assert recordings.load(save_mat(tmp_path, y=y)).y.shape == y.shape
    assert "; y is read as 4 episodes of 30 steps of 5 channels: turn" in capsys.readouterr().err
    both = recordings.load(save_mat(tmp_path, y=y[:3], u=y[1:]))  # as many inputs as channels
    assert both.y.shape == (3, 30, 5)
    assert "; y is read as 3 episodes of 30 steps of 5 channels: turn" in capsys.readouterr().err


def test_matlab_names_that_are_not_clear_are_refused_with_the_candidates(tmp_path):
    path = save_mat(tmp_path, lfp=Y, dff=Y[:, :2], label="x")
    refuse(path, "which variable is y? There are lfp 40×3, dff 40×2: choose by --names.y")
    refuse(path, "there is no variable LFP; there are lfp 40×3, dff 40×2", Names(y=("LFP",)))
    assert recordings.load(path, names=Names(y=("lfp",))).y.shape == (1, 40, 3)
    refuse(save_mat(tmp_path, y=Y, stim=U, input=U), "which variable is u?")
    refuse(save_mat(tmp_path, y=cell([Y, Y]), u=U), "expected a cell of as many for u")
    path = tmp_path / "new.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file, Platform: GLNXA64" + bytes(500) + b"\x89HDF\r\n\x1a\n")
    refuse(path, "of version 7.3: save it in MATLAB by save(")
    path = Path(save_mat(tmp_path, y=Y, u=U))
    path.write_bytes(path.read_bytes()[:300])
    refuse(path, "data.mat cannot be read (")


def write(tmp_path, text: str, name: str = "data.csv") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def table(header: str, *columns, separator: str = ",") -> str:
    rows = [separator.join(map(str, row)) for row in zip(*columns, strict=True)]
    return "\n".join([header.replace(",", separator), *rows]) + "\n"


def test_csv_of_channels(tmp_path):
    expected = expected_of(tmp_path, y=Y, u=U)
    header, columns = "a,b,c,stim1,stim2", [*Y.T, *U.T]
    assert_same(recordings.load(write(tmp_path, table(header, *columns))), expected)
    for separator in (";", "\t"):
        text = "# a comment\n" + table(header, *columns, separator=separator)
        assert_same(recordings.load(write(tmp_path, text)), expected)
    keep = np.r_[0:10, 13:40]
    timed = table(f"time (ms),{header}", 20.0 * keep, *(x[keep] for x in columns))
    path = write(tmp_path, timed)
    data = recordings.load(path)
    np.testing.assert_array_equal(data.observed[0].all(1), np.isin(np.arange(40), keep))
    assert step_time.load([path], 1.0, None, "") == StepTime(20.0, "ms")
    names = Names(y=("c", "a"), u=("b",))
    assert_same(
        recordings.load(path, names=names).cut(slice(None), slice(10), np.array([10])),
        expected_of(tmp_path, y=Y[:10, [2, 0]], u=Y[:10, 1:2]),
    )
    lines = table(header, *columns).splitlines()
    lines[3] = ",".join(["", "NaN", *lines[3].split(",")[2:]])
    data = recordings.load(write(tmp_path, "\n".join(lines)))
    np.testing.assert_array_equal(np.argwhere(~data.observed[0]), [[2, 0], [2, 1]])


def test_csv_of_trials(tmp_path):
    y, u = EPISODES
    trials, time = np.repeat([7, 3, 9, 8], 30), np.tile(np.arange(30) / 10, 4)
    columns = [*np.concatenate(y).T, *np.concatenate(u).T]
    text = table("trial,t,a,b,c,d,e,u0,u1", trials, time, *columns)
    assert_same(recordings.load(write(tmp_path, text)), expected_of(tmp_path, y=y, u=u))
    mixed = table("trial,a,u", [1, 2, 1], [0, 1, 2], [0, 0, 0])
    refuse(write(tmp_path, mixed), "rows of one trial in trial are not together")


def test_a_trial_of_one_row_does_not_say_how_long_a_step_is(tmp_path):
    trials = ["a"] * 50 + ["b"]
    lines = [f"{trial},{0.02 * i:.2f},{i % 7}.5" for i, trial in enumerate(trials)]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(["trial,time (s),y", *lines]))
    data = recordings.load(str(path))
    np.testing.assert_array_equal(data.lengths, [50, 1])
    length, unit = step_time.load([str(path)], 1.0, None, "")
    assert unit == "s"
    assert length == pytest.approx(0.02)


def test_quoted_cells_may_hold_the_separator(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('"time","rate, left","rate, right"\n0,"1.5",2\n1, "2.5" ,3\n2,0.5,1\n')
    np.testing.assert_array_equal(recordings.load(str(path)).y[0], [[1.5, 2], [2.5, 3], [0.5, 1]])
    path.write_text('time,y\n0,"1,5"\n1,"2,5"\n')
    refuse(path, "column y has '1,5' in row 1; expected numbers, with points instead of decimal")
    path.write_text('time,y\n0,"' + 200_000 * "1")
    refuse(path, "its cells cannot be told apart")


def test_csv_of_spikes_with_and_without_inputs(tmp_path):
    names = [["n3", "n10", "b", "silent", "a"][k] for k in range(5)]
    rows = sorted((t, names[k]) for k, times in enumerate(TIMES) for t in times)
    path = write(tmp_path, table("neuron,time_s", [x[1] for x in rows], [x[0] for x in rows]))
    bins = int(rows[-1][0] / 0.25) + 1
    data = recordings.load(path, 0.25)
    order = [names.index(x) for x in sorted(set(names) - {"silent"})]  # who never fired is unknown
    np.testing.assert_array_equal(data.y[0], counts_of(0.25, bins)[:, order])
    assert step_time.load([path], 0.25, None, "") == StepTime(0.25, "s")
    events = write(tmp_path, "time,light,force\n0.3,1,0\n0.8,0,0\n1.1,0,2\n1.2,0,4\n", "light.csv")
    data = recordings.load(path, 0.25, inputs=(events,))
    np.testing.assert_allclose(data.u[0, :6, 0], [0, 0.8, 1, 0.2, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(data.u[0, :6, 1], [0, 0, 0, 0, 1.6, 4], rtol=1e-6)
    text = table("unit,time,trial", [0, 4, 0, 4], [0.1, 0.6, 0.2, 0.9], ["x", "x", "y", "y"])
    data = recordings.load(write(tmp_path, text), 0.5)
    np.testing.assert_array_equal(data.lengths, [2, 2])
    np.testing.assert_array_equal(data.y, [[[1, 0], [0, 1]], [[1, 0], [0, 1]]])


@pytest.mark.parametrize("name", ["frame", "n"])
def test_columns_that_number_the_rows_are_no_channels(tmp_path, name, capsys):
    numbers = np.arange(7, 47)
    if name == "frame":
        numbers[20:] += 3  # of which some were lost
    path = write(tmp_path, table(f"{name},a,b,c", numbers, *Y.T))
    np.testing.assert_allclose(recordings.load(path).y[0], Y, rtol=1e-6)
    assert f"; left out: {name}, which numbers the rows\n" in capsys.readouterr().err
    assert recordings.load(path, names=Names(y=(name, "a"))).y.shape == (1, 40, 2)
    trials = table(f"trial,{name},a,b,c", np.repeat([1, 2], 20), np.tile(numbers[:20], 2), *Y.T)
    data = recordings.load(write(tmp_path, trials))
    np.testing.assert_allclose(data.y, Y.reshape(2, 20, 3), rtol=1e-6)
    uneven = numbers + (np.arange(40) == 9) * (-2.5)
    path = write(tmp_path, table(f"{name},a,b,c", uneven, *Y.T))
    assert recordings.load(path).y.shape == (1, 40, 4)


def test_columns_without_a_name_are_called_by_their_place(tmp_path, capsys):
    """Pandas writes the numbers of rows under no name, and spreadsheets an empty column."""
    path = write(tmp_path, table("t,,b", np.arange(40) / 10, *Y.T[:2]))
    np.testing.assert_allclose(recordings.load(path).y[0], Y[:, :2], rtol=1e-6)
    assert "y: column 2, b; " in capsys.readouterr().err
    np.testing.assert_allclose(recordings.load(path, names=Names(y=("b",))).y[0], Y[:, 1:2], 1e-6)
    path = write(tmp_path, table(",a,b,", np.arange(40), *Y.T[:2], [""] * 40), "b.csv")
    np.testing.assert_allclose(recordings.load(path).y[0], Y[:, :2], rtol=1e-6)
    assert "y: a, b; " in (line := capsys.readouterr().err)
    assert line.endswith("; left out: column 1, which numbers the rows\n")


def test_spikes_with_other_columns(tmp_path, capsys):
    """Sorters write such tables."""
    units, times = [3, 5, 3, 5], [0.1, 0.6, 0.2, 2.9]
    path = write(tmp_path, table("unit,time_s,depth", units, times, [7, 8, 9, 6]))
    message = "its columns unit and time_s are those of spikes, but there are others, depth: leave"
    refuse(path, message)
    data = recordings.load(path, names=Names(units="unit"))
    np.testing.assert_array_equal(data.y, [[[2, 1], [0, 0], [0, 1]]])
    assert "; left out: depth\n" in capsys.readouterr().err


def test_times_of_trials_that_do_not_begin_anew_are_named(tmp_path, capsys):
    times, trials = np.array([0.1, 0.6, 3, 9, 2, 7, 0.5, 8]), np.repeat([4, 5, 6, 7], 2)
    for shift in (0, 10):
        text = table("unit,time,trial", [0, 1] * 4, times + shift * (trials - 4), trials)
        recordings.load(write(tmp_path, text, f"{shift}.csv"), 0.5)
    lines = capsys.readouterr().err.splitlines()
    assert "without any spike" not in lines[0]
    assert "trial 7 begins with 30.5 without any spike, as times go on from trial" in lines[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n", "there are no rows"),
        ("1,2\n3,4\n", "its first line holds numbers: expected the names of the columns"),
        ("a,b\n1,2,3\n", "row 1 has 3 cells where the first line has 2"),
        ("a,a\n1,2\n", "two columns are called 'a'"),
        ("a;u\n1,5;2\n2;3\n", "with points instead of decimal commas"),
        ("a,u\nx,2\n2,3\n", "column a has 'x' in row 1; expected numbers"),
        ("a,u\n1_5,2\n2,3\n", "column a has '1_5' in row 1; expected numbers"),
        ("# of a rig\na,u\n#N/A,2\n2,3\n", "column a has '#N/A' in row 1; expected numbers"),
        ("t,a\n0,1\n1,2\n0.5,3\n", "t does not rise at row 2, from 1 to 0.5: sort the rows"),
        ("t,time,a\n0,0,1\n", "t, time could all be time: choose, --names.time"),
        ("u,light\n1,2\n", "no column is left for y"),
        ("unit,time\n1,\n", "1 spikes have no finite time from 0 on"),
    ],
)
def test_csv_that_cannot_be_is_refused_in_one_line(tmp_path, text, message):
    refuse(write(tmp_path, text), message)


def test_a_table_of_another_encoding_is_refused_with_a_way_out(tmp_path):
    for encoding in ("latin-1", "utf-16"):
        (tmp_path / "a.csv").write_text("a µV,u\n1,2\n2,3\n", encoding)
        refuse(tmp_path / "a.csv", "it is no text in UTF-8: if it is a table, save it as UTF-8")


def pack(path: str) -> str:
    """Writes what gzip makes of a file, and returns its path."""
    packed = Path(f"{path}.gz")
    packed.write_bytes(gzip.compress(Path(path).read_bytes()))
    return str(packed)


def test_packed_tables_are_read_as_they_were(tmp_path):
    path = write(tmp_path, table("a,b,c,stim1,stim2", *Y.T, *U.T))
    assert_same(recordings.load(pack(path)), recordings.load(path))
    spikes = write(tmp_path, table("unit,time", [0, 1, 0], [0.1, 0.4, 2.2]), "spikes.csv")
    inputs = write(tmp_path, table("time,u", [0, 1, 2], [1, 0, 3]), "u.csv")
    data = recordings.load(pack(spikes), 0.5, inputs=(pack(inputs),))
    assert_same(data, recordings.load(spikes, 0.5, inputs=(inputs,)))


def test_other_packed_files_are_refused_with_what_to_do(tmp_path):
    np.savez(tmp_path / "a.npz", y=Y, u=U)
    for path in (str(tmp_path / "a.npz"), save_mat(tmp_path, y=Y, u=U)):
        refuse(pack(path), "of packed files only CSV is read: unpack it, gunzip")
    whole = Path(pack(write(tmp_path, table("a,b,c", *Y.T))))
    content = whole.read_bytes()
    for spoilt in (content[:-50], content[:3], content[:-8] + b"0" * 8):
        whole.write_bytes(spoilt)
        refuse(whole, "data.csv.gz cannot be read (gzip cannot unpack it, ")


def test_inputs_of_their_own_are_for_spikes_alone(tmp_path):
    inputs = write(tmp_path, "time,u\n0,1\n", "u.csv")
    np.savez(tmp_path / "a.npz", y=Y, u=U)
    refuse(tmp_path / "a.npz", "a.npz holds its inputs: leave out --inputs", inputs=(inputs,))
    trials = write(tmp_path, "unit,time,trial\n0,0.5,1\n0,0.2,2\n")
    refuse(trials, "trials begin at time 0 each: leave out --inputs, or", inputs=(inputs,))
    channels = write(tmp_path, table("a,b,c", *Y.T))
    refuse(channels, "leave out --inputs", inputs=(inputs,))
    refuse(channels, "there are 1 files of data and 2 of inputs", inputs=(inputs, inputs))


def test_npz_arrays_of_other_names(tmp_path):
    path = str(tmp_path / "a.npz")
    np.savez(path, lfp=Y, light=U[:, 0], force=U[:, 1])
    data = recordings.load(path, names=Names(y=("lfp",), u=("light", "force")))
    assert_same(data, expected_of(tmp_path, y=Y, u=U))
    refuse(path, "no array 'LFP', which --names.y asks for", Names(y=("LFP",), u=("light",)))


def test_npz_times_say_what_is_missing_and_how_long_a_step_is(tmp_path, capsys):
    """The same as in a MATLAB file."""
    keep = np.r_[0:10, 13:40]
    arrays = {"y": Y[keep], "u": U[keep], "t": 5 + 0.02 * keep, "time_unit": "s"}
    path = str(tmp_path / "gap.npz")
    np.savez(path, **arrays)
    assert_same(recordings.load(path), recordings.load(save_mat(tmp_path, **arrays)))
    assert "gap.npz: times from t, 3 steps missing\n" in capsys.readouterr().err
    time = step_time.load([path], 1.0, None, "")
    assert (time.length, time.unit) == (pytest.approx(0.02), "s")
    np.savez(path, y=Y[keep, 0], u=U[keep, 0], stamp=keep[:, None])  # one channel, no axis
    data = recordings.load(path, names=Names(time="stamp"))
    np.testing.assert_array_equal(data.observed[0, :, 0], np.isin(np.arange(40), keep))
    refuse(path, "there is no when; there are y, u, stamp", Names(time="when"))
    np.savez(path, y=Y, u=U, Fs=250, t=np.arange(40))
    assert step_time.load([path], 1.0, None, "") == StepTime(1 / 250, "")
    np.savez(path, y=Y, u=U, t=np.r_[0:20, 3:23])
    refuse(path, "gap.npz: t does not rise at row 20, from 19 to 3")


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
    recordings.load(path)
    line = capsys.readouterr().err
    assert line.startswith(f"{path}: not read: {names} read are y or" if names else "")
    assert len(line.splitlines()) == bool(names)


@pytest.mark.parametrize("arrays", [Sample._fields, RigRecord._fields])
def test_arrays_that_the_library_writes_are_not_reported(tmp_path, arrays, capsys):
    path = str(tmp_path / "own.npz")
    beside: dict[str, Any] = {x: Y for x in arrays if x not in ("y", "u")}
    np.savez(path, y=Y, u=U, **beside)
    recordings.load(path)
    assert capsys.readouterr().err == ""
    np.savez(path, y=Y, u=U, Z=Y, **beside)  # which is no longer a file of the library
    recordings.load(path)
    assert f"not read: Z, {', '.join(beside)};" in capsys.readouterr().err
