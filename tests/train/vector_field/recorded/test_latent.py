"""Experiments where nobody knows how the state is observed: a run, its scores, what it refuses."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.table import Table

from jaxrl.dynamics.planning import stimulation
from jaxrl.dynamics.state_space import field_posterior, move
from jaxrl.dynamics.state_space.model import displacement
from jaxrl.dynamics.state_space.online import choice
from tests.train.host import crashes
from train.host.command_line import command
from train.host.files.metrics_file import read_metrics
from train.host.program import Views
from train.host.training import Evaluation
from train.vector_field.experiment import scores
from train.vector_field.experiment.field_errors import fields_at, relative_error
from train.vector_field.experiment.reach import scored_points
from train.vector_field.factories import make_env, make_learner, make_models
from train.vector_field.fitted_models import fitted_model
from train.vector_field.program import PROGRAM

SMALL = (
    "latent --online.fields polynomial --policies bang50 --online.agent.first-fit=60 "
    "--online.agent.first-steps=2 --online.agent.steps=1 --env.channels=5 "
    "--run.num-seeds=2 --run.total-steps=100 --run.chunk-steps=50 --run.checkpoint-every=1"
)
UNDRAWN = PROGRAM._replace(views=Views(pictures=lambda *_, **__: ()))


def parse_config(flags: str):
    return command.parse(PROGRAM, flags.split())[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags", ["", "--env.observation loglinear --env.noise poisson --env.bin-width 0.5"]
)
def test_a_perfect_model_has_no_error(flags):
    """In other coordinates than those of the world: its states are R z + t."""
    config = parse_config(f"latent --online.fields polynomial {flags}")
    env, learner = make_env(config), make_learner(config)
    world = env.params(jax.random.key(3), 1.0, bin_width=config.env.bin_width)
    agent = learner.make(stimulation.Config(kind="hold"), world)
    state = agent.init(jax.random.key(0), jnp.zeros(env.channels))
    # The true decoder in the coordinates of the model.
    turn, shift = np.array([[0.8, -0.3], [0.2, 0.6]]), np.array([0.3, -0.2])
    back = np.linalg.inv(turn)
    candidate = state.params.choice.candidates[0]
    params, true = candidate.posterior.params, world.emission[0]
    matrix = np.asarray(true.weight, np.float64) @ back
    bias = np.asarray(true.bias) + (np.log(config.env.bin_width) if "poisson" in flags else 0)
    # Least squares of the features on the true displacements, which are cubic.
    places = np.random.default_rng(0).uniform(-3, 3, (400, 2))
    velocity = np.asarray(env.velocity(jnp.asarray(places, jnp.float32), world), np.float64)
    moves = velocity @ turn.T * float(world.dt)
    ours = jnp.asarray(places @ turn.T + shift, jnp.float32)
    models = make_models(config)
    rows = jax.vmap(lambda z: move.regressors(models[0], params, z, jnp.zeros(2)))(ours)
    weights = np.linalg.lstsq(np.asarray(rows, np.float64), moves, rcond=None)[0]
    params = move.replace(
        models[0],
        params,
        move.parameters(models[0], params)._replace(move=jnp.asarray(weights, jnp.float32)),
    )
    # The agent that has learned just that; its field, aligned with the true one, has no error.
    params = params._replace(
        matrix=jnp.asarray(matrix, jnp.float32),
        offset=jnp.asarray(bias - matrix @ shift, jnp.float32),
    )
    candidate = candidate._replace(posterior=candidate.posterior._replace(params=params))
    agent_params = state.params._replace(choice=choice.choose([candidate]))
    state = state._replace(params=agent_params)
    points = scored_points(2.0, 2)
    learned, field = fields_at(env, learner, state, points)
    assert float(relative_error(learned, field, jnp.ones(points.shape[:-1]))) < 1e-2
    # Its deviation is that of a displacement, mapped back and by time.
    z = jnp.array([0.4, -0.7])
    covariance = choice.covariance(
        models, agent_params.choice, jnp.asarray(turn @ np.asarray(z) + shift, jnp.float32)
    )
    by_time = back / float(world.dt)
    expected = np.trace(by_time @ np.asarray(covariance) @ by_time.T) / 2
    np.testing.assert_allclose(learner.uncertainty(state, z), expected, rtol=1e-2)


@pytest.mark.slow
def test_deviations_are_those_of_fields_drawn_from_the_posterior_also_far_from_states():
    config = parse_config("latent --online.fields polynomial --env.channels 5")
    env, learner = make_env(config), make_learner(config)
    world = env.params(jax.random.key(3), 1.0)
    agent = learner.make(stimulation.Config(kind="hold"), world)
    state = jax.jit(agent.init)(jax.random.key(0), jnp.zeros(env.channels))
    nothing = np.zeros((0, 2))
    forecast = partial(learner.forecast, state)
    bound = np.ones(2)
    fitted = fitted_model.make(
        learner.latent_model(state), forecast, 2, -bound, bound, world.dt, None, nothing
    )
    (model,), posterior = make_models(config), state.params.choice.candidates[0].posterior
    places = jnp.array([[0.0, 0.0], [1.0, -0.5], [6.0, 6.0]])

    @jax.jit
    @jax.vmap
    def draw_velocities(key: jax.Array) -> jax.Array:
        params = field_posterior.draw(model, posterior, key)
        return jax.vmap(partial(displacement, model, params))(places) / world.dt

    velocities = np.asarray(
        draw_velocities(jax.random.split(jax.random.key(1), 2_000))
    )  # [N, places, d]
    expected = np.sqrt(velocities.var(axis=0).mean(axis=-1))
    np.testing.assert_allclose(fitted.deviation(places), expected, rtol=0.06)


@pytest.mark.slow
def test_stopping_and_resuming_changes_nothing(tmp_path, monkeypatch):
    """A fit is made after the checkpoint, from which the run goes on as if nothing happened."""
    nothing = {"score": "field_error", "compile_seconds": 0.0, "seconds": 0.0, "seeds": []}
    monkeypatch.setattr(scores, "evaluate", lambda *_: Evaluation(nothing, Table()))
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run = partial(command.main, UNDRAWN)
    assert run(arguments=[*SMALL.split(), f"--run.directory={whole}"]) == 0
    crashes.after_the_first_checkpoint(whole, broken)
    assert run(["--resume", str(broken)]) == 0
    states = [crashes.last_state_leaves(PROGRAM, directory) for directory in (whole, broken)]
    chex.assert_trees_all_equal(*states)
    rows = read_metrics(whole)
    errors = [row["agent"]["error"][0][0] for row in rows]
    assert errors[:2] == pytest.approx([1.0, 1.0])  # nothing is known before the first fit
    assert errors[2] != 1.0
    assert np.isfinite(errors).all()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("latent --stop-gain=0.1", "--stop-gain is for the learners bayesian and family"),
        ("latent --env.observation=mlp", "choose --env.observation linear or loglinear, not mlp"),
        ("latent --env.noise=none", "state_space knows no channels linear with noise none"),
        ("latent --online.fields rbf rbf", "--online.fields are rbf, rbf; give at least one"),
        ("latent --vae.window=9", "--vae.window has no effect"),
        ("latent --online.agent.capacity=9", "run.total_steps sets it"),
        ("latent --run.total-steps=50", "first-fit is 100, expected at most --run.total-steps=50"),
        ("vector_field --online.effect=mlp", "it needs learner state_space"),
        ("vector_field --state-space.starts=3", "it needs --data"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(flags, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command.main(PROGRAM, flags.split()) == 2
    error = capsys.readouterr().err
    assert message in " ".join(error.split())
    assert "Traceback" not in error
