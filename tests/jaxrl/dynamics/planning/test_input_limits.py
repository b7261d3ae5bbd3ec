"""Plans are within all limits, and stay as they are where they were within them already."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics.planning import input_limits
from jaxrl.dynamics.planning.input_limits import Limits

LOW, HIGH = jnp.array([-1.0, 0.0]), jnp.array([1.0, 0.5])
enforce = jax.jit(input_limits.enforce, static_argnums=(3, 4))


@pytest.mark.parametrize("hold", [1, 4])
@pytest.mark.parametrize("change", [0.2, np.inf])
@pytest.mark.parametrize("spend", [1.5, np.inf])
def test_plans_are_within_all_limits(hold, change, spend):
    steps, before = 18, jnp.array([0.6, 0.1])
    limits = Limits(LOW, HIGH, change, spend, 0.1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        targets = 2 * rng.normal(size=(-(-steps // hold), 2)).astype(np.float32)
        plan = np.asarray(enforce(limits, before, targets, hold, steps), float)
        assert plan.shape == (steps, 2)
        assert (plan >= np.asarray(LOW) - 1e-6).all()
        assert (plan <= np.asarray(HIGH) + 1e-6).all()
        whole = np.concatenate([np.asarray(before)[None], plan])
        assert np.abs(np.diff(whole, axis=0)).max() <= change + 1e-6
        assert np.abs(plan).sum() * 0.1 <= spend * (1 + 1e-5)
        for start in range(0, steps, hold):  # held
            assert np.ptp(plan[start : start + hold], axis=0).max() == 0
        second_plan = enforce(limits, before, plan[::hold].astype(np.float32), hold, steps)
        np.testing.assert_allclose(second_plan, plan, atol=1e-6)
        for beyond in input_limits.violations(limits, before, jnp.asarray(plan)).values():
            assert beyond <= 1e-5


def test_limits_that_do_not_bind_change_nothing():
    plan = jnp.array([[0.1, 0.2], [0.3, 0.0], [-0.5, 0.4]])
    limits = Limits(LOW, HIGH, 0.9, 10.0, 0.1)
    np.testing.assert_array_equal(enforce(limits, jnp.zeros(2), plan, 1, 3), plan)


def test_a_charge_is_spent_whole_where_more_is_wanted():
    targets = jnp.ones((10, 2))
    limits = Limits(-jnp.ones(2), jnp.ones(2), 0.3, 0.9, 0.1)
    plan = enforce(limits, jnp.zeros(2), targets, 1, 10)
    np.testing.assert_allclose(input_limits.charge(limits, plan), 0.9, rtol=1e-5)


def test_the_charge_of_a_window_counts_what_was_spent_before():
    """In each window of six steps; what leaves it may be spent anew."""
    spent, steps, rates = np.array([0.0, 0.3, 0.3, 0.2, 0.1], np.float32), 14, jnp.array([9.0, 0.3])
    limits = Limits(-jnp.ones(2), jnp.ones(2), rates, 1.0, 0.1, jnp.asarray(spent))
    rng = np.random.default_rng(0)
    for _ in range(20):
        plan = np.asarray(enforce(limits, jnp.zeros(2), rng.normal(size=(steps, 2)), 1, steps))
        amounts = np.concatenate([spent, 0.1 * np.abs(plan).sum(1)])
        windows = [amounts[end - 6 : end].sum() for end in range(6, len(amounts) + 1)]
        charges = input_limits.window_charges(limits, jnp.asarray(plan))
        np.testing.assert_allclose(charges, windows, atol=1e-6)
        assert max(windows) <= 1.0 + 1e-5
        assert np.abs(np.diff(plan, axis=0, prepend=0)).max(0)[1] <= 0.3 + 1e-6
    held = enforce(limits, jnp.zeros(2), 2 * jnp.ones((steps, 2)), 1, steps)
    assert input_limits.window_charges(limits, held).max() == pytest.approx(1.0, rel=1e-5)


def test_what_is_broken_is_told_apart():
    limits = Limits(LOW, HIGH, 0.5, 0.2, 0.1)
    find_violations = partial(input_limits.violations, limits, jnp.zeros(2))
    for plan, name in (
        ([[0.1, -0.3]], "box"),
        ([[0.1, 0.1], [-0.5, 0.1]], "change"),
        ([[0.4, 0.4]] * 3, "charge"),
    ):
        violations = find_violations(jnp.array(plan))
        assert {x for x, beyond in violations.items() if beyond > 1e-6} == {name}
