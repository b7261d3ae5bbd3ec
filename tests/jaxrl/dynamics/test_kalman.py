"""The filter against the textbook's matrices, as large as there are channels, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics import kalman, posterior
from jaxrl.dynamics.kalman import Belief

POSITIVE = np.array([[0.5, 0.2, 0.1], [0.2, 0.4, -0.1], [0.1, -0.1, 0.3]])


def test_a_linear_gaussian_stream_is_filtered_as_in_the_textbook():
    rng = np.random.default_rng(0)
    A, C = np.array([[0.95, -0.2], [0.2, 0.95]]), rng.normal(size=(20, 2))
    noise, process = rng.uniform(0.2, 2.0, 20), np.array([[0.05, 0.02], [0.02, 0.04]])
    stream = rng.normal(size=(40, 20))
    mean, covariance = np.array([1.0, -1.0]), np.eye(2)
    for obs in stream:
        mean, covariance = A @ mean, A @ covariance @ A.T + process
        gain = covariance @ C.T @ np.linalg.inv(C @ covariance @ C.T + np.diag(noise))
        mean, covariance = mean + gain @ (obs - C @ mean), covariance - gain @ C @ covariance

    single = lambda x: jnp.asarray(x, jnp.float32)

    @jax.jit
    def filter_stream(belief, stream):
        def step(belief, obs):
            belief = kalman.predict(belief, lambda z: single(A) @ z, single(process))
            return kalman.correct(belief, obs, lambda z: (single(C) @ z, single(noise))), None

        return jax.lax.scan(step, belief, stream)[0]

    final_belief = filter_stream(Belief(jnp.array([1.0, -1.0]), jnp.eye(2)), single(stream))
    np.testing.assert_allclose(final_belief.mean, mean, atol=1e-5)
    np.testing.assert_allclose(final_belief.covariance, covariance, atol=1e-6)


def test_a_step_spreads_the_belief_by_its_jacobian():
    step = lambda z: z + 0.1 * jnp.stack([jnp.sin(z[1]), -(z[0] ** 3)])
    belief = Belief(jnp.array([0.7, -0.4]), jnp.array(POSITIVE[:2, :2], jnp.float32))
    next_belief = jax.jit(lambda belief: kalman.predict(belief, step, 0.3))(belief)
    jacobian = np.array([[1.0, 0.1 * np.cos(-0.4)], [-0.3 * 0.49, 1.0]])
    expected = jacobian @ POSITIVE[:2, :2] @ jacobian.T + 0.3 * np.eye(2)
    np.testing.assert_allclose(next_belief.covariance, expected, atol=1e-6)
    np.testing.assert_allclose(
        next_belief.mean, [0.7 + 0.1 * np.sin(-0.4), -0.4 - 0.0343], atol=1e-6
    )


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    ("dims", "channels", "poisson"),
    [(2, 30, True), (3, 30, False), (2, 1, False), (3, 2, True)],
    ids=["Poisson", "Gaussian", "singular", "singular-Poisson"],
)
def test_an_observation_counts_as_by_explicit_matrices(dims, channels, poisson):
    rng = np.random.default_rng(dims)
    C = rng.normal(size=(channels, dims)) / 2
    variance = rng.uniform(0.5, 2.0, channels)
    m, P = rng.normal(size=dims), POSITIVE[:dims, :dims]
    h = np.exp(C @ m) if poisson else C @ m
    obs = rng.poisson(h) if poisson else h + rng.normal(size=channels)
    H, R = (h[:, None] * C, np.diag(h)) if poisson else (C, np.diag(variance))

    def emission(z):
        mean = jnp.asarray(C, jnp.float32) @ z
        if poisson:
            return jnp.exp(mean), jnp.exp(mean)
        return mean, jnp.asarray(variance, jnp.float32)

    @jax.jit
    def estimate(belief, obs):
        parts = kalman.correct(belief, obs, emission), kalman.evidence(belief, obs, emission)
        return *parts, kalman.information(belief, emission)

    belief = Belief(jnp.asarray(m, jnp.float32), jnp.asarray(P, jnp.float32))
    after, evidence, information = estimate(belief, jnp.asarray(obs, jnp.float32))
    S = np.linalg.inv(H @ P @ H.T + R)
    np.testing.assert_allclose(after.mean, m + P @ H.T @ S @ (obs - h), atol=1e-4)
    np.testing.assert_allclose(after.covariance, P - P @ H.T @ S @ H @ P, atol=1e-5)
    least_squares = np.linalg.pinv(np.linalg.inv(np.sqrt(R)) @ H) @ (
        (obs - h) / np.sqrt(np.diag(R))
    )
    np.testing.assert_allclose(evidence.displacement, least_squares, rtol=0.02, atol=1e-3)
    np.testing.assert_allclose(evidence.information, H.T @ S @ H, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(information, evidence.information, rtol=1e-5)
    np.testing.assert_allclose(evidence.weight, np.trace(H.T @ S @ H) / dims, rtol=1e-4)


def test_evidence_teaches_a_field_as_the_observation_itself_would():
    """All directions seen equally well: nothing is lost in a displacement and its weight."""
    rng = np.random.default_rng(3)
    H = 1.5 * np.linalg.qr(rng.normal(size=(6, 2)))[0]
    features, obs, noise = rng.normal(size=4), rng.normal(size=6), 0.25
    P, R, variance = 0.3 * np.eye(2), 0.8 * np.eye(6), 5.0
    design = H @ np.kron(np.eye(2), features)  # [6, 8] of the weights, those of output 0 first
    core = np.linalg.inv(noise * variance * design @ design.T + H @ P @ H.T + R)
    expected = noise * variance * design.T @ core @ obs

    @jax.jit
    def learn_field(obs, features):
        emission = lambda z: (jnp.asarray(H, jnp.float32) @ z, jnp.full(6, 0.8))
        evidence = kalman.evidence(Belief(jnp.zeros(2), 0.3 * jnp.eye(2)), obs, emission)
        start = posterior.prior(4, 2, variance, noise)
        return posterior.update(
            start, features, evidence.displacement, 1 / (evidence.weight * noise)
        )

    field_posterior = learn_field(jnp.asarray(obs, jnp.float32), jnp.asarray(features, jnp.float32))
    np.testing.assert_allclose(field_posterior.mean.T.reshape(-1), expected, atol=1e-4)


def test_channels_without_noise_and_shapes_that_do_not_fit():
    exact = lambda z: (z, jnp.zeros(2))
    belief = jax.jit(lambda b, y: kalman.correct(b, y, exact))(
        Belief(jnp.zeros(2), jnp.eye(2)), jnp.array([0.3, -2.0])
    )
    np.testing.assert_allclose(belief.mean, [0.3, -2.0], atol=1e-5)
    with pytest.raises(ValueError, match=r"shapes \(3,\), \(2,\) and \(2,\)"):
        kalman.correct(Belief(jnp.zeros(2), jnp.eye(2)), jnp.zeros(3), exact)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    ("noise", "blur"),
    [(1.0, 1.0), (1e-8, 1.0), (1e8, 1.0), (1.0, 1e-8), (1.0, 1e8), (1e-8, 1e-8), (1e8, 1e8)],
)
@pytest.mark.parametrize(("dims", "channels"), [(2, 1), (2, 6), (3, 2), (3, 7)])
def test_every_scale_of_belief_and_channels_is_as_in_float64(dims, channels, noise, blur):
    """Errors are relative to the largest entry, as a matrix's are in float32."""
    rng = np.random.default_rng(channels)
    C, P = rng.normal(size=(channels, dims)), blur * POSITIVE[:dims, :dims]
    obs = np.sqrt(noise) * rng.normal(size=channels)

    @jax.jit
    def estimate(covariance, obs):
        emission = lambda z: (jnp.asarray(C, jnp.float32) @ z, jnp.full(channels, noise))
        belief = Belief(jnp.zeros(dims), covariance)
        return kalman.correct(belief, obs, emission), kalman.evidence(belief, obs, emission)

    after, evidence = estimate(*(jnp.asarray(x, jnp.float32) for x in (P, obs)))
    root = np.linalg.cholesky(P)
    factor = np.linalg.qr(np.concatenate([np.linalg.inv(root), C / np.sqrt(noise)]), mode="r")
    inverse = np.linalg.inv(factor)
    covariance = inverse @ inverse.T  # in float64 nothing else is exact at these scales
    np.testing.assert_allclose(after.covariance, covariance, atol=1e-4 * np.abs(covariance).max())
    mean = covariance @ C.T @ obs / noise
    np.testing.assert_allclose(after.mean, mean, atol=1e-3 * np.sqrt(blur))
    rows = np.concatenate([np.sqrt(noise) * np.eye(channels), root.T @ C.T])
    factor = np.asarray(np.linalg.qr(rows, mode="r"))
    slope = np.linalg.solve(factor.T, C)
    information = slope.T @ slope
    scale = np.abs(information).max()
    np.testing.assert_allclose(evidence.information, information, atol=1e-3 * scale)
    assert np.all(np.linalg.eigvalsh(np.asarray(after.covariance, np.float64)) >= -1e-6 * blur)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "rate", [None, 1e-15, 1e-25, 0.0], ids=["no channels", "1e-15", "1e-25", "silent"]
)
def test_where_nothing_is_seen_the_evidence_is_nothing(rate):
    """No channels; or Poisson ones that hardly ever fire, and did not."""
    channels = 0 if rate is None else 5

    def emission(z):
        mean = (rate or 0.0) * jnp.exp(jnp.ones((channels, 2)) @ z)
        return mean, mean

    @jax.jit
    def estimate(belief, obs):
        return kalman.evidence(belief, obs, emission), kalman.correct(belief, obs, emission)

    evidence, after = estimate(Belief(jnp.zeros(2), jnp.eye(2)), jnp.zeros(channels))
    assert np.all(np.isfinite(evidence.displacement))
    if not rate:
        np.testing.assert_array_equal(evidence.displacement, 0.0)
    np.testing.assert_allclose(evidence.information, 0.0, atol=1e-12)
    assert float(evidence.weight) >= 0
    np.testing.assert_allclose(after.mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(after.covariance, np.eye(2), atol=1e-6)
