"""SAC on problems solved in closed form, and as a program: traces, sweeps, memory, refusals."""

import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl import loop
from jaxrl.agents import sac
from jaxrl.losses.distributions.continuous import Normal
from jaxrl.networks.continuous import GaussianActor, QFunctions
from jaxrl.networks.mlp import MLP
from tests.jaxrl import toy_environments as toys
from tests.jaxrl.agents.sac_parts import NETWORKS, D, N, agent, random_rollout

LOW, HIGH = -1.5, 1.0  # unequal sides
WIDTH = (HIGH - LOW) / 2  # of an action whose scaled one is 1
DISCOUNT = 0.8


TORSO = MLP((32,), "tanh")
NETS = sac.Networks(GaussianActor(TORSO, 1, LOW, HIGH), QFunctions(TORSO))


def trained_params(env: toys.Toy, config: sac.Config, num_updates: int) -> sac.Parts:
    """The parameters after so many rollouts `[4, 8]`."""
    sac_agent = sac.make(*NETS, config, num_envs=8)
    train_loop = loop.make_loop(env, (), sac_agent, loop.Config(num_envs=8, num_steps=4))
    chunk = loop.make_chunk(train_loop.update, num_updates)
    return chunk(train_loop.init(jax.random.key(0)))[0].agent.learner.params


# What it learns.

BASE = sac.Config(batch_size=64, capacity=10_000, warmup=500)
BANDIT = toys.TargetAction()
FIXED = 0.02
"""Of the first of three temperatures; the others aim for the entropies -1 and 0."""


class ActionSamples(NamedTuple):
    """20,000 actions of three agents in each of the two places, and how random they are."""

    action: Any  # [3, 20_000, S]
    entropy: Any  # [3, S] of scaled actions
    temperature: Any  # [3]


@functools.cache
def bandits() -> ActionSamples:
    """One compilation for all three."""
    configs = replace(
        BASE,
        discount=0.0,
        initial_temperature=jnp.array([FIXED, 0.5, 0.5]),
        temperature_learning_rate=jnp.array([0.0, 3e-3, 3e-3]),
        target_entropy=jnp.array([0.0, -1.0, 0.0]),
    )

    def learn_and_play(config):
        params = trained_params(BANDIT, config, 500)
        policy = NETS.actor.apply(params.actor, BANDIT.observations())
        keys = jax.random.split(jax.random.key(1), 20_000)
        scaled, log_prob = jax.vmap(lambda key: sac.draw(policy, key))(keys)
        action = LOW + WIDTH * (1 + scaled[..., 0])
        return ActionSamples(action, -jnp.mean(log_prob, axis=0), jnp.exp(params.log_temperature))

    axes = jax.tree.map(lambda x: 0 if jnp.ndim(x) else None, configs)
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(learn_and_play, (axes,)))(configs))


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_with_care")
def test_the_policy_is_the_exponential_of_the_reward():
    """The best density without a future is proportional to exp(r / α): normal, but for the box.

    r = -(a - target)² makes it N(target, α / 2), cut off 7 deviations from the mean at least. The
    critics know the target to about half a deviation.
    """
    best = np.ravel(BANDIT.optimal_action())
    grid = np.linspace(LOW, HIGH, 2_001)[:, None]
    density = np.exp(-((grid - best) ** 2) / FIXED)
    density /= density.sum(axis=0)
    mean = np.sum(density * grid, axis=0)
    deviation = np.sqrt(np.sum(density * (grid - mean) ** 2, axis=0))
    samples = bandits()
    np.testing.assert_allclose(samples.temperature[0], FIXED, rtol=1e-5)
    np.testing.assert_allclose(samples.action[0].mean(axis=0), mean, atol=0.05)
    np.testing.assert_allclose(samples.action[0].std(axis=0), deviation, rtol=0.15)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_with_care")
