"""The filter and the smoother against dense Gaussians, quadrature, particles and differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import integrate, optimize, special

from jaxrl.dynamics.bases import Fourier, Grid, Polynomial
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.state_space import filter, smoother
from jaxrl.dynamics.state_space.filter import (
    FilteredStates,
    Record,
    correct,
    filter_states,
    first_belief,
)
from jaxrl.dynamics.state_space.model import Network, Params, StateSpace
from tests.jaxrl.dynamics.state_space.models import move, random_model, simulate

COUNTS = (True,) * 6
run_filter = jax.jit(filter_states, static_argnames="prediction")
smooth = jax.jit(smoother.smooth_states)
draw_paths = jax.jit(smoother.sample_paths, static_argnums=2)


def dense_smoother(params: Params, record: Record) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean `[T d]` and covariance of all states of a linear-Gaussian record, and its likelihood."""
    p, r = jax.tree.map(np.asarray, (params, record))
    steps, d = len(r.y), len(p.drift)
    unroll, push = np.eye(steps * d), np.zeros(steps * d)
    noise = np.kron(np.eye(steps), np.diag(np.exp(2 * p.log_process)))
    noise[:d, :d], push[:d] = np.diag(np.exp(2 * p.first_log_deviation)), p.first_mean
    for t in range(1, steps):
        here, last = slice(t * d, t * d + d), slice(t * d - d, t * d)
        unroll[here] += (np.eye(d) + p.transition) @ unroll[last]
        push[here] = p.drift + p.effect @ r.u[t - 1]
    mean, prior = unroll @ push, unroll @ noise @ unroll.T
    design = np.kron(np.eye(steps), p.matrix)[r.observed.ravel()]
    error = (r.y - p.offset)[r.observed] - design @ mean
    channels = np.tile(np.exp(2 * p.log_noise), steps)[r.observed.ravel()]
    y_covariance = design @ prior @ design.T + np.diag(channels)
    gain = prior @ design.T @ np.linalg.inv(y_covariance)
    logs = np.linalg.slogdet(2 * np.pi * y_covariance)[1]
    evidence = -0.5 * (logs + error @ np.linalg.solve(y_covariance, error))
    return mean + gain @ error, prior - gain @ design @ prior, evidence


@pytest.mark.parametrize("prediction", ["extended", "cubature"])
def test_a_linear_gaussian_model_is_exact(prediction):
    with jax.enable_x64(True):
        model, params = random_model()
        record = simulate(model, params, 9, missing=0.3)
        states = run_filter(model, params, record, prediction)
        whole = smooth(states, record.valid)
        paths = draw_paths(states, record.valid, 20_000, jax.random.key(0))
        mean, covariance, evidence = dense_smoother(params, record)
        np.testing.assert_allclose(states.log_likelihood.sum(), evidence, atol=1e-6)
        np.testing.assert_allclose(whole.mean.ravel(), mean, atol=1e-6)
        blocks = covariance.reshape(9, 2, 9, 2)
        np.testing.assert_allclose(whole.covariance, [blocks[t, :, t] for t in range(9)], atol=1e-6)
        for t in (0, 4):  # the filter knows the past and the present alone
            past = jax.tree.map(lambda x, end=t + 1: x[:end], record)
            part, its_covariance, _ = dense_smoother(params, past)
            np.testing.assert_allclose(states.belief.mean[t], part[-2:], atol=1e-6)
            np.testing.assert_allclose(
                states.belief.covariance[t], its_covariance[-2:, -2:], atol=1e-6
            )
        draws = paths.reshape(len(paths), -1)
        np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.01)
        np.testing.assert_allclose(draws.mean(0), mean, atol=0.02)


@pytest.mark.parametrize("prediction", ["extended", "cubature"])
def test_states_of_a_long_gap_have_covariances(prediction):
    """What grows without end is kept at `WIDEST`, and looked back on from there."""
    with jax.enable_x64(True):
        model, params = random_model()
        params = params._replace(transition=0.9 * jnp.eye(2))
        record = simulate(model, params, 9)
        record = record._replace(observed=record.observed & (jnp.arange(9) < 1)[:, None])
        states = run_filter(model, params, record, prediction)
        assert float(jnp.trace(states.before.covariance[-1])) == pytest.approx(filter.WIDEST)
        variances = np.linalg.eigvalsh(np.asarray(smooth(states, record.valid).covariance))
        assert (variances > 0).all()
        paths = draw_paths(states, record.valid, 20_000, jax.random.key(0))
        assert np.isfinite(paths).all()


