"""Paths of learners in open space, over the potentials that they were paid for.

Axes: K tasks, P paths, L steps.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes

from envs.grid.space import continuous
from jaxrl import acting
from jaxrl.loop import Config as LoopConfig
from jaxrl.loop import make_loop, world_of
from jaxrl.types import AgentState
from train.allo.drawings import curves, maps
from train.goals.scores import seed_label
from train.goals.space.space_config import SpaceConfig, make_agent
from train.goals.space.space_tasks import Task, Tasks
from train.goals.space.tasks_of_run import make_tasks
from train.host.files import metrics_file
from train.host.showing import pictures

PATHS = 12
COLUMNS = 4
SIDE = 2.6  # inches
PATH, END = "#16181b", "#f2c80f"


def draw_all(directory: Path, config: SpaceConfig, agents: list[AgentState]) -> list[Path]:
    """Writes `goals.png` and `options.png`, of the first seed, where there are such tasks.

    And `arrived.png`, how often each kind of learner arrived while it learned, which is all in an
    environment of which there is no map.
    """
    tasks = make_tasks(config)
    paths = draw_ways(directory, config, tasks, agents[0]) if tasks.has_map else []
    if config.goals:
        paths.append(directory / "arrived.png")
        draw_arrivals(metrics_file.read_metrics(directory), tasks.arms, paths[-1])
    return paths


def draw_ways(directory: Path, config: SpaceConfig, tasks: Tasks, agent: AgentState) -> list[Path]:
    """Writes the ways to goals and those of options, over maps of their potentials."""
    positions = walk(config, tasks, agent, jax.random.key(config.run.seed))
    seed = seed_label(config.run.seeds)
    of_goals = [k for k, task in enumerate(tasks.tasks) if task.arm]
    of_options = [k for k, task in enumerate(tasks.tasks) if not task.arm]
    paths = []
    for stem, chosen, title in (
        ("goals", of_goals, "Ways to goals, over the potential that shaped rewards"),
        ("options", of_options, "Ways of options, which climb eigenvectors"),
    ):
        if chosen:
            paths.append(directory / f"{stem}.png")
            draw(tasks, positions, chosen, f"{title}: {tasks.name}{seed}", paths[-1])
    return paths


def draw_arrivals(rows: Sequence[pictures.Row], arms: Sequence[str], path: Path) -> None:
    """Draws the share of episodes that arrived in each arm, exploring, over steps.

    Of several seeds it is the mean. An arm of which no episode has ended has no curve.
    """
    count = len({row["seed"] for row in rows})
    of_seeds = f", mean of {count} seeds" if count > 1 else ""
    figure = pictures.titled_figure((6.4, 4.0), f"Episodes that arrive at the goal{of_seeds}")
    axes = figure.subplots()
    end = max((row["steps"] for row in rows), default=0)
    scale = pictures.style_axes(axes, "environment steps of each learner", pictures.STEPS, end)
    components = curves.component_curves(rows, "arrived")
    colours = curves.component_colours(len(arms))
    for arm, lines, colour in zip(arms, components, colours, strict=False):
        if lines:
            lines = [(x / scale, y) for x, y in lines]
            pictures.draw_mean(axes, lines, color=colour, label=arm)
    axes.set_ylim(0, 1.02)
    if any(components):
        axes.legend(frameon=False)
    else:
        pictures.say_empty(axes)
    pictures.save(figure, path)


def walk(config: SpaceConfig, tasks: Tasks, agent: AgentState, key: jax.Array) -> np.ndarray:
    """Positions `[K, P, L + 1, 2]` of greedy learners; all tasks begin in the same places.

    The first is the start, and the last of an episode where it ended; NaN after that.
    """
    player = make_agent(config, tasks.network, greedy=True)
    size, maze = LoopConfig(PATHS, tasks.limit), (tasks.env.height, tasks.env.width)

    def walk_one(params: Any, state: AgentState) -> jax.Array:
        world = world_of(make_loop(tasks.env, params, player, size).init(key))

        def step(carry: tuple[acting.World, jax.Array], _):
            world, is_over = carry
            world, (transition, _) = acting.step(tasks.env, params, player, state, world)
            # not that of the world, which has begun anew where an episode ended
            after = continuous.positions(transition.next_obs, *maze)
            position = jnp.where(is_over[:, None], jnp.nan, after)
            return (world, is_over | transition.terminated | transition.truncated), position

        begin = world, jnp.zeros(PATHS, bool)
        _, positions = jax.lax.scan(step, begin, length=tasks.limit)
        return jnp.append(world.env.position[None], positions, axis=0).swapaxes(0, 1)

    walk_all = jax.jit(jax.vmap(walk_one, in_axes=(tasks.axes, 0)))
    return np.asarray(walk_all(tasks.params, agent))


def draw(tasks: Tasks, positions: np.ndarray, chosen: list[int], title: str, path: Path) -> None:
    """One map for each of the chosen tasks, arms or directions side by side."""
    columns = len(tasks.arms) if tasks.tasks[chosen[0]].arm else COLUMNS
    rows = -(-len(chosen) // columns)
    figure = pictures.titled_figure((SIDE * columns, (SIDE + 0.25) * rows + 0.5), title)
    for i, k in enumerate(chosen):
        axes = figure.add_subplot(rows, columns, i + 1)
        draw_paths(axes, tasks, tasks.tasks[k], positions[k])
    pictures.save(figure, path)


def draw_paths(axes: Axes, tasks: Tasks, task: Task, positions: np.ndarray) -> None:
    """Paths `[P, L + 1, 2]` over the potential of a task: a dot where each ends."""
    layout, parts = tasks.problem.layout, tasks.env.parts
    largest = np.abs(task.potential).max() or 1.0
    maps.draw_map(axes, layout, task.potential, maps.DIVERGENT, (-largest, largest))
    axes.set_aspect("equal")
    for path in positions * parts - 0.5:  # in fine cells, whose middles are whole numbers
        path = path[np.isfinite(path).all(axis=1)]
        axes.plot(path[:, 1], path[:, 0], color=PATH, linewidth=0.7, alpha=0.7)
        axes.plot(path[-1, 1], path[-1, 0], "o", color=PATH, markersize=3)
    if task.goal >= 0:
        row, col = layout.cells[task.goal]
        axes.plot(col, row, "*", color=END, markeredgecolor=PATH, markersize=11)
    axes.set_title(task.title, loc="left", size=9)
