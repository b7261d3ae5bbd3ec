"""The online learner of state-space models: when it fits, what it expects, how it acts."""

from dataclasses import replace
from functools import cache

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest

from envs.vector_field import VectorField
from jaxrl import agent_checker, loop
from jaxrl.dynamics.bases import Grid, Polynomial
from jaxrl.dynamics.learners import state_space_learner
from jaxrl.dynamics.learners.state_space_learner import Config
from jaxrl.dynamics.planning import icem, standstill, stimulation
from jaxrl.dynamics.planning.stimulation import Constants
from jaxrl.dynamics.state_space.model import StateSpace
from jaxrl.dynamics.state_space.online import candidates, choice

CHANNELS = 6
ENV = VectorField("limit_cycle", "linear", "gaussian", CHANNELS)
PARAMS = ENV.params(jax.random.key(5), 1.0)
BOUND = jnp.broadcast_to(PARAMS.action_bound, (2,))
KNOWN = Constants(jnp.asarray(PARAMS.dt), -BOUND, BOUND, PARAMS, jnp.asarray(PARAMS.reach))
MODELS = tuple(
    StateSpace(jnp.zeros(CHANNELS, bool), 2, 2, field)
    for field in (Polynomial(degree=3, half_width=3.0), Grid(per_axis=4, half_width=4.0))
)
PLANNER = icem.Config(horizon=4, candidates=6, iterations=1, elites=2)
HELD = stimulation.Config(kind="hold", hold_steps=4, at_edge=True)
CONFIG = Config(capacity=60, first_fit=30, growth=1.3, first_steps=2, steps=1, policy=HELD)


POLICIES = {
    "hold": HELD,
    "myopic": stimulation.Config(kind="myopic", lookahead=2),
    "d_optimal": stimulation.Config(planner=PLANNER, replan_steps=2),
}


def config_with(policy: stimulation.Config) -> Config:
    return replace(CONFIG, policy=policy)


@cache
def experiment(kind: str, models: int = 1):
    """The loop's states after each of 80 samples, stacked, and the measures."""
    agent = state_space_learner.make(config_with(POLICIES[kind]), MODELS[:models], KNOWN)
    running = loop.make_loop(ENV, PARAMS, agent, loop.Config(1, 1))

    def step(state, _):
        after, metrics = running.update(state)
        return after, (after, state, metrics.agent)

    start = running.init(jax.random.key(1))
    return agent, jax.jit(lambda s: jax.lax.scan(step, s, length=80)[1])(start)


def due_times() -> list[int]:
    """After how many samples a fit is due, as long as they can be stored."""
    times = [CONFIG.first_fit]
    while (next_time := int(np.ceil(np.float32(times[-1]) * np.float32(CONFIG.growth)))) <= 60:
        times.append(next_time)
    return times


@pytest.mark.slow
def test_fits_are_made_at_growing_intervals_and_never_between():
    _, (after, _, _) = experiment("hold")
    count, fits = np.asarray(after.agent.count), np.asarray(after.agent.params.fits)
    assert count.tolist() == list(range(1, 81))
    assert fits.tolist() == [sum(t <= n for t in due_times()) for n in count]
    evidence = np.asarray(after.agent.params.choice.candidates[0].log_evidence)
    assert (evidence[: CONFIG.first_fit - 1] == candidates.UNFITTED).all()
    changed = np.flatnonzero(np.diff(evidence[CONFIG.first_fit - 1 :])) + CONFIG.first_fit + 1
    assert changed.tolist() == due_times()[1:]


@pytest.mark.slow
def test_a_fit_is_skipped_for_a_whole_batch_that_is_not_due():
    """Under `vmap` there is still a branch for it: scoring is inside of a `cond`."""
    agent = state_space_learner.make(CONFIG, MODELS[:1], KNOWN)
    running = loop.make_loop(ENV, PARAMS, agent, loop.Config(1, 1))
    states = jax.vmap(running.init)(jax.random.split(jax.random.key(0), 2))
    jaxpr = jax.make_jaxpr(jax.vmap(running.update))(states)
    outside, inside = [], []

    def visit(equations, place):
        for equation in equations:
            place_below = inside if equation.primitive.name == "cond" else place
            place.append(equation.primitive.name)
            for below in jax.extend.core.jaxprs_in_params(equation.params):
                visit(below.eqns, place_below)

    visit(jaxpr.jaxpr.eqns, outside)
    assert "eigh" in inside  # of principal components
    assert "eigh" not in outside


