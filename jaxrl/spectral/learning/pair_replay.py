"""A replay of random walks, from which pairs of states a geometric time apart are sampled.

A ring as in `jaxrl.replay.uniform`, of whole rollouts. Trajectories end with an episode and with
the rollout; no pair crosses such an end (`jaxrl.spectral.pairs` has the distribution of the pairs).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.replay import uniform
from jaxrl.spectral import pairs, reweighted
from jaxrl.types import PyTree


class Step(NamedTuple):
    """One remembered transition."""

    state: PyTree  # an index, or an observation
    next_state: PyTree
    left: jax.Array  # int32, transitions left in the trajectory, this one included
    ratio: Any = ()  # float32, log π/b of the action; () where pairs are not weighted
    cumulative: Any = ()  # float32, its sum since the trajectory began, this one included


def init(
    state: PyTree,
    capacity: int,
    num_envs: int,
    num_steps: int,
    weighted: bool = False,
    blocks: int = 1,
) -> uniform.Replay:
    """An empty ring for rollouts `[num_steps, num_envs]`, at least `capacity` transitions of them.

    `state` is an example of one. `weighted` for rollouts with ratios. Raises ValueError unless
    `blocks` divides `num_envs`.
    """
    rollouts = -(-capacity // (num_envs * num_steps))
    ratios = (jnp.zeros(()), jnp.zeros(())) if weighted else ()
    example = Step(state, state, jnp.zeros((), jnp.int32), *ratios)
    return uniform.init(example, rollouts * num_steps, num_envs, blocks)


def add(
    ring: uniform.Replay,
    state: PyTree,
    next_state: PyTree,
    done: jax.Array,
    ratio: jax.Array | None = None,
) -> uniform.Replay:
    """Adds a rollout to the ring: states `[T, N, ...]`, and where episodes ended `[T, N]`.

    `ratio` `[T, N]` for a ring that is weighted.
    """
    ratios = () if ratio is None else (ratio, reweighted.cumulative_ratio(done, ratio))
    return uniform.add(ring, Step(state, next_state, pairs.transitions_left(done), *ratios))


def sample_pairs(
    ring: uniform.Replay, key: jax.Array, batch: int, discount: float | jax.Array
) -> tuple[PyTree, PyTree]:
    """`(s, s')`, each `[batch, ...]`: s of any recorded transition, s' k transitions later.

    Draws, here and below, are by block: an equal part of them from the walks of each.
    """
    start_key, offset_key = jax.random.split(key)
    indices = uniform.draw(ring, start_key, batch)
    row, env = indices.row[0], indices.env
    state, left = uniform.take(ring, (ring.data.state, ring.data.left), row, env)
    last = _last_rows(ring, offset_key, row, left, discount)
    return state, uniform.take(ring, ring.data.next_state, last, env)


def weighted_pairs(
    ring: uniform.Replay,
    key: jax.Array,
    batch: int,
    discount: float | jax.Array,
    visit_ratio: jax.Array,
) -> tuple[PyTree, PyTree, jax.Array]:
    """The same pairs, and their weights `[batch]` for the walk of another policy.

    For `visit_ratio` `[S, T]` see `jaxrl.spectral.reweighted`.
    """
    start_key, offset_key = jax.random.split(key)
    indices = uniform.draw(ring, start_key, batch)
    row, env, data = indices.row[0], indices.env, ring.data
    state, left, first_ratio = uniform.take(ring, (data.state, data.left, data.ratio), row, env)
    last = _last_rows(ring, offset_key, row, left, discount)
    first_total, last_total = (uniform.take(ring, data.cumulative, at, env) for at in (row, last))
    weight = reweighted.pair_weights(
        first_total, last_total, first_ratio, visit_ratio[state, left - 1]
    )
    return state, uniform.take(ring, data.next_state, last, env), weight


def _last_rows(
    ring: uniform.Replay,
    key: jax.Array,
    row: jax.Array,
    left: jax.Array,
    discount: float | jax.Array,
) -> jax.Array:
    """The rows `[batch]` of the last transitions of pairs that begin with the transitions `row`."""
    offset = pairs.geometric(key, left, discount)
    return (row + offset - 1) % uniform.ring_shape(ring)[0]


def sample_states(ring: uniform.Replay, key: jax.Array, batch: int) -> PyTree:
    """States `[batch, ...]`, uniform over the recorded transitions that start in them."""
    indices = uniform.draw(ring, key, batch)
    return uniform.take(ring, ring.data.state, indices.row[0], indices.env)


def weighted_states(
    ring: uniform.Replay, key: jax.Array, batch: int, visit_ratio: jax.Array
) -> tuple[PyTree, jax.Array]:
    """The same states, and their weights `[batch]` as in `weighted_pairs`."""
    indices = uniform.draw(ring, key, batch)
    arrays = (ring.data.state, ring.data.left)
    state, left = uniform.take(ring, arrays, indices.row[0], indices.env)
    return state, visit_ratio[state, left - 1]


def visit_ratio(ring: uniform.Replay, num_states: int, num_steps: int) -> jax.Array:
    """How many times more often the other policy is in each state, `[S, T]`.

    `reweighted.visit_ratio` of all rollouts of `num_steps` T that a weighted ring holds, for states
    numbered below S: weights are of any of them, so that the newest alone would not do.
    """
    first, last = _number_states(ring, num_states)
    empty = reweighted.empty_walk(num_states + 1, num_steps)
    counts = reweighted.record(empty, first, last, ring.data.left <= 1, ring.data.ratio)
    return reweighted.visit_ratio(
        reweighted.WeightedCounts(
            counts.steps[:num_states, :num_states],
            counts.visits[:num_states],
            counts.starts[:num_states],
        )
    )


def law(ring: uniform.Replay, discount: float | jax.Array, num_states: int) -> jax.Array:
    """The distribution of sampled pairs `[S, S]`, for states numbered below S; it sums to 1."""
    first, last = _number_states(ring, num_states)
    counts = pairs.count(first, last, ring.data.left == 1, discount, num_states + 1)
    counts = counts[:num_states, :num_states]
    return counts / counts.sum()


def visits(ring: uniform.Replay, num_states: int) -> jax.Array:
    """How many recorded transitions left each state, int32 `[S]`, where states are numbers."""
    is_written = (ring.data.left > 0).astype(jnp.int32)
    return jnp.zeros(num_states, jnp.int32).at[ring.data.state].add(is_written)


def _number_states(ring: uniform.Replay, num_states: int) -> tuple[jax.Array, jax.Array]:
    """`(s, s')` of all rows, `[capacity, N]`; both are S where nothing was written.

    Such rows hold zeros, which is the number of a state.
    """
    is_written = ring.data.left > 0
    first = jnp.where(is_written, ring.data.state, num_states)
    return first, jnp.where(is_written, ring.data.next_state, num_states)
