"""A small run, what it leaves to draw, and its experiments again."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

from jaxrl.dynamics import rbf
from jaxrl.loop import LoopMetrics
from train.host.training import Evaluation, Training
from train.vector_field.config import Config
from train.vector_field.presets import PRESETS
from train.vector_field.training import State, samples

SEEN = PRESETS["seen"].config
SMALL = replace(
    SEEN,
    policies=("random", "bang50"),
    env=replace(SEEN.env, fields=("limit_cycle",)),
    bayesian=replace(SEEN.bayesian, grid=rbf.Grid(per_axis=5, half_width=2.5)),
    run=replace(SEEN.run, num_seeds=2, total_steps=100),
)
SEEDS = SMALL.run.members.starts


def evaluation_of(config: Config, steps: int = 4) -> dict:
    """The content of `eval.json`, with R² that fall from 1 to -9 in all forecasts."""
    fields, policies = config.env.fields, config.policies
    falling = [np.linspace(1, -9, steps).tolist()] * len(fields)
    rows = [
        {"seed": seed, "field_error": 1.0}
        | {name: {"r2": falling, "r2_free": falling} for name in policies}
        for seed in config.run.seeds
    ]
    times = {"compile_seconds": 0.0, "seconds": 0.0}
    content = {"score": "field_error", "fields": list(fields), "policies": list(policies)}
    return {**content, **times, "seeds": rows}


class FinishedRun(NamedTuple):
    """A run of two seeds and two policies, and the folder of its record."""

    config: Config
    states: list[State]  # after 0, 50 and 100 samples
    rows: list[dict]
    directory: Path


def replay_training(finished_run: FinishedRun) -> Training:
    """The first seed, policy and field of a run, as a training of their own."""
    first_only = lambda tree: jax.tree.map(
        lambda x: np.asarray(x)[0, :1], tree
    )  # seeds, policies, fields

    def of_first(state: State) -> State:
        experiment = first_only(state.experiments["random"]._replace(train=()))
        agent, nothing = {"random": first_only(state.agent["random"])}, cast(Any, ())
        within = cast(Any, np.asarray(state.reachable[0]))
        return State(agent, {"random": experiment}, within, nothing, state.updates[0])

    states = jax.tree.map(lambda *x: np.stack(x), *map(of_first, finished_run.states))
    state_at = lambda time: jax.tree.map(lambda x: jnp.asarray(x)[time], states)
    nothing = LoopMetrics(jnp.zeros((), jnp.int32), {}, {})
    return Training(
        init=lambda key: state_at(0),
        update=lambda state: (state_at(state.updates + 1), nothing),
        evaluate=lambda *_: Evaluation({}, Table()),
        steps_per_update=50,
    )


def join_samples(finished_run: FinishedRun) -> dict[str, np.ndarray]:
    """The samples of both chunks, `[S, P, F, T, ...]`."""
    chunks = [jax.vmap(partial(samples, SMALL))(state) for state in finished_run.states[1:]]
    return {name: np.concatenate([x[name] for x in chunks], axis=3) for name in chunks[0]}
