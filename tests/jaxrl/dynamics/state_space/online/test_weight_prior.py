"""The prior of weights that makes samples likeliest, beside a search for it in closed form."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

from jaxrl.dynamics.bases import Polynomial
from jaxrl.dynamics.state_space.field_posterior import FieldPosterior
from jaxrl.dynamics.state_space.online import weight_prior
from tests.jaxrl.dynamics.state_space.models import random_model

NOISE = 0.3


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("size", [0.05, 2.0])
def test_the_fixed_point_is_where_the_evidence_is_largest(size):
    """The model is a regression with weights alone; `size` is that of the true ones."""
    _, params = random_model(Polynomial(degree=3, half_width=2.0))
    count = params.weights.size
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, count))
    y = x @ (size * rng.normal(size=count)) + NOISE * rng.normal(size=200)

    def minus_evidence(log_deviation: float) -> float:
        covariance = np.exp(2 * log_deviation) * x @ x.T + NOISE**2 * np.eye(200)
        return -multivariate_normal(cov=covariance).logpdf(y)

    search: Any = minimize_scalar(minus_evidence, bounds=(-6, 3), method="bounded")
    best = np.exp(search.x)
    deviation = jnp.asarray(0.5)
    for _ in range(60):
        precision = x.T @ x / NOISE**2 + np.eye(count) / float(deviation) ** 2
        covariance = np.linalg.inv(precision)
        weights = covariance @ x.T @ y / NOISE**2
        root = jnp.asarray(np.linalg.cholesky(covariance), jnp.float32)
        zero = jnp.zeros(())
        mode = params._replace(weights=jnp.asarray(weights.reshape(-1, 2), jnp.float32))
        posterior = FieldPosterior(mode, root, zero, jnp.eye(2), zero)
        deviation = weight_prior.likelier_deviation(posterior, deviation)
    assert deviation == pytest.approx(best, rel=0.05)


def test_without_weights_it_stays():
    _, params = random_model(None)
    posterior = FieldPosterior(params, jnp.eye(4), jnp.ones(()), jnp.eye(2), jnp.zeros(()))
    assert weight_prior.likelier_deviation(posterior, jnp.asarray(0.4)) == jnp.asarray(0.4)
