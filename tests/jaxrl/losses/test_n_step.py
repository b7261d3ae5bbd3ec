"""Returns of n steps against a loop and tables worked by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.losses import returns
from tests.jaxrl.losses.return_parts import DISCOUNT, Data, flags, random_data


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


@pytest.mark.fast_cases(2)
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
