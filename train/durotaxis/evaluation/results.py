"""What an evaluation of colonies leaves: a folder of tables and pictures, and a table to print."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from train.durotaxis import pictures
from train.durotaxis.config import Experiment
from train.durotaxis.episodes import graphml, shown, tables
from train.durotaxis.episodes.record import Episode
from train.durotaxis.episodes.shown import Look
from train.host.files.run_directory import create_dated
from train.host.files.whole_files import finite_or_null, write_whole
from train.host.scoring import scores


def fresh_folder(directory: Path, experiment: Experiment) -> Path:
    """A new folder in `directory`, named after the ground and the time."""
    ground = f"{experiment.ground}-m{experiment.slope:g}-b{experiment.base:g}"
    if experiment.field_file:
        ground = f"field-{Path(experiment.field_file).stem}"
    elif experiment.ground == "random":
        ground = "random"
    return create_dated(directory, f"eval-{ground}")


def write(
    folder: Path,
    seeds: list[int],
    episodes_by_seed: list[list[Episode]],
    content: dict[str, Any],
    look: Look,
    components: Sequence[str],
) -> None:
    """Writes all files, each whole or not at all; `summary.json` comes last.

    Places are those of pictures, but how far colonies came is told along their way to the goal.
    """

    def rows():
        for seed, episodes in zip(seeds, episodes_by_seed, strict=True):
            for number, episode in enumerate(episodes):
                yield tables.rows(shown.place_and_convert(episode, look), seed, number, components)

    measured_episodes = [
        [shown.convert_units(episode, look) for episode in episodes]
        for episodes in episodes_by_seed
    ]
    tables_by_seed = [
        tables.episode_rows(*pair) for pair in zip(measured_episodes, seeds, strict=True)
    ]
    tables.write_csv(folder / "trajectory.csv", rows())
    tables.write_npz(folder / "trajectory.npz", rows())
    tables.write_csv(folder / "episodes.csv", tables_by_seed)
    all_episodes = [episode for episodes in measured_episodes for episode in episodes]
    length = float(look.placement.length)
    pictures.trajectories(all_episodes, folder / "trajectories.png", length, look.units)
    text = json.dumps(finite_or_null(content), indent=1)
    write_whole(folder / "summary.json", text + "\n")


def write_graphs(
    folder: Path, seeds: list[int], episodes_by_seed: list[list[Episode]], look: Look
) -> None:
    """Writes the descent of every colony."""
    folder.mkdir()
    for seed, episodes in zip(seeds, episodes_by_seed, strict=True):
        for number, episode in enumerate(episodes):
            path = folder / f"seed{seed}-episode{number}.graphml"
            graphml.write(path, shown.place_and_convert(episode, look))


def table(content: dict[str, Any], folder: Path) -> Table:
    """The main numbers of a summary, a column for every seed."""
    out = Table(title=escape(str(folder)), title_justify="left")
    out.add_column("per episode: mean, median, range")
    texts = [_cells(seed) for seed in content["seeds"]]
    for seed in content["seeds"]:
        out.add_column(f"seed {seed['seed']}", justify="right")
    for name in {name: None for cells in texts for name in cells}:
        out.add_row(name, *(cells.get(name, "") for cells in texts))
    return out


def _cells(seed: dict[str, Any]) -> dict[str, str]:
    """The lines of one seed."""
    mean, low, high = (
        scores.number_text(seed["arrived"], ".1%", name=name) for name in ("mean", "low", "high")
    )
    cells = {
        "episodes": f"{seed['episodes']:,}",
        "arrived": f"{mean} ({low} to {high})" if mean else "none",
        "steps to the goal": _line(seed["steps_to_goal"]),
        "length": _line(seed["length"]),
        "nodes at the end": _line(seed["final_nodes"]),
        "return": _line(seed["return"]),
    }
    cells |= {f"  {name}": _line(x) for name, x in seed["rewards"].items()}
    return cells | {f"ended {name}": f"{count:,}" for name, count in seed["endings"].items()}


def _line(x: dict[str, float | None]) -> str:
    if x["mean"] is None:
        return "none"
    mean, median, low, high = (
        scores.number_text(x, name=name) for name in ("mean", "median", "min", "max")
    )
    return f"{mean}, {median}, {low} to {high}"
