"""Pure environments on gymnax's interface.

`env, params = envs.make("Snake-v0", rows=12, cols=12)`; after `import envs`, `gymnax.make` knows
them too. To add one, write its module and add a line to `ALL`. An environment is imported when it
is first asked for, so that none costs those who play another. Random numbers of JAX, which stay the
same, are drawn faster on CPUs from then on (`envs.threefry`).
"""

import importlib
from functools import partial
from typing import Any

from envs import gymnax_import, threefry
from envs.arguments import check_name
from envs.base import Environment

gymnax = gymnax_import.gymnax

ALL: dict[str, str] = {  # id: the class, in the package's folder of this name
    "Snake-v0": "snake.Snake",
    "TwoSnake-v0": "two_snake.TwoSnake",
    "Grid-v0": "grid.Grid",
    "Durotaxis-v0": "durotaxis.Durotaxis",
    "VectorField-v0": "vector_field.VectorField",
    "CircularCartPole-v0": "vector_field.CircularCartPole",
}


def environment_class(env_id: str) -> type[Environment]:
    """The class of an environment. Raises ValueError for an unknown id."""
    check_name("environment", env_id, ALL)
    folder, _, name = ALL[env_id].partition(".")
    return getattr(importlib.import_module(f"{__name__}.{folder}"), name)


def make(env_id: str, **kwargs: Any) -> tuple[Environment, Any]:
    """An environment and its default parameters.

    Raises ValueError for an unknown id, and for arguments that the environment refuses.
    """
    env = _create(env_id, **kwargs)
    return env, env.default_params


def _create(env_id: str, **kwargs: Any) -> Environment:
    return environment_class(env_id)(**kwargs)


def __getattr__(name: str) -> Any:
    """Imports the folder of an environment, for `import envs; envs.snake.step(...)`."""
    if name in {place.partition(".")[0] for place in ALL.values()}:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


threefry.compile_in_one_kernel()
for _id in ALL:
    if _id not in gymnax.registered_envs:  # a notebook may reload this module
        gymnax.register(_id, partial(_create, _id))
