"""CSV files hold the same data as an npz file of the same arrays."""

import numpy as np
import pytest

from tests.train.vector_field.data.files.formats import (
    EPISODES,
    TIMES,
    U,
    Y,
    assert_same,
    counts_of,
    expected_of,
    refuse,
    table,
    write,
)
from train.vector_field.data import step_time
from train.vector_field.data.files import loading
from train.vector_field.data.files.names import Names
from train.vector_field.data.files.tables import csv_file
from train.vector_field.data.step_time import StepTime


def test_csv_of_channels(tmp_path):
    expected = expected_of(tmp_path, y=Y, u=U)
    header, columns = "a,b,c,stim1,stim2", [*Y.T, *U.T]
    assert_same(loading.load(write(tmp_path, table(header, *columns))), expected)
    for separator in (";", "\t"):
        text = "# a comment\n" + table(header, *columns, separator=separator)
        assert_same(loading.load(write(tmp_path, text)), expected)
    keep = np.r_[0:10, 13:40]
    timed = table(f"time (ms),{header}", 20.0 * keep, *(x[keep] for x in columns))
    path = write(tmp_path, timed)
    data = loading.load(path)
    np.testing.assert_array_equal(data.observed[0].all(1), np.isin(np.arange(40), keep))
    assert step_time.load([path], 1.0, None, "") == StepTime(20.0, "ms")
    names = Names(y=("c", "a"), u=("b",))
    assert_same(
        loading.load(path, names=names).cut(slice(None), slice(10), np.array([10])),
        expected_of(tmp_path, y=Y[:10, [2, 0]], u=Y[:10, 1:2]),
    )
    for separator in (",", " "):  # as numpy.savetxt writes names
        text = f"# of a rig\n# {table(header, *columns, separator=separator)}"
        assert_same(loading.load(write(tmp_path, text)), expected)
    lines = table(header, *columns).splitlines()
    lines[3] = ",".join(["", "NaN", *lines[3].split(",")[2:]])
    data = loading.load(write(tmp_path, "\n".join(lines)))
    np.testing.assert_array_equal(np.argwhere(~data.observed[0]), [[2, 0], [2, 1]])


def test_csv_of_trials(tmp_path):
    y, u = EPISODES
    trials, time = np.repeat([7, 3, 9, 8], 30), np.tile(np.arange(30) / 10, 4)
    columns = [*np.concatenate(y).T, *np.concatenate(u).T]
    text = table("trial,t,a,b,c,d,e,u0,u1", trials, time, *columns)
    assert_same(loading.load(write(tmp_path, text)), expected_of(tmp_path, y=y, u=u))
    mixed = table("trial,a,u", [1, 2, 1], [0, 1, 2], [0, 0, 0])
    refuse(write(tmp_path, mixed), "rows of one trial in trial are not together")


def test_labels_of_trials_are_gone_through_once_however_many_rows_there_are():
    """The rows were gone through once for each row: forty thousand spikes took minutes to read."""

    class Labels(list):
        passes = 0

        def __iter__(self):
            self.passes += 1
            return super().__iter__()

    labels = Labels(["b", "a", "b", "c", "a"] * 100)
    places = csv_file.places_by_first_use(labels)
    np.testing.assert_array_equal(places, [0, 1, 0, 2, 1] * 100)
    assert labels.passes == 1


def test_a_trial_of_one_row_does_not_say_how_long_a_step_is(tmp_path, capsys):
    trials = ["a"] * 50 + ["b"]
    lines = [f"{trial},{0.02 * i:.2f},{i % 7}.5" for i, trial in enumerate(trials)]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(["trial,time (s),y", *lines]))
    data = loading.load(str(path))
    np.testing.assert_array_equal(data.lengths, [50, 1])
    length, unit = step_time.load([str(path)], 1.0, None, "")
    assert unit == "s"
    assert length == pytest.approx(0.02)
    alone = tmp_path / "alone.csv"  # nor does a file of one
    alone.write_text(f"time (s),y\n{lines[0].partition(',')[2]}\n")
    assert loading.load(str(alone)).lengths.tolist() == [1]
    assert step_time.load([str(alone)], 1.0, None, "") == StepTime()
    assert step_time.load([str(path), str(alone)], 1.0, None, "").length == length
    assert ": CSV, 1 row at time (s); y: y" in capsys.readouterr().err


