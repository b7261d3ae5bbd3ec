"""Random network distillation (Burda et al. 2018): how new a state is.

A network learns online, from the states visited so far, what a fixed network of random weights
says of them. Where few states were visited it is wrong, so its error is the novelty of a state.
Axes: d latent dimensions, W width, k outputs, B states of a gradient step, R states remembered.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct

from jaxrl.checks import Count, Positive
from jaxrl.numerics.linalg import matmul


@struct.dataclass
class Config:
    """Two networks of one hidden layer with tanh."""

    width: Count = struct.field(pytree_node=False, default=32)
    """W, width of the hidden layer."""
    outputs: Count = struct.field(pytree_node=False, default=16)
    """k, numbers that are predicted."""
    learning_rate: Positive = 1e-2
    """Step size of Adam, a step a sample."""
    batch: Count = struct.field(pytree_node=False, default=16)
    """B, states of a gradient step: the newest, and others that are remembered."""
    remembered: Count = struct.field(pytree_node=False, default=1_000)
    """R, newest states that are remembered."""


class Network(NamedTuple):
    inner: jax.Array  # [d, W]
    bias: jax.Array  # [W]
    outer: jax.Array  # [W, k]


class State(NamedTuple):
    target: Network  # never changes
    params: Network
    opt_state: optax.OptState
    seen: jax.Array  # [R, d]
    count: jax.Array  # int32, states visited so far


def init(key: jax.Array, config: Config, dims: int) -> State:
    """Two networks drawn independently; consumes `key`."""
    target, params = (_draw_network(k, config, dims) for k in jax.random.split(key))
    opt_state = optax.adam(config.learning_rate).init(params)
    memory = jnp.zeros((config.remembered, dims))
    return State(target, params, opt_state, memory, jnp.zeros((), jnp.int32))


def novelty(state: State, z: jax.Array) -> jax.Array:
    """Mean squared error of the predictions of the k outputs: `[...]` at `z` `[..., d]`."""
    return _error(state.params, state.target, z)


def learn(config: Config, state: State, z: jax.Array, key: jax.Array) -> State:
    """Takes a step of Adam on the visited `z` `[d]` and on B - 1 states drawn from memory."""
    memory = state.seen.at[state.count % config.remembered].set(z)
    num_stored = jnp.minimum(state.count + 1, config.remembered)
    indices = jax.random.randint(key, (config.batch - 1,), 0, num_stored)
    batch = jnp.concatenate([z[None], memory[indices]])
    grads = jax.grad(lambda params: jnp.mean(_error(params, state.target, batch)))(state.params)
    changes, opt_state = optax.adam(config.learning_rate).update(grads, state.opt_state)
    params = optax.apply_updates(state.params, changes)
    return State(state.target, params, opt_state, memory, state.count + 1)  # type: ignore


def learn_path(config: Config, state: State, path: jax.Array, key: jax.Array) -> State:
    """Learns from visits to all of `path` `[T, d]`, in their order; consumes `key`."""

    def step(state: State, visit: tuple[jax.Array, jax.Array]):
        return learn(config, state, *visit), None

    return jax.lax.scan(step, state, (path, jax.random.split(key, len(path))))[0]


def novelty_of(state: State | tuple[()]) -> Callable[[jax.Array], jax.Array] | None:
    """`z -> novelty`; None where nothing is distilled."""
    return partial(novelty, state) if isinstance(state, State) else None


def outputs(network: Network, z: jax.Array) -> jax.Array:
    """tanh(z A + b) C: `[..., k]` of `z` `[..., d]`."""
    bias = network.bias.reshape((1,) * (z.ndim - 1) + (-1,))
    return matmul(jnp.tanh(matmul(z, network.inner) + bias), network.outer)


def _error(params: Network, target: Network, z: jax.Array) -> jax.Array:
    return jnp.mean((outputs(params, z) - outputs(target, z)) ** 2, axis=-1)


def _draw_network(key: jax.Array, config: Config, dims: int) -> Network:
    """Weights and biases N(0, 1), the outer ones N(0, 1 / W): outputs of order 1 that vary within
    a few units of the state."""
    inner, bias, outer = jax.random.split(key, 3)
    width = config.width
    return Network(
        jax.random.normal(inner, (dims, width)),
        jax.random.normal(bias, (width,)),
        jax.random.normal(outer, (width, config.outputs)) / width**0.5,
    )
