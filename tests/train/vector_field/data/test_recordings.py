"""Files of recorded data: their formats, what is refused, and spike times in bins."""

import re
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from envs.vector_field.fields import FIELDS, check_dimension
from jaxrl.dynamics import rbf
from tests.train.vector_field.presets import EXPERIMENTS
from train.host.machine.compiled import compiler_options
from train.host.training import Training
from train.vector_field.config import CART_POLE, PRESETS, Model
from train.vector_field.data import recordings
from train.vector_field.training import make_training

RNG = np.random.default_rng(0)
Y, U = RNG.normal(size=(3, 50, 4)), RNG.normal(size=(3, 50, 2))
LENGTHS = np.array([50, 20, 33])


def save_arrays(path, **arrays) -> str:
    np.savez(path, **arrays)
    return str(path)


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
    expected = recordings.load(one)
    np.testing.assert_array_equal(expected.lengths, LENGTHS)
    np.testing.assert_array_equal(expected.observed, np.broadcast_to(~is_padding, Y.shape))
    np.testing.assert_array_equal(expected.y, np.where(is_padding, 0, Y).astype(np.float32))
    np.testing.assert_array_equal(expected.u, np.where(is_padding, 0, U).astype(np.float32))
    assert expected.is_complete
    for other in (nans, files):
        assert_same_data(recordings.load(other), expected)


def test_nan_is_a_missing_sample(tmp_path):
    y = Y[0].copy()
    y[3:6], y[10, 2], y[-5:] = np.nan, np.nan, np.nan  # at the end the inputs are known
    data = recordings.load(save_arrays(tmp_path / "gap.npz", y=y, u=U[0]))
    np.testing.assert_array_equal(data.observed[0], ~np.isnan(y))
    assert data.lengths == [50]
    assert not data.is_complete
    assert np.isfinite(data.y).all()


def test_a_file_is_read_once_until_it_changes(tmp_path):
    path = save_arrays(tmp_path / "data.npz", y=Y[0], u=U[0])
    before = recordings.load(path)
    assert recordings.load([path]) is before
    with pytest.raises(ValueError, match="read-only"):
        before.y[:] = 0  # it would change what the next reader gets
    save_arrays(tmp_path / "data.npz", y=Y[1, :40], u=U[1, :40])
    np.testing.assert_array_equal(recordings.load(path).y[0], Y[1, :40].astype(np.float32))
    (tmp_path / "data.npz").unlink()
    with pytest.raises(ValueError, match="there is no file"):
        recordings.load(path)


