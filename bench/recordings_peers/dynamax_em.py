"""The linear-Gaussian state-space model of dynamax, fitted by its own expectation maximisation.

In float64, from principal components and from its own random start, of which the likelier counts.
It takes u_t to move the state to step t and to be seen there, so that it is given the inputs one
step late. It takes pieces of equal lengths, into which episodes are cut; what is left over at their
ends is not used. Its model with weak conjugate priors, by their defaults: without priors the M step
of 1.0.3 takes (Σ x xᵀ - Σ x Σ xᵀ) / N for the covariance of N first states, which is not positive
as soon as there are two episodes, and all becomes NaN.
"""

# pyright: reportMissingImports=false

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from dynamax.linear_gaussian_ssm import LinearGaussianConjugateSSM, lgssm_filter

from bench.recordings_peers.linear_forecasts import Filtered, LinearModel, gaussians
from bench.recordings_peers.problem import AHEAD, Fitted, Problem, choose
from bench.recordings_peers.scaling import Scaled, forecasts, scale
from jaxrl.dynamics import linear_gaussian
from train.vector_field.data.recordings import Data
from train.vector_field.recorded import baselines
from train.vector_field.recorded.prediction_scores import Forecaster, Forecasts, Starts

PIECE = 100
MORE_DIMS = (1, 2)
"""Latent dimensions that are tried, times those of the truth."""
SHORT, LONG = 12, 40
"""Iterations of a candidate, and of the model that is scored."""
STARTS = 2


class Settings(NamedTuple):
    dims: int
    roots: bool


def fit(problem: Problem) -> Fitted:
    """Chooses settings by short fits from one start; fits with them from `STARTS`."""
    choices = {
        "roots": (False, True) if problem.is_count.any() else (False,),
        "dims": [problem.dims * more for more in MORE_DIMS],
    }
    first = Settings(problem.dims, False)
    with jax.enable_x64(True):
        settings = choose(problem, first, choices, lambda p, s: fit_with(p, s, 1, SHORT)[0])
        forecaster, likelihoods = fit_with(problem, settings, STARTS, LONG)
    return Fitted(forecaster, {**settings._asdict(), "log_likelihoods": likelihoods})


def fit_with(
    problem: Problem, settings: Settings, starts: int, iterations: int
) -> tuple[Forecaster, list[float]]:
    """The likeliest model of these settings, and the log-likelihood from each start."""
    scaled = scale(problem, settings.roots)
    y, late_inputs = equal_pieces(scaled.training)
    system = LinearGaussianConjugateSSM(settings.dims, y.shape[-1], late_inputs.shape[-1])
    components = principal_components(scaled.training, settings.dims)
    fits = []
    for seed in range(starts):
        first = system.initialize(jax.random.key(seed), **(components if seed == 0 else {}))
        last, logs = system.fit_em(*first, y, late_inputs, iterations, verbose=False)
        fits.append((float(logs[-1]), last))
    likelihoods = [x for x, _ in fits]
    params = fits[int(np.argmax(np.nan_to_num(likelihoods, nan=-np.inf)))][1]
    return forecaster_of(params, scaled), likelihoods


def principal_components(training: Data, dims: int) -> dict[str, jax.Array]:
    """Arguments of dynamax' `initialize`: principal components and the regressions between them."""
    guess = _first_guess(baselines.as_episodes(training), dims)
    arrays = {
        "dynamics_weights": guess.transition,
        "dynamics_input_weights": guess.effect,
        "dynamics_covariance": guess.process,
        "emission_weights": guess.matrix,
        "emission_bias": guess.offset,
        "emission_covariance": jnp.diag(guess.noise),
    }
    return {name: jnp.asarray(x, float) for name, x in arrays.items()}


_first_guess = jax.jit(linear_gaussian.first_guess, static_argnames="dims")


def equal_pieces(data: Data) -> tuple[jax.Array, jax.Array]:
    """y `[B, PIECE, n]` and the inputs of the step before, `[B, PIECE, m]`."""
    late_inputs, y, u = delay(data.u), [], []
    for e, length in enumerate(data.lengths):
        for begin in range(0, int(length) - PIECE + 1, PIECE):
            y.append(data.y[e, begin : begin + PIECE])
            u.append(late_inputs[e, begin : begin + PIECE])
    return jnp.asarray(np.stack(y), float), jnp.asarray(np.stack(u), float)


def delay(u: np.ndarray) -> np.ndarray:
    """The inputs `[E, T, m]` one step later; none at first."""
    return np.pad(u[:, :-1], ((0, 0), (1, 0), (0, 0)))


def forecaster_of(params: Any, scaled: Scaled) -> Forecaster:
    """Forecasts of dynamax' parameters."""
    dynamics, emissions = params.dynamics, params.emissions
    model = LinearModel(
        np.asarray(dynamics.weights),
        np.asarray(dynamics.input_weights),
        np.asarray(dynamics.bias),
        np.asarray(dynamics.cov),
        np.asarray(emissions.weights),
        np.asarray(emissions.input_weights),
        np.asarray(emissions.bias),
        np.diag(np.asarray(emissions.cov)),
    )
    u = scaled.held_out.u
    late_inputs = delay(u)
    filtered = filter_states(params, model, scaled.held_out.y, u, late_inputs)

    def forecaster(starts: Starts) -> Forecasts:
        mean, variance = gaussians(model, filtered, u, late_inputs, starts, AHEAD)
        return forecasts(mean, variance, starts, scaled)

    return forecaster


def filter_states(
    params: Any, model: LinearModel, y: np.ndarray, u: np.ndarray, late_inputs: np.ndarray
) -> Filtered:
    """States by dynamax' filter; padding at the ends of episodes moves none before it."""
    run = jax.jit(jax.vmap(lambda y, u: lgssm_filter(params, y, u)))
    posterior = run(jnp.asarray(y, float), jnp.asarray(late_inputs, float))
    mean = np.asarray(posterior.filtered_means)
    covariance = np.asarray(posterior.filtered_covariances)
    next_mean = mean @ model.transition.T + u @ model.effect.T + model.drift
    next_covariance = model.transition @ covariance @ model.transition.T + model.process
    return Filtered(mean, covariance, next_mean, next_covariance)
