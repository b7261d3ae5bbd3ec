"""The maze of a run of `train.allo`, and the walk in it."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from envs.grid import layouts, mazes, random_passages
from envs.grid.env import Grid
from envs.grid.layouts import Layout
from envs.grid.windy import WindyGrid
from jaxrl.checks import Count, CountOrZero, Range, Seed, Share
from jaxrl.dependent_fields import needs, unless

WALKERS = 50
"""Walks that explore side by side: fewer would visit more evenly and take longer."""

ON_CELLS = unless("step", why="{}step makes the walk continuous")
OF_GREEDY = needs("policy", "greedy")
OF_POLICY = needs("mixes_policy", why="it needs {}policy greedy or, with {}id, a trained one")


@dataclass(frozen=True)
class Maze:
    """The maze of the random walk, which starts anywhere: its starts and goals are ignored."""

    id: str = ""
    """Walk in this environment on gymnax's interface instead of a maze: a name, such as
    MountainCar-v0, or MODULE:NAME of a class or function of yours that returns one."""
    options: Annotated[tuple[str, ...], needs("id")] = ()
    """NAME=VALUE: arguments of its constructor."""
    numbers: Annotated[tuple[str, ...], needs("id")] = ()
    """NAME=NUMBER: fields of its parameters."""
    maze: Annotated[str, unless("maze_file", why="--maze-file takes its place")] = "GridRoom-4"
    """A name, such as GridMaze-17, corridors-400-seed7 or rooms-4x4-size5-seed3."""
    maze_file: Annotated[str, tyro.conf.arg(name="maze-file", prefix_name=False)] = ""
    """Text file with a maze of your own instead: # is wall, . is free."""
    allow_disconnected: Annotated[bool, tyro.conf.arg(prefix_name=False)] = False
    """Accept a maze that falls into parts which no move connects."""
    wind: Annotated[float, Range(above=-1.0, below=1.0), ON_CELLS] = 0.0
    """Probability that wind blows a move to the right; negative: to the left."""
    wind_spread: Annotated[float, Range(least=0.0, below=1.0), ON_CELLS] = 0.0
    """Every walk has a wind of its own, uniform within so much of env.wind; it does not see it."""
    openings: CountOrZero = 0
    """Walls between two free cells that are opened at random."""
    doors: Annotated[CountOrZero, ON_CELLS] = 0
    """Passages that become doors at random, open in one direction."""
    door_back: Annotated[Share, ON_CELLS, needs("doors")] = 0.0
    """Probability that a move back through such a door succeeds."""
    maze_seed: Annotated[Seed, needs("doors") | needs("openings")] = 0
    """Root of the random numbers of openings and doors."""
    policy: Annotated[str, ON_CELLS] = "uniform"
    """How the walk chooses moves. uniform; exploring, to the neighbour visited least; greedy,
    towards a goal, as if there were no wind; probabilities of up, right, down and left, such as
    0.4,0.2,0.2,0.2; or an .npy file with a table of states by actions. With env.id uniform, or the
    run, file or name of a trained policy."""
    epsilon: Annotated[Share, ON_CELLS, OF_POLICY] = 0.5
    """Probability of a random move instead of that of the greedy policy, or of a trained one."""
    goal: Annotated[str, ON_CELLS, OF_GREEDY] = ""
    """ROW,COL of its goal; empty: the first goal of the maze, else its last free cell."""
    step: Annotated[float, Range(least=0.0, most=1.0)] = 0.0
    """Above 0: the walk is in the space between the walls, and moves by up to so many tiles along
    each axis; 0: from cell to cell."""
    truth_cells: Annotated[Count, needs("step")] = 8
    """Rows and columns into which a tile is divided for the true eigenvectors of such a space."""
    transitions: Count = 1_000_000
    """Transitions recorded before learning starts."""
    walk_steps: Count = 50
    """Transitions of one walk, which starts at a random cell."""

    @property
    def explores(self) -> bool:
        """Whether the walk goes where it has been least."""
        return self.policy == "exploring" and not self.id

    @property
    def num_walks(self) -> int:
        """Walks that `transitions` take."""
        return -(-self.transitions // self.walk_steps)

    @property
    def num_walkers(self) -> int:
        """How many walk side by side; those that explore know what the others have seen."""
        return min(self.num_walks, WALKERS) if self.explores else self.num_walks

    @property
    def mixes_policy(self) -> bool:
        """Whether actions of a policy are mixed with random ones."""
        return self.policy == "greedy" or bool(self.id and self.policy != "uniform")


def make_layout(maze: Maze) -> Layout:
    """Raises ValueError for unknown names, and for files that hold no maze."""
    if maze.maze_file:
        layout = layouts.load(maze.maze_file, maze.allow_disconnected)
    else:
        layout = mazes.layout_by_name(maze.maze)
    layout = random_passages.with_openings(layout, maze.openings, maze.maze_seed)
    return random_passages.with_doors(layout, maze.doors, maze.maze_seed, maze.door_back)


def make_env(maze: Maze, layout: Layout) -> Grid:
    """The walk from cell to cell; its wind is fixed, or of each episode."""
    if maze.wind_spread:
        return WindyGrid(
            layout, "index", maze.wind - maze.wind_spread, maze.wind + maze.wind_spread
        )
    return Grid(layout, "index", maze.wind)
