"""The maze of a run of `train.allo`, and its exact eigenvectors."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import tyro
from scipy import sparse

from envs.grid import layouts, mazes, tables
from envs.grid.env import Grid
from envs.grid.layouts import Layout
from envs.grid.observations import OBSERVATIONS, check_size
from jaxrl.agents import allo
from jaxrl.checks import Count, Range
from jaxrl.spectral import laplacian, sparse_laplacian
from jaxrl.spectral.laplacian import Eigensystem
from train.allo import directed_scores, scores
from train.host import memory
from train.host.progress import busy

DENSE = 500
"""States up to which all eigenvectors are computed, from matrices of states by states."""
DENSE_AT_MOST = 5_000
"""The same where most of the eigenvectors are needed."""
MATRICES = 8
"""Of states by states and float32, for each seed: what an exact expectation holds while it is made.
Counts, graph, chain, powers and products. For a directed walk four times as many, as its graph has
two nodes for each state."""


@dataclass(frozen=True)
class Maze:
    """The maze of the random walk, which starts anywhere: its starts and goals are ignored."""

    maze: str = "GridRoom-4"
    """A name, such as GridMaze-17, corridors-400-seed7 or rooms-4x4-size5-seed3."""
    maze_file: Annotated[str, tyro.conf.arg(name="maze-file", prefix_name=False)] = ""
    """Text file with a maze of your own instead: # is wall, . is free."""
    allow_disconnected: Annotated[bool, tyro.conf.arg(prefix_name=False)] = False
    """Accept a maze in which some cells cannot be reached from others."""
    wind: Annotated[float, Range(above=-1.0, below=1.0)] = 0.0
    """Probability that wind blows a move to the right; negative: to the left."""
    transitions: Count = 1_000_000
    """Transitions recorded before learning starts."""
    walk_steps: Count = 50
    """Transitions of one walk, which starts at a random cell."""


class Problem(NamedTuple):
    """A maze with its exact eigenvectors."""

    layout: Layout
    env: Grid
    params: Any
    inputs: np.ndarray  # [S, ...] of the network
    chain: sparse.csr_array  # P [S, S] of the walk
    truth: Any  # scores.Truth, or directed_scores.Truth of a directed walk
    published: np.ndarray | None  # [d] λ as papers print it, where the walk is symmetric


def make_problem(maze: Maze, observation: str, agent: allo.Config, num_seeds: int = 1) -> Problem:
    """The maze, the network's inputs for its states, and the true eigenvectors to be learned.

    The true ones are computed in double precision for the law of pairs that finite walks sample.
    Raises ValueError for what does not fit together, or into memory.
    """
    layout = make_layout(maze)
    num_states = layout.num_states
    allo.check_config(agent, num_states)
    if agent.expectation == "exact":
        check_exact(num_states, num_seeds, 4 * MATRICES if agent.directed else MATRICES)
    name = "coordinates" if observation == "fourier" else observation
    check_size(name, layout)
    env = Grid(layout, "index", maze.wind)
    params = dataclasses.replace(
        env.default_params,
        starts=jnp.arange(num_states, dtype=jnp.int32),
        num_starts=jnp.asarray(num_states, jnp.uint32),
        goal=jnp.zeros(num_states, bool),
        max_steps_in_episode=maze.walk_steps,
    )
    numbers = tables.Dynamics(np.asarray(params.successor), np.asarray(params.probability))
    chain = tables.sparse_transitions(numbers)
    with busy(f"computing the true eigenvectors of {num_states:,} states"):
        truth, published = make_truth(chain, maze.walk_steps, agent)
    inputs = OBSERVATIONS[name](layout)
    return Problem(layout, env, params, inputs, chain, truth, published)


def make_truth(
    chain: sparse.csr_array, steps: int, agent: allo.Config
) -> tuple[Any, np.ndarray | None]:
    """What an agent learns in walks of `steps`, and published eigenvalues if any."""
    d = agent.num_features
    if agent.directed:
        found = directed_scores.eigenpairs_of(chain, steps, agent.discount)
        return directed_scores.truth_of(found, d, agent.discount), None
    found, published = exact(chain, steps, agent.discount, d)
    return scores.truth_of(found, d), published


def exact(
    chain: sparse.csr_array, steps: int, discount: float, d: int
) -> tuple[Eigensystem, np.ndarray | None]:
    """The eigenvectors that the scores of d features need, and d published eigenvalues if any.

    `chain` is P `[S, S]`; walks of `steps` transitions start anywhere. Large mazes are solved for
    these eigenvectors alone. Raises ValueError where they would be most of very many.
    """
    num_states, count = sparse_laplacian.num_states(chain), scores.columns_needed(d)
    start = np.full(num_states, 1 / num_states)
    if num_states > DENSE and count < num_states // 4:
        found, mu = sparse_laplacian.eigensystem(chain, start, steps, discount, count)
        return found, None if mu is None else laplacian.successor_lambda(mu[:d], discount)
    if num_states > DENSE_AT_MOST:
        raise ValueError(
            f"agent.num_features is {d} in a maze of {num_states:,} states; expected fewer than "
            f"{num_states // 8}, as the truth of so many is not computed"
        )
    P = chain.toarray()
    found = laplacian.eigensystem(laplacian.sampled_pairs(P, start, steps, discount))
    if not np.allclose(P, P.T, atol=1e-12):
        return found, None
    return found, laplacian.published_eigensystem(P, discount).values[:d]


def check_exact(num_states: int, num_seeds: int, matrices: int = MATRICES) -> None:
    """Raises ValueError if there is no room for an exact expectation; nothing is allocated."""
    needed, free = matrices * 4 * num_states**2 * num_seeds, memory.free_bytes()
    if free is not None and needed > free:
        raise ValueError(
            f"agent.expectation exact needs {needed:,} bytes ({memory.human(needed)}) for "
            f"{num_states:,} states and {num_seeds} seeds, and {memory.human(free)} are free: "
            "choose the preset sampled, fewer seeds or a smaller maze"
        )


def make_layout(maze: Maze) -> Layout:
    """Raises ValueError for unknown names and for files that hold no maze."""
    if maze.maze_file:
        return layouts.load(maze.maze_file, maze.allow_disconnected)
    return mazes.named(maze.maze)
