"""Other bases of a learned field, angles, goals and novelty; against ridge regression in NumPy."""

from dataclasses import replace
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxrl.dynamics import bases
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.learners import field_learner, field_model
from jaxrl.dynamics.learners.field_model import Config, System
from jaxrl.dynamics.planning import distillation, icem, plan_objectives, stimulation
from jaxrl.dynamics.planning.stimulation import Constants, Extras
from jaxrl.types import Transition

DT, Q, T = 0.1, 0.02, 200
RNG = np.random.default_rng(0)
single = partial(jnp.asarray, dtype=jnp.float32)
HOLD = stimulation.Config(kind="hold")


def rollout_of(z: np.ndarray, u: np.ndarray, after: np.ndarray) -> Transition:
    """`[T, 1]`, of states that were observed."""
    dims = z.shape[1]
    extras = Extras(
        Belief(single(z)[:, None], jnp.zeros((len(z), 1, dims, dims))),
        jnp.zeros((len(z), 1), jnp.int32),
    )
    zeros = jnp.zeros((len(z), 1))
    obs, actions, next_states = (single(x)[:, None] for x in (z, u, after))
    return Transition(obs, actions, zeros, next_states, zeros > 0, zeros > 0, extras)


def learn_rollout(config: Config, system: System, knowledge: Constants, rollout: Transition):
    @jax.jit
    def run(rollout):
        agent = field_learner.make(config, system, knowledge)
        state = agent.init(jax.random.key(0), rollout.obs[0, 0])
        return agent.update(state, rollout, jax.random.key(1))[0]

    return run(rollout)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("basis", ["fourier", "polynomial"])
def test_a_field_in_three_dimensions_is_ridge_regression_on_its_basis(basis):
    config = Config(
        basis=basis,
        fourier=bases.Fourier(40, 3, length=1.5),
        polynomial=bases.Polynomial(2, 3, 2.0),
        process_noise=Q,
        prior_speed=0.7,
        policy=HOLD,
    )
    system = System(lambda u, z, numbers: u, lambda z, numbers: (z, jnp.zeros(3)))
    knowledge = Constants(jnp.array(DT), -jnp.ones(3), jnp.ones(3), ())
    z, u = RNG.uniform(-2, 2, (T, 3)), RNG.uniform(-1, 1, (T, 3))
    after = z + DT * (np.sin(z[:, ::-1]) + u) + np.sqrt(Q * DT) * RNG.normal(size=z.shape)
    state = learn_rollout(config, system, knowledge, rollout_of(z, u, after))
    rows = np.asarray(bases.features(config.functions, single(z)), np.float64)
    spread = 10 if basis == "polynomial" else 1
    variance = 0.7**2 / spread / (Q * DT)
    assert bases.mean_square(config.functions) == spread
    precision = np.eye(rows.shape[1]) / variance + DT**2 * rows.T @ rows
    mean = np.linalg.solve(precision, DT * rows.T @ (after - z - DT * u))
    points = RNG.uniform(-2, 2, (5, 3))
    expected = np.asarray(bases.features(config.functions, single(points)), np.float64) @ mean
    velocity = field_model.velocity(config, system, state, single(points))
    np.testing.assert_allclose(velocity, expected, atol=5e-3)
    information = 1.5 * (np.linalg.slogdet(precision)[1] + len(mean) * np.log(variance))
    np.testing.assert_allclose(state.posterior.information, information, rtol=2e-3)


@pytest.mark.slow
def test_angles_go_round_and_are_seen_as_sine_and_cosine():
    """A rotation at a speed that depends on the angle is learned through ±π."""
    config = Config(
        basis="polynomial",
        polynomial=bases.Polynomial(1, 3, 1.0),
        process_noise=1e-4,
        prior_speed=3.0,
        policy=HOLD,
    )
    system = System(
        lambda u, z, numbers: jnp.stack([0 * u[0], u[0]]),
        lambda z, numbers: (z, jnp.zeros(2)),
        circular=(0,),
    )
    assert field_model.dims_of(config, system) == 2
    knowledge = Constants(jnp.array(DT), -jnp.ones(1), jnp.ones(1), (), 2.0)  # angles know no walls
    wrap_angle = lambda x: (x + np.pi) % (2 * np.pi) - np.pi
    z = np.stack([RNG.uniform(-np.pi, np.pi, T), RNG.uniform(-1, 1, T)], axis=1)
    u = RNG.uniform(-1, 1, (T, 1))
    field = lambda z: np.stack([5 + z[:, 1] + np.cos(z[:, 0]), -np.sin(z[:, 0])], axis=1)
    after = z + DT * (field(z) + np.concatenate([0 * u, u], axis=1))
    after[:, 0] = wrap_angle(after[:, 0])
    assert (np.abs(after[:, 0] - z[:, 0]) > np.pi).sum() > 5
    after = np.clip(after, [-np.pi, -1.9], [np.pi, 1.9])
    state = learn_rollout(config, system, knowledge, rollout_of(z, u, after))
    np.testing.assert_allclose(
        field_model.velocity(config, system, state, single(z)), field(z), atol=0.05
    )
    near_pi = single([3.1, 0.0])
    following = field_model.next_state(config, system, state, jnp.zeros(1), near_pi)
    np.testing.assert_allclose(following[0], wrap_angle(3.1 + DT * (5 + np.cos(3.1))), atol=0.02)


