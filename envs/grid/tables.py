"""What every action does in every state, as arrays: successors and their probabilities.

Actions: 0 up, 1 right, 2 down, 3 left. Axes: S states, A = 4 actions, K outcomes. Host code.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from envs.grid.layouts import Layout, outcomes
from envs.grid.passages import STEPS, Cell


class Dynamics(NamedTuple):
    """The distribution of the next state; unused slots have probability 0 and stay."""

    successor: np.ndarray  # int32 [S, A, K]
    probability: np.ndarray  # float32 [S, A, K]


def dynamics(layout: Layout, wind: float = 0.0) -> Dynamics:
    """The dynamics of every state and action, with the smallest K that holds them all; often 1.

    A move into a wall or off the grid stays. Wind adds, with probability `|wind|`, one cell to the
    right (to the left if negative) to a move over ground: the two displacements are made as one and
    clipped to the grid, and only the cell where they end must be free, so wind can blow around
    corners. It does not affect portals, nor whether a door opens.

    Raises ValueError if `wind` is not between -1 and 1.
    """
    if not -1 < wind < 1:
        raise ValueError(f"wind is {wind}; expected a number between -1 and 1, both excluded")
    drifts = [(0, 1.0)] if wind == 0 else [(0, 1 - abs(wind)), (1 if wind > 0 else -1, abs(wind))]
    return _dynamics(layout, drifts)


def gusts(layout: Layout) -> Dynamics:
    """The dynamics in a certain gust to the left, in none and in one to the right.

    With a further axis for these three: int32 and float32 `[S, A, 3, K]`. The dynamics in a wind
    are those without a gust, and with probability |wind| those in one.
    """
    dynamics_by_drift = [_dynamics(layout, [(drift, 1.0)]) for drift in (-1, 0, 1)]
    most = max(each.successor.shape[-1] for each in dynamics_by_drift)
    padded_tables = []
    for successor, probability in dynamics_by_drift:
        spare = ((0, 0), (0, 0), (0, most - successor.shape[-1]))
        own_state = np.arange(layout.num_states, dtype=np.int32)[:, None, None]
        padded = np.pad(successor - own_state, spare) + own_state  # unused slots stay
        padded_tables.append((padded, np.pad(probability, spare)))
    return Dynamics(*(np.stack(parts, axis=2) for parts in zip(*padded_tables, strict=True)))


def _dynamics(layout: Layout, drifts: list[tuple[int, float]]) -> Dynamics:
    """The dynamics with these drifts to the right and their probabilities."""
    cells = [(row, col) for row, col in layout.cells.tolist()]
    laws = [[_law(layout, cell, action, drifts) for action in range(len(STEPS))] for cell in cells]
    most = max(len(law) for row in laws for law in row)
    states = np.arange(layout.num_states, dtype=np.int32)
    successor = np.tile(states[:, None, None], (1, len(STEPS), most))
    probability = np.zeros(successor.shape, np.float32)
    for state, action in np.ndindex(successor.shape[:2]):
        for slot, (cell, chance) in enumerate(laws[state][action].items()):
            successor[state, action, slot] = layout.index[cell]
            probability[state, action, slot] = chance
    return Dynamics(successor, probability)


def transition_matrix(dynamics: Dynamics, policy: np.ndarray | None = None) -> np.ndarray:
    """P(s' | s), float64 `[S, S]`, under a policy `[S, A]`; the uniform one where none is given.

    Raises ValueError for a policy of another shape, or whose rows are not distributions.
    """
    return _transitions(dynamics, policy).toarray()


def sparse_transitions(dynamics: Dynamics, policy: np.ndarray | None = None) -> sparse.csr_array:
    """The same without its zeros, for mazes in which a matrix of states by states is too large."""
    return sparse.csr_array(_transitions(dynamics, policy))


def _transitions(dynamics: Dynamics, policy: np.ndarray | None) -> sparse.coo_array:
    """An entry for every state, action and outcome; those of one successor add up."""
    num_states, num_actions, _ = dynamics.successor.shape
    if policy is None:
        policy = np.full((num_states, num_actions), 1 / num_actions)
    policy = np.asarray(policy, np.float64)
    if policy.shape != (num_states, num_actions):
        raise ValueError(
            f"policy has shape {policy.shape}; expected {(num_states, num_actions)}, states by"
            " actions"
        )
    if not (np.all(policy >= 0) and np.allclose(policy.sum(1), 1, atol=1e-6)):
        raise ValueError("policy has a row that is not a distribution; expected sums of 1")
    chance = dynamics.probability.astype(np.float64)
    chance /= chance.sum(-1, keepdims=True)  # float32 adds up to 1 only nearly
    rows = np.broadcast_to(np.arange(num_states)[:, None, None], chance.shape).ravel()
    entries = (policy[:, :, None] * chance).ravel()
    places = (rows, dynamics.successor.ravel())
    return sparse.coo_array((entries, places), shape=(num_states, num_states))


def _law(
    layout: Layout, cell: Cell, action: int, drifts: list[tuple[int, float]]
) -> dict[Cell, float]:
    """The cells that an action can lead to, each once, and their probabilities."""
    law: dict[Cell, float] = {}
    for drift, chance in drifts:
        for target, probability in outcomes(layout, cell, action, drift):
            law[target] = law.get(target, 0.0) + chance * probability
    return law
