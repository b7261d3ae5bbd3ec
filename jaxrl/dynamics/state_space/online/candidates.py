"""A state-space model that learns from a stream of samples, and how likely it is.

Its marginal likelihood, by Laplace's approximation, is its posterior at the mode less the nats that
the samples told of the field: a field of more freedom fits better and pays for it (MacKay 1992).
So models of several kinds of fields can be compared while they learn side by side, each with the
prior of its weights that suits it (`weight_prior`).

Letters: d dimensions of the state, m inputs, n channels, R regressors, T samples.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.model_choice import likeliest_index
from jaxrl.dynamics.state_space import field_posterior, information, move
from jaxrl.dynamics.state_space.field_posterior import FieldPosterior, Prior
from jaxrl.dynamics.state_space.filter import (
    Prediction,
    Record,
    correct,
    filter_states,
    first_belief,
    predict,
)
from jaxrl.dynamics.state_space.fitting.initial_guess import initial_guess
from jaxrl.dynamics.state_space.model import Params, StateSpace, layers
from jaxrl.dynamics.state_space.online import coordinates
from jaxrl.dynamics.state_space.online.absorption import absorb
from jaxrl.dynamics.state_space.online.scoring import improve
from jaxrl.dynamics.state_space.online.weight_prior import likelier_deviation

UNFITTED = -1e30
"""Instead of the logarithm of a marginal likelihood: finite, but less likely than any fit."""


class Candidate(NamedTuple):
    """A model, and where its state is."""

    posterior: FieldPosterior  # with all parameters
    expected: Belief  # of the state at the next sample
    regressors: jax.Array  # [R] x of the last state and its input; 0 before the first
    log_evidence: jax.Array  # log p(samples at the last fit); `UNFITTED` before it
    deviation: jax.Array  # of the weights' prior, as the last fit learned it


def begin(model: StateSpace, prior: Prior, key: jax.Array) -> Candidate:
    """A candidate that knows nothing yet: its state stands still, seen by the first channels.

    A network of inputs draws its layers from `key`.
    """
    count, d = len(model.is_count), model.dims
    params = Params(
        transition=jnp.zeros((d, d)),
        drift=jnp.zeros(d),
        effect=jnp.zeros((d, model.num_inputs)),
        log_process=jnp.zeros(d),
        matrix=jnp.eye(count, d),
        offset=jnp.zeros(count),
        log_noise=jnp.zeros(count),
        first_mean=jnp.zeros(d),
        first_log_deviation=jnp.zeros(d),
        **layers(model, key),
    )
    no_information = information.zero_information(model, params)
    posterior = field_posterior.field_posterior(model, params, no_information, prior)
    posterior = posterior._replace(covariance=jnp.eye(d))
    rows = len(move.parameters(model, params).move)
    unfitted, deviation = (jnp.asarray(x, jnp.float32) for x in (UNFITTED, prior.weights))
    return Candidate(posterior, first_belief(params), jnp.zeros(rows), unfitted, deviation)


def add_sample(
    model: StateSpace,
    candidate: Candidate,
    sample: Record,
    prediction: Prediction,
) -> Candidate:
    """The candidate after one more sample: `y` `[n]`, then the input `u` `[m]`."""
    y, u, observed, _ = sample
    before = candidate.expected
    belief, _ = correct(model, candidate.posterior.params, before, y, observed)
    posterior = absorb(model, candidate.posterior, candidate.regressors, before, belief, observed)
    expected, _ = predict(model, posterior.params, belief, u, prediction)
    regressors = move.regressors(model, posterior.params, belief.mean, u)
    return candidate._replace(posterior=posterior, expected=expected, regressors=regressors)


def refit(
    model: StateSpace,
    candidate: Candidate,
    record: Record,
    steps: jax.Array,
    prior: Prior,
    prediction: Prediction,
    key: jax.Array,
) -> Candidate:
    """The likelier one of two fits to all samples `[T]`: from a guess, and from where it is.

    `steps`, int32 `[2]`, are how many steps of scoring each takes; one of 0 is left out. Consumes
    `key`.
    """
    episodes = jax.tree.map(lambda x: x[None], record)
    guess = initial_guess(model, episodes, key)
    starts = jax.tree.map(lambda *x: jnp.stack(x), guess, candidate.posterior.params)
    deviations = jnp.stack([jnp.asarray(prior.weights, jnp.float32), candidate.deviation])

    def fit_from(start: tuple[Params, jax.Array, jax.Array]) -> Candidate:
        params, steps, deviation = start
        settings = prior.replace(weights=deviation), prediction  # pyright: ignore
        return fit(model, params, record, steps, *settings)

    fits = jax.lax.map(fit_from, (starts, steps, deviations))
    place = likeliest_index(fits.log_evidence)
    return jax.tree.map(lambda x: x[place], fits)


def fit(
    model: StateSpace,
    params: Params,
    record: Record,
    steps: jax.Array | int,
    prior: Prior,
    prediction: Prediction,
) -> Candidate:
    """A candidate after so many steps of scoring from `params` on all samples `[T]`.

    States are standardised first, and at the end the prior of the weights moves to where it makes
    the samples likelier. Without steps its marginal likelihood is `UNFITTED`.
    """
    means = filter_states(model, params, record, prediction).belief.mean
    deviations = field_posterior.prior_deviations(model, params, prior)[model.dims :]
    deviations = deviations.reshape(-1, model.dims)
    params = coordinates.standardise(model, params, means, record.valid, deviations)

    def advance(_, carry: tuple) -> tuple:
        params, _, _ = carry
        return improve(model, params, record, prior, prediction)[:3]

    start = (params, information.zero_information(model, params), jnp.asarray(UNFITTED))
    params, last_information, log_posterior = jax.lax.fori_loop(0, steps, advance, start)
    posterior = field_posterior.field_posterior(model, params, last_information, prior)
    deviation = likelier_deviation(posterior, jnp.asarray(prior.weights))
    # Of the logarithm of the prior only the term of the weights changes with their deviation.
    penalty = lambda deviation: 0.5 * jnp.sum((params.weights / deviation) ** 2)
    log_posterior = log_posterior + penalty(prior.weights) - penalty(deviation)
    prior = prior.replace(weights=deviation)  # pyright: ignore
    posterior = field_posterior.field_posterior(model, params, last_information, prior)
    beliefs = filter_states(model, params, record, prediction).belief
    last = jnp.maximum(jnp.sum(record.valid) - 1, 0)
    belief, u = jax.tree.map(lambda x: x[last], (beliefs, record.u))
    expected, _ = predict(model, params, belief, u, prediction)
    regressors = move.regressors(model, params, belief.mean, u)
    return Candidate(
        posterior, expected, regressors, log_posterior - posterior.information, deviation
    )
