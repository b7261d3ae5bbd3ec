"""The pictures of a run that learns left and right eigenvectors, and what they show as arrays."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxrl.spectral import hitting_times
from jaxrl.spectral.learning import allo_walks
from jaxrl.types import AgentState
from train.allo.config import Config, learning_config
from train.allo.directed import directed_maps, directed_run, directed_scores
from train.allo.drawings import curves, maps
from train.allo.problem import Problem
from train.host.files import metrics_file, whole_files
from train.host.numbers import quantity
from train.host.scoring import scores

PICTURES = ("right", "left", "hitting_times", "eigenvalues", "similarity", "visits")


def draw_all(
    directory: Path, config: Config, problem: Problem, agents: list[AgentState]
) -> list[Path]:
    """Writes `eigenvectors.npz` and six pictures into a run directory."""
    truth = jax.device_get(problem.truth)
    learned = [
        jax.device_get(directed_run.eigenpairs_and_chain(config, problem, agent)[0])
        for agent in agents
    ]
    arrays = arrays_of(config, problem, truth, learned)
    path_of = lambda stem: directory / f"{stem}.png"
    paths = [directory / "eigenvectors.npz", *map(path_of, PICTURES)]
    whole_files.write_arrays(paths[0], arrays)
    evaluation = scores.read_evaluation(directory)
    unfinished = directed_scores.unfinished_seeds(evaluation["seeds"]) if evaluation else ""
    place = f"{problem.layout.name}, {quantity(problem.layout.num_states, 'states')}"
    title, first = picture_titles(place, config.run.seeds[0], unfinished)
    # Eigenvectors and hitting times of the first seed, eigenvalues of all.
    draw_eigenvectors(problem, truth, learned[0], path_of, first)
    true_times, times = arrays["true_hitting_times"], arrays["hitting_times"][0]
    ranks = hitting_times.rank_correlations(times, true_times)
    directed_maps.hitting_time_maps(
        problem.layout, true_times, times, ranks, path_of("hitting_times"), first
    )
    values = arrays["eigenvalues"][:, : config.agent.num_features]
    directed_maps.eigenvalue_plane(truth.values, values, path_of("eigenvalues"), title)
    # Curves over training and visits, of all seeds.
    rows = metrics_file.read_metrics(directory)
    curves.similarity_curves(rows, path_of("similarity"), _ceiling(evaluation), title)
    visits = np.sum([allo_walks.visits(learning_config(config), agent) for agent in agents], axis=0)
    maps.visitation(problem.layout, visits, path_of("visits"), title)
    return paths


def arrays_of(
    config: Config, problem: Problem, truth: Any, learned: Sequence[Any]
) -> dict[str, np.ndarray]:
    """Eigenpairs and hitting times of every seed, beside the true ones, by name."""
    return {
        "eigenvalues": np.stack([estimate.values for estimate in learned]),  # [seeds, E] complex
        "right": np.stack([estimate.right for estimate in learned]),  # [seeds, S, E] complex
        "left": np.stack([estimate.left for estimate in learned]),  # densities relative to `weight`
        "weight": np.stack([estimate.weight for estimate in learned]),  # [seeds, S]
        # [seeds, S, S] from row to column
        "hitting_times": np.stack([directed_scores.times_of(estimate) for estimate in learned]),
        "true_eigenvalues": truth.values,  # [d] complex
        "true_right": truth.right.eigenvectors,  # [S, d]
        "true_left": truth.left.eigenvectors,
        "true_hitting_times": hitting_times.exact_times(problem.chain.toarray()),
        "cells": problem.layout.cells,  # [S, 2] row and column of each state
        "seeds": np.array(config.run.seeds),
    }


def draw_eigenvectors(
    problem: Problem, truth: Any, learned: Any, path_of: Callable[[str], Path], title: str
) -> None:
    """Writes a picture of the right eigenvectors of a seed, and one of the left ones."""
    measures = jax.device_get(directed_scores.compiled_similarities(learned, truth))
    for side in directed_scores.SIDES:
        true = getattr(truth, side).eigenvectors
        own = getattr(learned, side)[:, : true.shape[1]]
        tiles = directed_maps.tiles(
            truth.values,
            learned.values,
            true,
            directed_maps.align_phases(true, own),
            measures[f"cosines_{side}"],
        )
        heading = f"{side.capitalize()} eigenvectors, true and learned: {title}"
        directed_maps.eigenvector_maps(problem.layout, tiles, path_of(side), heading)


def picture_titles(place: str, seed: int, unfinished: str) -> tuple[str, str]:
    """Titles of what shows all seeds, and of what shows one. Both name the unfinished ones."""
    after = f"; {unfinished}" if unfinished else ""
    return f"{place}{after}", f"{place}, seed {seed}{after}"


def _ceiling(evaluation: dict[str, Any] | None) -> float | None:
    """The mean of the seeds, where it was computed."""
    if not evaluation or "ceiling_similarity" not in evaluation["seeds"][0]:
        return None
    return float(np.mean([row["ceiling_similarity"] for row in evaluation["seeds"]]))
