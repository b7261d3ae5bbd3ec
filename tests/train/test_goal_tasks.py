"""Goal tasks: distances, starts, and learners whose progress is counted right."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.grid.env import Grid
from envs.grid.layouts import parse
from jaxrl import potentials
from jaxrl.agents import q_learning
from train import goal_tasks
from train.goal_tasks import Config

ROOMS = parse("....#....\n....#....\n.........\n....#....\n....#....")
ENV = Grid(ROOMS, "index")
SHORT = Config(num_steps=1500, evaluate_every=250, games=8, max_steps=60, min_distance=6)
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
    distances = jax.jit(goal_tasks.steps_to)
    for goal in (0, 20):
        np.testing.assert_array_equal(distances(params, goal), breadth_first(params, goal))


def test_a_task_starts_far_away_and_where_the_goal_can_be_reached():
    oneway = Grid(parse(".,DR,.,.,."), "index")  # from the right there is no way back
    task = goal_tasks.task(oneway.default_params, 0, Config(min_distance=1, max_steps=9))
    assert sorted(np.asarray(task.starts[: int(task.num_starts)])) == [1]
    task = goal_tasks.task(oneway.default_params, 4, Config(min_distance=3))
    assert sorted(np.asarray(task.starts[: int(task.num_starts)])) == [0, 1]
    np.testing.assert_array_equal(task.goal, [False] * 4 + [True])
    assert task.max_steps_in_episode == 250


def test_goals_differ_and_have_starts():
    goals = goal_tasks.draw_goals(ENV.default_params, 10, 3, Config(min_distance=9))
    assert len(set(goals.tolist())) == 10
    for goal in goals:
        assert np.max(breadth_first(ENV.default_params, goal)) >= 9
    with pytest.raises(ValueError, match="but only 0 states have a start 40 moves away"):
        goal_tasks.draw_goals(ENV.default_params, 1, 0, Config(min_distance=40))


def learned(
    potential: jax.Array | None,
    goals: list[int],
    agent: q_learning.Config,
    config: Config = SHORT,
) -> goal_tasks.Progress:
    """`[G, 3]` learners with the same luck whatever they are given."""
    keys = jax.random.split(jax.random.key(0), 3)
    return goal_tasks.learn_goals(
        ENV, ENV.default_params, jnp.array(goals), keys, config, agent, potential
    )


def test_a_perfect_potential_teaches_at_once_what_else_takes_long():
    goals = [0, 36]
    hops = jnp.stack([goal_tasks.steps_to(ENV.default_params, goal) for goal in goals])
    perfect = jnp.repeat(jax.vmap(potentials.from_distance)(hops)[:, None], 3, axis=1)
    before = goal_tasks.learn_goals._cache_size()  # pyright: ignore[reportAttributeAccessIssue]
    shaped = learned(perfect, goals, SHAPED)
    plain = learned(jnp.zeros_like(perfect), goals, q_learning.Config())
    after = goal_tasks.learn_goals._cache_size()  # pyright: ignore[reportAttributeAccessIssue]
    assert after == before + 1, "arms that differ in numbers alone share one compilation"
    assert shaped.success.shape == shaped.length.shape == (2, 3, 6)
    assert shaped.area.shape == shaped.first.shape == (2, 3)
    np.testing.assert_array_equal(shaped.steps[0, 0], 250 * np.arange(1, 7))
    assert float(jnp.min(shaped.success[..., 1:])) == 1.0
    starts = hops >= 6  # the mean of the shortest ways, four standard errors of 8 games each way
    expected = jnp.sum(jnp.where(starts, hops, 0), 1) / jnp.sum(starts, 1)
    np.testing.assert_allclose(jnp.mean(shaped.length[..., -1], 1), expected, atol=2.0)
    assert float(jnp.mean(plain.area)) < 0.8 < float(jnp.mean(shaped.area))
    for progress in (shaped, plain):
        np.testing.assert_allclose(progress.area, jnp.mean(progress.success, -1), rtol=1e-6)
        for first, success in zip(
            progress.first.ravel(), progress.success.reshape(6, 6), strict=True
        ):
            good = np.flatnonzero(np.asarray(success) >= 0.9)
            assert float(first) == (250 * (good[0] + 1) if len(good) else np.inf)


def test_failures_count_as_the_longest_episode():
    """Three steps are too few for six moves."""
    hasty = replace(SHORT, max_steps=3)  # pyright: ignore[reportArgumentType]
    progress = learned(None, [0, 36], SHAPED, hasty)
    for found, expected in [
        (progress.success, 0.0),
        (progress.length, 3.0),
        (progress.area, 0.0),
        (progress.first, np.inf),
    ]:
        assert np.all(found == expected)


def test_what_does_not_suit_is_refused():
    keys = jax.random.split(jax.random.key(0), 1)
    arguments = (ENV, ENV.default_params, jnp.array([0]), keys)
    uneven = Config(num_steps=1500, evaluate_every=400)
    with pytest.raises(ValueError, match="multiple of evaluate_every"):
        goal_tasks.learn_goals(*arguments, uneven, SHAPED)
    with pytest.raises(ValueError, match="a table for each goal and learner"):
        goal_tasks.learn_goals(*arguments, SHORT, SHAPED, jnp.zeros((2, ENV.num_states)))
