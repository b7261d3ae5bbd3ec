"""Bayesian learning of fields, against batch posteriors in float64 and experiments step by step."""

from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.vector_field import VectorField
from jaxrl import loop
from jaxrl.dynamics import rbf
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.learners import field_learner, field_model
from jaxrl.dynamics.learners.field_model import Config, System
from jaxrl.dynamics.planning import plan_objectives, stimulation
from jaxrl.dynamics.planning.stimulation import Constants, Extras
from jaxrl.types import Agent, Transition

GRID = rbf.Grid(per_axis=5, half_width=2.0)
CENTRES = np.asarray(GRID.centres(), np.float64)
DT, Q, T, D = 0.1, 0.02, 300, 2
HOLD = stimulation.Config(kind="hold", hold_steps=10)
EXACT = Config(grid=GRID, process_noise=Q, policy=HOLD)
PUSH = np.array([[0.8, -0.3, 0.1], [0.2, 0.5, -0.6]])
single = partial(jnp.asarray, dtype=jnp.float32)
KNOWN = Constants(jnp.array(DT), -jnp.ones(3), jnp.ones(3), single(PUSH))
BUMPS = System(
    effect=lambda u, z, push: push @ u * jnp.cos(z[0]),
    emission=lambda z, push: (z, jnp.zeros(2)),
)


def bumps(z: np.ndarray) -> np.ndarray:
    """`[..., C]`."""
    distance = np.sum((z[..., None, :] - CENTRES) ** 2, axis=-1)
    return np.exp(-distance / (2 * GRID.width**2))


def input_effect(u: np.ndarray, z: np.ndarray) -> np.ndarray:
    return PUSH @ u * np.cos(z[0])


class Path(NamedTuple):
    z: np.ndarray  # [T + 1, d]
    u: np.ndarray  # [T, 3]


def walk(velocity, seed: int = 0) -> Path:
    """A path of T steps in float64, drawn back towards the middle by inputs held for a while."""
    rng = np.random.default_rng(seed)
    z, inputs = [np.array([0.3, -0.5])], []
    for t in range(T):
        held = rng.uniform(-1, 1, 3) if t % 10 == 0 else inputs[-1]
        inputs.append(held)
        drift = velocity(z[-1]) + input_effect(held, z[-1])
        z.append(z[-1] + DT * drift + np.sqrt(Q * DT) * rng.normal(size=D))
    return Path(np.array(z), np.array(inputs))


def rollout_of(path: Path) -> Transition:
    """`[T, 1]`; the state is observed."""
    z, u = single(path.z)[:, None], single(path.u)[:, None]
    extras = Extras(Belief(z[:-1], jnp.zeros((T, 1, D, D))), jnp.zeros((T, 1), jnp.int32))
    zeros = jnp.zeros((T, 1))
    return Transition(z[:-1], u, zeros, z[1:], zeros > 0, zeros > 0, extras)


@partial(jax.jit, static_argnums=1)
def learn_rollout(config: Config, system: System, rollout: Transition):
    """What an agent learns of a whole rollout at once."""
    agent = field_learner.make(config, system, KNOWN)
    state = agent.init(jax.random.key(0), rollout.obs[0, 0])
    return agent.update(state, rollout, jax.random.key(1))


# With the state observed.

WEIGHTS = 0.5 * np.random.default_rng(3).normal(size=(25, D))
PATH = walk(lambda z: bumps(z) @ WEIGHTS)


def batch_posterior(rows: np.ndarray, targets: np.ndarray, variance: float):
    """`(mean, covariance)` in units of the noise; rows `[k, p]`, targets `[k, ...]`."""
    precision = np.eye(rows.shape[1]) / variance + rows.T @ rows
    covariance = np.linalg.inv(precision)
    return covariance @ rows.T @ targets, covariance


def batch_of_bumps(noise: float):
    """`(mean, covariance, prior variance, targets)`; `noise`: first guess, per unit of time."""
    variance = 0.5**2 / np.sum(bumps(np.zeros(2)) ** 2) / (noise * DT)
    moves = np.array([input_effect(u, z) for u, z in zip(PATH.u, PATH.z, strict=False)])
    targets = np.diff(PATH.z, axis=0) - DT * moves
    return *batch_posterior(DT * bumps(PATH.z[:-1]), targets, variance), variance, targets


