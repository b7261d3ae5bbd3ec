"""Pure environments on gymnax's interface.

`env, params = envs.make("Snake-v0", rows=12, cols=12)`; after `import envs`, `gymnax.make` knows
them too. To add one, write its module and add a line to `ALL`.
"""

from typing import Any

import gymnax

from envs import durotaxis, grid, snake, two_snake, vector_field
from envs.base import Environment, check_name

ALL: dict[str, type[Environment]] = {
    "Snake-v0": snake.Snake,
    "TwoSnake-v0": two_snake.TwoSnake,
    "Grid-v0": grid.Grid,
    "Durotaxis-v0": durotaxis.Durotaxis,
    "VectorField-v0": vector_field.VectorField,
    "CircularCartPole-v0": vector_field.CircularCartPole,
}

for _id, _environment in ALL.items():
    if _id not in gymnax.registered_envs:  # a notebook may reload this module
        gymnax.register(_id, _environment)


def make(env_id: str, **kwargs: Any) -> tuple[Environment, Any]:
    """An environment and its default parameters.

    Raises ValueError for an unknown id, and for arguments that the environment refuses.
    """
    check_name("environment", env_id, ALL)
    env = ALL[env_id](**kwargs)
    return env, env.default_params
