"""What a fit of a state-space model offers, against dense Gaussians, moments and the library."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxrl.dynamics.state_space import field_posterior
from jaxrl.dynamics.state_space.filter import Record, filter_states
from jaxrl.dynamics.state_space.information import gather, zero_information
from jaxrl.dynamics.state_space.model import Params, StateSpace, displacement
from jaxrl.dynamics.state_space.smoother import smooth_states
from tests.jaxrl.dynamics.state_space.models import random_model, simulate
from tests.train.vector_field.recorded.test_recorded import damped_rotation
from train.host.errors import UsageError
from train.host.running import run as host_run
from train.host.running import saved_runs
from train.vector_field import advice, fitted
from train.vector_field.advice import Options
from train.vector_field.data import recordings
from train.vector_field.fitted_models import fit_functions, fitted_model
from train.vector_field.fitted_models.fitted_model import FittedModel
from train.vector_field.presets import PRESETS
from train.vector_field.recorded import dynamics_problem, dynamics_scores
from train.vector_field.recorded.choices import trials
from train.vector_field.recorded.dynamics_problem import Problem
from train.vector_field.training import make_training

GAP = slice(200, 205)
DEFAULT = PRESETS["recordings"].config


class Example(NamedTuple):
    """One short fit."""

    directory: Path
    y: np.ndarray
    u: np.ndarray
    model: FittedModel


@pytest.fixture(scope="module")
def fit(tmp_path_factory) -> Example:
    """A few gradient steps on a record with a gap, the first channel of which counts."""
    folder = tmp_path_factory.mktemp("fit")
    y, u = damped_rotation(500, 0.1)
    y[:, 0] = np.random.default_rng(5).poisson(np.exp(np.clip(y[:, 0], -3, 2)))
    y[GAP] = np.nan
    np.savez(folder / "data.npz", y=y, u=u, dt=0.25, time_unit="s")
    quick = DEFAULT.state_space.fit.replace(windows=8, window=16)  # pyright: ignore
    dynamics = replace(DEFAULT.state_space, dims=2, field="polynomial", prior=0.3, steps=25)
    dynamics = replace(dynamics, starts=1, fit=quick)
    run = replace(DEFAULT.run, total_steps=25, chunk_steps=25, directory=str(folder / "run"))
    config = replace(DEFAULT, data=(str(folder / "data.npz"),), state_space=dynamics, run=run)
    with pytest.MonkeyPatch.context() as patch:  # simple models would take longer than the fit
        patch.setattr(dynamics_scores, "simple_scores", lambda _: ({}, None, []))
        result = host_run.run(make_training(config), config, "vector_field", "recordings")
    return Example(result.directory, y, u, fitted.load(result.directory))


class KnownModel(NamedTuple):
    """A model with known parameters, and a record of it."""

    model: StateSpace
    params: Params
    record: Record
    learned: FittedModel


def model_of(dims: int = 2, steps: int = 80, counts: tuple[bool, ...] = (False,) * 4) -> KnownModel:
    """Makes a model as if learned from a record of its own, in which numbers are missing."""
    model, params = random_model(None, counts, dims)
    record = simulate(model, params, steps, 0.2)
    y, u, observed, _ = (np.asarray(x)[None] for x in record)
    data = recordings.Data(np.where(observed, y, 0), u, observed, np.array([steps]))
    dynamics = replace(DEFAULT.state_space, dims=dims, field="linear", prior=0.3, steps=1)
    config = replace(DEFAULT, state_space=dynamics)
    posterior = partial(fit_functions.posterior_of, config, Problem(model, data, data), params)
    latent_model = fit_functions.latent_model(config, model, params, posterior, 0.1)
    run_filter = fit_functions.filter_of(config, model, params)
    forecast = partial(fit_functions.forecast, model, params, run_filter)
    bound = np.ones(2)
    trail = np.asarray(latent_model.beliefs(*record[:3]).mean)
    now = fitted_model.Moment(trail[-1], u[0, -2])
    learned = fitted_model.make(latent_model, forecast, dims, -bound, bound, 0.1, now, trail)
    return KnownModel(model, params, record, learned)


def arrays_with_gaps(record: Record) -> tuple[np.ndarray, np.ndarray]:
    """y, NaN where missing, and u."""
    return np.where(record.observed, record.y, np.nan), np.asarray(record.u)


class JointGaussian(NamedTuple):
    """All states of a linear model as one Gaussian, in double precision."""

    mean: np.ndarray  # [T, d]
    covariance: np.ndarray  # [T, d, T, d]


def joint_prior(
    params: Params, u: np.ndarray, first: tuple[np.ndarray, np.ndarray]
) -> JointGaussian:
    """Before any observation: z_t = Φ^t z_0 + Σ Φ^s (what came in), the first state `first`."""
    p = jax.tree.map(lambda x: np.asarray(x, float), params)
    steps, d = len(u), len(p.drift)
    move = np.eye(d) + p.transition
    mean, root = np.zeros((steps, d)), np.zeros((steps, d, steps, d))
    mean[0], root[0, :, 0] = first[0], np.linalg.cholesky(first[1] + 1e-30 * np.eye(d))
    for t in range(1, steps):
        mean[t] = move @ mean[t - 1] + p.drift + p.effect @ u[t - 1]
        root[t] = np.tensordot(move, root[t - 1], 1)
        root[t, :, t] += np.diag(np.exp(p.log_process))
    flat = root.reshape(steps * d, -1)
    return JointGaussian(mean, (flat @ flat.T).reshape(root.shape))


def condition(prior: JointGaussian, params: Params, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean `[T d]` and covariance of all states given the numbers in `y`, by one linear system."""
    p = jax.tree.map(lambda x: np.asarray(x, float), params)
    steps, d = prior.mean.shape
    observe = np.kron(np.eye(steps), p.matrix)[~np.isnan(y).ravel()]
    noise = np.tile(np.exp(2 * p.log_noise), steps)[~np.isnan(y).ravel()]
    values = (y - p.offset)[~np.isnan(y)]
    covariance = prior.covariance.reshape(steps * d, -1)
    gain = covariance @ observe.T @ np.linalg.inv(observe @ covariance @ observe.T + np.diag(noise))
    mean = prior.mean.ravel() + gain @ (values - observe @ prior.mean.ravel())
    return mean, covariance - gain @ observe @ covariance


