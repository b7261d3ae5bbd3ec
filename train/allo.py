"""`python -m train.allo`: Laplacian eigenvectors of a maze, learned from a random walk in it.

Presets: `allo` (default), with exact expectations; `sampled`, with minibatches; `paper` and `ggdo`,
the learner of the paper and its rival with their published constants; `short`, a later script's.
"""

import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from envs.grid import layouts
from jaxrl.agents import allo
from jaxrl.loop import Config as LoopConfig
from jaxrl.loop import Metrics, TrainState, environment_step, make_loop
from jaxrl.types import AgentState
from train import (
    allo_maps,
    allo_pictures,
    allo_problem,
    allo_scores,
    command,
    records,
    scores,
    settings,
)
from train.allo_config import PRESETS, Config, check, learning_config, make_network
from train.allo_problem import Problem
from train.run import Result, run
from train.runs import Run

SCORE = "similarity"


def make_training(config: Config) -> settings.Training:
    """Raises ValueError, in one line, for what does not fit together."""
    problem = make_problem(config)
    network, agent_config = make_network(config, problem.layout.num_states), learning_config(config)
    env = config.env
    num_envs = -(-env.transitions // env.walk_steps)
    agent = allo.make(
        network, agent_config, 4, jnp.asarray(problem.inputs), num_envs, env.walk_steps
    )
    loop = make_loop(problem.env, problem.params, agent, LoopConfig(num_envs, env.walk_steps))

    def init(key: jax.Array) -> TrainState:
        def walk(state: TrainState, _):
            return environment_step(problem.env, problem.params, agent, state)

        state, (rollout, _) = jax.lax.scan(walk, loop.init(key), length=env.walk_steps)
        learner = allo.recorded(agent_config, state.agent, rollout)
        episode = jax.tree.map(lambda x: x[0], state.episode)  # the walk is over
        return state._replace(agent=learner, env=problem.truth, obs=(), memory=(), episode=episode)

    def update(state: TrainState) -> tuple[TrainState, Metrics]:
        key, learn_key, permute_key = jax.random.split(state.key, 3)
        learner, metrics = allo.learn(network, agent_config, state.agent, learn_key)
        metrics |= allo_scores.similarities(
            allo.features(network, agent_config, learner), state.env
        )
        metrics["eigenvalues"] = allo.eigenvalues(agent_config, learner)
        metrics["settled"] = allo.is_settled(agent_config, learner).astype(jnp.float32)
        updates = state.updates + 1
        if config.permute_every:
            due = updates % (config.permute_every // agent_config.steps_per_update) == 0
            learner = learner._replace(learner=allo.permuted(learner.learner, permute_key, due))
        state = state._replace(agent=learner, key=key, updates=updates)
        return state, Metrics(jnp.zeros((), jnp.int32), {}, metrics)

    return settings.Training(
        init=init,
        update=update,
        evaluate=lambda *of_seeds: evaluate(config, problem, *of_seeds),
        steps_per_update=agent_config.steps_per_update,
        unit="gradient steps",
        score=SCORE,
        budget_shapes_learning=agent_config.schedule != "constant",
        settled="settled" if agent_config.schedule == "measured" else "",
    )


def make_problem(config: Config) -> Problem:
    """The maze of a configuration; refuses first what would show only after compilation."""
    check(config)
    return allo_problem.make_problem(config.env, config.network.observation, config.agent)


def evaluate(
    config: Config,
    problem: Problem,
    agents: list[AgentState],
    seeds: list[int],
    keys: list[jax.Array],
) -> settings.Evaluation:
    """The learned eigenvectors of every seed against the truth and against the data's ceiling."""
    del keys  # nothing is drawn
    started = time.perf_counter()
    network, agent_config = make_network(config, problem.layout.num_states), learning_config(config)

    @jax.jit
    def read(agent: AgentState) -> tuple[jax.Array, jax.Array, jax.Array]:
        features = allo.features(network, agent_config, agent)
        return features, allo.eigenvalues(agent_config, agent), allo.pair_law(agent_config, agent)

    rows = []
    for seed, agent in zip(seeds, agents, strict=True):
        features, found, law = read(agent)
        rows.append(allo_scores.seed_scores(seed, features, found, law, problem.truth))
    regions = layouts.regions(problem.layout)
    content = {
        "score": SCORE,
        "compile_seconds": 0.0,
        "seconds": time.perf_counter() - started,
        "maze": problem.layout.name,
        "states": problem.layout.num_states,
        "regions": [len(region) for region in regions],
        "true_eigenvalues": np.asarray(problem.truth.values).tolist(),
        "published_eigenvalues": None if problem.published is None else problem.published.tolist(),
        "seeds": rows,
    }
    table = allo_scores.scores_table(rows, agent_config.num_features)
    if len(regions) > 1:
        table.caption = f"{table.caption}\nThe maze falls into {len(regions)} regions."
    return settings.Evaluation(content, table)


def finish(config: Config, result: Result) -> None:
    """The pictures of a run that came to its end, and the eigenvectors as arrays."""
    agents = scores.agents_of(result.state.agent, config.run.num_seeds)
    for path in draw_all(result.directory, config, agents):
        print(path)


def draw(run: Run, games: int, key: int) -> list[Path]:
    """The pictures of a `Run`; no games, nothing random."""
    del games, key
    return draw_all(run.directory, run.config, run.agents)


def draw_all(directory: Path, config: Config, agents: list[AgentState]) -> list[Path]:
    """Writes `eigenvectors.npz` and four pictures into a run directory."""
    problem, agent_config = make_problem(config), learning_config(config)
    network = make_network(config, problem.layout.num_states)
    truth = jax.device_get(problem.truth)
    d = agent_config.num_features
    learned = np.stack([allo.features(network, agent_config, agent) for agent in agents])
    found = np.stack([allo.eigenvalues(agent_config, agent) for agent in agents])
    visits = np.sum([allo.visits(agent_config, agent) for agent in agents], axis=0)
    arrays = {
        "learned": learned,  # [seeds, S, d]
        "learned_eigenvalues": found,  # [seeds, d]
        "true": truth.vectors[:, :d],
        "true_eigenvalues": truth.values,
        "cells": problem.layout.cells,  # [S, 2] row and column of each state
        "seeds": np.array(config.run.seeds),
    }
    records.write_arrays(directory / "eigenvectors.npz", arrays)
    rows = records.read_metrics(directory)
    evaluation = scores.read_evaluation(directory)
    ceiling = None
    if evaluation:
        ceiling = float(np.mean([row["ceiling"] for row in evaluation["seeds"]]))
    cosines = allo_scores.similarities(jnp.asarray(learned[0]), problem.truth)["cosines"]
    title = f"{problem.layout.name}, {len(truth.weight)} states"
    name = lambda stem: directory / f"{stem}.png"
    allo_maps.heat_maps(
        problem.layout,
        truth.vectors[:, :d],
        learned[0],
        truth.values,
        found[0],
        np.asarray(cosines),
        truth.group,
        name("eigenvectors"),
        f"{title}, seed {config.run.seeds[0]}",
    )
    allo_pictures.similarity_curves(rows, name("similarity"), ceiling, title)
    allo_pictures.eigenvalue_curves(
        rows, name("eigenvalues"), truth.values, problem.published, title
    )
    allo_maps.visitation(problem.layout, visits, name("visits"), title)
    stems = ("eigenvectors", "similarity", "eigenvalues", "visits")
    return [directory / "eigenvectors.npz", *map(name, stems)]


def train(config: Config, preset: str = "allo") -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs."""
    result = run(make_training(config), config, "allo", preset)
    finish(config, result)
    return result


if __name__ == "__main__":
    sys.exit(command.main("allo", PRESETS, make_training, finish))
