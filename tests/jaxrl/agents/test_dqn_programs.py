"""DQN as a program: its traces, its memory, what may be swept and what is refused."""

from dataclasses import replace

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl import loop
from jaxrl.agents import dqn
from jaxrl.networks.dueling import QNetwork
from jaxrl.networks.mlp import MLP
from tests.jaxrl import toy_environments as toys
from tests.jaxrl.agents.dqn_parts import A, D, Mlp, N, arrays, init_state, random_rollout


def tiny_loop(config: dqn.Config, network: nn.Module | None = None) -> loop.Loop:
    agent = dqn.make(network or Mlp(), config, num_envs=N)
    env = toys.ActionObservationReward()
    return loop.make_loop(env, (), agent, loop.Config(num_envs=N, num_steps=2))


TINY = dqn.Config(warmup=0, batch_size=4, updates_per_rollout=2, capacity=40)


@pytest.mark.slow
def test_seeds_differ_under_vmap():
    train = tiny_loop(TINY)
    keys = jax.random.split(jax.random.key(0), 3)
    chunk = loop.make_chunk(train.update, 4)
    state, metrics = jax.jit(jax.vmap(lambda key: chunk(train.init(key))))(keys)
    assert metrics.agent["loss"].shape == (3, 4)
    for leaf in arrays((state.agent.learner.params, state.agent.replay.data.obs)):
        assert not np.array_equal(leaf[0], leaf[1])
        assert not np.array_equal(leaf[1], leaf[2])


def test_one_trace_only():
    dueling = QNetwork(MLP((8,)), A, dueling=True, streams=(8,))
    train = tiny_loop(replace(TINY, warmup=16), dueling)
    chex.clear_trace_counter()
    update = jax.jit(chex.assert_max_traces(train.update, n=1), donate_argnums=0)
    state = train.init(jax.random.key(0))  # not jitted, which would part shared buffers
    for _ in range(3):  # across the warm-up, which lasts two rollouts; with a donated state
        state, _ = update(state)
    assert int(state.agent.learner.updates) == 4


@pytest.mark.slow
def test_vmap_over_the_learning_rate_is_a_sweep():
    def run(learning_rate):
        agent = dqn.make(Mlp(), replace(TINY, learning_rate=learning_rate), num_envs=N)
        state = agent.init(jax.random.key(0), jnp.zeros(D))
        after, _ = agent.update(state, random_rollout(0), jax.random.key(1))
        return state.learner.params, after.learner.params

    rates = jnp.array([0.0, 1e-3, 1e-1])
    before, after = jax.jit(jax.vmap(run))(rates)
    distance = np.stack(
        [
            np.sqrt(np.sum((b - a) ** 2, axis=(1, 2)))
            for b, a in zip(arrays(before), arrays(after), strict=True)
            if b.ndim == 3
        ]
    )
    assert np.all(distance[:, 0] == 0)
    assert np.all(distance[:, 1] > 0)
    assert np.all(distance[:, 2] > 10 * distance[:, 1])
    _, single_params = jax.jit(run)(rates[1])
    chex.assert_trees_all_close(
        jax.tree.map(lambda x: x[1], after), single_params, rtol=1e-4, atol=1e-6
    )


def test_every_number_may_be_traced():
    """A number on which Python branched could not be swept."""
    numbers, structure = jax.tree.flatten(TINY)

    def run(numbers):
        train = tiny_loop(jax.tree.unflatten(structure, numbers))
        return train.update(train.init(jax.random.key(0)))

    assert len(numbers) == 16
    jax.eval_shape(run, numbers)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("by_priority", [False, True])
def test_the_replay_is_not_copied(by_priority):
    """100,000 transitions of 13 floats, updates and all, need a tenth more while they run."""
    config = dqn.Config(prioritised=by_priority)
    agent = dqn.make(Mlp(), config, num_envs=250)
    state = agent.init(jax.random.key(0), jnp.zeros(13))
    ring = sum(x.nbytes for x in jax.tree.leaves(state.replay))
    steps = jax.tree.map(lambda x: x[:4], state.replay.data)

    def run(state, steps, key):
        def body(carry, _):
            state, key = carry
            key, update_key = jax.random.split(key)
            state, metrics = agent.update(state, steps, update_key)
            return (state, key), metrics

        return jax.lax.scan(body, (state, key), length=3)

    compiled = jax.jit(run, donate_argnums=0).lower(state, steps, jax.random.key(0)).compile()
    memory = compiled.memory_analysis()
    assert memory is not None
    assert memory.alias_size_in_bytes >= ring
    assert memory.temp_size_in_bytes < 0.1 * ring


def test_clear_words_for_what_does_not_fit():
    with pytest.raises(ValueError, match="n_step is 0, expected a number at least 1"):
        dqn.make(Mlp(), dqn.Config(n_step=0))
    with pytest.raises(ValueError, match="loss is cubed, expected huber or squared"):
        dqn.make(Mlp(), dqn.Config(loss="cubed"))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"value_high is -1\.0, expected a number above 1"):
        dqn.make(Mlp(), dqn.Config(value_low=1.0, value_high=-1.0))
    with pytest.raises(ValueError, match=r"returns \[2\] for one .*, expected \[A, K\] of"):
        init_state(dqn.make(Mlp(), dqn.Config(categorical=True)))
    agent = dqn.make(Mlp(), TINY, num_envs=2)
    with pytest.raises(ValueError, match=r"rollout has 4: .* that of an agent by num_envs=4"):
        agent.update(init_state(agent), random_rollout(0), jax.random.key(0))