def first_state_moments(params: Params) -> tuple[np.ndarray, np.ndarray]:
    deviation = np.exp(np.asarray(params.first_log_deviation, float))
    return np.asarray(params.first_mean, float), np.diag(deviation**2)


@pytest.mark.slow
def test_filter_and_smoother_are_those_of_the_joint_gaussian():
    _, params, record, learned = model_of(steps=25)
    y, u = arrays_with_gaps(record)
    mean, covariance = condition(joint_prior(params, u, first_state_moments(params)), params, y)
    smooth = learned.smooth(y, u)
    np.testing.assert_allclose(smooth.mean, mean.reshape(-1, 2), atol=2e-4)
    blocks = covariance.reshape(25, 2, 25, 2)[range(25), :, range(25)]
    np.testing.assert_allclose(smooth.covariance, blocks, atol=2e-4)
    filtered = learned.filter(y, u)
    for t in (0, 9, 24):
        prior = joint_prior(params, u[: t + 1], first_state_moments(params))
        mean, covariance = condition(prior, params, y[: t + 1])
        np.testing.assert_allclose(filtered.mean[t], mean[-2:], atol=2e-4)
        np.testing.assert_allclose(filtered.covariance[t], covariance[-2:, -2:], atol=2e-4)


@pytest.mark.slow
def test_forecasts_and_quantiles_are_those_of_the_gaussian(monkeypatch):
    """The errors of particles cancel on average over starts, each of which draws its own."""
    _, params, record, learned = model_of()
    y, u = arrays_with_gaps(record)
    levels, ahead = (0.05, 0.5, 0.95), 6
    monkeypatch.setattr(fit_functions, "MOST_VALUES", 30 * 400 * (ahead + 1) * 4)  # 30 starts
    quantiles = np.asarray(learned.quantiles(y, u, ahead, levels))
    expected = np.asarray(learned.forecast(y, u, ahead))
    assert quantiles.shape == (len(y), ahead + 1, 3, 4)
    assert expected.shape == (len(y), ahead + 1, 4)
    later = np.concatenate([u, np.zeros((ahead, 2))])
    p, beliefs = jax.tree.map(lambda x: np.asarray(x, float), (params, learned.filter(y, u)))
    mean_errors, below = np.zeros(expected.shape), np.zeros(quantiles.shape)
    for t in range(len(y)):
        states = joint_prior(
            params, later[t : t + ahead + 1], (beliefs.mean[t], beliefs.covariance[t])
        )
        for k in range(ahead + 1):
            variance = (p.matrix @ states.covariance[k, :, k] * p.matrix).sum(1)
            deviation = np.sqrt(variance + np.exp(2 * p.log_noise))
            mean = p.matrix @ states.mean[k] + p.offset
            mean_errors[t, k] = (expected[t, k] - mean) / np.sqrt(variance)
            below[t, k] = stats.norm.cdf((quantiles[t, k] - mean[None]) / deviation[None])
    assert np.abs(mean_errors).max() < 5 / np.sqrt(100)
    assert np.abs(mean_errors.mean(0)).max() < 5 / np.sqrt(100 * len(y))
    for q, level in enumerate(levels):
        error = np.sqrt(level * (1 - level) / 400)
        assert np.abs(below[:, :, q] - level).max() < 5.5 * error
        assert np.abs(below[:, :, q].mean(0) - level).max() < 5 * error / np.sqrt(len(y)) + 1 / 400


