"""A slow, obvious game of two snakes or more: lists of cells, head first, and breadth-first search.

Written from the rules alone and sharing no code with `envs.two_snake`. Players: 0 the learner, then
the others. Cells are (row, col), headings 0 up, 1 right, 2 down, 3 left; ways forward, left, right.
"""

import itertools
from collections import deque
from dataclasses import dataclass, field

from tests.envs.snake.oracle import TURNS, Cell, neighbours

STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left

REWARDS = {
    "step": 0.0,
    "food": 10.0,
    "opponent_food": 0.0,
    "death": -50.0,
    "win": 100.0,
    "lose": 0.0,
    "draw": -10.0,
    "shaping": 0.1,
}


@dataclass
class Report:
    """What one step did; `reward` is the learner's."""

    reward: float
    terminated: bool
    truncated: bool
    won: list[bool]
    draw: bool
    ate: list[bool]
    deaths: list[str]  # of this step; "" for none


@dataclass
class Duel:
    """One game, at whatever point it is. A dead snake has no cells."""

    rows: int
    cols: int
    bodies: list[list[Cell]]
    headings: list[int]
    food: Cell | None
    target: int = 10
    max_steps: int = 1000
    last_standing_wins: bool = False
    rewards: dict[str, float] = field(default_factory=lambda: dict(REWARDS))
    time: int = 0
    scores: list[int] = field(default_factory=list)
    hungers: list[int] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.scores = self.scores or [0] * len(self.bodies)
        self.hungers = self.hungers or [0] * len(self.bodies)
        self.causes = self.causes or [""] * len(self.bodies)

    @property
    def players(self) -> range:
        return range(len(self.bodies))

    def others(self, p: int) -> list[int]:
        return [q for q in self.players if q != p]

    def cells_of_others(self, p: int) -> set[Cell]:
        return {cell for q in self.others(p) for cell in self.bodies[q]}

    def nearest(self, p: int) -> int | None:
        """The living other whose head is nearest, of several the first."""
        heads = {q: self.bodies[q][0] for q in self.others(p) if self.bodies[q]}
        return min(heads, key=lambda q: manhattan(self.bodies[p][0], heads[q]), default=None)

    def is_inside(self, cell: Cell) -> bool:
        return 0 <= cell[0] < self.rows and 0 <= cell[1] < self.cols

    def cells(self) -> list[Cell]:
        return list(itertools.product(range(self.rows), range(self.cols)))

    def empty_cells(self) -> set[Cell]:
        return set(self.cells()).difference(*self.bodies)

    def step(self, actions: list[int], food_after: Cell | None, still: bool = False) -> Report:
        """One move of all; `food_after` lies there after a meal; `still`: static others."""
        movers = [p for p in self.players if self.bodies[p] and not (p and still)]
        before = self.bodies[0][0] if self.bodies[0] else None
        for p in movers:
            self.headings[p] = (self.headings[p] + TURNS[actions[p]]) % 4
            head = neighbours(self.bodies[p][0])[self.headings[p]]
            remaining_body = self.bodies[p] if head == self.food else self.bodies[p][:-1]
            self.bodies[p] = [head, *remaining_body]
        deaths = [self.death_of(p) if p in movers else "" for p in self.players]
        ate = [
            p in movers and not deaths[p] and self.bodies[p][0] == self.food for p in self.players
        ]
        reward = self.learner_pay(before, deaths, ate)
        for p in self.players:
            self.causes[p] = deaths[p] or self.causes[p]
            self.bodies[p] = [] if deaths[p] else self.bodies[p]
            self.scores[p] += ate[p]
            self.hungers[p] = 0 if ate[p] else self.hungers[p] + 1
        self.time += 1
        if any(ate) or self.food is None:
            self.food = food_after
        return self.verdict(reward, deaths, ate, still)

    def death_of(self, p: int) -> str:
        head, *rest = self.bodies[p]
        if not self.is_inside(head):
            return "wall"
        if head in rest:
            return "self"
        return "other" if head in self.cells_of_others(p) else ""

    def learner_pay(self, before: Cell | None, deaths: list[str], ate: list[bool]) -> float:
        reward = self.rewards["opponent_food"] * any(ate[1:])
        if before is None:
            return reward
        if deaths[0]:
            return reward + self.rewards["death"]
        if ate[0]:
            return reward + self.rewards["food"]
        nearer = 0
        if self.food is not None:
            nearer = manhattan(before, self.food) - manhattan(self.bodies[0][0], self.food)
        return reward + self.rewards["step"] + self.rewards["shaping"] * nearer

    def verdict(self, reward, deaths: list[str], ate: list[bool], still: bool) -> Report:
        won = [ate[p] and self.scores[p] >= self.target for p in self.players]
        alive = [bool(body) for body in self.bodies]
        if self.last_standing_wins and sum(alive) == 1:
            won = alive
        nobody_moves = not alive[0] and (still or not any(alive[1:]))
        truncated = self.time >= self.max_steps
        draw = not any(won) and (nobody_moves or truncated)
        reward += self.rewards["win"] * won[0] + self.rewards["lose"] * any(won[1:])
        reward += self.rewards["draw"] * draw
        return Report(reward, any(won) or nobody_moves, truncated, won, draw, ate, deaths)


