"""Who dies and who has a child from one frame to the next: logistic laws of what rules look at.

The probability that a cell dies before the next frame is 1 / (1 + exp(-β·c)), and so is that of a
survivor to have a child, each with a β of its own. The K = 5 covariates c are those that the rules
of deletion in this package read: the share deletes the rearmost, the laboratory's rule the old ones
on soft ground in a crowd.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

NAMES = ("constant", "rear", "age", "crowding", "stiffness")
AGE, CROWD = 10.0, 32.0
"""Frames, and cells, of which covariates are multiples."""


def meanings(one: str = "1") -> dict[str, str]:
    """What each coefficient is; `one` is how a stiffness of 1 is told, such as `2 kPa`."""
    return {
        "constant": f"log-odds of a young cell in the middle of 32, on ground of stiffness {one}",
        "rear": "from the foremost cell to the rearmost",
        "age": f"for every {AGE:g} frames of age",
        "crowding": "for every doubling of the number of cells",
        "stiffness": "for every doubling of the stiffness",
    }


class Events(NamedTuple):
    """A row for each cell and frame in which something could happen; n rows."""

    covariates: Any  # [n, K]
    happened: Any  # [n] 1 or 0
    weight: Any  # [n] 1, or 0 in padding


def covariates(
    alive: jax.Array, place: jax.Array, stiffness: jax.Array, age: jax.Array
) -> jax.Array:
    """What the probabilities of the cells of one frame depend on, float32 `[C, K]`; any for others.

    `alive` is bool `[C]`; `place` px along the way to the goal, `stiffness` and `age` in frames are
    `[C]`. `rear` goes from -1/2 for the foremost cell to 1/2 for the rearmost, and is 0 for one
    alone; of equals the one in the lower slot is farther back.
    """
    count = jnp.sum(alive)
    order = jnp.argsort(jnp.where(alive, place, jnp.inf))
    rank = jnp.zeros(alive.size, jnp.int32).at[order].set(jnp.arange(alive.size, dtype=jnp.int32))
    rear = jnp.where(count > 1, 0.5 - rank / jnp.maximum(count - 1, 1), 0.0)
    crowding = jnp.log2(jnp.maximum(count, 1) / CROWD)
    columns = (
        jnp.ones(alive.size),
        rear,
        age / AGE,
        jnp.full(alive.size, crowding),
        jnp.log2(jnp.maximum(stiffness, 1e-6)),
    )
    return jnp.stack([x.astype(jnp.float32) for x in columns], axis=1)


def terms(beta: jax.Array, data: Events) -> jax.Array:
    """The terms `[n]` of the log-likelihood of coefficients `[K]`."""
    odds = log_odds(beta, data.covariates)
    return data.weight * (data.happened * odds - jax.nn.softplus(odds))


def log_odds(beta: jax.Array, covariates: jax.Array) -> jax.Array:
    """β·c `[n]` of covariates `[n, K]`, for coefficients `[K]`."""
    return jnp.matmul(covariates, beta, precision="highest")


def logit(probability: float) -> float:
    """The constant of a law that depends on nothing else."""
    return math.log(probability / (1 - probability))
