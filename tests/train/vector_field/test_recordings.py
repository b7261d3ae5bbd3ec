"""Files of recorded data: their formats, what is refused, and spike times in bins."""

import re
from dataclasses import replace

import jax
import numpy as np
import pytest

from envs.vector_field.fields import FIELDS, check_dimension
from jaxrl.dynamics import rbf
from train.vector_field import recordings
from train.vector_field.config import CART_POLE, PRESETS, Model
from train.vector_field.training import make_training

RNG = np.random.default_rng(0)
Y, U = RNG.normal(size=(3, 50, 4)), RNG.normal(size=(3, 50, 2))
LENGTHS = np.array([50, 20, 33])


def saved(path, **arrays) -> str:
    np.savez(path, **arrays)
    return str(path)


def test_episodes_of_unequal_length_in_three_ways(tmp_path):
    """With `lengths`, with NaN to the end, and one file each: the same data."""
    one = saved(tmp_path / "one.npz", y=Y, u=U, lengths=LENGTHS)
    over = np.arange(50)[None, :, None] >= LENGTHS[:, None, None]
    nans = saved(tmp_path / "nan.npz", y=np.where(over, np.nan, Y), u=np.where(over, np.nan, U))
    files = [
        saved(tmp_path / f"{e}.npz", y=Y[e, :length], u=U[e, :length])
        for e, length in enumerate(LENGTHS)
    ]
    expected = recordings.load(one)
    np.testing.assert_array_equal(expected.lengths, LENGTHS)
    np.testing.assert_array_equal(expected.observed, np.broadcast_to(~over, Y.shape))
    np.testing.assert_array_equal(expected.y, np.where(over, 0, Y).astype(np.float32))
    np.testing.assert_array_equal(expected.u, np.where(over, 0, U).astype(np.float32))
    assert expected.is_complete
    for other in (nans, files):
        for a, b in zip(expected, recordings.load(other), strict=True):
            np.testing.assert_array_equal(a, b)


def test_nan_is_a_missing_sample(tmp_path):
    y = Y[0].copy()
    y[3:6], y[10, 2], y[-5:] = np.nan, np.nan, np.nan  # at the end the inputs are known
    data = recordings.load(saved(tmp_path / "gap.npz", y=y, u=U[0]))
    np.testing.assert_array_equal(data.observed[0], ~np.isnan(y))
    assert data.lengths == [50]
    assert not data.is_complete
    assert np.isfinite(data.y).all()


def test_spike_times_are_counted_as_numpy_counts_them(tmp_path):
    width, bins, units = 0.05, 60, 3
    times = np.concatenate([RNG.uniform(0, 3, 400), width * np.arange(61), [0.15, 0.3, 3.0]])
    owners = RNG.integers(0, units, len(times))
    owners[0] = units - 1
    file = saved(
        tmp_path / "spikes.npz", spike_times=times, spike_units=owners, u=U[0, :1].repeat(bins, 0)
    )
    data = recordings.load(file, width)
    edges = width * np.arange(bins + 1)
    for unit in range(units):
        expected = np.histogram(times[owners == unit], edges)[0]
        np.testing.assert_array_equal(data.y[0, :, unit], expected)
    assert data.y.sum() == len(times)
    assert recordings.holds_counts(data)


def test_spikes_of_several_episodes_and_files(tmp_path):
    """Each with its own duration, of which the last part of a bin is left out."""
    arrays = {
        "spike_times": np.array([0.1, 0.9, 1.1, 2.4, 0.2]),
        "spike_units": np.array([0, 1, 1, 0, 0]),
        "spike_episodes": np.array([0, 0, 0, 0, 1]),
        "duration": np.array([2.5, 1.0]),
        "u": np.ones((2, 2, 1)),
    }
    first = saved(tmp_path / "a.npz", **arrays)
    other = saved(tmp_path / "b.npz", spike_times=[0.5], spike_units=[2], u=np.ones((3, 1)))
    data = recordings.load([first, other], 1.0)
    np.testing.assert_array_equal(data.lengths, [2, 1, 3])
    np.testing.assert_array_equal(data.y[0, :2], [[1, 1, 0], [0, 1, 0]])
    np.testing.assert_array_equal(data.y[1, 0], [1, 0, 0])
    np.testing.assert_array_equal(data.y[2], [[0, 0, 1], [0, 0, 0], [0, 0, 0]])