def manhattan(a: Cell, b: Cell) -> int:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def first_cells(rows: int, cols: int, side: int, snakes: int = 2) -> list[list[Cell]]:
    """The bodies of a new game, the learner's first, which begins in place `side`."""
    bodies = []
    for row in (rows // 2,) if snakes == 2 else (rows // 4, 3 * rows // 4):
        bodies += [[(row, cols // 4 - i) for i in range(3)]]
        bodies += [[(row, 3 * cols // 4 + i) for i in range(3)]]
    bodies = bodies[:snakes]
    return bodies[side:] + bodies[:side]


def distances(origins, allowed: set[Cell]) -> dict[Cell, int]:
    """Moves from the nearest origin (which need not be allowed itself) through allowed cells."""
    moves = dict.fromkeys(origins, 0)
    queue = deque(moves)
    while queue:
        origin = queue.popleft()
        for cell in neighbours(origin):
            if cell in allowed and cell not in moves:
                moves[cell] = moves[origin] + 1
                queue.append(cell)
    return moves


def ways(game: Duel, p: int) -> list[Cell]:
    """The cells forward, left and right of the head."""
    around = neighbours(game.bodies[p][0])
    return [around[(game.headings[p] + turn) % 4] for turn in TURNS.values()]


def free_for(game: Duel, p: int) -> set[Cell]:
    """All cells but the own body, whose tail moves on, and the other's whole body."""
    return set(game.cells()) - set(game.bodies[p][:-1]) - game.cells_of_others(p)


def regions(game: Duel, p: int) -> list[set[Cell]]:
    """What can be reached by each way; nothing where it is shut."""
    free = free_for(game, p)
    return [set(distances([cell], free)) if cell in free else set() for cell in ways(game, p)]


def features(game: Duel, p: int) -> list[float]:
    """[33], entry by entry as the documentation tells."""
    if not game.bodies[p]:
        return [0.0] * 33
    near, theirs = game.nearest(p), game.cells_of_others(p)
    own, other = game.bodies[p], [] if near is None else game.bodies[near]
    longest, widest = game.target + 3, game.rows + game.cols - 2
    reach, free = regions(game, p), free_for(game, p)
    reachable = set().union(*reach)
    entries = [not game.is_inside(cell) or cell in own[:-1] for cell in ways(game, p)]
    food = game.food
    entries += [0, 0] if food is None else offsets(own[0], food, game.cols, game.rows)
    entries += [bool(other), own[-1] in reachable]
    entries += [game.headings[p] == heading for heading in (0, 1, 2)]
    entries += [len(cells) / len(free) for cells in reach]
    lead = 0 if food is None or not other else manhattan(other[0], food) - manhattan(own[0], food)
    if near is not None:
        right, down = offsets(own[0], other[0], 1, 1)
        entries += [cell in theirs for cell in ways(game, p)]
        entries += [down < 0, right > 0, down > 0, right < 0]
        entries += [game.headings[near] == heading for heading in (0, 1, 2)]
        entries += [len(other) / longest, manhattan(own[0], other[0]) / widest]
        entries += [0.5 * (len(other) > len(own)) + 0.5 * (lead < 0)]
    else:
        entries += [0] * 13
    entries += [food in reachable, (len(own) - len(other)) / longest if other else 0]
    best = max(game.scores[q] for q in game.others(p))
    entries += [(game.scores[p] - best) / game.target, lead / widest]
    entries += [territory(game, p), min(game.hungers[p] / 100, 1), game.scores[p] / game.target]
    return [float(entry) for entry in entries]


def near(game: Duel, p: int) -> list[float]:
    """[367], entry by entry as the documentation tells."""
    if not game.bodies[p]:
        return [0.0] * 367
    q, own, winner = game.nearest(p), game.bodies[p], game.target + 3
    other = [] if q is None else game.bodies[q]
    farthest, board_frame = max(game.rows, game.cols) - 1, features(game, p)
    entries = [*board_frame[0:3], *board_frame[10:13]]
    entries += board_frame[13:16]
    entries += place_entries(game, p, other[0] if other else None, farthest)
    turn = None if q is None else (game.headings[q] - game.headings[p]) % 4
    entries += [turn == 0, turn == 2, turn == 1, turn == 3, *board_frame[23:26]]
    entries += (
        place_entries(game, p, game.food, farthest) + place_entries(game, p, own[-1], farthest)[:2]
    )
    entries += [cells_to_wall(game, p, turn) / farthest for turn in TURNS.values()]
    entries += [bool(other), board_frame[6], len(own) / winner, *board_frame[26:33]]
    blocked, own_leaves, others_leave, heads = ([] for _ in range(4))
    others = [game.bodies[i] for i in game.others(p)]
    for ahead in range(4, -5, -1):
        for right in range(-4, 5):
            cell = cell_at(game, p, ahead, right)
            bodies = [body for body in (own, *others) if cell in body]
            blocked.append(bool(bodies) or not game.is_inside(cell))
            leaves = (len(bodies[0]) - bodies[0].index(cell)) / winner if bodies else 0
            own_leaves.append(min(leaves, 1) if bodies and bodies[0] is own else 0)
            others_leave.append(min(leaves, 1) if bodies and bodies[0] is not own else 0)
            heads.append(any(cell in body[:1] for body in others))
    return [float(x) for x in (*entries, *blocked, *own_leaves, *others_leave, *heads)]


def cell_at(game: Duel, p: int, ahead: int, right: int) -> Cell:
    """The cell so many steps ahead of a head and to its right."""
    return cell_from(game.bodies[p][0], game.headings[p], ahead, right)


def cell_from(head: Cell, heading: int, ahead: int, right: int) -> Cell:
    """The same of a head that moves towards `heading`."""
    row, col = head
    (down, along), (down_right, along_right) = STEPS[heading], STEPS[(heading + 1) % 4]
    return (row + ahead * down + right * down_right, col + ahead * along + right * along_right)


def place_entries(game: Duel, p: int, cell: Cell | None, farthest: int) -> list[float]:
    """Where a cell lies from the head: ahead, right, and four signs; 0 for none."""
    if cell is None:
        return [0.0] * 6
    places = {
        cell_at(game, p, ahead, right): (ahead, right)
        for ahead in range(-farthest, farthest + 1)
        for right in range(-farthest, farthest + 1)
    }
    ahead, right = places[cell]
    return [ahead / farthest, right / farthest, ahead > 0, ahead < 0, right > 0, right < 0]


def cells_to_wall(game: Duel, p: int, turn: int) -> int:
    """Cells between the head and the wall in the direction after `turn`."""
    heading = (game.headings[p] + turn) % 4
    ahead = (cell_from(game.bodies[p][0], heading, n + 1, 0) for n in range(game.rows + game.cols))
    return [game.is_inside(cell) for cell in ahead].index(False)


def offsets(origin: Cell, cell: Cell, cols: int, rows: int) -> list[float]:
    """To the right and downwards."""
    return [(cell[1] - origin[1]) / cols, (cell[0] - origin[0]) / rows]


def territory(game: Duel, p: int) -> float:
    """Share of the empty cells that the own head is nearer to than all others, by paths."""
    empty = game.empty_cells()
    heads = [game.bodies[q][0] for q in game.others(p) if game.bodies[q]]
    mine, theirs = (distances(origins, empty) for origins in (game.bodies[p][:1], heads))
    nowhere = 10_000
    nearer = [cell for cell in empty if mine.get(cell, nowhere) < theirs.get(cell, nowhere)]
    return len(nearer) / max(len(empty), 1)


def planes(game: Duel, p: int) -> list[list[list[float]]]:
    """[rows, cols, 7]"""
    own, others = game.bodies[p], [game.bodies[q] for q in game.others(p)]
    best = max(game.scores[q] for q in game.others(p))
    board = [[[0.0] * 7 for _ in range(game.cols)] for _ in range(game.rows)]
    if not own:
        return board
    for row, col in game.cells():
        cell, entry = (row, col), board[row][col]
        for plane, body in ((0, own), *((2, body) for body in others)):
            if cell in body:
                entry[plane] = float(cell == body[0])
                entry[plane + 1] = 1 - body.index(cell) / len(body)
        entry[4] = float(cell == game.food)
        entry[5:] = [score / game.target for score in (game.scores[p], best)]
    return board


OBSERVATIONS = {"features": features, "near": near, "planes": planes}


def open_ways(game: Duel, p: int) -> list[int]:
    free = free_for(game, p)
    return [way for way, cell in enumerate(ways(game, p)) if cell in free]


def greedy(game: Duel, p: int) -> int:
    """The first way with the shortest path to the food; else the first that is open."""
    free = free_for(game, p)
    paths = {} if game.food not in free else distances([game.food], free)
    lengths = {way: paths[cell] for way, cell in enumerate(ways(game, p)) if cell in paths}
    if lengths:
        return min(lengths, key=lambda way: (lengths[way], way))
    return next(iter(open_ways(game, p)), 0)


def defensive(game: Duel, p: int) -> int:
    """To most room in need of it, or when the other is nearer to the food; else greedy."""
    room = [len(cells) for cells in regions(game, p)]
    near, food = game.nearest(p), game.food
    own, other = game.bodies[p], [] if near is None else game.bodies[near]
    is_late = bool(other and food and manhattan(other[0], food) < manhattan(own[0], food))
    if 10 * max(room) < 3 * len(free_for(game, p)) or is_late:
        return room.index(max(room))
    return greedy(game, p)


def random_way(game: Duel, p: int, word: int) -> int:
    """The open way that a random word of 32 bits chooses."""
    choices = open_ways(game, p)
    return choices[(word >> 9) * len(choices) >> 23] if choices else 0


def draw(game: Duel) -> str:
    """A picture: A, B, ... heads, a, b, ... bodies, * food."""
    marks = {game.food: "*"}
    for letter, body in zip("abcd", game.bodies, strict=False):
        marks |= dict.fromkeys(body, letter) | ({body[0]: letter.upper()} if body else {})
    return "\n".join(
        "".join(marks.get((row, col), ".") for col in range(game.cols)) for row in range(game.rows)
    )
