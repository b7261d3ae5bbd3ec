"""`python -m train.evaluate RUN` for runs of `train.durotaxis`: colonies on any ground."""

import json
import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.markup import escape
from rich.table import Table

from envs.durotaxis.env import Durotaxis, Params
from jaxrl.checks import Count, NonNegative, Positive, Seed
from jaxrl.types import Agent
from train.durotaxis import pictures
from train.durotaxis.config import Experiment, Height, Stiffness, Width
from train.durotaxis.episodes import graphml, shown, tables
from train.durotaxis.episodes import playing as colonies
from train.durotaxis.episodes.record import Episode
from train.durotaxis.episodes.shown import Look, look_of
from train.durotaxis.field import has_greys
from train.durotaxis.training import SCORE, make_parts
from train.host.errors import UsageError, in_one_line
from train.host.files.provenance import provenance
from train.host.files.run_directory import create_dated
from train.host.files.whole_files import finite_or_null, write_whole
from train.host.machine.progress import show_activity
from train.host.numbers import quantity
from train.host.plain_config import check_options, flag, plain
from train.host.program import Run
from train.host.scoring import games, scores
from train.host.scoring.scores_file import ScoresFile, write_scores
from train.host.training import Games

FIELDS = {
    "substrate": "ground",
    "m": "slope",
    "b": "base",
    "max_steps": "max_steps_in_episode",
    **{name: name for name in ("field_file", "field_pixel_size", "field_range", "goal")},
    **{name: name for name in ("units", "pixel_size", "stiffness_unit", "width", "height")},
    **{name: name for name in ("num_founders", "threshold_nodes")},
}
"""What the experiment calls the options that change it."""


