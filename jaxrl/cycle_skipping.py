"""Games that go round in circles, brought to their end at once.

Where neither the player nor the game draws random numbers, a position that comes back comes back
for ever, until a clock ends the game. What happens in one round is then known of all rounds, and
they can be left out: clocks, return and length are moved on by as many whole rounds as fit before
the clock matters, and the rest of the game is played. So the episode is the same as without.

An environment takes part by two methods: `position(state, params) -> (position, ahead)`, where the
position decides all that follows and `ahead` is the number of steps until a clock may end the
game, and `advance_clocks(state, steps) -> state`, which moves its clocks on.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.acting import EpisodeSums, World
from jaxrl.types import Environment, PyTree, where_tree

WINDOW = 128
"""Steps for which a position is remembered: longer rounds are not seen."""


class Anchor(NamedTuple):
    """A position of each environment that may come back.

    All that was between two of its visits then happens again, step by step, so that leaving out
    whole rounds is exact.
    """

    position: PyTree  # [N, ...]
    episode: EpisodeSums  # as it was then; a length of -1 never comes back


def takes_part(env: Environment, env_params: PyTree, state: PyTree) -> bool:
    """Whether the environment, with the states `[N, ...]`, has positions that may come back."""
    position_of = getattr(env, "position", None)
    if position_of is None:
        return False
    first_state = jax.tree.map(lambda x: x[0], state)
    return position_of(first_state, env_params) is not None


def make_anchor(env: Any, env_params: PyTree, world: World) -> Anchor:
    """The present positions."""
    position, _ = jax.vmap(env.position, in_axes=(0, None))(world.env, env_params)
    return Anchor((position, world.memory), world.episode)


def leap(
    env: Any, env_params: PyTree, world: World, anchor: Anchor, step: jax.Array
) -> tuple[World, Anchor]:
    """Moves environments whose position came back on, and renews old anchors.

    `step` is the number of steps taken since the start. Call it after each step.
    """
    position, ahead = jax.vmap(env.position, in_axes=(0, None))(world.env, env_params)
    current = Anchor((position, world.memory), world.episode)
    ended = current.episode.length == 0  # the position of the game before must not be met again
    period = current.episode.length - anchor.episode.length
    came_back = (period > 0) & (anchor.episode.length >= 0) & ~ended
    for x, y in zip(
        jax.tree.leaves(anchor.position), jax.tree.leaves(current.position), strict=True
    ):
        came_back &= jnp.all((x == y).reshape(len(came_back), -1), axis=1)
    rounds = jnp.where(came_back, jnp.maximum(ahead - 1, 0) // jnp.maximum(period, 1), 0)
    extrapolate = lambda total, before: total + rounds * (total - before)
    episode = jax.tree.map(extrapolate, current.episode, anchor.episode)
    env_state = jax.vmap(env.advance_clocks)(world.env, rounds * period)
    next_world = world._replace(env=env_state, episode=episode)
    length = jnp.where(came_back | ended, -1, anchor.episode.length)
    anchor = anchor._replace(episode=anchor.episode._replace(length=length))
    current = current._replace(episode=episode)
    return next_world, where_tree((step % WINDOW == 0) & ~came_back, current, anchor)
