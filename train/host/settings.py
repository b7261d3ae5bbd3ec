"""What an entry point hands to `train.host.run`: a training, and how long, how often and where."""

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
    """For `eval.json`: "score", the name of the measure that counts; the times "compile_seconds"
    and "seconds"; and "seeds", for each a dict of its "seed" and its measures. A measure is a
    number or, as `scores.summary` makes it, a dict with "mean" and perhaps "low" and "high"."""
    table: RenderableType
    """The same for the eye."""
    detail: Any = None
    """What pictures may need beside it: `scores.Played` of games."""


class Training(NamedTuple):
    """What an entry point makes of its configuration.

    `init` and `update` are pure and for one seed; `evaluate` is called on the host.
    """

    init: Callable[[jax.Array], RunState]
    """`key -> state`."""
    update: Callable[[Any], tuple[Any, Metrics]]
    """`state -> (state, metrics)`: one training update."""
    evaluate: Callable[[list[AgentState], list[int], list[jax.Array]], Evaluation]
    """`(agent_states, seeds, keys) -> Evaluation`, an entry of each list per seed. For games,
    `scores.games` makes one."""
    steps_per_update: int
    """What one update takes from the budget, such as the steps of all its environments."""
    unit: str = "environment steps"
    """What a step is; in the plural."""
    score: str = "return"
    """What counts: "return", "length" or a name in the environment's outcome; without episodes, a
    scalar that the agent measures."""
    settled: str = ""
    """A number that the agent measures, above 0 where nothing more would be learned; a run ends
    after the chunk in which that is so for all seeds. Empty: only with the budget."""
    budget_shapes_learning: bool = False
    """Whether a schedule ends with the budget, so that a resumed run may not change it."""


@dataclass(frozen=True)
class Config:
    """How long, how often and where.

    A chunk of updates is one call of a compiled program: progress, rows of the record, signals and
    checkpoints come between two of them. Its length is given in steps, never in seconds, for a run
    must not depend on the clock.
    """

    seed: int = 0
    """Root of all random numbers, 0 to 2**31 - 1."""
    num_seeds: int = 1
    """Independent runs trained side by side, with the seeds seed, seed + 1, and so on."""
    total_steps: int = 100_000
    """Budget of steps per seed, in the unit of the training, rounded up to whole updates."""
    chunk_steps: int = 1_000
    """Steps per seed between two rows of the record; let them take a few seconds."""
    checkpoint_every: int = 20
    """Chunks between two checkpoints. One is also saved at the end, and after a signal."""
    on_nonfinite: Literal["raise", "skip", "restore"] = "raise"
    """NaN or infinity learned: stop, undo that update, or return to the newest checkpoint."""
    directory: str = ""
    """Run directory to create; empty: runs/NAME-DATE-TIME."""
    resume: Annotated[str, tyro.conf.arg(prefix_name=False, metavar="DIR")] = ""
    """Run directory to continue, with the configuration that is saved there."""

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
        """The seed of each of the S runs side by side."""
        return list(range(self.seed, self.seed + self.num_seeds))

    def seed_array(self) -> jax.Array:
        """`[S]`, or a scalar for one seed, which is then not vmapped."""
        return jnp.asarray(self.seeds if self.num_seeds > 1 else self.seed, jnp.int32)

    def chunk_updates(self, steps_per_update: int) -> int:
        """Updates of a whole chunk."""
        return max(1, round(self.chunk_steps / steps_per_update))

    def total_updates(self, steps_per_update: int) -> int:
        """The budget in updates."""
        return -(-self.total_steps // steps_per_update)

    def fraction_done(self, updates: int, episodes: Sequence[int], steps_per_update: int) -> float:
        """How much of a run lies behind it, 0 to 1; `episodes` `[S]` are those of each seed."""
        del episodes  # where none are played, only the updates count
        return min(updates / self.total_updates(steps_per_update), 1.0)

    @property
    def evaluates(self) -> bool:
        """Whether a run that came to its end is evaluated."""
        return True

    @property
    def begins_with(self) -> str:
        """The policy, by name or path, whose parameters come before the first update, if any."""
        return ""


@dataclass(frozen=True)
class PlayConfig(Config):
    """How long, how often and where, for agents that play games.

    Progress, rows of the record, signals and checkpoints come between two chunks of updates.
    """

    total_steps: int = 10_000_000
    """Budget of environment steps per seed, rounded up to whole updates."""
    chunk_steps: int = 200_000
    """Environment steps per seed between two rows of the record; let them take a few seconds."""
    max_episodes: int | None = None
    """Stop after the chunk in which every seed has finished this many episodes; None: never."""
    evaluation_games: int = 1_000
    """Complete games per seed, played for the score at the end; 0: no evaluation."""
    evaluation_greedy: bool = True
    """Play them with the agent's best guess, not with the exploration it learns with."""
    policy: str = ""
    """Begin with the parameters of this policy, a name or a path (see `train.policies`)."""

    def __post_init__(self):
        super().__post_init__()
        self._require({"evaluation_games": 0})
        if self.max_episodes is not None and self.max_episodes < 1:
            raise ValueError(f"max_episodes must be at least 1 or None; got {self.max_episodes}")

    def fraction_done(self, updates: int, episodes: Sequence[int], steps_per_update: int) -> float:
        """Of the budget of steps or of that of episodes, whichever is nearer to its end."""
        done = super().fraction_done(updates, episodes, steps_per_update)
        if self.max_episodes:
            done = max(done, min(episodes) / self.max_episodes)
        return min(done, 1.0)

    @property
    def evaluates(self) -> bool:
        return self.evaluation_games > 0

    @property
    def begins_with(self) -> str:
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
"""Fields in which a resumed run may differ: none of them alters an update that has been made."""
