"""Policies of the recorded walk other than the uniform one: tables b(a|s), float64 `[S, 4]`."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from envs.grid import tables
from envs.grid.layouts import Layout, outcomes
from envs.grid.passages import Cell
from train.host.files import array_files

WANTED = (
    "expected uniform, greedy, four numbers for up, right, down and left such as "
    "0.4,0.2,0.2,0.2, or an .npy file with a table of states by actions"
)
ROUNDING = 1e-6  # by which a row of a file may miss the sum 1


def table(
    text: str, epsilon: float, goal: str, layout: Layout, wind: float = 0.0
) -> np.ndarray | None:
    """The policy that `text` means, `[S, 4]`; None for the uniform one.

    Raises ValueError, in one line, for text and files that are no policy.
    """
    if text == "uniform":
        return None
    shape = (layout.num_states, 4)
    if text == "greedy":
        ways = tables.sparse_transitions(tables.dynamics(layout, wind))
        return epsilon_greedy(layout, ways, goal_cell(layout, goal), epsilon)
    numbers = _numbers(text)
    if numbers is not None:
        if numbers.shape != (4,) or not (numbers >= 0).all() or not 0 < numbers.sum() < np.inf:
            raise ValueError(f"env.policy is {text!r}; {WANTED}")
        return np.broadcast_to(numbers / numbers.sum(), shape).copy()
    if not text.endswith(".npy"):
        raise ValueError(f"env.policy is {text!r}; {WANTED}")
    return _of_file(text, shape)


def goal_cell(layout: Layout, text: str) -> Cell:
    """The cell that a policy walks towards: ROW,COL, or the first goal of the maze, else its last
    free cell. Raises ValueError for anything else."""
    if not text:
        row, col = layout.goals[0] if layout.goals else layout.cells[-1]
        return int(row), int(col)
    parts = text.split(",")
    if len(parts) == 2 and all(part.isdecimal() for part in parts):
        row, col = int(parts[0]), int(parts[1])
        if row < layout.height and col < layout.width and layout.free[row, col]:
            return row, col
    raise ValueError(f"env.goal is {text!r}; expected ROW,COL of a free cell, counted from 0")


def epsilon_greedy(
    layout: Layout, ways: sparse.csr_array, goal: Cell, epsilon: float
) -> np.ndarray:
    """Any action with probability `epsilon`, else one that leads nearest to the goal, `[S, 4]`.

    `ways` `[S, S]` holds an entry wherever a move may lead.
    Distances are numbers of moves, over doors and portals as they may be passed; ties share.
    """
    away = csgraph.shortest_path(ways.T, unweighted=True, indices=layout.index[goal])  # [S]
    away = np.where(np.isfinite(away), away, layout.num_states)
    greedy = np.zeros((layout.num_states, 4))
    for state, (row, col) in enumerate(layout.cells.tolist()):
        reached = [_nearest(layout, away, (row, col), action) for action in range(4)]
        best = np.isclose(reached, min(reached))
        greedy[state] = best / best.sum()
    return epsilon / 4 + (1 - epsilon) * greedy


def walker(policy: np.ndarray):
    """`(state, key) -> (action, log(1/4) - log b(a|s))`, as the agent `allo` takes it."""
    log_policy = jnp.log(jnp.asarray(policy, jnp.float32))

    def walk(state: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        action = jax.random.categorical(key, log_policy[state])
        return action, -jnp.log(4.0) - log_policy[state, action]

    return walk


def _nearest(layout: Layout, away: np.ndarray, cell: Cell, action: int) -> float:
    """Expected distance to the goal after an action."""
    ends = outcomes(layout, cell, action)
    return float(sum(chance * away[layout.index[end]] for end, chance in ends))


def _numbers(text: str) -> np.ndarray | None:
    try:
        return np.array([float(part) for part in text.split(",")])
    except ValueError:
        return None


def _of_file(path: str, shape: tuple[int, int]) -> np.ndarray:
    try:
        found = array_files.read_npy(Path(path)).astype(np.float64)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}; {WANTED}") from None
    except ValueError as error:
        raise ValueError(f"{path} cannot be read ({error}); {WANTED}") from None
    if found.shape != shape:
        raise ValueError(f"{path} has shape {found.shape}; expected {shape}, states by actions")
    off = np.abs(found.sum(axis=1) - 1)
    if not (found >= 0).all() or not (off <= ROUNDING).all():
        row = int(np.argmax(~(found >= 0).all(axis=1) | ~(off <= ROUNDING)))
        raise ValueError(f"row {row} of {path} is no distribution; expected numbers that sum to 1")
    return found / found.sum(axis=1, keepdims=True)
