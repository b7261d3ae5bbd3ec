"""A slow, obvious Snake: a list of cells, head first. What the fast environment must agree with.

Written from the rules alone and sharing no code with `envs.snake`. Cells are (row, col), rows grow
downwards. Headings and absolute actions: 0 up, 1 right, 2 down, 3 left. Relative actions and
relative features: forward, left, right.
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

UP, RIGHT, DOWN, LEFT = 0, 1, 2, 3
FORWARD, TO_LEFT, TO_RIGHT = 0, 1, 2
STEPS = {UP: (-1, 0), RIGHT: (0, 1), DOWN: (1, 0), LEFT: (0, -1)}
TURNS = {FORWARD: 0, TO_LEFT: -1, TO_RIGHT: 1}

Cell = tuple[int, int]


@dataclass(frozen=True)
class Rules:
    """Switches and limits. `starvation`: "off", "truncate" or "terminate" (which is a death)."""

    tail_is_fatal: bool = True
    full_board_wins: bool = False
    starvation: str = "off"
    max_steps: int = 1000
    starvation_base: int = 80
    starvation_per_cell: int = 4


CLASSIC = Rules()
MODERN = Rules(tail_is_fatal=False, full_board_wins=True, starvation="truncate")


@dataclass(frozen=True)
class Rewards:
    """`shaping` is divided by the longer side of the board."""

    step: float = -0.01
    food: float = 10.0
    death: float = -10.0
    shaping: float = 0.5
    timeout: float = -5.0
    win: float = 0.0
    length: float = 0.0
    crowding: float = 0.0
    entrapment: float = 0.0
    entrapped_food: float = 0.0


@dataclass
class Report:
    """What one step did. `cause` is "" or what ended the game: one death or hunger.

    A death on the last step of the clock is both terminated and truncated, and pays for both.
    """

    reward: float
    terminated: bool
    truncated: bool
    won: bool
    cause: str
    ate: bool


def neighbours(cell: Cell) -> list[Cell]:
    """Up, right, down, left of `cell`, on the board or off it."""
    return [(cell[0] + STEPS[heading][0], cell[1] + STEPS[heading][1]) for heading in range(4)]


@dataclass
class Game:
    """One game, at whatever point it is."""

    rows: int
    cols: int
    body: list[Cell]  # head first
    heading: int
    food: Cell | None  # of several pieces the nearest, of several such the first row by row
    rules: Rules = CLASSIC
    rewards: Rewards = field(default_factory=Rewards)
    time: int = 0
    hunger: int = 0  # steps since the last meal
    score: int = 0
    entrapment_threshold: float | None = None  # None: soft entrapment is not judged
    obstacles: frozenset[Cell] = frozenset()
    pieces: set[Cell] | None = None  # all the food; None: `food` is the only piece

    def __post_init__(self):
        if self.pieces is not None:
            self.food = self.nearest_piece()

    @property
    def head(self) -> Cell:
        return self.body[0]

    @property
    def tail(self) -> Cell:
        return self.body[-1]

    @property
    def size(self) -> int:
        return self.rows * self.cols

    def is_inside(self, cell: Cell) -> bool:
        return 0 <= cell[0] < self.rows and 0 <= cell[1] < self.cols

    def cells(self) -> list[Cell]:
        return [(row, col) for row in range(self.rows) for col in range(self.cols)]

    def free_cells(self) -> list[Cell]:
        taken = {*self.body, *self.obstacles}
        return [cell for cell in self.cells() if cell not in taken]

    @property
    def food_cells(self) -> set[Cell]:
        """All cells on which food lies."""
        if self.pieces is not None:
            return self.pieces
        return set() if self.food is None else {self.food}

    def nearest_piece(self) -> Cell | None:
        (row, col), pieces = self.head, self.pieces or set()
        distance = lambda cell: abs(cell[0] - row) + abs(cell[1] - col)
        return min(sorted(pieces), key=distance, default=None)

    def deadly_cells(self) -> set[Cell]:
        """Obstacles, and body cells that kill. The tail moves away; in time or not is a rule."""
        body = self.body if self.rules.tail_is_fatal else self.body[:-1]
        return {*body, *self.obstacles}

    def is_blocked(self, cell: Cell) -> bool:
        return not self.is_inside(cell) or cell in self.deadly_cells()

    def candidate(self, turn: int) -> Cell:
        """The cell that a relative move would enter."""
        return neighbours(self.head)[(self.heading + TURNS[turn]) % 4]

    def is_entrapped(self) -> bool:
        return all(self.is_blocked(self.candidate(turn)) for turn in TURNS)

    def is_softly_entrapped(self) -> bool:
        """No move leads to as much as a share of the cells that the snake does not cover."""
        if self.entrapment_threshold is None or not self.free_cells():
            return False
        ways = [self.candidate(turn) for turn in TURNS]
        deadly = self.deadly_cells()
        rooms = [
            reachable_cells(self.rows, self.cols, cell, deadly)
            for cell in ways
            if not self.is_blocked(cell)
        ]
        most = max(map(len, rooms), default=0)
        return most / len(self.free_cells()) < self.entrapment_threshold

    def is_crowded(self) -> bool:
        """At least three of the four cells beside the head are walls or body."""
        return sum(self.is_blocked(cell) for cell in neighbours(self.head)) >= 3

    def living_reward(self, ate: bool) -> float:
        """What a snake earns besides for having moved on."""
        weights = self.rewards
        earned = weights.length * len(self.body)
        if self.is_crowded():
            earned += weights.crowding
        if self.is_softly_entrapped():
            earned += weights.entrapped_food if ate else weights.entrapment
        return earned

    def starvation_limit(self) -> int:
        hungry = self.rules.starvation_base + self.rules.starvation_per_cell * len(self.body)
        return max(hungry, 2 * self.size)

    def next_heading(self, action: int, absolute: bool) -> int:
        """The heading after `action`; a request to reverse is ignored."""
        if not absolute:
            return (self.heading + TURNS[action]) % 4
        return self.heading if (action - self.heading) % 4 == 2 else action

    def distance(self) -> int:
        assert self.food is not None
        return abs(self.head[0] - self.food[0]) + abs(self.head[1] - self.food[1])

    def step(self, action: int, food_after: Cell | None, absolute: bool = False) -> Report:
        """One move; a deadly one moves and turns nothing. `food_after` is judged after a meal."""
        was_entrapped = self.is_entrapped()
        deadly = self.deadly_cells()
        heading = self.next_heading(action, absolute)
        target = neighbours(self.head)[heading]
        self.time += 1
        self.hunger += 1
        if not self.is_inside(target) or target in deadly:
            wall_or_self = "death_self" if target in self.body else "death_wall"
            cause = "entrapped" if was_entrapped else wall_or_self
            return self.ending(self.rewards.death, cause, died=True)
        self.heading = heading
        before = None if self.food is None else self.distance()
        ate = target in self.food_cells
        self.body.insert(0, target)
        if ate:
            self.eat(food_after)
            return self.ending(self.rewards.food + self.living_reward(ate), "", ate=True)
        self.body.pop()
        if self.pieces is not None:
            self.food = self.nearest_piece()
        reward = self.rewards.step
        if before is not None:
            nearer = before - self.distance()
            reward += nearer * self.rewards.shaping / max(self.rows, self.cols)
        return self.ending(reward + self.living_reward(ate), "")

    def eat(self, food_after: Cell | None) -> None:
        """The head is on food, another piece of which appears, if there is a cell for it."""
        others = self.food_cells - {self.head}
        free = [cell for cell in self.free_cells() if cell not in others]
        assert (food_after in free) if free else (food_after is None), (
            f"food drawn on {food_after}, but the free cells are {free}"
        )
        self.food = food_after
        if self.pieces is not None:
            self.pieces = others | ({food_after} if food_after else set())
            self.food = self.nearest_piece()
        self.hunger = 0
        self.score += 1

    def ending(self, reward: float, cause: str, died: bool = False, ate: bool = False) -> Report:
        """Adds what the clock, hunger and a full board say to the outcome of the move."""
        is_full = len(self.body) + len(self.obstacles) == self.size
        won = self.rules.full_board_wins and ate and is_full
        hungry = self.rules.starvation != "off" and self.hunger >= self.starvation_limit()
        starved = hungry and not died
        if starved and self.rules.starvation == "terminate":
            died, reward = True, self.rewards.death
        truncated = self.time >= self.rules.max_steps
        truncated = truncated or (hungry and self.rules.starvation == "truncate")
        reward += self.rewards.win if won else 0.0
        reward += self.rewards.timeout if truncated else 0.0
        return Report(reward, died or won, truncated, won, "starved" if starved else cause, ate)


def classic_body(rows: int, cols: int) -> list[Cell]:
    """Three cells, the head in the middle of the board, looking right."""
    row, col = rows // 2, cols // 2
    return [(row, col), (row, col - 1), (row, col - 2)]


def straight_starts(rows: int, cols: int) -> list[tuple[list[Cell], int]]:
    """Every (body, heading) of three cells in a line: what a random start draws from."""
    starts = []
    for row in range(rows):
        for col in range(cols):
            for heading, (down, right) in STEPS.items():
                body = [(row - i * down, col - i * right) for i in range(3)]
                if all(0 <= r < rows and 0 <= c < cols for r, c in body):
                    starts.append((body, heading))
    return starts


def reachable_cells(rows: int, cols: int, origin: Cell, obstacles: set[Cell]) -> set[Cell]:
    """Breadth-first search from `origin`, which counts even where it is an obstacle itself."""
    visited, queue = {origin}, deque([origin])
    while queue:
        for cell in neighbours(queue.popleft()):
            on_board = 0 <= cell[0] < rows and 0 <= cell[1] < cols
            if on_board and cell not in visited and cell not in obstacles:
                visited.add(cell)
                queue.append(cell)
    return visited


def order(game: Game) -> np.ndarray:
    """`[rows, cols]` int32: the length at the head, falling to 1 at the tail, 0 off the snake."""
    board = np.zeros((game.rows, game.cols), np.int32)
    for age, cell in enumerate(game.body):
        board[cell] = len(game.body) - age
    return board


def draw(game: Game) -> str:
    """A picture: H head, o body, t tail, * food, # obstacle, . free."""
    marks = dict.fromkeys(game.body, "o") | {game.tail: "t", game.head: "H"}
    marks |= dict.fromkeys(game.food_cells, "*") | dict.fromkeys(game.obstacles, "#")
    lines = ["".join(marks.get((r, c), ".") for c in range(game.cols)) for r in range(game.rows)]
    return "\n".join(lines)


def parse(picture: str, heading: int, rules: Rules = CLASSIC) -> Game:
    """A game from lines such as `cba.*#`: a is the head, the letters after it the body in order."""
    lines = [line.strip() for line in picture.strip().splitlines()]
    places = {mark: (row, col) for row, line in enumerate(lines) for col, mark in enumerate(line)}
    body = [places[mark] for mark in sorted(places) if mark.isalpha()]
    pieces = cells_marked(lines, "*")
    return Game(
        *(len(lines), len(lines[0]), body, heading, places.get("*"), rules),
        obstacles=frozenset(cells_marked(lines, "#")),
        pieces=pieces if len(pieces) > 1 else None,
    )


def cells_marked(lines: list[str], mark: str) -> set[Cell]:
    """The cells of a picture that show a mark."""
    return {(r, c) for r, line in enumerate(lines) for c, other in enumerate(line) if other == mark}
