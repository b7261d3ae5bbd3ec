"""The rewards of Snake."""

import jax
import jax.numpy as jnp
from flax import struct

from envs.snake import bitboard, rules
from envs.snake.bitboard import Board, distance
from envs.snake.rules import Rules, State

CROWDED = 1
"""Free cells beside the head of a crowded snake, at most."""


@struct.dataclass
class Rewards:
    """Weights of the reward; the defaults are those of the 256-game system."""

    step: float = -0.01
    """Every move that neither eats nor kills."""
    food: float = 10.0
    """Eating; replaces `step` and `shaping`."""
    death: float = -10.0
    """Dying, and starving where that is a death; replaces `step` and all below but `timeout`."""
    win: float = 0.0
    """Filling the board; added to `food`. Only under rules in which a full board wins."""
    shaping: float = 0.5
    """Per cell nearer to the nearest food, over the longer side of the board; neither eating nor
    dying."""
    timeout: float = -5.0
    """Added to the last step when the time limit ends the episode."""
    length: float = 0.0
    """Times the length of the snake, added after every move that does not kill."""
    crowding: float = 0.0
    """Added after every move, unless it kills, that leaves one of the four cells beside the head
    free, or none."""
    entrapment: float = 0.0
    """Added to a move that neither eats nor kills after which the snake is softly entrapped."""
    entrapped_food: float = 0.0
    """Added to a meal after which the snake is softly entrapped."""


MODERN_REWARDS = Rewards(step=0.0, food=1.0, death=-1.0, win=1.0, shaping=0.0, timeout=0.0)

ENTRAPMENT_REWARDS = Rewards(entrapment=0.03, entrapped_food=-15.0)
"""Those of the 256-game system with soft entrapment: a step is worth 0.02 and a meal -5 in it."""


def cpu_rewards(rows: int, cols: int) -> Rewards:
    """Rewards of a published DQN for CPUs, which pays for length and against crowding.

    Coming a cell nearer to the food is worth 0.1 there, whatever the size of the board, and being
    alive 0.01, also in a step that eats.
    """
    return Rewards(
        step=0.01,
        food=10.01,
        death=-10.0,
        shaping=0.1 * max(rows, cols),
        timeout=0.0,
        length=0.01,
        crowding=-0.05,
    )


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
    crowded: jax.Array | bool,
    entrapped: jax.Array | bool,
) -> jax.Array:
    """The reward of one move, float32."""
    nearer = distance(board, before.head, before.food) - distance(board, after.head, after.food)
    shaping = weights.shaping * nearer.astype(jnp.float32) / rules.longer_side(board, after)
    move_reward = weights.step + jnp.where(before.food >= 0, shaping, 0.0)
    base = jnp.where(died, weights.death, jnp.where(ate, weights.food, move_reward))
    entrapment_reward = jnp.where(ate, weights.entrapped_food, weights.entrapment)
    survival_reward = weights.length * after.length.astype(jnp.float32)
    survival_reward = (
        survival_reward
        + jnp.where(crowded, weights.crowding, 0.0)
        + jnp.where(entrapped, entrapment_reward, 0.0)
    )
    base = base + jnp.where(died, 0.0, survival_reward)
    return base + jnp.where(won, weights.win, 0.0) + jnp.where(timed_out, weights.timeout, 0.0)


def is_crowded(board: Board, rules_: Rules, state: State) -> jax.Array:
    """Whether at most `CROWDED` of the four cells beside the head are free."""
    free = rules.free_cells(board, rules_, state)
    beside = state.head + jnp.array([1, -1, board.stride, -board.stride], jnp.int32)
    return jnp.sum(bitboard.contains(free, beside)) <= CROWDED
