"""Simulated recordings agree with what is known in closed form, and can be read."""

import numpy as np
import pytest

from tests.recordings import __main__ as command
from tests.recordings import systems
from tests.recordings.simulation import SUBSTEPS, Model, advance, settle, simulate
from tests.recordings.systems import DAMPING, PERIOD, SPREAD, SYSTEMS, record
from train.vector_field.data.files import loading

RNG = np.random.default_rng(0)


def noiseless_model(build) -> Model:
    model, _ = build(np.random.default_rng(0))
    return model._replace(noise=np.zeros(model.dims))


def path(model: Model, z: np.ndarray, steps: int, u: float = 0.0) -> np.ndarray:
    """`[steps + 1, d]`."""
    states = [z[:, None]]
    for _ in range(steps):
        states.append(advance(model, states[-1], np.full((1, 1), u), RNG))
    return np.stack(states)[..., 0]


def crossings(x: np.ndarray) -> np.ndarray:
    """Times at which x rises through 0, between bins."""
    before = np.flatnonzero((x[:-1] < 0) & (x[1:] >= 0))
    return before - x[before] / (x[before + 1] - x[before])


def test_stuart_landau_circles_in_its_period():
    z = path(noiseless_model(systems.stuart_landau), np.array([0.5, 0.0]), 400)[100:]
    np.testing.assert_allclose(np.hypot(*z.T), 1, atol=0.05)
    np.testing.assert_allclose(np.diff(crossings(z[:, 0])).mean(), PERIOD, rtol=2e-3)


def test_van_der_pol_has_the_known_period_and_amplitude():
    """At 2: 7.6299 units of time of 4 bins, amplitude 2.0199 (Andersen & Geer 1982).

    By Runge and Kutta's steps; Euler's have a cycle that is 2 % longer.
    """
    model, z, still = noiseless_model(systems.van_der_pol), np.array([2.0, 0.0]), np.zeros(1)
    states, h = [], 0.1
    for _ in range(5000):
        states.append(z)
        first = model.drift(z, still)
        second = model.drift(z + h / 2 * first, still)
        third = model.drift(z + h / 2 * second, still)
        last = model.drift(z + h * third, still)
        z = z + h / 6 * (first + 2 * second + 2 * third + last)
    x = np.array(states)[1000:, 0]
    np.testing.assert_allclose(h * np.diff(crossings(x)).mean(), 4 * 7.6299, rtol=1e-3)
    np.testing.assert_allclose(x.max(), 2.0199, atol=2e-3)
    euler = path(model, np.array([2.0, 0.0]), 500)[100:, 0]
    np.testing.assert_allclose(np.diff(crossings(euler)).mean(), 4 * 7.6299, rtol=0.03)


@pytest.mark.parametrize(("u", "fires"), [(0.0, False), (1.0, True)])
def test_the_input_carries_the_neuron_across_its_hopf_point(u, fires):
    z = path(noiseless_model(systems.fitzhugh_nagumo), np.array([-1.0, -2.0]), 500, u)[200:]
    assert (np.ptp(z[:, 0]) > 2) == fires
    if fires:
        np.testing.assert_allclose(np.diff(crossings(z[:, 0])).mean(), 39, atol=2)
    else:
        assert np.ptp(z[:, 0]) < 0.01


def test_a_ring_moves_as_all_of_its_neurons_do():
    """The currents of 200 neurons, each moved by the sum over all others."""
    angle = 2 * np.pi * np.arange(200) / 200
    z, u, turn = np.array([0.6, -0.9, 0.2]), np.array([0.3, -0.5]), np.array([0.4])
    basis = np.stack([np.cos(angle), np.sin(angle), np.ones(200)])
    current = systems.CURRENT_SIZE * z @ basis
    weights = systems.UNTUNED + systems.TUNED * np.cos(angle[:, None] - angle)
    fed = weights @ (1 / (1 + np.exp(-current))) / 200 - systems.UNTUNED / 2
    velocity = systems.ring_drift(0.0, 0.0)(z, u)
    expected = (fed - current) / systems.RING_TIME / systems.CURRENT_SIZE
    np.testing.assert_allclose(velocity @ basis, expected, atol=1e-6)
    pull = systems.ring_drift(0.12, 0.0)(z, u) - velocity
    np.testing.assert_allclose(pull, [0.12 * 0.3, -0.12 * 0.5, 0])
    rotation = systems.ring_drift(0.0, 0.5)(z, turn) - velocity
    np.testing.assert_allclose(rotation, [0.2 * 0.9, 0.2 * 0.6, 0])


