"""Where numbers of a rollout cease to be finite, against a search by hand."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxrl
from jaxrl import loop
from jaxrl.numerics import nonfinite
from jaxrl.types import Transition
from tests.jaxrl.test_loop import counting_agent

T, N, D = 5, 3, 2


def rollout(*broken: tuple[str, int, int]) -> Transition:
    """All zeros but for NaN or infinity in some parts, each at a step of an environment."""
    shapes = {"obs": (T, N, D), "action": (T, N, D), "reward": (T, N), "next_obs": (T, N, D)}
    parts: dict[str, Any] = {name: np.zeros(x, np.float32) for name, x in shapes.items()}
    for i, (name, step, env) in enumerate(broken):
        parts[name][(step, env) if name == "reward" else (step, env, i % D)] = (np.nan, np.inf)[
            i % 2
        ]
    no = jnp.zeros((T, N), bool)
    parts["obs"] = {"x": parts["obs"], "id": np.ones((T, N), np.int32)}
    return jax.tree.map(jnp.asarray, Transition(**parts, terminated=no, truncated=no, extras=()))


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        ([("reward", 2, 1), ("obs", 3, 0), ("action", 2, 2)], ("action", 2, 2)),
        ([("next_obs", 4, 2)], ("next_obs", 4, 2)),
        ([("next_obs", 1, 0), ("reward", 1, 2), ("obs", 2, 0)], ("reward", 1, 2)),
        ([("obs", 0, 2), ("obs", 0, 1)], ("obs", 0, 1)),
    ],
)
def test_the_first_is_the_first_in_time_and_then_in_the_order_of_a_step(broken, expected):
    first = jax.jit(nonfinite.origin)(rollout(*broken), 100)
    assert (nonfinite.PARTS[int(first.part)], int(first.step) - 100, int(first.env)) == expected
    environments = {env for part, _, env in broken if part != "action"}
    chosen = nonfinite.broken_environments(rollout(*broken))
    assert set(np.flatnonzero(chosen)) == environments


def test_nothing_is_found_where_all_is_finite():
    assert nonfinite.origin(rollout(), jnp.int32(100)).step == nonfinite.NEVER


class DecayingWorld:
    """Never ends; after 4 to 7 steps the state is NaN, and so are observation and reward."""

    num_actions = 2

    def reset(self, key, params):
        steps_left = jax.random.randint(key, (), 4, 8)
        return jnp.ones(1), steps_left

    def step(self, key, state, action, params):
        del key, action, params
        value = jnp.where(state > 1, 1.0, jnp.nan)
        info = {"final_observation": value[None]}
        no = jnp.bool_(False)
        return value[None], state - 1, value, no, no, info


@pytest.mark.slow
def test_a_mending_loop_starts_broken_environments_anew_and_leaves_the_others():
    agent = counting_agent(2)
    train_loop = loop.make_loop(DecayingWorld(), (), agent, loop.Config(num_envs=8, num_steps=5))
    state = train_loop.init(jax.random.key(0))
    plain, metrics = jax.jit(train_loop.update)(state)
    mended, same = jax.jit(train_loop.update.mending)(train_loop.init(jax.random.key(0)))
    jax.tree.map(np.testing.assert_array_equal, metrics, same)
    broken = np.asarray(state.env) <= 5
    assert broken.any()
    assert not broken.all()
    steps = np.asarray(state.env)[broken]
    earliest = np.flatnonzero(broken)[steps.argmin()]
    assert (int(metrics.origin.env), int(metrics.origin.step)) == (earliest, steps.min() - 1)
    assert np.isnan(np.asarray(plain.obs)[broken]).all()
    assert np.isfinite(mended.obs).all()
    np.testing.assert_array_equal(mended.env[~broken], plain.env[~broken])
    assert (np.asarray(mended.env)[broken] >= 4).all()
    np.testing.assert_array_equal(mended.episode.length, np.where(broken, 0, 5))
    np.testing.assert_array_equal(mended.memory, np.where(broken, 0, 5))
    assert jnp.array_equal(jax.random.key_data(mended.key), jax.random.key_data(plain.key))


@pytest.mark.slow
def test_the_front_door_says_what_was_first_not_finite():
    agent, sizes = counting_agent(2), loop.Config(num_envs=8, num_steps=5)
    with pytest.raises(FloatingPointError, match=r"update 1: environment \d pays a reward that is"):
        jaxrl.train(DecayingWorld(), (), agent, sizes, steps=40)
    jax.vmap(lambda seed: jaxrl.train(DecayingWorld(), (), agent, sizes, 40, seed)[1])(
        jnp.arange(2)
    )


def test_parameters_that_are_not_finite_are_refused_and_what_else_is_in_the_state_is_not():
    class State(NamedTuple):
        params: jax.Array
        best: jax.Array

    all_finite = nonfinite.Origin(*jnp.full((3, 4), nonfinite.NEVER))
    nonfinite.refuse(State(jnp.ones(2), jnp.array(-jnp.inf)), all_finite)
    with pytest.raises(FloatingPointError, match="parameters of the agent are not finite"):
        nonfinite.refuse(State(jnp.array([1, jnp.nan]), jnp.zeros(())), all_finite)
    for state in ({"params": jnp.array(jnp.nan), "best": 0.0}, jnp.array(jnp.nan)):
        with pytest.raises(FloatingPointError, match="parameters of the agent are not finite"):
            nonfinite.refuse(state, all_finite)
    origin = all_finite._replace(
        part=jnp.array([0, 0, 2, 1]), env=jnp.full(4, 5), step=all_finite.step.at[2:].set(7)
    )
    with pytest.raises(FloatingPointError, match=r"update 3: environment 5 pays .* in its step 8"):
        nonfinite.refuse(State(jnp.ones(2), jnp.zeros(())), origin)