def assert_same_data(data: recordings.Data, expected: recordings.Data) -> None:
    for a, b in zip(data, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_arrays_of_other_kinds_and_axes_are_the_same_data(tmp_path):
    """Booleans, one channel or input without an axis, columns of MATLAB, whole floats."""
    number = iter(range(100))
    load = lambda **arrays: recordings.load(save_arrays(tmp_path / f"{next(number)}.npz", **arrays))
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
    expected = recordings.load(save_arrays(tmp_path / "a.npz", y=Y, u=U, lengths=LENGTHS))
    row = lambda x: np.concatenate([part[:n] for part, n in zip(x, LENGTHS, strict=True)])
    file = save_arrays(tmp_path / "b.npz", y=row(Y), u=row(U), lengths=LENGTHS.astype(float))
    assert_same_data(recordings.load(file), expected)


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
        data = recordings.load(save_arrays(tmp_path / f"{name}.npz", **arrays), PER_BIN / RATE).y[0]
        expected = np.zeros((bins, 3))
        np.add.at(expected, (ticks // PER_BIN, arrays["spike_units"]), 1)
        np.testing.assert_array_equal(data, expected)


def test_tenths_of_a_second_are_ten_bins(tmp_path):
    times = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    arrays = {"spike_times": times, "spike_units": [0] * 10, "u": np.zeros((10, 1))}
    for change in ({}, {"duration": 1.05}, {"duration": np.float32(1)}):
        data = recordings.load(save_arrays(tmp_path / "s.npz", **arrays | change), 0.1)
        np.testing.assert_array_equal(data.y.ravel(), np.ones(10))


@pytest.mark.parametrize(("duration", "last"), [(0.7, 2), (np.float32(0.7), 2), (0.75, 1)])
def test_a_spike_at_the_very_end_is_in_the_last_bin(tmp_path, duration, last):
    """If that is where the last bin ends, and not a rest that is left out."""
    arrays = {"spike_times": [0.7, 0.65], "spike_units": [0, 0], "u": np.zeros(7)}
    file = save_arrays(tmp_path / "end.npz", **arrays, duration=duration)
    np.testing.assert_array_equal(recordings.load(file, 0.1).y.ravel(), [0] * 6 + [last])


def test_units_that_never_fired_are_channels(tmp_path, capsys):
    arrays = {"spike_times": [[0.5], [2.0]], "spike_units": [[0.0], [17.0]], "u": np.ones((3, 1))}
    assert recordings.load(save_arrays(tmp_path / "18.npz", **arrays)).y.shape == (1, 3, 18)
    assert (
        "18 units, 0 to 17, up to the last that fired; an array num_units" in capsys.readouterr()[1]
    )
    for number in (20, np.array([[20.0]])):
        file = save_arrays(tmp_path / "20.npz", **arrays, num_units=number)
        data = recordings.load(file)
        assert data.y.shape == (1, 3, 20)
        np.testing.assert_array_equal(data.y.sum((0, 1)), np.isin(np.arange(20), (0, 17)))
    assert capsys.readouterr().err == ""
    silent = save_arrays(tmp_path / "silent.npz", spike_times=[], spike_units=[], u=np.ones(3))
    assert recordings.load([str(tmp_path / "20.npz"), silent]).y.shape == (2, 3, 20)
    few = save_arrays(tmp_path / "few.npz", **SPIKES, num_units=2)
    with pytest.raises(ValueError, match=r"few.npz says that num_units is 2, but there are 20"):
        recordings.load([str(tmp_path / "20.npz"), few])


@pytest.mark.parametrize(
    ("times", "changes", "line"),
    [
        (np.arange(100), {}, ""),
        (np.arange(100) / 1000, {}, "no spikes in the last 99 of 100 bins; is --env.bin-width 1 "),
        (np.arange(50), {"duration": 50}, "the last 50 of 100 rows of u have no bin; is --env.bin"),
        (np.arange(100), {"duration": 99.5}, ""),
    ],
)
def test_spikes_in_another_unit_of_time_are_named(tmp_path, capsys, times, changes, line):
    spikes = {"spike_times": times, "spike_units": np.zeros(len(times), int), "num_units": 1}
    path = save_arrays(tmp_path / "s.npz", u=np.zeros((100, 1)), **spikes, **changes)
    recordings.load(path)
    output = capsys.readouterr().err
    assert output.startswith(f"{path}: {line}") if line else not output


def test_spike_times_are_counted_as_numpy_counts_them(tmp_path):
    """Where none is on an edge."""
    width, bins, units = 0.05, 60, 3
    times = RNG.uniform(0, 3, 400)
    owners = RNG.integers(0, units, len(times))
    owners[0] = units - 1
    file = save_arrays(
        tmp_path / "spikes.npz", spike_times=times, spike_units=owners, u=U[0, :1].repeat(bins, 0)
    )
    data = recordings.load(file, width)
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
    data = recordings.load([first, other], 1.0)
    np.testing.assert_array_equal(data.lengths, [2, 1, 3])
    np.testing.assert_array_equal(data.y[0, :2], [[1, 1, 0], [0, 1, 0]])
    np.testing.assert_array_equal(data.y[1, 0], [1, 0, 0])
    np.testing.assert_array_equal(data.y[2], [[0, 0, 1], [0, 0, 0], [0, 0, 0]])


SPIKES = {"spike_times": [0.5, 2.0], "spike_units": [0, 1], "u": np.ones((3, 1))}
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
        recordings.load(save_arrays(tmp_path / "data.npz", **arrays))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("width", [0, -1.0, np.inf, np.nan])
def test_a_width_of_bins_is_above_0(tmp_path, width):
    with pytest.raises(ValueError, match=f"bin_width is {width}; expected a finite time above 0"):
        recordings.load(save_arrays(tmp_path / "s.npz", **SPIKES), width)


def test_files_must_fit_together(tmp_path):
    first = save_arrays(tmp_path / "a.npz", y=Y, u=U)
    second = save_arrays(tmp_path / "b.npz", y=Y[..., :3], u=U)
    with pytest.raises(ValueError, match=r"b.npz has 3 channels and 2 inputs, and .*a.npz 4 and 2"):
        recordings.load([first, second])


def test_what_is_no_file_of_arrays_is_refused(tmp_path):
    path = tmp_path / "text.npz"
    path.write_text("y, u")
    for name, message in ((path, "cannot be read"), (tmp_path / "none.npz", "there is no file")):
        with pytest.raises(ValueError, match=message):
            recordings.load(str(name))


def test_what_is_unusual_is_named():
    y, u = Y.astype(np.float32), U.astype(np.float32)
    data = lambda y, u: recordings.join_episodes(list(zip(y, u, strict=True)))
    assert recordings.oddities(data(y, u)) == []
    assert recordings.oddities(data(y, 0 * u)) == []  # nothing was put in
    still = y.copy()
    still[..., [1, 3]] = 7.0
    still[0, 5, 1] = np.nan
    (line,) = recordings.oddities(data(still, u))
    assert "y is constant in 2 of 4 channels (1, 3, counted from 0)" in line
    silent = y.copy()
    silent[..., 2] = np.nan
    (line,) = recordings.oddities(data(silent, u))
    assert "y has no values, all are NaN, in 1 of 4 channels (2, counted from 0)" in line
    (line,) = recordings.oddities(data(y[:1, :6].repeat(30, -1), u[:1, :6]))
    assert line.startswith("y has 120 channels and only 6 steps: give [E, T] of one channel")
    assert recordings.unusual_scales(data(y, u)) == recordings.oddities(data(1e6 * y, u)) == []
    (line,) = recordings.unusual_scales(data(1e6 * y, u))
    assert line.startswith("y has a standard deviation of")
    assert "rescale" in line
    (line,) = recordings.unusual_scales(data(y, 1e-6 * u))
    assert line.startswith("u has a standard deviation of")
    assert "rescale" in line
    counts = data(np.round(abs(y)), u)
    (line,) = recordings.oddities(counts)
    assert "y holds counts" in line
    assert recordings.oddities(counts, "poisson") == []
    (line,) = recordings.oddities(data(20 * np.round(abs(y)), u), "poisson")
    assert line.startswith("all numbers of y are multiples of 20: if they are rates, divide")


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
        recordings.load(save_arrays(tmp_path / "far.npz", **arrays))
    assert f"has a spread of {span:.2g} around {offset:.2g}, which float32" in str(error.value)
    assert str(error.value).endswith("cannot hold: subtract its mean")


def test_what_float32_holds_is_taken(tmp_path):
    """Numbers that it has, also far from 0; a constant, though rounded; an offset of some size."""
    exact = (1e6 + SMALL).astype(np.float32)
    constant = np.full(SMALL.shape, 1234.1)
    constant[1] = np.nextafter(constant[1], 0)
    for x in (exact, 1e7 + np.round(SMALL), 1e3 + SMALL, constant, 1e6 * SMALL, 0 * SMALL + 0.1):
        data = recordings.load(save_arrays(tmp_path / "x.npz", y=x, u=x))
        np.testing.assert_array_equal(data.y[0], np.asarray(x, np.float32))


def test_counts_are_whole_before_float32(tmp_path):
    wide = 2e7 + 1e5 * SMALL
    assert (wide.astype(np.float32) % 1 == 0).all()
    for y, expected in ((wide, False), (np.round(wide), True), (-np.round(wide), False)):
        data = recordings.load(save_arrays(tmp_path / "x.npz", y=y, u=SMALL))
        assert data.holds_counts is expected
        assert data.cut(slice(None), slice(20), np.array([20])).holds_counts is expected


ALL_POLICIES = ("off", "random", "hold5", "bang5", "myopic", "d_optimal", "a_optimal")


def fields_in(dimension: int) -> tuple[str, ...]:
    """The named fields that exist in so many dimensions."""

    def exists(name: str) -> bool:
        try:
            check_dimension(name, dimension)
        except ValueError:
            return False
        return True

    return tuple(filter(exists, FIELDS))


def compiled_update(training: Training, state: Any):
    """The update of a training, with the compiler's options that a run would choose."""
    traced = jax.jit(training.update).trace(state)
    return traced.lower().compile(compiler_options(traced.jaxpr.jaxpr))


@pytest.mark.slow
@pytest.mark.parametrize("preset", EXPERIMENTS)
def test_what_any_experiment_records_can_be_fitted(preset, tmp_path):
    """All files of a run at once, and each by itself, on every field and by every policy."""
    config = PRESETS[preset].config
    if config.learner == "bayesian" and config.env.fields != (CART_POLE,):
        config = replace(config, env=replace(config.env, fields=fields_in(config.env.dimension)))
    small = replace(config.bayesian, grid=replace(config.bayesian.grid, per_axis=4))
    config = replace(
        config,
        bayesian=small,
        policies=ALL_POLICIES if preset == "seen" else ("myopic", "random", "off"),
        model=Model(grid=rbf.Grid(per_axis=4, half_width=3.0), hidden=4),
        run=replace(config.run, num_seeds=1),
    )
    # Records two updates of every experiment.
    training = make_training(config)
    assert training.samples
    state, pieces = jax.jit(training.init)(jax.random.key(0)), []
    update, samples = compiled_update(training, state), jax.jit(training.samples)
    for _ in range(2):  # each of 50 samples
        state, _ = update(state)
        pieces.append(jax.device_get(samples(state)))
    newest = {name: [x[name][:, :, -50:] for x in pieces] for name in pieces[0]}
    whole = {name: np.concatenate(x, axis=2)[None] for name, x in newest.items()}
    fields = config.env.fields
    paths = recordings.write_experiments(tmp_path, whole, [0], config.policies, fields)
    assert len(paths) == len(fields) * len(config.policies)
    # One update of a fit to all files together.
    observed = config.env if config.env.noise != "none" else replace(config.env, noise="gaussian")
    if observed.dimension > 2:  # the latent plane of the fit is not the state itself
        observed = replace(observed, observation="linear")
    linear = replace(config.state_space, dims=2, field="linear", prior=0.3, steps=1)
    fit = replace(config, env=observed, vae=replace(config.vae, window=10), state_space=linear)
    together = make_training(replace(fit, data=tuple(map(str, paths))))
    start = jax.jit(together.init)(jax.random.key(0))
    _, metrics = compiled_update(together, start)(start)
    assert np.isfinite(jax.tree.leaves(metrics.agent)).all()
    for path in paths:
        assert recordings.load(str(path)).is_complete


@pytest.mark.slow
def test_recordings_of_random_inputs_are_the_same_with_any_learner():
    """Which `bench.vector_field_baselines` takes for granted."""
    learner_samples = []
    for learner in ("bayesian", "sequence_vae"):
        config = PRESETS["vector_field"].config
        config = replace(
            config,
            learner=learner,
            policies=("bang5", "random"),
            model=Model(grid=rbf.Grid(per_axis=4, half_width=3.0), hidden=4),
            bayesian=replace(config.bayesian, grid=replace(config.bayesian.grid, per_axis=4)),
            run=replace(config.run, num_seeds=1, chunk_steps=50),
        )
        training = make_training(config)
        assert training.samples
        state, _ = jax.jit(training.update)(jax.jit(training.init)(jax.random.key(0)))
        learner_samples.append(jax.device_get(jax.jit(training.samples)(state)))
    for name in ("y", "u", "z"):
        np.testing.assert_array_equal(learner_samples[0][name], learner_samples[1][name])
