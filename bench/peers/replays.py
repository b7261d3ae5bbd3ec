"""Adding to and sampling from a replay: `jaxrl.replay.uniform` beside the flat buffer of flashbax.

Ours is measured twice: with the same fields and the same pairs of neighbouring steps as flashbax,
and with what our DQN keeps, which has the true successor of every step. Adding alone is a loop so
short that the compiler joins all of it into one call where it has few enough arrays, and not where
it has two more; adding and sampling in turns is what a learner does.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bench.peers.timing import Contender
from jaxrl.losses import n_step
from jaxrl.replay import uniform
from jaxrl.types import Transition

OPERATIONS = ("add", "sample", "add and sample")


class Size(NamedTuple):
    """How large the replay is, and how much goes in and out of it."""

    num_envs: int  # transitions added at once
    capacity: int  # transitions
    batch: int  # transitions sampled at once
    obs: int  # numbers of one observation
    calls: int  # of each operation in one timed program


SIZES = {
    "small": Size(num_envs=10, capacity=10_000, batch=128, obs=4, calls=20_000),
    "large": Size(num_envs=64, capacity=640_000, batch=512, obs=64, calls=2_000),
}


class TimeStep(NamedTuple):
    """What PureJaxRL's DQN stores."""

    obs: jax.Array
    action: jax.Array
    reward: jax.Array
    done: jax.Array


class Parts(NamedTuple):
    """A replay of one library. A full ring, `add(ring, steps)`, `sample(ring, key) -> batch`."""

    full: Callable[[], Any]
    add: Callable[[Any, TimeStep], Any]
    sample: Callable[[Any, jax.Array], Any]


def comparisons(size: Size) -> Iterator[list[Contender]]:
    """flashbax first, for each of `OPERATIONS`. Raises ImportError without flashbax."""
    all_parts = {
        "flashbax": their_parts(size),
        "ours, same fields": our_parts(size),
        "ours, as in DQN": dqn_parts(size),
    }
    for operation in OPERATIONS:
        yield [
            contender(f"{operation}, {name}", operation, size, parts)
            for name, parts in all_parts.items()
        ]


def our_parts(size: Size) -> Parts:
    """The same steps, sampled in the same pairs of neighbours, `[2, B]`."""

    def add(ring: uniform.Replay, steps: TimeStep) -> uniform.Replay:
        return uniform.add(ring, jax.tree.map(lambda x: x[None], steps))

    def sample(ring: uniform.Replay, key: jax.Array) -> TimeStep:
        return uniform.sample(ring, key, size.batch, length=2, cross_episodes=True).data

    return Parts(lambda: full_ring(size, one_step(size)), add, sample)


def dqn_parts(size: Size) -> Parts:
    """Steps with their true successors, sampled one by one as our DQN does."""
    example = n_step.example(jnp.zeros(size.obs))

    def add(ring: uniform.Replay, steps: TimeStep) -> uniform.Replay:
        obs, action, reward, done = steps
        rollout = Transition(obs, action, reward, obs, done, jnp.zeros_like(done), ())
        return uniform.add(ring, jax.tree.map(lambda x: x[None], rollout))

    def sample(ring: uniform.Replay, key: jax.Array) -> n_step.Batch:
        return n_step.sample(ring, key, 1, size.batch, 1, 0.99)

    return Parts(lambda: full_ring(size, example), add, sample)


def full_ring(size: Size, example: Any) -> uniform.Replay:
    rows = uniform.rows_for(size.capacity, size.num_envs)
    return replace(uniform.init(example, rows, size.num_envs), size=jnp.int32(rows))


def their_parts(size: Size) -> Parts:
    buffer = import_module("flashbax").make_flat_buffer(
        max_length=size.capacity,
        min_length=size.batch,
        sample_batch_size=size.batch,
        add_sequences=False,
        add_batch_size=size.num_envs,
    )

    def full() -> Any:
        return buffer.init(one_step(size)).replace(is_full=jnp.bool_(True))

    return Parts(full, buffer.add, lambda ring, key: buffer.sample(ring, key).experience)


def steps_of(size: Size, number: jax.Array) -> TimeStep:
    """A step of all environments, `[N, ...]`: observation, action, reward, done."""
    env = number + jnp.arange(size.num_envs)
    obs = jnp.broadcast_to(env[:, None], (size.num_envs, size.obs)).astype(jnp.float32)
    return TimeStep(obs, env % 2, env * 1.0, env % 100 == 0)


def one_step(size: Size) -> TimeStep:
    """A step of one environment."""
    return jax.tree.map(lambda x: x[0], steps_of(size, jnp.int32(0)))


def contender(name: str, operation: str, size: Size, parts: Parts) -> Contender:
    """Many operations in one program.

    The sampled batch is carried from one to the next, so that it is written to memory as a learner
    would find it.
    """

    def one(carry: Any, number: jax.Array) -> tuple[Any, None]:
        ring, batch, key = carry
        key, sample_key = jax.random.split(key)
        if operation != "sample":
            ring = parts.add(ring, steps_of(size, number))
        if operation != "add":
            batch = parts.sample(ring, sample_key)
        return (ring, batch, key), None

    def run(carry: Any, key: jax.Array) -> tuple[Any, tuple, tuple]:
        ring, batch, _ = jax.lax.scan(one, (*carry, key), jnp.arange(size.calls))[0]
        return (ring, batch), (), ()

    def begin() -> Any:
        ring = parts.full()
        return ring, parts.sample(ring, jax.random.key(0))

    return Contender(name, run, begin)