def test_blocks_of_forecasts_are_in_their_places(monkeypatch):
    monkeypatch.setattr(fit_functions, "MOST_VALUES", 40)
    u = jnp.arange(11.0)[:, None]
    forecast_block: Any = lambda belief, u, key: belief[:, None] * 100 + u[..., 0]
    beliefs: Any = jnp.arange(11.0)
    blocks = fit_functions.forecast_in_blocks(forecast_block, beliefs, u, 3, 10)  # blocks of 4
    padded = np.concatenate([np.arange(11.0), np.zeros(3)])
    expected = [t * 100 + padded[t : t + 3] for t in range(11)]
    np.testing.assert_array_equal(blocks, expected)


@pytest.mark.slow
@pytest.mark.parametrize("z", [None, np.array([0.7, -0.4])])
def test_simulations_have_the_mean_and_covariance_of_the_model(z):
    _, params, record, learned = model_of(counts=(False, False, True))
    u, count = np.asarray(record.u)[:8], 4_000
    simulation = learned.simulate(z, u, 3, count)
    assert simulation.states.shape == (count, 8, 2)
    first = first_state_moments(params) if z is None else (z, np.zeros((2, 2)))
    exact, states = joint_prior(params, u, first), np.asarray(simulation.states, float)
    deviation = np.sqrt(np.einsum("titi->ti", exact.covariance))
    errors = np.abs(states.mean(0) - exact.mean)
    assert (errors <= 4.5 * deviation / np.sqrt(count) + 1e-6).all()
    flat = (states - exact.mean).reshape(count, -1)
    expected = exact.covariance.reshape(16, 16)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    covariance_errors = np.abs(flat.T @ flat / count - expected)
    assert (covariance_errors <= 5 * np.sqrt(2 / count) * scale + 1e-6).all()
    p = jax.tree.map(lambda x: np.asarray(x, float), params)
    eta, observations = states @ p.matrix.T + p.offset, np.asarray(simulation.observations, float)
    noise = (observations - eta)[..., :2]
    np.testing.assert_allclose(noise.std((0, 1)), np.exp(p.log_noise[:2]), rtol=0.03)
    assert np.abs(noise.mean((0, 1))).max() < 0.02
    rate = np.exp(eta[..., 2])
    assert abs((observations[..., 2] - rate).sum()) < 5 * np.sqrt(rate.sum())
    np.testing.assert_array_equal(learned.simulate(z, u, 3, count).observations, observations)
    other = learned.simulate(z, u, jax.random.key(4), count)
    assert (np.asarray(other.states[:, 1:]) != states[:, 1:]).all()


