"""`agent_checker(agent, env, params)`: checks that an agent, ours or yours, keeps the contract."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl import acting, checks
from jaxrl.acting import World
from jaxrl.checks import Count
from jaxrl.numerics.precision import in_float32, narrow
from jaxrl.types import (
    PARTS,
    SOURCES,
    Agent,
    AgentState,
    Environment,
    PyTree,
    Transition,
    act_parts,
    below_params,
    check_functions,
    check_metrics,
    check_parts,
    describe,
    has_parts,
    update_parts,
)

NUM_ENVS, NUM_STEPS = 4, 16
ROUNDING = 1e-5
"""Of an action at a bound."""
NO_ARRAY = re.compile(
    r"a value of type <class '(\S+)'>(?: at output component (\S+))?, which is not a valid JAX type"
)
"""What JAX says of something else than an array."""


class AgentError(AssertionError):
    """An agent that breaks the contract; the message says how, in one line."""


@in_float32
def agent_checker(
    agent: Agent,
    env: Environment,
    env_params: PyTree,
    greedy: Agent | None = None,
    num_envs: int = NUM_ENVS,
    num_steps: int = NUM_STEPS,
    seed: int = 0,
) -> None:
    """Lets an agent act and learn once, and raises AgentError at the first violation.

    Checked are: `reset` and `step` of the environment return as many parts as they should, all of
    arrays, and `step` takes the action (`envs.checker` checks more of it); `act` keeps structure,
    shapes and dtypes of the memory, `update` those of the state; actions fit the `action_space` of
    the environment where that is a Discrete or a Box; all numbers are finite; the metrics are a
    dict of arrays; something of the state is below a field named `params`. Of `greedy`, the same
    agent without exploration: the same action for every key, and from the parameters alone. The
    rollout is `[num_steps, num_envs]`; an agent that is made for a number of environments, as one
    with a replay is, needs that number as `num_envs`.

    Raises ValueError for a number of environments or steps below 1.
    """
    checks.value("num_envs", Count, num_envs)
    checks.value("num_steps", Count, num_steps)
    with value_errors_as_breaches():
        check_parts(env, agent)
        if greedy is not None:
            check_functions("greedy agent", greedy, PARTS["agent"], SOURCES["agent"])
    env_params = narrow(env_params)
    reset_key, act_key, init_key, update_key = jax.random.split(jax.random.key(seed), 4)
    shapes_of("memory", agent.memory)
    first = check_reset(env, env_params, reset_key)
    shapes_of("init", agent.init, init_key, first[0])
    world = World(*acting.reset(env, env_params, agent, num_envs, reset_key), act_key)
    obs, memory = jax.tree.map(lambda x: x[0], world.obs), agent.memory()
    state = agent.init(init_key, obs)
    fields = jax.tree_util.tree_flatten_with_path(state)[0]
    require(any(below_params(path) for path, _ in fields), "no field of the state is named params")
    act_output = shapes_of("act", agent.act, state, memory, obs, update_key)
    with value_errors_as_breaches():
        action, _, _ = act_parts(act_output, memory)
        acting.check_action(env, env_params, action)
    check_env_step(env, env_params, action, first[1], reset_key)
    with value_errors_as_breaches():  # of the environment's step, too
        world, rollout = play(agent, env, env_params, state, world, num_steps)
    require_finite("action", rollout.action)
    check_choices(acting.action_space(env, env_params), rollout.action)
    update_output = trace_update(agent, state, rollout, update_key)
    with value_errors_as_breaches():
        check_metrics(update_parts(update_output, state)[1])
    new_state, metrics = jax.jit(agent.update)(state, rollout, update_key)
    require_finite("state", new_state)
    require_finite("metrics", metrics)
    if greedy is not None:
        check_greedy(greedy, new_state, jax.tree.map(lambda x: x[0], world.obs))


@contextmanager
def value_errors_as_breaches() -> Iterator[None]:
    """Turns a ValueError within into an AgentError with its message."""
    try:
        yield
    except ValueError as error:
        raise AgentError(str(error)) from None


def check_reset(env: Environment, env_params: PyTree, key: jax.Array) -> Any:
    """The shapes of the first observation and state.

    Raises AgentError where `reset` raises TypeError or returns something else.
    """
    first = shapes_of_env("reset", env.reset, key, env_params)
    parts = f"the environment's reset returns {describe(first)}; expected (observation, state)"
    require(has_parts(first, 2), parts)
    return first


def check_env_step(
    env: Environment, env_params: PyTree, action: PyTree, env_state: PyTree, key: jax.Array
) -> None:
    """Raises AgentError where `step` raises TypeError, or returns what cannot be acted in.

    All are given as shapes.
    """
    output = shapes_of_env("step", env.step, key, env_state, action, env_params)
    require(
        has_parts(output, 6),
        f"the environment's step returns {describe(output)}; expected (observation, state, reward, "
        "terminated, truncated, info)",
    )
    for name, x in zip(("reward", "terminated", "truncated"), output[2:5], strict=True):
        returned = f"the environment's step returns {describe(x)} as {name}"
        require(hasattr(x, "shape"), f"{returned}; expected an array")
    has_final = isinstance(output[5], dict) and "final_observation" in output[5]
    require(has_final, "the environment's info has no final_observation, the true successor")


def shapes_of_env(method: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """`shapes_of` a method of the environment, which raises TypeError for what it does not take.

    Raises AgentError then, with the first line of it.
    """
    try:
        return shapes_of(f"the environment's {method}", function, *arguments)
    except TypeError as error:
        message = str(error).partition("\n")[0]
        raise AgentError(f"the environment's {method} raises TypeError: {message}") from error


def play(
    agent: Agent, env: Environment, env_params: PyTree, state: AgentState, world: World, steps: int
) -> tuple[World, Transition]:
    """The world after so many steps, and the rollout `[T, N]`."""

    def step(world: World, _):
        world, (transition, _) = acting.step(env, env_params, agent, state, world)
        return world, transition

    return jax.jit(lambda world: jax.lax.scan(step, world, length=steps))(world)


def shapes_of(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The shapes of what a function returns. Raises AgentError where that is no array, as a text.

    Other mistakes of JAX arrive as JAX tells them, with the line of the agent that made them.
    """
    try:
        return jax.eval_shape(function, *arguments)
    except TypeError as error:
        complaint = NO_ARRAY.search(str(error))
        if complaint is None:
            raise
        place = f" at {complaint[2]}" if complaint[2] else ""
        raise AgentError(f"{name} returns a {complaint[1]}{place}; expected arrays") from error


