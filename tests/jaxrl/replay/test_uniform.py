"""The ring against a plain Python list of rows."""

from collections import deque
from functools import partial
from typing import Any, NamedTuple

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from jaxrl.replay import uniform
from jaxrl.types import Transition

N = 3


class Step(NamedTuple):
    """What these tests store: every kind of dtype, and a name for each step of each environment."""

    name: Any  # int32; time * N + environment
    pixels: Any  # [2] uint8
    position: Any  # [2, 2] float32
    terminated: Any
    truncated: Any


EXAMPLE = Step(
    jnp.zeros((), jnp.int32),
    jnp.zeros(2, jnp.uint8),
    jnp.zeros((2, 2)),
    jnp.zeros((), bool),
    jnp.zeros((), bool),
)


def rollout(start: int, endings: np.ndarray) -> Step:
    """Steps `start ...` of N environments; `endings [T, N]` is 0 going on, 1 dead, 2 timed out."""
    length = len(endings)
    name = start * N + np.arange(length * N, dtype=np.int32).reshape(length, N)
    return Step(
        name,
        np.stack([name % 251, name % 241], axis=-1).astype(np.uint8),
        name[..., None, None] + np.array([[0.0, 0.25], [0.5, 0.75]], np.float32),
        endings == 1,
        endings == 2,
    )


class ListReplay:
    """The slow and obvious model: a list of rows, the oldest of which falls out."""

    def __init__(self, capacity: int):
        self.rows: deque[Step] = deque(maxlen=capacity)
        self.time = 0

    def add(self, steps: Step) -> None:
        for t in range(len(steps.name)):
            self.rows.append(Step(*(x[t] for x in steps)))
        self.time += len(steps.name)

    def windows(self, length: int, cross: bool) -> dict[int, tuple[list[int], list[bool]]]:
        """Every window that may be sampled: name of its first step -> (names, mask)."""
        windows = {}
        for start in range(len(self.rows) - length + 1):
            for env in range(N):
                names, mask, over = [], [], False
                for t in range(start, start + length):
                    mask.append(not over)
                    names.append(names[-1] if over else int(self.rows[t].name[env]))
                    ended = self.rows[t].terminated[env] or self.rows[t].truncated[env]
                    over = over or (bool(ended) and not cross)
                windows[names[0]] = (names, mask)
        return windows


add = jax.jit(uniform.add)
sample = jax.jit(uniform.sample, static_argnums=(2, 3, 4))


def filled_ring(capacity: int, lengths: list[int], seed: int = 0, num_endings: int = 3):
    """A ring and its model after the same rollouts; about two steps in `num_endings` end."""
    random = np.random.default_rng(seed)
    ring, model = uniform.init(EXAMPLE, capacity, N), ListReplay(capacity)
    for length in lengths:
        endings = random.integers(0, num_endings, (length, N))
        steps = rollout(model.time, endings)
        ring = add(ring, steps)
        model.add(steps)
    return ring, model


def assert_same_content(ring: uniform.Replay, model: ListReplay) -> None:
    capacity = uniform.ring_shape(ring)[0]
    assert int(ring.size) == len(model.rows)
    assert int(ring.head) == model.time % capacity
    order = (int(ring.head) - int(ring.size) + np.arange(int(ring.size))) % capacity
    for stored, example, *rows in zip(ring.data, EXAMPLE, *model.rows, strict=True):
        assert stored.dtype == example.dtype
        np.testing.assert_array_equal(np.asarray(stored)[order], np.stack(rows))


def assert_windows_allowed(window: uniform.Window, model: ListReplay, length: int, cross: bool):
    """Every window is one of the model's, and every one of the model's was drawn."""
    allowed = model.windows(length, cross)
    names, mask = np.asarray(window.data.name), np.asarray(window.mask)  # [L, B]
    for b in range(names.shape[1]):
        assert (names[:, b].tolist(), mask[:, b].tolist()) == allowed[names[0, b]]
    assert set(names[0].tolist()) == set(allowed)
    # The other leaves belong to the same steps.
    all_steps = rollout(0, np.zeros((model.time, N), int))
    np.testing.assert_array_equal(window.data.pixels, all_steps.pixels.reshape(-1, 2)[names])
    np.testing.assert_array_equal(window.data.position, all_steps.position.reshape(-1, 2, 2)[names])