@pytest.mark.slow
def test_samples_are_stored_as_long_as_there_is_room():
    _, (after, before, _) = experiment("hold")
    record = jax.tree.map(lambda x: np.asarray(x[-1]), after.agent.record)
    np.testing.assert_array_equal(record.y, before.obs[:60, 0])
    actions = np.asarray(after.memory.stimulus.held[:60, 0])
    np.testing.assert_array_equal(record.u, actions)
    assert record.valid.all()
    assert int(after.agent.params.fits[59]) == int(after.agent.params.fits[-1])


@pytest.mark.slow
def test_beliefs_while_acting_are_those_of_the_filter():
    """The learner is kept as it is, from the first sample on."""
    agent, (after, before, _) = experiment("hold")
    state = jax.tree.map(lambda x: x[-1], after.agent)
    obs = before.obs[:25, 0].at[3, 2].set(jnp.nan).at[7].set(jnp.nan)

    def step(carry, obs):
        memory, key = carry
        key, act_key = jax.random.split(key)
        action, memory, extras = agent.act(state, memory, obs, act_key)
        return (memory, key), (action, extras.belief)

    start = agent.memory(), jax.random.key(3)
    _, (actions, beliefs) = jax.jit(lambda s: jax.lax.scan(step, s, obs))(start)
    observed = jnp.isfinite(obs)
    all_beliefs = choice.beliefs(
        MODELS[:1],
        "extended",
        state.params.choice,
        jnp.where(observed, obs, 9.0),
        actions,
        observed,
    )
    np.testing.assert_allclose(beliefs.mean, all_beliefs.mean, atol=1e-4)
    np.testing.assert_allclose(beliefs.covariance, all_beliefs.covariance, atol=1e-4)


@pytest.mark.slow
def test_after_a_fit_the_state_is_known_in_its_coordinates():
    """What is acted on right after it is what filtering all samples so far gives."""
    agent, (after, _, _) = experiment("hold")
    for count in due_times()[:2]:
        moment = jax.tree.map(lambda x, n=count: x[n - 1], after)
        state = moment.agent
        obs, memory = moment.obs[0], jax.tree.map(lambda x: x[0], moment.memory)
        _, _, extras = agent.act(state, memory, obs, jax.random.key(0))
        observations = jnp.concatenate([state.record.y[:count], obs[None]])
        inputs = jnp.concatenate([state.record.u[:count], jnp.zeros((1, 2))])
        all_beliefs = choice.beliefs(
            MODELS[:1], "extended", state.params.choice, observations, inputs
        )
        np.testing.assert_allclose(extras.belief.mean, all_beliefs.mean[-1], atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["myopic", "d_optimal"])
def test_policies_give_random_inputs_first_and_plans_later(kind):
    _, (after, _, measures) = experiment(kind, 1 if kind == "myopic" else 2)
    record = jax.tree.map(lambda x: np.asarray(x[-1]), after.agent.record)
    share = np.abs(record.u) / np.asarray(BOUND)
    assert (share <= 1 + 1e-6).all()
    first = share[: CONFIG.first_fit]
    np.testing.assert_allclose(first.max(axis=1), 1, rtol=1e-5)  # at an edge of the box
    held = np.abs(np.diff(record.u[: CONFIG.random_hold], axis=0))
    np.testing.assert_allclose(held, 0, atol=1e-6)
    if kind == "myopic":
        directions = np.asarray(stimulation.directions(2))
        for u in record.u[CONFIG.first_fit :] / np.asarray(BOUND):
            assert np.abs(directions - u[None]).max(axis=1).min() < 1e-5
    assert len(np.unique(record.u[CONFIG.first_fit :], axis=0)) > 3
    assert np.isfinite(record.u).all()
    assert (np.asarray(measures["invalid_plans"]) == 0).all()
    assert np.isfinite(np.asarray(measures["information"])).all()


@pytest.mark.slow
def test_the_agent_keeps_the_contract():
    agent = state_space_learner.make(CONFIG, MODELS[:1], KNOWN)
    agent_checker.agent_checker(agent, ENV, PARAMS, num_envs=1)


def test_the_prior_of_an_effect_is_in_the_unit_of_the_bounds():
    """So that what is learned does not depend on what inputs are measured in."""
    bounds = jnp.array([2e-6, 300.0])
    constants = KNOWN._replace(low=0 * bounds, high=bounds)
    agent = state_space_learner.make(CONFIG, MODELS[:1], constants)
    state = jax.jit(agent.init)(jax.random.key(0), jnp.zeros(CHANNELS))
    (candidate,) = state.params.choice.candidates
    deviations = np.diagonal(candidate.posterior.root).reshape(-1, 2)
    np.testing.assert_allclose(deviations[-2:, 0], [10 / 1e-6, 10 / 100], rtol=1e-4)


