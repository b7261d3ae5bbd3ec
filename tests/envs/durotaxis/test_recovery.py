"""Colonies that are lost and begin again."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.durotaxis import rules
from envs.durotaxis.actions import Bounds
from envs.durotaxis.env import Durotaxis, goal
from envs.durotaxis.rewards import facts

ALL = jnp.array([1.0, 5.0, 1.0, 0.1, 0.0])
"""Deletes every node."""
WIDTH, HEIGHT = 600.0, 400.0


def make(nodes: int = 4, **changes):
    env = Durotaxis(capacity=20, recovery_nodes=nodes, observation="local")
    params = replace(
        env.default_params, bounds=Bounds(delete_ratio=(0.0, 1.0)), threshold_nodes=20.0, **changes
    )
    return env, params


@pytest.mark.slow
def test_a_lost_colony_begins_again_around_its_centroid_twice():
    env, params = make()
    _, state = env.reset(jax.random.key(0), params)
    rewards = []
    for i in range(2):
        before = state.colony
        centre = [float(jnp.mean(v[: int(before.num_nodes)])) for v in (before.x, before.y)]
        _, state, reward, terminated, _, info = env.step(jax.random.key(i + 1), state, ALL, params)
        rewards.append(float(reward))
        colony = state.colony
        assert not terminated
        assert not info["outcome"]["empty"]
        assert int(info["outcome"]["recoveries"]) == i + 1
        assert int(colony.num_nodes) == int(info["outcome"]["num_nodes"]) == 4
        assert colony.parent[:5].tolist() == [-1, 0, 1, 2, -1]
        assert colony.birth[:5].tolist() == [i + 1] * 4 + [0]
        for k in range(4):  # a quarter turn apart, within the jitter on each axis
            x = centre[0] + 10 * np.cos(np.pi / 2 * k)
            y = centre[1] + 10 * np.sin(np.pi / 2 * k)
            assert abs(float(colony.x[k]) - np.clip(x, 0, WIDTH)) <= 1.5 + 1e-3
            assert abs(float(colony.y[k]) - np.clip(y, 0, HEIGHT)) <= 1.5 + 1e-3
        assert not colony.x[4:].any()
    assert rewards == pytest.approx([0.02 * 0.5 * -100] * 2), "half the price of an empty colony"
    *_, reward, terminated, _, info = env.step(jax.random.key(5), state, ALL, params)
    assert bool(terminated)
    assert bool(info["outcome"]["empty"])
    assert float(reward) == pytest.approx(0.02 * -100)


def test_the_outcome_is_that_of_the_colony_that_begins_again():
    env, params = make(3)

    @jax.jit
    def results(recovers: jax.Array):
        state = env.start(jax.random.key(0), params)
        growth = rules.grow(state.colony, jnp.ones(20, bool), state.colony.x, state.colony.y)
        state = replace(state, colony=rules.next_colony(growth, state.time + 1))
        after = env.recover(jax.random.key(1), state, state, recovers, params)
        no_ending = facts.Ending(*[jnp.zeros((), bool)] * 4)
        return after.colony, env.outcome(after, growth, no_ending, params)

    new_colony, outcome = results(jnp.array(True))
    assert int(outcome["num_nodes"]) == int(new_colony.num_nodes) == 3
    progress = float(new_colony.x.max() / goal(jnp.float32(WIDTH)))
    assert float(outcome["progress"]) == pytest.approx(progress)
    _, outcome = results(jnp.array(False))
    assert int(outcome["num_nodes"]) == float(outcome["progress"]) == 0


def test_the_ring_is_even_and_a_single_cell_is_scattered():
    lost_colony = rules.founders(jax.random.key(0), 16, 3, WIDTH, HEIGHT)
    lost_colony = replace(lost_colony, x=lost_colony.x + 300.0 * (jnp.arange(16) < 3))
    centre = np.array([float(jnp.mean(v[:3])) for v in (lost_colony.x, lost_colony.y)])

    def places(count: int) -> np.ndarray:
        recover = lambda key: rules.recover_colony(
            key, lost_colony, count, jnp.int32(7), WIDTH, HEIGHT
        )
        colonies = jax.jit(jax.vmap(recover))(jax.random.split(jax.random.key(count), 4000))
        return np.stack([colonies.x, colonies.y], -1)[:, :count] - centre

    ring = places(6)
    angle = 2 * np.pi * np.arange(6) / 6
    expected = 10 * np.stack([np.cos(angle), np.sin(angle)], -1)
    jitter = ring - expected
    assert np.abs(jitter).max() < 1.5 + 1e-3
    np.testing.assert_allclose(jitter.std(0), 1.5 / np.sqrt(3), rtol=0.05)
    alone = places(1)
    np.testing.assert_allclose(alone.std((0, 1)), 2.5, rtol=0.05)
    np.testing.assert_allclose(alone.mean((0, 1)), 0, atol=0.15)


@pytest.mark.slow
def test_without_recovery_nothing_is_drawn_or_kept():
    env, params = make(0)
    _, state = env.reset(jax.random.key(0), params)
    assert state.recoveries == ()
    *_, terminated, _, info = env.step(jax.random.key(1), state, ALL, params)
    assert bool(terminated)
    assert "recoveries" not in info["outcome"]
    with pytest.raises(ValueError, match="recovery_nodes is 21; expected 0 to 20, the capacity"):
        make(21)
