"""`env_checker(env)`: checks that an environment, ours or yours, keeps gymnax's contract."""

import copy
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.arguments import is_key
from envs.contract import (
    ContractError,
    check_components,
    check_hash,
    check_outcome,
    check_params,
    check_same_structure,
    description,
    require,
    shapes_of,
    with_fields,
)
from envs.gymnax_corrections import observation_space
from envs.spaces import check_inside, check_num_actions, check_space, contains, sample

NUM_ENVS, NUM_STEPS = 3, 64
REQUIRED_FIELDS = {
    "time": "the state has no field `time`, the steps of the episode so far",
    "max_steps_in_episode": "params has no field `max_steps_in_episode`, the time limit",
}
"""What the base class truncates by."""
INFO_ENTRIES = {"terminated", "truncated", "final_observation", "outcome", "components", "discount"}
"""Entries of `info` that have a meaning."""
ROUNDING = 1e-5  # XLA may round one observation differently in two places


def env_checker(env: Any, params: Any = None, seed: int = 0) -> None:
    """Plays an environment at random and raises ContractError at the first violation.

    Checked are: `reset` and `step` agree in structure, shapes and dtypes; `step` returns six
    values with scalar reward and flags; `info` keeps its structure and always has
    `final_observation`; its `components`, if it has any, add up to the reward; observations are
    finite and inside `observation_space`; everything runs under jit, vmap and scan, the same key
    gives the same step, and other numbers in `params` do not compile again; a time limit
    of one step truncates the first; two copies of the environment are equal and hash alike. Warns
    of scalars in `info` that no loop averages, as they are outside of `info["outcome"]`.
    """
    params = env.default_params if params is None else params
    check_contract(env, params)
    reset_key, step_key, scan_key = jax.random.split(jax.random.key(seed), 3)
    _, state = env.reset(reset_key, params)
    check_repeats(env, params, state, step_key)
    states, rollout = play_at_random(env, params, scan_key)
    check_same_structure("state after a scan", jax.tree.map(lambda x: x[0], states), state)
    check_observations(env, params, rollout)
    check_time_limit(env, params)
    check_equality(env)


def check_contract(env: Any, params: Any) -> None:
    """The part of `env_checker` that tracing alone tells: nothing is compiled or played.

    The environment can be hashed; `params` holds numbers, and a time limit from 1 step on; spaces
    are gymnax's, and a discrete one has `num_actions`; `reset` and `step` agree with each other and
    with the spaces; and `step` returns what it should. Raises ContractError; what the environment
    itself raises passes through.
    """
    check_hash(env)
    check_params(params)
    observation = check_space(env, "observation_space", params)
    action = check_space(env, "action_space", params)
    check_num_actions(env, action)
    first = shapes_of("reset", lambda key: env.reset(key, params), jax.random.key(0))
    is_pair = isinstance(first, tuple) and len(first) == 2
    require(is_pair, f"reset returns {description(first)}; expected an observation and a state")
    check_inside(first[0], observation)

    def step_shapes(method: str) -> Any:
        """The shapes of what a step from the first state returns."""

        def from_start(key: jax.Array, state: Any) -> Any:
            action_key, key = jax.random.split(key)
            return getattr(env, method)(key, state, sample(action, action_key), params)

        return shapes_of(method, from_start, jax.random.key(0), first[1])

    # before the auto-reset, which would say in JAX's words where the two differ
    inner = step_shapes("step_env")
    check_count("step_env", inner, 5, ": observation, state, reward, terminated, info")
    for what, x, y in zip(("observation", "state"), inner, first, strict=False):
        check_same_structure(what, x, y)
    _, _, reward, terminated, info = inner
    check_reward(reward)
    check_flag("terminated", terminated)
    require(isinstance(info, Mapping), f"info is {description(info)}; expected a dict")
    try:
        result = step_shapes("step")
    except AttributeError as error:
        require(error.name not in REQUIRED_FIELDS, REQUIRED_FIELDS.get(str(error.name), ""))
        raise
    check_step(result, *first, kinds=getattr(env, "outcome_kinds", {}))


