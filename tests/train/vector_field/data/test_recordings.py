"""Files of recorded data: their formats, and what is refused."""

import re

import numpy as np
import pytest

from tests.train.vector_field.data.recording_files import LENGTHS, RNG, SPIKES, U, Y, save_arrays
from train.vector_field.data import recordings
from train.vector_field.data.files import loading


def test_episodes_of_unequal_length_in_three_ways(tmp_path):
    """A file with `lengths`, one with NaN to the end, and a file for each hold the same data."""
    one = save_arrays(tmp_path / "one.npz", y=Y, u=U, lengths=LENGTHS)
    is_padding = np.arange(50)[None, :, None] >= LENGTHS[:, None, None]
    nans = save_arrays(
        tmp_path / "nan.npz", y=np.where(is_padding, np.nan, Y), u=np.where(is_padding, np.nan, U)
    )
    files = [
        save_arrays(tmp_path / f"{e}.npz", y=Y[e, :length], u=U[e, :length])
        for e, length in enumerate(LENGTHS)
    ]
    expected = loading.load(one)
    np.testing.assert_array_equal(expected.lengths, LENGTHS)
    np.testing.assert_array_equal(expected.observed, np.broadcast_to(~is_padding, Y.shape))
    np.testing.assert_array_equal(expected.y, np.where(is_padding, 0, Y).astype(np.float32))
    np.testing.assert_array_equal(expected.u, np.where(is_padding, 0, U).astype(np.float32))
    assert expected.is_complete
    for other in (nans, files):
        assert_same_data(loading.load(other), expected)


def test_nan_is_a_missing_sample(tmp_path):
    y = Y[0].copy()
    y[3:6], y[10, 2], y[-5:] = np.nan, np.nan, np.nan  # at the end the inputs are known
    data = loading.load(save_arrays(tmp_path / "gap.npz", y=y, u=U[0]))
    np.testing.assert_array_equal(data.observed[0], ~np.isnan(y))
    assert data.lengths == [50]
    assert not data.is_complete
    assert np.isfinite(data.y).all()


def test_a_file_is_read_once_until_it_changes(tmp_path):
    path = save_arrays(tmp_path / "data.npz", y=Y[0], u=U[0])
    before = loading.load(path)
    assert loading.load([path]) is before
    with pytest.raises(ValueError, match="read-only"):
        before.y[:] = 0  # it would change what the next reader gets
    save_arrays(tmp_path / "data.npz", y=Y[1, :40], u=U[1, :40])
    np.testing.assert_array_equal(loading.load(path).y[0], Y[1, :40].astype(np.float32))
    (tmp_path / "data.npz").unlink()
    with pytest.raises(ValueError, match="there is no file"):
        loading.load(path)