def test_a_field_of_bumps_has_the_posterior_of_all_data_at_once():
    state, metrics = learn_rollout(EXACT, BUMPS, rollout_of(PATH))
    mean, covariance, variance, _ = batch_of_bumps(Q)
    np.testing.assert_allclose(state.posterior.mean, mean, atol=3e-3)
    np.testing.assert_allclose(state.posterior.covariance, covariance, atol=1e-3 * variance)
    information = (25 * np.log(variance) - np.linalg.slogdet(covariance)[1]) * D / 2
    np.testing.assert_allclose(state.posterior.information, information, rtol=1e-3)
    assert metrics["information"] == state.posterior.information
    np.testing.assert_allclose(metrics["process_noise"], Q, rtol=1e-6)
    points = np.random.default_rng(1).uniform(-2, 2, (4, 3, D))
    velocity = jax.jit(partial(field_model.velocity, EXACT, BUMPS))(state, single(points))
    np.testing.assert_allclose(velocity, bumps(points) @ mean, atol=2e-3)
    spread = jax.jit(jax.vmap(partial(field_model.uncertainty, EXACT, BUMPS, state)))
    expected = Q * DT * np.einsum("ij,jk,ik->i", *(bumps(points[0]), covariance, bumps(points[0])))
    np.testing.assert_allclose(spread(single(points[0])), expected, rtol=2e-3)


def test_noise_that_is_not_known_is_learned():
    """By the formula for all data at once, which comes close to the truth."""
    config = replace(EXACT, process_noise=0.1, noise_strength=4.0)
    state, metrics = learn_rollout(config, BUMPS, rollout_of(PATH))
    mean, covariance, _, targets = batch_of_bumps(0.1)
    misfit = np.sum(targets**2) - np.trace(mean.T @ np.linalg.inv(covariance) @ mean)
    expected = (4 * 0.1 * DT + misfit) / (4 + T * D) / DT
    np.testing.assert_allclose(metrics["process_noise"], expected, rtol=2e-3)
    assert abs(expected / Q - 1) < 0.15
    np.testing.assert_allclose(state.posterior.mean, mean, atol=3e-3)


# A family of few parameters.

A, B, CUBIC, SCALE = -0.5, -1.0, 0.5, 0.5


def duffing(z, e):
    """Duffing's oscillator, of which the cubic term is known."""
    x, y = z[0], z[1]
    return jnp.stack([SCALE * y, SCALE * (e[0] * y - x * (e[1] + CUBIC * x**2))])


DUFFING = BUMPS._replace(family=duffing, family_start=(0.2, 0.0))
DRIFT = lambda z: SCALE * np.array([z[1], A * z[1] - z[0] * (B + CUBIC * z[0] ** 2)])
SLOPES = lambda z: SCALE * np.array([[0.0, 0.0], [z[1], -z[0]]])


def test_two_parameters_of_a_family_are_found():
    path = walk(DRIFT, seed=1)
    config = replace(EXACT, prior_speed=2.0)
    state, _ = learn_rollout(config, DUFFING, rollout_of(path))
    rows, targets = [], []
    for z, u, after in zip(path.z, path.u, path.z[1:], strict=False):
        known_velocity = SCALE * np.array([z[1], -CUBIC * z[0] ** 3]) + input_effect(u, z)
        rows.append(DT * SLOPES(z))
        targets.append(after - z - DT * known_velocity - rows[-1] @ (0.2, 0.0))
    variance = 2.0**2 / (Q * DT)
    mean, covariance = batch_posterior(np.concatenate(rows), np.concatenate(targets), variance)
    np.testing.assert_allclose(state.posterior.mean - mean, [0.2, 0.0], atol=2e-3)
    sd = np.sqrt(Q * DT * np.diag(covariance))
    assert (sd < 0.1 * 2.0).all()
    assert (np.abs(state.posterior.mean - np.array([A, B])) < 3 * sd).all()
    np.testing.assert_allclose(state.posterior.covariance, covariance, rtol=1e-2, atol=1e-2)
    information = (2 * np.log(variance) - np.linalg.slogdet(covariance)[1]) / 2
    np.testing.assert_allclose(state.posterior.information, information, rtol=1e-3)
    velocity = field_model.velocity(config, DUFFING, state, jnp.ones((3, D)))
    np.testing.assert_allclose(velocity, [duffing(np.ones(2), state.posterior.mean)] * 3, rtol=1e-5)


