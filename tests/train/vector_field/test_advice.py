"""What has been fitted is loaded again, and advises: from data, and from experiments."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics import posterior
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.planning import input_limits
from jaxrl.dynamics.planning.input_limits import Limits
from jaxrl.dynamics.planning.next_inputs import Question
from tests.train.vector_field.recorded.test_recorded import config_with_data, damped_rotation
from tests.train.vector_field.test_vector_field import SMALL
from train.host.command_line import command
from train.host.errors import UsageError
from train.host.scoring.scores import read_evaluation
from train.vector_field import advice, experiment_baselines, fitted, program, rig
from train.vector_field.advice import Options
from train.vector_field.config import Config
from train.vector_field.data.files import loading
from train.vector_field.data.step_time import StepTime
from train.vector_field.experiment import held_out
from train.vector_field.fitted_models.fitted_model import Allowance, Moment
from train.vector_field.program import PROGRAM


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    """A short fit to a record with a gap: its directory, y and u."""
    folder = tmp_path_factory.mktemp("fit")
    y, u = damped_rotation(500, 0.1)
    y[100:105] = np.nan
    config = config_with_data(folder / "data.npz", y=y, u=u, dt=0.25, time_unit="s")
    config = replace(config, run=replace(config.run, directory=str(folder / "run")))
    return program.train(config).directory, y, u


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out, "HELD_OUT_STEPS", 100)
        directory = tmp_path_factory.mktemp("experiment") / "run"
        line = SMALL.replace("seen ", "vector_field ").replace("--run.num-seeds=2", "")
        line += " --run.num-seeds=1 --env.channels 5"
        assert command.main(PROGRAM, [*line.split(), f"--run.directory={directory}"]) == 0
    return directory


@pytest.mark.slow
def test_one_input_needs_no_axis(tmp_path):
    limits = Limits(-jnp.ones(1), jnp.ones(1), jnp.inf, jnp.inf, 0.1)
    question: Any = Question(None, jnp.zeros(2), jnp.zeros(1), limits)  # pyright: ignore
    u = np.random.default_rng(0).uniform(-1, 1, (3, 8)).astype(np.float32)
    for inputs, expected in (
        (u, u[..., None]),
        (u[0], u[:1, :, None]),
        (u[..., None], u[..., None]),
    ):
        np.savez(tmp_path / "u.npz", u=inputs)
        np.testing.assert_array_equal(rig.read_inputs(str(tmp_path / "u.npz"), question), expected)


def test_a_model_without_velocities_is_refused_in_one_line():
    nowhere: Any = SimpleNamespace(dims=2, velocity=lambda z: jnp.full(z.shape, jnp.nan))
    flags = rig.LimitFlags((1.0,), (), np.inf, np.inf)
    with pytest.raises(UsageError, match="velocities are nan, nan, expected finite ones"):
        rig.question(nowhere, (0.0, 0.0), flags)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, [[-0.2, 0.3, -1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]),  # as a stream or a record has them
        ({"bound": (0.5,)}, [[-0.5, 0.3, -0.5, 0.0], [0.5] * 4]),
        ({"low": (-0.1,)}, [[-0.1] * 4, [1.0] * 4]),
    ],
)
def test_inputs_keep_to_the_bounds_of_a_stream(flags, expected):
    model: Any = SimpleNamespace(low=np.array([-0.2, 0.3, -1.0, 0.0]), high=np.ones(4))
    limits = rig.LimitFlags(**{"bound": (), "low": (), "rate": np.inf, "charge": np.inf} | flags)
    np.testing.assert_allclose(rig.box(model, limits), expected)


def test_plans_keep_to_the_rate_and_the_charge_of_a_stream():
    """The charge counts what was given before; flags take the place of both."""
    own = Allowance(np.array([0.2, np.inf]), 3.0, np.array([0.0, 0.5, 1.0]))
    model: Any = SimpleNamespace(
        dims=2, velocity=lambda z: z, low=-np.ones(2), high=np.ones(2), planning=None
    )
    model.now, model.time = Moment(np.zeros(2), np.array([0.5, 0.5])), StepTime(0.5, "")
    model.allowance = own

    def limits(state: tuple[float, ...] = (), rate=np.inf, charge=np.inf) -> Limits:
        return rig.question(model, state, rig.LimitFlags((), (), rate, charge)).limits

    np.testing.assert_allclose(limits().change, own.rate)
    plan = jnp.array([[0.7, 1.0], [0.9, 1.0], [0.9, 1.0]])
    charges = input_limits.window_charges(limits(), plan)  # of four samples of 0.5 each
    np.testing.assert_allclose(charges, [1.5 + 0.85, 1.5 + 1.8, 1.0 + 2.75])
    assert limits().charge == 3.0
    np.testing.assert_array_equal(limits(state=(0.0, 0.0)).spent, np.zeros(3))
    by_flags = limits(rate=0.1, charge=1.0)
    np.testing.assert_allclose(by_flags.change, 0.1)
    assert (by_flags.charge, by_flags.spent) == (1.0, None)
    question = rig.question(model, (), rig.LimitFlags((), (), np.inf, np.inf))
    rig.check_charge(question, 3, 1, 3)
    model.allowance = own._replace(spent=np.array([0.5, 0.5, 2.0]))
    question = rig.question(model, (), rig.LimitFlags((), (), np.inf, np.inf))
    with pytest.raises(UsageError, match=r"3\.15 would be spent in 4 samples at least, with those"):
        rig.check_charge(question, 3, 1, 3)
    model.allowance = None
    assert np.isinf(limits().charge)


@pytest.mark.parametrize("learner", ["bayesian", "state_space", "sequence_vae"])
def test_the_path_of_an_experiment_is_in_the_coordinates_of_its_model(learner):
    """A learner of how the state is observed has others after every fit."""
    rng = np.random.default_rng(0)
    samples = {"y": rng.normal(size=(9, 4)), "u": rng.normal(size=(9, 2))}
    samples["belief"] = np.ones((9, 2))
    twice = lambda y, u, observed: Belief(2 * y[:, :2] + u, jnp.zeros(()))
    latent_model: Any = SimpleNamespace(beliefs=twice)
    trail = fitted.trail_of(replace(Config(), learner=learner), latent_model, samples)
    filtered = 2 * samples["y"][:, :2] + samples["u"]
    expected = samples["belief"] if learner == "bayesian" else filtered
    np.testing.assert_allclose(trail, expected, rtol=1e-5)


@pytest.mark.slow
def test_three_lines_filter_and_forecast_again(fit):
    directory, y, u = fit
    model: Any = fitted.load(directory)
    belief, ahead = model.filter(y, u), model.forecast(y, u, 30)
    assert belief.covariance.shape == (len(y), 2, 2)
    with np.load(directory / "recorded.npz") as arrays:
        np.testing.assert_allclose(belief.mean, arrays["states"][0], atol=1e-5)
        np.testing.assert_allclose(ahead, arrays["forecasts"][0], atol=1e-4)
        grid = np.stack(np.meshgrid(arrays["axis"], arrays["axis"], indexing="ij"), -1)
        np.testing.assert_allclose(model.velocity(grid), arrays["field"], atol=1e-5)
    np.testing.assert_allclose(model.now.z, belief.mean[-1], atol=1e-6)
    np.testing.assert_array_equal(model.now.u, u[-2].astype(np.float32))
    states, observations = model.predict(belief.mean[50], u[50:80])
    np.testing.assert_allclose(observations, ahead[50, :31], atol=1e-4)
    assert states.shape == (31, 2)
    assert (np.asarray(model.deviation(grid)) > 0).all()
    with pytest.raises(ValueError, match="expected"):
        model.filter(y, u[:-1])
    for method in (model.smooth, model.quantiles, model.simulate):
        with pytest.raises(UsageError, match="only fits of a state-space model to data have it"):
            method(y, u)


@pytest.mark.slow
def test_what_is_known_of_a_field_is_what_its_data_say(fit):
    """Against a posterior that takes one filtered state after another of the training data."""
    directory, y, u = fit
    model = fitted.load(directory)
    config = program.PROGRAM.presets["vector_field"].config.vae
    design = jax.jit(jax.vmap(model.planning.design))
    learned = np.asarray(model.filter(y[:400], u[:400]).mean)
    rows = np.asarray(design(learned), float)[~np.isnan(y[:400]).all(1)]
    at_centre = np.asarray(design(np.zeros((1, 2), np.float32)), float)[0]
    dt = model.dt
    variance = config.prior_speed**2 * dt**2 / np.sum(at_centre**2) / (config.noise * dt)
    precision = np.eye(len(at_centre)) / variance
    precision += rows.T @ rows / float(model.planning.relative_noise)
    root = np.asarray(model.planning.root, float)
    np.testing.assert_allclose(root @ root.T @ precision, np.eye(len(precision)), atol=0.02)
    point = np.array([0.3, -0.2], np.float32)
    x = np.asarray(design(point[None]), float)[0]
    expected = np.sqrt(x @ np.linalg.solve(precision, x) * config.noise / dt)
    np.testing.assert_allclose(model.deviation(point), expected, rtol=0.02)


@pytest.mark.slow
def test_advice_is_better_than_chance_and_within_what_is_allowed(fit, tmp_path, capsys):
    line = "--steps 20 --hold 4 --bound 0.8 --rate 0.5 --charge 1.2 --out"
    assert advice.main([str(fit[0]), *line.split(), str(tmp_path)]) == 0
    content = json.loads((tmp_path / "advice.json").read_text())
    plan, nats = np.array(content["inputs"]), content["nats"]
    assert plan.shape == (20, 2)
    assert np.abs(plan).max() <= 0.8 + 1e-6
    assert np.abs(np.diff(plan, axis=0)).max() <= 0.5 + 1e-5
    assert content["charge"] == pytest.approx(0.25 * np.abs(plan).sum(), rel=1e-5)
    assert content["charge"] <= 1.2 * (1 + 1e-5)
    for written_time in (content, read_evaluation(fit[0]) or {}):
        assert (written_time["step_time"], written_time["time_unit"]) == (0.25, "s")
    assert np.ptp(plan.reshape(5, 4, 2), axis=1).max() == 0
    assert nats["advised"] > nats["random"]["mean"] + nats["random"]["deviation"]
    assert nats["advised"] >= nats["zero"] > 0
    with np.load(tmp_path / "advice.npz") as arrays:
        model: Any = fitted.load(fit[0])
        np.testing.assert_allclose(arrays["states"], model.predict(model.now.z, plan)[0], atol=1e-5)
        assert arrays["random_inputs"].shape == (advice.RANDOM, 20, 2)
    assert (tmp_path / "advice.png").stat().st_size > 10_000
    output = capsys.readouterr().out
    assert "advised" in output
    assert "for 5 s" in output


@pytest.mark.parametrize(("least", "name"), [(0.0, "none"), (30.0, "as little as allowed")])
def test_what_advice_is_compared_with_is_called_what_it_is(least, name):
    """And the map shows the field with it, and how uncertain that is: a temperature is never 0.

    The field is a + b u, of which the data tell a + 30 b, and a itself hardly.
    """
    move = lambda z, u: (jnp.stack([z, z + 0.5 * (u[0] - z)]), None)
    model: Any = SimpleNamespace(dims=2, dt=0.5, velocity=lambda z: -z, predict=move)
    covariance = np.linalg.inv([[1.0, 30], [30, 901]])
    model.deviation = lambda z: np.full(z.shape[:-1], covariance[0, 0] ** 0.5)
    model.trail = np.zeros((0, 2))
    model.planning = SimpleNamespace(
        design=lambda z: jnp.array([1.0, 0]),
        input_design=lambda z, u: jnp.stack([jnp.zeros(()), u[0]]),
        root=jnp.asarray(np.linalg.cholesky(covariance), jnp.float32),
    )
    quiet = np.full((3, 2), least, np.float32)
    maps = advice.information_map(model, np.ones((4, 2), np.float32), quiet[-1])
    axis = maps["axis"]
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1)
    np.testing.assert_allclose(maps["field"], least - grid, atol=1e-4)
    variance = np.array([1, least]) @ covariance @ [1, least]
    np.testing.assert_allclose(maps["deviation"], np.sqrt(variance), rtol=1e-3)
    nats = np.arange(2.0)
    recommendation = advice.Advice(quiet, 2.0, quiet[None], nats, quiet, 1.0, None)
    (names, _) = (
        list(column.cells) for column in advice.table(recommendation, StepTime(0.5, "")).columns
    )
    assert names[-1] == name


@pytest.mark.slow
def test_one_of_the_inputs_that_are_given_is_advised(fit, tmp_path):
    model = fitted.load(fit[0])
    candidates = np.random.default_rng(0).uniform(-0.5, 0.5, (6, 12, 2)).astype(np.float32)
    candidates[3] = np.repeat(np.sign(candidates[3, ::6]) * 0.9, 6, axis=0)
    np.savez(tmp_path / "given.npz", u=candidates)
    options = Options(run=str(fit[0]), inputs=str(tmp_path / "given.npz"), bound=(1.0,))
    question, recommendation = advice.choose_inputs(model, options)
    np.testing.assert_array_equal(recommendation.plan, candidates[recommendation.candidate])
    prior = posterior.prior(len(model.planning.root), 2, 1.0, 1.0)._replace(
        root=model.planning.root
    )
    gains = []
    for plan in candidates:
        after = prior
        for z in np.asarray(model.predict(question.z, plan)[0])[:-1]:
            x = model.planning.design(z)
            after = posterior.update(after, x, jnp.zeros(2), model.planning.relative_noise)
        gains.append(float(after.information))
    assert recommendation.candidate == np.argmax(gains)
    np.testing.assert_allclose(recommendation.gain, max(gains), rtol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--bound 1 2 3", "--bound has 3 numbers, expected 1 or 2"),
        ("--low 2", "--low is above --bound"),
        ("--state 1", "--state has 1 number, expected 2"),
        ("--seed 7", "the run has no seed 7; it has 0"),
        ("--policy random", "fits recorded data, which have no policy"),
        ("--low 0.5 --charge 0.1", "--charge 0.1 is less than"),
        ("--bound 0.01 --rate 0.001", "farther outside of the bounds than --rate 0.001"),
        ("--inputs none.npz", "there is no file none.npz"),
        ("--inputs {given} --bound 0.1", "3 of the 3 inputs in"),
        ("--inputs {other}", "has u of shape (5, 3)"),
        ("--steps 5000", "--steps is 5000, expected a number at least 1 and at most 1000"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(fit, tmp_path, flags, message, capsys):
    np.savez(tmp_path / "given.npz", u=np.full((3, 5, 2), 0.5))
    np.savez(tmp_path / "other.npz", u=np.zeros((5, 3)))
    flags = flags.format(given=tmp_path / "given.npz", other=tmp_path / "other.npz")
    assert advice.main([str(fit[0]), *flags.split(), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_what_is_no_run_of_ours_is_refused(tmp_path, capsys):
    with pytest.raises(UsageError, match="not a run directory"):
        fitted.load(tmp_path)
    assert advice.main([]) == 2
    assert "give RUN" in capsys.readouterr().err


def test_an_earlier_advice_is_kept(tmp_path, capsys):
    earlier = tmp_path / "advice.npz"
    earlier.touch()
    for flags in ([str(tmp_path)], ["nowhere", "--out", str(tmp_path)]):
        assert advice.main(flags) == 2
        error = capsys.readouterr().err
        assert f"{earlier} exists already: choose another --out, or give --overwrite" in error
        assert advice.main([*flags, "--overwrite"]) == 2
        assert "run directory" in capsys.readouterr().err


@pytest.mark.slow
def test_an_experiment_advises_too(experiment, tmp_path):
    model: Any = fitted.load(experiment, policy="hold5")
    path = experiment / "recordings" / "hold5-limit_cycle-seed0.npz"
    with np.load(path) as record:
        means = model.filter(record["y"], record["u"]).mean
        np.testing.assert_allclose(model.now.z, record["belief"][-1], atol=1e-5)
        gap = record["y"].copy()
        gap[10:20] = np.nan
        means_with_gap = model.filter(gap, record["u"]).mean
        assert np.isfinite(means).all()
        assert np.isfinite(means_with_gap).all()
        np.testing.assert_allclose(means_with_gap[:10], means[:10], atol=1e-6)
        assert np.abs(means_with_gap[12] - means[12]).max() > 1e-3
    assert advice.main([str(experiment), "--policy", "hold5", "--out", str(tmp_path)]) == 0
    content = json.loads((tmp_path / "advice.json").read_text())
    np.testing.assert_allclose(content["limits"]["high"], model.high)
    assert content["nats"]["advised"] > content["nats"]["random"]["mean"]


@pytest.mark.slow
def test_simple_models_are_scored_on_the_episodes_of_the_learners(experiment):
    baseline_r2, evaluation = experiment_baselines.read(experiment), read_evaluation(experiment)
    assert baseline_r2
    assert evaluation
    for measure in ("r2", "r2_free"):
        for name, x in baseline_r2[measure].items():
            x = np.array(x, float)
            assert x.shape == (1, 2, 1, 31)
            assert np.isnan(x[..., 0]).all() == (name != "linear_gaussian")
            assert np.isfinite(x[..., 1:]).all()
    persistence_r2 = np.array(baseline_r2["r2"]["persistence"], float)
    assert (persistence_r2[..., 1] > persistence_r2[..., 30]).all()
    recorded_data = loading.load([str(x) for x in sorted((experiment / "recordings").iterdir())])
    assert len(recorded_data.lengths) == 2