def check_count(method: str, result: Any, count: int, which: str) -> None:
    """A method returns a tuple of so many values."""
    is_tuple = isinstance(result, tuple)
    values = f"{len(result)} values" if is_tuple else type(result).__name__
    is_right = is_tuple and len(result) == count
    require(is_right, f"{method} returns {values}; expected {count}{which}")


def check_step(result: Any, obs: Any, state: Any, kinds: Any) -> None:
    """What `step` returns, or its shapes, fits what `reset` returned, and `outcome_kinds`."""
    check_count("step", result, 6, ", as in gymnax 1.0")
    next_obs, next_state, reward, terminated, truncated, info = result
    check_same_structure("observation", next_obs, obs)
    check_same_structure("state", next_state, state)
    check_reward(reward)
    check_flag("terminated", terminated)
    check_flag("truncated", truncated)
    require("final_observation" in info, "info has no final_observation")
    check_same_structure("info['final_observation']", info["final_observation"], obs)
    check_outcome(info.get("outcome", {}), kinds)
    if "components" in info:
        check_components(info["components"])
    scalars = [name for name, x in info.items() if name not in INFO_ENTRIES and jnp.shape(x) == ()]
    if scalars and "outcome" not in info:
        names = ", ".join(scalars)
        warnings.warn(f"not in info['outcome'], so never averaged: {names}", stacklevel=4)


def check_reward(reward: Any) -> None:
    """A reward, or its shape, is a real number."""
    require(hasattr(reward, "dtype"), f"reward is {description(reward)}; expected a real number")
    require(jnp.shape(reward) == (), f"reward has shape {jnp.shape(reward)}; expected a scalar")
    is_number = not jnp.issubdtype(jnp.result_type(reward), jnp.complexfloating)
    require(is_number, f"reward is {description(reward)}; expected a real number")


def check_flag(name: str, flag: Any) -> None:
    """A flag, or its shape, is a bool."""
    is_flag = jnp.shape(flag) == () and jnp.issubdtype(jnp.result_type(flag), bool)
    require(is_flag, f"{name} is {description(flag)}; expected a bool scalar")


def check_repeats(env: Any, params: Any, state: Any, key: jax.Array) -> None:
    """The same key gives the same step."""
    action_key, key = jax.random.split(key)
    action = sample(env.action_space(params), action_key)
    key_data = jax.random.key_data(key)
    step = lambda: env.step(jax.random.wrap_key_data(key_data), state, action, params)
    require(tree_equal(step(), step()), "the same key, state and action gave two different steps")


def play_at_random(env: Any, params: Any, key: jax.Array) -> tuple[Any, Any]:
    """`NUM_STEPS` random steps of `NUM_ENVS` environments: vmap inside scan inside jit.

    Played twice, with other numbers in `params` the second time, which must not compile again.
    """
    traces = 0

    @jax.jit
    def play(key, params):
        nonlocal traces
        traces += 1
        reset_key, key = jax.random.split(key)
        keys = jax.random.split(reset_key, NUM_ENVS)
        _, state = jax.vmap(env.reset, in_axes=(0, None))(keys, params)

        def step(carry, _):
            return random_step(env, params, *carry)

        (_, state), rollout = jax.lax.scan(step, (key, state), length=NUM_STEPS)
        return state, rollout

    key, other_key = jax.random.split(key)
    numbers = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)), params)  # no weak types
    other = jax.tree.map(lambda x: (x * 1.01 + 1e-3).astype(x.dtype), numbers)
    try:
        states_and_rollout = play(key, numbers)
    except TypeError as error:
        reason = " ".join(str(error).split())
        raise ContractError(f"step cannot be scanned: {reason}") from error
    play(other_key, other)
    require(traces == 1, "other numbers in params compiled the environment again")
    return states_and_rollout


