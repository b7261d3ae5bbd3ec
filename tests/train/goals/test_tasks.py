"""Goal tasks: distances, starts, and learners whose progress is counted right."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.grid.env import Grid
from envs.grid.layouts import parse
from jaxrl.spectral.control import potentials, q_learning
from train.goals import tasks
from train.goals.tasks import Config

ROOMS = parse("....#....\n....#....\n.........\n....#....\n....#....")
ENV = Grid(ROOMS, "index")
SHORT = Config(evaluate_every=250, games=8, max_steps=60, min_distance=6)
SHAPED = q_learning.Config(shaping_weight=0.5, initial_value=0.5)


def breadth_first(params, goal: int) -> np.ndarray:
    """Moves to the goal by looking back from it, with a queue."""
    steps = np.full(len(params.successor), np.inf)
    steps[goal], queue = 0, [goal]
    while queue:
        state = queue.pop(0)
        leads = np.any((params.successor == state) & (params.probability > 0), axis=(1, 2))
        for before in np.flatnonzero(leads & np.isinf(steps)):
            steps[before] = steps[state] + 1
            queue.append(int(before))
    return steps


@pytest.mark.parametrize("wind", [0.0, 0.4])
def test_distances_are_those_of_a_search(wind: float):
    params = Grid(ROOMS, "index", wind=wind).default_params
    distances = jax.jit(tasks.steps_to)
    for goal in (0, 20):
        np.testing.assert_array_equal(distances(params, goal), breadth_first(params, goal))


def test_a_task_starts_far_away_and_where_the_goal_can_be_reached():
    oneway = Grid(parse(".,DR,.,.,."), "index")  # from the right there is no way back
    task = tasks.task(oneway.default_params, 0, Config(min_distance=1, max_steps=9))
    assert sorted(np.asarray(task.starts[: int(task.num_starts)])) == [1]
    task = tasks.task(oneway.default_params, 4, Config(min_distance=3))
    assert sorted(np.asarray(task.starts[: int(task.num_starts)])) == [0, 1]
    np.testing.assert_array_equal(task.goal, [False] * 4 + [True])
    assert task.max_steps_in_episode == 250


def test_goals_differ_and_have_starts():
    goals = tasks.draw_goals(ENV.default_params, 10, 3, Config(min_distance=9))
    assert len(set(goals.tolist())) == 10
    for goal in goals:
        assert np.max(breadth_first(ENV.default_params, goal)) >= 9
    with pytest.raises(ValueError, match="but only 0 states have a start 40 moves away"):
        tasks.draw_goals(ENV.default_params, 1, 0, Config(min_distance=40))


def train_learners(
    potential: jax.Array | None,
    goals: list[int],
    numbers: q_learning.Config,
    config: Config = SHORT,
    checkpoints: int = 6,
) -> list[tasks.Progress]:
    """Progress `[3, C]` of three learners of each goal, with the same luck whatever they get."""
    keys = jax.random.split(jax.random.key(0), 3)
    make = partial(q_learning.make, numbers, ENV.num_states, ENV.num_actions)

    @jax.jit
    def of_goal(goal: jax.Array, table: jax.Array | None):
        task = tasks.task(ENV.default_params, goal, config)
        parts = ENV, task, make(table), make(table, greedy=True)

        def checkpoint(learner, _):
            learner, *scores = tasks.checkpoint(*parts, learner, config)
            return learner, scores

        def one(key):
            start = tasks.begin(*parts, key, config)
            return jax.lax.scan(checkpoint, start, length=checkpoints)[1]

        return jax.vmap(one)(jax.random.clone(keys))

    progress = []
    for i, goal in enumerate(goals):
        success, length = of_goal(jnp.int32(goal), None if potential is None else potential[i])
        progress.append(tasks.progress(np.asarray(success), np.asarray(length), config))
    return progress


@pytest.mark.slow
def test_a_perfect_potential_teaches_at_once_what_else_takes_long():
    goals = [0, 36]
    hops = jnp.stack([tasks.steps_to(ENV.default_params, goal) for goal in goals])
    perfect = jax.vmap(potentials.from_distance)(hops)
    shaped = train_learners(perfect, goals, SHAPED)
    plain = train_learners(jnp.zeros_like(perfect), goals, q_learning.Config())
    for progress, moves in zip(shaped, np.asarray(hops), strict=True):
        assert progress.success.shape == progress.length.shape == (3, 6)
        np.testing.assert_array_equal(progress.steps, 250 * np.arange(1, 7))
        assert progress.success[:, 1:].min() == 1.0
        # the mean of the shortest ways, four standard errors of 8 games each way
        expected = moves[moves >= 6].mean()
        np.testing.assert_allclose(progress.length[:, -1].mean(), expected, atol=2.0)
    area = lambda results: np.mean([progress.area for progress in results])
    assert area(plain) < 0.8 < area(shaped)
    for progress in (*shaped, *plain):
        np.testing.assert_allclose(progress.area, progress.success.mean(axis=1), rtol=1e-6)
        for first, success in zip(progress.first, progress.success, strict=True):
            good = np.flatnonzero(success >= 0.9)
            assert first == (250 * (good[0] + 1) if len(good) else np.inf)


@pytest.mark.slow
def test_failures_count_as_the_longest_episode():
    """Three steps are too few for six moves."""
    hasty = replace(SHORT, max_steps=3)  # pyright: ignore[reportArgumentType]
    for progress in train_learners(None, [0, 36], SHAPED, hasty):
        for measure, expected in [
            (progress.success, 0.0),
            (progress.length, 3.0),
            (progress.area, 0.0),
            (progress.first, np.inf),
        ]:
            assert np.all(measure == expected)