@pytest.mark.slow
def test_a_run_filters_and_smooths_as_the_library_does(fit):
    run = saved_runs.load(fit.directory)
    problem, params = dynamics_problem.problem_of(run.config), run.agents[0].params
    observed = ~np.isnan(fit.y)
    record = Record(
        *(jnp.asarray(x, jnp.float32) for x in (np.nan_to_num(fit.y), fit.u)),
        *map(jnp.asarray, (observed, observed[:, 1] | True)),
    )
    filtered = jax.jit(filter_states)(problem.model, params, record)
    ours = fit.model.filter(fit.y, fit.u)
    np.testing.assert_allclose(ours.mean, filtered.belief.mean, atol=1e-5)
    np.testing.assert_allclose(fit.model.trail, ours.mean, atol=1e-5)
    np.testing.assert_allclose(fit.model.now.z, ours.mean[-1], atol=1e-5)  # pyright: ignore
    np.testing.assert_array_equal(fit.model.now.u, fit.u[-2].astype(np.float32))  # pyright: ignore
    smooth = fit.model.smooth(fit.y, fit.u)
    expected = jax.jit(smooth_states)(filtered, record.valid)
    np.testing.assert_allclose(smooth.mean, expected.mean, atol=1e-5)
    assert (np.trace(smooth.covariance[210:400], axis1=1, axis2=2) > 0).all()
    narrower = np.trace(ours.covariance - smooth.covariance, axis1=1, axis2=2)
    assert narrower[GAP].min() > 0  # what comes later tells of what is missing
    ahead = fit.model.quantiles(fit.y[:40], fit.u[:40], 5, [0.05, 0.95])
    assert ahead.shape == (40, 6, 2, 4)
    np.testing.assert_array_equal(ahead[..., 0], np.round(ahead[..., 0]))
    assert (ahead[:, :, 1] >= ahead[:, :, 0]).all()


def test_the_field_is_what_predictions_move_by(fit):
    model = fit.model
    z = np.random.default_rng(2).normal(size=(20, 2)).astype(np.float32)
    displacements = np.stack([np.asarray(model.predict(x, np.zeros((1, 2)))[0])[1] - x for x in z])
    assert model.dt == model.time.length == 0.25  # that of the data
    np.testing.assert_allclose(model.velocity(z), displacements / 0.25, atol=2e-5)
    assert model.velocity(z.reshape(4, 5, 2)).shape == (4, 5, 2)
    assert (model.time.length, model.time.unit) == (0.25, "s")


@pytest.mark.slow
def test_deviations_are_those_of_fields_drawn_from_the_posterior(fit):
    """Whose information is that of the training part alone."""
    run = saved_runs.load(fit.directory)
    problem, params = dynamics_problem.problem_of(run.config), run.agents[0].params
    y, u, observed = problem.training.episode(0)
    record = Record(*map(jnp.asarray, (y, u, observed, np.ones(len(y), bool))))
    information = jax.jit(gather)(problem.model, params, record)
    posterior = jax.jit(field_posterior.field_posterior)(
        *(problem.model, params, information), field_posterior.Prior(weights=0.3)
    )
    places = jnp.asarray([[0.0, 0.0], [1.0, -0.5], [6.0, 6.0]])

    def draw_field(key: jax.Array) -> jax.Array:
        drawn_params = field_posterior.draw(problem.model, posterior, key)
        return jax.vmap(lambda z: displacement(problem.model, drawn_params, z))(places)

    fields = np.asarray(jax.jit(jax.vmap(draw_field))(jax.random.split(jax.random.key(0), 4_000)))
    expected = np.sqrt(fields.var(0).mean(-1)) / fit.model.dt
    deviations = np.asarray(fit.model.deviation(places))
    np.testing.assert_allclose(deviations, expected, rtol=0.05)
    assert (deviations > 0).all()
    assert deviations[2] > 3 * deviations[0]  # where nothing was ever recorded
    variance = fit.model.planning.predictive_variance(places[1])
    np.testing.assert_allclose(np.sqrt(variance), deviations[1], rtol=1e-5)


@pytest.mark.slow
def test_what_plans_need_is_gathered_once_and_only_when_asked_for(fit, monkeypatch):
    calls, learned = [], np.asarray(fit.model.deviation(np.zeros((3, 2))))

    def count_calls(model, params, records, prediction):
        calls.append(records.y.shape)
        return zero_information(model, params)

    monkeypatch.setattr(fit_functions, "gather_all", count_calls)
    monkeypatch.setattr(trials, "MOST_STEPS", 150)
    model = fitted.load(fit.directory)
    model.velocity(np.zeros(2))
    model.predict(np.zeros(2), np.zeros((3, 2)))
    assert not calls
    unknown = model.deviation(np.zeros((3, 2)))
    assert model.planning is model.planning
    assert calls == [(1, 150, 4)]
    assert (np.asarray(unknown) > learned).all()


