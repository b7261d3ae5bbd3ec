"""Plans by the posterior of a field, in plain NumPy."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics.bases import Grid
from jaxrl.dynamics.planning import icem, next_inputs, plan_objectives, stimulation
from jaxrl.dynamics.state_space import channels
from jaxrl.dynamics.state_space import field_posterior as posteriors
from jaxrl.dynamics.state_space.field_posterior import field_posterior
from jaxrl.dynamics.state_space.filter import FARTHEST, Record, filter_states
from jaxrl.dynamics.state_space.forecasts import particles
from jaxrl.dynamics.state_space.information import gather
from jaxrl.dynamics.state_space.model import Params, StateSpace, step
from jaxrl.dynamics.state_space.move import parameters, replace
from tests.jaxrl.dynamics.state_space.models import random_model, simulate
from tests.jaxrl.dynamics.state_space.posteriors import MIXED, PRIOR, covariance_of, posterior_of


@pytest.fixture(scope="module")
def question(record_and_fit) -> tuple:
    model, params, total = record_and_fit
    posterior = posterior_of(model, params, total)
    posterior, params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), (posterior, params))
    rng = np.random.default_rng(4)
    plan = jnp.asarray(rng.uniform(-1, 1, (6, 2)), jnp.float32)
    return model, params, posterior, plan, jnp.array([0.4, -0.3])


@jax.jit
def rows_of(model: StateSpace, params: Params, z: jax.Array, u: jax.Array) -> jax.Array:
    """Derivative `[d, p]` of the next state by the move, by differences: it is linear."""
    values = parameters(model, params)
    shape = values.move.shape
    changed = lambda e: values._replace(move=values.move + e.reshape(shape))
    next_state = lambda e: step(model, replace(model, params, changed(e)), z, u)
    changes = jnp.eye(values.move.size)
    return (jax.vmap(next_state)(changes) - jax.vmap(next_state)(-changes)).T / 2


@pytest.mark.slow
def test_plans_by_the_next_states_alone(question):
    model, params, posterior, plan, z = question
    planning_model = posteriors.predictive_model(model, posterior)
    # The expected path.
    path, advance = [z], jax.jit(step)
    for u in plan:
        path.append(advance(model, params, path[-1], u))
    states = jax.jit(partial(plan_objectives.path, planning_model))(z, plan)
    np.testing.assert_allclose(states, path, rtol=1e-4, atol=1e-5)
    noise = np.mean(np.exp(2 * np.asarray(params.log_process)))
    sigma = covariance_of(posterior) / noise

    # The nats of all transitions.
    rows = np.concatenate([rows_of(model, params, path[t], plan[t]) for t in range(6)])
    scaled = rows @ sigma @ rows.T / float(posterior.relative_noise)
    nats = np.linalg.slogdet(np.eye(12) + scaled)[1] / 2
    np.testing.assert_allclose(
        jax.jit(partial(next_inputs.nats, planning_model))(z, plan), nats, rtol=1e-3
    )

    # Both criteria at every other state, and the cost that is made of them.
    config = stimulation.Config(
        every=2, objective="d_optimal+a_optimal", planner=icem.Config(horizon=6)
    )
    inputs = [*plan, jnp.zeros(2)]
    rows = np.concatenate([rows_of(model, params, path[t], inputs[t]) for t in (2, 4, 6)])
    system = rows @ sigma @ rows.T + float(posterior.relative_noise) * np.eye(6)
    through = sigma @ rows.T
    values = {
        "d_optimal": np.linalg.slogdet(system / float(posterior.relative_noise))[1],
        "a_optimal": np.trace(through @ np.linalg.solve(system, through.T)),
    }
    for name, value in values.items():
        objective = jax.jit(partial(plan_objectives.objective, config, name, planning_model))
        np.testing.assert_allclose(objective(plan, states), value, rtol=2e-3)
    cost = jax.jit(partial(plan_objectives.plan_cost, config, planning_model))(z, plan[None])
    np.testing.assert_allclose(cost, [-sum(values.values())], rtol=2e-3)
    # A myopic input stays within the box.
    low = -jnp.ones(2)
    chosen = stimulation.myopic_input(
        stimulation.Config(kind="myopic"), planning_model, z, low, -low
    )
    assert jnp.abs(chosen).max() <= 1


@pytest.mark.slow
def test_plans_by_innovations(question):
    """`propagate`: the recursion of the filter, s' = F (I - K H) s + x, in NumPy."""
    model, params, posterior, plan, z = question
    planning_model = posteriors.predictive_model(model, posterior)
    config = stimulation.Config(propagate=True)
    states = plan_objectives.path(planning_model, z, plan)
    objective = jax.jit(partial(plan_objectives.objective, config, "d_optimal", planning_model))
    ours = objective(plan, states)
    p = np.asarray(posterior.covariance, float)
    c, b = np.asarray(params.matrix, float), np.asarray(params.offset, float)
    total, slope, after = 0.0, np.zeros((2, posterior.root.shape[0])), np.asarray(states, float)
    for t, u in enumerate(plan):
        inverse = lambda z: np.diag(
            np.where(MIXED, np.exp(-c @ z - b), np.exp(2 * np.asarray(params.log_noise)))
        )
        kalman = p @ c.T @ np.linalg.inv(c @ p @ c.T + inverse(after[t]))
        move = jax.jacfwd(partial(step, model, params))(states[t], u)
        slope = np.asarray(move) @ (np.eye(2) - kalman @ c) @ slope
        slope = slope + rows_of(model, params, states[t], u)
        omega = c.T @ np.linalg.inv(c @ p @ c.T + inverse(after[t + 1])) @ c
        total = total + slope.T @ omega @ slope
    root = np.asarray(posterior.root, float)
    exact = np.linalg.slogdet(np.eye(len(root)) + root.T @ total @ root)[1]
    np.testing.assert_allclose(ours, exact, rtol=2e-3)
    assert np.abs(states).max() < FARTHEST


