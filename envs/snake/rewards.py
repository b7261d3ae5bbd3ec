"""The rewards of Snake."""

import jax
import jax.numpy as jnp
from flax import struct

from envs.snake.bitboard import Board, distance
from envs.snake.rules import State


@struct.dataclass
class Rewards:
    """Weights of the reward; the defaults are those of the 256-game system."""

    step: float = -0.01
    """Every move that neither eats nor kills."""
    food: float = 10.0
    """Eating; replaces `step`."""
    death: float = -10.0
    """Dying, and starving where that is a death; replaces `step`."""
    win: float = 0.0
    """Filling the board; added to `food`. Only under rules in which a full board wins."""
    shaping: float = 0.5
    """Per cell nearer to the food, over the longer side of the board; neither eating nor dying."""
    timeout: float = -5.0
    """Added to the last step when the time limit ends the episode."""


MODERN_REWARDS = Rewards(step=0.0, food=1.0, death=-1.0, win=1.0, shaping=0.0, timeout=0.0)


def reward(
    board: Board,
    weights: Rewards,
    before: State,
    after: State,
    *,
    died: jax.Array,
    ate: jax.Array,
    won: jax.Array,
    timed_out: jax.Array,
) -> jax.Array:
    """The reward of one move, float32."""
    nearer = distance(board, before.head, before.food) - distance(board, after.head, after.food)
    shaping = weights.shaping * nearer.astype(jnp.float32) / max(board.rows, board.cols)
    moved = weights.step + jnp.where(before.food >= 0, shaping, 0.0)
    base = jnp.where(died, weights.death, jnp.where(ate, weights.food, moved))
    return base + jnp.where(won, weights.win, 0.0) + jnp.where(timed_out, weights.timeout, 0.0)
