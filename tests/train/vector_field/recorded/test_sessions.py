"""Sessions of different channels: one data set of them, and one field of two of them.

The true states of both sessions must be one affine map of what the filter finds in them.
"""

import io
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from jaxrl.dependent_fields import idle_fields
from jaxrl.dynamics import bases
from jaxrl.dynamics.state_space.filter import Record
from jaxrl.dynamics.state_space.fitting import fit as fits
from jaxrl.dynamics.state_space.fitting import sessions as fitting
from jaxrl.dynamics.state_space.model import Params, StateSpace, unit
from tests.recordings.simulation import Recording
from tests.recordings.systems import record
from tests.train.vector_field.recorded.forecast_parts import forecaster_of
from train.vector_field import fitted, program
from train.vector_field.config import Config
from train.vector_field.data import recordings
from train.vector_field.data.reading import read_data
from train.vector_field.data.sessions import join_sessions, longest_session, parts_of
from train.vector_field.experiment.held_out import AHEAD, SKIPPED
from train.vector_field.presets import PRESETS
from train.vector_field.recorded import baselines, dynamics_problem, dynamics_scores, session_fits
from train.vector_field.recorded.prediction_scores import (
    Forecasts,
    Scores,
    score,
)

RNG = np.random.default_rng(0)


def data_of(lengths, channels: int) -> recordings.Data:
    episodes = [(RNG.normal(size=(n, channels)), RNG.normal(size=(n, 1))) for n in lengths]
    return recordings.join_episodes(episodes)


def test_joined_sessions_come_apart_again():
    parts = [data_of((30, 20), 3), data_of((50,), 2), data_of((10,), 4)]
    joined = join_sessions(parts, ("a", "b", "c"))
    assert joined.y.shape == (4, 50, 9)
    np.testing.assert_array_equal(joined.observed[2].any(0), [False] * 3 + [True] * 2 + [False] * 4)
    assert longest_session(joined) == 0
    for part, expected in zip(parts_of(joined), parts, strict=True):
        for a, b in zip(part, expected, strict=True):
            np.testing.assert_array_equal(a, b)
    first = joined.episodes(slice(1))
    assert first.sessions is not None
    np.testing.assert_array_equal(first.sessions.of_episode, [0])


def config_of(files: list[Path], **settings) -> Config:
    default = PRESETS["recordings"].config
    dynamics = replace(
        default.state_space, dims=2, field="polynomial", prior=0.3, steps=200, starts=1
    )
    run = replace(default.run, total_steps=200, chunk_steps=100)
    paths = tuple(map(str, files))
    return replace(default, data=paths, state_space=dynamics, run=run, **settings)


def write_sessions(folder: Path, recording: Recording) -> list[Path]:
    """The first half of the episodes by some channels, the others by other channels."""
    half, channels = len(recording.lengths) // 2, recording.y.shape[-1] // 2 + 2
    for name, episodes, which in (
        ("monday", slice(half), slice(channels)),
        ("tuesday", slice(half, None), slice(channels, None)),
    ):
        np.savez(folder / f"{name}.npz", y=recording.y[episodes, :, which], u=recording.u[episodes])
    return [folder / "monday.npz", folder / "tuesday.npz"]


def test_files_are_sessions_if_a_flag_says_so(tmp_path):
    recording = record("linear", 0, small=True)
    files = write_sessions(tmp_path, recording)
    with pytest.raises(ValueError, match="or be sessions with channels of their own, --sessions"):
        read_data(config_of(files))
    data = read_data(config_of(files, sessions=True))
    assert data.sessions is not None
    assert data.sessions.names == ("monday", "tuesday")
    training, held_out = dynamics_problem.split(config_of(files, sessions=True), data)
    for part in (training, held_out):  # of each session a part is held out
        assert part.sessions is not None
        assert set(part.sessions.of_episode) == {0, 1}
    with pytest.raises(ValueError, match="there are 2 files of data and 1 of inputs: give one"):
        read_data(config_of(files, sessions=True, inputs=("u.csv",)))
    np.savez(tmp_path / "tuesday.npz", y=np.ones((90, 3)), u=np.ones((90, 2)))
    with pytest.raises(ValueError, match="numbers of inputs, monday 1, tuesday 2"):
        read_data(config_of(files, sessions=True))
    np.savez(tmp_path / "tuesday.npz", y=np.ones((90, 3)), u=np.ones((90, 1)))
    config = config_of(files, sessions=True)
    with pytest.raises(ValueError, match="session tuesday: y is constant in every channel"):
        dynamics_problem.split(config, read_data(config))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_rotations_are_orthogonal_and_reflections_are_among_them(dims):
    turns = np.asarray(fitting.rotations(dims, jax.random.key(0)))
    products = np.einsum("kij,kil->kjl", turns, turns)
    np.testing.assert_allclose(products, np.broadcast_to(np.eye(dims), products.shape), atol=1e-5)
    determinants = np.linalg.det(turns)
    assert determinants.min() < 0 < determinants.max()


