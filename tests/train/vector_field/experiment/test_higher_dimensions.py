"""Experiments in three dimensions: places, scores and pictures' planes; and when they stop."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.vector_field import VectorField
from envs.vector_field.cart_pole_field import CartPoleField
from jaxrl.dynamics import bases
from jaxrl.dynamics.learners import field_learner
from jaxrl.dynamics.planning import stimulation
from train.vector_field.experiment import reach
from train.vector_field.experiment.laboratory import make as make_laboratory
from train.vector_field.experiment.stopping import StopRule
from train.vector_field.learners.bayesian import bayesian

BOX = 2.0
ENV = VectorField("lorenz", "identity", "none", 3, num_inputs=3, dims=3)
CONFIG = field_learner.Config(basis="polynomial", polynomial=bases.Polynomial(2, 3))
LEARNER = bayesian(ENV, CONFIG)
POLICIES = {
    "bang3": stimulation.Config(kind="hold", hold_steps=3, at_edge=True),
    "off": stimulation.Config(kind="hold", strength=0.0),
}


def worlds(key: jax.Array) -> Any:
    return jax.tree.map(lambda x: x[None], ENV.params(key))


def states_of(stop: StopRule | None) -> list[Any]:
    """`(agents, (experiments, within), scores)` after 4, 8, 12 and 16 samples."""
    laboratory = make_laboratory(
        ENV, worlds, LEARNER, POLICIES, BOX, samples=4, keep=8, stop=stop, goal=(0.5,)
    )
    advance, states = jax.jit(laboratory.advance), []
    state = (*jax.jit(laboratory.init)(jax.random.key(0)), {})
    for _ in range(4):
        state = advance(*state[:2])
        states.append(jax.tree.map(np.asarray, as_numbers(state)))
    return states


def as_numbers(tree: Any) -> Any:
    is_key = lambda x: jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return jax.tree.map(lambda x: jax.random.key_data(x) if is_key(x) else x, tree)


@pytest.fixture(scope="module")
def unstopped_states() -> list[Any]:
    return states_of(None)


@pytest.mark.slow
def test_places_are_states_that_a_controller_reached():
    params = ENV.params()
    reachable_states = np.asarray(
        jax.jit(lambda k: reach.reachable(ENV, params, BOX, k))(jax.random.key(1))
    )
    assert reachable_states.shape == (reach.SAMPLE, 3)
    assert (np.abs(reachable_states) <= 5).all()
    assert np.std(reachable_states, axis=0).min() > 0.3
    path = np.random.default_rng(0).uniform(-2, 2, (9, 3)).astype(np.float32)
    distance = np.linalg.norm(reachable_states[:, None] - path, axis=-1).min(axis=1)
    visited = reach.visits(jnp.asarray(path), BOX, jnp.asarray(reachable_states))
    np.testing.assert_array_equal(visited, distance < 0.15 * BOX * 3**0.5)
    points = np.asarray(reach.scored_points(BOX, 3))
    assert points.shape == (reach.SAMPLE, 3)
    assert 1.98 < np.abs(points).max() <= 2
    np.testing.assert_array_equal(points, reach.scored_points(BOX, 3))


def test_a_state_is_visited_from_the_other_side_of_an_angle():
    env, reached = CartPoleField(), jnp.array([[0.1, 0.0, 3.1, 0.0], [0.1, 0.0, 0.0, 0.0]])
    path = jnp.array([[0.0, 0.0, -3.1, 0.0]])
    assert reach.visits(path, BOX, reached, env.wrap_angles).tolist() == [True, False]


def test_a_controller_steers_the_shorter_way_round_of_an_angle():
    env = CartPoleField()
    steer = jax.jit(
        lambda goal, z: reach.steering_input(env, env.params(), goal, z, jnp.bool_(False))
    )
    hanging, beyond = jnp.array([0.0, 0.0, 3.1, 0.0]), jnp.array([0.0, 0.0, -3.1, 0.0])
    a_turn_on = beyond.at[2].add(2 * jnp.pi)
    forward, back = steer(beyond, hanging), steer(hanging, beyond)
    np.testing.assert_allclose(forward, steer(a_turn_on, hanging), rtol=1e-4)
    assert float(forward[0] * back[0]) < 0


def test_a_plane_through_the_origin():
    points: Any = np.asarray(reach.grid_points(BOX, 3, (0, 2)))
    assert points.shape == (25, 25, 3)
    assert not points[..., 1].any()
    np.testing.assert_array_equal(points[..., [0, 2]], reach.grid_points(BOX))
    np.testing.assert_array_equal(reach.project(points, (0, 2)), reach.grid_points(BOX))
    np.testing.assert_array_equal(reach.embed(points[..., [0, 2]], 3, (0, 2)), points)


@pytest.mark.slow
def test_scores_are_of_drawn_points_and_of_reachable_states(unstopped_states):
    agents, (running, within), scores = unstopped_states[-1]
    points = np.asarray(reach.scored_points(BOX, 3))
    for p in range(2):
        weights = agents["bang3"].posterior.mean[p, 0]
        for measure, at in (("error", points), ("reachable_error", within[0])):
            x, y, height = 12 * at[:, 0], 12 * at[:, 1], 12 * at[:, 2] + 25
            own = np.stack([10 * (y - x), x * (28 - height) - y, x * y - 8 / 3 * height], axis=1)
            true = 0.05 * own / 12
            learned = np.asarray(bases.features(CONFIG.polynomial, jnp.asarray(at))) @ weights
            expected = np.sqrt(((learned - true) ** 2).sum() / (true**2).sum())
            np.testing.assert_allclose(scores[measure][0, p], expected, rtol=2e-3)
        trail = running["bang3"].trail[p, 0, -16:]
        distance = np.linalg.norm(within[0][:, None] - trail, axis=-1).min(axis=1)
        near = distance < 0.15 * BOX * 3**0.5
        np.testing.assert_array_equal(running["bang3"].visited[p, 0], near)
        np.testing.assert_allclose(scores["coverage"][0, p], near.mean(), rtol=1e-5)
        miss = np.linalg.norm(trail[-4:] - 0.5, axis=1).mean()
        np.testing.assert_allclose(scores["goal_distance"][0, p], miss, rtol=1e-4)


@pytest.mark.slow
def test_an_experiment_that_gains_too_little_stops_and_stays(unstopped_states):
    """After two poor updates in a row: then nothing changes but zeros in its record."""
    stopped_states = states_of(StopRule(1e9, 8))
    np.testing.assert_array_equal(
        [s[2]["stopped_at"][0] for s in stopped_states], [[0, 0]] + 3 * [[8, 8]]
    )
    for k in (0, 1):
        other_scores = lambda x: {n: v for n, v in x[2].items() if n != "stopped_at"}
        jax.tree.map(np.testing.assert_array_equal, stopped_states[k][0], unstopped_states[k][0])
        jax.tree.map(
            np.testing.assert_array_equal,
            other_scores(stopped_states[k]),
            other_scores(unstopped_states[k]),
        )
    for k in (2, 3):
        jax.tree.map(np.testing.assert_array_equal, stopped_states[k][0], stopped_states[1][0])
        for name in ("error", "coverage", "information", "goal_distance", "stopped_at"):
            np.testing.assert_array_equal(stopped_states[k][2][name], stopped_states[1][2][name])
        before, after = (stopped_states[i][1][0]["bang3"] for i in (1, k))
        before, after = (x._replace(train=x.train._replace(key=())) for x in (before, after))
        for name in ("trail", "visited", "train"):
            jax.tree.map(np.testing.assert_array_equal, getattr(before, name), getattr(after, name))
    newest_samples = stopped_states[2][1][0]["bang3"].recent
    np.testing.assert_array_equal(newest_samples.z[..., 4:, :], 0)  # the newest four of eight
    np.testing.assert_array_equal(
        newest_samples.z[..., :4, :], stopped_states[1][1][0]["bang3"].recent.z[..., 4:, :]
    )
    assert np.abs(newest_samples.z[..., :4, :]).min() > 0


@pytest.mark.slow
def test_an_experiment_that_goes_on_learning_does_not_stop(unstopped_states):
    ongoing_states = states_of(StopRule(1e-9, 8))
    assert not any(s[2]["stopped_at"].any() for s in ongoing_states)
    for k in range(4):
        jax.tree.map(np.testing.assert_array_equal, ongoing_states[k][0], unstopped_states[k][0])


@pytest.mark.slow
def test_each_experiment_stops_by_itself():
    """At the mean of what the two gain: the one that is left alone stops, not the other."""
    gains = [s[2]["information"][0] for s in states_of(None)]
    per_sample = np.diff([[0, 0], *gains], axis=0) / 4  # [4, P]
    limit = float(per_sample[-2:].mean())
    stop_steps = states_of(StopRule(limit, 4))[-1][2]["stopped_at"][0]
    for p in range(2):
        poor = np.flatnonzero(per_sample[:, p] < limit)
        assert stop_steps[p] == (4 * (poor[0] + 1) if len(poor) else 0)
    assert len({*stop_steps.tolist()}) == 2
