"""A nonlinear state-space model by dynamax' extended Kalman filter for counts, fitted by gradient.

dynamax 1.0.3 filters generalized Gaussian models of any functions, but learns none of their
parameters. Here they are those of

    z' = z + A z + W tanh(V z + a) + B u + w,  w ~ N(0, diag q²)

and y has the mean exp(C z + b), or C z + b where it is no count. Adam follows the gradient of the
marginal likelihood of its filter on random pieces of the training data, from the regressions
between principal components.
Letters: E episodes, T steps, B starts, K steps ahead, M particles, d dimensions, n channels.
"""

# pyright: reportMissingImports=false

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from dynamax.generalized_gaussian_ssm import EKFIntegrals, ParamsGGSSM
from dynamax.generalized_gaussian_ssm import conditional_moments_gaussian_filter as filter_moments

from bench.recordings_peers.dynamax_em import delay, equal_pieces, principal_components
from bench.recordings_peers.problem import AHEAD, Fitted, Problem
from bench.recordings_peers.scaling import scale
from train.vector_field.data.recordings import Data
from train.vector_field.recorded.baseline_forecasts import make_forecasts
from train.vector_field.recorded.prediction_scores import (
    Forecaster,
    Forecasts,
    Starts,
    interval_steps,
    rows_at,
)

UNITS = 16
STEPS = 300
BATCH = 8
RATE = 1e-2
PARTICLES = 100
Params = dict[str, jax.Array]


def fit(problem: Problem) -> Fitted:
    """Learns the parameters, with the dimensions of the truth."""
    with jax.enable_x64(True):
        params, losses = learn(problem)
        settings = {"dims": problem.dims, "units": UNITS, "steps": STEPS}
        late = [float(np.mean(losses[:20])), float(np.mean(losses[-20:]))]
        return Fitted(forecaster_of(params, problem), {**settings, "losses": late})


def learn(problem: Problem) -> tuple[Params, list[float]]:
    """The parameters after `STEPS` steps, and the loss of each, in nats per observed value."""
    y, late_inputs = equal_pieces(problem.training)
    params = first_guess(problem)
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(RATE, STEPS))
    )
    is_count = jnp.asarray(problem.is_count)

    def loss(params: Params, y: jax.Array, u: jax.Array) -> jax.Array:
        run = lambda y, u: (
            filter_moments(model_of(params, is_count), EKFIntegrals(), y, u).marginal_loglik
        )
        return -jnp.sum(jax.vmap(run)(y, u)) / y.size

    @jax.jit
    def step(params: Params, state: Any, which: jax.Array) -> tuple[Params, Any, jax.Array]:
        value, gradient = jax.value_and_grad(loss)(params, y[which], late_inputs[which])
        changes, state = optimizer.update(gradient, state)
        return optax.apply_updates(params, changes), state, value  # type: ignore

    rng, state, losses = np.random.default_rng(0), optimizer.init(params), []
    for _ in range(STEPS):
        which = rng.choice(len(y), min(BATCH, len(y)), replace=False)
        params, state, value = step(params, state, jnp.asarray(which))
        losses.append(float(value))
    return params, losses


def first_guess(problem: Problem) -> Params:
    """The linear model of principal components, with log-rates in first order around the mean."""
    scaled, dims = scale(problem, roots=False), problem.dims
    guess = principal_components(scaled.training, dims)
    mean, deviation = (np.asarray(x, float) for x in scaled.scales[:2])
    mean = np.where(problem.is_count, np.maximum(mean, 1e-3), 1.0)
    rows = np.asarray(guess["emission_weights"]) * (deviation / mean)[:, None]
    offset = np.where(problem.is_count, np.log(mean), scaled.scales.mean)
    rng = np.random.default_rng(0)
    arrays = {
        "linear": guess["dynamics_weights"] - jnp.eye(dims),
        "effect": guess["dynamics_input_weights"] / scaled.scales.effect,
        "inner": rng.standard_normal((UNITS, dims)),
        "threshold": rng.standard_normal(UNITS),
        "outer": np.zeros((dims, UNITS)),
        "log_noise": 0.5 * jnp.log(jnp.diag(guess["dynamics_covariance"])),
        "matrix": rows,
        "offset": offset,
        "log_deviation": np.log(deviation),
    }
    return {name: jnp.asarray(x, float) for name, x in arrays.items()}


