"""Values of true successors: those of `next_obs`, with as few passes of the critic as suffice."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.losses import returns
from jaxrl.types import Transition
from tests.accelerator_branches import compile_as_on_accelerators
from tests.jaxrl.losses.return_parts import DISCOUNT, N, T


def value_of(obs):
    """A critic that tells all its inputs apart; `obs` is a tree `[N, ...]`."""
    return obs["place"].sum(-1) + 100.0 * obs["time"]


def random_rollout(seed: int, ending: float, steps: int = T, envs: int = N) -> Transition:
    """Successors are the next observations, but not where an episode ended."""
    rng = np.random.default_rng(seed)
    shape = (steps + 1, envs)
    obs = {
        "place": rng.normal(size=(*shape, 3)).astype(np.float32),
        "time": rng.normal(size=shape).astype(np.float32),
    }
    terminated, truncated = rng.random((2, steps, envs)) < ending
    ended = terminated | truncated
    next_obs = {
        "place": np.where(ended[..., None], rng.normal(size=(*ended.shape, 3)), obs["place"][1:]),
        "time": np.where(ended, rng.normal(size=ended.shape), obs["time"][1:]),
    }
    next_obs = {name: x.astype(np.float32) for name, x in next_obs.items()}
    obs = {name: x[:-1] for name, x in obs.items()}
    return Transition(obs, (), np.zeros_like(ended), next_obs, terminated, truncated, ())


@pytest.mark.parametrize("ending", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("steps", [1, T])
def test_successor_values_are_those_of_next_obs(ending, steps):
    rollout = random_rollout(11, ending, steps)
    actual = jax.jit(lambda r: returns.successor_values(value_of, r, value_of(r.obs)))(rollout)
    expected = value_of(rollout.next_obs)
    alive = ~rollout.terminated
    np.testing.assert_allclose(actual[alive], expected[alive], rtol=1e-5, atol=1e-5)
    assert np.all(np.isfinite(actual))


@pytest.mark.parametrize("at_once", [1, 2 * N, 4 * N, 100 * N])
def test_accelerators_evaluate_all_successors(at_once, monkeypatch):
    """So many at a time; as above, for several heads and seeds."""
    monkeypatch.setattr(returns, "AT_ONCE", at_once)
    rollout = jax.tree.map(lambda *x: np.stack(x), *[random_rollout(s, 0.3) for s in range(3)])
    heads = lambda obs: jnp.stack([value_of(obs), -value_of(obs)], axis=-1)  # [..., 2]
    fill = jax.vmap(lambda r: returns.successor_values(heads, r, heads(r.obs)))
    accelerators = compile_as_on_accelerators(fill, rollout)(rollout)
    alive = ~rollout.terminated
    expected = heads(rollout.next_obs)
    np.testing.assert_allclose(accelerators[alive], expected[alive], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(accelerators[alive], fill(rollout)[alive], rtol=1e-5, atol=1e-5)


def passes(terminated: Any, truncated: Any) -> int:
    """How often the critic runs; without jit, a `while_loop` is a Python loop."""
    rollout = random_rollout(12, 0.0, *terminated.shape)
    rollout = jax.tree.map(jnp.asarray, rollout)
    rollout = rollout._replace(terminated=jnp.asarray(terminated), truncated=jnp.asarray(truncated))
    rows = []

    def counted_value(obs):
        rows.append(obs["time"].shape)
        return value_of(obs)

    with jax.disable_jit():
        returns.successor_values(counted_value, rollout, value_of(rollout.obs))
    assert set(rows) <= {terminated.shape[1:]}  # one row of each environment
    return len(rows)


def test_the_critic_runs_once_for_each_row_that_the_worst_environment_misses():
    none = np.zeros((T, N), bool)
    last = none.copy()
    last[-1] = True
    assert passes(none, none) == 1
    assert passes(none, last) == 1  # truncated on the last row: asked for anyway
    assert passes(last, none) == 0
    assert passes(last, last) == 0  # a tie is a termination
    once, thrice = none.copy(), none.copy()
    once[2, 1] = True
    once[4, 3] = True
    thrice[[0, 1, 4], 2] = True
    assert passes(none, once) == 2
    assert passes(last, once) == 1
    assert passes(once, once) == 1
    assert passes(none, thrice) == 4
    assert passes(last, once | thrice) == 3
    for seed in range(5):
        rollout = random_rollout(seed, 0.2)
        missing = rollout.truncated & ~rollout.terminated
        missing[-1] = ~rollout.terminated[-1]
        assert passes(rollout.terminated, rollout.truncated) == missing.sum(0).max()


def test_the_critic_is_traced_once():
    traces = []

    def counted_value(obs):
        traces.append(obs)
        return value_of(obs)

    rollout = random_rollout(13, 0.3)
    jax.jit(lambda r, v: returns.successor_values(counted_value, r, v))(
        rollout, value_of(rollout.obs)
    )
    assert len(traces) == 1


def test_next_obs_that_nobody_needs_may_be_anything():
    rollout = random_rollout(14, 0.3)
    needed = rollout.truncated.copy()
    needed[-1] = True
    needed &= ~rollout.terminated
    next_obs = {
        "place": np.where(needed[..., None], rollout.next_obs["place"], np.nan),
        "time": np.where(needed, rollout.next_obs["time"], np.nan),
    }
    value = value_of(rollout.obs)
    expected = returns.successor_values(value_of, rollout, value)
    actual = returns.successor_values(value_of, rollout._replace(next_obs=next_obs), value)
    assert np.array_equal(actual, expected)


def test_a_critic_with_many_heads_and_many_seeds():
    rollout = jax.tree.map(lambda *x: np.stack(x), *[random_rollout(s, 0.3) for s in range(3)])
    heads = lambda obs: jnp.stack([value_of(obs), -value_of(obs)], axis=-1)  # [..., 2]
    actual = jax.vmap(lambda r: returns.successor_values(heads, r, heads(r.obs)))(rollout)
    assert actual.shape == (3, T, N, 2)
    alive = ~rollout.terminated
    expected = heads(rollout.next_obs)
    np.testing.assert_allclose(actual[alive], expected[alive], rtol=1e-5, atol=1e-5)


def test_advantages_of_a_rollout_equal_those_with_the_critic_on_every_successor():
    rollout = random_rollout(15, 0.3)
    value = value_of(rollout.obs)
    reward = jax.random.normal(jax.random.key(16), (T, N))
    ending = (rollout.terminated, rollout.truncated)
    cheap = returns.successor_values(value_of, rollout, value)
    advantage, expected = (
        returns.gae(reward, value, next_value, *ending, DISCOUNT, 0.95)
        for next_value in (cheap, value_of(rollout.next_obs))
    )
    np.testing.assert_allclose(advantage, expected, rtol=1e-5, atol=1e-3)


def test_a_rollout_without_steps_has_no_returns():
    reward, value, terminated = jnp.zeros((0, N)), jnp.zeros((0, N)), jnp.zeros((0, N), bool)
    advantage = returns.gae(reward, value, value, terminated, terminated, 0.9, 0.5)
    target = returns.lambda_returns(reward, value, terminated, terminated, 0.9, 0.5)
    empty_rollout = Transition(value, value, reward, value, terminated, terminated, ())
    successor = returns.successor_values(lambda obs: obs, empty_rollout, value)
    assert advantage.shape == target.shape == successor.shape == (0, N)
