"""Running statistics against NumPy on the whole history, and what agents see of them."""

from dataclasses import replace
from typing import Any

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.agent_checker import agent_checker
from jaxrl.agents import dqn, ppo
from jaxrl.loop import Config as LoopConfig
from jaxrl.loop import make_loop
from jaxrl.networks.dueling import QNetwork
from jaxrl.networks.mlp import MLP, ActorCritic
from jaxrl.types import Agent, Transition
from jaxrl.wrappers import normalisation
from jaxrl.wrappers.normalisation import Config

T, N, D = 5, 3, 2
BOTH = Config(observations=True, rewards=True)


def recorder() -> Agent:
    """Keeps the last observation and rollout that it was shown."""

    def act(state, memory, obs, key):
        return obs["x"], memory, ()

    return Agent(
        init=lambda key, obs: (),
        memory=lambda: (),
        act=act,
        update=lambda state, rollout, key: (state, {"seen": rollout}),  # pyright: ignore
    )


def rollout(seed: int, components: int = 0) -> Transition:
    rng = np.random.default_rng(seed)
    x = lambda: {
        "x": jnp.asarray(rng.normal(3.0, 5.0, (T, N, D)), jnp.float32),
        "id": jnp.asarray(rng.integers(0, 9, (T, N)), jnp.int32),
    }
    ended = rng.random((T, N)) < 0.3
    terminated = ended & (rng.random((T, N)) < 0.5)
    shape = (T, N, components) if components else (T, N)
    reward = jnp.asarray(rng.normal(1.0, 7.0, shape), jnp.float32)
    flags = jnp.asarray(terminated), jnp.asarray(ended & ~terminated)
    return Transition(x(), jnp.zeros((T, N)), reward, x(), *flags, ())


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("components", [0, 4])
def test_statistics_are_those_of_the_whole_history(components):
    agent = normalisation.make(recorder(), replace(BOTH, discount=0.9), N)
    first = jax.tree.map(lambda x: x[0, 0], rollout(0).obs)
    state = agent.init(jax.random.key(0), first)
    observations, returns, running = [], [], np.zeros(N)
    for i in range(4):
        batch = rollout(i, components)
        before = jax.device_get(state.params)
        state, metrics = agent.update(state, batch, jax.random.key(i))
        observations.append(np.asarray(batch.obs["x"], np.float64).reshape(-1, D))
        reward = np.asarray(batch.reward, np.float64)
        for t in range(T):
            running = 0.9 * running + (reward[t].sum(-1) if components else reward[t])
            returns.append(running.copy())
            running[np.asarray(batch.terminated[t] | batch.truncated[t])] = 0.0
        scaled_rollout: Any = metrics["seen"]
        # the agent learns from what it saw when it acted: by the statistics before the rollout
        for name in ("obs", "next_obs"):
            raw = np.asarray(getattr(batch, name)["x"])
            expected = (raw - before.mean["x"]) / np.sqrt(before.variance["x"] + 1e-8)
            np.testing.assert_allclose(
                getattr(scaled_rollout, name)["x"], expected.clip(-10, 10), rtol=1e-4
            )
            np.testing.assert_array_equal(
                getattr(scaled_rollout, name)["id"], getattr(batch, name)["id"]
            )
        expected = np.asarray(batch.reward) / np.std(returns)
        np.testing.assert_allclose(scaled_rollout.reward, expected, rtol=1e-4)
    all_observations = np.concatenate(observations)
    np.testing.assert_allclose(state.params.mean["x"], all_observations.mean(0), rtol=1e-5)
    np.testing.assert_allclose(state.params.variance["x"], all_observations.var(0), rtol=1e-5)
    np.testing.assert_allclose(state.returns.variance, np.var(returns), rtol=1e-5)
    np.testing.assert_allclose(state.return_, running, rtol=1e-5)


@pytest.mark.parametrize("name", ["observations", "rewards"])
def test_an_agent_with_a_replay_is_refused(name: str):
    """It would keep what it was shown on the scale of that time."""
    dqn_agent = dqn.make(QNetwork(MLP((4,)), 2), dqn.Config(capacity=8), num_envs=N)
    init = normalisation.make(dqn_agent, Config(**{name: True}), N).init
    with pytest.raises(ValueError, match="the agent has a replay, which would keep what is norm"):
        jax.eval_shape(init, jax.random.key(0), jnp.zeros(D))
    init = normalisation.make(dqn_agent, Config(), N).init
    jax.eval_shape(init, jax.random.key(0), jnp.zeros(D))  # nothing is normalised


def test_before_anything_is_known_nothing_is_changed():
    agent = normalisation.make(recorder(), replace(BOTH, observation_clip=float("inf")), N)
    obs = {"x": jnp.array([30.0, -4.0]), "id": jnp.int32(7)}
    state = agent.init(jax.random.key(0), obs)
    action, _, _ = agent.act(state, (), obs, jax.random.key(1))
    np.testing.assert_allclose(action, [30.0, -4.0])


def test_numbers_are_clipped():
    agent = normalisation.make(recorder(), replace(BOTH, observation_clip=0.5, reward_clip=0.2), N)
    state = agent.init(jax.random.key(0), jax.tree.map(lambda x: x[0, 0], rollout(0).obs))
    for i in range(2):
        state, metrics = agent.update(state, rollout(i), jax.random.key(i))
    scaled_rollout: Any = metrics["seen"]  # pyright: ignore
    assert np.max(np.abs(scaled_rollout.obs["x"])) == 0.5
    assert np.max(np.abs(scaled_rollout.reward)) == np.float32(0.2)
    assert np.min(np.abs(scaled_rollout.reward)) < 0.2


