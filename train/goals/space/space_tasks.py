"""Tasks in open space, from the eigenvectors that a run of `train.allo` has learned.

Axes: F fine cells, d features, K tasks.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from scipy.sparse import csgraph

from envs.grid.drawing import heat_map
from envs.grid.layouts import Layout
from envs.grid.space.guided import GuidedWalk, Params
from jaxrl.spectral.control import potentials
from jaxrl.spectral.learning import allo_state
from train.allo.config import learning_config
from train.allo.maze import make_layout
from train.allo.problem import Problem
from train.allo.training import make_problem, network_of
from train.goals.config import seed_of_tasks
from train.goals.features import one_step_eigenvalues, true_nearness, within_reach
from train.goals.space.space_config import ARMS, LIMIT, RADIUS, SpaceConfig, make_network
from train.host.program import Run


class Task(NamedTuple):
    """What a learner is paid for."""

    potential: np.ndarray  # [F] Φ of each fine cell; [0] where there are none
    goal: int  # the fine cell, or a number; -1 for an option
    arm: str  # one of ARMS, or "" for an option
    title: str


class Tasks(NamedTuple):
    """All tasks, and the environment that they share."""

    run: Run
    problem: Any  # of the run: `Problem` in open space
    env: Any
    params: Any  # with a leading axis K in the fields of `axes`
    axes: Any  # the same with 0 for those fields, None for others: `in_axes` of vmap
    tasks: list[Task]  # K
    name: str  # of the maze or the environment
    network: nn.Module  # of a learner
    limit: int  # steps of an episode
    arms: tuple[str, ...]

    @property
    def height(self) -> str:
        """What the way up of an option is told in."""
        return "the way to the highest place" if self.has_map else "the range that walks have seen"

    @property
    def has_map(self) -> bool:
        """Whether its places are those of a map."""
        return isinstance(self.env, GuidedWalk)


def make_tasks(config: SpaceConfig, run: Run) -> Tasks:
    """The tasks of a run in open space."""
    problem, layout = make_problem(run.config), make_layout(run.config.env)
    tasks = goal_tasks(config, run, problem) + option_tasks(config, run, problem)
    parts = run.config.env.truth_cells
    env = GuidedWalk(layout, run.config.env.step, parts)
    base = dataclasses.replace(env.default_params, max_steps_in_episode=LIMIT)
    is_goal = np.array([task.goal >= 0 for task in tasks])
    middles = (problem.layout.cells + 0.5) / parts
    # walls are as low as the lowest place, wherever the numbers of a feature lie
    fill = lambda potential: np.nan_to_num(heat_map(problem.layout, potential), nan=potential.min())
    maps = [fill(task.potential) for task in tasks]
    varying = {
        **limits_of_parts(problem, layout, tasks),
        "potential": jnp.asarray(np.stack(maps), jnp.float32),
        "goal": jnp.asarray(middles[[task.goal for task in tasks]], jnp.float32),
        "radius": jnp.where(is_goal, RADIUS, -1.0),
        "weight": jnp.asarray(
            [0.0 if t.arm == "none" else config.weight if t.goal >= 0 else 1.0 for t in tasks]
        ),
        "shaping_discount": jnp.where(is_goal, config.agent.discount, 1.0),
    }
    params = dataclasses.replace(base, **varying)
    names = [field.name for field in dataclasses.fields(base)]
    axes: Any = Params(**{name: 0 if name in varying else None for name in names})  # pyright: ignore
    name, network = problem.layout.name, make_network(config)
    return Tasks(run, problem, env, params, axes, tasks, name, network, LIMIT, ARMS)


def limits_of_parts(problem: Problem, layout: Layout, tasks: list[Task]) -> dict[str, jax.Array]:
    """What keeps tasks within the parts of a space that no walk connects; nothing if it is whole.

    Episodes of a goal start in its part, and options climb to the highest place of that they are
    in. `layout` is that of the tiles, whose cells are all in one part.
    """
    count, part = csgraph.connected_components(problem.chain, directed=False)
    if count == 1:
        return {}
    scale = problem.layout.height // layout.height
    part_of_tile = part[problem.layout.index[tuple((scale * layout.cells).T)]]
    cells, num_starts, highest = [], [], []
    for task in tasks:
        is_start = (part_of_tile == part[task.goal]) | (task.goal < 0)
        cells.append(layout.cells[np.argsort(~is_start, kind="stable")])
        num_starts.append(np.sum(is_start))
        tops = np.array([task.potential[part == i].max() for i in range(count)])
        highest.append(np.nan_to_num(heat_map(problem.layout, tops[part])))
    return {
        "cells": jnp.asarray(np.stack(cells), jnp.int32),
        "num_starts": jnp.asarray(num_starts, jnp.int32),
        "highest": jnp.asarray(np.stack(highest), jnp.float32),
    }


def goal_tasks(config: SpaceConfig, run: Run, problem: Problem) -> list[Task]:
    """Each goal in every arm. Raises ValueError for more goals than there are cells."""
    if not config.goals:
        return []
    features, values = learned_features(run, problem)
    count = len(features)
    if config.goals > count:
        raise ValueError(f"goals is {config.goals}, but the space has {count} cells: ask for fewer")
    goals = np.random.default_rng(seed_of_tasks(config)).permutation(count)[: config.goals]
    moves = csgraph.shortest_path(problem.chain, unweighted=True, indices=goals)
    nearest = true_nearness(np.atleast_2d(moves))
    learned = jnp.asarray(features), jnp.asarray(values)
    commute = jax.jit(
        lambda goal, reaches: potentials.from_distance(
            within_reach(potentials.commute_distance(*learned, goal), reaches)
        )
    )
    reaches = np.isfinite(np.atleast_2d(moves))
    tasks = []
    for i, goal in enumerate(goals):
        apart = problem.layout.cells - problem.layout.cells[goal]
        line = np.linalg.norm(apart, axis=1)
        line = np.minimum(line, line[reaches[i]].max())
        of_arm = {
            "none": np.zeros(count),
            "straight line": -line / line.max(),
            "learned distance": np.asarray(commute(goal, reaches[i])),
            "fewest moves": nearest[i],
        }
        tasks += [Task(of_arm[arm], int(goal), arm, f"goal {i + 1}, {arm}") for arm in ARMS]
    return tasks


def option_tasks(config: SpaceConfig, run: Run, problem: Problem) -> list[Task]:
    """Up and down each of the first eigenvectors after the constant one, which spans 1."""
    features, _ = learned_features(run, problem)
    tasks = []
    for i in range(1, config.options + 1):
        feature = features[:, i] / (
            np.ptp(features[:, i]) or 1.0
        )  # one that has collapsed stays flat
        tasks += [
            Task(sign * feature, -1, "", f"{i + 1}, {name}")
            for sign, name in ((1, "up"), (-1, "down"))
        ]
    return tasks


def learned_features(run: Run, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Features of all fine cells `[F, d]`, and eigenvalues `[d]` of one step of the walk."""
    learning, agent = learning_config(run.config), run.agents[0]
    network = network_of(run.config, problem)
    inputs = jnp.asarray(problem.inputs)
    features = np.asarray(jax.jit(lambda: allo_state.features(network, learning, agent, inputs))())
    spectrum = np.asarray(allo_state.eigenvalues(learning, agent))
    values = one_step_eigenvalues(spectrum, learning.discount, run.config.env.walk_steps)
    return features, values.astype(np.float32)
