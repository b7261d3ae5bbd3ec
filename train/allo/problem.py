"""The maze of a run of `train.allo`, and its exact eigenvectors."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import tyro

from envs.grid import layouts, mazes, tables
from envs.grid.env import Grid
from envs.grid.layouts import Layout
from envs.grid.observations import OBSERVATIONS
from jaxrl.agents import allo
from jaxrl.spectral import laplacian
from train.allo import scores
from train.allo.scores import Truth


@dataclass(frozen=True)
class Maze:
    """The maze of the random walk, which starts anywhere: its starts and goals are ignored."""

    maze: str = "GridRoom-4"
    """A name, such as GridMaze-17, corridors-400-seed7 or rooms-4x4-size5-seed3."""
    maze_file: Annotated[str, tyro.conf.arg(name="maze-file", prefix_name=False)] = ""
    """Text file with a maze of your own instead: # is wall, . is free."""
    allow_disconnected: Annotated[bool, tyro.conf.arg(prefix_name=False)] = False
    """Accept a maze in which some cells cannot be reached from others."""
    wind: float = 0.0
    """Probability that wind blows a move to the right; negative: to the left."""
    transitions: int = 1_000_000
    """Transitions recorded before learning starts."""
    walk_steps: int = 50
    """Transitions of one walk, which starts at a random cell."""


class Problem(NamedTuple):
    """A maze with its exact eigenvectors."""

    layout: Layout
    env: Grid
    params: Any
    inputs: np.ndarray  # [S, ...] of the network
    truth: Truth
    published: np.ndarray | None  # [d] λ as papers print it, where the walk is symmetric


def make_problem(maze: Maze, observation: str, agent: allo.Config) -> Problem:
    """The maze, the network's inputs for its states, and the true eigenvectors to be learned.

    The true ones are computed in double precision for the law of pairs that finite walks sample.
    """
    layout = make_layout(maze)
    env = Grid(layout, "index", maze.wind)
    num_states, d, discount = env.num_states, agent.num_features, agent.discount
    allo.check_config(agent, num_states)
    params = dataclasses.replace(
        env.default_params,
        starts=jnp.arange(num_states, dtype=jnp.int32),
        num_starts=jnp.asarray(num_states, jnp.uint32),
        goal=jnp.zeros(num_states, bool),
        max_steps_in_episode=maze.walk_steps,
    )
    chain = tables.transition_matrix(tables.dynamics(layout, maze.wind))
    start = np.full(num_states, 1 / num_states)
    law = laplacian.sampled_pairs(chain, start, maze.walk_steps, discount)
    truth = scores.truth_of(laplacian.eigensystem(law), d)
    published = None
    if np.allclose(chain, chain.T, atol=1e-12):
        published = laplacian.published_eigensystem(chain, discount).values[:d]
    inputs = OBSERVATIONS["coordinates" if observation == "fourier" else observation](layout)
    return Problem(layout, env, params, inputs, truth, published)


def make_layout(maze: Maze) -> Layout:
    """Raises ValueError for unknown names and for files that hold no maze."""
    if maze.maze_file:
        return layouts.load(maze.maze_file, maze.allow_disconnected)
    return mazes.named(maze.maze)