def move(params: Params, z: jax.Array, u: jax.Array) -> jax.Array:
    """The expected next state `[d]`."""
    bumps = params["outer"] @ jnp.tanh(params["inner"] @ z + params["threshold"])
    return z + params["linear"] @ z + bumps + params["effect"] @ u


def emission(params: Params, is_count: jax.Array, z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of each channel, `[n]`."""
    eta = params["matrix"] @ z + params["offset"]
    rate = jnp.exp(jnp.minimum(eta, 10.0))
    variance = jnp.exp(2 * params["log_deviation"])
    return jnp.where(is_count, rate, eta), jnp.where(is_count, rate, variance)


def model_of(params: Params, is_count: jax.Array) -> ParamsGGSSM:
    """The model as dynamax' filter takes it, which is given inputs one step late."""
    dims = len(params["linear"])
    return ParamsGGSSM(
        initial_mean=jnp.zeros(dims),
        initial_covariance=jnp.eye(dims),
        dynamics_function=lambda z, u: move(params, z, u),
        dynamics_covariance=jnp.diag(jnp.exp(2 * params["log_noise"])),
        emission_mean_function=lambda z, u: emission(params, is_count, z)[0],
        emission_cov_function=lambda z, u: jnp.diag(emission(params, is_count, z)[1]),
    )


def forecaster_of(params: Params, problem: Problem) -> Forecaster:
    """Forecasts by particles drawn from the filter's beliefs, which move with the noise."""
    target, is_count = scale(problem, roots=False).target, jnp.asarray(problem.is_count)
    mean, covariance = filter_states(params, problem.held_out, is_count)
    later = np.pad(problem.held_out.u.astype(float), ((0, 0), (0, AHEAD), (0, 0)))
    run = jax.jit(jax.vmap(partial(moments, params, is_count)))

    def forecaster(starts: Starts) -> Forecasts:
        with jax.enable_x64(True):
            u = np.stack([rows_at(later, starts, k) for k in range(AHEAD)], axis=1)
            keys = jax.random.split(jax.random.key(0), len(u))
            beliefs = rows_at(mean, starts, 0), rows_at(covariance, starts, 0)
            expected, spread = map(np.asarray, run(keys, *beliefs, u))
        steps = list(interval_steps(AHEAD))
        expected = np.array(expected)
        return make_forecasts(expected, expected[:, steps], spread[:, steps], starts, target)

    return forecaster


def filter_states(params: Params, data: Data, is_count: jax.Array) -> tuple[np.ndarray, np.ndarray]:
    """Means `[E, T, d]` and covariances `[E, T, d, d]` by dynamax' filter."""
    model = model_of(params, is_count)
    run: Callable = jax.jit(jax.vmap(lambda y, u: filter_moments(model, EKFIntegrals(), y, u)))
    posterior = run(jnp.asarray(data.y, float), jnp.asarray(delay(data.u), float))
    return np.asarray(posterior.filtered_means), np.asarray(posterior.filtered_covariances)


def moments(
    params: Params,
    is_count: jax.Array,
    key: jax.Array,
    mean: jax.Array,
    covariance: jax.Array,
    u: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Means and variances `[K + 1, n]` after a belief, with the inputs u `[K, m]`."""
    draw = jax.random.normal(key, (AHEAD + 1, PARTICLES, len(mean)))
    z = mean + draw[0] @ jnp.linalg.cholesky(covariance + 1e-9 * jnp.eye(len(mean))).T
    noise = jnp.exp(params["log_noise"])

    def step(z: jax.Array, now: tuple) -> tuple[jax.Array, tuple]:
        push, noises = now
        z = jax.vmap(lambda x: move(params, x, push))(z) + noise * noises
        return z, summary(z)

    def summary(z: jax.Array) -> tuple[jax.Array, jax.Array]:
        expected, variance = jax.vmap(partial(emission, params, is_count))(z)
        return expected.mean(0), variance.mean(0) + expected.var(0)

    rows = jax.lax.scan(step, z, (u, draw[1:]))[1]
    return tuple(  # type: ignore
        jnp.concatenate([first[None], x]) for first, x in zip(summary(z), rows, strict=True)
    )
