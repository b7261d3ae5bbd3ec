"""What a program hands to the host: a training, and how long, how often and where."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple

import jax
import tyro
from rich.console import RenderableType

from jaxrl.checks import INT32, Count, CountOrZero, Range
from jaxrl.dependent_fields import needs
from jaxrl.evaluate import Episodes
from jaxrl.loop import LoopMetrics
from jaxrl.types import AgentState, RunState
from train.host.compilation.cpu_kernels import ANY_WORK, Work
from train.host.machine.members import Members
from train.host.player import Player

Steps = Annotated[int, Range(least=1, most=10**15)]
"""A budget of steps."""
Seeds = Annotated[int, Range(least=1, most=10**6)]
"""Runs side by side."""
Games = Annotated[int, Range(least=1, most=10**8)]
"""Games played for a score."""
TrainedAgents = tuple[list[AgentState], list[int], list[jax.Array]]
"""Agents, seeds and keys of an evaluation, one of each per seed, as `*trained: *TrainedAgents`."""
EpisodesOf = Callable[[AgentState, jax.Array], Episodes]
OF_SCORES = needs("evaluate_every", why="it needs --{}evaluate-every")


class Evaluation(NamedTuple):
    """How good trained agents are."""

    content: dict[str, Any]
    """For `eval.json`: "score", the name of the measure that is the score; the times
    "compile_seconds" and "seconds"; and "seeds", a dict for each with its "seed" and its measures.
    A measure is a number or, as `scores.summary` makes it, a dict with "mean" and perhaps "low" and
    "high"."""
    table: RenderableType
    """The same as a table to print."""
    detail: Any = None
    """What pictures may also need: `games.GameResults` of games."""


class Quotient(NamedTuple):
    """A measure of the agent of which a row has quotients of sums over the updates of its chunk.

    So an update counts by how much was measured in it, such as by its episodes.
    """

    part: jax.Array  # [..., K]
    whole: jax.Array  # [..., K]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the measure: a mean over K, without those of which nothing was measured."""
        return self.part.shape[:-1]


