"""What a program hands to `train.host.run`: a training, and how long, how often and where."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import tyro
from rich.console import RenderableType

from jaxrl.loop import Metrics
from jaxrl.types import AgentState, RunState


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
    """What pictures may also need: `scores.Played` of games."""


class Training(NamedTuple):
    """What a program makes of its configuration.

    `init` and `update` are pure and for one seed; `evaluate` is called on the host.
    """

    init: Callable[[jax.Array], RunState]
    """`key -> state`."""
    update: Callable[[Any], tuple[Any, Metrics]]
    """`state -> (state, metrics)`: one training update."""
    evaluate: Callable[[list[AgentState], list[int], list[jax.Array]], Evaluation]
    """`(agent_states, seeds, keys) -> Evaluation`, an entry of each list per seed. `scores.games`
    makes one for games; `scores.measured` helps with others."""
    steps_per_update: int
    """Steps of the budget that one update uses, such as those of all its environments."""
    unit: str = "environment steps"
    """What the steps of the budget are, in the plural; progress is shown in it."""
    score: str = "return"
    """The measure to show: "return", "length" or a name in the environment's outcome; without
    episodes, a scalar that the agent measures."""
    settled: str = ""
    """A number that the agent measures, above 0 once it has nothing more to learn; a run ends after
    the chunk in which all seeds have it above 0. Empty: it ends only with the budget."""
    budget_shapes_learning: bool = False
    """Whether a schedule ends with the budget, so that a resumed run may not change the budget."""


@dataclass(frozen=True)
class Config:
    """How long, how often and where.

    A chunk of updates is one call of a compiled program: progress, rows of the record, signals and
    checkpoints are handled between two chunks. The length of a chunk is given in steps, not
    seconds, so that a run does not depend on the clock.
    """

    seed: int = 0
    """Root of all random numbers, 0 to 2**31 - 1."""
    num_seeds: int = 1
    """Independent runs trained side by side, with the seeds seed, seed + 1, and so on."""
    total_steps: int = 100_000
    """Budget of steps per seed, in the unit of the training, rounded up to whole updates."""
    chunk_steps: int = 1_000
    """Steps per seed between two rows of the record; best a few seconds' worth."""
    checkpoint_every: int = 20
    """Chunks between two checkpoints. One is also saved at the end, and after a signal."""
    on_nonfinite: Literal["raise", "skip", "restore"] = "raise"
    """If training yields NaN or infinity: stop, undo that update, or return to the newest
    checkpoint."""
    directory: str = ""
    """Run directory to create; empty: runs/NAME-DATE-TIME."""
    resume: Annotated[str, tyro.conf.arg(prefix_name=False, metavar="DIR")] = ""
    """Run directory to continue, with the configuration saved there."""

    def __post_init__(self):
        least = {"seed": 0, "num_seeds": 1, "total_steps": 1, "chunk_steps": 1}
        self._require({**least, "checkpoint_every": 1})
        if self.seed + self.num_seeds > 2**31:
            raise ValueError(
                f"seed must be below 2**31; got {self.seed} and {self.num_seeds} seeds"
            )
        if self.on_nonfinite not in ("raise", "skip", "restore"):
            raise ValueError(
                f"on_nonfinite must be raise, skip or restore; got {self.on_nonfinite}"
            )

    def _require(self, least: dict[str, int]) -> None:
        """Raises ValueError where a field is below its least value."""
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise ValueError(f"{name} must be at least {bound}; got {getattr(self, name)}")

    @property
    def seeds(self) -> list[int]:
        """The seeds of the S runs side by side."""
        return list(range(self.seed, self.seed + self.num_seeds))

    def seed_array(self) -> jax.Array:
        """`[S]`; for a single seed a scalar, which is not vmapped."""
        return jnp.asarray(self.seeds if self.num_seeds > 1 else self.seed, jnp.int32)

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

    total_steps: int = 10_000_000
    """Budget of environment steps per seed, rounded up to whole updates."""
    chunk_steps: int = 200_000
    """Environment steps per seed between two rows of the record; best a few seconds' worth."""
    max_episodes: int | None = None
    """Stop after the chunk in which every seed has finished this many episodes; None: never."""
    evaluation_games: int = 1_000
    """Complete games per seed, played for the score at the end; 0: no evaluation."""
    evaluation_greedy: bool = True
    """Play them greedily, without the exploration used in training."""
    policy: str = ""
    """Start from the parameters of this policy, a name or a path (see `train.policies`)."""

    def __post_init__(self):
        super().__post_init__()
        self._require({"evaluation_games": 0})
        if self.max_episodes is not None and self.max_episodes < 1:
            raise ValueError(f"max_episodes must be at least 1 or None; got {self.max_episodes}")

    def fraction_done(self, updates: int, episodes: Sequence[int], steps_per_update: int) -> float:
        """Of the budget of steps or of episodes, whichever is nearer to its end."""
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
        "run.total_steps",  # unless a schedule ends with it
        "run.max_episodes",
        "run.checkpoint_every",
        "run.on_nonfinite",
        "run.evaluation_games",
        "run.evaluation_greedy",
        "run.directory",
        "run.resume",
    }
)
"""Fields that a resumed run may change: none of them alters an update already made."""
