"""Scoring of state-space models, against regressions and gradients."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics.bases import Grid
from jaxrl.dynamics.state_space import move
from jaxrl.dynamics.state_space.field_posterior import Prior, prior_deviations
from jaxrl.dynamics.state_space.filter import filter_states
from jaxrl.dynamics.state_space.online import scoring
from tests.jaxrl.dynamics.state_space.models import random_model, simulate

PRIOR = Prior(weights=0.2, linear=0.5, effect=2.0)
BUMPS = Grid(per_axis=4, half_width=2.5)
improve = jax.jit(partial(scoring.improve, prior=PRIOR))
MIXED = (True, True, False, False, False)


@pytest.mark.slow
def test_scoring_is_a_regression_where_states_are_seen():
    """The target is z' - z; only noise of 0.001 is between the states and what is observed."""
    model, params = random_model(BUMPS, counts=(False, False))
    params = params._replace(
        matrix=jnp.eye(2), offset=jnp.zeros(2), log_noise=jnp.full(2, np.log(1e-3))
    )
    record = simulate(model, params, 200)
    after = params._replace(weights=0 * params.weights, transition=0 * params.transition)
    for _ in range(5):
        after = improve(model, after, record).params._replace(log_noise=params.log_noise)
    y, u = np.asarray(record.y, np.float64), np.asarray(record.u)
    rows = jax.vmap(partial(move.regressors, model, after))(*map(jnp.asarray, (y[:-1], u[:-1])))
    x = np.asarray(rows, np.float64)
    deviation = prior_deviations(model, after, PRIOR)[2:].reshape(-1, 2)
    for i in range(2):
        noise = np.exp(2 * float(after.log_process[i]))
        gram = x.T @ x / noise + np.diag(1 / np.asarray(deviation[:, i], np.float64) ** 2)
        expected = np.linalg.solve(gram, x.T @ (y[1:] - y[:-1])[:, i] / noise)
        ours = move.parameters(model, after).move[:, i]
        np.testing.assert_allclose(ours, expected, rtol=0.03, atol=3e-3)
        residual = (y[1:] - y[:-1])[:, i] - x @ expected
        assert noise == pytest.approx(np.mean(residual**2), rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(False,) * 5, MIXED], ids=["numbers", "mixed"])
def test_scoring_ends_at_a_mode_and_never_falls(counts):
    """A whole step more would gain less than half a nat of what 250 samples tell."""
    model, params = random_model(BUMPS, counts)
    record = simulate(model, params, 250, missing=0.1)
    params = params._replace(
        weights=0 * params.weights,
        transition=0 * params.transition,
        offset=params.offset + 0.2,
        log_noise=params.log_noise + 0.5,
        log_process=params.log_process + 0.5,
    )
    height = partial(scoring.log_posterior, model, record=record, prior=PRIOR)
    heights = [float(height(params))]
    for _ in range(25):
        step = improve(model, params, record)
        params = step.params
        heights.append(float(step.log_posterior))
    assert heights[-1] == pytest.approx(float(height(params)), abs=0.05)
    assert (np.diff(heights) > -0.02).all()
    assert heights[-1] > heights[0] + 20
    gradient = move.parameters(model, jax.grad(height)(params))
    information = np.asarray(step.information.matrix, np.float64)
    slope = np.concatenate([gradient.log_process, gradient.move.ravel()])
    deviation = np.asarray(prior_deviations(model, params, PRIOR), np.float64)
    curvature = information + np.diag(np.where(np.arange(len(deviation)) < 2, 0, deviation**-2))
    assert slope @ np.linalg.solve(curvature, slope) / 2 < 0.5  # nats that are left to gain


@pytest.mark.slow
@pytest.mark.parametrize("dims", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_a_step_keeps_the_read_out_of_the_state(dims):
    """Changes of C and b are orthogonal to the columns of C, in units of the channels' noise."""
    model, params = random_model(BUMPS if dims == 2 else None, dims=dims)
    record = simulate(model, params, 60)
    step = improve(model, params, record)
    columns = params.matrix * jnp.exp(-2 * params.log_noise)[:, None]
    change = step.params.matrix - params.matrix, step.params.offset - params.offset
    assert np.abs(change[0]).max() > 1e-3
    for each in change:
        np.testing.assert_allclose(columns.T @ each, 0, atol=2e-3 * np.abs(columns).max())
    # Nor does it depend on what inputs are measured in, if the prior has their unit.
    other = params._replace(effect=params.effect / 1e-6), record._replace(u=record.u * 1e-6)
    prior = PRIOR.replace(input_unit=1e-6)  # pyright: ignore
    other_step = improve(model, *other, prior=prior)
    own, other_effect = step.params.effect, 1e-6 * other_step.params.effect
    np.testing.assert_allclose(other_effect, own, rtol=1e-3, atol=1e-3)
    assert np.abs(own - params.effect).max() > 0.02


@pytest.mark.slow
def test_padding_changes_nothing():
    model, params = random_model(BUMPS, MIXED)
    record = simulate(model, params, 40)
    padded = jax.tree.map(lambda x: jnp.concatenate([x, x[:9]]), record)
    padded = padded._replace(valid=jnp.arange(49) < 40)
    a, b = improve(model, params, record), improve(model, params, padded)
    for ours, theirs in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-3)
    assert np.isfinite(filter_states(model, b.params, padded).log_likelihood).all()
