"""Ids for `gymnasium.make` and `gymnasium.make_vec`: jaxrl/Snake-v0, jaxrl/CartPole-v1, ..."""

from typing import Any

import gymnasium
import gymnax
from gymnasium.vector import AutoresetMode

import envs
from envs import gymnax_corrections
from envs.gymnasium_adapter import steps
from envs.gymnasium_adapter.single import GymnasiumEnv
from envs.gymnasium_adapter.vector import GymnasiumVectorEnv

NAMESPACE = "jaxrl"


def register() -> list[str]:
    """Tells Gymnasium of all environments that gymnax knows, ours among them; returns their ids.

    `gymnasium.make(id, **arguments)` takes the arguments of the environment, and `params`;
    `make_vec` takes `autoreset_mode`, too.
    """
    ids = {f"{NAMESPACE}/{env_id}": env_id for env_id in [*envs.ALL, *gymnax.registered_envs]}
    for name, env_id in ids.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point=f"{__name__}:make",
                vector_entry_point=f"{__name__}:make_vec",
                kwargs={"env_id": env_id},
            )
    return list(ids)


def make(
    env_id: str, params: Any = None, render_mode: str | None = None, **arguments: Any
) -> GymnasiumEnv:
    """An environment by gymnax's id, made with `arguments`.

    Raises ValueError for an unknown id, and for what the environment refuses; RuntimeError in a
    process that was forked.
    """
    steps.check_process()
    env, _ = gymnax_corrections.make(env_id, **arguments)
    return GymnasiumEnv(env, params, render_mode)


def make_vec(
    env_id: str,
    num_envs: int = 1,
    params: Any = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
    **arguments: Any,
) -> GymnasiumVectorEnv:
    """`num_envs` of them. Raises what `make` raises."""
    steps.check_process()
    env, _ = gymnax_corrections.make(env_id, **arguments)
    return GymnasiumVectorEnv(env, num_envs, params, autoreset_mode, render_mode)