def test_numbers_that_are_not_chosen_stay():
    chosen = {"x": np.array([True, False]), "id": np.array(False)}
    agent = normalisation.make(recorder(), Config(observations=True), N, chosen=chosen)
    before, after = rollout(0), rollout(1)
    first = jax.tree.map(lambda x: x[0, 0], before.obs)
    state, _ = agent.update(agent.init(jax.random.key(0), first), before, jax.random.key(1))
    scaled_rollout: Any = agent.update(state, after, jax.random.key(2))[1]["seen"]
    history, x = np.asarray(before.obs["x"])[..., 0], np.asarray(after.obs["x"])
    expected = np.clip((x[..., 0] - history.mean()) / history.std(), -10, 10)
    np.testing.assert_allclose(scaled_rollout.obs["x"][..., 0], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(scaled_rollout.obs["x"][..., 1], x[..., 1])
    np.testing.assert_array_equal(scaled_rollout.next_obs["x"][..., 1], after.next_obs["x"][..., 1])


def test_constant_observations_and_rewards_stay_finite():
    agent = normalisation.make(recorder(), BOTH, N)
    batch = rollout(0)._replace(reward=jnp.zeros((T, N)))
    batch = batch._replace(obs=jax.tree.map(jnp.ones_like, batch.obs))
    state = agent.init(jax.random.key(0), jax.tree.map(lambda x: x[0, 0], batch.obs))
    for i in range(3):
        state, metrics = agent.update(state, batch, jax.random.key(i))
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves((state, metrics)))  # pyright: ignore


def ppo_behind(config: Config, num_envs: int, greedy: bool = False) -> Agent:
    agent = ppo.make(ActorCritic(MLP((16,)), 2), ppo.Config(minibatches=2, epochs=2), greedy)
    return normalisation.make(agent, config, num_envs)


@pytest.mark.slow
def test_switched_off_it_changes_nothing():
    env, params = gymnax.make("CartPole-v1")
    sizes = LoopConfig(num_envs=4, num_steps=16)
    plain = ppo.make(ActorCritic(MLP((16,)), 2), ppo.Config(minibatches=2, epochs=2))
    agents = plain, ppo_behind(Config(), 4)
    agent_states = []
    for agent in agents:
        loop = make_loop(env, params, agent, sizes)  # pyright: ignore
        state, _ = jax.jit(loop.update)(loop.init(jax.random.key(0)))
        agent_states.append(state.agent)
    jax.tree.map(np.testing.assert_array_equal, agent_states[0], agent_states[1].agent)


@pytest.mark.slow
def test_the_agent_keeps_the_contract():
    """A greedy one acts by the parameters alone, the statistics of observations among them."""
    env, params = gymnax.make("CartPole-v1")
    agents = (ppo_behind(BOTH, 4, greedy) for greedy in (False, True))
    agent_checker(next(agents), env, params, next(agents), num_envs=4)  # pyright: ignore


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"epsilon": 0.0}, "epsilon is 0.0"), ({"reward_clip": -1.0}, "reward_clip is -1.0")],
)
def test_wrong_numbers_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        normalisation.make(recorder(), Config(**wrong))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e30])
def test_one_number_that_is_not_finite_does_not_spoil_the_statistics(number):
    agent = normalisation.make(recorder(), BOTH, N)
    broken = rollout(1)
    broken_obs = broken.obs["x"].at[2, 1, 0].set(number)
    broken = broken._replace(
        obs=broken.obs | {"x": broken_obs}, reward=broken.reward.at[1, 1].set(number)
    )
    state = agent.init(jax.random.key(0), jax.tree.map(lambda x: x[0, 0], broken.obs))
    history = [rollout(0), broken, rollout(2)]
    for batch in history:
        state, _ = agent.update(state, batch, jax.random.key(0))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((state.params, state.returns)))
    unbroken = np.stack([np.asarray(batch.obs["x"], float) for batch in history])[
        ..., 1
    ]  # unbroken
    np.testing.assert_allclose(state.params.mean["x"][1], unbroken.mean(), rtol=1e-5)
    np.testing.assert_allclose(state.params.variance["x"][1], unbroken.var(), rtol=1e-5)
    assert abs(float(state.params.mean["x"][0]) - 3.0) < 3.0


def test_a_batch_of_which_nothing_is_finite_is_not_counted():
    batches = [np.arange(6.0).reshape(3, 2), np.full((3, 2), 1e30), np.ones((3, 2))]
    statistics = normalisation.Statistics(jnp.float32(0), jnp.float32(0), jnp.float32(1))
    for batch in batches:
        statistics = normalisation.add_batch(statistics, jnp.asarray(batch, jnp.float32))
    counted = np.stack([batches[0], batches[2]])
    np.testing.assert_allclose(np.stack(statistics), (12, counted.mean(), counted.var()), rtol=1e-6)


def test_rewards_of_another_number_of_environments_are_refused():
    env, params = gymnax.make("CartPole-v1")
    agent = ppo.make(ActorCritic(MLP((4,)), 2), ppo.Config(minibatches=1))
    one = normalisation.make(agent, Config(rewards=True))
    train_loop = make_loop(env, params, one, LoopConfig(num_envs=3, num_steps=2))
    with pytest.raises(ValueError, match=r"kept of 1 environments, the rollout has 3: use"):
        jax.eval_shape(train_loop.update, jax.eval_shape(train_loop.init, jax.random.key(0)))
