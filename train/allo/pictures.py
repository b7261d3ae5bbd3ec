"""The pictures of a run of ALLO, and its eigenvectors as arrays."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from envs.grid.space import continuous
from jaxrl.spectral.learning import allo_state, allo_walks
from jaxrl.types import AgentState
from train.allo import scores as similarity
from train.allo.config import Config, learning_config
from train.allo.directed import directed_pictures
from train.allo.drawings import curves, loss_curves, maps
from train.allo.problem import Problem
from train.allo.training import make_problem, network_of
from train.host.files import metrics_file, whole_files
from train.host.numbers import quantity
from train.host.scoring import scores


def draw_all(directory: Path, config: Config, agents: list[AgentState]) -> list[Path]:
    """Writes `eigenvectors.npz` and five pictures into a run directory."""
    problem, agent_config = make_problem(config), learning_config(config)
    if agent_config.directed:
        return directed_pictures.draw_all(directory, config, problem, agents)
    # Arrays: eigenvectors and eigenvalues of every seed, beside the true ones.
    network = network_of(config, problem)
    truth = jax.device_get(problem.truth)
    d = agent_config.num_features
    points = jnp.asarray(problem.inputs)
    features_of = jax.jit(partial(allo_state.features, network, agent_config))
    learned = np.stack([features_of(agent, points) for agent in agents])
    learned_values = np.stack([allo_state.eigenvalues(agent_config, agent) for agent in agents])
    visits = np.sum([visits_of(config, problem, agent) for agent in agents], axis=0)
    arrays = {
        "learned": learned,  # [seeds, S, d]
        "learned_eigenvalues": learned_values,  # [seeds, d]
        "true": truth.vectors[:, :d],
        "true_eigenvalues": truth.values,
        "cells": problem.layout.cells,  # [S, 2] row and column of each state
        "seeds": np.array(config.run.seeds),
    }
    whole_files.write_arrays(directory / "eigenvectors.npz", arrays)
    # The recorded rows, the ceiling of the data, and titles.
    rows = metrics_file.read_metrics(directory)
    evaluation = scores.read_evaluation(directory)
    ceiling = None
    if evaluation and "ceiling" in evaluation["seeds"][0]:
        ceiling = float(np.mean([row["ceiling"] for row in evaluation["seeds"]]))
    cosines = similarity.compiled_similarities(learned[0], problem.truth)["cosines"]
    title = f"{problem.layout.name}, {quantity(len(truth.weight), 'states')}"
    name = lambda stem: directory / f"{stem}.png"
    # Eigenvectors of the first seed; curves and visits of all.
    first = f"{title}, seed {config.run.seeds[0]}"
    columns = truth.vectors, learned[0], truth.values, learned_values[0], np.asarray(cosines)
    pairs = maps.Eigenvectors(*columns, truth.group, truth.column_group)
    maps.heat_maps(problem.layout, pairs, name("eigenvectors"), first)
    curves.similarity_curves(rows, name("similarity"), ceiling, title)
    curves.eigenvalue_curves(rows, name("eigenvalues"), truth.values, problem.published, title)
    factor = 4 * agent_config.graph_weight
    loss_curves.loss_curves(rows, name("losses"), truth.values, factor, title)
    maps.visitation(problem.layout, visits, name("visits"), title)
    stems = ("eigenvectors", "similarity", "eigenvalues", "losses", "visits")
    return [directory / "eigenvectors.npz", *map(name, stems)]


def visits_of(config: Config, problem: Problem, agent: AgentState) -> np.ndarray:
    """How many recorded transitions start in each state, or in each cell of a continuous maze."""
    if problem.is_numbered:
        return np.asarray(allo_walks.visits(learning_config(config), agent))
    layout, parts = problem.layout, config.env.truth_cells
    visited_coordinates = np.asarray(agent.walk.data.state)[np.asarray(agent.walk.data.left) > 0]
    size = layout.height // parts, layout.width // parts
    cells = (continuous.positions(visited_coordinates, *size) * parts).astype(int)
    rows, cols = np.minimum(cells, np.array(layout.free.shape) - 1).T  # rounding may lead outside
    states = layout.index[rows, cols]
    return np.bincount(states[states >= 0], minlength=layout.num_states)
