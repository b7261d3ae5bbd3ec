"""What a run on recorded data leaves: eigenvectors as arrays and, where there is a place, maps."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxrl.spectral.learning import allo_state
from jaxrl.types import AgentState
from train.allo.config import Config
from train.allo.drawings import curves, loss_curves, maps
from train.allo.recorded.recorded_training import Problem, make_problem
from train.host.files import metrics_file, whole_files
from train.host.showing import pictures

COLUMNS = 6  # eigenvectors side by side, at most
POINTS = 5_000  # of a map, at most
AT_ONCE = 100_000  # vectors that the network sees at once


def draw_all(directory: Path, config: Config, agents: list[AgentState]) -> list[Path]:
    """Writes `eigenvectors.npz` and pictures into a run directory.

    The arrays: `learned` `[seeds, m, d]`, the features of each of the m `states` of the file, in
    its order (without what fills rows up); for ids instead of all S ids, NaN of those in no
    transition. `learned_eigenvalues`
    `[seeds, d]`, `true_eigenvalues` `[d]`, `seeds`. `true` `[S, d]` of ids, or `[P, d]` at the
    middles of `cells` `[P, D]` that vectors were divided into.
    """
    problem = make_problem(config)
    truth, d = jax.device_get(problem.truth), problem.agent.num_features
    arrays = {
        "learned": np.stack([learned_features(problem, agent) for agent in agents]),
        "learned_eigenvalues": np.stack([allo_state.eigenvalues(problem.agent, x) for x in agents]),
        "true": truth.vectors[:, :d],
        "true_eigenvalues": truth.values,
        "seeds": np.array(config.run.seeds),
    }
    recording = problem.recording
    if problem.cells is not None:
        arrays["cells"] = problem.cells.middles * recording.scale + recording.middle
    paths = [directory / "eigenvectors.npz"]
    whole_files.write_arrays(paths[0], arrays)
    rows, title = metrics_file.read_metrics(directory), Path(config.transitions).name
    draw = {
        "similarity": lambda path: curves.similarity_curves(rows, path, None, title),
        "eigenvalues": lambda path: curves.eigenvalue_curves(rows, path, truth.values, None, title),
        "losses": lambda path: loss_curves.loss_curves(
            rows, path, truth.values, 4 * problem.agent.graph_weight, title
        ),
    }
    points = recording.points if not recording.num_ids else recording.positions
    if points is not None:
        seed = f"{title}, seed {config.run.seeds[0]}"
        draw["eigenvectors"] = lambda path: scatter(
            points, arrays["learned"][0], arrays["learned_eigenvalues"][0], path, seed
        )
    for stem, write in draw.items():
        paths.append(directory / f"{stem}.png")
        write(paths[-1])
    return paths


def learned_features(problem: Problem, agent: AgentState) -> np.ndarray:
    """Features of every recorded state in the file's order `[m, d]`, or of all ids `[S, d]`.

    They are NaN for ids that are in no transition.
    """
    apply = partial(jax.jit(partial(allo_state.features, problem.network, problem.agent)), agent)
    inputs = problem.points if problem.recording.num_ids else problem.recording.places
    parts = range(0, len(inputs), AT_ONCE)
    features = np.concatenate([apply(jnp.asarray(inputs[i : i + AT_ONCE])) for i in parts])
    if problem.recording.num_ids:
        features[~problem.recording.occurs] = np.nan
    return features


def scatter(
    points: np.ndarray, features: np.ndarray, values: np.ndarray, path: Path, title: str
) -> None:
    """Draws learned eigenvectors `[m, d]` as colours at points `[m, 2 or 3]`; NaN is left out.

    `values` `[d]` are their own λ.
    """
    is_known = np.isfinite(features).all(axis=1)
    points, features = points[is_known], features[is_known]
    sample_indices = np.random.default_rng(0).permutation(len(points))[:POINTS]
    points, features = points[sample_indices], features[sample_indices]
    d = features.shape[1]
    columns = min(d, COLUMNS)
    rows = -(-d // columns)
    figure = pictures.titled_figure(
        (2.3 * columns, 2.4 * rows + 0.5), f"Learned eigenvectors: {title}"
    )
    for i in range(d):
        axes = _axes(figure, rows, columns, i + 1, points.shape[1])
        largest = np.abs(features[:, i]).max() or 1.0
        style = {"cmap": maps.DIVERGENT, "vmin": -largest, "vmax": largest, "s": 4}
        axes.scatter(*points.T, c=features[:, i], linewidths=0, **style)
        axes.set_title(f"{i + 1}, λ {maps.decimal_text(values[i])}", loc="left", size=9)
    pictures.save(figure, path)


def _axes(figure: Figure, rows: int, columns: int, place: int, dimensions: int) -> Axes:
    """The axes of a map: no ticks, equal units, and a grey ground on which white is seen."""
    if dimensions == 3:
        axes = figure.add_subplot(rows, columns, place, projection="3d")
    else:
        axes = figure.add_subplot(rows, columns, place)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_facecolor("#c9cdd2")
        axes.set(xticks=[], yticks=[])
    return axes