@pytest.mark.slow
def test_plans_tell_as_much_as_they_promise():
    """The nats of `propagate` beside those gained from 40 simulated ends of a record, on average.

    The plan is of the mean path, from a state that it takes for known, so 30 % are allowed. If
    nothing were corrected by observations it would promise several times as much.
    """
    steps, ahead, count = 200, 20, 40
    with jax.enable_x64(True):
        model, params = random_model(Grid(5, 2, 3.0), (False,) * 8, scale=0.2)
        record = simulate(model, params, steps)
        inform = lambda record: field_posterior(model, params, gather(model, params, record), PRIOR)
        posterior = jax.jit(inform)(record)
        plan = jnp.tile(jnp.array([0.8, -0.5]), (ahead, 1))
        state = jax.tree.map(lambda x: x[-1], filter_states(model, params, record).belief)
        inputs = jnp.concatenate([record.u[:-1], plan, plan[:1]])

        def gain(key: jax.Array) -> jax.Array:
            path_key, draw_key = jax.random.split(key)
            path = particles(model, params, state, plan, 1, path_key)[1:, 0]
            y = channels.draw(model.is_count, params, path, draw_key)
            y = jnp.concatenate([record.y, y])
            everything = jnp.ones(y.shape, bool)
            longer = inform(Record(y, inputs, everything, everything[:, 0]))
            return longer.information - posterior.information

        gains = jax.jit(jax.vmap(gain))(jax.random.split(jax.random.key(0), count))
        planning_model = posteriors.predictive_model(model, posterior)
        config = stimulation.Config(propagate=True)

        @jax.jit
        def promise() -> list[jax.Array]:
            states = plan_objectives.path(planning_model, state.mean, plan)
            objective = partial(
                plan_objectives.objective, config, "d_optimal", actions=plan, states=states
            )
            return [
                objective(m) / 2 for m in (planning_model, planning_model._replace(remaining=None))
            ]

        expected, naive = (float(x) for x in promise())
        gains = np.asarray(gains)
    actual = gains.mean()
    assert gains.std() / count**0.5 < 0.1 * actual
    assert 0.7 * actual < expected < 1.3 * actual
    assert naive > 2 * actual
