"""The pictures of a run that learns left and right eigenvectors, and what they show as arrays."""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxrl.spectral import hitting_times
from jaxrl.spectral.learning import allo_walks
from jaxrl.types import AgentState
from train.allo import curves, maps
from train.allo.config import Config, learning_config
from train.allo.directed import directed_maps, directed_run, directed_scores
from train.allo.problem import Problem
from train.host.files import metrics_file, whole_files
from train.host.numbers import quantity
from train.host.scoring import scores


def draw_all(
    directory: Path, config: Config, problem: Problem, agents: list[AgentState]
) -> list[Path]:
    """Writes `eigenvectors.npz` and six pictures into a run directory."""
    # Arrays: eigenpairs and hitting times of every seed, beside the true ones.
    truth, d = jax.device_get(problem.truth), config.agent.num_features
    learned = [
        jax.device_get(directed_run.eigenpairs_and_chain(config, problem, agent)[0])
        for agent in agents
    ]
    true_times = hitting_times.exact_times(problem.chain.toarray())
    times = np.stack([directed_scores.times_of(estimate) for estimate in learned])
    arrays = {
        "eigenvalues": np.stack([estimate.values for estimate in learned]),  # [seeds, E] complex
        "right": np.stack([estimate.right for estimate in learned]),  # [seeds, S, E] complex
        "left": np.stack([estimate.left for estimate in learned]),  # densities relative to `weight`
        "weight": np.stack([estimate.weight for estimate in learned]),  # [seeds, S]
        "hitting_times": times,  # [seeds, S, S] from row to column
        "true_eigenvalues": truth.values,  # [d] complex
        "true_right": truth.right.eigenvectors,  # [S, d]
        "true_left": truth.left.eigenvectors,
        "true_hitting_times": true_times,
        "cells": problem.layout.cells,  # [S, 2] row and column of each state
        "seeds": np.array(config.run.seeds),
    }
    whole_files.write_arrays(directory / "eigenvectors.npz", arrays)
    evaluation = scores.read_evaluation(directory)
    unfinished = directed_scores.unfinished_seeds(evaluation["seeds"]) if evaluation else ""
    place = f"{problem.layout.name}, {quantity(problem.layout.num_states, 'states')}"
    title, first = picture_titles(place, config.run.seeds[0], unfinished)
    name = lambda stem: directory / f"{stem}.png"
    # Eigenvectors and hitting times of the first seed, eigenvalues of all.
    measures = jax.device_get(directed_scores.compiled_similarities(learned[0], truth))
    for side in directed_scores.SIDES:
        true, learned_vectors = getattr(truth, side).eigenvectors, getattr(learned[0], side)[:, :d]
        tiles = directed_maps.tiles(
            truth.values,
            learned[0].values,
            true,
            directed_maps.align_phases(true, learned_vectors),
            measures[f"cosines_{side}"],
        )
        heading = f"{side.capitalize()} eigenvectors, true and learned: {first}"
        directed_maps.eigenvector_maps(problem.layout, tiles, name(side), heading)
    ranks = hitting_times.rank_correlations(times[0], true_times)
    directed_maps.hitting_time_maps(
        problem.layout, true_times, times[0], ranks, name("hitting_times"), first
    )
    directed_maps.eigenvalue_plane(
        truth.values, arrays["eigenvalues"][:, :d], name("eigenvalues"), title
    )
    # Curves over training and visits, of all seeds.
    rows = metrics_file.read_metrics(directory)
    curves.similarity_curves(rows, name("similarity"), _ceiling(evaluation), title)
    visits = np.sum([allo_walks.visits(learning_config(config), agent) for agent in agents], axis=0)
    maps.visitation(problem.layout, visits, name("visits"), title)
    stems = ("right", "left", "hitting_times", "eigenvalues", "similarity", "visits")
    return [directory / "eigenvectors.npz", *map(name, stems)]


def picture_titles(place: str, seed: int, unfinished: str) -> tuple[str, str]:
    """Titles of what shows all seeds, and of what shows one. Both name the unfinished ones."""
    after = f"; {unfinished}" if unfinished else ""
    return f"{place}{after}", f"{place}, seed {seed}{after}"


def _ceiling(evaluation: dict[str, Any] | None) -> float | None:
    """The mean of the seeds, where it was computed."""
    if not evaluation or "ceiling_similarity" not in evaluation["seeds"][0]:
        return None
    return float(np.mean([row["ceiling_similarity"] for row in evaluation["seeds"]]))