def test_paths_of_states_that_hardly_move_are_finite():
    """The next state leaves less of the variance than roundings of float32, of either sign."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 2, 2))
    covariance = np.float32(rows @ rows.mT + 0.1 * np.eye(2))
    belief = Belief(jnp.zeros((40, 2)), jnp.asarray(covariance))
    after = belief._replace(covariance=jnp.asarray(covariance + np.float32(1e-9) * np.eye(2)))
    after = jax.tree.map(lambda x: jnp.roll(x, 1, axis=0), after)
    states = FilteredStates(jnp.zeros(40), after, belief, belief.covariance)
    paths = draw_paths(states, jnp.ones(40, bool), 3, jax.random.key(0))
    np.testing.assert_allclose(paths, jnp.broadcast_to(paths[:, -1:], paths.shape), atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "effect"),
    [
        (Grid(4, 2, 2.0), "linear"),
        (Polynomial(2, 2, 2.0), "mlp"),
        (Fourier(6, 2, 2.0), "linear"),
        (Network(5, 2), "state_mlp"),
    ],
)
def test_the_gradient_is_that_of_differences(field, effect, monkeypatch):
    monkeypatch.setattr(filter, "NEWTON_STEPS", 14)  # modes are differentiated where they are exact
    with jax.enable_x64(True):
        model, params = random_model(field, (True, False, True, False), effect=effect)
        record = simulate(random_model(None, (True, False, True, False))[0], params, 7, 0.2)
        flat, unravel = ravel_pytree(params)
        rng = np.random.default_rng(0)
        flat = flat + 0.1 * rng.normal(size=flat.shape)  # off the 0 behind networks
        value = jax.jit(lambda x: filter_states(model, unravel(x), record).log_likelihood.sum())
        slope = jax.jit(jax.grad(value))(flat)
        for direction in rng.normal(size=(4, len(flat))):
            forward, backward = value(flat + 1e-5 * direction), value(flat - 1e-5 * direction)
            np.testing.assert_allclose(slope @ direction, (forward - backward) / 2e-5, rtol=1e-6)


def test_counts_move_the_state_to_the_mode_and_weigh_as_by_quadrature():
    with jax.enable_x64(True):
        model, params = random_model(None, COUNTS, dims=1)
        y = np.array([4.0, 1, 2, 0, 3, 5])
        before = first_belief(params)
        belief, log_likelihood = jax.tree.map(
            np.asarray, correct(model, params, before, jnp.asarray(y), jnp.ones(6, bool))
        )
        matrix, offset = np.asarray(params.matrix[:, 0]), np.asarray(params.offset)
        m, variance = float(before.mean[0]), float(before.covariance[0, 0])

    def log_joint(z: float) -> float:
        eta = matrix * z + offset
        count = y * eta - np.exp(eta) - special.gammaln(y + 1)
        return float(count.sum() - 0.5 * (z - m) ** 2 / variance)

    mode = float(optimize.minimize(lambda z: -log_joint(z[0]), [m]).x[0])
    curvature = 1 / variance + np.sum(matrix**2 * np.exp(matrix * mode + offset))
    np.testing.assert_allclose(belief.mean, mode, atol=2e-3)
    np.testing.assert_allclose(belief.covariance, 1 / curvature, rtol=2e-3)
    density = lambda z: np.exp(log_joint(z)) / np.sqrt(2 * np.pi * variance)
    exact = np.log(integrate.quad(density, mode - 8, mode + 8, points=[mode])[0])
    np.testing.assert_allclose(log_likelihood, exact, atol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("distance", [-1.0, 2.5, -2.5])
def test_counts_far_from_what_was_expected_do_not_throw_the_state_off(distance):
    """Where Newton's method alone ends up to thousands of standard deviations away."""
    rng = np.random.default_rng(0)
    model, params = random_model(None, (True,) * 20)
    matrix, offset = 1.2 * rng.normal(size=(20, 2)), np.log(rng.uniform(0.2, 0.8, 20))
    wide = {"first_mean": jnp.zeros(2), "first_log_deviation": jnp.zeros(2)}
    params = params._replace(
        matrix=jnp.asarray(matrix, jnp.float32), offset=jnp.asarray(offset, jnp.float32), **wide
    )
    y = rng.poisson(np.exp(matrix @ [distance, 0.5 * distance] + offset)).astype(float)
    belief, _ = correct(
        model, params, first_belief(params), jnp.asarray(y, jnp.float32), jnp.ones(20, bool)
    )

    def cost(z: np.ndarray) -> float:
        eta = matrix @ z + offset
        return float((np.exp(eta) - y * eta).sum() + 0.5 * z @ z)

    mode = optimize.minimize(cost, [0.5 * distance, 0.25 * distance]).x
    apart = np.asarray(belief.mean) - mode
    assert apart @ np.linalg.inv(np.asarray(belief.covariance)) @ apart < 0.2**2


