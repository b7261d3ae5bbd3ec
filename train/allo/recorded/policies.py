"""Policies of the recorded walk other than the uniform one: tables b(a|s), float64 `[S, 4]`."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from envs.grid import tables
from envs.grid.layouts import Layout
from envs.grid.passages import Cell
from train.host.files import array_files

EXPECTED = (
    "expected uniform, exploring, greedy, four probabilities of up, right, down and left such as "
    "0.4,0.2,0.2,0.2, or an .npy file with a table of states by actions"
)
ROUNDING = 1e-6  # by which probabilities may miss the sum 1
MOST_SWEEPS = 10_000  # of value iteration, for moves that may lead to several places


def table(text: str, epsilon: float, goal: str, layout: Layout) -> np.ndarray | None:
    """The policy that `text` means, `[S, 4]`; None for the uniform one, and one that explores.

    Raises ValueError, in one line, for text and files that are no policy.
    """
    if text in ("uniform", "exploring"):
        return None
    shape = (layout.num_states, 4)
    if text == "greedy":
        return epsilon_greedy(layout, goal_cell(layout, goal), epsilon)
    numbers = _parse_numbers(text)
    if numbers is not None:
        if numbers.shape != (4,) or not (numbers >= 0).all():
            raise ValueError(f"env.policy is {text!r}; {EXPECTED}")
        total = sum(numbers.tolist())
        if abs(total - 1) > ROUNDING:
            raise ValueError(
                f"env.policy is {text!r}, which sums to {total:.7g}; expected probabilities that "
                "sum to 1: divide each by the sum"
            )
        return np.broadcast_to(numbers / total, shape).copy()
    if not text.endswith(".npy"):
        raise ValueError(f"env.policy is {text!r}; {EXPECTED}")
    return _read_table(text, shape)


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


def epsilon_greedy(layout: Layout, goal: Cell, epsilon: float) -> np.ndarray:
    """Any action with probability `epsilon`, else one that leads soonest to the goal, `[S, 4]`.

    By the moves that are expected without wind, which the policy does not reckon with; a door that
    is open in one of ten tries is ten moves. Ties share.
    """
    moves = tables.dynamics(layout)
    expected = _expected_moves(moves, int(layout.index[goal]))
    after = np.sum(moves.probability * expected[moves.successor], axis=-1)  # [S, 4]
    best = np.isclose(after, after.min(axis=1, keepdims=True))
    return epsilon / 4 + (1 - epsilon) * best / best.sum(axis=1, keepdims=True)


def _expected_moves(moves: tables.Dynamics, goal: int) -> np.ndarray:
    """The least expected number of moves to a goal from each state, float64 `[S]`.

    Where a move that fails stays, as at doors, it takes 1 / chance tries, so that these are lengths
    of shortest paths. Value iteration corrects that where it may lead elsewhere, as portals do.
    States without a way to the goal are farther than all others.
    """
    successor, chance = moves.successor, moves.probability.astype(float)
    count = len(successor)
    state, action, slot = np.nonzero(chance)
    after, tries = successor[state, action, slot], 1 / chance[state, action, slot]
    order = np.lexsort((tries, after, state))  # of several ways to a state the quickest comes first
    pairs, first = np.unique(np.stack([state, after])[:, order], axis=1, return_index=True)
    ways = sparse.csr_array((tries[order][first], tuple(pairs)), shape=(count, count))
    expected = csgraph.dijkstra(ways.T, indices=goal)
    leads = np.isfinite(expected)
    expected[~leads] = expected[leads].max() + count
    for _ in range(MOST_SWEEPS):
        better = 1 + np.min(np.sum(chance * expected[successor], axis=-1), axis=1)
        better = np.where(leads & (np.arange(count) != goal), better, expected)
        if np.allclose(better, expected, rtol=1e-6):
            break
        expected = better
    return expected


def walker(policy: np.ndarray):
    """`(state, key) -> (action, log(1/4) - log b(a|s))`, as the agent `allo` takes it."""
    log_policy = jnp.log(jnp.asarray(policy, jnp.float32))

    def walk(state: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        action = jax.random.categorical(key, log_policy[state])
        return action, -jnp.log(4.0) - log_policy[state, action]

    return walk


def _parse_numbers(text: str) -> np.ndarray | None:
    try:
        return np.array([float(part) for part in text.split(",")])
    except ValueError:
        return None


def _read_table(path: str, shape: tuple[int, int]) -> np.ndarray:
    try:
        policy = array_files.read_npy(Path(path)).astype(np.float64)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}; {EXPECTED}") from None
    except ValueError as error:
        raise ValueError(f"{path} cannot be read ({error}); {EXPECTED}") from None
    if policy.shape != shape:
        raise ValueError(f"{path} has shape {policy.shape}; expected {shape}, states by actions")
    row_errors = np.abs(policy.sum(axis=1) - 1)
    if not (policy >= 0).all() or not (row_errors <= ROUNDING).all():
        row = int(np.argmax(~(policy >= 0).all(axis=1) | ~(row_errors <= ROUNDING)))
        raise ValueError(f"row {row} of {path} is no distribution; expected numbers that sum to 1")
    return policy / policy.sum(axis=1, keepdims=True)
