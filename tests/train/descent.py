"""A training without environment or episodes: gradient descent on a bowl, known in closed form."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

from jaxrl.loop import EpisodeTotals, Metrics, TrainState
from train import pictures, records, runs, scores, settings

RATE, SIZE, PER_UPDATE = 0.25, 3, 5


@dataclass(frozen=True)
class Config:
    """Goes downhill."""

    score: str = "distance"
    """What is shown."""
    near: float = 0.0
    """Distance below which it is enough."""
    run: settings.Config = field(
        default_factory=lambda: settings.Config(total_steps=40, chunk_steps=10, num_seeds=2)
    )


class Agent(NamedTuple):
    params: jax.Array  # [3]


def init(key: jax.Array) -> TrainState:
    start_key, key = jax.random.split(key)
    start, nothing = jax.random.normal(start_key, (SIZE,)), jnp.zeros((), jnp.int32)
    return TrainState(Agent(start), (), (), (), EpisodeTotals(nothing, nothing), key, nothing)


def update(state: TrainState) -> tuple[TrainState, Metrics]:
    """Five gradient steps on half the squared distance from the origin."""
    params = state.agent.params
    for _ in range(PER_UPDATE):
        params = params - RATE * params
    measures = {"distance": jnp.linalg.norm(params), "place": params}
    after = state._replace(agent=Agent(params), updates=state.updates + 1)
    return after, Metrics(episodes=0, finished={}, agent=measures)  # pyright: ignore


def evaluate(agents: list[Agent], seeds: list[int], keys: list[jax.Array]) -> settings.Evaluation:
    """The distance from the origin, and numbers that tell which keys were given."""
    rows = [
        {"seed": seed, "distance": float(np.linalg.norm(agent.params)), "drawn": int(draw)}
        for agent, seed, draw in zip(agents, seeds, map(jax.random.bits, keys), strict=True)
    ]
    table = Table("seed", "distance")
    for row in rows:
        table.add_row(str(row["seed"]), f"{row['distance']:.3g}")
    content = {"score": "distance", "compile_seconds": 0.0, "seconds": 0.0, "seeds": rows}
    return settings.Evaluation(content, table)


def make_training(config: Config) -> settings.Training:
    def settling(state: TrainState) -> tuple[TrainState, Metrics]:
        after, metrics = update(state)
        near = (metrics.agent["distance"] < config.near).astype(jnp.float32)
        return after, metrics._replace(agent={**metrics.agent, "near": near})

    one, settled = (settling, "near") if config.near else (update, "")
    unit = "gradient steps"
    return settings.Training(init, one, evaluate, PER_UPDATE, unit, config.score, settled)


PRESETS = {"bowl": Config()}


def draw(run: runs.Run, games: int, key: int) -> list[Path]:
    del games, key  # none are played
    path, training = run.directory / "learning_curve.png", make_training(run.config)
    rows, evaluation = records.read_metrics(run.directory), scores.read_evaluation(run.directory)
    pictures.learning_curve(rows, path, training.score, "A bowl", evaluation, training.unit)
    return [path]
