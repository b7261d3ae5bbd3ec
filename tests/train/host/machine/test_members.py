"""Members side by side and in turns: the same numbers, one compilation, one state in place."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.host.machine import members


class State(NamedTuple):
    """The state of a walk that draws a number in each update."""

    place: jax.Array
    key: jax.Array


def walk(state: State, count: jax.Array) -> tuple[State, dict[str, jax.Array]]:
    """So many steps, up to 5; reports the place after each."""

    def step(i: jax.Array, carry: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
        (place, key), report = carry
        key, chance = jax.random.split(key)
        place = place + jax.random.normal(chance, place.shape)
        return State(place, key), report.at[i].set(place.sum())

    state, report = jax.lax.fori_loop(0, count, step, (state, jnp.zeros(5)))
    return state, {"sum": report}


def initial_states(size: int) -> State:
    keys = jax.random.split(jax.random.key(3), size)
    return State(jnp.arange(3.0 * size).reshape(size, 3), keys)


def test_turns_are_each_member_by_itself():
    size, count = 4, jnp.int32(3)
    after, report = jax.jit(members.loop_members(walk))(initial_states(size), count)
    for i in range(size):
        one, expected = jax.jit(walk)(
            jax.tree.map(lambda x, i=i: x[i], initial_states(size)), count
        )
        np.testing.assert_array_equal(after.place[i], one.place)
        np.testing.assert_array_equal(
            jax.random.key_data(after.key[i]), jax.random.key_data(one.key)
        )
        np.testing.assert_array_equal(report["sum"][i], expected["sum"])


def test_without_a_mesh_they_are_side_by_side_and_updates_come_first():
    after, report = jax.jit(members.map_members(walk, None))(initial_states(4), jnp.int32(3))
    turns, rows = jax.jit(members.loop_members(walk))(initial_states(4), jnp.int32(3))
    assert report["sum"].shape == (5, 4)
    np.testing.assert_allclose(report["sum"], rows["sum"].T, rtol=1e-6)
    np.testing.assert_allclose(after.place, turns.place, rtol=1e-6)


def test_turns_are_compiled_once_and_keep_one_state():
    """However many members: the walk is traced twice (shapes, program); one state at a time."""
    traces = []

    def counted_walk(state: State, count: jax.Array):
        traces.append(None)
        return walk(state, count)

    states = State(jnp.zeros((64, 10_000)), jax.random.split(jax.random.key(0), 64))
    jitted = jax.jit(members.loop_members(counted_walk), donate_argnums=0)
    compiled = jitted.lower(states, jnp.int32(1)).compile()
    assert len(traces) == 2
    used = compiled.memory_analysis()
    assert used is not None
    assert used.alias_size_in_bytes >= states.place.nbytes
    assert used.temp_size_in_bytes < states.place.nbytes / 4