def test_a_plan_for_a_family_counts_the_expected_gain_of_information():
    """Twice ½ log det(I + P Σ JᵀJ / (q dt)), along the path that is expected."""
    first = field_learner.make(EXACT, DUFFING, KNOWN).init(jax.random.key(0), jnp.zeros(2))
    policy = stimulation.Config(every=1)
    plans = np.random.default_rng(4).uniform(-1, 1, (2, 4, 3))

    def cost(z, plans):
        model = field_learner.predictive_model(EXACT, DUFFING, first)
        return plan_objectives.plan_cost(policy, model, z, plans)

    costs = jax.jit(cost)(jnp.array([0.5, 0.4]), single(plans))
    start = np.array([0.2, 0.0])
    for plan, negative in zip(plans, costs, strict=True):
        z, information = np.array([0.5, 0.4]), np.zeros((2, 2))
        for u in plan:
            known_velocity = SCALE * np.array([z[1], -CUBIC * z[0] ** 3])
            z = z + DT * (known_velocity + SLOPES(z) @ start + input_effect(u, z))
            information += DT**2 * SLOPES(z).T @ SLOPES(z) / (Q * DT)
        gain = np.linalg.slogdet(np.eye(2) + 0.5**2 * information)[1]
        np.testing.assert_allclose(-negative, gain, rtol=1e-3)


# Experiments.

WIDE = rbf.Grid(per_axis=7, half_width=2.5)
NOISY = Config(grid=WIDE, process_noise=Q)


class RandomWorld(NamedTuple):
    """A system that is drawn from what the learner expects before it has seen anything."""

    weights: jax.Array
    variance: jax.Array  # of what is seen

    def effect(self, u, z):
        return u - 0.3 * z

    def velocity(self, z):
        return rbf.features(WIDE, z) @ self.weights

    def observe(self, key, z):
        return z + jnp.sqrt(self.variance) * jax.random.normal(key, z.shape)


class Worlds:
    """The environment; its parameters are a `RandomWorld`, its states latent ones."""

    def reset(self, key, params):
        return params.observe(key, jnp.zeros(D)), jnp.zeros(D)

    def step(self, key, state, action, params):
        move_key, key = jax.random.split(key)
        drift = params.velocity(state) + params.effect(action, state)
        z = state + DT * drift + np.sqrt(Q * DT) * jax.random.normal(move_key, (D,))
        obs, never = params.observe(key, z), jnp.zeros((), bool)
        return obs, z, jnp.zeros(()), never, never, {"final_observation": obs}


class Outcome(NamedTuple):
    """Of eight experiments; `states` are those of the last 50 steps."""

    error: jax.Array  # [8, 50, d] of the velocity there
    variance: jax.Array  # [8, 50] that it is said to have
    information: jax.Array  # [8]
    states: jax.Array  # [8, 50, d]


@partial(jax.jit, static_argnums=0)
def outcome(belief: Literal["exact", "filtered"], variance: float) -> Outcome:
    """After 300 steps with random inputs, seen with noise of this variance."""
    config = replace(NOISY, belief=belief, policy=HOLD)
    emission = lambda z, numbers: (z, jnp.broadcast_to(numbers.variance, z.shape))
    system = System(lambda u, z, numbers: numbers.effect(u, z), emission)
    prior = 0.5 / jnp.sqrt(jnp.sum(rbf.features(WIDE, jnp.zeros(2)) ** 2))

    def experiment(key):
        world_key, key = jax.random.split(key)
        weights = prior * jax.random.normal(world_key, (WIDE.num_features, D))
        world_params = RandomWorld(weights, jnp.asarray(variance))
        agent = field_learner.make(config, system, Constants(jnp.array(DT), *EDGES, world_params))
        run = loop.make_loop(Worlds(), world_params, agent, loop.Config(1, 1))

        def step(state, _):
            state, _ = run.update(state)
            return state, state.env[0]

        end, path = jax.lax.scan(step, run.init(key), length=300)
        last_states = path[-50:]
        error = field_model.velocity(
            config, system, end.agent, last_states
        ) - world_params.velocity(last_states)
        spread = jax.vmap(partial(field_model.uncertainty, config, system, end.agent))(last_states)
        return Outcome(error, spread, end.agent.posterior.information, last_states)

    return jax.vmap(experiment)(jax.random.split(jax.random.key(5), 8))