def test_an_angle_behind_noise_is_filtered_as_if_it_had_never_been_wrapped():
    """Swings about ±π, where noise alone takes it round: a scalar Kalman filter in NumPy."""
    config = Config(
        basis="polynomial",
        polynomial=bases.Polynomial(1, 2, 1.0),
        prior_speed=1e-4,
        process_noise=0.4,
        belief="filtered",
        first_variance=4.0,
        policy=HOLD,
    )
    variance, turn = 0.04, 2 * np.pi
    system = System(
        lambda u, z, numbers: u,
        lambda z, numbers: (z, jnp.full(1, variance)),
        circular=(0,),
        angular_channels=(0,),
    )
    rng = np.random.default_rng(5)
    u = 4 * np.cos(0.5 * np.arange(60))[:, None]
    path = np.pi + DT * np.cumsum(np.concatenate([[0], u[:-1, 0]])) + 0.2 * rng.normal(size=60)
    y = path + variance**0.5 * rng.normal(size=60)
    wrap_angle = lambda x: (x + np.pi) % turn - np.pi
    assert (np.abs(np.diff(wrap_angle(y))) > np.pi).sum() > 10
    mean, spread, means = 0.0, 4.0, []
    for angle, push in zip(y - y[0] + wrap_angle(y[0]), u[:, 0], strict=True):
        gain = spread / (spread + variance)
        mean, spread = mean + gain * (angle - mean), (1 - gain) * spread
        means.append(mean)
        mean, spread = mean + DT * push, spread + 0.4 * DT
    state = field_learner.first_state(config, system, KNOWN)
    obs = single(wrap_angle(y))[:, None]
    beliefs = field_learner.beliefs(config, system, state, obs, single(u))
    np.testing.assert_allclose(
        wrap_angle(np.asarray(beliefs.mean)[:, 0] - np.array(means)), 0, atol=2e-3
    )


def test_a_state_is_not_new_beside_those_on_the_other_side_of_an_angle():
    """Visited around 3 rad alone: -3.1 is as near to that as 3.2, which would be the same."""
    policy = stimulation.Config(objective="rnd", planner=PLANNER, replan_steps=2)
    config = Config(basis="polynomial", polynomial=bases.Polynomial(1, 3, 1.0), policy=policy)
    system = System(lambda u, z, numbers: u, lambda z, numbers: (z, jnp.zeros(2)), circular=(0,))
    path = np.random.default_rng(0).normal([3.0, 0.0], 0.1, (300, 2))
    state = learn_rollout(config, system, KNOWN, rollout_of(path, 0 * path, path))
    novelty = field_learner.predictive_model(config, system, state).novelty
    assert novelty is not None
    at = lambda angle: float(novelty(single([angle, 0.0])))
    np.testing.assert_allclose(at(-np.pi), at(np.pi), rtol=1e-3, atol=1e-6)
    assert max(at(3.0), at(-3.1)) < 0.1 * at(0.0)


def test_a_goal_is_as_far_as_the_shorter_way_round():
    """Plans that turn past ±π, without a field; angles by complex numbers."""
    config = Config(basis="polynomial", polynomial=bases.Polynomial(1, 3, 1.0), policy=HOLD)
    system = System(lambda u, z, numbers: u, lambda z, numbers: (z, jnp.zeros(2)), circular=(1,))
    state = field_learner.first_state(config, system, KNOWN)
    model = field_learner.predictive_model(config, system, state)
    goal_policy = stimulation.Config(objective="goal", goal=(0.5, 3.0), planner=PLANNER)
    plan, start = np.array([[1.0, 2.0]] * 4), np.array([0.0, 2.9])
    gain = plan_objectives.plan_gain(goal_policy, model, single(plan), single(start))
    states = start + DT * np.cumsum(plan, axis=0)
    turn = np.angle(np.exp(1j * (states[:, 1] - 3.0)))
    assert states[-1, 1] > np.pi + 0.2
    np.testing.assert_allclose(gain, -np.hypot(states[:, 0] - 0.5, turn).sum(), rtol=1e-4)


