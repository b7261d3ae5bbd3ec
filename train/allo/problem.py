"""What a run of `train.allo` learns: the exact eigenvectors of the walk in its maze."""

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy import sparse

from envs.grid import tables
from envs.grid.layouts import Layout
from envs.grid.observations import OBSERVATIONS, check_size
from envs.grid.space import continuous
from jaxrl.spectral import laplacian, sparse_laplacian
from jaxrl.spectral.laplacian import Eigensystem
from jaxrl.spectral.learning import allo
from train.allo import scores
from train.allo.directed import directed_scores
from train.allo.maze import Maze, make_env, make_layout
from train.allo.recorded import policies
from train.allo.recorded.winds import sampled_pairs
from train.host.compilation import memory
from train.host.machine.progress import show_activity

DENSE = 500
"""States up to which all eigenvectors are computed, from matrices of states by states."""
DENSE_AT_MOST = 5_000
"""The same where most of the eigenvectors are needed."""
SYMMETRIC = 1e-12
"""Difference of two probabilities that is rounding."""
MATRICES = 8
"""Of states by states and float32, for each seed: what an exact expectation holds while it is made.
Counts, graph, chain, powers and products. For a directed walk four times as many, as its graph has
two nodes for each state; with counts of each of the four actions twice as many."""


class Problem(NamedTuple):
    """A maze with its exact eigenvectors."""

    layout: Layout  # its cells are the S states that eigenvectors are compared on
    env: Any
    params: Any
    inputs: np.ndarray  # [S, ...] of the network
    chain: Any  # P [S, S] of the walk, sparse; None if each walk has a wind of its own
    truth: Any  # scores.Truth, or directed_scores.Truth of a directed walk
    published: np.ndarray | None  # [d] λ as papers print it, where the walk is symmetric
    policy: np.ndarray | None = None  # [S, 4] of the recorded walk; None: uniform
    is_numbered: bool = True  # or the walk visits positions, of which states are examples


def make_problem(maze: Maze, observation: str, agent: allo.Config, num_seeds: int = 1) -> Problem:
    """The maze, the network's inputs for its states, and the true eigenvectors to be learned.

    `num_seeds` are those whose matrices have to fit into the memory of one device.

    The true ones are computed in double precision for the law of pairs that finite walks sample.
    Raises ValueError for what does not fit together, or into memory.
    """
    layout = make_layout(maze)
    check_walk(maze, agent)
    if maze.step:
        return continuous_problem(maze, layout, observation, agent)
    num_states = layout.num_states
    allo.check_config(agent, num_states)
    if agent.expectation == "exact":
        check_exact(num_states, num_seeds, matrices_of(agent))
    check_size(table_name(observation), layout)
    env = make_env(maze, layout)
    params = dataclasses.replace(
        env.default_params,
        starts=jnp.arange(num_states, dtype=jnp.int32),
        num_starts=jnp.asarray(num_states, jnp.uint32),
        goal=jnp.zeros(num_states, bool),
        max_steps_in_episode=maze.walk_steps,
    )
    policy = policies.table(maze.policy, maze.epsilon, maze.goal, layout)
    check_policy(policy, agent)
    learned_policy = None if agent.importance else policy
    with show_activity(f"computing the true eigenvectors of {num_states:,} states"):
        if maze.wind_spread:
            eigensystem = wind_eigensystem(maze, layout, learned_policy, agent.discount)
            chain, truth, published = None, scores.truth_of(eigensystem, agent.num_features), None
        else:
            dynamics = tables.Dynamics(np.asarray(params.successor), np.asarray(params.probability))
            chain = tables.sparse_transitions(dynamics, learned_policy)
            if maze.explores:
                check_symmetric(chain)
            truth, published = make_truth(chain, maze.walk_steps, agent)
    inputs = inputs_of(layout, observation)
    return Problem(layout, env, params, inputs, chain, truth, published, policy)


def inputs_of(layout: Layout, observation: str) -> np.ndarray:
    """What the network sees of each cell, `[S, ...]`."""
    name = table_name(observation)
    inputs = OBSERVATIONS[name](layout)
    if name == "rendered":  # what all pictures share would drown what tells them apart
        inputs = inputs - inputs.mean(axis=0)
    return inputs


def table_name(observation: str) -> str:
    """The observation of a maze that the network is given; it makes Fourier features itself."""
    return "coordinates" if observation == "fourier" else observation


def make_truth(
    chain: sparse.csr_array, steps: int, agent: allo.Config
) -> tuple[Any, np.ndarray | None]:
    """What an agent learns in walks of `steps`, and published eigenvalues if any."""
    d = agent.num_features
    if agent.directed:
        solution = directed_scores.eigenpairs_of(chain, steps, agent.discount)
        return directed_scores.truth_of(solution, d, agent.discount), None
    solution, published = solve_eigensystem(chain, steps, agent.discount, d)
    return scores.truth_of(solution, d), published


def wind_eigensystem(
    maze: Maze, layout: Layout, policy: np.ndarray | None, discount: float
) -> Eigensystem:
    """The eigenvectors of walks that have a wind each. Raises ValueError for too many states."""
    if layout.num_states > DENSE:
        raise ValueError(
            f"env.wind_spread in a maze of {layout.num_states:,} states; expected at most {DENSE}, "
            "as the truth of more is not computed"
        )
    winds = (maze.wind - maze.wind_spread, maze.wind + maze.wind_spread)
    gusts = tables.gusts(layout)
    pairs = sampled_pairs(gusts, winds, maze.walk_steps, discount, policy)
    return laplacian.eigensystem(pairs)


