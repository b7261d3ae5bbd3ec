"""A training without environment or episodes: gradient descent on a bowl, known in closed form."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

from jaxrl.loop import LoopMetrics
from train.host import training as settings
from train.host.program import Preset, Program, Run, Views
from train.host.showing import pictures

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


class State(NamedTuple):
    """Everything a run is: there is no environment."""

    agent: Agent
    key: jax.Array
    updates: jax.Array


def init(key: jax.Array) -> State:
    start_key, key = jax.random.split(key)
    start = jax.random.normal(start_key, (SIZE,))
    return State(Agent(start), key, jnp.zeros((), jnp.int32))


def update(state: State) -> tuple[State, LoopMetrics]:
    """Five gradient steps on half the squared distance from the origin."""
    params = state.agent.params
    for _ in range(PER_UPDATE):
        params = params - RATE * params
    measures = {"distance": jnp.linalg.norm(params), "place": params}
    after = state._replace(agent=Agent(params), updates=state.updates + 1)
    return after, LoopMetrics(episodes=0, finished={}, agent=measures)  # pyright: ignore


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
    def update_until_near(state: State) -> tuple[State, LoopMetrics]:
        after, metrics = update(state)
        near = (metrics.agent["distance"] < config.near).astype(jnp.float32)
        return after, metrics._replace(agent={**metrics.agent, "near": near})

    one, converged_metric = (update_until_near, "near") if config.near else (update, "")
    unit, score = "gradient steps", settings.Score(config.score)
    return settings.Training(init, one, evaluate, PER_UPDATE, unit, score, converged_metric)


def draw(
    run: Run, games: int, key: jax.Array, evaluation: settings.Evaluation | None
) -> list[Path]:
    del games, key, evaluation  # none are played
    training = make_training(run.config)
    return [pictures.draw_curve(run.directory, training.score.name, "A bowl", training.unit)]


PRESETS = {"bowl": Preset(Config())}
PROGRAM = Program(
    name="descent",
    presets=PRESETS,
    training=make_training,
    module="tests.train.host.descent",
    views=Views(pictures=draw),
)
