"""A replay of random walks, from which pairs of states a geometric time apart are sampled.

A ring as in `jaxrl.replay`, of whole rollouts. Trajectories end with an episode and with the
rollout; no pair crosses such an end (`jaxrl.spectral.pairs` has the distribution of the pairs).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl import replay
from jaxrl.spectral import pairs
from jaxrl.types import PyTree


class Step(NamedTuple):
    """One remembered transition."""

    state: PyTree  # an index, or an observation
    next_state: PyTree
    left: jax.Array  # int32, transitions left in the trajectory, this one included


def init(state: PyTree, capacity: int, num_envs: int, num_steps: int) -> replay.Replay:
    """An empty ring for rollouts `[num_steps, num_envs]`, at least `capacity` transitions of them.

    `state` is an example of one.
    """
    rollouts = -(-capacity // (num_envs * num_steps))
    example = Step(state, state, jnp.zeros((), jnp.int32))
    return replay.init(example, rollouts * num_steps, num_envs)


def add(ring: replay.Replay, state: PyTree, next_state: PyTree, done: jax.Array) -> replay.Replay:
    """Adds a rollout to the ring: states `[T, N, ...]`, and where episodes ended `[T, N]`."""
    return replay.add(ring, Step(state, next_state, pairs.remaining(done)))


def sample_pairs(
    ring: replay.Replay, key: jax.Array, batch: int, discount: float | jax.Array, blocks: int = 1
) -> tuple[PyTree, PyTree]:
    """`(s, s')`, each `[batch, ...]`: s of any recorded transition, s' k transitions later.

    Each of K blocks (`jaxrl.blocks`) draws an equal part from its own walks; results are by block.
    """
    start_key, offset_key = jax.random.split(key)
    indices = replay.draw(ring, start_key, batch, blocks=blocks)
    row, env = indices.row[0], indices.env
    state, left = replay.take((ring.data.state, ring.data.left), row, env, blocks)
    offset = pairs.geometric(offset_key, left, discount)
    last = (row + offset - 1) % replay.ring_shape(ring)[0]
    return state, replay.take(ring.data.next_state, last, env, blocks)


def sample_states(ring: replay.Replay, key: jax.Array, batch: int, blocks: int = 1) -> PyTree:
    """States `[batch, ...]`, uniform over the recorded transitions that start in them; by block."""
    indices = replay.draw(ring, key, batch, blocks=blocks)
    return replay.take(ring.data.state, indices.row[0], indices.env, blocks)


def law(ring: replay.Replay, discount: float | jax.Array, num_states: int) -> jax.Array:
    """The distribution of sampled pairs `[S, S]`, for states numbered below S; it sums to 1."""
    data, unseen = ring.data, num_states
    is_written = data.left > 0  # rows that nothing was written to hold zeros
    first, last = (jnp.where(is_written, x, unseen) for x in (data.state, data.next_state))
    counts = pairs.count(first, last, data.left == 1, discount, unseen + 1)[:unseen, :unseen]
    return counts / counts.sum()


def visits(ring: replay.Replay, num_states: int) -> jax.Array:
    """How many recorded transitions left each state, int32 `[S]`, where states are numbers."""
    is_written = (ring.data.left > 0).astype(jnp.int32)
    return jnp.zeros(num_states, jnp.int32).at[ring.data.state].add(is_written)
