"""Mazes: which cells are free, where doors and portals are, and what a move leads to.

Host code on NumPy. A cell is (row, col), a direction 0 up, 1 right, 2 down, 3 left. The state index
numbers the free cells row by row; that order holds everywhere.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from envs.grid import passages, texts
from envs.grid.passages import Cell, Door, Portal, neighbour

MAX_STATES = 100_000
"""Free cells of a maze; its tables and eigenvectors then take a minute to compute."""


@dataclass(frozen=True, eq=False, repr=False)
class Layout:
    """A maze; cells off the grid are walls.

    Raises ValueError for fewer than two free cells, for more than `MAX_STATES` or a million tiles,
    and for starts, goals, doors and portals that are in walls or contradict each other.
    """

    free: np.ndarray  # bool [H, W]
    name: str = "maze"
    starts: tuple[Cell, ...] = ()
    """Where episodes start; none means every free cell that is no goal."""
    goals: tuple[Cell, ...] = ()
    doors: tuple[Door, ...] = ()
    portals: tuple[Portal, ...] = ()

    def __post_init__(self) -> None:
        free = np.array(self.free, bool)  # a copy, which nobody else can write to
        free.setflags(write=False)
        object.__setattr__(self, "free", free)
        _check(self)

    def __repr__(self) -> str:
        return f"Layout({self.name!r}, {self.height}x{self.width}, {self.num_states} states)"

    @property
    def height(self) -> int:
        return self.free.shape[0]

    @property
    def width(self) -> int:
        return self.free.shape[1]

    @property
    def num_states(self) -> int:
        return len(self.cells)

    @cached_property
    def cells(self) -> np.ndarray:
        """(row, col) of every state, int32 `[S, 2]`."""
        return np.argwhere(self.free).astype(np.int32)

    @cached_property
    def index(self) -> np.ndarray:
        """The state of every cell, int32 `[H, W]`; -1 in walls."""
        return np.where(self.free, np.cumsum(self.free).reshape(self.free.shape) - 1, -1).astype(
            np.int32
        )

    @cached_property
    def start_states(self) -> np.ndarray:
        """The states where episodes start, each equally likely, int32 `[starts]`."""
        goals = {self.index[cell] for cell in self.goals}
        states = [self.index[cell] for cell in dict.fromkeys(self.starts)]
        return np.array(states or sorted(set(range(self.num_states)) - goals), np.int32)

    @cached_property
    def exits(self) -> dict[tuple[Cell, int], Portal]:
        """The portal of a cell and a direction."""
        return {(portal.cell, portal.direction): portal for portal in self.portals}

    @cached_property
    def ways_back(self) -> dict[tuple[Cell, int], float]:
        """The probability that a move against a door succeeds."""
        return passages.ways_back(self.doors)


def outcomes(
    layout: Layout, cell: Cell, direction: int, drift: int = 0
) -> list[tuple[Cell, float]]:
    """The cells that a move can lead to, and their probabilities.

    A portal decides where there is one. Else the move leads one cell in the direction and `drift`
    cells to the right, clipped to the grid, and stays if a wall is there; a door that the move goes
    against lets it through with its probability `back`, else the move stays.
    """
    if portal := layout.exits.get((cell, direction)):
        return list(portal.ends)
    row, col = neighbour(cell, direction)
    row = min(max(row, 0), layout.height - 1)
    col = min(max(col + drift, 0), layout.width - 1)
    target = (row, col) if layout.free[row, col] else cell
    pass_probability = layout.ways_back.get((cell, direction), 1.0)
    candidates = [(target, pass_probability), (cell, 1.0 - pass_probability)]
    return [(cell, probability) for cell, probability in candidates if probability > 0]


def regions(layout: Layout) -> list[np.ndarray]:
    """State indices of the parts that no move connects, in either direction, largest first."""
    states, targets = [], []
    for state, (row, col) in enumerate(layout.cells.tolist()):
        for direction in range(4):
            for target, _ in outcomes(layout, (row, col), direction):
                states.append(state)
                targets.append(int(layout.index[target]))
    size = (layout.num_states, layout.num_states)
    links = sparse.csr_array((np.ones(len(states)), (states, targets)), shape=size)
    count, labels = csgraph.connected_components(links, connection="weak")
    sorted_states = np.argsort(labels, kind="stable").astype(np.int32)
    parts = np.split(sorted_states, np.cumsum(np.bincount(labels, minlength=count))[:-1])
    return sorted(parts, key=lambda part: (-len(part), part[0]))


def parse(text: str, name: str = "maze", allow_disconnected: bool = False) -> Layout:
    """The maze that a text shows; for the two formats see `envs.grid.texts`.

    Raises ValueError in one line for anything dubious: ragged rows, unknown characters, fewer than
    two free cells, impossible doors and portals, and parts that cannot be reached from each other.
    """
    free, starts, goals, doors, portals = texts.read(text)
    layout = Layout(free, name, tuple(starts), tuple(goals), tuple(doors), tuple(portals))
    return require_connected(layout, allow_disconnected)


def load(path: str | Path, allow_disconnected: bool = False) -> Layout:
    """The maze in a file, named after it. Raises ValueError as `parse`, and for other files."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(texts.MAX_BYTES + 1)
        text = content.decode("utf-8-sig") if len(content) <= texts.MAX_BYTES else ""
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ValueError(f"cannot read maze {path}: {reason}; expected a text file") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"maze {path} is not text; expected rows of tiles in UTF-8") from error
    if len(content) > texts.MAX_BYTES:
        raise ValueError(
            f"maze {path} has more than {texts.MAX_BYTES:,} bytes; expected at most"
            f" {MAX_STATES:,} free cells: make it smaller"
        )
    try:
        return parse(text, Path(path).stem, allow_disconnected)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def from_free(free: np.ndarray, name: str = "maze", allow_disconnected: bool = False) -> Layout:
    """The maze with these free cells, bool `[H, W]`; raises ValueError as `parse` does."""
    return require_connected(Layout(free, name), allow_disconnected)


def require_connected(layout: Layout, allow_disconnected: bool = False) -> Layout:
    """The maze itself. Raises ValueError if it has parts that no move connects."""
    sizes = [str(len(part)) for part in regions(layout)]
    if len(sizes) > 1 and not allow_disconnected:
        parts = " and ".join(sizes[:6]) + (" and smaller ones" if len(sizes) > 6 else "")
        raise ValueError(
            f"maze {layout.name!r} falls into {len(sizes)} regions, of {parts} cells; expected "
            "one; --allow-disconnected loads it anyway"
        )
    return layout


def _check(layout: Layout) -> None:
    """Raises ValueError for an invalid maze."""
    if layout.free.ndim != 2:
        raise ValueError(f"free has shape {layout.free.shape}; expected [rows, columns]")
    texts.check_size(*layout.free.shape)
    count = int(np.count_nonzero(layout.free))
    if count > MAX_STATES:
        raise ValueError(
            f"maze {layout.name!r} has {count:,} free cells; expected at most {MAX_STATES:,}: make"
            " it smaller"
        )
    if count < 2:
        cells = "1 free cell" if count == 1 else "0 free cells"
        raise ValueError(f"maze {layout.name!r} has {cells}; expected at least 2")
    passages.check_free(layout.free, "start", layout.starts)
    passages.check_free(layout.free, "goal", layout.goals)
    if len(layout.start_states) == 0:
        raise ValueError("every free cell is a goal; leave one for episodes to start in")
    passages.check_doors(layout.free, layout.doors)
    passages.check_portals(layout.free, layout.portals)
