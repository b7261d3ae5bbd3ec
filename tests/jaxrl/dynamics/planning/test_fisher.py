"""Gains along a path, against matrices of all parameters in float64 and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics import kalman, rbf
from jaxrl.dynamics.planning import fisher

H, D, DT = 5, 2, 0.2  # states of a path, latent dimensions, time of a step
GRID = rbf.Grid(per_axis=3, half_width=1.5)
single = lambda x: jnp.asarray(x, jnp.float32)


def covariance_of(rng, size: int) -> np.ndarray:
    rows = rng.normal(size=(size, size + 2))
    return rows @ rows.T / size


def root_of(covariance: np.ndarray) -> jax.Array:
    """One of its square roots: a rotation of Cholesky's factor."""
    turn = np.linalg.qr(np.random.default_rng(9).normal(size=covariance.shape))[0]
    return single(np.linalg.cholesky(covariance) @ turn)


def dense_gains(information: np.ndarray, covariance: np.ndarray) -> tuple[float, float]:
    """Falls of log det and of the trace when `information` [p, p] is added."""
    after = np.linalg.inv(np.linalg.inv(covariance) + information)
    fall = np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(after)[1]
    return fall, np.trace(covariance) - np.trace(after)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("shared", [True, False])
def test_gains_are_those_of_the_full_matrices(shared):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(3, H, 6) if shared else (3, H, D, 6))  # of three candidates
    covariance, outputs, precision = covariance_of(rng, 6), D if shared else 1, 0.7

    def gains(features, root):
        gram = fisher.kernel(features, root)
        squared = fisher.squared_kernel(features, root)
        d_gain = fisher.d_gain(gram, precision, outputs)
        return d_gain, fisher.a_gain(gram, squared, precision, outputs)

    candidate_gains = jax.jit(jax.vmap(gains, in_axes=(0, None)))(
        single(features), root_of(covariance)
    )
    whole = np.kron(np.eye(outputs), covariance)
    for i, path in enumerate(features):
        rows = np.kron(np.eye(outputs), path.reshape(-1, 6))
        expected = dense_gains(precision * rows.T @ rows, whole)
        np.testing.assert_allclose([x[i] for x in candidate_gains], expected, rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("size", [1, 2, 10])
def test_gains_are_right_at_every_scale(size, scale):
    """Kernels of full rank, of rank 1 and of nothing gain log(1 + x) and x / (1 + x)."""
    rng = np.random.default_rng(size)
    full = covariance_of(rng, size)
    d_gain, a_gain = jax.jit(fisher.d_gain), jax.jit(fisher.a_gain)
    values = np.linalg.eigvalsh(full) * scale
    gram = single(full * scale)
    np.testing.assert_allclose(d_gain(gram), np.sum(np.log1p(values)), rtol=1e-4)
    np.testing.assert_allclose(a_gain(gram, gram), np.sum(values / (1 + values)), rtol=1e-4)
    same = single(np.full((size, size), scale))
    np.testing.assert_allclose(d_gain(same), np.log1p(size * scale), rtol=1e-4)
    np.testing.assert_allclose(a_gain(same, same), size * scale / (1 + size * scale), rtol=1e-4)
    nothing = jnp.zeros((size, size))
    assert d_gain(nothing) == a_gain(nothing, nothing) == d_gain(same, 0.0) == 0.0


def rollout(weights: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """States z_0 .. z_H in float64 of the field with `weights` [C, d]."""
    centres, states = np.asarray(GRID.centres(), np.float64), [np.array([0.2, -0.3])]
    for action in actions:
        bumps = np.exp(-np.sum((states[-1] - centres) ** 2, axis=1) / (2 * float(GRID.width) ** 2))
        states.append(states[-1] + DT * (bumps @ weights + action))
    return np.array(states)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("poisson", [False, True])
def test_gains_through_observations_are_those_of_finite_differences(poisson):
    rng = np.random.default_rng(1)
    weights, actions = rng.normal(size=(9, D)), 0.5 * rng.normal(size=(H, D))
    covariance, C = covariance_of(rng, 9), rng.normal(size=(7, D))
    states = rollout(weights, actions)
    # The information of all parameters, by differences of whole paths.
    changes = 1e-5 * np.eye(9 * D).reshape(-1, 9, D)
    ends = [rollout(weights + c, actions) - rollout(weights - c, actions) for c in changes]
    sensitivity = np.array(ends)[:, 1:].transpose(1, 2, 0) / 2e-5  # [H, d, C d]
    information = np.zeros((9 * D, 9 * D))
    for z, change in zip(states[1:], sensitivity, strict=True):
        rate = np.exp(C @ z)
        slope = rate[:, None] * C if poisson else C
        per_channel = 1 / rate if poisson else np.full(7, 1 / 0.3)
        information += change.T @ slope.T @ (per_channel[:, None] * slope) @ change
    expected = dense_gains(information, np.kron(covariance, np.eye(D)))

    def emission(z):
        mean = single(C) @ z
        return (jnp.exp(mean), jnp.exp(mean)) if poisson else (mean, jnp.full(7, 0.3))

    # The same by kernels of the path, with shared features and with those of each output.
    @jax.jit
    def gains(states, root):
        features = rbf.features(GRID, states[:-1])
        jacobian = jax.vmap(jax.jacfwd(lambda z: rbf.features(GRID, z) @ single(weights)))
        path = fisher.propagation_matrix(jnp.eye(D)[None] + DT * jacobian(states[:-1]), DT)
        information_at = lambda z: kalman.information(kalman.Belief(z, jnp.zeros((D, D))), emission)
        observation_information = jax.vmap(information_at)(states[1:])
        whole = jnp.kron(features[:, None], jnp.eye(D)[None])  # [H, d, C d]
        answers = []
        for rows, prior in (features, root), (whole, jnp.kron(root, jnp.eye(D))):
            gram = fisher.observation_kernel(
                fisher.kernel(rows, prior), path, observation_information
            )
            squared = fisher.observation_kernel(
                fisher.squared_kernel(rows, prior), path, observation_information
            )
            answers.append((fisher.d_gain(gram), fisher.a_gain(gram, squared)))
        return answers

    shared, unshared = gains(single(states), root_of(covariance))
    np.testing.assert_allclose(shared, expected, rtol=1e-3)
    np.testing.assert_allclose(unshared, expected, rtol=1e-3)


def test_information_about_an_embedding_of_two_numbers():
    """The recursion of an extended Kalman filter along the path, which adds up [2, 2] matrices."""
    rng = np.random.default_rng(2)
    C, noise, process = rng.normal(size=(6, D)), 0.4, 0.05
    slopes, transitions = rng.normal(size=(H, D, 2)), np.eye(D) + DT * rng.normal(size=(H, D, D))
    embedding = np.array([[0.6, 0.1], [0.1, 0.3]])
    state, change, total, beliefs = 0.1 * np.eye(D), np.zeros((D, 2)), np.zeros((2, 2)), []
    for A, slope in zip(transitions, slopes, strict=True):
        state, change = A @ state @ A.T + process * np.eye(D), A @ change + DT * slope
        noisy = C @ state @ C.T + noise * np.eye(6)
        total += change.T @ C.T @ np.linalg.inv(noisy) @ C @ change
        beliefs.append(state)

    @jax.jit
    def gain(slopes, transitions, beliefs, root):
        emission = lambda z: (single(C) @ z, jnp.full(6, noise))
        observation_information = jax.vmap(
            lambda P: kalman.information(kalman.Belief(jnp.zeros(D), P), emission)
        )
        gram = fisher.kernel(slopes, root)
        return fisher.d_gain(
            fisher.observation_kernel(
                gram, fisher.propagation_matrix(transitions, DT), observation_information(beliefs)
            )
        )

    path = (single(x) for x in (slopes, transitions, np.array(beliefs)))
    information_gain = gain(*path, root_of(embedding))
    expected = np.linalg.slogdet(np.eye(2) + embedding @ total)[1]
    np.testing.assert_allclose(information_gain, expected, rtol=1e-4)


def test_a_path_of_another_length_is_refused():
    with pytest.raises(ValueError, match="expected 5 or 10 rows"):
        fisher.observation_kernel(jnp.eye(4), jnp.eye(10), jnp.zeros((5, 2, 2)))
