"""The posterior of a field against dense algebra."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import linalg

from jaxrl.dynamics.bases import Grid, Polynomial
from jaxrl.dynamics.state_space import field_posterior as posteriors
from jaxrl.dynamics.state_space.field_posterior import (
    Prior,
    field_posterior,
    prior_deviations,
    unit_of_inputs,
)
from jaxrl.dynamics.state_space.information import gather, zero_information
from jaxrl.dynamics.state_space.model import displacement
from tests.jaxrl.dynamics.state_space.models import random_model, simulate
from tests.jaxrl.dynamics.state_space.posteriors import (
    PRIOR,
    collect,
    covariance_of,
    deviations,
    posterior_of,
)


@pytest.mark.slow
def test_the_covariance_is_what_dense_algebra_leaves(record_and_fit):
    """Channels are free within a basis of the C and b that do not change the state's read-out."""
    model, params, total = record_and_fit
    posterior = posterior_of(model, params, total)
    move_information = total._replace(matrix=total.matrix[12:, 12:])
    cheap = posterior_of(model, params, move_information)
    weight = np.asarray(total.weight) / float(total.count)
    unit = np.kron(weight**-0.5, np.ones(3))
    constraint = np.kron((np.asarray(params.matrix) * weight[:, None]).T * weight**-0.5, np.eye(3))
    free = linalg.null_space(constraint)  # in units of each channel's noise
    assert free.shape == (12, 6)
    basis = linalg.block_diag(unit[:, None] * free, np.eye(24))
    sd = np.r_[np.full(6, 100.0), deviations(6, 0)]
    precision = basis.T @ np.asarray(total.matrix) @ basis + np.diag(sd**-2.0)
    exact = np.linalg.inv(precision)[-22:, -22:]
    ours = covariance_of(posterior)
    np.testing.assert_allclose(ours, exact, rtol=1e-7, atol=1e-9 * exact.max())
    entropy = np.linalg.slogdet(exact)[1] / 2
    nats = np.log(sd[-22:]).sum() - entropy
    np.testing.assert_allclose(posterior.information, nats, rtol=1e-8)

    precision = np.asarray(move_information.matrix) + np.diag(deviations(6, 0) ** -2.0)
    exact = np.linalg.inv(precision)[2:, 2:]
    ours = covariance_of(cheap)
    np.testing.assert_allclose(ours, exact, rtol=1e-7, atol=1e-9 * exact.max())


def test_channels_know_nothing_of_affine_maps(record_and_fit):
    """No change of C and b that an affine map of the state makes is informed of, or has a part."""
    _, params, total = record_and_fit
    with jax.enable_x64(True):
        matrix = posteriors.remove_gauge(params, total.matrix, total.weight / total.count)
        matrix = np.asarray(matrix)
    weight = np.asarray(total.weight) / float(total.count)
    change = np.random.default_rng(0).normal(size=(2, 3))  # of the state, by state and constant
    moved = (np.asarray(params.matrix) @ change) * weight[:, None] ** 0.5
    along = np.asarray(matrix) @ np.r_[moved.ravel(), np.zeros(len(matrix) - 12)]
    np.testing.assert_allclose(along, 0, atol=1e-9 * np.abs(matrix).max())


@pytest.mark.slow
def test_complete_gaussian_channels_may_as_well_be_held():
    """On average over records C and b have no information in common with the move."""
    with jax.enable_x64(True):
        model, params = random_model()
        records = [simulate(model, params, 25, seed=seed) for seed in range(400)]
        shared = records[0]._replace(y=jnp.stack([r.y for r in records]))
        draws = shared._replace(u=jnp.stack([r.u for r in records]))
        gather_one = lambda y, u: gather(model, params, shared._replace(y=y, u=u), True)
        each = jax.jit(jax.vmap(gather_one))(draws.y, draws.u)
        params, total = jax.tree.map(np.asarray, (params, jax.tree.map(lambda x: x.mean(0), each)))
    whole = covariance_of(posterior_of(model, params, total))
    move_information = total._replace(matrix=total.matrix[15:, 15:])
    cheap = covariance_of(posterior_of(model, params, move_information))
    scale = np.sqrt(np.diagonal(cheap))
    np.testing.assert_allclose(
        whole / np.outer(scale, scale), cheap / np.outer(scale, scale), atol=0.05
    )
    free = total.matrix + np.diag(deviations(0, 5) ** -2.0)  # without a choice of coordinates
    unsure = np.linalg.inv(np.asarray(free))[-10:, -10:]
    assert np.trace(unsure) > 3 * np.trace(whole)


