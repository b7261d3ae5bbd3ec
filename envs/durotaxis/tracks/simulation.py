"""Colonies over frames by known laws of spawning, birth and death, all cells that ever lived kept.

`Durotaxis` lets every survivor have a child in every step, and forgets the dead; a microscope sees
cells that wait, and its record names them all. Where births are certain both grow alike. M slots
for all cells of a record, K covariates.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from envs.durotaxis import substrate
from envs.durotaxis.substrate import Law, Number
from envs.durotaxis.tracks import events, spawning
from envs.durotaxis.tracks.spawning import Spawning

NEVER = jnp.iinfo(jnp.int32).max


class Ground(NamedTuple):
    """The ground of a record, and the way to its goal."""

    law: Law
    field: Any  # float32 [H, W] measured stiffness instead of the law, or [0, 0]
    width: Number  # px
    height: Number  # px
    direction: Number = 0.0  # radians, of the goal, from x towards y

    def stiffness(self, x: Any, y: Any) -> Any:
        """The stiffness under points, px, in their shape."""
        return substrate.intensity(self.law, self.field, x, y, self.width, self.height)

    def place(self, x: Any, y: Any) -> Any:
        """How far points are on the way to the goal, px, in their shape: 0 at the farthest corner
        of the ground."""
        along_x, along_y = jnp.cos(self.direction), jnp.sin(self.direction)
        farthest = jnp.minimum(0, self.width * along_x) + jnp.minimum(0, self.height * along_y)
        return x * along_x + y * along_y - farthest


class Laws(NamedTuple):
    """What a colony does."""

    spawning: Spawning
    deaths: Any  # [K], see `events`
    births: Any  # [K], of survivors


class Register(NamedTuple):
    """All cells of a record, in the order of their births; slots beyond `count` hold none."""

    x: Any  # float32 [M] px
    y: Any  # float32 [M] px
    parent: Any  # int32 [M], -1 for founders
    first: Any  # int32 [M], frame of birth
    last: Any  # int32 [M], last frame alive; NEVER: alive at the end
    count: Any  # int32, cells; more than M: those beyond are missing


def simulate(
    key: jax.Array,
    laws: Laws,
    ground: Ground,
    x: Any,
    y: Any,
    num_founders: Any,
    frames: int,
    law: str = "directed",
) -> Register:
    """The cells of so many frames, from founders in the first slots of x and y `[M]`. Consumes key.

    `law` is that of spawning, `directed` or `isotropic`.
    """
    slot = jnp.arange(x.size, dtype=jnp.int32)
    nowhere = jnp.full(x.size, NEVER)
    start = Register(
        x, y, jnp.full(x.size, -1), jnp.where(slot < num_founders, 0, NEVER), nowhere, num_founders
    )

    def step(carry: tuple[jax.Array, Register], frame: jax.Array):
        key, frame_key = jax.random.split(carry[0])
        return (key, advance(frame_key, carry[1], frame, laws, ground, law)), None

    times = jnp.arange(frames - 1, dtype=jnp.int32)
    return jax.lax.scan(step, (key, start), times)[0][1]


def advance(
    key: jax.Array, register: Register, frame: jax.Array, laws: Laws, ground: Ground, law: str
) -> Register:
    """The register after `frame`: some die, and some of the others have a child. Consumes key."""
    death_key, birth_key, land_key = jax.random.split(key, 3)
    alive, size = is_alive(register, frame), register.x.size
    stiffness = ground.stiffness(register.x, register.y)
    place = ground.place(register.x, register.y)
    age = frame - register.first
    causes = events.covariates(alive, place, stiffness, age)
    chance = jax.nn.sigmoid(events.log_odds(laws.deaths, causes))
    dies = alive & (jax.random.uniform(death_key, (size,)) < chance)
    chance = jax.nn.sigmoid(events.log_odds(laws.births, causes))
    has_child = alive & ~dies & (jax.random.uniform(birth_key, (size,)) < chance)
    sides = ground.width, ground.height
    child_x, child_y = spawning.land(
        land_key, laws.spawning, law, register.x, register.y, stiffness, *sides
    )
    child = register.count + jnp.cumsum(has_child, dtype=jnp.int32) - 1
    child = jnp.where(has_child, child, size)  # out of range: dropped
    write = lambda values, new: values.at[child].set(new, mode="drop")
    return Register(
        x=write(register.x, child_x),
        y=write(register.y, child_y),
        parent=write(register.parent, jnp.arange(size, dtype=jnp.int32)),
        first=write(register.first, frame + 1),
        last=jnp.where(dies, frame, register.last),
        count=register.count + jnp.sum(has_child, dtype=jnp.int32),
    )


def is_alive(register: Register, frame: jax.Array) -> jax.Array:
    """The cells that live in a frame, bool `[M]`."""
    return (register.first <= frame) & (frame <= register.last)
