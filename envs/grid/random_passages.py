"""Doors and openings of a maze, drawn at random from a seed."""

from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from envs.grid.layouts import Layout, outcomes
from envs.grid.passages import Cell, Door, neighbour


def with_doors(layout: Layout, count: int, seed: int, back: float = 0.0) -> Layout:
    """The maze with `count` more doors, in different passages between neighbouring cells.

    Each is open in one direction, drawn like its place from `seed`; the move back succeeds with
    probability `back`. Every cell can still be reached from every other that it could be reached
    from. Raises ValueError if the maze has no room for so many.
    """
    if count == 0:
        return layout
    door_edges = {frozenset((d.cell, neighbour(d.cell, d.direction))) for d in layout.doors}
    ways = [way for way in _ways(layout) if frozenset((way[0], neighbour(*way))) not in door_edges]
    chain, parts = _moves(layout), None
    doors: list[Door] = []
    rng = np.random.default_rng(seed)
    for i in rng.permutation(len(ways)):
        if len(doors) == count:
            break
        cell, direction = ways[i]
        if rng.integers(2):
            cell, direction = neighbour(cell, direction), direction ^ 2
        if back == 0:  # the move back is lost: is there another way?
            if parts is None:
                parts = _strong_parts(chain)
            move_index = layout.index[neighbour(cell, direction)], layout.index[cell]
            other_moves, chain[move_index] = chain[move_index], 0
            if _strong_parts(chain) != parts:
                chain[move_index] = other_moves
                continue
        doors.append(Door(cell, direction, back))
    if len(doors) < count:
        raise ValueError(
            f"maze {layout.name!r} has room for {len(doors)} random doors that leave a way back; "
            f"expected {count}: ask for fewer, or for doors with a probability of the way back"
        )
    return replace(layout, doors=(*layout.doors, *doors))


def with_openings(layout: Layout, count: int, seed: int) -> Layout:
    """The maze in which `count` walls of one tile between two free cells are free as well.

    They are drawn from `seed`. Raises ValueError if there are fewer such walls.
    """
    if count == 0:
        return layout
    free = np.pad(layout.free, 1)
    beside_free = (free[:-2, 1:-1] & free[2:, 1:-1]) | (free[1:-1, :-2] & free[1:-1, 2:])
    walls = np.argwhere(~layout.free & beside_free)
    if len(walls) < count:
        raise ValueError(
            f"maze {layout.name!r} has {len(walls)} walls between two free cells; expected at "
            f"least {count}: ask for fewer openings"
        )
    new_free = layout.free.copy()
    new_free[tuple(walls[np.random.default_rng(seed).permutation(len(walls))[:count]].T)] = True
    return replace(layout, free=new_free)


def _ways(layout: Layout) -> list[tuple[Cell, int]]:
    """Every passage between two free neighbours once: a cell, and right or down."""
    free = np.pad(layout.free, ((0, 1), (0, 1)))
    ways = []
    for row, col in layout.cells.tolist():
        ways += [((row, col), 1)] if free[row, col + 1] else []
        ways += [((row, col), 2)] if free[row + 1, col] else []
    return ways


def _moves(layout: Layout) -> sparse.lil_array:
    """How many moves lead from state to state, `[S, S]`."""
    moves = sparse.lil_array((layout.num_states, layout.num_states))
    for state, (row, col) in enumerate(layout.cells.tolist()):
        for direction in range(4):
            for target, _ in outcomes(layout, (row, col), direction):
                moves[state, layout.index[target]] += 1
    return moves


def _strong_parts(moves: sparse.lil_array) -> int:
    """Into how many parts the states fall of which each can be reached from each."""
    positive = sparse.csr_array(moves)
    positive.eliminate_zeros()
    return csgraph.connected_components(positive, connection="strong")[0]