@settings(max_examples=25, deadline=None)
@given(capacity=st.sampled_from([1, 4, 7]), seed=st.integers(0, 99), data=st.data())
def test_the_ring_holds_the_newest_rows(capacity, seed, data):
    lengths = data.draw(st.lists(st.integers(1, capacity), min_size=1, max_size=6))
    ring, model = filled_ring(capacity, lengths, seed)
    assert_same_content(ring, model)


@settings(max_examples=40, deadline=None)
@given(
    length=st.integers(1, 4),
    cross=st.booleans(),
    seed=st.integers(0, 999),
    rollouts=st.lists(st.sampled_from([1, 3, 4]), min_size=4, max_size=8),
    num_endings=st.sampled_from([1, 3, 9, 20]),
)
def test_windows_cross_neither_the_write_head_nor_an_end(
    length, cross, seed, rollouts, num_endings
):
    ring, model = filled_ring(7, rollouts, seed, num_endings)
    window = sample(ring, jax.random.key(seed), 600, length, cross)
    assert window.mask.shape == (length, 600)
    assert_windows_allowed(window, model, length, cross)


def test_a_window_is_masked_as_where_many_are_drawn():
    """One window, of more steps than there are windows."""
    ring, model = filled_ring(7, [4, 3], num_endings=20)
    allowed = model.windows(4, cross=False)
    for seed in range(20):
        window = sample(ring, jax.random.key(seed), 1, 4, False)
        names, mask = (np.asarray(x)[:, 0].tolist() for x in (window.data.name, window.mask))
        assert (names, mask) == allowed[names[0]]


@pytest.mark.parametrize("length", [1, 2, 5])
def test_wrap_around_at_every_offset(length):
    ring, model = filled_ring(5, [1] * 3)
    for offset in range(12):  # 12 rollouts of 1, 2 or 5 rows leave the head everywhere
        steps = rollout(model.time, np.zeros((1 + offset % 2 * (length - 1), N), int))
        ring = add(ring, steps)
        model.add(steps)
        assert_same_content(ring, model)
        window = sample(ring, jax.random.key(offset), 400, 3, False)
        assert_windows_allowed(window, model, 3, False)


def test_starts_are_uniform():
    """χ² against equal shares, at a fixed key: within four deviations of its mean."""
    ring, model = filled_ring(7, [4, 4, 3], seed=1)
    starts, batch = (7 - 3 + 1) * N, 30_000
    window = sample(ring, jax.random.key(5), batch, 3, False)
    counts = np.unique(np.asarray(window.data.name[0]), return_counts=True)[1]
    assert len(counts) == len(model.windows(3, False)) == starts
    expected = batch / starts
    chi_square = np.sum((counts - expected) ** 2 / expected)
    degrees = starts - 1
    assert abs(chi_square - degrees) < 4 * np.sqrt(2 * degrees)


def test_windows_end_where_experience_does_not_go_on():
    """Steps 0 to 2, then 7 to 9; the last one of the second environment is terminal."""
    endings = np.zeros((3, N), int)
    endings[2, 1] = 1
    ring = uniform.end_episodes(add(uniform.init(EXAMPLE, 8, N), rollout(0, endings)))
    assert np.asarray(ring.data.truncated[:3]).sum() == N - 1
    ring = add(ring, rollout(7, np.zeros((3, N), int)))
    window = sample(ring, jax.random.key(0), 200, 3, False)
    times = np.asarray(window.data.name) // N  # [L, B]
    assert set(times[0]) == {0, 1, 2, 7}
    assert (times[-1] == np.where(times[0] < 7, 2, 9)).all()


def test_windows_longer_than_what_is_written_stay_on_the_newest_row():
    ring, _ = filled_ring(7, [2], num_endings=1)
    window = sample(ring, jax.random.key(0), 50, 4, False)
    env = np.asarray(window.data.name[0])
    assert set(env.tolist()) == set(range(N))
    np.testing.assert_array_equal(window.data.name, np.stack([env] + [env + N] * 3))
    np.testing.assert_array_equal(window.mask[:, 0], [True, True, False, False])


def test_nothing_is_masked_in_when_nothing_is_written():
    ring = uniform.init(EXAMPLE, 7, N)
    window = sample(ring, jax.random.key(0), 50, 2, False)
    assert not np.any(window.mask)
    assert all(not np.any(leaf) for leaf in window.data)


def test_rows_for_rounds_up():
    assert [uniform.rows_for(n, 256) for n in (1, 256, 257, 100_000)] == [1, 1, 2, 391]