EDGES = jnp.full(2, -0.8), jnp.full(2, 0.8)
score = lambda outcomes: np.sqrt(np.mean(outcomes.error**2 / outcomes.variance[..., None]))


@pytest.mark.slow
def test_with_next_to_no_noise_a_filter_learns_as_if_the_state_were_seen():
    """And a field is as well known as it is said to be."""
    filtered, exact = outcome("filtered", 1e-8), outcome("exact", 1e-8)
    np.testing.assert_allclose(filtered.states, exact.states, atol=1e-5)
    np.testing.assert_allclose(filtered.error, exact.error, atol=0.02)
    np.testing.assert_allclose(filtered.variance, exact.variance, rtol=0.02)
    np.testing.assert_allclose(filtered.information, exact.information, rtol=0.02)
    assert 0.75 < score(exact) < 1.3


@pytest.mark.slow
def test_through_noise_a_filter_knows_what_it_does_not_know():
    """Noise of five times a step's variance."""
    filtered, naive = outcome("filtered", 0.01), outcome("exact", 0.01)
    assert 0.4 < score(filtered) < 1.3
    assert score(naive) > 2 * score(filtered)
    assert np.mean(naive.error**2) > 2 * np.mean(filtered.error**2)


# A limit cycle, through noisy channels.

CYCLE = VectorField("limit_cycle", channels=5)
CYCLE_SYSTEM, PARAMS = System(CYCLE.effect, CYCLE.emission), CYCLE.params()
POLICIES: dict[str, Any] = {
    kind: Config(WIDE, belief="filtered", policy=stimulation.Config(kind=kind))  # type: ignore
    for kind in ("hold", "myopic")
}


def agent_with(policy: str) -> Agent:
    bound = jnp.full(D, PARAMS.action_bound)
    knowledge = Constants(jnp.asarray(PARAMS.dt), -bound, bound, PARAMS)
    return field_learner.make(POLICIES[policy], CYCLE_SYSTEM, knowledge)


@partial(jax.jit, static_argnums=0)
def run_experiments(policy: str, steps: int, seed: jax.Array) -> loop.TrainState:
    """Experiments `[S]` after so many steps; every policy has the same starts and chance."""
    run = loop.make_loop(CYCLE, PARAMS, agent_with(policy), loop.Config(1, 1))

    def experiment(seed):
        first = run.init(jax.random.key(seed))
        return jax.lax.fori_loop(0, steps, lambda _, state: run.update(state)[0], first)

    return jax.vmap(experiment)(seed)


@pytest.mark.slow
def test_looking_for_what_is_not_known_finds_the_field_sooner():
    """Than random inputs, in each of six seeds; errors are relative to the field within ±2."""
    axis = jnp.linspace(-2, 2, 25)
    points = jnp.stack(jnp.meshgrid(axis, axis, indexing="ij"), axis=-1)
    true = CYCLE.velocity(points, PARAMS)

    @partial(jax.jit, static_argnums=0)
    @partial(jax.vmap, in_axes=(None, 0))
    def error(policy, agent):
        velocity = field_model.velocity(POLICIES[policy], CYCLE_SYSTEM, agent, points)
        return jnp.sqrt(jnp.mean((velocity - true) ** 2) / jnp.mean(true**2))

    ends = {policy: run_experiments(policy, 600, jnp.arange(6)).agent for policy in POLICIES}
    errors = {policy: np.asarray(error(policy, agent)) for policy, agent in ends.items()}
    assert (errors["myopic"] < errors["hold"] - 0.1).all(), errors
    assert (ends["myopic"].posterior.information > ends["hold"].posterior.information).all()