def trace_update(agent: Agent, state: AgentState, rollout: Transition, key: jax.Array) -> Any:
    """The shapes of what `update` returns.

    Raises AgentError for a ValueError. It advises another number of environments where the message
    speaks of them, or is another one for twice as many.
    """
    try:
        return shapes_of("update", agent.update, state, rollout, key)
    except ValueError as error:
        message = str(error)
        if "environment" in message or message != refusal_of_twice(agent, state, rollout, key):
            num_envs = rollout.terminated.shape[1]
            raise AgentError(
                f"update refuses a rollout of {num_envs} environments: {message}; or check with "
                "num_envs=N, the number it is made for"
            ) from error
        raise AgentError(f"update raises ValueError: {message}") from error


def refusal_of_twice(
    agent: Agent, state: AgentState, rollout: Transition, key: jax.Array
) -> str | None:
    """What `update` says of a rollout of twice as many environments; None: it takes it."""
    double = lambda x: jax.ShapeDtypeStruct((len(x), 2 * x.shape[1], *x.shape[2:]), x.dtype)
    try:
        jax.eval_shape(agent.update, state, jax.tree.map(double, rollout), key)
    except Exception as error:  # of whatever kind, it is compared
        return str(error)
    return None


def check_choices(space: Any, actions: PyTree) -> None:
    """Raises AgentError unless actions `[T, N, ...]` are choices that a Discrete has, or in a Box.

    Of a Box, but for rounding.
    """
    taken = acting.description(space)
    if hasattr(space, "n"):
        low, high = int(jnp.min(actions)), int(jnp.max(actions))
        span = f"act returned actions from {low} to {high}"
        require(low >= 0 and high < space.n, f"{span}, the environment takes {taken}")
    elif taken:
        numbers = np.asarray(jax.tree.leaves(actions)[0])
        nearest = np.clip(numbers, space.low, space.high)
        outside = ~np.isclose(numbers, nearest, rtol=ROUNDING, atol=ROUNDING)
        if outside.any():
            number, bound = numbers[outside][0], nearest[outside][0]
            raise AgentError(
                f"act returned {number} in an action, the environment takes {taken} and there "
                f"{bound} at {'most' if number > bound else 'least'}: bound the actions"
            )


def check_greedy(greedy: Agent, state: AgentState, obs: PyTree) -> None:
    """Raises AgentError unless there is one action for all keys, and from the parameters alone."""
    act = jax.jit(lambda state, key: greedy.act(state, greedy.memory(), obs, key)[0])
    first, second = jax.random.split(jax.random.key(1))
    action = act(state, first)
    require(equal(action, act(state, second)), "greedy, two keys gave two different actions")
    params_only = jax.tree_util.tree_map_with_path(
        lambda path, x: x if below_params(path) else jnp.zeros_like(x), state
    )
    message = (
        "greedy, act reads what is not below a field named params: a policy would act otherwise"
    )
    require(equal(action, act(params_only, first)), message)


def require_finite(what: str, tree: Any) -> None:
    """Raises AgentError, with the name of the leaf, unless all numbers of a tree are finite."""
    for path, x in jax.tree_util.tree_leaves_with_path(tree):
        if jnp.issubdtype(jnp.result_type(x), jnp.inexact):
            name = f"{what}{jax.tree_util.keystr(path)}"
            require(bool(jnp.all(jnp.isfinite(x))), f"{name} is not finite")


def equal(a: Any, b: Any) -> bool:
    """Whether two trees of one structure hold the same numbers."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(bool(jnp.array_equal(x, y)) for x, y in pairs)


def require(condition: bool, message: str) -> None:
    """Raises AgentError with the message unless the condition holds."""
    if not condition:
        raise AgentError(message)
