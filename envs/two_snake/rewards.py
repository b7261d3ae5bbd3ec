"""The rewards of the game of two snakes."""

import jax
import jax.numpy as jnp
from flax import struct

from envs.snake.bitboard import Board, distance
from envs.two_snake.rules import LEARNER, Event, State, lives, of_others


@struct.dataclass
class Rewards:
    """Weights of the reward; the defaults are those of a published duel of 128 games at once.

    A won game of ten meals has a return of about 200 (ten times `food`, and `win`), an early death
    -50: for a network whose targets should be near 1, divide all by 50 or so.
    """

    step: float = 0.0
    """Every move of a living snake that neither eats nor dies."""
    food: float = 10.0
    """Eating; replaces `step` and `shaping`."""
    opponent_food: float = 0.0
    """Added when another eats, even after the learner's death."""
    death: float = -50.0
    """Dying; replaces `step` and `shaping`."""
    win: float = 100.0
    """Added to the step that wins the game."""
    lose: float = 0.0
    """Added to the step in which another wins."""
    draw: float = -10.0
    """Added to the step that ends the game without a winner, by the time limit or by deaths."""
    shaping: float = 0.1
    """Per cell (Manhattan distance) nearer to the food; neither eating nor dying."""


def reward(
    board: Board,
    weights: Rewards,
    before: State,
    after: State,
    event: Event,
    *,
    won: jax.Array,
    draw: jax.Array,
) -> jax.Array:
    """The learner's reward of one move, float32; `won` is bool `[P]`, one entry for each player.

    The distances are those to the food that lay there before the move.
    """
    heads = before.snakes.head[LEARNER], after.snakes.head[LEARNER]
    nearer = distance(board, heads[0], before.food) - distance(board, heads[1], before.food)
    shaping = jnp.where(before.food >= 0, weights.shaping * nearer.astype(jnp.float32), 0.0)
    base = jnp.where(event.ate[LEARNER], weights.food, weights.step + shaping)
    base = jnp.where(event.died[LEARNER], weights.death, base)
    base = jnp.where(lives(before)[LEARNER], base, 0.0)
    extras = (
        (of_others(event.ate, jnp.any), weights.opponent_food),
        (won[LEARNER], weights.win),
        (of_others(won, jnp.any), weights.lose),
        (draw, weights.draw),
    )
    return base + sum(jnp.where(happened, weight, 0.0) for happened, weight in extras)
