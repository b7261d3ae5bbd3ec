"""NWB files, written here as the format says, without its library."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from train.vector_field.data import step_time
from train.vector_field.data.files import loading
from train.vector_field.data.files.names import Names
from train.vector_field.data.step_time import StepTime

RNG = np.random.default_rng(0)
Y = RNG.normal(size=(50, 4)).astype(np.float32)
TIMES = [np.sort(RNG.uniform(0, 5, n)) for n in (12, 0, 30)]


@pytest.fixture
def h5py():
    return pytest.importorskip("h5py")


def add_series(file, path, values, kind="TimeSeries", times=None, rate=None) -> None:
    group = file.create_group(path)
    group.attrs["neurodata_type"] = kind
    group.create_dataset("data", data=values).attrs["conversion"] = 1.0
    if times is not None:
        group.create_dataset("timestamps", data=times)
    else:
        group.create_dataset("starting_time", data=0.0).attrs["rate"] = rate


def write_nwb(h5py, path, spikes: bool = True, more: bool = False) -> str:
    with h5py.File(path, "w") as file:
        file.attrs["nwb_version"] = "2.7.0"
        if spikes:
            units = file.create_group("units")
            units.create_dataset("spike_times", data=np.concatenate(TIMES))
            units.create_dataset("spike_times_index", data=np.cumsum([len(x) for x in TIMES]))
        add_series(file, "acquisition/lfp", Y, rate=10.0)
        if more:
            add_series(file, "processing/behavior/speed", Y[:, 0], rate=10.0)
        add_series(file, "acquisition/film", np.zeros((50, 5, 5)), rate=10.0)  # no channels
        add_series(file, "stimulus/presentation/force", np.arange(50.0), rate=10.0)
        add_series(
            *(file, "stimulus/presentation/light", np.array([1, -1, 1, -1])),
            kind="IntervalSeries",
            times=np.array([0.5, 1.0, 2.0, 4.0]),
        )
    return str(path)


def test_units_and_stimuli(h5py, tmp_path):
    path = write_nwb(h5py, tmp_path / "day.nwb")
    data = loading.load(path, 0.5)
    counts = np.stack([np.histogram(x, np.arange(0, 5.1, 0.5))[0] for x in TIMES], 1)
    steps = len(data.y[0])
    np.testing.assert_array_equal(data.y[0], counts[:steps])
    np.testing.assert_array_equal(data.u[0, :, 1], [0, 1, 0, 0, 1, 1, 1, 1, 0, 0][:steps])
    np.testing.assert_allclose(data.u[0, :, 0], 2 + 5 * np.arange(steps))  # means of five rows
    assert step_time.load([path], 0.5, None, "") == StepTime(0.5, "s")


def test_series_and_names(h5py, tmp_path):
    path = write_nwb(h5py, tmp_path / "day.nwb")
    names = Names(y=("acquisition/lfp",), u=("stimulus/presentation/light",))
    data = loading.load(path, names=names)
    np.testing.assert_array_equal(data.y[0], Y)
    light = (np.arange(50) >= 5) & (np.arange(50) < 10) | (np.arange(50) >= 20) & (
        np.arange(50) < 40
    )
    np.testing.assert_array_equal(data.u[0, :, 0], light)
    time = step_time.load([path], 1.0, None, "", names)
    assert (time.length, time.unit) == (pytest.approx(0.1), "s")
    alone = write_nwb(h5py, tmp_path / "alone.nwb", spikes=False)
    np.testing.assert_array_equal(loading.load(alone).y[0], Y)
    with h5py.File(alone, "a") as file:  # what was made of it is no recording
        file.copy("acquisition/lfp", file.create_group("analysis"))
    np.testing.assert_array_equal(loading.load(alone).y[0], Y)
    several = write_nwb(h5py, tmp_path / "several.nwb", spikes=False, more=True)
    message = "There are acquisition/lfp, processing/behavior/speed: choose by --names.y"
    with pytest.raises(ValueError, match=re.escape(message)):
        loading.load(several)
    options = "units, acquisition/lfp, stimulus/presentation/force, stimulus/presentation/light"
    with pytest.raises(ValueError, match=f"no series x; there are {options}\\)"):  # each once
        loading.load(path, names=Names(y=("x",)))


@pytest.mark.parametrize(
    ("times", "rate", "expected"), [(None, 50.0, StepTime(0.02, "s")), ([3.0], None, StepTime())]
)
def test_a_row_alone_has_the_step_of_its_rate(h5py, tmp_path, times, rate, expected):
    """A timestamp tells none: another file does."""
    path = tmp_path / "row.nwb"
    with h5py.File(path, "w") as file:
        file.attrs["nwb_version"] = "2.7.0"
        add_series(file, "acquisition/lfp", Y[:1], times=times, rate=rate)
    assert len(loading.load(str(path)).y[0]) == 1
    assert step_time.load([str(path)], 1.0, None, "") == expected


def test_numbers_are_in_the_unit_of_their_series(h5py, tmp_path):
    """The format defines them as data × conversion × channel_conversion + offset."""
    path, factors = tmp_path / "day.nwb", np.array([1.0, 2.0, 0.5, 4.0], np.float32)
    stored = np.random.default_rng(3).integers(-900, 900, (50, 4)).astype(np.int16)
    with h5py.File(path, "w") as file:
        file.attrs["nwb_version"] = "2.7.0"
        add_series(file, "acquisition/lfp", stored, "ElectricalSeries", rate=20.0)
        file["acquisition/lfp/data"].attrs.update(conversion=0.25, offset=-3.0)
        file["acquisition/lfp/channel_conversion"] = factors
        file["acquisition/lfp/channel_conversion"].attrs["axis"] = 1
    expected = np.array(
        [[x * 0.25 * f - 3 for x, f in zip(r, factors, strict=True)] for r in stored]
    )
    np.testing.assert_allclose(loading.load(str(path)).y[0], expected, rtol=1e-6)
    with h5py.File(path, "a") as file:
        del file["acquisition/lfp/channel_conversion"]
        file["acquisition/lfp/channel_conversion"] = factors[:3]
    with pytest.raises(ValueError, match="lfp has 3 factors in channel_conversion for 4 channels"):
        loading.load(str(path))


def write_stimulus(h5py, path, values, times, kind="TimeSeries", rows=None) -> str:
    with h5py.File(path, "w") as file:
        file.attrs["nwb_version"] = "2.7.0"
        add_series(file, "acquisition/lfp", Y, times=rows, rate=20.0)
        add_series(file, "stimulus/presentation/light", values, kind, np.array(times))
    return str(path)


def test_stimuli_count_by_how_long_they_last(h5py, tmp_path):
    path = tmp_path / "day.nwb"
    light = write_stimulus(h5py, path, np.array([1, -1]), [1.01, 1.02], "IntervalSeries")
    expected = np.zeros(50)
    expected[20] = 0.2  # 10 of 50 ms
    np.testing.assert_allclose(loading.load(light).u[0, :, 0], expected, atol=1e-6)
    uneven = np.arange(50) / 20 + np.random.default_rng(1).uniform(0, 0.005, 50)
    stimulus = np.random.default_rng(2).normal(size=50).astype(np.float32)
    path = write_stimulus(h5py, path, stimulus, uneven, rows=uneven)
    np.testing.assert_array_equal(loading.load(path).u[0, :, 0], stimulus)


def test_stimuli_at_another_time_are_told(h5py, tmp_path, capsys):
    for start, is_told in ((1.0, False), (1000.0, True)):
        times = start + np.array([0.0, 1.0])
        path = write_stimulus(h5py, tmp_path / f"{start}.nwb", np.array([1.0, 0]), times)
        loading.load(path)
        assert ("no row of inputs is between 0 and 2.5, when" in capsys.readouterr().err) == is_told


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (
            [0.5, 1.0, 0.2],
            "light goes back at row 2 (counted from 0), from 1 to 0.2: sort the rows",
        ),
        ([0.5, 1.0, np.nan], "light has 1 times that are not finite: give each row its time"),
        ([0.5, 1.0], "light has 2 timestamps for 3 rows: expected one for each"),
    ],
)
def test_times_of_stimuli_that_cannot_be_are_refused(h5py, tmp_path, times, message):
    path = write_stimulus(h5py, tmp_path / "day.nwb", np.array([0.0, 1, 0]), times)
    with pytest.raises(ValueError, match=re.escape(message)):
        loading.load(path)


def test_other_hdf5_files_are_refused(h5py, tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["y"] = Y
    with pytest.raises(ValueError, match="it is an HDF5 file, but not of NWB"):
        loading.load(str(path))


def test_what_a_series_lacks_is_named(h5py, tmp_path, capsys):
    path, lfp = write_nwb(h5py, tmp_path / "day.nwb"), Names(y=("acquisition/lfp",))
    rows = np.r_[0:10, 30:70] / 10
    with h5py.File(path, "a") as file:
        add_series(file, "acquisition/gap", Y, times=rows)
        add_series(file, "acquisition/lost", Y, times=np.where(rows == 0, np.nan, rows))
        add_series(file, "acquisition/none", Y[:0], rate=10.0)
    gap = loading.load(path, names=Names(y=("acquisition/gap",)))
    np.testing.assert_array_equal(
        gap.observed[0].all(-1), np.r_[10 * [True], 20 * [False], 40 * [True]]
    )
    assert "; 20 steps missing" in capsys.readouterr().err
    for names, message in (
        (Names(y=("acquisition/lost",)), "timestamps of acquisition/lost has 1 values that are"),
        (Names(y=("acquisition/none",)), "none has no values: choose others by --names.y"),
        (Names(y=("units", "acquisition/lfp")), "/units is no series: choose series alone"),
        (Names(y=("acquisition/lfp",), u=("units",)), "/units is no series: choose series alone"),
    ):
        with pytest.raises(ValueError, match=message):
            loading.load(path, names=names)
    for part, changed, message in (
        ("starting_time", {"rate": 0.0}, "lfp starts at 0 s with a rate of 0"),
        ("starting_time", {}, "lfp starts at 0 s with a rate of 0"),
        ("data", {"conversion": "mV"}, "conversion of /acquisition/lfp/data is mV: expected a fin"),
    ):
        with h5py.File(path, "a") as file:
            attributes = file["acquisition/lfp"][part].attrs
            attributes.clear()
            attributes.update(changed)
        with pytest.raises(ValueError, match=message):
            loading.load(path, names=lfp)
    with h5py.File(path, "a") as file:
        del file["units/spike_times_index"]
    with pytest.raises(ValueError, match="its units have no spike_times_index"):
        loading.load(path, 0.5)


def test_without_h5py_a_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    path = tmp_path / "day.nwb"
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(600))
    with pytest.raises(ValueError, match=r"NWB files need h5py: pip install 'jaxrl\[nwb\]'"):
        loading.load(str(path))


def test_a_file_that_is_cut_off_or_damaged_is_refused_by_name(h5py, tmp_path):
    path = tmp_path / "day.nwb"
    content = Path(write_nwb(h5py, path)).read_bytes()
    start = content.index(b"TREE")
    for broken in (content[:2000], content[:start] + b"\xff" * 600 + content[start + 600 :]):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=r"day.nwb cannot be read \(.*\); expected an npz"):
            loading.load(str(path), 0.5)
