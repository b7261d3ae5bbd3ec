"""Every action several times, as one step (frame skip)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from gymnax.environments import environment

from envs.arguments import check_count
from envs.base import select
from envs.wrappers.wrapper import State, Wrapper


class ActionRepeat(Wrapper):
    """Takes every action `num_repeats` times, and observes only what follows (frame skip).

    The reward, and `info["components"]`, are sums over these steps, in float32, and so are outcomes
    that are sums; of outcomes that are means it is the mean; all else is that of the last one.
    Where an episode ends within them, the rest is left out, and `info["final_observation"]` is that
    of the step that ended it. `max_steps_in_episode` still counts the steps of the wrapped
    environment.

    For each of them `key, step_key = jax.random.split(key)`; a single one gets `key` itself.

    Raises ValueError for less than one repeat.
    """

    def __init__(self, env: environment.Environment, num_repeats: int):
        super().__init__(env)
        check_count("num_repeats", num_repeats)
        self.num_repeats = num_repeats

    @partial(jax.jit, static_argnames=("self",))
    def _step(
        self, key: jax.Array, state: State, action: Any, params: Any
    ) -> tuple[Any, State, jax.Array, jax.Array, jax.Array, dict[str, Any]]:
        def step(key: jax.Array, env_state: Any) -> tuple[Any, ...]:
            obs, env_state, reward, *done, info = self.env.step(key, env_state, action, params)
            return (
                done[0] | done[1],
                env_state,
                self._summands(reward, info),
                (obs, *done, info),
            )

        env_state, sums, (obs, terminated, truncated, info) = self._repeat(step, key, state.env)
        info = self._add_sums(info, sums)
        return obs, State(env_state, ()), sums["reward"], terminated, truncated, info

    def step_env(
        self, key: jax.Array, state: State, action: Any, params: Any
    ) -> tuple[Any, State, jax.Array, jax.Array, dict[str, Any]]:
        def step(key: jax.Array, env_state: Any) -> tuple[Any, ...]:
            obs, env_state, reward, terminated, info = self.env.step_env(
                key, env_state, action, params
            )
            is_over = terminated | self.env.is_truncated(env_state, params)
            return is_over, env_state, self._summands(reward, info), (obs, terminated, info)

        env_state, sums, (obs, terminated, info) = self._repeat(step, key, state.env)
        return obs, State(env_state, ()), sums["reward"], terminated, self._add_sums(info, sums)

    def _repeat(self, step: Callable[..., Any], key: jax.Array, env_state: Any) -> tuple[Any, ...]:
        """Steps until one is the last of its episode: the state, the sums, what the last one gave.

        `step(key, env_state)` returns whether it is the last one, and then these three.
        """
        if self.num_repeats == 1:
            return step(key, env_state)[1:]

        def step_once(carry: tuple[Any, ...], _: None) -> tuple[Any, None]:
            key, previous = carry
            is_over, env_state, sums, _ = previous
            key, step_key = jax.random.split(key)
            *new, terms, outputs = step(step_key, env_state)
            new = (*new, jax.tree.map(jnp.add, sums, terms), outputs)
            return (key, select(is_over, previous, new)), None

        shapes = jax.eval_shape(step, key, env_state)
        is_over, _, *zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
        start = key, (is_over, env_state, *zeros)
        (_, (_, *results)), _ = jax.lax.scan(step_once, start, length=self.num_repeats)
        return tuple(results)

    def _summands(self, reward: jax.Array, info: dict[str, Any]) -> dict[str, Any]:
        """What adds up over steps: reward and components, outcomes that say so, and the steps."""
        outcome_sums = {
            name: jnp.asarray(info["outcome"][name], jnp.float32)
            for name, kind in self.outcome_kinds.items()
            if kind != "last"
        }
        components = {name: x for name, x in info.items() if name == "components"}
        # a sum of bools would be their disjunction, one of int8 would overflow
        paid = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), {"reward": reward, **components})
        return {**paid, "outcome": outcome_sums, "steps": jnp.ones(())}

    def _add_sums(self, info: dict[str, Any], sums: dict[str, Any]) -> dict[str, Any]:
        """The `info` of the last step, with what added up."""
        outcome = {
            name: x / sums["steps"] if self.outcome_kinds[name] == "mean" else x
            for name, x in sums["outcome"].items()
        }
        info = info | {name: x for name, x in sums.items() if name == "components"}
        return info | {"outcome": info["outcome"] | outcome} if outcome else info