def continuous_problem(maze: Maze, layout: Layout, observation: str, agent: allo.Config) -> Problem:
    """The space between the walls, with eigenfunctions at the middles of fine cells."""
    allo.check_config(agent)
    if agent.expectation == "exact" or observation in ("one_hot", "pixels"):
        raise ValueError(
            "env.step above 0 makes states positions: they need agent.expectation sampled and "
            "network.observation fourier, coordinates or rendered, as in the presets continuous "
            "and frames"
        )
    fine = continuous.fine_layout(layout, maze.truth_cells)
    env = continuous.ContinuousMaze(layout, maze.step)
    params = dataclasses.replace(env.default_params, max_steps_in_episode=maze.walk_steps)
    with show_activity(f"computing the true eigenfunctions on {fine.num_states:,} cells"):
        chain = continuous.fine_chain(layout, maze.step, maze.truth_cells)
        eigensystem, published = solve_eigensystem(
            chain, maze.walk_steps, agent.discount, agent.num_features
        )
    middles = (fine.cells + 0.5).astype(np.float32) / maze.truth_cells
    inputs = continuous.coordinates(middles, layout.height, layout.width)
    truth = scores.truth_of(eigensystem, agent.num_features)
    return Problem(fine, env, params, inputs, chain, truth, published, is_numbered=False)


def check_walk(maze: Maze, agent: allo.Config) -> None:
    """Raises ValueError for walks that cannot be, and weights that they do not have."""
    if not abs(maze.wind) + maze.wind_spread < 1:
        raise ValueError(
            f"env.wind is {maze.wind} and env.wind_spread {maze.wind_spread}; expected winds "
            "between -1 and 1"
        )
    if agent.importance and (maze.policy == "uniform" or maze.wind_spread or maze.step):
        raise ValueError(
            "agent.importance needs an env.policy other than uniform, without env.wind_spread and "
            "env.step"
        )
    if maze.explores and (
        agent.expectation == "sampled" or agent.directed or agent.importance or maze.wind_spread
    ):
        raise ValueError(
            "env.policy exploring needs agent.expectation exact, without agent.directed, "
            "agent.importance and env.wind_spread"
        )


def check_symmetric(chain: sparse.csr_array) -> None:
    """Raises ValueError for a maze whose states an exploring walk weighs as no uniform one does."""
    if abs(chain - chain.T).max() > SYMMETRIC:
        raise ValueError(
            "env.policy exploring visits all states alike, as the uniform walk does only where "
            "each move is as likely as the one back: choose a maze without doors, portals and "
            "env.wind, or another env.policy"
        )


def check_policy(policy: np.ndarray | None, agent: allo.Config) -> None:
    """Raises ValueError if the uniform walk cannot be learned from a policy."""
    if policy is not None and agent.importance and not (policy > 0).all():
        state, action = np.argwhere(policy <= 0)[0]
        raise ValueError(
            f"agent.importance needs a policy that may take every action, but action {action} has "
            f"probability 0 in state {state}: give it some"
        )


def solve_eigensystem(
    chain: sparse.csr_array, steps: int, discount: float, d: int
) -> tuple[Eigensystem, np.ndarray | None]:
    """The eigenvectors that the scores of d features need, and d published eigenvalues if any.

    `chain` is P `[S, S]`; walks of `steps` transitions start anywhere. Large mazes are solved for
    these eigenvectors alone. Raises ValueError where they would be most of very many.
    """
    num_states, count = sparse_laplacian.num_states(chain), scores.columns_needed(d)
    start = np.full(num_states, 1 / num_states)
    if num_states > DENSE and count < num_states // 4:
        eigensystem, mu = sparse_laplacian.eigensystem(chain, start, steps, discount, count)
        return eigensystem, None if mu is None else laplacian.successor_lambda(mu[:d], discount)
    if num_states > DENSE_AT_MOST:
        most = max(x for x in range(1, d) if scores.columns_needed(x) < num_states // 4)
        raise ValueError(
            f"agent.num_features is {d} in a maze of {num_states:,} states; expected at most "
            f"{most:,}, as the truth of more is not computed"
        )
    P = chain.toarray()
    eigensystem = laplacian.eigensystem(laplacian.sampled_pairs(P, start, steps, discount))
    if not np.allclose(P, P.T, atol=SYMMETRIC):
        return eigensystem, None
    return eigensystem, laplacian.published_eigensystem(P, discount).values[:d]


def matrices_of(agent: allo.Config) -> int:
    """How many matrices of states by states an exact expectation takes for each seed."""
    if agent.directed:
        return 4 * MATRICES
    return 2 * MATRICES if agent.estimate == "actions" else MATRICES


def check_exact(num_states: int, num_seeds: int, matrices: int = MATRICES) -> None:
    """Raises ValueError if there is no room for an exact expectation; nothing is allocated.

    `num_seeds` are those that share a memory.
    """
    needed, free = matrices * 4 * num_states**2 * num_seeds, memory.free_bytes()
    if free is not None and needed > free:
        raise ValueError(
            f"agent.expectation exact needs {needed:,} bytes ({memory.human(needed)}) for "
            f"{num_states:,} states and {num_seeds} seeds, and {memory.human(free)} are free: "
            "choose the preset sampled, fewer seeds or a smaller maze"
        )
