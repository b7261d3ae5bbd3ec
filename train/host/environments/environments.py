"""Environments by name: gymnax's, ours, and those of a file of your own."""

import ast
import contextlib
import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import gymnax
import jax
from gymnax.environments import environment, spaces

import envs
from envs import gymnax_corrections, wrappers
from envs.contract import ContractError, fields_of, time_limit, with_fields
from envs.gymnax_corrections import observation_space
from envs.spaces import Composite
from envs.wrappers.plain_actions import has_plain_actions
from jaxrl.checks import INT32, Range, Share, may_be_positive
from train.host.command_line.suggestions import suggestion_text
from train.host.environments import own_file
from train.host.environments.joined import JoinedBox, is_image, join
from train.host.errors import in_one_line
from train.host.numbers import parse_integer
from train.host.running.origin import explain


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
    action_repeat: Annotated[int, Range(least=1, most=1_000)] = 1
    """Steps that each action is taken for."""
    last_action: bool = False
    """Observe the last action as well: a discrete one one-hot, a continuous one as it is; beside
    images as constant planes."""
    frame_stack: Annotated[int, Range(least=1, most=1_000)] = 1
    """Newest observations that are shown together."""


class Task(NamedTuple):
    """An environment that agents can be trained in, with its parameters and spaces."""

    env: Any
    params: Any
    limit: int | None  # steps after which an episode is cut, where known
    observation: Any  # its space
    action: Any  # its space

    @property
    def shows_images(self) -> bool:
        """Whether observations, or parts of them, have the axes [rows, cols, channels]."""
        space = self.observation
        return space.has_image if isinstance(space, JoinedBox) else is_image(space)


def make(game: Game, learns_of_rewards: bool = True) -> Task:
    """The environment of a configuration. Raises ValueError, in one line, if there is none.

    Habits of an environment of a user's own that spoil what is learned of rewards are printed if
    `learns_of_rewards`.
    """
    # the environment itself
    env, params = make_by_id(game.id, pairs("env.options", game.options))
    params = with_numbers(game.id, params, pairs("env.numbers", game.numbers))
    try:
        limit = time_limit(params)
    except ContractError as error:
        raise ValueError(f"env.id {game.id}: {error}") from error
    if ":" in game.id:
        own_file.check(game.id, env, params, game.options, learns_of_rewards)
    # wrappers: of actions and observations that algorithms do not take, then those of the flags
    if not has_plain_actions(env, params):
        env = wrappers.PlainActions(env)
    raw_space = observation_space(env, params)
    if isinstance(raw_space, Composite) or hasattr(raw_space, "nvec"):
        env = wrappers.FlattenObservation(env)
    if may_be_positive(game.sticky):
        env = wrappers.StickyActions(env)
        params = env.default_params.replace(env=params, probability=game.sticky)
    if game.action_repeat > 1:
        env = wrappers.ActionRepeat(env, game.action_repeat)
    if game.last_action:
        env = wrappers.LastAction(env)
    if game.frame_stack > 1:
        env = wrappers.FrameStack(env, game.frame_stack)
    # the spaces
    with jax.ensure_compile_time_eval():  # bounds are numbers where a sweep traces others, too
        observation, action = observation_space(env, params), env.action_space(params)
    if not isinstance(observation, spaces.Box | spaces.Discrete):
        raise ValueError(
            f"env.id {game.id} observes a {type(observation).__name__}, expected Box, Discrete, or "
            "a Dict or Tuple of these: train it by a program of its own"
        )
    if isinstance(raw_space, Composite) and isinstance(observation, spaces.Box):
        observation = join(raw_space, observation, game.frame_stack)
    return Task(env, params, limit, observation, action)


def make_by_id(name: str, options: dict[str, Any]) -> tuple[environment.Environment, Any]:
    """`(env, params)` of an id."""
    if ":" in name:
        return own_file.load(name, options)
    registry = {**dict.fromkeys(gymnax.registered_envs), **envs.ALL}
    if name not in registry:
        names = ", ".join(registry)
        raise ValueError(
            f"env.id {name} cannot be made: it is unknown{suggestion_text(name, registry)}; "
            f"expected MODULE:NAME or one of {names}"
        )
    try:
        return gymnax_corrections.make(name, **options)
    except Exception as error:
        reason = in_one_line(error) if isinstance(error, ValueError) else explain(error)
        raise ValueError(f"env.id {name} cannot be made: {reason}") from error


def pairs(field: str, texts: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE as a dict; values are numbers, tuples, booleans or else text; 1e3 is whole.

    A list becomes a tuple, as environments must be hashable.
    """
    values = {}
    for text in texts:
        name, is_pair, value = text.partition("=")
        if not (is_pair and name.isidentifier()):
            raise ValueError(f"{field} has {text!r}, expected NAME=VALUE, such as rows=6")
        if name in values:
            raise ValueError(f"{field} has {name} twice, the second time {text}; expected it once")
        try:
            values[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            values[name] = float(value) if value.lower() in ("inf", "-inf", "nan") else value
        if isinstance(values[name], list):
            values[name] = tuple(values[name])
        if isinstance(values[name], float) and "." not in value:
            with contextlib.suppress(ValueError):
                values[name] = parse_integer(value)
    return values


def with_numbers(name: str, params: Any, numbers: dict[str, Any]) -> Any:
    """The parameters of an environment with other numbers, each of the kind that it was."""
    for field, value in numbers.items():
        old = getattr(params, field, None)
        if not isinstance(old, int | float) or not isinstance(value, int | float):
            fields = [x for x, y in fields_of(params).items() if isinstance(y, int | float)]
            raise ValueError(
                f"env.numbers has {field}={value}, expected numbers for {', '.join(fields)} of "
                f"{name}"
            )
        check_number(field, value, old)
        params = with_fields(params, **{field: type(old)(value)})
    return params


def check_number(field: str, value: int | float, old: int | float) -> None:
    """Raises ValueError unless a number is of the kind of the one that it replaces."""
    if isinstance(old, int) and not (math.isfinite(value) and value == int(value)):
        raise ValueError(f"env.numbers has {field}={value}, expected an integer")
    if isinstance(old, int) and abs(value) > INT32:
        raise ValueError(f"env.numbers has {field}={value}, expected at most {INT32:,}")
    may_be_infinite = math.isinf(old) or field == "max_steps_in_episode"
    if not (math.isfinite(value) or (may_be_infinite and value == math.inf)):
        raise ValueError(f"env.numbers has {field}={value}, expected a finite number")
