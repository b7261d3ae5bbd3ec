"""`python -m train.vector_field`: learn vector fields online, stimulating where that tells most.

Presets: `vector_field` (default), a limit cycle seen through noisy linear channels; `seen`, three
fields whose state is observed; `duffing`; `spikes`, with Poisson counts; `family`, where only two
parameters are unknown; `sequence_vae`, which learns how the state is observed, too. With `--data
FILE.npz` nothing is stimulated: a sequence VAE learns from what was recorded (`train.recorded`).
"""

import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
from rich.console import Console

from envs.vector_field.params import Params
from jaxrl.loop import EpisodeTotals, Metrics, TrainState
from train import (
    command,
    experiments,
    recorded,
    records,
    scores,
    settings,
    vector_field_film,
    vector_field_pictures,
    vector_field_scores,
)
from train.run import Result
from train.runs import Run
from train.vector_field_config import PRESETS, Config, check, make_env, make_learner, policy

SCORE = "field_error"
STRETCH = 50
"""Samples between two scores."""


def make_training(config: Config) -> settings.Training:
    """Raises ValueError, in one line, for what does not fit together."""
    check(config)
    if config.data:
        return recorded.make_training(config)
    env = make_env(config)
    learner = make_learner(config)
    policies = {name: policy(config, name) for name in config.policies}
    laboratory = experiments.make(
        env, partial(worlds, config), learner, policies, config.box, STRETCH
    )

    def init(key: jax.Array) -> TrainState:
        begin_key, key = jax.random.split(key)
        agents, rest = laboratory.init(begin_key)
        nothing = EpisodeTotals(jnp.zeros(()), jnp.zeros((), jnp.int32))  # no episode ever ends
        return TrainState(agents, rest, (), (), nothing, key, jnp.zeros((), jnp.int32))

    def update(state: TrainState) -> tuple[TrainState, Metrics]:
        agents, rest, measures = laboratory.advance(state.agent, state.env)
        measures[SCORE] = jnp.mean(measures["error"][:, 0])
        state = state._replace(agent=agents, env=rest, updates=state.updates + 1)
        return state, Metrics(jnp.zeros((), jnp.int32), {}, measures)

    return settings.Training(
        init=init,
        update=update,
        evaluate=lambda *of_seeds: vector_field_scores.evaluate(config, learner, env, *of_seeds),
        steps_per_update=STRETCH,
        unit="samples",
        score=SCORE,
    )


def worlds(config: Config, key: jax.Array) -> Params:
    """The parameters of one world for each field, `[F, ...]`, with weights of their own."""
    env, world = make_env(config), config.env

    def one(key: jax.Array, index: jax.Array):
        numbers = {
            name: getattr(world, name)
            for name in ("dt", "process_noise", "observation_noise", "bin_width")
        }
        return env.params(key, world.authority, field=index, **numbers)

    count = len(world.fields)
    return jax.vmap(one)(jax.random.split(key, count), jnp.arange(count))


def finish(config: Config, result: Result) -> None:
    """The pictures of a run that came to its end, and its arrays."""
    agents = scores.agents_of(result.state.agent, config.run.num_seeds)
    if config.data:
        paths = recorded.draw_all(result.directory, config, agents)
    else:
        traces = vector_field_pictures.traces_of(config, result.state.env)
        paths = vector_field_pictures.draw_all(result.directory, config, agents, traces)
        for table in vector_field_scores.comparison_tables(result.directory, config):
            Console().print(table)
        rows = records.read_metrics(result.directory)
        for name, count in vector_field_scores.invalid_plans(rows, config).items():
            print(f"{name}: {count:,} plans had a cost that is not finite and were passed over")
    for path in paths:
        print(path)


def draw(run: Run, games: int, key: int) -> list[Path]:
    """The pictures of a `Run` and, unless its data were recorded, a film; nothing random."""
    del games, key
    if run.config.data:
        return recorded.draw_all(run.directory, run.config, run.agents)
    paths = vector_field_pictures.draw_all(run.directory, run.config, run.agents)
    film = vector_field_film.film(run.directory, run.config, make_training, run.updates)
    return [*paths, film]


if __name__ == "__main__":
    sys.exit(command.main("vector_field", PRESETS, make_training, finish))