def test_several_streams_and_other_sizes_are_refused():
    with pytest.raises(ValueError, match="no model to learn"):
        state_space_learner.make(CONFIG, (), KNOWN)
    with pytest.raises(ValueError, match="first_fit is 61, expected at most capacity=60"):
        state_space_learner.make(replace(CONFIG, first_fit=61), MODELS[:1], KNOWN)
    other = StateSpace(jnp.zeros(3, bool), 2, 2, None)
    with pytest.raises(ValueError, match="models differ in more than their fields"):
        state_space_learner.make(CONFIG, (MODELS[0], other), KNOWN)
    agent = state_space_learner.make(CONFIG, MODELS[:1], KNOWN)
    running = loop.make_loop(ENV, PARAMS, agent, loop.Config(2, 1))
    with pytest.raises(ValueError, match="2 streams, expected 1"):
        jax.eval_shape(lambda key: running.update(running.init(key)), jax.random.key(0))


@pytest.mark.parametrize(
    ("capacity", "sizes"), [(60, [60]), (512, [512]), (9000, [512, 4096, 9000])]
)
def test_fits_are_to_a_part_of_the_room(capacity, sizes):
    assert state_space_learner.fit_sizes(capacity) == sizes


@pytest.mark.slow
def test_inputs_are_random_where_plans_have_kept_the_state():
    """A learner that is kept as it is sees the same observation again and again."""
    standstill_config = standstill.Config(window=5, radius=0.2, random_steps=8)
    config = replace(config_with(POLICIES["myopic"]), when_still=standstill_config, random_hold=4)
    agent = state_space_learner.make(config, MODELS[:1], KNOWN)
    _, (after, before, _) = experiment("hold")
    state, obs = jax.tree.map(lambda x: x[-1], after.agent), before.obs[40, 0]

    def step(carry, _):
        memory, key = carry
        key, act_key = jax.random.split(key)
        action, memory, _ = agent.act(state, memory, obs, act_key)
        return (memory, key), (action / BOUND, memory.standstill)

    start = agent.memory(), jax.random.key(3)
    _, (actions, standstills) = jax.jit(lambda x: jax.lax.scan(step, x, length=80))(start)
    actions, steps_left = np.asarray(actions), np.asarray(standstills.random_left)
    first = np.flatnonzero(steps_left)[0]
    is_quiet = np.asarray(standstills.variance) < standstill_config.radius**2
    assert first == np.flatnonzero(is_quiet & (np.arange(80) > standstill_config.window))[0]
    held = actions[first : first + 8].reshape(2, 4, 2)
    np.testing.assert_array_equal(held, held[:, :1].repeat(4, axis=1))
    assert (held[0, 0] != held[1, 0]).any()
    planned_actions = np.asarray(stimulation.directions(2))
    distance = np.abs(planned_actions[None] - actions[:, None]).max(axis=2).min(axis=1)
    np.testing.assert_array_equal(distance > 1e-5, steps_left > 0)


@pytest.mark.slow
def test_the_field_is_learned_within_500_samples():
    """Far better than a field of 0, whose error is 1, with twenty channels nobody knows."""
    from train.vector_field.experiment.field_errors import fields_at, relative_error
    from train.vector_field.experiment.reach import scored_points
    from train.vector_field.learners.state_space import state_space

    env = VectorField("limit_cycle", "linear", "gaussian", 20)
    models = tuple(
        StateSpace(jnp.zeros(20, bool), 2, 2, field)
        for field in (Grid(per_axis=8, half_width=4.0),)
    )
    config = Config(capacity=500, policy=stimulation.Config(kind="myopic"))
    learner = state_space(env, config, models, ["rbf"])
    points = scored_points(2.0, 2)

    def error(key):
        world_key, key = jax.random.split(key)
        params = env.params(world_key, 1.0)
        agent = learner.make(config.policy, params)
        train_loop = loop.make_loop(env, params, agent, loop.Config(1, 1))
        step = lambda state, _: (train_loop.update(state)[0], None)
        state, _ = jax.lax.scan(step, train_loop.init(key), length=500)
        learned_field, true = fields_at(env, learner, state.agent, points)
        return relative_error(learned_field, true, jnp.ones(points.shape[:-1]))

    errors = jax.jit(jax.vmap(error))(jax.random.split(jax.random.key(0), 3))
    assert (errors < 0.6).all()
