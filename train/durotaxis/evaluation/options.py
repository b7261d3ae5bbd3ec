"""Options of `python -m train.evaluate` for colonies, and what they change in the experiment."""

import math
import re
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import tyro

from jaxrl.checks import Count, NonNegative, Positive, Seed
from train.durotaxis.config import Experiment, Height, Stiffness, Width
from train.durotaxis.field import has_greys
from train.host.errors import UsageError
from train.host.plain_config import flag
from train.host.scoring.scores_file import ScoresFile
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