@pytest.mark.parametrize(("basis", "radius"), [("polynomial", 5.0), ("fourier", 1.0)])
def test_circles_fill_the_box_of_polynomials(basis, radius):
    polynomial = bases.Polynomial(2, 4, half_width=5.0)
    config = Config(basis=basis, polynomial=polynomial, policy=HOLD)
    system = System(lambda u, z, numbers: u, lambda z, numbers: (z, z), circular=(1,))
    z = RNG.uniform(-3, 3, (7, 3))
    expected = [z[:, 0], z[:, 2], radius * np.sin(z[:, 1]), radius * np.cos(z[:, 1])]
    embedding = field_model.embed(config, system, single(z))
    np.testing.assert_allclose(embedding, np.stack(expected, axis=1), atol=1e-5)


PLANNER = icem.Config(horizon=4, candidates=16, iterations=2, elites=4)
LINE = System(lambda u, z, numbers: u, lambda z, numbers: (z, jnp.zeros(2)))
KNOWN = Constants(jnp.array(DT), -jnp.ones(2), jnp.ones(2), ())


def run_agent(objective: str, goal: tuple[float, ...] = (0.0,)):
    """`(path [60, 2], agent)` of an agent in a system without a field."""
    policy = stimulation.Config(objective=objective, goal=goal, planner=PLANNER, replan_steps=2)
    agent = field_learner.make(Config(policy=policy), LINE, KNOWN)

    @jax.jit
    def run(key):
        def step(carry, key):
            z, state, memory = carry
            act_key, learn_key = jax.random.split(key)
            action, memory, extras = agent.act(state, memory, z, act_key)
            after = z + DT * action
            row = rollout_of(np.zeros((1, 2)), np.zeros((1, 2)), np.zeros((1, 2)))
            extras = jax.tree.map(lambda x: x[None, None], extras)
            row = row._replace(
                obs=z[None, None], action=action[None, None], next_obs=after[None, None]
            )
            state, _ = agent.update(state, row._replace(extras=extras), learn_key)
            return (after, state, memory), after

        begin = (jnp.zeros(2), agent.init(jax.random.key(2), jnp.zeros(2)), agent.memory())
        (_, state, _), path = jax.lax.scan(step, begin, jax.random.split(key, 60))
        return path, state

    return run(jax.random.key(0))


@pytest.mark.slow
def test_a_goal_is_reached_and_novelty_leads_away_from_where_one_was():
    path, state = run_agent("goal", (1.0, -1.5))
    assert np.linalg.norm(path[-1] - np.array([1.0, -1.5])) < 0.2
    assert state.distilled == ()
    path, state = run_agent("rnd")
    assert isinstance(state.distilled, distillation.State)
    assert state.distilled.count == 60
    np.testing.assert_allclose(state.distilled.seen[1:60], path[:59], rtol=1e-6)
    assert np.abs(path).max() > 1.5


def test_goals_of_another_length_are_refused():
    policy = stimulation.Config(objective="goal", goal=(1.0, 2.0, 3.0), planner=PLANNER)
    with pytest.raises(ValueError, match="goal has 3 numbers, expected 2, one for each component"):
        field_learner.make(replace(Config(), policy=replace(policy, replan_steps=2)), LINE, KNOWN)


SEVERAL = Config(
    basis="auto",
    grid=bases.Grid(7, 2, 2.5),
    fourier=bases.Fourier(60, 2),
    polynomial=bases.Polynomial(3, 2, 2.5),
    process_noise=Q,
    prior_speed=1.0,
    policy=HOLD,
)
PLANE = System(lambda u, z, numbers: u, lambda z, numbers: (z, jnp.zeros(2)))
PLANE_KNOWN = Constants(jnp.array(DT), -jnp.ones(2), jnp.ones(2), (), 3.0)