@pytest.mark.slow
def test_the_linear_system_has_its_stationary_covariance():
    """It is s² h / (1 - |1 + h (-a + i w)|²) in both components with Euler's steps h."""
    model, _ = systems.linear(np.random.default_rng(0))
    z = settle(model, 20_000, 1, RNG)
    h = 1 / SUBSTEPS
    factor = (1 - h * DAMPING) ** 2 + (h * systems.TURN) ** 2
    variance = model.noise[0] ** 2 * h / (1 - factor)
    np.testing.assert_allclose(np.cov(z), variance * np.eye(2), atol=0.05)
    np.testing.assert_allclose(variance, SPREAD**2, rtol=0.05)


def test_wells_are_changed_as_often_as_kramers_says():
    """√(U''(1) |U''(0)|) / 2π exp(-2 ΔU / s²) per bin with U = 0.2 (z⁴ / 4 - z² / 2)."""
    model, inputs = systems.two_wells(np.random.default_rng(0))
    z = simulate(model, inputs, (1000,) * 20, np.random.default_rng(1)).z[..., 0]
    changes = sum(np.count_nonzero(np.diff(np.sign(x[np.abs(x) > 0.7]))) for x in z)
    rate = np.sqrt(0.4 * 0.2) / (2 * np.pi) * np.exp(-2 * 0.05 / model.noise[0] ** 2)
    assert 0.5 < changes / (rate * z.size) < 2


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_recording_can_be_read(name, tmp_path):
    file = tmp_path / "recording.npz"
    command.main([name, "--seed", "3", "--small", "--out", str(file)])
    data, recording = loading.load(str(file)), record(name, 3, small=True)
    np.testing.assert_array_equal(data.lengths, SYSTEMS[name].small)
    valid = np.arange(data.y.shape[1]) < data.lengths[:, None]
    np.testing.assert_array_equal(data.observed, np.isfinite(recording.y) & valid[..., None])
    y = np.where(data.observed, recording.y, 0)
    np.testing.assert_allclose(data.y, y, rtol=1e-6)
    assert data.holds_counts == recording.is_count.all()
    with np.load(tmp_path / "recording_truth.npz") as truth:
        assert truth["z"].shape == (*data.y.shape[:2], recording.model.dims)
        assert np.isfinite(truth["z"][valid]).all()
        assert truth["matrix"].shape == (data.y.shape[-1], recording.model.dims)


def test_seeds_repeat_and_differ():
    first, repeated, other = (record("short", seed).y for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, repeated)
    assert np.mean(first == other) < 0.9


def test_expected_counts_are_those_recorded():
    """exp(C z + b) is the mean of y, and nearly its variance: that of y less it is white."""
    recording = record("stuart_landau", 0, small=True)
    channels, valid = recording.model.channels, np.isfinite(recording.z[..., 0])
    rate = np.exp(recording.z[valid] @ channels.matrix.T + channels.offset)
    standard = (recording.y[valid] - rate) / np.sqrt(rate)
    np.testing.assert_allclose(standard.mean(), 0, atol=0.03)
    np.testing.assert_allclose(standard.var(), 1, atol=0.05)


def test_shuffled_channels_keep_their_values():
    rng = np.random.default_rng(5)
    plain = record("stuart_landau", 5, small=True)
    mixed = systems.shuffle(plain, rng)
    for e, length in enumerate(plain.lengths):
        before, after = (np.sort(x.y[e, :length], axis=0) for x in (plain, mixed))
        np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(mixed.model.channels.matrix, 0)


def test_unknown_systems_are_named():
    with pytest.raises(ValueError, match="no system pendulum: choose one of stuart_landau"):
        record("pendulum", 0)