def assert_same_data(data: recordings.Data, expected: recordings.Data) -> None:
    for a, b in zip(data, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_arrays_of_other_kinds_and_axes_are_the_same_data(tmp_path):
    """Booleans, one channel or input without an axis, columns of MATLAB, whole floats."""
    number = iter(range(100))
    load = lambda **arrays: loading.load(save_arrays(tmp_path / f"{next(number)}.npz", **arrays))
    raster, u = RNG.random((3, 50, 4)) < 0.2, U[..., :1]
    counts = raster.astype(float)
    expected = load(y=counts, u=u)
    np.testing.assert_array_equal(expected.y, counts)
    assert_same_data(load(y=raster, u=u[..., 0]), expected)
    assert_same_data(load(y=np.asfortranarray(raster.astype(">i2")), u=u.astype(">f8")), expected)
    assert_same_data(load(y=raster.reshape(150, 4), u=u.reshape(150), lengths=[50.0] * 3), expected)
    one = load(y=counts[..., :1], u=u)
    assert_same_data(load(y=raster[..., 0], u=u), one)
    first = load(y=counts[0, :, :1], u=u[0])
    for y in (raster[0, :, 0], counts[0, :, :1], raster[0, :, 0].astype(np.int8)):
        for inputs in (u[0, :, 0], u[0]):
            assert_same_data(load(y=y, u=inputs), first)
    cut = load(y=counts, u=u, lengths=LENGTHS)
    for lengths in (LENGTHS.astype(float), LENGTHS[:, None].astype(np.uint8), LENGTHS[None]):
        assert_same_data(load(y=counts, u=u, lengths=lengths), cut)


def test_episodes_in_a_row(tmp_path):
    expected = loading.load(save_arrays(tmp_path / "a.npz", y=Y, u=U, lengths=LENGTHS))
    row = lambda x: np.concatenate([part[:n] for part, n in zip(x, LENGTHS, strict=True)])
    file = save_arrays(tmp_path / "b.npz", y=row(Y), u=row(U), lengths=LENGTHS.astype(float))
    assert_same_data(loading.load(file), expected)


TWO = {**SPIKES, "u": np.ones((2, 10, 1)), "lengths": [10, 5]}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": Y, "u": U, "lengths": [50, 20]}, "lengths must be [3] whole numbers from 1 to 50"),
        ({"y": Y, "u": U, "lengths": [50, 51, 1]}, "lengths must be"),
        ({"y": Y, "u": U, "lengths": [50.5, 1, 1]}, "lengths must be"),
        ({**SPIKES, "y": Y[0]}, "both y and spike_times"),
        ({"u": U}, "no array 'y' and no spike_times"),
        ({**SPIKES, "spike_times": [0.5, 3.5]}, "1 spikes are later than the end"),
        ({**SPIKES, "spike_times": [0.5, -1.0]}, "finite times from 0 on"),
        ({**SPIKES, "spike_times": [0.5, np.nan]}, "finite times from 0 on"),
        ({**SPIKES, "spike_units": [0, 0.5]}, "spike_units must be [S] whole numbers"),
        ({**SPIKES, "spike_units": [0]}, "spike_units must be [S] whole numbers"),
        ({**SPIKES, "spike_units": [0, 2**31 - 2]}, "are too many: number the units from 0"),
        ({**SPIKES, "duration": 5.0}, "5 has 5 bins of 1, and u 3 steps"),
        ({**SPIKES, "duration": -5.0}, "duration must be a time above 0"),
        ({**SPIKES, "duration": 1e300}, "1e+300 has 1"),
        ({**SPIKES, "num_units": 1}, "num_units must be one whole number of at least 2"),
        ({**SPIKES, "num_units": 2.5}, "num_units must be one whole number of at least 2"),
        ({**SPIKES, "num_units": [3, 3]}, "num_units must be one whole number"),
        ({**SPIKES, "num_units": 2**40}, "num_units must be one whole number"),
        ({**SPIKES, "spike_units": [0, -1]}, "from 0 on, one for each spike: leave out spikes of"),
        ({**SPIKES, "spike_units": [0, np.nan]}, "spike_units must be [S] whole numbers"),
        (
            {"y": Y[0], "u": U[0], "lengths": [20, 20]},
            "or add up to 50, one episode after the other",
        ),
        ({"y": Y, "u": U, "lengths": [50, np.nan, 1]}, "lengths must be"),
        ({**SPIKES, "u": np.ones((2, 3, 1))}, "give the episode of each spike, spike_episodes"),
        (
            {**SPIKES, "u": np.ones((2, 3, 1)), "spike_episodes": [0, 2]},
            "spike_episodes go up to 2; u has 2",
        ),
        ({"spike_times": [0.5], "u": np.ones((3, 1))}, "no spike_units"),
        (
            {**TWO, "spike_times": [9.5, 7.5], "spike_episodes": [0, 1]},
            "1 spikes are later than the end of their episode, such as one at 7.5 in episode 1, "
            "which ends at 5",
        ),
        (
            {**TWO, "spike_episodes": [0, 1], "duration": [10.0, 6.0]},
            "a duration of 6 has 6 bins of 1, and u 5 steps",
        ),
        ({"y": Y, "u": U, "lengths": [True] * 3}, "lengths must be [3] whole numbers from 1 to 50"),
        ({**SPIKES, "spike_units": [False, True]}, "spike_units must be [S] whole numbers"),
        ({**SPIKES, "num_units": True}, "num_units must be one whole number"),
        (
            {"y": Y[0, :, :1].T, "u": U[0, :, :1].T},
            "has one step of many channels, y (1, 50) and u (1, 50); expected a row for each step: "
            "transpose them",
        ),
        ({**SPIKES, "u": np.ones((1, 3))}, "u (1, 3); expected a row for each step"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(tmp_path, arrays, message):
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        loading.load(save_arrays(tmp_path / "data.npz", **arrays))
    assert "\n" not in str(error.value)


def test_files_must_fit_together(tmp_path):
    first = save_arrays(tmp_path / "a.npz", y=Y, u=U)
    second = save_arrays(tmp_path / "b.npz", y=Y[..., :3], u=U)
    with pytest.raises(ValueError, match=r"b.npz has 3 channels and 2 inputs, and .*a.npz 4 and 2"):
        loading.load([first, second])


def test_what_is_no_file_of_arrays_is_refused(tmp_path):
    path = tmp_path / "text.npz"
    path.write_text("y, u")
    for name, message in ((path, "cannot be read"), (tmp_path / "none.npz", "there is no file")):
        with pytest.raises(ValueError, match=message):
            loading.load(str(name))


SMALL = np.random.default_rng(1).normal(size=(90, 2))


@pytest.mark.parametrize("name", ["y", "u"])
@pytest.mark.parametrize(
    ("offset", "scale"), [(1e6, 0.5), (3e7, 0.5), (1e6, 1e-3), (-1e9, 1), (1, 1e-9), (1e12, 1e3)]
)
def test_what_float32_would_round_to_few_values_is_refused(tmp_path, name, offset, scale):
    x = SMALL.copy()
    x[:, 1] = offset + scale * x[:, 1]
    x[3, 0] = x[4, 1] = np.nan if name == "y" else offset
    arrays = {"y": SMALL, "u": SMALL, name: x}
    span = np.nanmax(x[:, 1]) - np.nanmin(x[:, 1])
    with pytest.raises(ValueError, match=f"channel 1 of {name} in ") as error:
        loading.load(save_arrays(tmp_path / "far.npz", **arrays))
    assert f"has a spread of {span:.2g} around {offset:.2g}, which float32" in str(error.value)
    assert str(error.value).endswith("cannot hold: subtract its mean")


def test_what_float32_holds_is_taken(tmp_path):
    """Numbers that it has, also far from 0; a constant, though rounded; an offset of some size."""
    exact = (1e6 + SMALL).astype(np.float32)
    constant = np.full(SMALL.shape, 1234.1)
    constant[1] = np.nextafter(constant[1], 0)
    for x in (exact, 1e7 + np.round(SMALL), 1e3 + SMALL, constant, 1e6 * SMALL, 0 * SMALL + 0.1):
        data = loading.load(save_arrays(tmp_path / "x.npz", y=x, u=x))
        np.testing.assert_array_equal(data.y[0], np.asarray(x, np.float32))


def test_counts_are_whole_before_float32(tmp_path):
    wide = 2e7 + 1e5 * SMALL
    assert (wide.astype(np.float32) % 1 == 0).all()
    for y, expected in ((wide, False), (np.round(wide), True), (-np.round(wide), False)):
        data = loading.load(save_arrays(tmp_path / "x.npz", y=y, u=SMALL))
        assert data.holds_counts is expected
        assert data.cut(slice(None), slice(20), np.array([20])).holds_counts is expected
