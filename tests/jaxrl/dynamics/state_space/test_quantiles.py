"""Quantiles over particles against distribution functions summed and sorted in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxrl.dynamics.state_space.quantiles import count_quantiles, quantiles, sample_quantiles

LEVELS = (0.03, 0.5, 0.97)


@pytest.mark.parametrize("scale", [0.0, 0.02, 0.7, 9.0, 400.0])
def test_counts_have_the_quantiles_of_their_mixture(scale):
    rate = scale * np.random.default_rng(0).gamma(3.0, 0.4, (2, 50, 3)).astype(np.float32)
    ours = np.asarray(count_quantiles(jnp.asarray(rate), jnp.asarray(LEVELS)))
    assert ours.shape == (3, 2, 3)
    below = stats.poisson.cdf(np.arange(3_000)[:, None, None, None], rate.astype(float)).mean(2)
    for level, quantile in zip(LEVELS, ours, strict=True):
        at_least, before = ((below >= level + tiny).argmax(0) for tiny in (1e-4, -1e-4))
        assert ((before <= quantile) & (quantile <= at_least)).all()


def test_quantiles_of_draws_are_those_of_their_order():
    """Also where a level is a whole number of samples, as 0.05 of 400 is."""
    for size, levels in ((99, LEVELS), (400, (0.05, 0.07, 0.5, 0.95))):
        samples = np.random.default_rng(1).normal(size=(4, size, 2)).astype(np.float32)
        samples[1] = 2.5  # a channel that never changes
        ours = np.asarray(sample_quantiles(jnp.asarray(samples), jnp.asarray(levels)))
        place = np.ceil(np.round(np.array(levels) * size, 6)).astype(int) - 1
        expected = np.moveaxis(np.sort(samples, axis=1)[:, place], 1, 0)
        np.testing.assert_allclose(ours, expected, atol=2e-6 * np.ptp(samples, axis=1).max())


def test_each_channel_has_its_own_kind():
    """Two Gaussians far apart, whose median lies between them, beside counts."""
    expected = np.zeros((1, 4_000, 3), np.float32)
    expected[:, ::2, 0], expected[..., 1], expected[..., 2] = 10.0, 2.0, -5.0
    is_count, noise = jnp.array([False, True, False]), jnp.log(jnp.array([0.5, 1.0, 2.0]))
    compute_quantiles = lambda is_count, seed: np.asarray(
        jax.jit(quantiles)(
            *(is_count, noise, jnp.asarray(expected), jnp.asarray([0.25, 0.75])),
            jax.random.key(seed),
        )
    )[:, 0]
    ours = compute_quantiles(is_count, 0)
    np.testing.assert_allclose(ours[:, 0], [0.0, 10.0], atol=0.1)
    np.testing.assert_array_equal(ours[:, 1], stats.poisson.ppf([0.25, 0.75], 2.0))
    np.testing.assert_allclose(ours[:, 2], stats.norm.ppf([0.25, 0.75], -5.0, 2.0), atol=0.2)
    for kind, each in ((True, 1), (False, 2)):
        alone = compute_quantiles(jnp.full(3, kind), 1)
        np.testing.assert_allclose(alone[:, each], ours[:, each], atol=0.2)
