"""A game of two snakes as arrays to draw, as `envs.snake.pictures.frames` has those of one.

Axis letters: M moments of a game, C cells of the board, row by row.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from envs.snake import bitboard
from envs.snake.bitboard import Board
from envs.snake.pictures.frames import body_arrays, number_of
from envs.two_snake import views
from envs.two_snake.rules import LEARNER, OTHER, State

OWN_LAND, OTHER_LAND = 1, 2


def game_arrays(board: Board, states: State) -> dict[str, np.ndarray]:
    """The game `states` `[M, ...]`: both snakes, food, meals `[M, 2]`, and who is near what.

    `own_head`, `own_heading` and `own_entered` are those of
    `envs.snake.pictures.frames.body_arrays`, and so are the other's; the head of a dead snake is
    -1. `land` is uint8 `[M, C]`: `OWN_LAND` where an empty cell is fewer moves away from the own
    head than from the other's, `OTHER_LAND` where more, 0 elsewhere, and after a death.
    """
    frames = {
        "food": number_of(board, states.food),
        "score": np.asarray(states.score),
        "land": np.asarray(_land(board, jax.tree.map(jnp.asarray, states))),
    }
    for player, name in ((LEARNER, "own"), (OTHER, "other")):
        body = jax.tree.map(lambda x, p=player: np.asarray(x)[:, p], states.snakes)
        frames |= {f"{name}_{part}": x for part, x in body_arrays(board, body).items()}
    return frames


@partial(jax.jit, static_argnums=0)
def _land(board: Board, states: State) -> jax.Array:
    """uint8 `[M, C]`, see `game_arrays`."""
    cells = jnp.asarray(board.indices)

    def state_land(state: State) -> jax.Array:
        view = views.both_views(state)
        land = jax.vmap(partial(views.territory, board))(view)  # words [2]
        is_inside = jax.vmap(bitboard.contains, (0, None))(land, cells)  # [2, C]
        land = OWN_LAND * is_inside[LEARNER] + OTHER_LAND * is_inside[OTHER]
        return jnp.where(jnp.all(view.lives), land, 0).astype(jnp.uint8)

    return jax.lax.map(state_land, states, batch_size=256)
