"""Sampling planners: one step by plain Python, and costs whose minimum is known."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics.planning import icem
from jaxrl.dynamics.planning.icem import Config

LOW, HIGH = jnp.array([-1.0, -2.0]), jnp.array([1.0, 2.0])
GOAL = np.array([0.4, 3.0], np.float32)  # the second is out of reach
SMALL = Config(horizon=6, candidates=20, iterations=3, elites=7)


def quadratic(actions):
    return jnp.sum((actions - GOAL[None, None]) ** 2, axis=(1, 2))


def test_two_calls_are_those_of_plain_python(key):
    """Draws taken as they are; all that is made of them by lists and loops."""
    assert SMALL.draws == (20, 16, 14)
    assert SMALL.num_reused == 2
    assert replace(SMALL, candidates=100, elites=100, reused=0.29).num_reused == 29
    keys = jax.random.split(key, 2)
    call = jax.jit(lambda plan, key: icem.icem(quadratic, SMALL, plan, LOW, HIGH, key))
    noise = jax.jit(lambda key: icem.coloured_noise(key, (50, 6, 2), SMALL.colour))
    plan = icem.first_plan(SMALL, LOW, HIGH)
    for call_key in keys:
        noise_key = jax.random.split(jax.random.clone(call_key))[0]
        draws = np.split(np.asarray(noise(noise_key), np.float64), [20, 36])
        mean, std = np.array(plan.mean, np.float64), 0.25 * np.asarray(HIGH - LOW) * np.ones((6, 2))
        pool, candidates = [(None, x) for x in np.array(plan.elites)] if plan.started else [], []
        for i, draw in enumerate(draws):
            samples = list(np.clip(mean + std * draw, LOW, HIGH))
            if i == 2:
                samples[0] = mean
            samples += [x for cost, x in pool if cost is None]
            pool = [pair for pair in pool if pair[0] is not None]
            pool += [(np.sum((x - GOAL) ** 2), x) for x in samples]
            pool = sorted(pool, key=lambda pair: pair[0])[:7]
            candidates += pool
            elites = np.array([x for _, x in pool])
            mean = 0.9 * elites.mean(axis=0) + 0.1 * mean
            std = 0.9 * elites.std(axis=0, ddof=1) + 0.1 * std
            pool = pool[:2]
        best, cost, plan = call(plan, call_key)
        least, cheapest = min(candidates, key=lambda pair: pair[0])
        np.testing.assert_allclose(best, cheapest, atol=1e-5)
        np.testing.assert_allclose(cost, least, rtol=1e-5)
        np.testing.assert_allclose(plan.mean, np.concatenate([mean[1:], mean[-1:]]), atol=1e-5)
        np.testing.assert_allclose(plan.elites[:, :-1], [x[1:] for _, x in pool], atol=1e-5)


def test_a_quadratic_is_minimised_inside_the_box(key):
    config = Config(horizon=2, candidates=256, elites=32, iterations=7)

    def cost(actions):  # leaving the box would pay, and half of the sequences have no cost
        outside = jnp.any((actions < LOW[None, None]) | (actions > HIGH[None, None]), axis=(1, 2))
        broken = actions[:, 0, 0] < -0.1
        return jnp.where(broken, jnp.nan, quadratic(actions) - 1e6 * outside)

    plan = icem.first_plan(config, LOW, HIGH)
    call = jax.jit(jax.vmap(lambda key: icem.icem(cost, config, plan, LOW, HIGH, key)))
    best, least, after = call(jax.random.split(key, 16))
    np.testing.assert_allclose(np.median(best, axis=0), np.tile([0.4, 2.0], (2, 1)), atol=0.1)
    np.testing.assert_allclose(np.median(least), 2.0, atol=0.05)
    assert jax.tree.map(jnp.shape, plan) == jax.tree.map(lambda x: x.shape[1:], after)


def test_memory_and_colour_help_to_get_somewhere(key):
    """Points on a plane, pushed with bounded force, must get far away, on either side."""
    config = Config(horizon=12, iterations=2, colour=2.0)

    def cost(actions):
        place = jnp.sum(jnp.cumsum(actions, axis=1), axis=1)  # [N, 2]
        return jnp.sum(jnp.abs(jnp.abs(place) - jnp.array([[40.0, 80.0]])), axis=1)

    @jax.jit
    def plan_batch(config, plan, key):
        call = lambda plan, key: icem.icem(cost, config, plan, LOW, HIGH, key)[1:]
        return jax.vmap(call)(plan, jax.random.split(key, 32))

    keys = jax.random.split(key, 3)
    start = jax.tree.map(
        lambda x: jnp.broadcast_to(x, (32, *x.shape)), icem.first_plan(config, LOW, HIGH)
    )
    first, plan = plan_batch(config, start, keys[0])
    second, _ = plan_batch(config, plan, keys[1])
    white, _ = plan_batch(config.replace(colour=0.0), start, keys[2])  # type: ignore
    assert np.mean(second) < 0.7 * np.mean(first)
    assert np.mean(first) < 0.7 * np.mean(white)


def test_a_plan_moves_on_with_the_steps_taken(key):
    mean = jnp.arange(12.0).reshape(6, 2) / 12
    plan = icem.Plan(mean, jnp.stack([mean - 0.5, -mean]), jnp.asarray(True), jnp.int32(5))
    advanced_plan = jax.jit(icem.advance)(plan, 4, LOW, HIGH, key)
    np.testing.assert_array_equal(advanced_plan.mean, mean[np.array([4, 5, 5, 5, 5, 5])])
    np.testing.assert_array_equal(advanced_plan.elites[:, :2], plan.elites[:, 4:])
    fresh = np.asarray(advanced_plan.elites[:, 2:]).reshape(-1, 2)
    assert len(np.unique(fresh)) == fresh.size
    assert np.all(np.abs(fresh) <= HIGH[None])


def test_noise_has_its_colour(key):
    exponents, horizon = np.array([0.0, 1.0, 2.5], np.float32), 16
    noise = lambda key, exponent: icem.coloured_noise(key, (4000, horizon, 2), exponent)
    draws = np.asarray(jax.jit(jax.vmap(noise))(jax.random.split(key, 3), exponents), np.float64)
    np.testing.assert_allclose(np.var(draws, axis=(1, 3)), 1.0, atol=0.1)
    assert np.all(np.abs(np.mean(draws[..., 0] * draws[..., 1], axis=(1, 2))) < 0.05)
    power = np.mean(np.abs(np.fft.rfft(draws, axis=2)) ** 2, axis=(1, 3))  # [3, frequencies]
    steps = np.log(np.fft.rfftfreq(horizon)[1:])
    slopes = np.polyfit(steps, np.log(power[:, 1:]).T, 1)[0]
    np.testing.assert_allclose(slopes, -exponents, atol=0.03)
    np.testing.assert_allclose(power[:, 0], power[:, 1], rtol=0.1)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"elites": 33}, "elites is 33, expected at most candidates, 32"),
        ({"elites": 1}, "elites is 1"),
        ({"momentum": 1.0}, "momentum is 1.0"),
        ({"sample_decay": 0.5}, "sample_decay is 0.5"),
        ({"reused": 2.0}, "reused is 2.0"),
    ],
)
def test_settings_that_fit_nothing_are_refused(change, match):
    with pytest.raises(ValueError, match=match):
        icem.first_plan(Config(**change), LOW, HIGH)


def test_a_box_without_shape_is_refused():
    with pytest.raises(ValueError, match=r"shapes \(\) and \(2,\)"):
        icem.first_plan(Config(), jnp.asarray(-1.0), HIGH)


@pytest.mark.parametrize("wrong", [jnp.nan, jnp.inf, -jnp.inf])
def test_costs_that_are_not_finite_are_counted_and_never_chosen(wrong):
    """Where the first action is positive there is no cost; counted on the host, call by call."""
    cost_batches = []

    def cost(actions):
        costs = jnp.where(actions[:, 0, 0] > 0, wrong, quadratic(actions))
        jax.debug.callback(lambda x: cost_batches.append(np.asarray(x)), costs, ordered=True)
        return costs

    call = jax.jit(lambda plan, key: icem.icem(cost, SMALL, plan, LOW, HIGH, key))
    plan = icem.first_plan(SMALL, LOW, HIGH)
    for i in range(3):
        best, best_cost, plan = call(plan, jax.random.key(i))
        jax.effects_barrier()
        if i == 0:  # the last rows of a first call are no sequences yet
            cost_batches[0] = cost_batches[0][: SMALL.candidates]
        expected = sum(int(np.sum(~np.isfinite(x))) for x in cost_batches)
        assert np.isfinite(best_cost)
        assert best[0, 0] <= 0
        assert 0 < int(plan.invalid) == expected


def test_nothing_is_counted_where_all_costs_are_finite():
    plan = icem.first_plan(SMALL, LOW, HIGH)
    after = jax.jit(lambda k: icem.icem(quadratic, SMALL, plan, LOW, HIGH, k))(jax.random.key(0))
    assert int(after[2].invalid) == 0


def test_a_plan_keeps_its_precision_where_double_is_on(key):
    """Noise and new actions are the same as without, drawn in single precision."""
    config = Config(horizon=3, candidates=8, elites=4)
    low, high = -np.ones(2, np.float32), np.ones(2, np.float32)

    def draws() -> tuple[np.ndarray, ...]:
        plan = icem.first_plan(config, jnp.asarray(low), jnp.asarray(high))
        noise = icem.coloured_noise(jax.random.clone(key), (4, 3, 2), 1.0, plan.mean.dtype)
        later = icem.advance(plan, 1, jnp.asarray(low), jnp.asarray(high), jax.random.clone(key))
        return np.asarray(noise), np.asarray(later.mean), np.asarray(later.elites)

    single = draws()
    with jax.enable_x64(True):
        double = draws()
    for x, y in zip(single, double, strict=True):
        assert y.dtype == np.float32
        np.testing.assert_allclose(x, y, rtol=1e-5)