@pytest.mark.slow
def test_a_whole_experiment_is_what_its_steps_are_one_by_one():
    """Two of the experiments that run side by side."""
    agent = agent_with("myopic")
    batched_state = run_experiments("myopic", 8, jnp.arange(6))
    act, update = jax.jit(agent.act), jax.jit(agent.update)
    first_key = lambda key: jax.random.split(key, 1)[0]
    for seed in (0, 3):
        env_key, agent_key, key = jax.random.split(jax.random.key(seed), 3)
        obs, env = CYCLE.reset(first_key(env_key), PARAMS)
        state, memory = agent.init(agent_key, obs), agent.memory()
        for _ in range(8):
            key, act_key, env_key = jax.random.split(key, 3)
            action, memory, extras = act(state, memory, obs, first_key(act_key))
            before = obs
            obs, env, reward, *ends, _ = CYCLE.step(first_key(env_key), env, action, PARAMS)
            transition = Transition(before, action, reward, obs, ends[0], ends[1], extras)
            key, update_key = jax.random.split(key)
            state, _ = update(state, jax.tree.map(lambda x: x[None, None], transition), update_key)
        single_run = (state.posterior, state.posterior.information, env.z)
        same = (
            batched_state.agent.posterior,
            batched_state.agent.posterior.information,
            batched_state.env.z[:, 0],
        )
        same = jax.tree.map(lambda x, seed=seed: x[seed], same)
        chex.assert_trees_all_close(same, single_run, rtol=1e-3, atol=1e-3)


def test_forecasts_are_rollouts_from_what_is_seen():
    """A rollout takes the actions that follow, and none after the last."""
    state, _ = learn_rollout(EXACT, BUMPS, rollout_of(PATH))
    obs, actions, ahead = PATH.z[:6], PATH.u[7:13], 4
    observed_world = BUMPS._replace(emission=lambda z, push: (z**2, jnp.zeros(2)))
    forecast = jax.jit(partial(field_learner.forecast, EXACT, observed_world, steps=ahead))
    forecasts = forecast(state, single(obs), single(actions))
    mean = np.asarray(state.posterior.mean, np.float64)
    for t in range(6):
        z = obs[t]
        for k in range(ahead + 1):
            np.testing.assert_allclose(forecasts[t, k], z**2, rtol=1e-3, atol=1e-4)
            u = actions[t + k] if t + k < 6 else np.zeros(3)
            z = z + DT * (bumps(z) @ mean + input_effect(u, z))


def test_a_system_without_inputs_is_learned():
    """What is known of the field depends on the states alone."""
    nothing = Constants(jnp.array(DT), jnp.zeros(0), jnp.zeros(0), single(PUSH[:, :0]))
    config = replace(EXACT, policy=stimulation.Config(kind="myopic"))
    agent, few = field_learner.make(config, BUMPS, nothing), 20
    state = agent.init(jax.random.key(0), single(PATH.z[0]))
    action, _, _ = agent.act(state, agent.memory(), single(PATH.z[0]), jax.random.key(1))
    assert action.shape == (0,)
    rollout = rollout_of(PATH)._replace(action=jnp.zeros((T, 1, 0)))
    rollout = jax.tree.map(lambda x: x[:few], rollout)
    information = agent.update(state, rollout, jax.random.key(2))[1]["information"]
    variance = batch_of_bumps(Q)[2]
    rows = DT * bumps(PATH.z[:few])
    expected = np.linalg.slogdet(np.eye(25) + variance * rows.T @ rows)[1] * D / 2
    np.testing.assert_allclose(information, expected, rtol=1e-3)


def test_what_does_not_fit_together_is_refused():
    for config, system, message in (
        (replace(EXACT, prior_speed=0.0), BUMPS, "prior_speed is 0.0, expected a number above 0.0"),
        (replace(EXACT, process_noise=-1.0), BUMPS, "process_noise is -1.0"),
        (replace(EXACT, first_variance=0.0), BUMPS, "first_variance is 0.0"),
        (EXACT, DUFFING._replace(family_start=()), "needs the prior mean of its parameters"),
        (replace(EXACT, policy=stimulation.Config(every=0)), BUMPS, "policy.every is 0"),
    ):
        with pytest.raises(ValueError, match=message):
            field_learner.make(config, system, KNOWN)