@pytest.mark.slow
def test_states_that_are_seen_tell_all_there_is():
    with jax.enable_x64(True):
        model, params = random_model(Grid(3, 2, 2.0), scale=0.2)
        params = params._replace(log_noise=jnp.full(5, -9.0))
        record = simulate(model, params, 200)
        sharp = posterior_of(model, params, collect(model, params, record))
        blurred = params._replace(log_noise=jnp.full(5, 0.5))
        record = simulate(model, blurred, 200)
        less = posterior_of(model, blurred, collect(model, blurred, record))
    np.testing.assert_allclose(sharp.relative_noise, 1, rtol=0.02)
    assert less.relative_noise > 2
    assert less.information < sharp.information


def test_what_does_not_fit_together_is_refused(record_and_fit):
    model, params, total = record_and_fit
    other = model.replace(field=Polynomial(3, 2, 2.0))
    bigger = params._replace(weights=np.zeros((10, 2)))
    with pytest.raises(ValueError, match="information of 36 parameters, expected 32 or 44"):
        field_posterior(other, bigger, total, PRIOR)
    with pytest.raises(ValueError, match="linear"):
        field_posterior(model, params, total, Prior(linear=0.0))


@pytest.mark.parametrize("with_channels", [False, True])
def test_before_any_data_it_is_the_prior(with_channels):
    model, params = random_model(Grid(3, 2, 2.0), scale=0.2)
    before = zero_information(model, params, with_channels)
    posterior = jax.jit(field_posterior)(model, params, before, PRIOR)
    np.testing.assert_allclose(posterior.root, np.diag(deviations(9, 0)[2:]), rtol=1e-4)
    np.testing.assert_allclose(posterior.information, 0, atol=1e-3)
    assert posterior.relative_noise == 1


@pytest.mark.parametrize("effect", ["linear", "mlp"])
def test_the_prior_of_an_effect_is_in_the_unit_of_its_input(effect):
    model, params = random_model(Grid(3, 2, 2.0), effect=effect)
    sizes = jnp.array([250.0, 2e-6])
    assert unit_of_inputs(sizes).tolist() == pytest.approx([100, 1e-6], rel=1e-5)
    assert unit_of_inputs(jnp.array([0.0, 0.11, 9.0, jnp.inf])).tolist() == [1, 1, 1, 1]
    prior = PRIOR.replace(input_unit=unit_of_inputs(sizes))  # pyright: ignore
    row = np.asarray(prior_deviations(model, params, prior))[2:].reshape(-1, 2)
    own = np.array(prior_deviations(model, params, PRIOR))[2:].reshape(-1, 2)
    own[12:14] /= [[100], [1e-6]]  # behind 9 functions and a linear part; no unit behind
    np.testing.assert_allclose(row, own, rtol=1e-5)


@pytest.mark.slow
def test_draws_and_variances_are_those_of_the_covariance(record_and_fit, key):
    model, params, total = record_and_fit
    with jax.enable_x64(True):
        posterior = field_posterior(model, params, total, PRIOR)
        places = jnp.array([[0.5, -0.4], [-1.0, 1.5]])
        draw = jax.vmap(partial(posteriors.draw, model, posterior))
        fields = jax.jit(draw)(jax.random.split(key, 20_000))
        displace_all = lambda p: jax.vmap(partial(displacement, model, p))(places)
        values = np.asarray(jax.jit(jax.vmap(displace_all))(fields))  # [draws, 2, d]
        expected = np.asarray(jax.vmap(partial(displacement, model, params))(places))
        for i, z in enumerate(places):
            covariance = posteriors.predictive_covariance(model, posterior, z)
            scale = np.sqrt(np.diagonal(covariance))
            ratio = np.cov(values[:, i].T) / np.outer(scale, scale)
            np.testing.assert_allclose(ratio, covariance / np.outer(scale, scale), atol=0.05)
            variance = posteriors.predictive_variance(model, posterior, z)
            np.testing.assert_allclose(variance, np.trace(covariance) / 2, rtol=1e-9)
    error = np.std(values, axis=0) / 20_000**0.5
    assert (np.abs(values.mean(0) - expected) < 4.5 * error).all()
