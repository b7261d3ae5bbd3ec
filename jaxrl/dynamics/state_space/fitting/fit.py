"""A fit of a state-space model to recordings: Adam on random windows of them.

The nonlinear part of the field may join later than the others, but where the field is far from
linear a linear beginning calls its motion noise, and ends there. Letters: E episodes, T steps of
the longest, B windows of W steps.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct

from jaxrl.checks import Count, CountOrZero, Positive
from jaxrl.dynamics.state_space.filter import Record
from jaxrl.dynamics.state_space.fitting.objective import Objective, loss
from jaxrl.dynamics.state_space.model import Params, StateSpace


@struct.dataclass
class Config:
    """How it is done."""

    steps: Count = 400
    """Gradient steps, over which the learning rate falls to 0 by half a cosine."""
    linear_steps: CountOrZero = 0
    """The first of them, in which the field is linear and nothing is forecast."""
    windows: Count = struct.field(pytree_node=False, default=64)
    """B, windows in a gradient step."""
    window: Count = struct.field(pytree_node=False, default=64)
    """W, steps of each, or the longest episode if that is shorter."""
    learning_rate: Positive = 0.02
    """Of Adam."""
    clip: Positive = 1.0
    """Largest norm of a gradient."""
    objective: Objective = Objective()
    """What is minimised."""
    known: tuple[str, ...] = struct.field(pytree_node=False, default=())
    """Fields of `Params` that are known, such as matrix and offset: they stay as they are given."""


class Fit(NamedTuple):
    """A fit in progress."""

    params: Params
    opt_state: optax.OptState
    step: jax.Array  # int32, gradient steps so far


def _optimizer(config: Config) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(config.clip), optax.scale_by_adam())


def learning_rate(config: Config, step: jax.Array) -> jax.Array:
    """The learning rate of a gradient step; `config.steps` may be traced."""
    share = jnp.minimum(step / config.steps, 1.0)
    return config.learning_rate * 0.5 * (1 + jnp.cos(jnp.pi * share))


def init(config: Config, params: Params) -> Fit:
    """A fit that begins with `params`. Raises ValueError if what is known is no part of them."""
    if unknown := set(config.known) - set(Params._fields):
        raise ValueError(
            f"known has {', '.join(sorted(unknown))}; expected some of {', '.join(Params._fields)}"
        )
    return Fit(params, _optimizer(config).init(params), jnp.zeros((), jnp.int32))


def gradient_step(
    config: Config, model: StateSpace, fit: Fit, record: Record, key: jax.Array
) -> tuple[Fit, jax.Array]:
    """One step on windows of `record`, `[E, T]`; also the loss before it. Consumes `key`."""
    window_key, loss_key = jax.random.split(key)
    windows = sample_windows(record, config.window, config.windows, window_key)
    is_linear = fit.step < config.linear_steps
    weight = jnp.where(is_linear, 0.0, config.objective.ahead_weight)
    objective = config.objective.replace(ahead_weight=weight)  # pyright: ignore
    total = jnp.sum(record.observed)
    value, gradient = jax.value_and_grad(loss, argnums=2)(
        objective, model, fit.params, windows, total, loss_key
    )
    gradient = jax.tree.map(jnp.nan_to_num, gradient)
    gradient = gradient._replace(weights=jnp.where(is_linear, 0.0, gradient.weights))
    zero_gradients = {
        name: jax.tree.map(jnp.zeros_like, getattr(gradient, name)) for name in config.known
    }
    gradient = gradient._replace(**zero_gradients)
    change, opt_state = _optimizer(config).update(gradient, fit.opt_state)
    rate = learning_rate(config, fit.step)
    params = jax.tree.map(lambda x, change: x - rate * change, fit.params, change)
    return Fit(params, opt_state, fit.step + 1), value


def sample_windows(record: Record, length: int, count: int, key: jax.Array) -> Record:
    """`count` windows `[B, W]`, drawn uniformly from all there are in episodes `[E, T]`.

    An episode that is shorter is one window, with padding. Consumes `key`.
    """
    longest = record.y.shape[1]
    length = min(length, longest)
    starts = jnp.maximum(jnp.sum(record.valid, axis=1) - length + 1, 1)  # of each episode
    ends = jnp.cumsum(starts)
    window_index = jax.random.randint(key, (count, 1), 0, ends[-1])
    episode = jnp.searchsorted(ends, window_index, side="right")
    place = window_index - (ends - starts)[episode] + jnp.arange(length)[None]
    return jax.tree.map(lambda x: x[episode, place], record)
