"""Returns against their definitions: explicit sums over k steps in float64, not the recursions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxrl.losses import returns
from tests.jaxrl.losses.return_parts import DISCOUNT, Data, N, T, flags, random_data


def steps_left(data: Data, t: int, column) -> int:
    """Steps from `t` to the first ending, or to the last row, both included."""
    ended = data.terminated[(slice(None), *column)] | data.truncated[(slice(None), *column)]
    for k in range(t, len(ended)):
        if ended[k]:
            return k - t + 1
    return len(ended) - t


def k_step_return(data: Data, t: int, column, k: int, discount: float) -> float:
    """Σ_{i<k} γⁱ rₜ₊ᵢ + γᵏ V(sₜ₊ₖ), where a terminal state is worth nothing."""
    last = (t + k - 1, *column)
    reward_sum = sum(discount**i * float(data.reward[(t + i, *column)]) for i in range(k))
    future = 0.0 if data.terminated[last] else float(data.next_value[last])
    return reward_sum + discount**k * future


def lambda_return_loop(data: Data, discount: float, lambda_: float) -> np.ndarray:
    """(1 - λ) Σ_{k<K} λᵏ⁻¹ G⁽ᵏ⁾ + λᴷ⁻¹ G⁽ᴷ⁾, with K the steps left (Sutton & Barto, eq. 12.3)."""
    out = np.zeros(data.reward.shape)
    for t, *column in np.ndindex(*data.reward.shape):
        horizon = steps_left(data, t, column)
        g = [k_step_return(data, t, column, k, discount) for k in range(1, horizon + 1)]
        mixed = sum((1 - lambda_) * lambda_**k * g[k] for k in range(horizon - 1))
        out[(t, *column)] = mixed + lambda_ ** (horizon - 1) * g[-1]
    return out


@pytest.mark.parametrize("lambda_", [0.0, 0.3, 0.95, 1.0])
@pytest.mark.parametrize("shape", [(T, N), (1, 3), (7, 2, 3), (5,)])
def test_gae_is_the_mixture_of_k_step_advantages(shape, lambda_):
    data = random_data(1, shape)
    expected = lambda_return_loop(data, DISCOUNT, lambda_) - data.value
    actual = returns.gae(*data, DISCOUNT, lambda_)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_gae_is_the_discounted_sum_of_td_errors_for_any_next_value():
    data = random_data(2)
    next_value = np.random.default_rng(3).normal(size=(T, N)).astype(np.float32)
    data = data._replace(next_value=next_value)
    delta = data.reward + DISCOUNT * np.where(data.terminated, 0, next_value) - data.value
    expected = [
        [
            sum((DISCOUNT * 0.8) ** k * delta[t + k, n] for k in range(steps_left(data, t, (n,))))
            for n in range(N)
        ]
        for t in range(T)
    ]
    actual = returns.gae(*data, DISCOUNT, 0.8)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("lambda_", [0.0, 0.3, 0.95, 1.0])
@pytest.mark.parametrize("shape", [(T, N), (1, 3), (7, 2, 3), (5,)])
def test_lambda_returns_are_the_mixture_of_k_step_returns(shape, lambda_):
    data = random_data(4, shape)
    # Here the values need not follow from each other: they may be maxima of Q, say.
    data = data._replace(next_value=np.random.default_rng(5).normal(size=shape).astype(np.float32))
    actual = returns.lambda_returns(
        data.reward, data.next_value, data.terminated, data.truncated, DISCOUNT, lambda_
    )
    expected = lambda_return_loop(data, DISCOUNT, lambda_)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_lambda_zero_is_the_td_error_and_lambda_one_is_monte_carlo():
    data = random_data(6)
    future = np.where(data.terminated, 0, data.next_value)
    td_error = data.reward + DISCOUNT * future - data.value
    np.testing.assert_allclose(returns.gae(*data, DISCOUNT, 0.0), td_error, atol=1e-6)
    monte_carlo = [
        [k_step_return(data, t, (n,), steps_left(data, t, (n,)), DISCOUNT) for n in range(N)]
        for t in range(T)
    ]
    actual = returns.gae(*data, DISCOUNT, 1.0) + data.value
    np.testing.assert_allclose(actual, monte_carlo, rtol=1e-5, atol=1e-5)


# Worked by hand for γ = λ = 1/2 and r = 1 2 3 4, V = 10 20 30 40, V' = 20 30 40 50; a truncated
# step has V' = 80, which is V of a state the rollout never visits.
TABLE = {
    "no ending": ((), (), (-0.359375, -5.4375, -9.75, -11)),
    "terminated": ((1,), (), (-3.5, -18, -9.75, -11)),
    "truncated": ((), (1,), (6.5, 22, -9.75, -11)),
    "a tie is a termination": ((1,), (1,), (-3.5, -18, -9.75, -11)),
    "terminated on the last row": ((3,), (), (-0.75, -7, -16, -36)),
    "truncated on the last row": ((), (3,), (-0.125, -4.5, -6, 4)),
    "terminated on the first row": ((0,), (), (-9, -5.4375, -9.75, -11)),
    "two endings": ((0,), (2,), (-9, 0.25, 13, -11)),
    "every row ends": ((0, 2), (1, 3), (-9, 22, -27, 4)),
}


@pytest.mark.parametrize(("terminated", "truncated", "expected"), TABLE.values(), ids=TABLE)
def test_hand_made_tables(terminated, truncated, expected):
    value = jnp.array([10.0, 20.0, 30.0, 40.0])
    reward = jnp.array([1.0, 2.0, 3.0, 4.0])
    terminated, truncated = flags(*terminated), flags(*truncated)
    next_value = jnp.where(truncated, 80.0, jnp.array([20.0, 30.0, 40.0, 50.0]))
    advantage = returns.gae(reward, value, next_value, terminated, truncated, 0.5, 0.5)
    assert advantage.tolist() == list(expected)
    return_ = returns.lambda_returns(reward, next_value, terminated, truncated, 0.5, 0.5)
    assert return_.tolist() == [a + v for a, v in zip(expected, value.tolist(), strict=True)]


jitted_gae = jax.jit(returns.gae)
jitted_lambda_returns = jax.jit(returns.lambda_returns)
endings = st.lists(
    st.sampled_from(["", "", "terminated", "truncated", "both"]), min_size=T, max_size=T
)


@settings(max_examples=60, deadline=None)
@given(endings=endings, seed=st.integers(0, 1000))
def test_nothing_leaks_across_an_ending(endings, seed):
    """Whatever follows the last ending, nan included, changes no bit of what came before."""
    data = random_data(seed, (T, 1))
    terminated = np.array([[e in ("terminated", "both")] for e in endings])
    truncated = np.array([[e in ("truncated", "both")] for e in endings])
    ended = np.flatnonzero(terminated | truncated)
    before = slice(0, ended[-1] + 1 if ended.size else 0)
    after = np.arange(T)[:, None] >= before.stop
    data = data._replace(terminated=terminated, truncated=truncated)
    spoilt = data._replace(
        reward=np.where(after, np.nan, data.reward),
        value=np.where(after, np.nan, data.value),
        next_value=np.where(after | terminated, np.nan, data.next_value),
    )
    advantage = [jitted_gae(*d, DISCOUNT, 0.95)[before] for d in (data, spoilt)]
    assert np.array_equal(*advantage)
    assert np.all(np.isfinite(advantage[1]))
    return_ = [
        jitted_lambda_returns(d.reward, *d[2:], DISCOUNT, 0.95)[before] for d in (data, spoilt)
    ]
    assert np.array_equal(*return_)
    assert np.all(np.isfinite(return_[1]))


def test_discount_and_lambda_are_swept_in_one_compilation():
    data = random_data(7)
    discounts, lambdas = jnp.array([0.5, 0.9, 0.99]), jnp.array([0.0, 0.7, 1.0])
    advantages = jax.jit(jax.vmap(lambda d, l: returns.gae(*data, d, l)))(discounts, lambdas)
    for i in range(3):
        one = returns.gae(*data, float(discounts[i]), float(lambdas[i]))
        np.testing.assert_allclose(advantages[i], one, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", Data._fields)
def test_shapes_must_agree(name):
    data = random_data(8)
    data = data._replace(**{name: getattr(data, name)[..., None]})
    with pytest.raises(AssertionError, match="shape"):
        returns.gae(*data, DISCOUNT, 0.95)


def test_endings_must_be_bool():
    data = random_data(9)
    data = data._replace(terminated=data.terminated.astype(np.float32))
    with pytest.raises(AssertionError, match="float32"):
        returns.gae(*data, DISCOUNT, 0.95)


def test_returns_of_whole_rewards_are_those_of_the_same_real_ones():
    no, value = jnp.zeros(3, bool), jnp.zeros(3)
    target = returns.lambda_returns(jnp.ones(3, jnp.int32), value, no, no, 0.9, 0.9)
    np.testing.assert_allclose(target, [1 + 0.81 * 1.81, 1.81, 1], rtol=1e-6)


@pytest.mark.parametrize(("reward", "value"), [("int32", "int32"), ("float32", "bfloat16")])
def test_rewards_may_have_another_dtype_than_values(reward, value):
    """Small whole numbers and a discount of 1/2, which bfloat16 holds exactly."""
    data = random_data(10)
    whole = data._replace(**{x: np.round(getattr(data, x)) for x in ("reward", "next_value")})
    ends = whole.terminated, whole.truncated
    rewards, values = jnp.asarray(whole.reward, reward), jnp.asarray(whole.next_value, value)
    actual = returns.lambda_returns(rewards, values, *ends, 0.5, 0.5)
    expected = returns.lambda_returns(whole.reward, whole.next_value, *ends, 0.5, 0.5)
    np.testing.assert_array_equal(actual, expected)
