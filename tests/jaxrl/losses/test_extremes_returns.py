"""Returns at extreme scales and of degenerate shapes, against explicit sums in float64."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from jaxrl.losses import n_step as n_step_replay
from jaxrl.losses import returns
from jaxrl.replay import uniform
from jaxrl.types import Transition
from tests.jaxrl.extremes import (
    EPS,
    FUNCTION,
    assert_within,
    double,
    extreme,
    numbers,
    scales,
    seeds,
    shares,
    single,
)

N = 3
gae = jax.jit(returns.gae)
lambda_returns = jax.jit(returns.lambda_returns)
n_step = jax.jit(returns.n_step)
lengths = st.sampled_from([0, 1, 6])
endings = st.sampled_from(["none", "some", "all terminated", "all truncated", "all both"])


def random_endings(rng: np.random.Generator, ending: str, shape: tuple[int, ...]) -> Any:
    """`(terminated, truncated)`, bool of `shape`."""
    if ending == "some":
        return rng.random((2, *shape)) < 0.25
    terminated = np.full(shape, ending in ("all terminated", "all both"))
    return terminated, np.full(shape, ending in ("all truncated", "all both"))


@extreme(
    seed=seeds, steps=lengths, ending=endings, reward_scale=scales, value_scale=scales,
    discount=shares, lambda_=shares,
)  # fmt: skip
def test_advantages_and_lambda_returns(
    seed, steps, ending, reward_scale, value_scale, discount, lambda_
):
    """Three roundings a step of a sum of magnitudes for GAE, at most five for λ-returns."""
    rng, shape = np.random.default_rng(seed), (steps, N)
    reward = numbers(rng, shape, reward_scale)
    value, next_value = (numbers(rng, shape, value_scale) for _ in range(2))
    terminated, truncated = random_endings(rng, ending, shape)
    discount, lambda_ = single(discount), single(lambda_)
    advantage = gae(reward, value, next_value, terminated, truncated, discount, lambda_)
    target = lambda_returns(reward, next_value, terminated, truncated, discount, lambda_)
    assert advantage.shape == target.shape == shape

    g, l = double(discount), double(lambda_)
    exact, size, return_, return_size = np.zeros((4, steps + 1, N))
    return_[-1] = next_value[-1] if steps else 0.0
    return_size[-1] = np.abs(return_[-1])
    for t in reversed(range(steps)):
        r, v, after = double(reward[t]), double(value[t]), double(next_value[t])
        alive, same = ~terminated[t], ~(terminated[t] | truncated[t])
        exact[t] = r + g * alive * after - v + g * l * same * exact[t + 1]
        size[t] = abs(r) + g * alive * abs(after) + abs(v) + g * l * same * size[t + 1]
        next_return = np.where(truncated[t], after, return_[t + 1])
        later_size = np.where(truncated[t], abs(after), return_size[t + 1])
        return_[t] = r + g * alive * ((1 - l) * after + l * next_return)
        return_size[t] = abs(r) + g * alive * ((1 - l) * abs(after) + l * later_size)
    assert_within(advantage, exact[:steps], (3 + 3 * steps) * EPS * size[:steps])
    assert_within(target, return_[:steps], (5 + 4 * steps) * EPS * return_size[:steps])


def n_step_by_hand(reward, terminated, truncated, discount):
    """The n-step return of one window, its sum of magnitudes, the bootstrap's discount, last."""
    return_ = size = 0.0
    for k, r in enumerate(double(reward)):
        return_, size = return_ + discount**k * r, size + discount**k * abs(r)
        if terminated[k] or truncated[k]:
            break
    return return_, size, 0.0 if terminated[k] else discount ** (k + 1), k


