"""The pictures of a run of ALLO, and its eigenvectors as arrays."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.agents import allo
from jaxrl.types import AgentState
from train.allo import curves, directed_pictures, maps
from train.allo import scores as similarity
from train.allo.config import Config, learning_config, make_network
from train.allo.training import make_problem
from train.host import metrics_file, records, scores
from train.host.program import Run
from train.host.settings import Evaluation


def draw(run: Run, games: int, key: jax.Array, evaluation: Evaluation | None = None) -> list[Path]:
    """The pictures of a run; nothing is played or drawn at random."""
    del games, key, evaluation
    return draw_all(run.directory, run.config, run.agents)


def draw_all(directory: Path, config: Config, agents: list[AgentState]) -> list[Path]:
    """Writes `eigenvectors.npz` and four pictures into a run directory."""
    problem, agent_config = make_problem(config), learning_config(config)
    if agent_config.directed:
        return directed_pictures.draw_all(directory, config, problem, agents)
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
    rows = metrics_file.read_metrics(directory)
    evaluation = scores.read_evaluation(directory)
    ceiling = None
    if evaluation and "ceiling" in evaluation["seeds"][0]:
        ceiling = float(np.mean([row["ceiling"] for row in evaluation["seeds"]]))
    cosines = similarity.similarities(jnp.asarray(learned[0]), problem.truth)["cosines"]
    title = f"{problem.layout.name}, {len(truth.weight)} states"
    name = lambda stem: directory / f"{stem}.png"
    vectors, first = truth.vectors[:, :d], f"{title}, seed {config.run.seeds[0]}"
    pairs = maps.Eigenvectors(
        vectors, learned[0], truth.values, found[0], np.asarray(cosines), truth.group
    )
    maps.heat_maps(problem.layout, pairs, name("eigenvectors"), first)
    curves.similarity_curves(rows, name("similarity"), ceiling, title)
    curves.eigenvalue_curves(rows, name("eigenvalues"), truth.values, problem.published, title)
    maps.visitation(problem.layout, visits, name("visits"), title)
    stems = ("eigenvectors", "similarity", "eigenvalues", "visits")
    return [directory / "eigenvectors.npz", *map(name, stems)]
