"""Minibatches of n-step transitions from a ring of `jaxrl.replay.uniform`."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl import blocks as in_blocks
from jaxrl.losses import returns
from jaxrl.replay import uniform
from jaxrl.types import PyTree, Transition


class Batch(NamedTuple):
    """Minibatches `[M, B, ...]` ready for a loss, or one of them `[B, ...]`.

    Its target is `return_ + discount * V(next_obs)`.
    """

    obs: Any
    action: jax.Array  # as the ring holds it: int32, or a vector of real numbers
    return_: jax.Array  # rewards of the next n steps, discounted and summed
    discount: jax.Array  # γⁿ multiplied out, for V(next_obs); 0 where the episode terminated
    next_obs: Any  # the true successor n steps on, or where the episode ended before
    weight: jax.Array | None = None  # of each error in the loss; None: all 1


def example(obs: PyTree) -> Transition:
    """An example transition to size a replay, for an agent whose `act` returns no extras."""
    flag = jnp.zeros((), bool)
    return Transition(obs, jnp.zeros((), jnp.int32), jnp.zeros(()), obs, flag, flag, ())


def sample(
    ring: uniform.Replay,
    key: jax.Array,
    num_batches: int,
    batch_size: int,
    n_step: int,
    discount: float | jax.Array,
) -> Batch:
    """M = `num_batches` uniform minibatches, `[M, B, ...]`, in one gather. Consumes `key`.

    Every block of the ring has an equal part of each.
    """
    # Windows may cross the end of an episode: n-step returns ignore what follows it.
    size = num_batches * batch_size
    indices = uniform.draw(ring, key, size, n_step, cross_episodes=True)
    batch = gather(ring, indices.row[0], indices.env, n_step, discount)
    return in_blocks.deal(in_blocks.BlockBatch(batch, ring.blocks), num_batches)


def gather(
    ring: uniform.Replay,
    row: jax.Array,
    env: jax.Array,
    n_step: int,
    discount: float | jax.Array,
) -> Batch:
    """The transitions that start at `row [B]`, `env [B]` and last n steps: `[B, ...]`."""
    data = ring.data
    rows = (row[None] + jnp.arange(n_step)[:, None]) % uniform.ring_shape(ring)[0]  # [n, B]
    rewards_and_endings = (data.reward, data.terminated, data.truncated)
    reward, terminated, truncated = uniform.take(ring, rewards_and_endings, rows, env)
    steps = returns.n_step(reward, terminated, truncated, discount)
    obs, action = uniform.take(ring, (data.obs, data.action), row, env)
    last_row = jnp.take_along_axis(rows, steps.last[None], axis=0)[0]
    next_obs = uniform.take(ring, data.next_obs, last_row, env)
    return Batch(obs, action, steps.return_, steps.discount, next_obs)
