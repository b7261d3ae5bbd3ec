"""The bound against loops in plain NumPy, and against the exact likelihood of a linear model."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics import sequence_elbo
from jaxrl.dynamics.sequence_elbo import Config, DiagonalBelief, Draws, Dynamics

MATRIX = np.array([[0.5, -1.0], [1.2, 0.3], [-0.4, 0.8]])
NOISE = np.array([0.5, 0.3, 0.8])  # variance of each channel
PROCESS = np.array([0.4, 0.9])
PRIOR = 2.0


def velocity(z, library=jnp):
    """Anything that is not linear."""
    return library.stack([library.sin(z[..., 1]), z[..., 0] * z[..., 1] - z[..., 1]], axis=-1)


def log_prob(z, y):
    variance = jnp.asarray(NOISE, jnp.float32).reshape(1, 1, -1)
    terms = jnp.log(2 * jnp.pi * variance) + (y - z @ jnp.asarray(MATRIX.T)) ** 2 / variance
    return -0.5 * jnp.sum(terms, axis=-1)


def problem(length: int, samples: int, k_steps: int, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    normal = lambda *shape: rng.normal(size=shape)
    return {
        "y": normal(length, 3),
        "mean": normal(length, 2),
        "variance": rng.uniform(0.1, 1.0, (length, 2)),
        "effect": normal(length - 1, 2),
        "sample": normal(samples, length, 2),
        "steps": normal(k_steps - 1, samples, length, 2),
    }


@partial(jax.jit, static_argnames="masked")
def compute_elbo(arrays: dict, valid, keep, config: Config, beta, masked: bool = True):
    draws = Draws(arrays["sample"], arrays["steps"], keep if masked else None)
    belief = DiagonalBelief(arrays["mean"], arrays["variance"])
    dynamics = Dynamics(velocity, arrays["effect"], jnp.asarray(PROCESS, jnp.float32))
    return sequence_elbo.negative_elbo(
        draws, arrays["y"], valid, belief, dynamics, log_prob, config, beta
    )


def kl(mean, variance, other_mean, other_variance) -> float:
    ratio = variance / other_variance
    square = (mean - other_mean) ** 2 / other_variance
    return 0.5 * float(np.sum(ratio - np.log(ratio) + square - 1))


def loop_elbo(arrays: dict, valid, keep, config: Config, beta: float) -> dict:
    """One sample, one rollout and one target at a time."""
    samples, length, _ = arrays["sample"].shape
    weights = [config.decay**k for k in range(config.k_steps)]
    weights = [w / sum(weights) for w in weights]
    move = lambda z, t: z + config.dt * (velocity(z, np) + arrays["effect"][t])
    begin = int(np.argmax(valid))
    likelihood, divergence = 0.0, np.zeros(config.k_steps)
    for s in range(samples):
        z = arrays["mean"] + np.sqrt(arrays["variance"]) * arrays["sample"][s]
        # At masked times the state is predicted from the sample before.
        state = z.copy()
        for t in range(begin + 1, length):
            if not keep[t]:
                state[t] = move(z[t - 1], t - 1)
        for t in np.flatnonzero(valid):
            error = arrays["y"][t] - MATRIX @ state[t]
            likelihood -= 0.5 * np.sum(np.log(2 * np.pi * NOISE) + error**2 / NOISE) / samples
            # A rollout from here, whose means are compared with the beliefs K steps ahead.
            at = state[t]
            for k in range(1, config.k_steps + 1):
                if t + k >= length or not valid[t + k]:
                    break
                mean = move(at, t + k - 1)
                if keep[t + k]:
                    q = arrays["mean"][t + k], arrays["variance"][t + k]
                    divergence[k - 1] += kl(*q, mean, PROCESS * config.dt) / samples
                if k < config.k_steps:
                    noise = arrays["steps"][k - 1, s, t]
                    at = mean + np.sqrt(PROCESS * config.dt) * noise
    # Everything per valid step.
    steps = sum(valid)
    first = kl(arrays["mean"][begin], arrays["variance"][begin], 0.0, config.prior_variance)
    parts = {
        "log_likelihood": likelihood / steps,
        "kl": float(np.dot(weights, divergence)) / steps,
        "kl_first": first / steps,
        "kl_1": divergence[0] / steps,
    }
    total = parts["kl"] + parts["kl_first"]
    return {**parts, "loss": beta * total - parts["log_likelihood"]}


@pytest.mark.parametrize("padding", [(0, 0), (2, 0), (0, 3), (0, 5)])
def test_the_bound_term_by_term(padding):
    """Masked times, more steps ahead than times are left, and padding on either side."""
    length, config = 6, Config(samples=2, k_steps=4, masking=True, prior_variance=PRIOR)
    arrays = problem(length, 2, 4)
    valid = np.ones(length, bool)
    valid[: padding[0]] = False
    valid[length - padding[1] :] = False
    keep = np.array([0, 1, 0, 1, 1, 0], bool)
    loss, parts = compute_elbo(arrays, valid, keep, config, 0.7)
    expected = loop_elbo(arrays, valid, keep, config, 0.7)
    assert float(loss) == float(parts["loss"])
    assert parts.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(parts[name], value, rtol=2e-4, atol=1e-5, err_msg=name)


def test_padding_is_as_good_as_absent():
    config = Config(samples=2, k_steps=4)
    arrays = problem(6, 2, 4)
    cut = {k: v[..., 2:, :] for k, v in arrays.items()}
    whole = compute_elbo(arrays, np.arange(6) >= 2, None, config, 1.0, masked=False)[0]
    alone = compute_elbo(cut, np.ones(4, bool), None, config, 1.0, masked=False)[0]
    np.testing.assert_allclose(whole, alone, rtol=1e-5)


def test_masks_of_nothing_of_everything_and_in_a_warm_up():
    config = Config(samples=2, k_steps=3, masking=True)
    arrays, valid = problem(6, 2, 3), np.ones(6, bool)
    plain, parts = compute_elbo(arrays, valid, valid, config, 1.0)
    np.testing.assert_allclose(
        plain, compute_elbo(arrays, valid, valid, config, 1.0, masked=False)[0]
    )
    _, without = compute_elbo(arrays, valid, ~valid, config, 1.0)
    assert without["kl"] == 0
    assert without["kl_first"] == parts["kl_first"] > 0
    assert without["log_likelihood"] != parts["log_likelihood"]
    warm, _ = compute_elbo(arrays, valid, ~valid, config, 0.0)
    np.testing.assert_allclose(warm, -parts["log_likelihood"], rtol=1e-6)


def test_draws_mask_at_the_asked_rate(key):
    config = Config(samples=3, k_steps=4, masking=True, mask_probability=0.2)
    draws = sequence_elbo.draw(key, config, 20_000, 2)
    assert draws.sample.shape == (3, 20_000, 2)
    assert draws.steps.shape == (3, 3, 20_000, 2)
    assert draws.keep is not None
    assert abs(float(jnp.mean(draws.keep)) - 0.8) < 0.02
    # one long vector of normals: neither scale nor correlation between its parts
    parts = np.concatenate([draws.sample[None], draws.steps]).reshape(12, -1)
    np.testing.assert_allclose(np.cov(parts), np.eye(12), atol=0.05)


def linear_model(length: int, seed: int):
    """A stable linear model, observations from it, and the joint precision of all its states."""
    rng = np.random.default_rng(seed)
    config = Config(samples=4096, k_steps=1, dt=0.5, prior_variance=PRIOR)
    field = np.array([[-0.6, 1.0], [-1.0, -0.3]])
    effect = rng.normal(size=(length - 1, 2))
    step, noise = np.eye(2) + config.dt * field, PROCESS * config.dt
    # z = L (first, noise..., and pushes): covariance and mean of all states at once
    unroll = np.eye(2 * length)
    for t in range(1, length):
        here, last = slice(2 * t, 2 * t + 2), slice(2 * t - 2, 2 * t)
        unroll[here] += step @ unroll[last]
    spread = np.concatenate([np.full(2, PRIOR), np.tile(noise, length - 1)])
    mean = unroll @ np.concatenate([np.zeros(2), (config.dt * effect).ravel()])
    covariance = unroll @ np.diag(spread) @ unroll.T
    design = np.kron(np.eye(length), MATRIX)
    y_covariance = design @ covariance @ design.T + np.diag(np.tile(NOISE, length))
    y = rng.multivariate_normal(design @ mean, y_covariance)
    error = y - design @ mean
    fit = error @ np.linalg.solve(y_covariance, error)
    evidence = -0.5 * (fit + np.linalg.slogdet(2 * np.pi * y_covariance)[1])
    precision = np.linalg.inv(covariance) + design.T @ np.diag(1 / np.tile(NOISE, length)) @ design
    posterior = mean + np.linalg.solve(precision, design.T @ (error / np.tile(NOISE, length)))
    return config, field, effect, y.reshape(length, 3), evidence, precision, posterior


def test_never_above_the_likelihood_and_as_close_as_independent_beliefs_can_be(key):
    """Where all states have precision Λ, the best independent q have its mean and variances 1/Λ_ii.

    What they miss is ½ (Σ log Λ_ii - log |Λ|).
    """
    length = 5
    config, field, effect, y, evidence, precision, posterior = linear_model(length, seed=1)
    draws = sequence_elbo.draw(key, config, length, 2)

    @jax.jit
    def bound(mean, variance, field):
        process = jnp.asarray(PROCESS, jnp.float32)
        dynamics = Dynamics(lambda z: z @ field.T, jnp.asarray(effect), process)
        belief, valid = DiagonalBelief(mean, variance), jnp.ones(length, bool)
        args = draws, jnp.asarray(y), valid, belief, dynamics, log_prob, config
        return -length * sequence_elbo.negative_elbo(*args)[0]

    best = posterior.reshape(-1, 2), (1 / np.diag(precision)).reshape(-1, 2)
    gap = 0.5 * (np.sum(np.log(np.diag(precision))) - np.linalg.slogdet(precision)[1])
    assert gap > 0.1
    best_bound = bound(*best, field)
    np.testing.assert_allclose(best_bound, evidence - gap, atol=0.1)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        mean = best[0] + rng.normal(scale=0.5, size=best[0].shape)
        variance = best[1] * rng.uniform(0.3, 3.0, best[1].shape)
        assert bound(mean, variance, field) < best_bound


def test_divergence_and_its_weights():
    rng = np.random.default_rng(0)
    mean, other = rng.normal(size=(2, 2))
    variance, other_variance = rng.uniform(0.3, 2.0, (2, 2))
    z = mean + np.sqrt(variance) * rng.normal(size=(400_000, 2))
    log = lambda m, v: -0.5 * np.sum((z - m) ** 2 / v + np.log(v), axis=1)
    sampled = np.mean(log(mean, variance) - log(other, other_variance))
    exact = sequence_elbo.gaussian_kl(*map(jnp.asarray, (mean, variance, other, other_variance)))
    np.testing.assert_allclose(exact, sampled, atol=0.01)
    for k_steps, decay in ((1, 0.8), (5, 0.8), (4, 1.0), (3, 0.0)):
        shares = np.array([decay**k for k in range(k_steps)])
        weights = sequence_elbo.kl_weights(k_steps, decay)
        np.testing.assert_allclose(weights, shares / shares.sum(), rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("none", [0, 0, 2, 2, 2, 2, 2, 2]),
        ("linear", [0, 0, 0, 0.5, 1, 1.5, 2, 2]),
        ("cyclic", [0, 0, 0, 1, 2, 2, 0, 1]),
    ],
)
def test_beta_over_time(kind, expected):
    schedule = sequence_elbo.beta_schedule(kind, 2.0, warmup=2, period=4)
    np.testing.assert_allclose(jax.jit(schedule)(jnp.arange(8)), expected)


def test_bad_schedules_are_refused():
    with pytest.raises(ValueError, match="is unknown: use none, linear or cyclic"):
        sequence_elbo.beta_schedule("cosine")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="period is 1"):
        sequence_elbo.beta_schedule("linear", period=1)
