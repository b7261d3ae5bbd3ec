"""Environments of a user's own file: loaded, and checked once before anything is compiled."""

import importlib
import warnings
from typing import Any

import jax
from gymnax.environments.environment import Environment

from envs.checker import check_contract, check_time_limit
from envs.contract import ContractError
from train.host.machine.progress import print_line
from train.host.running.origin import explain
from train.host.running.used_inputs import used_inputs

Identity = tuple[type, str, tuple[str, ...]]
"""The class of an environment, its parameters, options."""
CHECKED: dict[Identity, list[str]] = {}
"""What has been checked in this process, with a line for each habit."""
TOLD: set[Identity] = set()
"""Those whose habits were printed."""


def load(name: str, options: dict[str, Any]) -> tuple[Environment, Any]:
    """`(env, params)` of MODULE:NAME, a class, a function or an environment.

    Raises ValueError, in one line, for anything else, and for what the file itself raises.
    """
    module, _, attribute = name.partition(":")
    if module.endswith(".py") or "/" in module or not attribute:
        guess = f"{module.removesuffix('.py').replace('/', '.')}:{attribute or 'NAME'}"
        raise ValueError(f"env.id {name} is not MODULE:NAME, such as {guess}")
    try:
        source = getattr(importlib.import_module(module), attribute)
        product = source if isinstance(source, Environment) else source(**options)
    except (Exception, SystemExit) as error:
        raise ValueError(f"env.id {name} cannot be made: {explain(error)}") from error
    env, params = product if isinstance(product, tuple) and len(product) == 2 else (product, None)
    if not isinstance(env, Environment):
        raise ValueError(
            f"env.id {name} gave a {type(env).__name__}, expected an environment on gymnax's "
            "interface, alone or with its parameters"
        )
    return env, env.default_params if params is None else params


def check(
    name: str,
    env: Environment,
    params: Any,
    options: tuple[str, ...] = (),
    learns_of_rewards: bool = True,
) -> None:
    """Raises ValueError, in one line, for an environment that breaks the contract.

    Prints, once, a line for each of its habits that learning of rewards would suffer from.
    """
    identity = (type(env), repr(params), options)
    if identity not in CHECKED:
        CHECKED[identity] = find_habits(name, env, params)
    if not learns_of_rewards or identity in TOLD:
        return
    for habit in CHECKED[identity]:
        print_line(f"{name}: {habit}")
    if ends_by_limit(env, params):
        print_line(
            f"{name} terminates at its time limit, so the future there counts as worth "
            "nothing: let step_env return the terminal state alone, the limit truncates by itself"
        )
    TOLD.add(identity)


def find_habits(name: str, env: Environment, params: Any) -> list[str]:
    """What `check_contract` warns of. Raises ValueError, in one line, for what it refuses."""
    try:
        with warnings.catch_warnings(record=True) as habits:
            warnings.simplefilter("always", UserWarning)
            check_contract(env, params)
    except ContractError as error:
        raise ValueError(f"env.id {name} breaks the contract: {error}") from error
    except (Exception, SystemExit) as error:
        raise ValueError(f"env.id {name} cannot be traced: {explain(error)}") from error
    return [str(habit.message) for habit in habits]


def ends_by_limit(env: Environment, params: Any) -> bool:
    """Whether a step terminates where only the time limit should cut it.

    That is tried only where `terminated` depends on the limit, which tracing tells: it never does
    in environments for gymnax 1.0, and in those for earlier versions it may.
    """
    leaves = jax.tree_util.tree_leaves_with_path(params)
    names = [getattr(path[-1], "name", None) if path else None for path, _ in leaves]
    if "max_steps_in_episode" not in names:
        return False
    structure = jax.tree.structure(params)

    def ends(*numbers: Any) -> Any:
        with_limit = structure.unflatten(numbers)
        start_key, action_key, key = jax.random.split(jax.random.key(0), 3)
        _, state = env.reset(start_key, params)
        action = env.action_space(params).sample(action_key)
        return env.step_env(key, state, action, with_limit)[3]

    depends = used_inputs(jax.make_jaxpr(ends)(*(x for _, x in leaves)).jaxpr)
    if not depends[names.index("max_steps_in_episode")]:
        return False
    try:
        check_time_limit(env, params)
    except ContractError:
        return True
    return False
