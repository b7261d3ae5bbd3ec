"""Environments by name: gymnax's, ours, and those of a file of your own."""

import ast
import contextlib
import importlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnax
from gymnax.environments import environment, spaces

import envs
from envs import wrappers
from jaxrl.checks import Count, Share, may_be_positive
from train.host.numbers import whole


@dataclass(frozen=True)
class Game:
    """The environment, and what is put around it."""

    id: str = "CartPole-v1"
    """A name of gymnax, such as Breakout-MinAtar, or of this library, such as Snake-v0; or
    MODULE:NAME of a class or function of yours that returns an environment."""
    options: tuple[str, ...] = ()
    """NAME=VALUE: arguments of its constructor, such as `rows=6 cols=6` of Snake-v0."""
    numbers: tuple[str, ...] = ()
    """NAME=NUMBER: fields of its parameters, such as memory_length=10 of MemoryChain-bsuite."""
    sticky: Share = 0.0
    """Probability that the last action is repeated instead of the chosen one (sticky actions)."""
    action_repeat: Count = 1
    """Steps that each action is taken for."""
    last_action: bool = False
    """Observe the last action as well, one-hot; for observations that are vectors."""
    frame_stack: Count = 1
    """Newest observations that are shown together."""


class Made(NamedTuple):
    """An environment that agents can be trained in."""

    env: Any
    params: Any
    limit: int | None  # steps after which an episode is cut, where known
    observation: Any  # its space
    action: Any  # its space

    @property
    def shows_images(self) -> bool:
        """Whether observations have the axes [rows, cols, channels]."""
        return len(getattr(self.observation, "shape", ())) == 3

    @property
    def family(self) -> str:
        """Which of the `FAMILIES` of defaults suits it."""
        if isinstance(self.action, spaces.Box):
            return "continuous"
        return "minatar" if self.shows_images else "classic"


FAMILIES = ("classic", "minatar", "continuous")


def make(game: Game) -> Made:
    """The environment of a configuration. Raises ValueError, in one line, if there is none."""
    env, params = named(game.id, pairs("env.options", game.options))
    params = with_numbers(game.id, params, pairs("env.numbers", game.numbers))
    limit = getattr(params, "max_steps_in_episode", None)
    if may_be_positive(game.sticky):
        env = wrappers.StickyActions(env)
        params = env.default_params.replace(env=params, probability=game.sticky)
    if game.action_repeat > 1:
        env = wrappers.ActionRepeat(env, game.action_repeat)
    if game.last_action:
        env = wrappers.LastAction(env)
    if game.frame_stack > 1:
        env = wrappers.FrameStack(env, game.frame_stack)
    shown, action = env.observation_space(params), env.action_space(params)
    if not isinstance(shown, spaces.Box | spaces.Discrete):
        raise ValueError(
            f"env.id {game.id} observes a {type(shown).__name__}, expected one array: train it "
            "by a program of its own"
        )
    return Made(env, params, None if limit is None else int(limit), shown, action)


def named(name: str, options: dict[str, Any]) -> tuple[environment.Environment, Any]:
    """`(env, params)` of an id."""
    module, _, factory = name.partition(":")
    try:
        if not factory:
            known = {**dict.fromkeys(gymnax.registered_envs), **envs.ALL}
            if name not in known:
                names = ", ".join(known)
                raise ValueError(f"it is unknown; expected MODULE:NAME or one of {names}")
            return gymnax.make(name, **options)
        made = getattr(importlib.import_module(module), factory)(**options)
    except Exception as error:
        reason = f"{type(error).__name__}: " if not isinstance(error, ValueError) else ""
        raise ValueError(f"env.id {name} cannot be made: {reason}{error}") from error
    env, params = made if isinstance(made, tuple) else (made, None)
    if not isinstance(env, environment.Environment):
        raise ValueError(
            f"env.id {name} gave a {type(env).__name__}, expected an environment on gymnax's "
            "interface, alone or with its parameters"
        )
    return env, env.default_params if params is None else params


def pairs(field: str, given: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE as a dict; values are numbers, tuples, booleans or else text; 1e3 is whole."""
    found = {}
    for text in given:
        name, is_pair, value = text.partition("=")
        if not (is_pair and name.isidentifier()):
            raise ValueError(f"{field} has {text!r}, expected NAME=VALUE, such as rows=6")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
        if isinstance(found[name], float) and "." not in value:
            with contextlib.suppress(ValueError):
                found[name] = whole(value)
    return found


def with_numbers(name: str, params: Any, numbers: dict[str, Any]) -> Any:
    """The parameters of an environment with other numbers, each of the kind that it was."""
    for field, value in numbers.items():
        old = getattr(params, field, None)
        if not isinstance(old, int | float) or not isinstance(value, int | float):
            fields = [x for x, y in vars(params).items() if isinstance(y, int | float)]
            raise ValueError(
                f"env.numbers has {field}={value}, expected numbers for {', '.join(fields)} of "
                f"{name}"
            )
        if isinstance(old, int) and value != int(value):
            raise ValueError(f"env.numbers has {field}={value}, expected an integer")
        params = params.replace(**{field: type(old)(value)})
    return params
