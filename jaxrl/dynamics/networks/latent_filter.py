"""Filtering and forecasting with a `SequenceVAE`: its latent state given the observations so far.

Axes: d latent dimensions, m inputs, n channels, T steps, W steps of a window, K steps ahead.
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp

from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.latent_scores import forecasts
from jaxrl.dynamics.networks.latent import SequenceVAE, Window
from jaxrl.dynamics.planning.stimulation import Constants
from jaxrl.types import PyTree

Kind = Literal["carry", "window", "predict"]
"""How the state is estimated: from the recognition network's carry; by filtering the newest window
again; or, for comparison, by the dynamics alone after the first observation."""


def start(kind: Kind, model: SequenceVAE, window: int, num_inputs: int) -> Any:
    """The filter's memory before the first observation; W = `window`."""
    if kind == "window":
        w, n = window, model.decoder.channels
        return Window(jnp.zeros((w, n)), jnp.zeros((w, num_inputs)), jnp.zeros(w, bool))
    if kind == "predict":
        return jnp.zeros(model.latent), jnp.zeros((), bool)
    return model.initial_carry()


def step(
    kind: Kind,
    model: SequenceVAE,
    params: PyTree,
    constants: Constants,
    memory: Any,
    before: jax.Array,
    obs: jax.Array,
) -> tuple[Any, Belief]:
    """The memory after an observation `[n]` that followed the input `before` `[m]`, and the belief.

    `memory` is from `start` or from the last call.
    """
    if kind == "window":
        y, u = (
            jnp.concatenate([x[1:], new[None]])
            for x, new in zip(memory[:2], (obs, before), strict=True)
        )
        window = Window(y, u, jnp.append(memory.valid[1:], True))
        _, belief = model.encode(params, model.initial_carry(), window)
        return window, _diagonal(belief.mean[-1], belief.variance[-1])
    if kind == "predict":
        z, started = memory
        _, first, variance = model.step(params, model.initial_carry(), obs, before)
        z = jnp.where(started, next_state(model, params, constants, before, z), first)
        return (z, jnp.ones((), bool)), _diagonal(z, variance)
    carry, mean, variance = model.step(params, memory, obs, before)
    return carry, _diagonal(mean, variance)


def _diagonal(mean: jax.Array, variance: jax.Array) -> Belief:
    return Belief(mean, jnp.diag(variance))


def next_state(
    model: SequenceVAE, params: PyTree, constants: Constants, u: jax.Array, z: jax.Array
) -> jax.Array:
    """The expected next state `[d]` after `z` `[d]` with the input `u` `[m]`."""
    return z + constants.dt * (model.velocity(params, z) + model.push(params, u, z))


def forecast(
    model: SequenceVAE,
    params: PyTree,
    constants: Constants,
    obs: jax.Array,
    actions: jax.Array,
    steps: int,
    observed: jax.Array | None = None,
) -> jax.Array:
    """Expected observations `[T, K + 1, n]` now and up to K = `steps` steps later.

    The state is filtered along `obs` `[T, n]`, each followed by an action of `actions` `[T, m]`,
    without learning. After the last action inputs are 0. `observed`, bool `[T, n]`, is false where
    `obs` is missing; None: everything was observed.
    """
    move = lambda z, u: next_state(model, params, constants, u, z)
    emission_mean = lambda z: model.emission(params, z)[0]
    means = beliefs(model, params, constants, obs, actions, observed).mean
    return forecasts(move, emission_mean, means, actions, steps)


def beliefs(
    model: SequenceVAE,
    params: PyTree,
    constants: Constants,
    obs: jax.Array,
    actions: jax.Array,
    observed: jax.Array | None = None,
) -> Belief:
    """The filtered states, `[T, d]` and `[T, d, d]`, along `obs`; arguments as of `forecast`."""
    before = jnp.concatenate([jnp.zeros((1, actions.shape[1])), actions[:-1]])
    window = Window(obs, before, jnp.ones(len(obs), bool), observed)
    mean, variance = model.encode(params, model.initial_carry(), window, constants.dt)[1]
    return jax.vmap(_diagonal)(mean, variance)
