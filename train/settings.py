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
    """How long, how often and where.

    A chunk of updates is one call of a compiled program: progress, rows of the record, signals and
    checkpoints come between two of them. Its length is given in steps, never in seconds, for a run
    must not depend on the clock.

    `on_nonfinite` says what follows where parameters or metrics are NaN or infinite after an
    update. `raise` stops the run; its checkpoints stay. `skip` takes back what the update learnt
    and plays on, at the price of a second copy of the agent's state, replay included; it stops
    where a seed loses a whole chunk. `restore` returns all seeds to the newest checkpoint and goes
    on from there with other random numbers, three times at most before it stops. The checkpoint
    that an interruption leaves is one, too: there alone a run may depend on being stopped.
    """

    seed: int = 0
    """Root of all random numbers; a run repeats exactly with the same seed."""
    num_seeds: int = 1
    """Independent runs trained side by side, with the seeds seed, seed + 1, and so on."""
    total_transitions: int = 10_000_000
    """Budget of environment steps per seed, rounded up to whole updates."""
    max_episodes: int | None = None
    """Stop after the chunk in which every seed has finished this many episodes; None: never."""
    chunk_transitions: int = 200_000
    """Environment steps per seed between two rows of the record; let them take a few seconds."""
    checkpoint_every: int = 20
    """Chunks between two checkpoints. One is also saved at the end, and after a signal."""
    on_nonfinite: Literal["raise", "skip", "restore"] = "raise"
    """NaN or infinity learnt: stop, undo that update, or return to the newest checkpoint."""
    evaluation_games: int = 1_000
    """Complete games per seed, played for the score at the end; 0: no evaluation."""
    evaluation_greedy: bool = True
    """Play them with the agent's best guess, not with the exploration it learns with."""
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
        "run.evaluation_greedy",
        "run.directory",
        "run.resume",
    }
)
"""Fields in which a resumed run may differ: none of them alters an update that has been made."""
