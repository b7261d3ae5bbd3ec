"""What a run in an environment leaves: features of states of fresh walks, curves and a map."""

from pathlib import Path

import jax
import numpy as np

from jaxrl.spectral.learning import allo_state
from jaxrl.types import AgentState
from train.allo.config import Config
from train.allo.drawings import loss_curves
from train.allo.environment.environment_training import SCORE, Problem, make_problem, other_pairs
from train.allo.recorded.recorded_pictures import scatter
from train.host.files import metrics_file, whole_files
from train.host.showing import pictures

STATES = 5_000
"""States of fresh walks that are drawn and written."""


def draw_all(directory: Path, config: Config, agents: list[AgentState]) -> list[Path]:
    """Writes `eigenvectors.npz` and pictures into a run directory.

    The arrays: `states` `[m, ...]`, observations of fresh walks; `learned` `[seeds, m, d]`, their
    features; `learned_eigenvalues` `[seeds, d]`; `seeds`. `eigenvectors.png` shows the features of
    the first seed over the numbers of the observation, if there are two or three, else over its two
    principal components; there is none of single numbers.
    """
    problem = make_problem(config)
    states = np.asarray(
        jax.jit(lambda key: other_pairs(problem, STATES, key)[0])(jax.random.key(0))
    )
    features = jax.jit(
        lambda agent: allo_state.features(problem.network, problem.agent, agent, states)
    )
    learned = np.stack([np.asarray(features(agent)) for agent in agents])
    values = np.stack([allo_state.eigenvalues(problem.agent, agent) for agent in agents])
    paths = [directory / "eigenvectors.npz"]
    seeds = np.array(config.run.seeds)
    arrays = {"states": states, "learned": learned, "learned_eigenvalues": values, "seeds": seeds}
    whole_files.write_arrays(paths[0], arrays)
    title = config.env.id
    paths.append(pictures.draw_curve(directory, SCORE, title, "gradient steps"))
    rows = metrics_file.read_metrics(directory)
    paths.append(directory / "losses.png")
    loss_curves.loss_curves(rows, paths[-1], None, 4 * problem.agent.graph_weight, title)
    points, axes = plane_of(problem, states)
    if points is not None:
        paths.append(directory / "eigenvectors.png")
        first = f"{title}, seed {config.run.seeds[0]}, over {axes}"
        scatter(points, learned[0], values[0], paths[-1], first)
    return paths


def plane_of(problem: Problem, states: np.ndarray) -> tuple[np.ndarray | None, str]:
    """Where each state is drawn, `[m, 2 or 3]`, and what the axes are; None for single numbers."""
    flat = states.reshape(len(states), -1).astype(float)
    if problem.walks.observation.ndim == 0 or flat.shape[1] < 2:
        return None, ""
    spread = flat.std(axis=0)
    flat = (flat - flat.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    if flat.shape[1] <= 3:
        return flat, "what is observed"
    _, _, directions = np.linalg.svd(flat, full_matrices=False)
    return flat @ directions[:2].T, "two principal components of what is observed"