@pytest.mark.parametrize(("which", "target_entropy"), [(1, -1.0), (2, 0.0)])
def test_the_temperature_brings_the_entropy_to_its_target(which: int, target_entropy: float):
    """To within 0.1 nats, on average over the places."""
    np.testing.assert_allclose(bandits().entropy[which].mean(), target_entropy, atol=0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_with_care")
def test_the_learned_temperature_is_the_one_of_that_entropy():
    """H = ½ log(2 π e σ²) of the scaled action, which is σ w, and the variance α / 2 of the action.

    So α = w² exp(2 H) / (π e), with w = WIDTH; for -1, where the box cuts nothing off.
    """
    expected = WIDTH**2 * np.exp(-2.0) / (np.pi * np.e)
    np.testing.assert_allclose(bandits().temperature[1], expected, rtol=0.25)


def most_entropy() -> float:
    """The largest entropy of a normal sample squashed into [-1, 1], by quadrature; about 0.64."""
    raw = np.linspace(-12, 12, 4_001)
    best = -np.inf
    for scale in np.linspace(0.5, 1.5, 101):
        density = np.exp(-0.5 * (raw / scale) ** 2)
        log_slope = 2 * (np.log(2) - np.logaddexp(raw, -raw))
        bonus = np.sum(density * log_slope) / np.sum(density)
        best = max(best, 0.5 * np.log(2 * np.pi * np.e * scale**2) + bonus)
    return float(best)


@dataclass(frozen=True)
class Case:
    """Where actions change nothing: the policy is as random as it can be."""

    env: toys.Toy
    later_steps: np.ndarray  # [S] Σ γᵏ over the steps k > 0 to come, each worth α H


FOREVER = DISCOUNT / (1 - DISCOUNT)
LEFT = np.array([3, 2, 1, 0])
CASES = {
    "truncated": Case(toys.TruncatedClimb(), np.full(2, FOREVER)),
    "terminated": Case(toys.TerminatedStream(), FOREVER * (1 - DISCOUNT**LEFT)),
}


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_with_care")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_values_count_the_entropy_of_the_steps_to_come(case: Case):
    """Q = r + γ (Q' + α H), beyond a truncation, but not beyond a terminal state."""
    temperature, env = 0.5, case.env
    config = replace(
        BASE,
        discount=DISCOUNT,
        learn_temperature=False,
        initial_temperature=temperature,
    )
    params = jax.jit(lambda: trained_params(env, config, 600))()
    obs = env.observations()
    for action in (-0.7, 0.0, 0.7):
        q: Any = NETS.critic.apply(params.critic, obs, jnp.full((len(obs), 1), action))
        expected = env.optimal_value(DISCOUNT) + temperature * most_entropy() * case.later_steps
        np.testing.assert_allclose(q, np.stack([expected] * 2, axis=-1), atol=0.1)


# As a program.

TINY = sac.Config(warmup=0, batch_size=4, updates_per_rollout=2, capacity=40)


def one_update(config: sac.Config):
    one = agent(config, num_envs=N)
    state = one.init(jax.random.key(0), jnp.zeros(D))
    return one.update(state, random_rollout(0), jax.random.key(1))


@pytest.mark.slow
def test_vmap_over_configurations_is_one_compilation_and_equals_single_runs():
    configs = [
        replace(TINY, critic_learning_rate=0.1, target_entropy=0.0),
        replace(TINY, actor_learning_rate=0.1, tau=0.5, discount=0.5, target_entropy=-3.0),
        replace(TINY, initial_temperature=0.1, max_grad_norm=0.01, target_entropy=-1.0),
        replace(TINY, warmup=1_000, target_entropy=0.0),
    ]
    chex.clear_trace_counter()
    run_single = jax.jit(chex.assert_max_traces(one_update, n=1))
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *configs)
    with jax.debug_key_reuse(False):  # a vmapped condition selects its operands, keys among them
        batched = jax.jit(jax.vmap(one_update))(stacked)
    for i, config in enumerate(configs):
        expected = run_single(jax.tree.map(jnp.asarray, config))
        member = jax.tree.map(lambda x, i=i: x[i], batched)
        chex.assert_trees_all_close(member, expected, rtol=1e-4, atol=1e-5)
    weights = np.asarray(batched[0].learner.params.critic["v"])
    assert len(np.unique(weights[:, 0, 0])) == len(configs)


