"""The largest likelihood of a linear-Gaussian model, against the truth and a numerical gradient."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics.bases import Grid
from jaxrl.dynamics.state_space import filter, smoother
from jaxrl.dynamics.state_space.fitting.linear_fit import is_linear_gaussian, linear_fit
from tests.jaxrl.dynamics.state_space.models import random_model, simulate

fit_all = jax.jit(partial(linear_fit, rounds=200))


@pytest.fixture(scope="module")
def fit():
    """The model, its parameters, episodes with missing numbers, and the parameters found."""
    with jax.enable_x64(True):
        model, params = random_model()
        each = [simulate(model, params, 400, missing=0.2, seed=seed) for seed in range(4)]
        records = jax.tree.map(lambda *x: jnp.stack(x), *each)
        yield model, params, records, fit_all(model, records)


def log_likelihood(model, params, records):
    """Log-likelihood of all episodes without their beginnings, where the state is but a guess."""
    states = jax.vmap(lambda record: filter.filter_states(model, params, record))(records)
    return jnp.sum(states.log_likelihood[:, 10:])


@pytest.mark.slow
def test_nothing_nearby_is_likelier_and_the_truth_neither(fit):
    model, params, records, fitted = fit
    value, slope = jax.jit(jax.value_and_grad(log_likelihood, 1))(model, fitted, records)
    assert value > log_likelihood(model, params, records)
    # In units of the standard error of a parameter, about one over the root of 1,600 samples.
    unit = 1 / np.sqrt(records.valid.sum())
    for name in ("transition", "effect", "log_process", "matrix", "offset", "log_noise"):
        assert np.abs(unit * getattr(slope, name)).max() < 1.0, name


@pytest.mark.slow
def test_the_move_is_that_of_the_truth_in_standard_coordinates(fit):
    model, params, records, fitted = fit
    eigenvalues = lambda p: np.sort_complex(np.linalg.eigvals(np.eye(2) + p.transition))
    np.testing.assert_allclose(eigenvalues(fitted), eigenvalues(params), atol=0.02)
    np.testing.assert_allclose(np.exp(fitted.log_noise), np.exp(params.log_noise), rtol=0.1)
    filtered = jax.vmap(lambda record: filter.filter_states(model, fitted, record))(records)
    smoothed = jax.vmap(smoother.smooth_states)(filtered, records.valid)
    means = np.asarray(smoothed.mean).reshape(-1, 2)
    covariance = np.cov(means.T) + np.mean(smoothed.covariance, axis=(0, 1))
    np.testing.assert_allclose(means.mean(0), [0, 0], atol=0.05)
    np.testing.assert_allclose(covariance, np.eye(2), atol=0.05)


def test_inputs_around_another_value_have_the_same_effect(fit):
    """Temperatures of 49 to 51 degrees do what -1 to 1 do: the drift alone differs."""
    model, _, records, fitted = fit
    with jax.enable_x64(True):
        other = fit_all(model, records._replace(u=records.u + 50.0))
    np.testing.assert_allclose(
        other.matrix @ other.effect, fitted.matrix @ fitted.effect, atol=5e-3
    )


@pytest.mark.parametrize(
    ("parts", "expected"),
    [({}, True), ({"field": Grid(per_axis=3)}, False), ({"counts": (True, False)}, False)],
)
def test_it_is_for_linear_fields_seen_by_gaussian_channels(parts, expected):
    assert is_linear_gaussian(random_model(**parts)[0]) is expected
