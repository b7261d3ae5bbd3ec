"""A fit in units of the data's spread is a fit of the data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics.state_space.filter import Record, filter_states
from jaxrl.dynamics.state_space.fitting.initial_guess import moments
from jaxrl.dynamics.state_space.fitting.units import scale_record, units_of, unscale_params
from tests.jaxrl.dynamics.state_space.models import random_model, simulate

IS_COUNT = (True, False, False, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "effect", "far"), [(1e-9, "mlp", 30), (1.0, "state_mlp", 30), (1e9, "mlp", 0)]
)
def test_the_likelihood_differs_by_the_units_alone(size, effect, far):
    with jax.enable_x64(True):
        model, params = random_model(None, IS_COUNT, effect=effect)
        params = params._replace(effect_layers=(*params.effect_layers[:2], jnp.ones((16, 2))))
        record = simulate(model, params, 12, missing=0.2)
        numbers = np.array([0, size, 3 * size, 0])
        y = np.where(IS_COUNT, record.y, numbers * np.asarray(record.y) + 7 * numbers)
        episodes = jax.tree.map(
            lambda x: jnp.asarray(x)[None], record._replace(y=y, u=(record.u + far) / size)
        )
        units = units_of(episodes, jnp.asarray(IS_COUNT), effect)
        assert np.all(np.asarray(units.input_mean) * size > 20) == (effect == "mlp" and far > 0)
        scaled = jax.tree.map(lambda x: x[0], scale_record(episodes, units))
        own = filter_states(
            model, unscale_params(params, units), jax.tree.map(lambda x: x[0], episodes)
        )
        other = filter_states(model, params, scaled)
        np.testing.assert_allclose(own.belief.mean, other.belief.mean, rtol=1e-9, atol=1e-9)
        log_units = np.where(record.observed, np.log(np.asarray(units.deviation)), 0.0).sum(1)
        np.testing.assert_allclose(
            own.log_likelihood, other.log_likelihood - log_units, rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("size", [1e-14, 1.0, 1e14])
def test_units_are_those_of_numpy(size):
    rng = np.random.default_rng(0)
    y = (rng.normal(size=(3, 40, 4)) * [1, 2, 3, 0] + [5, 0, -900, 4]) * size
    y[..., 0] = rng.poisson(2.0, size=(3, 40))
    u = np.where(rng.random((3, 40, 4)) < 0.1, [[[7 * size, 0, 2 * size, 0]]], 0)
    u[..., 2:] += np.array([30, 5]) * size  # one far from 0, and one that stays the same
    valid = np.arange(40) < np.array([40, 31, 22])[:, None]
    observed = rng.random(y.shape) < 0.8
    single = lambda x: jnp.asarray(x, jnp.float32)
    record = Record(single(y), single(u), jnp.asarray(observed), jnp.asarray(valid))
    units = units_of(record, jnp.array([True, False, False, False]))
    observed_y = np.where(observed & valid[..., None], y, np.nan)
    np.testing.assert_allclose(
        units.mean[1:], np.nanmean(observed_y, (0, 1))[1:], rtol=1e-4, atol=1e-6 * size
    )
    np.testing.assert_allclose(units.deviation[1:3], np.nanstd(observed_y, (0, 1))[1:3], rtol=1e-4)
    # Counts, and inputs that are never given, stay as they are.
    assert (units.mean[0], units.deviation[0]) == (0, 1)
    far = u[..., 2][valid]
    sizes = 7 * size, 1, far.std(), 5 * size
    np.testing.assert_allclose(units.input_size, sizes, rtol=1e-4)
    np.testing.assert_allclose(units.input_mean, [0, 0, far.mean(), 0], rtol=1e-6)
    scaled_record = scale_record(record, units)
    assert np.abs(np.where(np.isnan(observed_y), 0, scaled_record.y))[..., 1:].max() < 10
    inputs = np.where(valid[..., None], (u - [0, 0, far.mean(), 0]) / sizes, 0)
    np.testing.assert_allclose(scaled_record.u, inputs, atol=1e-4)
    # Nor does a channel that stays the same begin a fit with a noise of next to nothing.
    is_known = record.observed & record.valid[..., None]
    np.testing.assert_allclose(moments(scaled_record.y, is_known)[1][1:], 1, rtol=1e-3)
    own = moments(record.y, is_known)[1]
    np.testing.assert_allclose(own[1:3], np.nanstd(observed_y, (0, 1))[1:3], rtol=1e-3)