def test_quoted_cells_may_hold_the_separator(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('"time","rate, left","rate, right"\n0,"1.5",2\n1, "2.5" ,3\n2,0.5,1\n')
    np.testing.assert_array_equal(loading.load(str(path)).y[0], [[1.5, 2], [2.5, 3], [0.5, 1]])
    path.write_text('time,y\n0,"1,5"\n1,"2,5"\n')
    refuse(
        path,
        "column y has '1,5' in row 0 (counted from 0); expected numbers, with points instead of",
    )
    path.write_text('time,y\n0,"' + 200_000 * "1")
    refuse(path, "its cells cannot be told apart")


def test_csv_of_spikes_with_and_without_inputs(tmp_path):
    names = [["n3", "n10", "b", "silent", "a"][k] for k in range(5)]
    rows = sorted((t, names[k]) for k, times in enumerate(TIMES) for t in times)
    path = write(tmp_path, table("neuron,time_s", [x[1] for x in rows], [x[0] for x in rows]))
    bins = int(rows[-1][0] / 0.25) + 1
    data = loading.load(path, 0.25)
    order = [names.index(x) for x in sorted(set(names) - {"silent"})]  # who never fired is unknown
    np.testing.assert_array_equal(data.y[0], counts_of(0.25, bins)[:, order])
    assert step_time.load([path], 0.25, None, "") == StepTime(0.25, "s")
    events = write(tmp_path, "time,light,force\n0.3,1,0\n0.8,0,0\n1.1,0,2\n1.2,0,4\n", "light.csv")
    data = loading.load(path, 0.25, inputs=(events,))
    np.testing.assert_allclose(data.u[0, :6, 0], [0, 0.8, 1, 0.2, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(data.u[0, :6, 1], [0, 0, 0, 0, 1.6, 4], rtol=1e-6)
    text = table("unit,time,trial", [0, 4, 0, 4], [0.1, 0.6, 0.2, 0.9], ["x", "x", "y", "y"])
    data = loading.load(write(tmp_path, text), 0.5)
    np.testing.assert_array_equal(data.lengths, [2, 2])
    np.testing.assert_array_equal(data.y, [[[1, 0], [0, 1]], [[1, 0], [0, 1]]])


def test_frames_that_come_sooner_leave_no_row_out(tmp_path, capsys):
    frames = 10 * np.arange(40) - 9 * (np.arange(40) > 20)  # one that rises by 1 among tens
    loading.load(write(tmp_path, table("frame,a,b,c", frames, *Y.T)))
    assert capsys.readouterr().err.endswith("; left out: frame, which numbers the rows\n")


@pytest.mark.parametrize("name", ["frame", "n"])
def test_columns_that_number_the_rows_are_no_channels(tmp_path, name, capsys):
    numbers = np.arange(7, 47)
    if name == "frame":
        numbers[20:] += 3  # of which some were lost
    path = write(tmp_path, table(f"{name},a,b,c", numbers, *Y.T))
    np.testing.assert_allclose(loading.load(path).y[0], Y, rtol=1e-6)
    lost = "; by frame 3 rows are missing: --names.time frame makes them missing samples"
    note = f"; left out: {name}, which numbers the rows{lost * (name == 'frame')}\n"
    assert note in capsys.readouterr().err
    if name == "frame":  # the way out
        observed = loading.load(path, names=Names(time=name)).observed[0].all(1)
        np.testing.assert_array_equal(np.flatnonzero(observed), numbers - numbers[0])
        assert step_time.load([path], 1.0, 0.02, "s", Names(time=name)) == StepTime(0.02, "s")
    assert loading.load(path, names=Names(y=(name, "a"))).y.shape == (1, 40, 2)
    trials = table(f"trial,{name},a,b,c", np.repeat([1, 2], 20), np.tile(numbers[:20], 2), *Y.T)
    data = loading.load(write(tmp_path, trials))
    np.testing.assert_allclose(data.y, Y.reshape(2, 20, 3), rtol=1e-6)
    uneven = numbers + (np.arange(40) == 9) * (-2.5)
    path = write(tmp_path, table(f"{name},a,b,c", uneven, *Y.T))
    assert loading.load(path).y.shape == (1, 40, 4)


def test_columns_without_a_name_are_called_by_their_place(tmp_path, capsys):
    """Pandas writes the numbers of rows under no name, and spreadsheets an empty column."""
    path = write(tmp_path, table("t,,b", np.arange(40) / 10, *Y.T[:2]))
    np.testing.assert_allclose(loading.load(path).y[0], Y[:, :2], rtol=1e-6)
    assert "y: column 2, b; " in capsys.readouterr().err
    np.testing.assert_allclose(loading.load(path, names=Names(y=("b",))).y[0], Y[:, 1:2], 1e-6)
    path = write(tmp_path, table(",a,b,", np.arange(40), *Y.T[:2], [""] * 40), "b.csv")
    np.testing.assert_allclose(loading.load(path).y[0], Y[:, :2], rtol=1e-6)
    assert "y: a, b; " in (line := capsys.readouterr().err)
    assert line.endswith("; left out: column 1, which numbers the rows\n")


def test_spikes_with_other_columns(tmp_path, capsys):
    """Sorters write such tables."""
    units, times = [3, 5, 3, 5], [0.1, 0.6, 0.2, 2.9]
    path = write(tmp_path, table("unit,time_s,depth", units, times, [7, 8, 9, 6]))
    message = "its columns unit and time_s are those of spikes, but there are others, depth: leave"
    refuse(path, message)
    data = loading.load(path, names=Names(units="unit"))
    np.testing.assert_array_equal(data.y, [[[2, 1], [0, 0], [0, 1]]])
    assert "; left out: depth\n" in capsys.readouterr().err


def test_times_of_trials_that_do_not_begin_anew_are_named(tmp_path, capsys):
    times, trials = np.array([0.1, 0.6, 3, 9, 2, 7, 0.5, 8]), np.repeat([4, 5, 6, 7], 2)
    for shift in (0, 10):
        text = table("unit,time,trial", [0, 1] * 4, times + shift * (trials - 4), trials)
        loading.load(write(tmp_path, text, f"{shift}.csv"), 0.5)
    lines = capsys.readouterr().err.splitlines()
    assert "without any spike" not in lines[0]
    assert "trial 7 begins with 30.5 without any spike, as times go on from trial" in lines[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n", "there are no rows"),
        ("1,2\n3,4\n", "its first line holds numbers: expected the names of the columns"),
        ("# subject 3\n1 2\n3 4\n", "its first line holds numbers: expected the names"),
        ("a,b\n1,2,3\n", "row 0 (counted from 0) has 3 cells where the first line has 2"),
        ("a,a\n1,2\n", "two columns are called 'a'"),
        ("a;u\n1,5;2\n2;3\n", "with points instead of decimal commas"),
        ("a,u\nx,2\n2,3\n", "column a has 'x' in row 0 (counted from 0); expected numbers"),
        ("a,u\n1_5,2\n2,3\n", "column a has '1_5' in row 0 (counted from 0); expected numbers"),
        (
            "# of a rig\na,u\n#N/A,2\n2,3\n",
            "column a has '#N/A' in row 0 (counted from 0); expected numbers",
        ),
        (
            "t,a\n0,1\n1,2\n0.5,3\n",
            "t does not rise at row 2 (counted from 0), from 1 to 0.5: sort the rows",
        ),
        (
            "trial,t,a\n0,0,1\n0,1,2\n0,2,3\n1,0,4\n1,1,5\n1,1,6\n",
            "t of episode 1 does not rise at row 2 (counted from 0), from 1 to 1: sort the rows",
        ),
        (
            "t,a\n0,1\n1,2\n2,3\n2.4,4\n3.4,5\n4.4,6\n",
            "t has uneven steps, 0.4 before row 3 (counted from 0) where most are 1: interpolate",
        ),
        (
            "trial,unit,time\n0,1,0.5\n,1,7\nNaN,2,9\n1,2,0.5\n",  # times of a session
            "2 rows without a trial in column trial, as between trials: leave them out",
        ),
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
