"""Five stages of opponents, each harder than the last, and when the learner moves to the next.

All of it is a function of `Progress`, which is part of the state of a run, and runs inside `jit`.
"""

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp

from envs.two_snake.env import GUEST, MOVED, RIVAL, Params
from envs.two_snake.opponents import OPPONENTS
from jaxrl import checks
from jaxrl.checks import Count, NonNegative, Share
from jaxrl.dependent_fields import needs
from jaxrl.loop import LoopMetrics

MEMORY = 0.9
"""Factor by which each update discounts the games counted before it."""
ENOUGH = 200.0
"""Least number of (discounted) games before the share of won games counts."""

BEGINS = needs("share", why="a stage of share 0 never begins")


@dataclass(frozen=True)
class Weights:
    """Relative probability of each opponent."""

    static: NonNegative = 0.0
    """Lies still."""
    random: NonNegative = 0.0
    """Makes random safe moves."""
    greedy: NonNegative = 0.0
    """Takes a shortest path to the food."""
    defensive: NonNegative = 0.0
    """Seeks free space, and food that is nearer to itself."""
    rival: NonNegative = 0.0
    """A past version of the learner."""
    guest: NonNegative = 0.0
    """The trained snake of `--opponent`."""


@dataclass(frozen=True)
class Stage:
    """The opponents of a stage, and when it ends: at `won` or at `share`, whichever comes first."""

    opponents: Annotated[Weights, BEGINS]
    """Its own opponent, the likeliest, and earlier ones, so that they are not forgotten."""
    target: Annotated[Count, BEGINS] = 10
    """Food that wins a game."""
    won: Annotated[NonNegative, BEGINS] = 1.0
    """Share of the games against the likeliest opponent that must be won."""
    share: Share = 0.0
    """Largest share of the budget; 0: no such stage. The last stage takes the rest."""


@dataclass(frozen=True)
class Curriculum:
    """Static, random and greedy opponents, then former selves: a frozen and a growing pool."""

    static: Stage
    """An opponent that lies still."""
    random: Stage
    """One that makes random safe moves."""
    greedy: Stage
    """One that takes the shortest path to the food."""
    frozen: Stage
    """Snapshots of the learner up to the start of the stage."""
    pool: Stage
    """Snapshots of the learner; new ones keep joining the pool."""

    def stages(self) -> dict[str, Stage]:
        """The stages with a share above 0, by name."""
        stages_by_name = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            n: stage for n, stage in stages_by_name.items() if checks.may_be_positive(stage.share)
        }

    def opponents(self) -> tuple[str, ...]:
        """The opponents of all stages, scripted ones first."""
        stage_weights = [stage.opponents for stage in self.stages().values()]
        names = (*OPPONENTS, *MOVED)
        is_met = lambda name: any(
            checks.may_be_positive(getattr(each, name)) for each in stage_weights
        )
        return tuple(filter(is_met, names))

    @property
    def has_rival(self) -> bool:
        """Whether a past version of the learner is met."""
        return RIVAL in self.opponents()

    @property
    def has_guest(self) -> bool:
        """Whether the trained snake of `--opponent` is met."""
        return GUEST in self.opponents()

    @property
    def final_target(self) -> int:
        """Food that wins a game in the last stage."""
        return list(self.stages().values())[-1].target


class Progress(NamedTuple):
    """The course of the curriculum; scalars."""

    stage: jax.Array  # int32, an index into `Curriculum.stages`
    updates: jax.Array  # int32, made in this stage
    games: jax.Array  # float32, discounted number of games against the opponent of the stage
    won: jax.Array  # float32, discounted number of these that were won

    @property
    def won_share(self) -> jax.Array:
        return self.won / jnp.maximum(self.games, 1.0)


def start() -> Progress:
    """The progress at the beginning of the first stage."""
    none = jnp.zeros((), jnp.int32)
    return Progress(none, none, jnp.zeros(()), jnp.zeros(()))


def params_at(curriculum: Curriculum, params: Params, stage: jax.Array | int) -> Params:
    """The parameters of the game in a stage."""
    stages = list(curriculum.stages().values())
    weights = jnp.asarray([weights_of(curriculum, each) for each in stages], jnp.float32)
    target = jnp.asarray([each.target for each in stages], jnp.int32)
    return replace(params, opponent_weights=weights[stage], target=target[stage])


def weights_of(curriculum: Curriculum, stage: Stage) -> tuple[Any, ...]:
    """The weights of `curriculum.opponents()` in a stage."""
    return tuple(getattr(stage.opponents, name) for name in curriculum.opponents())


def is_frozen(curriculum: Curriculum, stage: jax.Array) -> jax.Array:
    """Whether the rival stays the same in this stage."""
    return jnp.asarray([name == "frozen" for name in curriculum.stages()])[stage]


def advance(
    curriculum: Curriculum, progress: Progress, metrics: LoopMetrics, total_updates: int
) -> Progress:
    """The progress after an update; `metrics.finished` has `met_NAME` and `won_NAME`.

    In the last stage it only counts.
    """
    stages, opponents = list(curriculum.stages().values()), curriculum.opponents()
    weights = jnp.asarray([weights_of(curriculum, stage) for stage in stages], jnp.float32)
    met, won = (
        jnp.stack([metrics.finished[f"{what}_{name}"] for name in opponents]).astype(jnp.float32)
        for what in ("met", "won")
    )
    stage = progress.stage
    own_opponent = jnp.argmax(weights, axis=1)[stage]  # the stage's own opponent is its likeliest
    progress = progress._replace(
        updates=progress.updates + 1,
        games=MEMORY * progress.games + met[own_opponent],
        won=MEMORY * progress.won + won[own_opponent],
    )
    threshold = jnp.asarray([each.won for each in stages], jnp.float32)[stage]
    limit = jnp.asarray([each.share * total_updates for each in stages], jnp.float32)[stage]
    is_good = (progress.games >= ENOUGH) & (progress.won_share >= threshold)
    is_over = (is_good | (progress.updates >= limit)) & (stage < len(stages) - 1)
    next_progress = start()._replace(stage=stage + 1)
    return jax.tree.map(lambda new, old: jnp.where(is_over, new, old), next_progress, progress)


def check(curriculum: Curriculum) -> None:
    """Raises ValueError, in one line, for a curriculum that cannot be played."""
    checks.config(curriculum, "curriculum.")
    stages = curriculum.stages()
    if not stages:
        raise ValueError("no stage of the curriculum has a share above 0: give one to some")
    for name, stage in stages.items():
        if not any(map(checks.may_be_positive, weights_of(curriculum, stage))):
            raise ValueError(f"curriculum.{name}.opponents are all 0: give one of them a weight")
