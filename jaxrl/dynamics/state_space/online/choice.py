"""What the most likely of several state-space models says, with the parameters that it has.

Which one that is may be traced: all are computed, so a batch of learners may differ in it.

Letters: d dimensions of the state, m inputs, n channels, T steps, K steps ahead.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import block_diag

from jaxrl.dynamics import latent_scores
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.model_choice import likeliest_index, select
from jaxrl.dynamics.planning.predictive_model import PredictiveModel
from jaxrl.dynamics.state_space import channels, field_posterior
from jaxrl.dynamics.state_space.field_posterior import FieldPosterior
from jaxrl.dynamics.state_space.filter import Prediction, Record, clip_state, filter_states
from jaxrl.dynamics.state_space.model import Params, StateSpace, displacement, step
from jaxrl.dynamics.state_space.online.candidates import Candidate

Models = Sequence[StateSpace]


class Choice(NamedTuple):
    """Candidates, one of each model, and the one that counts."""

    candidates: tuple[Candidate, ...]
    place: jax.Array  # int32


def choose(candidates: Sequence[Candidate]) -> Choice:
    """The choice of the one of the largest marginal likelihood."""
    return Choice(tuple(candidates), likeliest_index([x.log_evidence for x in candidates]))


def evaluate_chosen(
    models: Models, choice: Choice, value: Callable[[StateSpace, Params], Any]
) -> Any:
    """`value(model, params)` of the one that counts; it must have the same shape for all."""
    pairs = zip(models, choice.candidates, strict=True)
    return select(choice.place, [value(model, x.posterior.params) for model, x in pairs])


def read_out(choice: Choice) -> tuple[jax.Array, jax.Array]:
    """C `[n, d]` and b `[n]`."""
    read_outs = [(x.posterior.params.matrix, x.posterior.params.offset) for x in choice.candidates]
    return select(choice.place, read_outs)


def nats(choice: Choice) -> jax.Array:
    """Nats gained about the field from all samples, a scalar."""
    return select(choice.place, [x.posterior.information for x in choice.candidates])


def displace(models: Models, choice: Choice, z: jax.Array) -> jax.Array:
    """f(z) `[..., d]`, what the field adds in a step, at `z` `[..., d]`."""

    def displace_one(model: StateSpace, params: Params) -> jax.Array:
        return jnp.vectorize(partial(displacement, model, params), signature="(d)->(d)")(z)

    return evaluate_chosen(models, choice, displace_one)


def covariance(models: Models, choice: Choice, z: jax.Array) -> jax.Array:
    """The covariance `[d, d]` of f(z) at `z` `[d]`."""

    def model_covariance(model: StateSpace, posterior: FieldPosterior) -> jax.Array:
        return field_posterior.predictive_covariance(model, posterior, z)

    pairs = zip(models, choice.candidates, strict=True)
    return select(choice.place, [model_covariance(model, x.posterior) for model, x in pairs])


def emission_mean(models: Models, choice: Choice, z: jax.Array) -> jax.Array:
    """The mean observation `[..., n]` at `z` `[..., d]`."""
    return evaluate_chosen(
        models, choice, lambda model, params: channels.mean(model.is_count, params, z)
    )


def beliefs(
    models: Models,
    prediction: Prediction,
    choice: Choice,
    obs: jax.Array,
    actions: jax.Array,
    observed: jax.Array | None = None,
) -> Belief:
    """The filtered states, `[T, d]` and `[T, d, d]`, along `obs` `[T, n]`, without learning.

    Each is followed by an action of `actions` `[T, m]`. `observed`, bool `[T, n]`, is false where
    `obs` is missing; None: everything was observed.
    """
    is_observed = jnp.ones(obs.shape, bool) if observed is None else observed
    record = Record(obs, actions, is_observed, jnp.ones(len(obs), bool))
    filter_record = lambda model, params: filter_states(model, params, record, prediction).belief
    return evaluate_chosen(models, choice, filter_record)


def forecast(
    models: Models,
    prediction: Prediction,
    choice: Choice,
    obs: jax.Array,
    actions: jax.Array,
    steps: int,
    observed: jax.Array | None = None,
) -> jax.Array:
    """Expected observations `[T, K + 1, n]` now and up to K = `steps` steps later.

    Along the path of the mean, which ends at `FARTHEST`; after the last action inputs are 0.
    Arguments as of `beliefs`.
    """
    means = beliefs(models, prediction, choice, obs, actions, observed).mean
    next_state = lambda z, u: evaluate_chosen(
        models, choice, lambda model, params: step(model, params, z, u)
    )
    move = lambda z, u: clip_state(next_state(z, u))
    mean = partial(emission_mean, models, choice)
    return latent_scores.forecasts(move, mean, means, actions, steps)


def predictive_model(models: Models, choice: Choice) -> PredictiveModel:
    """What plans are made with: the field of the one that counts.

    Its parameters are those of all in a row, of which only those of that one have an effect.
    """
    pairs = zip(models, choice.candidates, strict=True)
    each = [field_posterior.predictive_model(model, x.posterior) for model, x in pairs]
    if len(each) == 1:
        return each[0]

    def select_output(name: str) -> Any:
        return lambda *args: select(choice.place, [getattr(x, name)(*args) for x in each])

    def concatenate_designs(name: str) -> Any:
        def design(*args: jax.Array) -> jax.Array:
            parts = enumerate(getattr(x, name)(*args) for x in each)
            parts = [jnp.where(choice.place == i, part, 0.0) for i, part in parts]
            return jnp.concatenate(parts, axis=-1)

        return design

    same = ("step", "observation_information", "predictive_variance", "place", "remaining")
    return PredictiveModel(
        design=concatenate_designs("design"),
        input_design=concatenate_designs("input_design"),
        root=block_diag(*(x.root for x in each)),
        relative_noise=select(choice.place, [x.relative_noise for x in each]),
        **{name: select_output(name) for name in same},
    )
