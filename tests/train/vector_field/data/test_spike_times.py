"""Spike times are counted in bins, in whatever unit they are."""

import numpy as np
import pytest

from tests.train.vector_field.data.recording_files import RNG, SPIKES, U, save_arrays
from train.vector_field.data.files import loading

TICKS = RNG.permutation(np.arange(0, 6_000, 7))  # as they are sampled, in no order
RATE, PER_BIN = 30_000, 600


@pytest.mark.parametrize("kind", [float, np.float32, ">f8"])
def test_spikes_on_an_edge_are_in_the_bin_after_it(tmp_path, kind):
    """Counted in whole samples; times are rounded, and so are multiples of the width of a bin."""
    owners, offset = TICKS % 3, RATE * 40  # a minute later float32 has coarser steps
    for name, ticks, bins in (("early", TICKS, 10), ("late", TICKS + offset, 10 + 2_000)):
        times, edges = (ticks / RATE).astype(kind), np.arange(10) * PER_BIN / RATE
        ticks = np.concatenate([ticks, PER_BIN * np.arange(10)])
        arrays = {
            "spike_times": np.concatenate([times, edges.astype(kind)]),
            "spike_units": np.concatenate([owners, np.zeros(10, int)]),
            "u": np.zeros(bins),
        }
        data = loading.load(save_arrays(tmp_path / f"{name}.npz", **arrays), PER_BIN / RATE).y[0]
        expected = np.zeros((bins, 3))
        np.add.at(expected, (ticks // PER_BIN, arrays["spike_units"]), 1)
        np.testing.assert_array_equal(data, expected)


def test_tenths_of_a_second_are_ten_bins(tmp_path):
    times = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    arrays = {"spike_times": times, "spike_units": [0] * 10, "u": np.zeros((10, 1))}
    for change in ({}, {"duration": 1.05}, {"duration": np.float32(1)}):
        data = loading.load(save_arrays(tmp_path / "s.npz", **arrays | change), 0.1)
        np.testing.assert_array_equal(data.y.ravel(), np.ones(10))


@pytest.mark.parametrize(("duration", "last"), [(0.7, 2), (np.float32(0.7), 2), (0.75, 1)])
def test_a_spike_at_the_very_end_is_in_the_last_bin(tmp_path, duration, last):
    """If that is where the last bin ends, and not a rest that is left out."""
    arrays = {"spike_times": [0.7, 0.65], "spike_units": [0, 0], "u": np.zeros(7)}
    file = save_arrays(tmp_path / "end.npz", **arrays, duration=duration)
    np.testing.assert_array_equal(loading.load(file, 0.1).y.ravel(), [0] * 6 + [last])


def test_units_that_never_fired_are_channels(tmp_path, capsys):
    arrays = {"spike_times": [[0.5], [2.0]], "spike_units": [[0.0], [17.0]], "u": np.ones((3, 1))}
    assert loading.load(save_arrays(tmp_path / "18.npz", **arrays)).y.shape == (1, 3, 18)
    assert (
        "18 units, 0 to 17, up to the last that fired; an array num_units" in capsys.readouterr()[1]
    )
    for number in (20, np.array([[20.0]])):
        file = save_arrays(tmp_path / "20.npz", **arrays, num_units=number)
        data = loading.load(file)
        assert data.y.shape == (1, 3, 20)
        np.testing.assert_array_equal(data.y.sum((0, 1)), np.isin(np.arange(20), (0, 17)))
    assert capsys.readouterr().err == ""
    silent = save_arrays(tmp_path / "silent.npz", spike_times=[], spike_units=[], u=np.ones(3))
    assert loading.load([str(tmp_path / "20.npz"), silent]).y.shape == (2, 3, 20)
    few = save_arrays(tmp_path / "few.npz", **SPIKES, num_units=2)
    with pytest.raises(ValueError, match=r"few.npz says that num_units is 2, but there are 20"):
        loading.load([str(tmp_path / "20.npz"), few])


@pytest.mark.parametrize(
    ("times", "changes", "line"),
    [
        (np.arange(100), {}, ""),
        (np.arange(100) / 1000, {}, "no spikes in the last 99 of 100 bins; is --env.bin-width 1 "),
        (np.arange(50), {"duration": 50}, "the last 50 of 100 rows of u have no bin; is --env.bin"),
        (np.arange(100), {"duration": 99.5}, ""),
        (
            np.arange(50, 100),
            {},
            "no spikes in the first 50 of 100 bins, before 50, which is learn",
        ),
        (np.arange(9, 100), {}, ""),
    ],
)
def test_spikes_that_do_not_fit_the_bins_are_named(tmp_path, capsys, times, changes, line):
    spikes = {"spike_times": times, "spike_units": np.zeros(len(times), int), "num_units": 1}
    path = save_arrays(tmp_path / "s.npz", u=np.zeros((100, 1)), **spikes, **changes)
    loading.load(path)
    output = capsys.readouterr().err
    assert output.startswith(f"{path}: {line}") if line else not output


def test_a_silent_start_is_named_where_every_episode_has_one(tmp_path, capsys):
    spikes = {"spike_units": np.zeros(4, int), "spike_episodes": [0, 0, 1, 1]}
    for first, is_named in ((0, False), (5, True)):
        path = save_arrays(
            tmp_path / f"{first}.npz", **spikes, spike_times=[4, 9, first, 9], u=np.ones((2, 10, 1))
        )
        loading.load(path)
        line = f"{path}: no spikes in the first {4 + first} of 20 bins, before 4, which is learned"
        assert (line in capsys.readouterr().err) == is_named


def test_spike_times_are_counted_as_numpy_counts_them(tmp_path):
    """Where none is on an edge."""
    width, bins, units = 0.05, 60, 3
    times = RNG.uniform(0, 3, 400)
    owners = RNG.integers(0, units, len(times))
    owners[0] = units - 1
    file = save_arrays(
        tmp_path / "spikes.npz", spike_times=times, spike_units=owners, u=U[0, :1].repeat(bins, 0)
    )
    data = loading.load(file, width)
    edges = width * np.arange(bins + 1)
    for unit in range(units):
        expected = np.histogram(times[owners == unit], edges)[0]
        np.testing.assert_array_equal(data.y[0, :, unit], expected)
    assert data.y.sum() == len(times)
    assert data.holds_counts


def test_spikes_of_several_episodes_and_files(tmp_path):
    """Each with its own duration, of which the last part of a bin is left out."""
    arrays = {
        "spike_times": np.array([0.1, 0.9, 1.1, 2.4, 0.2]),
        "spike_units": np.array([0, 1, 1, 0, 0]),
        "spike_episodes": np.array([0, 0, 0, 0, 1]),
        "duration": np.array([2.5, 1.0]),
        "u": np.ones((2, 2, 1)),
    }
    first = save_arrays(tmp_path / "a.npz", **arrays)
    other = save_arrays(tmp_path / "b.npz", spike_times=[0.5], spike_units=[2], u=np.ones((3, 1)))
    data = loading.load([first, other], 1.0)
    np.testing.assert_array_equal(data.lengths, [2, 1, 3])
    np.testing.assert_array_equal(data.y[0, :2], [[1, 1, 0], [0, 1, 0]])
    np.testing.assert_array_equal(data.y[1, 0], [1, 0, 0])
    np.testing.assert_array_equal(data.y[2], [[0, 0, 1], [0, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("width", [0, -1.0, np.inf, np.nan])
def test_a_width_of_bins_is_above_0(tmp_path, width):
    with pytest.raises(ValueError, match=f"bin_width is {width}; expected a finite time above 0"):
        loading.load(save_arrays(tmp_path / "s.npz", **SPIKES), width)