SPIKES = {"spike_times": [0.5, 2.0], "spike_units": [0, 1], "u": np.ones((3, 1))}


@pytest.mark.parametrize(
    ("arrays", "told"),
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
        ({**SPIKES, "u": np.ones((2, 3, 1))}, "give the episode of each spike, spike_episodes"),
        (
            {**SPIKES, "u": np.ones((2, 3, 1)), "spike_episodes": [0, 2]},
            "spike_episodes go up to 2; u has 2",
        ),
        ({"spike_times": [0.5], "u": np.ones((3, 1))}, "no spike_units"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(tmp_path, arrays, told):
    with pytest.raises(ValueError, match=re.escape(told)) as error:
        recordings.load(saved(tmp_path / "data.npz", **arrays))
    assert "\n" not in str(error.value)


def test_files_must_fit_together(tmp_path):
    first = saved(tmp_path / "a.npz", y=Y, u=U)
    second = saved(tmp_path / "b.npz", y=Y[..., :3], u=U)
    with pytest.raises(ValueError, match=r"b.npz has 3 channels and 2 inputs, and .*a.npz 4 and 2"):
        recordings.load([first, second])


def test_what_is_no_file_of_arrays_is_refused(tmp_path):
    path = tmp_path / "text.npz"
    path.write_text("y, u")
    for name, told in ((path, "cannot be read"), (tmp_path / "none.npz", "there is no file")):
        with pytest.raises(ValueError, match=told):
            recordings.load(str(name))


def test_what_is_unusual_is_named():
    y, u = Y.astype(np.float32), U.astype(np.float32)
    data = lambda y, u: recordings.joined(list(zip(y, u, strict=True)))
    assert recordings.oddities(data(y, u)) == []
    assert recordings.oddities(data(y, 0 * u)) == []  # nothing was put in
    still = y.copy()
    still[..., [1, 3]] = 7.0
    still[0, 5, 1] = np.nan
    (line,) = recordings.oddities(data(still, u))
    assert "y is constant in 2 of 4 channels (1, 3, counted from 0)" in line
    (line,) = recordings.oddities(data(1e6 * y, u))
    assert line.startswith("y has a standard deviation of")
    assert "rescale" in line
    (line,) = recordings.oddities(data(y, 1e-6 * u))
    assert line.startswith("u has a standard deviation of")
    assert "rescale" in line
    counts = data(np.round(abs(y)), u)
    (line,) = recordings.oddities(counts)
    assert "y holds counts" in line
    assert recordings.oddities(counts, "poisson") == []


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


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_what_any_experiment_records_can_be_fitted(preset, tmp_path):
    """All files of a run at once, and each by itself, on every field and by every policy."""
    config = PRESETS[preset]
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
    training = make_training(config)
    assert training.samples
    state, pieces = jax.jit(training.init)(jax.random.key(0)), []
    update, samples = jax.jit(training.update), jax.jit(training.samples)
    for _ in range(2):  # each of 50 samples
        state, _ = update(state)
        pieces.append(jax.device_get(samples(state)))
    newest = {name: [x[name][:, :, -50:] for x in pieces] for name in pieces[0]}
    whole = {name: np.concatenate(x, axis=2)[None] for name, x in newest.items()}
    fields = config.env.fields
    paths = recordings.write_experiments(tmp_path, whole, [0], config.policies, fields)
    assert len(paths) == len(fields) * len(config.policies)
    observed = config.env if config.env.noise != "none" else replace(config.env, noise="gaussian")
    if observed.dimension > 2:  # the latent plane of the fit is not the state itself
        observed = replace(observed, observation="linear")
    fit = replace(config, env=observed, vae=replace(config.vae, window=10))
    together = make_training(replace(fit, data=tuple(map(str, paths))))
    start = jax.jit(together.init)(jax.random.key(0))
    _, metrics = jax.jit(together.update)(start)
    assert np.isfinite(metrics.agent["loss"])
    for path in paths:
        assert recordings.load(str(path)).is_complete


@pytest.mark.slow
def test_recordings_of_random_inputs_are_the_same_with_any_learner():
    """Which `tests.bench.vector_field_baselines` takes for granted."""
    found = []
    for learner in ("bayesian", "sequence_vae"):
        config = PRESETS["vector_field"]
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
        found.append(jax.device_get(jax.jit(training.samples)(state)))
    for name in ("y", "u", "z"):
        np.testing.assert_array_equal(found[0][name], found[1][name])