def van_der_pol() -> tuple[StateSpace, Params, np.ndarray]:
    """A model of 12 Gaussian channels whose field is that of van der Pol, and its states."""
    field = bases.Polynomial(3, 2, 3.0)
    model = StateSpace(jnp.zeros(12, bool), 2, 1, field)
    times, z = 600, np.array([1.0, 0.0])
    states = np.empty((times, 2))
    for t in range(times):
        states[t] = z
        z = z + 0.15 * np.array([2 * z[1], 1.2 * (1 - 4 * z[0] ** 2) * z[1] - 2 * z[0]])
        z = z + 0.03 * RNG.normal(size=2)
    states = states / states.std(0)
    # The field by regression on its features: the truth, as far as features go.
    phi = np.asarray(jax.vmap(lambda z: bases.features(field, z))(jnp.asarray(states)))
    phi = float(unit(model)) * phi
    weights = np.linalg.lstsq(phi[:-1], np.diff(states, axis=0), rcond=None)[0]
    residual = np.diff(states, axis=0) - phi[:-1] @ weights
    params = Params(
        transition=jnp.zeros((2, 2)),
        drift=jnp.zeros(2),
        weights=jnp.asarray(weights, jnp.float32),
        layer=(),
        effect=jnp.zeros((2, 1)),
        effect_layers=(),
        log_process=jnp.log(jnp.asarray(residual.std(0), jnp.float32)),
        matrix=jnp.asarray(RNG.normal(size=(12, 2)), jnp.float32),
        offset=jnp.asarray(RNG.normal(size=12), jnp.float32),
        log_noise=jnp.full(12, jnp.log(0.5)),
        first_mean=jnp.zeros(2),
        first_log_deviation=jnp.zeros(2),
    )
    return model, params, states


@pytest.mark.slow
def test_the_readout_of_another_session_is_found_by_a_field_that_is_known():
    model, params, states = van_der_pol()
    y = states @ np.asarray(params.matrix).T + np.asarray(params.offset)
    y = y + 0.5 * RNG.normal(size=y.shape)
    arrays = (
        y.astype(np.float32),
        np.zeros((600, 1), np.float32),
        np.isfinite(y),
        np.ones(600, bool),
    )
    session = fitting.Session(Record(*(jnp.asarray(x)[None] for x in arrays)), np.arange(12))
    covariance = np.cov(states.T)
    root = jnp.asarray(np.linalg.cholesky(covariance), jnp.float32)
    centre = jnp.asarray(states.mean(0), jnp.float32)
    unknown = params._replace(matrix=0 * params.matrix, offset=0 * params.offset)
    own = fitting.fit_readout(
        *(fits.Config(windows=32), model, session, unknown, centre, root, jax.random.key(0))
    )
    # The field is odd, so that half a turn of the states changes nothing.
    errors = [np.linalg.norm(own.matrix - sign * params.matrix) for sign in (1, -1)]
    assert min(errors) < 0.15 * np.linalg.norm(params.matrix)  # of another turn 0.5 or more
    np.testing.assert_array_equal(own.weights, params.weights)


@pytest.mark.slow
def test_both_sessions_have_the_states_of_one_field(tmp_path):
    recording = record("van_der_pol", 0)
    config = config_of(write_sessions(tmp_path, recording), sessions=True)
    config = replace(config, run=replace(config.run, directory=str(tmp_path / "run")))
    result = program.train(config, "recordings")
    assert result.evaluation is not None
    content = result.evaluation.content
    for name, scores in content["seeds"][0]["sessions"].items():
        simple = content["session_baselines"][name]
        assert scores["r2"][10] > max(x["r2"][10] for x in simple.values()) + 0.03
    with np.load(result.directory / "recorded.npz") as arrays:
        filtered = arrays["states"]
    states = [filtered[e, 20:n] for e, n in enumerate(recording.lengths)]
    true = [recording.z[e, 20:n] for e, n in enumerate(recording.lengths)]
    half = len(true) // 2
    affine = lambda x: np.concatenate([x, np.ones((len(x), 1))], axis=1)
    fit = np.linalg.lstsq(
        affine(np.concatenate(states[:half])), np.concatenate(true[:half]), rcond=None
    )[0]
    for part in (slice(half), slice(half, None)):
        truth = np.concatenate(true[part])
        error = np.mean((affine(np.concatenate(states[part])) @ fit - truth) ** 2, axis=0)
        assert (error < 0.25 * truth.var(0)).all()
    model = fitted.load(result.directory, session="tuesday")
    y, u = (np.load(tmp_path / "tuesday.npz")[name][0] for name in ("y", "u"))
    length = int(recording.lengths[half])
    own = np.asarray(model.filter(y[:length], u[:length]).mean)
    np.testing.assert_allclose(own, filtered[half, :length], atol=1e-3)


