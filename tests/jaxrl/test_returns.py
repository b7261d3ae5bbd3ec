"""Returns against their definitions: explicit sums over k steps in float64, not the recursions."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxrl.losses import returns
from jaxrl.types import Transition
from tests.accelerator_branches import compile_as_on_accelerators

T, N = 6, 4
DISCOUNT = 0.9


class Data(NamedTuple):
    """`[T, N]`, in the order of the arguments of `gae`."""

    reward: Any
    value: Any
    next_value: Any
    terminated: Any
    truncated: Any


def random_data(seed: int, shape: tuple[int, ...] = (T, N)) -> Data:
    """A rollout in which V(next_obs) is the next row of V, but for endings and the last row.

    Some steps are both terminated and truncated.
    """
    rng = np.random.default_rng(seed)
    reward, value, other_value = rng.normal(size=(3, *shape)).astype(np.float32)
    kind = rng.choice(["neither", "terminated", "truncated", "both"], shape, p=[0.5, 0.2, 0.2, 0.1])
    terminated = (kind == "terminated") | (kind == "both")
    truncated = (kind == "truncated") | (kind == "both")
    next_value = np.concatenate([value[1:], other_value[-1:]])
    next_value = np.where(truncated, other_value, next_value)
    return Data(reward, value, next_value, terminated, truncated)


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


def flags(*steps: int, length: int = 4) -> Any:
    return np.isin(np.arange(length), steps)


# --- generalised advantage estimates and λ-returns


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


# --- n-step returns


def n_step_loop(data: Data, column) -> tuple[float, float, int]:
    """What `n_step` promises, one step at a time."""
    return_ = 0.0
    for k in range(data.reward.shape[0]):
        return_ += DISCOUNT**k * float(data.reward[(k, *column)])
        if data.terminated[(k, *column)]:
            return return_, 0.0, k
        if data.truncated[(k, *column)]:
            break
    return return_, DISCOUNT ** (k + 1), k


@pytest.mark.parametrize("shape", [(3, 50), (1, 7), (5, 20, 3), (4,)])
def test_n_step_against_a_loop(shape):
    data = random_data(10, shape)
    actual = returns.n_step(data.reward, data.terminated, data.truncated, DISCOUNT)
    assert actual.last.dtype == jnp.int32
    for column in np.ndindex(*shape[1:]):
        return_, discount, last = n_step_loop(data, column)
        np.testing.assert_allclose(actual.return_[column], return_, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(actual.discount[column], discount, rtol=1e-6)
        assert actual.last[column] == last


# γ = 1/2, r = 1 2 4: (terminated, truncated) -> (return, discount, last).
N_STEP_TABLE = {
    "no ending": ((), (), (3, 0.125, 2)),
    "terminated": ((1,), (), (2, 0, 1)),
    "truncated": ((), (1,), (2, 0.25, 1)),
    "a tie is a termination": ((1,), (1,), (2, 0, 1)),
    "at once": ((0,), (), (1, 0, 0)),
    "truncated at once, the next episode terminated": ((1,), (0,), (1, 0.5, 0)),
    "terminated at the end": ((2,), (), (3, 0, 2)),
    "truncated at the end": ((), (2,), (3, 0.125, 2)),
}


@pytest.mark.parametrize(
    ("terminated", "truncated", "expected"), N_STEP_TABLE.values(), ids=N_STEP_TABLE
)
def test_n_step_hand_made_tables(terminated, truncated, expected):
    terminated, truncated = flags(*terminated, length=3), flags(*truncated, length=3)
    actual = returns.n_step(jnp.array([1.0, 2.0, 4.0]), terminated, truncated, 0.5)
    assert tuple(x.item() for x in actual) == expected


def test_n_step_ignores_what_follows_an_ending():
    reward = jnp.array([1.0, 2.0, jnp.nan])
    actual = returns.n_step(reward, flags(length=3), flags(1, length=3), 0.5)
    assert tuple(x.item() for x in actual) == (2, 0.25, 1)


def test_n_step_without_discount_of_the_future():
    actual = returns.n_step(jnp.array([1.0, 2.0]), flags(length=2), flags(length=2), jnp.array(0.0))
    assert (actual.return_, actual.discount) == (1, 0)


# --- values of true successors


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
