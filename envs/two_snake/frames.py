"""A game of two snakes as arrays to draw, as `envs.snake.pictures.frames` has those of one.

Axis letters: M moments of a game, P snakes, C cells of the board, row by row.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from envs.snake import bitboard
from envs.snake.bitboard import Board
from envs.snake.pictures.frames import body_arrays, number_of
from envs.two_snake import views
from envs.two_snake.rules import State

OWN_LAND, OTHER_LAND = 1, 2
NAMES = ("own", "other", "third", "fourth")


def game_arrays(board: Board, states: State) -> dict[str, np.ndarray]:
    """The game `states` `[M, ...]`: all snakes, food, meals `[M, P]`, and who is near what.

    `own_head`, `own_heading` and `own_entered` are those of
    `envs.snake.pictures.frames.body_arrays`, and so are those of `other`, and of `third` and
    `fourth` where there are such; the head of a dead snake is -1. `land` is uint8 `[M, C]`:
    `OWN_LAND` where an empty cell is fewer moves away from the own head than from all others,
    `OTHER_LAND` where that holds of another, 0 elsewhere, and after a death.
    """
    frames = {
        "food": number_of(board, states.food),
        "score": np.asarray(states.score),
        "land": np.asarray(_land(board, jax.tree.map(jnp.asarray, states))),
    }
    for player, name in enumerate(NAMES[: np.shape(states.score)[1]]):
        body = jax.tree.map(lambda x, p=player: np.asarray(x)[:, p], states.snakes)
        frames |= {f"{name}_{part}": x for part, x in body_arrays(board, body).items()}
    return frames


@partial(jax.jit, static_argnums=0)
def _land(board: Board, states: State) -> jax.Array:
    """uint8 `[M, C]`, see `game_arrays`."""
    cells = jnp.asarray(board.indices)

    def state_land(state: State) -> jax.Array:
        view = views.all_views(board, state)
        land = jax.vmap(partial(views.territory, board))(view)  # words [P]
        is_inside = jax.vmap(bitboard.contains, (0, None))(land, cells)  # [P, C]
        owner = np.array([OWN_LAND] + [OTHER_LAND] * (len(state.score) - 1), np.int32)
        land = jnp.sum(jnp.where(is_inside, owner[:, None], 0), axis=0)
        return jnp.where(jnp.all(view.lives), land, 0).astype(jnp.uint8)

    return jax.lax.map(state_land, states, batch_size=256)