def particle_log_likelihood(
    model: StateSpace, params: Params, record: Record, count: int, seed: int
) -> float:
    """By a bootstrap particle filter (Gordon et al. 1993), in NumPy."""
    rng = np.random.default_rng(seed)
    p, r, counts = jax.tree.map(np.asarray, (params, record, model.is_count))
    deviation = np.exp(p.first_log_deviation)
    z = p.first_mean + deviation * rng.normal(size=(count, model.dims))
    total = 0.0
    for t in range(len(r.y)):
        eta = z @ p.matrix.T + p.offset
        count_logs = r.y[t] * eta - np.exp(eta) - special.gammaln(r.y[t] + 1)
        number_logs = -0.5 * ((r.y[t] - eta) ** 2 * np.exp(-2 * p.log_noise) + np.log(2 * np.pi))
        each = np.where(counts, count_logs, number_logs - p.log_noise).sum(1)
        total += special.logsumexp(each) - np.log(count)
        chosen = rng.choice(count, count, p=special.softmax(each))
        z = move(model, p, z[chosen], r.u[t])
        z = z + np.exp(p.log_process) * rng.normal(size=z.shape)
    return total


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "counts"),
    [(Grid(5, 2, 2.0), COUNTS), (Polynomial(2, 2, 3.0), (False, True, False, True, False))],
)
@pytest.mark.parametrize("prediction", ["extended", "cubature"])
def test_the_likelihood_is_that_of_particles(field, counts, prediction):
    with jax.enable_x64(True):
        model, params = random_model(field, counts)
        record = simulate(model, params, 30)
        states = run_filter(model, params, record, prediction)
        value = float(states.log_likelihood.sum())
    runs = [particle_log_likelihood(model, params, record, 4_000, seed) for seed in range(4)]
    error = np.std(runs, ddof=1)
    # Beside chance there is what linearising and Laplace's approximation cost, some .02 a step.
    assert abs(value - np.mean(runs)) < 3 * error + 0.02 * 30


@pytest.mark.slow
def test_padding_and_what_is_missing_add_nothing():
    model, params = random_model(Grid(4, 2, 2.0), COUNTS)
    record = simulate(model, params, 12)
    padded = jax.tree.map(lambda x: jnp.concatenate([x, x[:4]]), record)
    inside = jnp.arange(16) < 12
    padded = padded._replace(valid=inside, observed=padded.observed & inside[:, None])
    alone, beside = (run_filter(model, params, x) for x in (record, padded))
    np.testing.assert_array_equal(beside.log_likelihood[:12], alone.log_likelihood)
    np.testing.assert_array_equal(beside.log_likelihood[12:], 0)
    whole, same = (smooth(x, r.valid) for x, r in ((alone, record), (beside, padded)))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[:12], b, atol=1e-6), same, whole)
    blind = run_filter(model, params, record._replace(observed=record.observed & False))
    np.testing.assert_allclose(blind.log_likelihood, 0, atol=1e-5)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), blind.belief, blind.before
    )
