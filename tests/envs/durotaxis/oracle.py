"""A slow, obvious colony: a list of cells and a set of edges. What the fast rules must agree with.

Written from the rules alone and sharing no code with `envs.durotaxis`; numbers are Python floats.
"""

import math
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Ground:
    """`kind` is "linear" or "exponential"."""

    width: float = 600.0
    height: float = 400.0
    slope: float = 0.01
    base: float = 1.0
    kind: str = "linear"

    def intensity(self, x: float) -> float:
        column = min(max(int(x), 0), int(self.width) - 1)
        if self.kind == "exponential":
            return self.base * math.exp(self.slope * column)
        return self.slope * column + self.base

    def clamp(self, x: float, y: float) -> tuple[float, float]:
        mx, my = max(2.0, 0.01 * self.width), max(2.0, 0.01 * self.height)
        return min(max(x, mx), self.width - mx), min(max(y, my), self.height - my)


@dataclass
class Cell:
    name: int
    x: float
    y: float
    birth: int = 0


@dataclass
class Colony:
    """Cells in the order of their slots; edges (parent, child) by name."""

    cells: list[Cell]
    edges: set[tuple[int, int]] = field(default_factory=set)
    named: int = 0

    @staticmethod
    def path(points: list[tuple[float, float]]) -> "Colony":
        cells = [Cell(i, x, y) for i, (x, y) in enumerate(points)]
        return Colony(cells, {(i, i + 1) for i in range(len(points) - 1)}, len(points))

    def delete(self, name: int) -> None:
        """Remove one cell and join each of its predecessors to each of its successors."""
        predecessors = [a for a, b in self.edges if b == name]
        successors = [b for a, b in self.edges if a == name]
        self.edges = {edge for edge in self.edges if name not in edge}
        self.edges |= {(a, b) for a in predecessors for b in successors}
        self.cells = [cell for cell in self.cells if cell.name != name]

    def spawn(self, parent: Cell, x: float, y: float, time: int) -> None:
        self.cells.append(Cell(self.named, x, y, time))
        self.edges.add((parent.name, self.named))
        self.named += 1

    def step(self, deleted: list[int], landing, time: int) -> None:
        """All but the cells of names `deleted` spawn at `landing(cell)`; the deleted go in turn."""
        for cell in list(self.cells):
            if cell.name not in deleted:
                x, y = landing(cell)
                self.spawn(cell, x, y, time)
        for name in deleted:
            self.delete(name)

    def parents(self) -> list[int]:
        """The slot of each cell's parent, -1 for roots; fails where a cell has two."""
        slots = {cell.name: slot for slot, cell in enumerate(self.cells)}
        parents = [-1] * len(self.cells)
        for a, b in self.edges:
            assert parents[slots[b]] == -1, "a cell with two parents"
            parents[slots[b]] = slots[a]
        return parents


def leftmost(x: list[float], count: int) -> list[int]:
    """Slots of the `count` smallest, lower slots first among equals."""
    return sorted(range(len(x)), key=lambda slot: (x[slot], slot))[: max(count, 0)]


def directed_landing(ground: Ground, gamma: float, alpha: float, noise: float, theta: float):
    """Where the child of a cell lands."""

    def landing(cell: Cell) -> tuple[float, float]:
        intensity = ground.intensity(cell.x)
        if not math.isfinite(intensity) or intensity <= 1e-6:
            intensity = 1.0
        distance = gamma / (1 + (alpha / intensity) ** 2) + noise
        return ground.clamp(
            cell.x + distance * math.cos(theta), cell.y + distance * math.sin(theta)
        )

    return landing