@dataclass(frozen=True)
class Options(ScoresFile):
    """Plays colonies with the agents of a run or a policy, on their own ground or another.

    Writes a new folder RUN/eval-GROUND-...: trajectory.csv and .npz (a row for every node and
    step), episodes.csv, summary.json and trajectories.png; for the run's own experiment also
    RUN/eval.json. --out gets what summary.json does. Flags that are not given are as in the run.
    """

    run: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = None
    """Run directory."""
    policy: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Policy instead: a name that `python -m train.policies list` shows, or a file."""
    episodes: Games = 200
    """Complete episodes per seed."""
    best: bool = False
    """The policies that were best while training, kept in RUN/best, instead of the newest."""
    key: Seed = 1
    """Root of the random numbers; the evaluation after training uses another one."""
    graphml: bool = False
    """Also write the descent of every colony as a graph, graphs/seedN-episodeN.graphml."""
    sampled: bool = False
    """Draw actions from the policy instead of acting greedily."""
    substrate: Literal["linear", "exponential", "random"] | None = None
    """Stiffness m x + b, b exp(m x), or one of them with new numbers in every episode."""
    m: Annotated[Stiffness | None, tyro.conf.arg(metavar="FLOAT")] = None
    """Slope of the stiffness, per px."""
    b: Annotated[Stiffness | None, tyro.conf.arg(metavar="FLOAT")] = None
    """Stiffness at the edge that is opposite to the goal."""
    field_file: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """Measured stiffness instead: an .npy file, [height, width], or an image in grey."""
    field_pixel_size: Annotated[Positive | None, tyro.conf.arg(metavar="FLOAT")] = None
    """Width of a pixel of that file, µm."""
    field_range: Annotated[
        tuple[NonNegative, NonNegative] | None, tyro.conf.arg(metavar="BLACK WHITE")
    ] = None
    """Stiffness of black and of white in an image; that of the run holds for images in grey."""
    goal: Annotated[str | None, tyro.conf.arg(metavar="GOAL")] = None
    """Where the colony is to go: right, left, up, down, or degrees counter-clockwise from right."""
    units: Literal["px", "physical"] | None = None
    """px: tables and pictures are in px and units of stiffness. physical: in µm and kPa."""
    pixel_size: Annotated[Positive | None, tyro.conf.arg(metavar="FLOAT")] = None
    """Width of a px of the ground, µm."""
    stiffness_unit: Annotated[Positive | None, tyro.conf.arg(metavar="FLOAT")] = None
    """Unit of stiffness, kPa."""
    width: Annotated[Width | None, tyro.conf.arg(metavar="INT")] = None
    """Width of the ground, px."""
    height: Annotated[Height | None, tyro.conf.arg(metavar="INT")] = None
    """Height of the ground, px."""
    num_founders: Annotated[Count | None, tyro.conf.arg(metavar="INT")] = None
    """Nodes at the start."""
    max_steps: Annotated[Count | None, tyro.conf.arg(metavar="INT")] = None
    """Steps after which an episode is truncated."""
    threshold_nodes: Annotated[Positive | None, tyro.conf.arg(metavar="FLOAT")] = None
    """Number of nodes above which an episode ends; the capacity is raised to it if needed."""


def evaluate(run: Run, options: Options) -> Table:
    """Plays, writes the results and returns the table to print. Raises UsageError."""
    # The experiment of the run, changed by the options.
    check_options(options)
    experiment = apply_options(run.config.env, options)
    curriculum = replace(run.config.curriculum, first_width=None)  # may exceed the new ground
    config = replace(run.config, env=experiment, curriculum=curriculum)
    try:
        env, params, agent = make_parts(config, greedy=not options.sampled)
    except ValueError as error:
        raise UsageError(with_own_flags(in_one_line(error))) from error
    started = time.perf_counter()
    episodes_by_seed = play_all(run, options, env, params, agent)
    seconds = time.perf_counter() - started
    results_by_seed = [colonies.episode_results(episodes) for episodes in episodes_by_seed]
    content = {
        "experiment": plain(experiment) | measured_ground(experiment),
        "units": look_of(experiment)[1]._asdict(),
        "options": plain(options),
        "updates": run.updates,
        "seconds": seconds,
        **provenance(),
        "seeds": [
            {"seed": seed, **tables.summary(episodes), "endings": endings(whole)}
            for seed, episodes, whole in zip(
                run.seeds, results_by_seed, episodes_by_seed, strict=True
            )
        ],
    }
    # The files; `eval.json` is of the run's own experiment alone.
    if experiment == run.config.env:
        write_own_evaluation(run, options, games.GameResults(results_by_seed, 0.0, seconds))
    folder = fresh_folder(run.directory, experiment)
    look = look_of(experiment)
    write(folder, run.seeds, episodes_by_seed, content, look, env.component_names)
    write_scores(content, options.out)
    if options.graphml:
        write_graphs(folder / "graphs", run.seeds, episodes_by_seed, look)
    return table(content, folder)


def play_all(
    run: Run, options: Options, env: Durotaxis, params: Params, agent: Agent
) -> list[list[Episode]]:
    """All episodes of each seed."""
    keys = scores.evaluation_keys(options.key, run.seeds)
    with show_activity(f"playing {quantity(options.episodes, 'colonies')} of each seed"):
        return [
            colonies.play(env, params, agent, learned, key, options.episodes)
            for key, learned in zip(keys, run.agents, strict=True)
        ]


def write_own_evaluation(run: Run, options: Options, results: games.GameResults) -> None:
    """Writes `eval.json`: the games of a run in the experiment that it was trained in."""
    content = games.evaluation_content(run.seeds, results, SCORE)
    evaluation = scores.Evaluation(content, scores.evaluation_table(content))
    extra = {"updates": run.updates, "key": options.key, "greedy": not options.sampled}
    scores.write_evaluation(run.directory, evaluation, **extra)


def measured_ground(experiment: Experiment) -> dict[str, Any]:
    """The size of measured ground as pictures show it, px, whatever the goal; it has no law."""
    if not experiment.field_file:
        return {}
    whole = look_of(experiment).placement
    size = {"width": whole.width, "height": whole.height}
    return {**size, "ground": "measured", "slope": None, "base": None}


def apply_options(experiment: Experiment, options: Options) -> Experiment:
    """The experiment as the options change it. Raises UsageError for flags without effect."""
    overrides = {
        name: getattr(options, name) for name in FIELDS if getattr(options, name) is not None
    }
    if "substrate" in overrides:
        if "field_file" in overrides:
            raise UsageError("--substrate and --field-file exclude each other: leave one out")
        experiment = replace(experiment, field_file="", field_pixel_size=None, field_range=None)
    if "field_file" in overrides and not has_greys(overrides["field_file"]):
        experiment = replace(experiment, field_range=None)  # of the greys of the run's own file
    changed_experiment = replace(
        experiment, **{FIELDS[name]: value for name, value in overrides.items()}
    )
    _refuse_idle(changed_experiment, overrides)
    room = max(
        changed_experiment.capacity,
        changed_experiment.num_founders,
        math.ceil(changed_experiment.threshold_nodes),
    )
    return replace(changed_experiment, capacity=room)


def with_own_flags(message: str) -> str:
    """A message about an experiment, with the flags of this command for those of a training."""
    for option, field in FIELDS.items():
        message = re.sub(rf"{flag(f'env.{field}')}(?![\w-])", flag(option), message)
    return message


def _refuse_idle(experiment: Experiment, overrides: dict[str, Any]) -> None:
    """Raises UsageError for flags that have no effect on this ground."""
    for name in ("field_pixel_size", "field_range"):
        if name in overrides and not experiment.field_file:
            raise UsageError(
                f"--{name.replace('_', '-')} would have no effect without --field-file"
            )
    if "stiffness_unit" in overrides and experiment.units == "px":
        raise UsageError("--stiffness-unit would have no effect without --units physical")
    is_unused = experiment.units == "px" and experiment.field_pixel_size is None
    if "pixel_size" in overrides and is_unused:
        raise UsageError(
            "--pixel-size would have no effect without --units physical or --field-pixel-size"
        )
    if experiment.field_file:
        idle, why = ("m", "b", "width", "height"), "the ground is a measured field"
    elif experiment.ground == "random":
        idle, why = ("m", "b"), "random ground has new numbers in every episode"
    else:
        return
    flags = [f"--{name}" for name in idle if name in overrides]
    if flags:
        raise UsageError(
            f"{' and '.join(flags)} would have no effect, as {why}: leave out, or give --substrate "
            f"linear or exponential"
        )


def endings(episodes: list[Episode]) -> dict[str, int]:
    """The number of episodes by how they ended, the most frequent first."""
    all_endings = [episode.ending for episode in episodes]
    return {
        name: all_endings.count(name)
        for name in sorted(set(all_endings), key=lambda e: -all_endings.count(e))
    }


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