@extreme(
    seed=seeds, steps=st.sampled_from([1, 6]), ending=endings, reward_scale=scales, discount=shares
)
def test_n_step_returns(seed, steps, ending, reward_scale, discount):
    """Powers of the discount, and a rounding for each product and sum."""
    rng, shape, discount = np.random.default_rng(seed), (steps, N), single(discount)
    reward = numbers(rng, shape, reward_scale)
    terminated, truncated = random_endings(rng, ending, shape)
    actual = n_step(reward, terminated, truncated, discount)
    columns = [
        n_step_by_hand(*c, double(discount))
        for c in zip(reward.T, terminated.T, truncated.T, strict=True)
    ]
    return_, size, bootstrap, last = (np.array(x) for x in zip(*columns, strict=True))
    assert_within(actual.return_, return_, (FUNCTION + 1 + steps) * EPS * size)
    assert_within(actual.discount, bootstrap, FUNCTION * EPS * bootstrap)
    np.testing.assert_array_equal(actual.last, last)


def test_a_window_without_steps_has_no_first_one():
    no = jnp.zeros((0, N), bool)
    with pytest.raises(ValueError, match="window of 0 steps"):
        returns.n_step(jnp.zeros((0, N)), no, no, 0.9)


CAPACITY = 5
gather = jax.jit(n_step_replay.gather, static_argnames="n_step")


@extreme(
    seed=seeds, steps=st.sampled_from([1, 3]), batch=st.sampled_from([0, 4]), ending=endings,
    reward_scale=scales, discount=shares,
)  # fmt: skip
def test_n_step_transitions_from_a_full_ring(seed, steps, batch, ending, reward_scale, discount):
    """Windows may lie across the end of the ring; the successor is that of the last step."""
    rng, shape, discount = np.random.default_rng(seed), (CAPACITY, N), single(discount)
    reward = numbers(rng, shape, reward_scale)
    terminated, truncated = random_endings(rng, ending, shape)
    place = np.arange(CAPACITY * N, dtype=np.float32).reshape(shape)
    data = Transition(place, place.astype(np.int32), reward, -place, terminated, truncated, ())
    no_row = jnp.zeros((), jnp.int32)
    ring = uniform.Replay(jax.tree.map(jnp.asarray, data), head=no_row, size=no_row)
    row, env = rng.integers(CAPACITY, size=batch), rng.integers(N, size=batch)
    transitions = gather(ring, row.astype(np.int32), env.astype(np.int32), steps, discount)
    for i, (t, n) in enumerate(zip(row, env, strict=True)):
        rows = (t + np.arange(steps)) % CAPACITY
        window = (reward[rows, n], terminated[rows, n], truncated[rows, n])
        return_, size, bootstrap, last = n_step_by_hand(*window, double(discount))
        assert_within(transitions.return_[i], return_, (FUNCTION + 1 + steps) * EPS * size)
        assert_within(transitions.discount[i], bootstrap, FUNCTION * EPS * bootstrap)
        assert transitions.next_obs[i] == -place[rows[last], n]
        assert transitions.action[i] == place[t, n]


successors = jax.jit(lambda r, v: returns.successor_values(lambda obs: 2 * obs, r, v))


@extreme(
    seed=seeds, steps=lengths, envs=st.sampled_from([0, N]), ending=endings, value_scale=scales
)
def test_values_of_successors_are_exact(seed, steps, envs, ending, value_scale):
    """No arithmetic beyond the critic's own."""
    rng, shape = np.random.default_rng(seed), (steps, envs)
    terminated, truncated = random_endings(rng, ending, shape)
    values = numbers(rng, (steps + 1, envs), value_scale)
    final_obs = numbers(rng, shape, value_scale)
    next_obs = np.where(terminated | truncated, final_obs, values[1:])
    rollout = Transition(values[:-1], (), values[:-1], next_obs, terminated, truncated, ())
    successor = np.asarray(successors(rollout, 2 * values[:-1]))
    assert successor.shape == shape
    np.testing.assert_array_equal(successor[~terminated], 2 * next_obs[~terminated])
    assert np.all(np.isfinite(successor))
