"""How the colonies of an experiment are told and drawn: turned towards their goal, in its units."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from envs.durotaxis import units
from envs.durotaxis.env import Params
from envs.durotaxis.pictures import scenery
from envs.durotaxis.placement import Placement, picture, place
from envs.durotaxis.units import Units
from train.durotaxis.config import Experiment, ground_of
from train.durotaxis.episodes.record import Episode


class Look(NamedTuple):
    """Where the ground lies in pictures, and what lengths and stiffness are told in."""

    placement: Placement
    units: Units


def look_of(experiment: Experiment) -> Look:
    """The look of the pictures and tables of an experiment."""
    return Look(ground_of(experiment)[1], units_of(experiment))


def default_look(params: Params) -> Look:
    """The look of the ground as the rules have it: not turned, in px."""
    return Look(place("right", int(params.width), int(params.height)), units.PIXELS)


def units_of(experiment: Experiment) -> Units:
    """px and units of stiffness, or µm and kPa."""
    if experiment.units == "px":
        return units.PIXELS
    return units.physical(experiment.pixel_size, experiment.stiffness_unit)


def stiffness_in(look: Look, law: Any, params: Params) -> np.ndarray:
    """The stiffness of every px of the picture, float32 `[height, width]`, as it is told."""
    ground = scenery.ground(law, np.asarray(params.field), params.width, params.height)
    return np.float32(look.units.stiffness) * picture(ground, look.placement)


def place_episode(episode: Episode, look: Look) -> Episode:
    """The episode with places as they are in pictures, px."""
    x, y = look.placement.to_picture(episode.colony.x, episode.colony.y)
    x, y = (np.where(episode.alive, v, np.float32(0)) for v in (x, y))
    centroid = np.stack(look.placement.to_picture(*episode.centroid.T), axis=-1)
    return replace(episode, colony=episode.colony.replace(x=x, y=y), centroid=centroid)


def convert_units(episode: Episode, look: Look) -> Episode:
    """The episode in units: all places, stiffness and the numbers of actions."""
    length, stiffness = (np.float32(x) for x in (look.units.length, look.units.stiffness))
    colony = episode.colony
    numbers = episode.numbers
    factors = {"gamma": length, "noise": length, "alpha": stiffness}
    return replace(
        episode,
        colony=colony.replace(x=colony.x * length, y=colony.y * length),
        centroid=episode.centroid * length,
        intensity=episode.intensity * stiffness,
        centre_intensity=episode.centre_intensity * stiffness,
        numbers={name: x * factors.get(name, np.float32(1)) for name, x in numbers.items()},
    )


def place_and_convert(episode: Episode, look: Look) -> Episode:
    """The episode as tables and graphs have it: placed in the picture, and in units."""
    return convert_units(place_episode(episode, look), look)