def scores_of_errors(
    training: recordings.Data, held_out: recordings.Data, errors: np.ndarray
) -> Scores:
    """The scores of forecasts up to 4 steps ahead that are wrong by `errors` `[1, T, 5, n]`."""
    steps = held_out.y.shape[1]
    y = held_out.y[:, np.minimum(np.arange(steps)[:, None] + np.arange(5), steps - 1)]
    half = np.full((*held_out.y.shape[:2], 1, held_out.y.shape[2]), 0.5)
    whole = Forecasts(y + errors, half, half, RNG.normal(size=held_out.y.shape))
    is_count = np.zeros(held_out.y.shape[-1], bool)
    return score(training, held_out, forecaster_of(whole), is_count, 4)


def test_a_session_of_two_forecasts_does_not_rule_the_score_of_all():
    """Against all squares of all channels in units of their deviation, by a loop in NumPy."""
    trainings = [data_of((400,), 3), data_of((400,), 2)]
    held_out = [data_of((300,), 3), data_of((SKIPPED + 6,), 2)]
    held_out[1].y[:, SKIPPED:] *= 0.03  # nothing happens in the two steps
    scores, error, spread = [], 0.0, 0.0
    for training, part in zip(trainings, held_out, strict=True):
        errors = 0.3 * RNG.normal(size=(*part.y.shape[:2], 5, part.y.shape[2]))
        scores.append(scores_of_errors(training, part, errors))
        steps = slice(SKIPPED, part.lengths[0] - 4)  # at which forecasts are made
        for channel, variance in enumerate(training.y[0].var(0)):
            truth = part.y[0, SKIPPED + 2 : part.lengths[0] - 2, channel]  # two steps later
            spread += np.sum((truth - truth.mean()) ** 2) / variance
            error += np.sum(errors[0, steps, 2, channel] ** 2) / variance
    assert [x.weights.starts for x in scores] == [276, 2]
    assert scores[1].r2[2] < -5 < 0.85 < scores[0].r2[2]
    pooled = session_fits.pooled_scores(scores)
    assert pooled.r2[2] > 0.85
    np.testing.assert_allclose(pooled.r2[2], 1 - error / spread, rtol=1e-5)
    values = [276 * 3, 2 * 2]
    np.testing.assert_allclose(pooled.gain, np.average([x.gain for x in scores], weights=values))
    assert session_fits.pooled_scores(scores[:1]) is scores[0]  # as it was without sessions


def test_few_forecasts_are_told_with_what_to_do(caplog):
    long, short = data_of((SKIPPED + AHEAD + 50,), 3), data_of((SKIPPED + AHEAD + 2,), 2)
    data = join_sessions([long, short], ("monday", "tuesday"))
    problem = dynamics_problem.Problem(van_der_pol()[0], data, data)
    dynamics_scores.warn_of_few_forecasts(config_of([], sessions=True), problem)
    (line,) = caplog.messages
    assert line.startswith("tuesday: its scores rest on 2 forecasts, expected 50 or more: record")


def test_the_table_of_sessions_is_whole_at_80_columns():
    row = lambda last: {
        "r2": [-36.09, -0.753] + 8 * [0.0] + [-225.546] + 19 * [0.0] + [last],
        "nats": -1.1845,
        "coverage": {"+1": 1.0, "+10": 1.0, "+30": 1.0},
    }
    simple, names = {name: row(-6008.478) for name in baselines.NAMES}, ("monday[am]", "tuesday")
    content = {
        "step_time": 1.0,
        "time_unit": "steps",
        "model": {"dims": 2, "field": "rbf"},
        "baselines": simple,
        "seeds": [{"seed": 0, "sessions": dict.fromkeys(names, row(0.5)), **row(0.5)}],
        "session_baselines": dict.fromkeys(names, simple),
    }
    output = io.StringIO()
    Console(file=output, width=80).print(dynamics_scores.table(content))
    lines = output.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("within %" in line for line in lines) == 1
    for label in ("seed 0", "persistence", "ARX", "linear-Gaussian"):
        cells = [line.split() for line in lines if label in line]
        assert len(cells) == 3  # of all and of each session, in a line each
        assert all(" ".join(x).count("100 100 100") == 1 for x in cells)
    assert [line.split()[0].strip("│") for line in lines if "day" in line] == [
        "monday[am]:",
        "tuesday:",
    ]
    assert "…" not in output.getvalue()


def test_more_starts_have_no_effect_on_sessions():
    alone = replace(PRESETS["recordings"].config, data=("FILE.npz",))
    assert "state_space.starts" not in idle_fields(alone)
    reason = idle_fields(replace(alone, sessions=True))["state_space.starts"]
    assert reason == "fits of sessions begin from one guess"
