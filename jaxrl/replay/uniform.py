"""Uniform experience replay: one ring of rows `[capacity, N, ...]` and pure functions on it.

A row is one step of all N environments, so consecutive rows are consecutive in time and single
transitions, n-step targets and trajectories are views of the same ring. The stored pytree may be
any; windows of several steps that stay within an episode need one with the boolean attributes
`terminated` and `truncated`, such as `jaxrl.types.Transition`.

Capacity and size are counted in rows; `rows_for` converts a number of transitions. Donate the
state that holds the ring (`jax.jit(..., donate_argnums=0)`), or every call copies all of it.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl import blocks as in_blocks
from jaxrl.types import PyTree


@struct.dataclass
class Replay:
    """The ring. Rows `head - size .. head - 1`, modulo capacity, hold experience, oldest first.

    Draws take an equal part of each block of its columns and are by block (`jaxrl.blocks`).
    """

    data: Any  # [capacity, N, ...]
    head: jax.Array  # int32; the row written next
    size: jax.Array  # int32; rows written, at most capacity
    blocks: int = struct.field(pytree_node=False, default=1)


class Indices(NamedTuple):
    """Indices of the steps of B windows in the ring."""

    row: jax.Array  # [L, B] int32
    env: jax.Array  # [B] int32
    mask: jax.Array  # [L, B] bool; False where the row only repeats the window's last step


class Window(NamedTuple):
    """L consecutive steps of each of B episodes."""

    data: Any  # [L, B, ...]
    mask: jax.Array  # [L, B] bool; False where the step only repeats the window's last one


def rows_for(transitions: int, num_envs: int) -> int:
    """Rows needed to hold at least `transitions` of `num_envs` environments."""
    return -(-transitions // num_envs)


def init(example: PyTree, capacity: int, num_envs: int, blocks: int = 1) -> Replay:
    """An empty ring of `capacity` rows; `example` is what one environment stores in one step.

    Filled with zeros, so that a sample drawn before anything is written is at least finite. Raises
    ValueError for sizes out of range, and unless `blocks` divides `num_envs`.
    """
    if capacity < 1 or num_envs < 1:
        raise ValueError(
            f"replay needs at least one row and one environment, got capacity {capacity} rows "
            f"and {num_envs} environments: raise the one below 1"
        )
    if capacity * num_envs >= 2**31:
        raise ValueError(
            f"replay counts transitions in 32 bits, got {capacity} rows of {num_envs} "
            f"environments: use fewer than {2**31 // num_envs} rows"
        )
    in_blocks.check(num_envs, blocks)
    blank = lambda x: jnp.zeros((capacity, num_envs, *jnp.shape(x)), jnp.result_type(x))
    data = jax.tree.map(blank, example)
    return Replay(data, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32), blocks)


def add(replay: Replay, rollout: PyTree) -> Replay:
    """Writes a rollout `[T, N, ...]` over the oldest rows; any T up to the capacity.

    Raises ValueError, when traced, for a longer one and for rows that are not like the ring's.
    """
    check_rollout(replay, rollout)
    capacity = ring_shape(replay)[0]
    length = jax.tree.leaves(rollout)[0].shape[0]
    rows = (replay.head + jnp.arange(length)) % capacity  # [T]

    def write(ring: jax.Array, new: jax.Array) -> jax.Array:
        # Measured as fast as dynamic_update_slice, in place when donated, and it may wrap.
        return ring.at[rows].set(new, mode="promise_in_bounds", unique_indices=True)

    return replace(
        replay,
        data=jax.tree.map(write, replay.data, rollout),
        head=(replay.head + length) % capacity,
        size=jnp.minimum(replay.size + length, capacity),
    )


def end_episodes(replay: Replay) -> Replay:
    """The ring with its newest step marked as truncated, unless it is terminal.

    For experience that does not go on where it ended: no window then joins the two. A ring whose
    steps have no `truncated` stays as it is.
    """
    if not hasattr(replay.data, "truncated"):
        return replay
    newest = row_of(replay, replay.size - 1)
    data = replay.data
    truncated = data.truncated.at[newest].set(~data.terminated[newest])
    is_named_tuple = hasattr(data, "_replace")
    change = data._replace if is_named_tuple else partial(replace, data)
    return replace(replay, data=change(truncated=truncated))


def sample(
    replay: Replay,
    key: jax.Array,
    batch: int,
    length: int = 1,
    cross_episodes: bool = False,
) -> Window:
    """`batch` windows of `length` steps, uniform over the starts `draw` allows. Consumes `key`.

    For the minibatches of many updates, sample them all with one call and reshape. Raises as `draw`
    does.
    """
    indices = draw(replay, key, batch, length, cross_episodes)
    return Window(take(replay, replay.data, indices.row, indices.env), indices.mask)


def draw(
    replay: Replay,
    key: jax.Array,
    batch: int,
    length: int = 1,
    cross_episodes: bool = False,
) -> Indices:
    """The indices of `batch` windows `[L, B]`, independent and uniform over all valid starts.

    A start is valid when `length - 1` rows follow it before the write head, so no window joins
    the newest experience to the oldest. A window that reaches the end of its episode repeats that
    step, with mask False; with `cross_episodes` it continues into the next episode instead. With
    fewer than `length` rows written, windows start at the oldest row and repeat the newest.

    With an equal part drawn in each block that is uniform over all valid starts, too: blocks are
    equal, and rows are written to all of them.

    Raises ValueError for windows longer than the ring, and unless blocks divide the batch; and
    TypeError for windows of several steps that do not cross episodes, of a replay that does not
    store where these end.
    """
    capacity, _ = ring_shape(replay)
    if not 1 <= length <= capacity:
        raise ValueError(
            f"windows of {length} steps from a replay of {capacity} rows: "
            f"ask for 1 to {capacity} steps or make the replay larger"
        )
    starts = jnp.maximum(replay.size - length + 1, 1)
    age, env = _draw_starts(replay, key, batch, starts)  # [B]
    offset = jnp.arange(length)[:, None]  # [L, 1]
    last = jnp.broadcast_to(jnp.minimum(length, replay.size) - 1, (1, batch))
    if length > 1 and not cross_episodes:
        last = jnp.minimum(last, first_end(replay, row_of(replay, age[None] + offset), env))
    row = row_of(replay, age[None] + jnp.clip(offset, 0, jnp.maximum(last, 0)))
    return Indices(row, env, offset <= last)


def _draw_starts(
    replay: Replay, key: jax.Array, batch: int, num_rows: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """`(age [B], env [B])`, int32: uniform among the `num_rows` oldest rows. Consumes `key`."""
    num_envs, blocks = ring_shape(replay)[1], replay.blocks
    in_blocks.check_draws(num_envs, batch, blocks)
    width = num_envs // blocks
    age, env = jnp.divmod(jax.random.randint(key, (batch,), 0, num_rows * width), width)
    return age, env if blocks == 1 else env + in_blocks.block_starts(batch, num_envs, blocks)


def first_end(replay: Replay, row: jax.Array, env: jax.Array) -> jax.Array:
    """`[1, B]` the first step of the windows `row [L, B]` that ends an episode, else L - 1.

    Raises TypeError for a replay that does not store where episodes end.
    """
    try:
        endings = (replay.data.terminated, replay.data.truncated)
    except AttributeError as error:
        raise TypeError(
            f"the replay stores a {type(replay.data).__name__}, which does not say where episodes "
            "end: store a NamedTuple with terminated and truncated, or use cross_episodes=True"
        ) from error
    terminated, truncated = take(replay, endings, row, env)
    steps_before = jnp.cumprod(
        ~jnp.logical_or(terminated, truncated), axis=0
    )  # 1 up to the first end
    return jnp.minimum(jnp.sum(steps_before, axis=0, keepdims=True), row.shape[0] - 1)


def take(replay: Replay, data: PyTree, row: jax.Array, env: jax.Array) -> PyTree:
    """The steps at `row [..., B]` of environments `env [B]`, by block: leaves `[..., B, ...]`.

    `data` is the replay's or any part of it, so that a learner may fetch the observations of some
    steps of a window and the rewards of all.
    """
    env = jnp.broadcast_to(env, row.shape)
    return jax.tree.map(lambda x: in_blocks.take(x, (row, env), 1, replay.blocks), data)


def row_of(replay: Replay, age: jax.Array) -> jax.Array:
    """The row that lies `age` rows after the oldest one."""
    return (replay.head - replay.size + age) % ring_shape(replay)[0]


def ring_shape(replay: Replay) -> tuple[int, int]:
    """`(capacity in rows, N)`."""
    capacity, num_envs, *_ = jax.tree.leaves(replay.data)[0].shape
    return capacity, num_envs


def check_rollout(replay: Replay, rollout: PyTree) -> None:
    """Raises ValueError, when traced, unless the rollout's rows are like the ring's and fit."""
    if (stored := jax.tree.structure(replay.data)) != (added := jax.tree.structure(rollout)):
        raise ValueError(f"replay stores {stored}, the rollout is {added}: store what init saw")
    capacity, num_envs = ring_shape(replay)
    for (path, ring), new in zip(
        jax.tree.leaves_with_path(replay.data), jax.tree.leaves(rollout), strict=True
    ):
        name = jax.tree_util.keystr(path)
        if len(new.shape) > 1 and new.shape[1] != num_envs:
            raise ValueError(
                f"the replay is for {num_envs} environments, the rollout has {new.shape[1]}: make "
                f"the replay for {new.shape[1]} environments, that of an agent by "
                f"num_envs={new.shape[1]}"
            )
        if new.shape[1:] != ring.shape[1:] or new.dtype != ring.dtype:
            raise ValueError(
                f"replay{name} holds rows {ring.dtype}{list(ring.shape[1:])}, the rollout brings "
                f"{new.dtype}{list(new.shape[1:])}: make the replay for such rows"
            )
        if new.shape[0] > capacity:
            raise ValueError(
                f"a rollout of {new.shape[0]} steps does not fit a replay of {capacity} rows "
                f"({capacity * num_envs} transitions): shorten the one or enlarge the other"
            )
