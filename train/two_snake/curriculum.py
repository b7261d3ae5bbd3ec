"""Five stages of opponents, each harder than the last, and when a learner is ready for the next.

All of it is a function of `Progress`, which is part of the state of a run, and runs inside `jit`.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from envs.two_snake.env import RIVAL, Params
from envs.two_snake.opponents import OPPONENTS
from jaxrl import checks
from jaxrl.loop import Metrics

MEMORY = 0.9
"""What an update leaves of the games that were counted before it."""
ENOUGH = 200.0
"""Games that a share of won ones must rest on."""


@dataclass(frozen=True)
class Weights:
    """How likely each opponent is, in proportion."""

    static: float = 0.0
    """Lies where it began."""
    random: float = 0.0
    """Takes any open way."""
    greedy: float = 0.0
    """Takes a shortest path to the food."""
    defensive: float = 0.0
    """Seeks room, and food that is nearer to itself."""
    rival: float = 0.0
    """The learner as it was some time ago."""


@dataclass(frozen=True)
class Stage:
    """Whom the learner meets, and when it has met them enough; it ends with what comes first."""

    opponents: Weights
    """Its opponent, and earlier ones that shall not be forgotten."""
    target: int = 10
    """Meals that win."""
    won: float = 1.0
    """Share of the games against the likeliest opponent that must be won."""
    share: float = 0.0
    """Of the budget, at most; 0: there is no such stage. The last one takes what is left."""


@dataclass(frozen=True)
class Curriculum:
    """Static, random and greedy opponents; a frozen self; selves of all ages, that keep coming."""

    static: Stage
    """An opponent that lies still."""
    random: Stage
    """One that only avoids what kills."""
    greedy: Stage
    """One that takes the shortest path to the food."""
    frozen: Stage
    """The learner as it was when the stage began, and a little earlier."""
    pool: Stage
    """The learner as it was lately; it goes on joining the pool."""

    def stages(self) -> dict[str, Stage]:
        """Those that there are, by name."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {n: stage for n, stage in named.items() if checks.may_be_positive(stage.share)}

    def opponents(self) -> tuple[str, ...]:
        """Who is met in any stage, scripts first."""
        met = [stage.opponents for stage in self.stages().values()]
        names = (*OPPONENTS, RIVAL)
        is_met = lambda name: any(checks.may_be_positive(getattr(each, name)) for each in met)
        return tuple(filter(is_met, names))

    @property
    def final_target(self) -> int:
        """Meals that win in the last stage."""
        return list(self.stages().values())[-1].target


class Progress(NamedTuple):
    """How far the learner is; scalars."""

    stage: jax.Array  # int32, a place among `Curriculum.stages`
    updates: jax.Array  # int32, made in this stage
    games: jax.Array  # float32, against the opponent of the stage; the recent ones count most
    won: jax.Array  # float32, of these

    @property
    def won_share(self) -> jax.Array:
        return self.won / jnp.maximum(self.games, 1.0)


def start() -> Progress:
    """At the beginning of the first stage."""
    none = jnp.zeros((), jnp.int32)
    return Progress(none, none, jnp.zeros(()), jnp.zeros(()))


def params_at(curriculum: Curriculum, params: Params, stage: jax.Array | int) -> Params:
    """The game as it is in a stage."""
    stages = list(curriculum.stages().values())
    weights = jnp.asarray([weights_of(curriculum, each) for each in stages], jnp.float32)
    target = jnp.asarray([each.target for each in stages], jnp.int32)
    return replace(params, opponent_weights=weights[stage], target=target[stage])


def weights_of(curriculum: Curriculum, stage: Stage) -> tuple[Any, ...]:
    """Of the opponents that are met in any stage."""
    return tuple(getattr(stage.opponents, name) for name in curriculum.opponents())


def is_frozen(curriculum: Curriculum, stage: jax.Array) -> jax.Array:
    """Whether the rival stays as it is."""
    return jnp.asarray([name == "frozen" for name in curriculum.stages()])[stage]


def advance(
    curriculum: Curriculum, progress: Progress, metrics: Metrics, total_updates: int
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
    which = jnp.argmax(weights, axis=1)[stage]  # the stage's own opponent is its likeliest
    progress = progress._replace(
        updates=progress.updates + 1,
        games=MEMORY * progress.games + met[which],
        won=MEMORY * progress.won + won[which],
    )
    threshold = jnp.asarray([each.won for each in stages], jnp.float32)[stage]
    limit = jnp.asarray([each.share * total_updates for each in stages], jnp.float32)[stage]
    is_good = (progress.games >= ENOUGH) & (progress.won_share >= threshold)
    is_over = (is_good | (progress.updates >= limit)) & (stage < len(stages) - 1)
    following = start()._replace(stage=stage + 1)
    return jax.tree.map(lambda new, old: jnp.where(is_over, new, old), following, progress)


def check(curriculum: Curriculum) -> None:
    """Refuses, in one line, what cannot be played."""
    stages = curriculum.stages()
    if not stages:
        raise ValueError("no stage of the curriculum has a share above 0: give one to some")
    for name, stage in stages.items():
        where = f"curriculum.{name}"
        checks.number(f"{where}.target", stage.target, least=1)
        checks.number(f"{where}.share", stage.share, above=0.0, most=1.0)
        checks.number(f"{where}.won", stage.won, least=0.0)
        opponents = (field.name for field in fields(Weights))
        checks.fields(f"{where}.opponents.", stage.opponents, *opponents, least=0.0)
        if not any(map(checks.may_be_positive, weights_of(curriculum, stage))):
            raise ValueError(f"{where}.opponents are all 0: give one of them a weight")