@pytest.mark.slow
def test_advice_is_better_than_chance_and_within_what_is_allowed(fit, tmp_path, capsys):
    line = "--steps 20 --hold 4 --bound 0.8 --rate 0.5 --charge 1.2 --out"
    assert advice.main([str(fit.directory), *line.split(), str(tmp_path)]) == 0
    content = json.loads((tmp_path / "advice.json").read_text())
    plan, nats = np.array(content["inputs"]), content["nats"]
    assert plan.shape == (20, 2)
    assert np.abs(plan).max() <= 0.8 + 1e-6
    assert np.abs(np.diff(plan, axis=0)).max() <= 0.5 + 1e-5
    assert content["charge"] == pytest.approx(0.25 * np.abs(plan).sum(), rel=1e-5)
    assert content["charge"] <= 1.2 * (1 + 1e-5)
    assert nats["advised"] >= 0.98 * nats["random"]["best"] > 0
    assert nats["advised"] >= nats["zero"] > 0
    with np.load(tmp_path / "advice.npz") as arrays:
        states, expected = fit.model.predict(fit.model.now.z, plan)  # pyright: ignore
        np.testing.assert_allclose(arrays["states"], states, atol=1e-5)
        np.testing.assert_allclose(arrays["observations"], expected, atol=1e-4)
        np.testing.assert_allclose(
            arrays["deviation"][3, 4],
            fit.model.deviation(arrays["axis"][[3, 4]]),
            rtol=1e-4,
        )
    assert (tmp_path / "advice.png").stat().st_size > 10_000
    assert "for 5 s" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("dims", [1, 3])
def test_advice_is_drawn_in_any_number_of_dimensions(dims, tmp_path):
    model = model_of(dims).learned
    np.savez(tmp_path / "given.npz", u=np.random.default_rng(0).uniform(-1, 1, (5, 8, 2)))
    options = Options(run="run", inputs=str(tmp_path / "given.npz"))  # quicker than a search
    question, recommendation = advice.choose_inputs(model, options)
    assert recommendation.gain > recommendation.quiet_gain
    advice.write(tmp_path, model, question, recommendation, options)
    with np.load(tmp_path / "advice.npz") as arrays:
        plane = (25,) * min(dims, 2)
        assert arrays["field"].shape == (*plane, dims)
        assert arrays["deviation"].shape == plane
    assert (tmp_path / "advice.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda m, y, u: m.filter(y[:, :3], u), r"expected \[T, 4\] and \[T, 2\]"),
        (lambda m, y, u: m.smooth(y, u[:-1]), "y and u have shapes"),
        (lambda m, y, u: m.smooth(y, np.full_like(u, np.nan)), "finite"),
        (lambda m, y, u: m.forecast(y - 0.5, u, 3), "no counts in channels that count"),
        (lambda m, y, u: m.forecast(y, u, -1), "H is -1, expected a whole number of at least 0"),
        (lambda m, y, u: m.quantiles(y, u, 2.5), "H is 2.5"),
        (lambda m, y, u: m.quantiles(y, u, 2, (0.5, 1.0)), "levels are"),
        (lambda m, y, u: m.quantiles(y, u, 2, ()), "levels are"),
        (lambda m, y, u: m.predict(y[0], u), r"z has shape \(4,\), expected \[d\] with 2"),
        (lambda m, y, u: m.predict(np.zeros((1, 2)), u), "give one state"),
        (lambda m, y, u: m.predict(np.zeros(2), u[0]), r"u has shape \(2,\), expected \[H, 2\]"),
        (lambda m, y, u: m.simulate(None, u[:, :1]), r"u has shape \(500, 1\), expected"),
        (lambda m, y, u: m.simulate(None, u[:0]), "u has no steps"),
        (lambda m, y, u: m.simulate(None, u, count=0), "count is 0"),
        (lambda m, y, u: m.simulate(None, u, key=-1), "key is -1"),
        (lambda m, y, u: m.velocity(np.zeros(3)), r"z has shape \(3,\)"),
    ],
)
def test_other_arguments_are_refused_in_one_line(fit, call, reason):
    with pytest.raises(ValueError, match=reason) as error:
        call(fit.model, fit.y, fit.u)
    assert "\n" not in str(error.value)


def test_what_the_run_does_not_have_is_refused(fit):
    with pytest.raises(UsageError, match="the run has no seed 7; it has 0"):
        fitted.load(fit.directory, seed=7)
    with pytest.raises(UsageError, match="have no policy"):
        fitted.load(fit.directory, policy="myopic")