@pytest.mark.slow
@pytest.mark.parametrize("field", ["cubic", "bumpy"])
def test_the_likeliest_of_several_bases_counts_and_is_as_if_it_were_alone(field):
    """A cubic field is one of the polynomials; of the bumpy one they know little."""
    rng = np.random.default_rng(3)
    z, u = rng.uniform(-2, 2, (400, 2)), rng.uniform(-1, 1, (400, 2))
    true = {
        "cubic": lambda z: np.stack([z[:, 1], z[:, 0] - z[:, 0] ** 3], axis=1) / 2,
        "bumpy": lambda z: np.sin(3 * z[:, ::-1]),
    }[field]
    after = z + DT * (true(z) + u) + np.sqrt(Q * DT) * rng.normal(size=z.shape)
    rollout = rollout_of(z, u, np.clip(after, -2.9, 2.9))
    several_state = learn_rollout(SEVERAL, PLANE, PLANE_KNOWN, rollout)
    configs = field_model.candidates(SEVERAL)
    assert len(configs) == len(several_state.candidates) == 4
    evidence = np.array([x.log_evidence for x in several_state.candidates])
    assert several_state.place == evidence.argmax()
    likeliest = configs[int(several_state.place)]
    assert (likeliest.basis == "polynomial") == (field == "cubic")
    single_state = learn_rollout(likeliest, PLANE, PLANE_KNOWN, rollout)
    points = single(rng.uniform(-2, 2, (6, 2)))
    velocity = lambda config, state: field_model.velocity(config, PLANE, state, points)
    np.testing.assert_allclose(
        velocity(SEVERAL, several_state), velocity(likeliest, single_state), atol=1e-4
    )
    np.testing.assert_allclose(
        field_model.uncertainty(SEVERAL, PLANE, several_state, points[0]),
        field_model.uncertainty(likeliest, PLANE, single_state, points[0]),
        rtol=1e-3,
    )
    np.testing.assert_allclose(
        several_state.posterior.information, single_state.posterior.information, rtol=1e-4
    )
    # The marginal likelihood of all samples at once, of two of them.
    noise, places = Q * DT, (2, 3)
    totals = []
    for i in places:
        config = configs[i]
        rows = DT * np.asarray(field_model.features(config, PLANE, (), single(z)), np.float64)
        variance = float(field_model.weight_variance(config))
        scale = noise * np.eye(len(z)) + variance * rows @ rows.T
        errors = np.clip(after, -2.9, 2.9) - z - DT * u
        totals.append(
            stats.multivariate_normal.logpdf(errors.T, np.zeros(len(z)), cast(Any, scale)).sum()
        )
    candidate_evidence = evidence[list(places)]
    np.testing.assert_allclose(
        candidate_evidence[0] - candidate_evidence[1], totals[0] - totals[1], rtol=5e-3, atol=0.5
    )


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 1])
def test_what_samples_tell_is_counted_for_one_basis_where_another_becomes_the_likeliest(place):
    """Against determinants of both in NumPy, once with either as the likeliest after them."""
    several = replace(SEVERAL, basis="polynomial", polynomial=bases.Polynomial(2, 2, 3.0))
    configs = several, replace(several, polynomial=bases.Polynomial(4, 2, 3.0))
    z = RNG.uniform(-2, 2, (24, 2))
    rollout = rollout_of(z[:-1], np.zeros((23, 2)), z[1:])
    first, last = jax.tree.map(lambda x: x[:18], rollout), jax.tree.map(lambda x: x[18:], rollout)
    each, gains = [], []
    for config in configs:
        agent = field_learner.make(config, PLANE, PLANE_KNOWN)
        before = agent.update(agent.init(jax.random.key(0), z[0]), first, jax.random.key(1))[0]
        each.append((before.posterior, agent.update(before, last, jax.random.key(1))[0].posterior))
        rows = DT * np.asarray(field_model.features(config, PLANE, (), single(z)), np.float64)
        prior = np.eye(rows.shape[1]) * Q * DT / float(field_model.weight_variance(config))
        grams = [prior + rows[:n].T @ rows[:n] for n in (18, 23)]
        gains.append(np.diff([np.linalg.slogdet(x)[1] for x in grams])[0])  # half, of two outputs
    empty = field_learner.first_state(several, PLANE, PLANE_KNOWN)
    candidates = lambda i: tuple(field_model.Candidate(x[i], jnp.zeros(())) for x in each)
    states = (
        empty._replace(posterior=each[at][i], candidates=candidates(i), place=jnp.asarray(at))
        for i, at in ((0, 1 - place), (1, place))
    )
    np.testing.assert_allclose(field_model.information_gain(*states), gains[place], rtol=1e-3)


@pytest.mark.slow
def test_a_linear_part_has_its_own_prior():
    config = Config(basis="bumps", linear=True, prior_linear=2.0, prior_speed=0.5)
    z = single([[0.3, -1.2]])
    row = field_model.features(config, PLANE, (), z)[0]
    assert len(row) == config.num_features == 225 + 3
    deviation = field_model.weight_variance(config) ** 0.5
    np.testing.assert_allclose(deviation * row[-3:], [2 * 0.3, 2 * -1.2, 2.0], rtol=1e-5)