class Latest(NamedTuple):
    """A measure of the agent of which a row has the value after the last update of its chunk.

    Such as a count since the start, or the place of what has been chosen: a mean is neither.
    """

    value: jax.Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the measure."""
        return self.value.shape


class Score(NamedTuple):
    """What of agents is shown as their score, and what is said of it and of their games."""

    name: str = "return"
    """The measure: "return", "length" or a name in the environment's outcome; without episodes, a
    scalar that the agent measures."""
    lower_is_better: bool = False
    """Whether it is an error."""
    labels: Mapping[str, Sequence[str]] = {}
    """What the parts of measures that are lists are called, for legends: by measure, in order."""
    endings: Mapping[str, str] = {}
    """Ways in which episodes end, one of which is true of each: by name in the outcome what it is
    called, and by "" what it is called if none of the others is."""
    evaluation: str = ""
    """The measure that evaluations have as their score; empty: the same."""


@dataclass(frozen=True)
class Training:
    """What a program makes of its configuration.

    `init` and `update` are pure and for one seed; `evaluate` is called on the host.
    """

    init: Callable[..., RunState]
    """`key -> state`; `(key, numbers) -> state` for members of a sweep."""
    update: Callable[[Any], tuple[Any, LoopMetrics]]
    """`state -> (state, metrics)`: one training update; the agent's measures may be `Quotient`s or
    `Latest`."""
    evaluate: Callable[[*TrainedAgents], Evaluation]
    """`(agent_states, seeds, keys) -> Evaluation`, an entry of each list per seed.
    `games.of_player` and `games.of_episodes` make one for games, whose `fields` are also `games`,
    `player` and `score`; `scores.evaluate_by_measure` helps with others."""
    steps_per_update: int
    """Steps of the budget that one update uses, such as those of all its environments."""
    unit: str = "environment steps"
    """What the steps of the budget are, in the plural; progress is shown in it."""
    score: Score = Score()
    """What is shown of the agents."""
    converged_metric: str = ""
    """A number that the agent measures, above 0 once it has nothing more to learn; a run ends after
    the chunk in which all seeds have it above 0. Empty: it ends only with the budget."""
    ends_after: int | None = None
    """Steps after which that is so, where it is known: progress counts up to them. None: it is
    not, or up to the budget."""
    games: Callable[[int], EpisodesOf] | None = None
    """`count -> ((agent_state, key) -> episodes)`: so many games for the score while training, a
    pure function; those of a `matches.Match` can be interrupted. None: it plays no games while
    training."""
    player: Player | None = None
    """Who acts step by step, and where: policies are compiled, loaded (`train.load`), watched and
    shown in reports by it. None: nobody acts step by step."""
    snapshot: Callable[[Any], dict[str, jax.Array]] | None = None
    """`state -> arrays` of one seed: what a run looks like while it learns, kept from time to time
    (`train.host.files.snapshots`). A pure function."""
    samples: Callable[[Any], dict[str, jax.Array]] | None = None
    """`state -> arrays` of one seed: its newest samples, kept after every chunk, for trainings
    whose data are worth having. A pure function."""
    blocks: int = 1
    """Blocks of environments that devices may share (`loop.Config.blocks`)."""
    budget_shapes_learning: bool = False
    """Whether a schedule ends with the budget, or arrays have its size, so that a resumed run may
    not change it."""
    work: Work = ANY_WORK
    """What takes most of its time, where a CPU has kernels of its own for it."""
    after_warmup: Sequence[str] = ()
    """Measures of the gradient updates of an agent that learns from a replay, and counts them as
    `updates`: a row has the mean of those after its warm-up, and null before."""
    caution: str = ""
    """What is said before it begins, in one line, of a configuration that hardly anybody wants."""

    def _replace(self, **changes: Any) -> "Training":
        return replace(self, **changes)


@dataclass(frozen=True)
class Config:
    """How long, how often and where.

    A chunk of updates is one call of a compiled program: progress, rows of the record, signals and
    checkpoints are handled between two chunks. The length of a chunk is given in steps, not
    seconds, so that a run does not depend on the clock.
    """

    seed: Annotated[int, Range(least=0, most=INT32)] = 0
    """Root of all random numbers, 0 to 2**31 - 1."""
    num_seeds: Seeds = 1
    """Independent runs trained side by side, with the seeds seed, seed + 1, and so on."""
    total_steps: Steps = 100_000
    """Budget of steps per seed, in the unit of the training, rounded up to whole updates."""
    chunk_steps: Steps = 1_000
    """Steps per seed between two rows of the record, best a few seconds' worth; unless given, fewer
    with a budget that is smaller than by default."""
    checkpoint_every: Count = 20
    """Chunks between two checkpoints. One is also saved at the end, and after a signal."""
    on_nonfinite: Literal["raise", "skip", "restore"] = "raise"
    """If an update meets or yields NaN or infinity: stop; undo it, and start environments that show
    or pay such numbers anew; or return to the newest checkpoint."""
    log: Literal["none", "tensorboard", "wandb"] = "none"
    """Write the numbers of the record also for TensorBoard, or for Weights & Biases (offline,
    unless WANDB_MODE says otherwise), into the run directory."""
    live: Annotated[bool, tyro.conf.arg(prefix_name=False)] = False
    """Serve a page with the curves so far on this machine, while the run learns."""
    directory: str = ""
    """Run directory to create; empty: runs/NAME-DATE-TIME."""
    precision: Literal["default", "float32", "tf32", "bfloat16"] = "default"
    """Least precision of the matrix products of networks on GPUs and TPUs, where less than float32
    is faster; default: what JAX is set to. Estimates are always in float32, and so is all on CPUs.
    """
    devices: Annotated[str, tyro.conf.arg(prefix_name=False, metavar="auto|all|N")] = "auto"
    """Devices that share the work: seeds first, then the blocks of each (docs/scaling.md); auto:
    one, or as many cores of a CPU as divide the seeds."""
    distributed: Annotated[str, tyro.conf.arg(prefix_name=False, metavar="auto|...")] = ""
    """Join other processes: auto (SLURM, Open MPI, Cloud TPU), or HOST:PORT,INDEX,COUNT."""
    resume: Annotated[str, tyro.conf.arg(prefix_name=False, metavar="DIR")] = ""
    """Run directory to continue, with the configuration saved there."""

    def __post_init__(self):
        if max(self.seed, self.num_seeds) < 2**31 < self.seed + self.num_seeds:
            raise ValueError(
                f"seed must be below 2**31; got {self.seed} and {self.num_seeds} seeds"
            )
        is_number = self.devices.isdecimal() and int(self.devices)
        if self.devices not in ("auto", "all") and not is_number:
            raise ValueError(f"devices is {self.devices!r}, expected auto, all or a number from 1")

    @property
    def seeds(self) -> list[int]:
        """The seeds of the S runs side by side."""
        return list(range(self.seed, self.seed + self.num_seeds))

    @property
    def members(self) -> Members:
        """The S runs side by side."""
        return Members(self.seeds)

    def chunk_updates(self, steps_per_update: int) -> int:
        """Updates in a full chunk."""
        return max(1, round(self.chunk_steps / steps_per_update))

    def total_updates(self, steps_per_update: int) -> int:
        """The budget in updates."""
        return -(-self.total_steps // steps_per_update)

    def fraction_done(self, updates: int, episodes: Sequence[int], steps_per_update: int) -> float:
        """How much of a run is done, 0 to 1; `episodes` `[S]` are those of each seed."""
        del episodes  # without episodes only the updates count
        return min(updates / self.total_updates(steps_per_update), 1.0)

    @property
    def evaluates(self) -> bool:
        """Whether a finished run is evaluated."""
        return True

    @property
    def initial_policy(self) -> str:
        """Name or path of the policy whose parameters a new run starts from; empty: none."""
        return ""


@dataclass(frozen=True)
class PlayConfig(Config):
    """How long, how often and where, for agents that play games.

    Progress, rows of the record, signals and checkpoints are handled between two chunks of updates.
    """

    total_steps: Steps = 10_000_000
    """Budget of environment steps per seed, rounded up to whole updates."""
    chunk_steps: Steps = 200_000
    """Environment steps per seed between two rows of the record, best a few seconds' worth; unless
    given, fewer with a budget that is smaller than by default."""
    max_episodes: Steps | None = None
    """Stop after the chunk in which every seed has finished this many episodes; None: never.
    Schedules take shares of total_steps: lower both."""
    evaluation_games: Annotated[int, Range(least=0, most=10**8)] = 1_000
    """Complete games per seed, played for the score at the end; 0: no evaluation."""
    evaluation_steps: Count | None = None
    """Steps after which a game that is played for a score counts as not finished; None: the time
    limit of the environment, at most 100,000, or 10,000 if it has none."""
    evaluation_greedy: bool = True
    """Play them greedily, without the exploration used in training."""
    evaluate_every: CountOrZero = 0
    """Chunks between two scores while training, of other games than those at the end; the best
    policy by them is kept in best/. 0: never."""
    evaluate_games: Annotated[Games, OF_SCORES] = 128
    """Complete games of each of these scores."""
    patience: Annotated[Count | None, OF_SCORES] = None
    """Stop once so many of these scores in a row have not been better than the best; None: never.
    With several seeds all of them must have stopped improving."""
    policy: str = ""
    """Start from the parameters of this policy, a name or a path (see `train.policies`)."""

    def fraction_done(self, updates: int, episodes: Sequence[int], steps_per_update: int) -> float:
        """The share done of the budget of steps or of episodes, whichever is nearer to its end."""
        done = super().fraction_done(updates, episodes, steps_per_update)
        if self.max_episodes:
            done = max(done, min(episodes) / self.max_episodes)
        return min(done, 1.0)

    @property
    def evaluates(self) -> bool:
        return self.evaluation_games > 0

    @property
    def initial_policy(self) -> str:
        return self.policy


MAY_CHANGE = frozenset(
    {
        "run.total_steps",  # unless it shapes learning
        "run.max_episodes",
        "run.patience",
        "run.checkpoint_every",
        "run.on_nonfinite",
        "run.log",
        "run.live",
        "run.evaluation_games",
        "run.evaluation_greedy",
        "run.evaluation_steps",
        "run.devices",
        "run.distributed",
        "run.directory",
        "run.resume",
    }
)
"""Fields that a resumed run may change: none of them alters an update already made."""