def test_every_number_may_be_traced():
    """A number on which Python branched could not be swept."""
    numbers, structure = jax.tree.flatten(replace(TINY, target_entropy=0.0))
    assert len(numbers) == 9
    jax.eval_shape(lambda numbers: one_update(jax.tree.unflatten(structure, numbers)), numbers)


def test_one_trace_only():
    one = agent(replace(TINY, warmup=3 * N), num_envs=N)
    chex.clear_trace_counter()
    update = jax.jit(chex.assert_max_traces(one.update, n=1), donate_argnums=0)
    state = one.init(jax.random.key(0), jnp.zeros(D))
    for seed in range(3):  # across the warm-up; with a donated state
        state, _ = update(state, random_rollout(seed), jax.random.key(seed))
    assert int(state.learner.updates) == 4


@pytest.mark.slow
def test_the_replay_is_not_copied():
    """100,000 transitions, updates and all, need a tenth more while they run."""
    one = agent(sac.Config(), num_envs=250)
    state = one.init(jax.random.key(0), jnp.zeros(D))
    ring = sum(x.nbytes for x in jax.tree.leaves(state.replay))
    rollout = random_rollout(0, 4, 250)
    update = jax.jit(one.update, donate_argnums=0)
    memory = update.lower(state, rollout, jax.random.key(0)).compile().memory_analysis()
    assert memory is not None
    assert memory.alias_size_in_bytes >= ring
    assert memory.temp_size_in_bytes < 0.1 * ring


class UnsquashedActor:
    """An actor without a box."""

    def init(self, key, obs):
        return {}

    def apply(self, params, obs):
        return Normal(jnp.zeros(2), jnp.ones(2))


class OneValue:
    """A critic without an axis for the critics."""

    def init(self, key, obs, action):
        return {}

    def apply(self, params, obs, action):
        return jnp.zeros(obs.shape[:-1])


REFUSED: dict[str, Any] = {
    "tau is 0.0, expected a number above 0.0": {"tau": 0.0},
    "tau is 1.5, expected a number above 0.0 and at most 1": {"tau": 1.5},
    "discount is 1.1, expected": {"discount": 1.1},
    "critic_learning_rate is -0.1, expected": {"critic_learning_rate": -0.1},
    "initial_temperature is 0.0, expected": {"initial_temperature": 0.0},
    "target_entropy is nan, expected": {"target_entropy": float("nan")},
    "max_grad_norm is 0.0, expected": {"max_grad_norm": 0.0},
    "batch_size is 0, expected": {"batch_size": 0},
    "warmup is -1, expected": {"warmup": -1},
    "learn_temperature is 1, expected the type bool": {"learn_temperature": 1},
}


@pytest.mark.parametrize(("message", "changes"), REFUSED.items())
def test_numbers_out_of_range_are_refused_in_one_line(message, changes):
    with pytest.raises(ValueError, match=message) as error:
        agent(replace(TINY, **changes))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("actor", "critic", "message"),
    [
        (
            UnsquashedActor(),
            NETWORKS.critic,
            r"the actor returns Normal\(.* use networks.continuous.Ga",
        ),
        (NETWORKS.actor, OneValue(), r"the critic returns .* \[K\]: use networks.continuous.QFun"),
    ],
)
def test_networks_with_the_wrong_output_are_refused_in_one_line(actor, critic, message):
    with pytest.raises(ValueError, match=message) as error:
        sac.make(actor, critic, TINY).init(jax.random.key(0), jnp.zeros(D))
    assert "\n" not in str(error.value)


def test_actor_and_critic_are_told_apart():
    actor, critic = NETS
    with pytest.raises(ValueError, match=r"actor .*QFunctions takes \(obs, action\), .*Gaussian"):
        sac.make(critic, actor, TINY)
    with pytest.raises(
        ValueError, match=r"critic .*Actor takes \(obs\), .*\(obs, action\): .*QFun"
    ):
        sac.make(actor, actor, TINY)


def test_a_rollout_of_other_environments_is_refused():
    one = agent(TINY, num_envs=2)
    state = one.init(jax.random.key(0), jnp.zeros(D))
    with pytest.raises(ValueError, match=r"rollout has 4: .* that of an agent by num_envs=4"):
        one.update(state, random_rollout(0), jax.random.key(0))
