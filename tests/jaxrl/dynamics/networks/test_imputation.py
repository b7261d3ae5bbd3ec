"""Missing observations in a sequence VAE, against loops and against sums with terms left out."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxrl.dynamics import sequence_elbo
from jaxrl.dynamics.networks import imputation
from jaxrl.dynamics.networks.decoder import Decoder
from jaxrl.dynamics.networks.fields import ActionEffect, RBFField
from jaxrl.dynamics.networks.latent import SequenceVAE, Window
from jaxrl.dynamics.networks.recognition import GRURecognition, MLPRecognition
from jaxrl.dynamics.rbf import Grid
from jaxrl.dynamics.sequence_elbo import Config

T, CHANNELS = 9, 4
RNG = np.random.default_rng(0)
Y: Any = RNG.normal(size=(T, CHANNELS)).astype(np.float32)
BEFORE: Any = RNG.normal(size=(T, 2)).astype(np.float32)
OBSERVED: Any = np.ones((T, CHANNELS), bool)
OBSERVED[2, 1] = OBSERVED[6, :3] = False
OBSERVED[3:5] = False  # a gap
VALID: Any = np.ones(T, bool)
DT = 0.3
MODEL = SequenceVAE(
    GRURecognition(2, hidden=5, features=(4,)),
    RBFField(Grid(per_axis=4)),
    ActionEffect(2, "linear"),
    Decoder(2, CHANNELS, variance=0.2),
)


@pytest.fixture(scope="module")
def params():
    leaves, tree = jax.tree.flatten(jax.jit(partial(MODEL.init, num_actions=2))(jax.random.key(0)))
    rng = np.random.default_rng(2)
    return tree.unflatten([x + 0.3 * rng.normal(size=x.shape).astype(np.float32) for x in leaves])


def loop_beliefs(params, valid, observed):
    """What each time's belief is, one time after another."""
    carry, has_begun = MODEL.initial_carry(), False
    mean: Any = np.zeros(2)
    variance: Any = np.ones(2)
    move = lambda z, u: z + DT * (MODEL.velocity(params, z) + MODEL.push(params, u, z))
    rows = []
    for t in range(len(valid)):
        if valid[t]:
            if has_begun:
                mean = np.asarray(move(mean, BEFORE[t]))
                variance = variance + DT * np.asarray(MODEL.noise(params))
            filled: Any = np.where(observed[t], Y[t], MODEL.emission(params, mean)[0])
            carry, *estimate = MODEL.step(params, carry, filled, BEFORE[t])
            if observed[t].any():
                mean, variance, has_begun = *map(np.asarray, estimate), True
        rows.append((mean, variance))
    return [np.stack(column) for column in zip(*rows, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("recognition", [MODEL.recognition, MLPRecognition(2)])
@pytest.mark.parametrize("case", ["gap", "late", "padded"])
def test_the_filter_time_after_time(case, recognition, monkeypatch):
    model = replace(MODEL, recognition=recognition)
    monkeypatch.setitem(globals(), "MODEL", model)
    params = jax.jit(partial(model.init, num_actions=2))(jax.random.key(1))
    observed, valid = OBSERVED.copy(), VALID.copy()
    if case == "late":
        observed[:2] = False  # before the first observation the belief stays the prior
    if case == "padded":
        valid[-2:] = False
    mean, variance = loop_beliefs(params, valid, observed)
    window = Window(Y, BEFORE, valid, observed)
    _, belief = jax.jit(partial(model.encode, dt=DT))(params, model.initial_carry(), window)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(belief.variance, variance, rtol=1e-4, atol=1e-5)
    if case == "late":
        np.testing.assert_array_equal(belief.mean[:2], 0)
        np.testing.assert_array_equal(belief.variance[:2], 1)


@pytest.mark.slow
def test_where_nothing_is_missing_it_is_the_filter_itself(params):
    _, plain_belief = MODEL.encode(params, MODEL.initial_carry(), Window(Y, BEFORE, VALID))
    window = Window(Y, BEFORE, VALID, jnp.ones(OBSERVED.shape, bool))
    _, belief = MODEL.encode(params, MODEL.initial_carry(), window, DT)
    np.testing.assert_allclose(belief.mean, plain_belief.mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(belief.variance, plain_belief.variance, rtol=1e-5, atol=1e-6)


CONFIG = Config(samples=3, k_steps=1, dt=DT, prior_variance=2.0)


@partial(jax.jit, static_argnames="masking")
def loss(params, window, masking=False):
    config = replace(CONFIG, masking=masking)
    return MODEL.loss(params, window, MODEL.initial_carry(), jax.random.key(0), config, 0.7)


@pytest.mark.slow
def test_the_objective_is_the_sum_of_the_terms_that_are_left(params):
    """Likelihoods of channels that were observed, from SciPy; divergences of times that were."""
    window = Window(Y, BEFORE, VALID, OBSERVED)
    total, parts = loss(params, window)
    _, belief = MODEL.encode(params, MODEL.initial_carry(), window, DT)
    mean, variance = (np.asarray(x, float) for x in belief)
    draws = sequence_elbo.draw(jax.random.key(0), CONFIG, T, 2)
    move = lambda z, t: np.asarray(
        z + DT * (MODEL.velocity(params, z) + MODEL.push(params, BEFORE[t + 1], z))
    )
    noise = np.asarray(MODEL.noise(params)) * DT
    is_observed: Any = OBSERVED.any(1)
    likelihood = divergence = 0.0
    for s in range(3):
        sample = mean + np.sqrt(variance) * np.asarray(draws.sample[s])
        state: Any = [sample[t] if is_observed[t] else move(sample[t - 1], t - 1) for t in range(T)]
        for t in range(T):
            expected, spread = (np.asarray(x, float) for x in MODEL.emission(params, state[t]))
            for n in np.flatnonzero(OBSERVED[t]):
                likelihood += stats.norm.logpdf(Y[t, n], expected[n], np.sqrt(spread[n])) / 3
        for t in np.flatnonzero(is_observed[1:]):
            ratio, square = variance[t + 1] / noise, (mean[t + 1] - move(state[t], t)) ** 2 / noise
            divergence += 0.5 * np.sum(ratio - np.log(ratio) + square - 1) / 3
    ratio = variance[0] / 2.0
    first = 0.5 * np.sum(ratio - np.log(ratio) + mean[0] ** 2 / 2.0 - 1)
    np.testing.assert_allclose(parts["log_likelihood"], likelihood / T, rtol=1e-4)
    np.testing.assert_allclose(parts["kl"], divergence / T, rtol=1e-4)
    np.testing.assert_allclose(total, (0.7 * (divergence + first) - likelihood) / T, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("masking", [False, True])
def test_what_stands_where_nothing_was_observed_changes_nothing(params, masking):
    """Neither the objective nor a gradient; the value there may be anything finite."""
    gradient = jax.jit(jax.grad(lambda p, w: loss(p, w, masking)[0]))
    changed: Any = np.where(OBSERVED, Y, np.float32(1e38))
    one, other = (Window(y, BEFORE, VALID, OBSERVED) for y in (Y, changed))
    first, second = (loss(params, window, masking)[0] for window in (one, other))
    np.testing.assert_array_equal(first, second)
    grads = (jax.tree.leaves(gradient(params, window)) for window in (one, other))
    for a, b in zip(*grads, strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_array_equal(a, b)


def test_counts_that_are_missing_do_not_count():
    decoder: Any = Decoder(2, CHANNELS, "loglinear", "poisson")
    start = decoder.init(jax.random.key(0), jnp.zeros(2))
    counts, z = RNG.poisson(2.0, (T, CHANNELS)), RNG.normal(size=(T, 2)).astype(np.float32)
    log_prob = decoder.apply(start, z, counts.astype(np.float32), OBSERVED, method="log_prob")
    rate = np.asarray(decoder.apply(start, z)[0], float)
    expected = np.where(OBSERVED, stats.poisson.logpmf(counts, rate), 0).sum(1)
    np.testing.assert_allclose(log_prob, expected, rtol=1e-4, atol=1e-5)


def test_a_model_needs_the_time_of_a_step_to_pass_a_gap(params):
    with pytest.raises(ValueError, match="give the time of a step"):
        MODEL.encode(params, MODEL.initial_carry(), Window(Y, BEFORE, VALID, OBSERVED))


def test_imputed_values_pass_no_gradient():
    """Where one channel is missing, the expectation enters as if it were a datum."""

    def total(weight):
        step = lambda carry, y, before: (carry, y[:1], jnp.ones(1))
        model = imputation.Model(step, lambda z, u: z, lambda z: weight * (z + 1), jnp.ones(1))
        observed = jnp.array([[True, True], [False, True]])
        y = jnp.ones((2, 2))
        _, belief = imputation.encode(model, (), y, y, jnp.ones(2, bool), observed)
        return belief.mean[1, 0]

    assert jax.grad(total)(3.0) == 0
    assert total(3.0) == 6
