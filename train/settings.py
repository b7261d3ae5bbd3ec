"""What an entry point hands to `train.run`: a training, and how long, how often and where."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import jax
import jax.numpy as jnp
import tyro

from jaxrl.evaluate import Episodes
from jaxrl.loop import Metrics, TrainState
from jaxrl.types import AgentState


class Training(NamedTuple):
    """What an entry point makes of its configuration; every function is pure and for one seed."""

    init: Callable[[jax.Array], TrainState]
    """`key -> state`."""
    update: Callable[[TrainState], tuple[TrainState, Metrics]]
    """One training update."""
    evaluate: Callable[[AgentState, jax.Array], Episodes]
    """`(agent_state, key) -> Episodes`: complete games, as many as the configuration says."""
    transitions_per_update: int
    """Environment steps that one update gathers, summed over environments."""
    score: str = "return"
    """What counts: "return", "length" or a name in the environment's outcome."""
    budget_shapes_learning: bool = False
    """Whether a schedule ends with the budget, so that a resumed run may not change it."""


@dataclass(frozen=True)
class Config:
    """How long, how often and where."""

    seed: int = 0
    """Root of all random numbers; a run repeats exactly with the same seed."""
    num_seeds: int = 1
    """Independent runs trained side by side, with the seeds seed, seed + 1, and so on."""
    total_transitions: int = 10_000_000
    """Budget of environment steps per seed, rounded up to whole updates."""
    max_episodes: int | None = None
    """Stop after the chunk in which every seed has finished this many episodes; None: never."""
    chunk_transitions: int = 200_000
    """Environment steps per seed between two rows of the record, rounded to whole updates. Progress
    and signals wait for the end of a chunk: choose it to last a few seconds at most."""
    checkpoint_every: int = 20
    """Chunks between two checkpoints. One is also saved at the end, and after a signal."""
    on_nonfinite: Literal["raise", "skip", "restore"] = "raise"
    """When parameters or metrics become NaN or infinite. raise: stop; the checkpoints stay. skip:
    undo what that update learnt and play on (takes a second copy of the agent's state, replay
    included). restore: return to the newest checkpoint with new random numbers, at most 3 times."""
    evaluation_games: int = 1_000
    """Complete games per seed, played for the score at the end; 0: no evaluation."""
    directory: str = ""
    """Run directory to create; empty: runs/NAME-DATE-TIME."""
    resume: Annotated[str, tyro.conf.arg(prefix_name=False, metavar="DIR")] = ""
    """Run directory to continue, with the configuration that is saved there."""

    def __post_init__(self):
        least = {"seed": 0, "num_seeds": 1, "total_transitions": 1, "chunk_transitions": 1}
        least |= {"checkpoint_every": 1, "evaluation_games": 0}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise ValueError(f"{name} must be at least {bound}; got {getattr(self, name)}")
        if self.max_episodes is not None and self.max_episodes < 1:
            raise ValueError(f"max_episodes must be at least 1 or None; got {self.max_episodes}")
        if self.seed + self.num_seeds > 2**31:
            raise ValueError(
                f"seed must be below 2**31; got {self.seed} and {self.num_seeds} seeds"
            )
        if self.on_nonfinite not in ("raise", "skip", "restore"):
            raise ValueError(
                f"on_nonfinite must be raise, skip or restore; got {self.on_nonfinite}"
            )

    @property
    def seeds(self) -> list[int]:
        """The seed of each of the S runs side by side."""
        return list(range(self.seed, self.seed + self.num_seeds))

    def seed_array(self) -> jax.Array:
        """`[S]`, or a scalar for one seed, which is then not vmapped."""
        return jnp.asarray(self.seeds if self.num_seeds > 1 else self.seed, jnp.int32)

    def chunk_updates(self, transitions_per_update: int) -> int:
        """Updates of a whole chunk."""
        return max(1, round(self.chunk_transitions / transitions_per_update))

    def total_updates(self, transitions_per_update: int) -> int:
        """The budget in updates."""
        return -(-self.total_transitions // transitions_per_update)


MAY_CHANGE = frozenset(
    {
        "run.total_transitions",  # unless a schedule ends with it
        "run.max_episodes",
        "run.checkpoint_every",
        "run.on_nonfinite",
        "run.evaluation_games",
        "run.directory",
        "run.resume",
    }
)
"""Fields in which a resumed run may differ: none of them alters an update that has been made."""