def flood_replay() -> uniform.Replay:
    """100,000 transitions of 13 floats from 250 environments."""
    obs, no = jnp.zeros(13), jnp.zeros((), bool)
    example = Transition(obs, jnp.zeros((), jnp.int32), jnp.zeros(()), obs, no, no, ())
    return uniform.init(example, uniform.rows_for(100_000, 250), 250)


@partial(jax.jit, donate_argnums=0)
def add_and_sample(ring: uniform.Replay, steps: Transition, key: jax.Array):
    def body(carry, _):
        ring, key = carry
        key, sample_key = jax.random.split(key)
        ring = uniform.add(ring, steps)
        window = uniform.sample(ring, sample_key, 64, 3)
        return (ring, key), jnp.mean(window.data.obs)

    (ring, _), means = jax.lax.scan(body, (ring, key), length=10)
    return ring, means


def memory_of(function, *args) -> Any:
    """What the compiler says the jitted function needs, in bytes."""
    return function.lower(*args).compile().memory_analysis()


@pytest.mark.parametrize("length", [1, 7, 40])  # 7 does not divide the 400 rows
def test_one_copy_in_memory(length):
    ring = flood_replay()
    arithmetic = 100_000 * (13 * 4 + 4 + 4 + 13 * 4 + 1 + 1)
    assert sum(x.nbytes for x in jax.tree.leaves(ring)) <= 1.01 * arithmetic

    steps = jax.tree.map(lambda x: jnp.ones((length, *x.shape[1:]), x.dtype), ring.data)
    memory = memory_of(add_and_sample, ring, steps, jax.random.key(0))
    assert memory.alias_size_in_bytes >= arithmetic  # written in place
    new = memory.output_size_in_bytes - memory.alias_size_in_bytes
    assert memory.temp_size_in_bytes + new < 0.1 * arithmetic  # and no second copy on the way

    before = [x.unsafe_buffer_pointer() for x in jax.tree.leaves(ring.data)]
    ring, _ = add_and_sample(ring, steps, jax.random.key(0))
    assert [x.unsafe_buffer_pointer() for x in jax.tree.leaves(ring.data)] == before


def test_one_copy_in_memory_of_several_seeds():
    ring = jax.vmap(lambda _: flood_replay())(jnp.arange(2))
    steps = jax.tree.map(lambda x: jnp.ones((2, 7, *x.shape[2:]), x.dtype), ring.data)
    batched = jax.jit(jax.vmap(add_and_sample), donate_argnums=0)
    keys = jax.random.split(jax.random.key(0), 2)
    memory = memory_of(batched, ring, steps, keys)
    assert memory.temp_size_in_bytes < 0.1 * memory.alias_size_in_bytes


def test_clear_words_for_what_does_not_fit():
    ring = uniform.init(EXAMPLE, 4, N)
    steps = rollout(0, np.zeros((2, N), int))
    cases = {
        r"\.name holds rows int32\[3\], the rollout brings float32\[3\]": steps._replace(
            name=steps.name.astype(np.float32)
        ),
        rf"for {N} environments, .* has 2: .* by num_envs=2": Step(*(x[:, :2] for x in steps)),
        "store what init saw": steps._replace(pixels=None),
        "a rollout of 5 steps does not fit a replay of 4 rows": rollout(0, np.zeros((5, N), int)),
    }
    for words, wrong in cases.items():
        with pytest.raises(ValueError, match=words) as error:
            uniform.add(ring, wrong)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="windows of 5 steps from a replay of 4 rows"):
        uniform.sample(ring, jax.random.key(0), 8, 5)
    with pytest.raises(ValueError, match="batch_size is 4, blocks is 3, expected blocks to divide"):
        uniform.sample(uniform.init(EXAMPLE, 4, N, blocks=3), jax.random.key(0), 4)
    with pytest.raises(ValueError, match="at least one row"):
        uniform.init(EXAMPLE, 0, N)
    with pytest.raises(ValueError, match="32 bits"):
        uniform.init(EXAMPLE, 2**30, 2)


def test_plain_python_values_are_stored_and_windows_without_endings_are_refused():
    replay = uniform.init({"reward": 1.0}, 4, 2)
    replay = uniform.add(replay, {"reward": jnp.arange(8.0).reshape(4, 2)})
    window = uniform.sample(replay, jax.random.key(0), 3, length=2, cross_episodes=True)
    np.testing.assert_array_equal(window.data["reward"][1] - window.data["reward"][0], 2)
    with pytest.raises(TypeError, match="stores a dict, which does not say where episodes end"):
        uniform.sample(replay, jax.random.key(0), 3, length=2)