def random_step(env: Any, params: Any, key: jax.Array, state: Any) -> tuple[Any, Any]:
    """One step of all environments, as the body of a scan: the carry, and what was observed."""
    key, action_key, env_key = jax.random.split(key, 3)
    sample_action = partial(sample, env.action_space(params))
    action = jax.vmap(sample_action)(jax.random.split(action_key, NUM_ENVS))
    obs, state, reward, terminated, truncated, info = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
        jax.random.split(env_key, NUM_ENVS), state, action, params
    )
    components = info.get("components", reward[:, None])
    final_obs = info["final_observation"]
    return (key, state), (obs, reward, components, terminated, truncated, final_obs)


def check_observations(env: Any, params: Any, rollout: Any) -> None:
    """Observations are finite, inside the space, and continuous between resets; rewards add up."""
    observations, reward, components, terminated, truncated, final = jax.tree.map(
        np.asarray, rollout
    )
    require(bool(np.all(np.isfinite(reward))), "a reward is not finite")
    check_sum(components, reward)
    done = terminated | truncated
    for leaf, final_leaf in zip(jax.tree.leaves(observations), jax.tree.leaves(final), strict=True):
        if np.issubdtype(leaf.dtype, np.inexact):
            is_finite = np.all(np.isfinite(leaf)) and np.all(np.isfinite(final_leaf))
            require(bool(is_finite), "an observation is not finite")
        require(
            bool(np.allclose(leaf[~done], final_leaf[~done], rtol=ROUNDING, atol=ROUNDING)),
            "final_observation differs from the observation although the episode continues",
        )
    space = observation_space(env, params)
    in_space = jax.vmap(jax.vmap(lambda obs: contains(space, obs)))
    inside = np.asarray(in_space(jax.tree.map(jnp.asarray, observations)))
    require(bool(inside.all()), "an observation is outside observation_space")


def check_sum(components: np.ndarray, reward: np.ndarray) -> None:
    """The components of rewards `[..., K]` add up to them, `[...]`, but for rounding."""
    dtypes = [x.dtype for x in (components, reward) if jnp.issubdtype(x.dtype, jnp.inexact)]
    rounding = max([ROUNDING, *(float(jnp.finfo(dtype).eps) for dtype in dtypes)])
    parts, total = components.astype(np.float64), reward.astype(np.float64)
    error = np.abs(parts.sum(axis=-1) - total)
    largest = np.abs(parts).sum(axis=-1) + np.abs(total)
    require(
        bool(np.all(error <= rounding * (1.0 + largest))),
        "info['components'] do not add up to the reward",
    )


def check_time_limit(env: Any, params: Any) -> None:
    """The first step under a limit of one step truncates and does not terminate for it.

    Where a step is several of another environment, the limit may cut it before it would terminate.
    """
    if not hasattr(params, "max_steps_in_episode"):
        return
    short = with_fields(params, max_steps_in_episode=1)
    for seed in range(8):
        reset_key, key, action_key = jax.random.split(jax.random.key(seed), 3)
        _, state = env.reset(reset_key, params)
        action = sample(env.action_space(params), action_key)
        key_data = jax.random.key_data(key)
        _, _, _, died, cut, _ = env.step(jax.random.wrap_key_data(key_data), state, action, short)
        _, _, _, dies, _, _ = env.step(jax.random.wrap_key_data(key_data), state, action, params)
        require(bool(cut), "the first step with max_steps_in_episode=1 did not truncate")
        require(bool(died) <= bool(dies), "the time limit made a step terminate")


def check_equality(env: Any) -> None:
    """`step` is jitted with the environment static, so equal ones must hash alike to share it."""
    twin = copy.copy(env)
    alike = hash(twin) == hash(env) and twin == env
    require(alike, "two copies of the environment are not equal, so each would compile again")


def tree_equal(a: Any, b: Any) -> bool:
    """Bit for bit, nan equal to nan."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    raw = lambda x: np.asarray(jax.random.key_data(x) if is_key(x) else x)
    return all(raw(x).tobytes() == raw(y).tobytes() for x, y in pairs)
