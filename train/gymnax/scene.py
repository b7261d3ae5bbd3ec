"""Episodes of any environment to be looked at step by step, in a report and live."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from PIL import Image

from train.gymnax.config import make_agent
from train.gymnax.drawings import drawing
from train.gymnax.drawings.action_bars import bars
from train.gymnax.drawings.tiles import COLOURS, SIDE, tile_pictures
from train.host.environments import environments
from train.host.environments.environments import Task
from train.host.machine.progress import show_activity
from train.host.program import EpisodeSelection, Run
from train.host.showing import episodes, plain_scene
from train.host.showing.episodes import Bars, Recording, Scene
from train.host.showing.live import Live

SCRIPT = Path(__file__).with_name("gymnax.js")
MOST_PICTURES = 1_200
"""Pictures of all episodes; of longer ones every second, third, ... moment is drawn."""


def show(run: Run, selection: EpisodeSelection) -> Scene:
    """Episodes that the policy plays as it is evaluated."""
    task = environments.make(run.config.env)
    player = make_agent(run.config, task, run.config.run.evaluation_greedy)
    learned = run.agents[selection.member]
    game = task.env, task.params, player, learned
    recordings = episodes.record(*game, selection.key, selection.count, selection.limit)
    if drawing.can_draw(task.env):
        with show_activity("drawing the episodes"):
            frames_by_game, constants = draw_episodes(task, recordings)
    else:
        frames_by_game, constants = [plain_scene.moments(recording) for recording in recordings], {}
    return Scene(
        scripts(task),
        [
            plain_scene.episode(game, frames, bars(game, task.action))
            for game, frames in zip(recordings, frames_by_game, strict=True)
        ],
        {"name": run.config.env.id, **constants},
    )


def live(run: Run, member: int) -> Live:
    """An episode to be watched."""
    task = environments.make(run.config.env)
    player = make_agent(run.config, task, run.config.run.evaluation_greedy)
    is_drawn = drawing.can_draw(task.env)

    def look(game: Recording) -> tuple[dict[str, np.ndarray], dict[str, Bars]]:
        frames = plain_scene.moments(game)
        if is_drawn:
            state = jax.tree.map(lambda x: x[0], game.state)
            picture = Image.fromarray(drawing.frame(task.env, task.params, state)).quantize(COLOURS)
            colours = np.array(picture.getpalette(), np.uint8)
            frames = {
                "image": np.asarray(picture)[None],
                "palette": colours[None],
                "pixels": np.array([picture.size]),
            }
        return frames, bars(game, task.action)

    return Live(
        *(task.env, task.params, player, run.agents[member]),
        look=look,
        scripts=scripts(task),
        constants=lambda state: {"name": run.config.env.id},
        picture=(lambda state: drawing.frame(task.env, task.params, jax.device_get(state)))
        if is_drawn
        else None,
        ending=lambda outcome: "the episode is over",
    )


def scripts(task: Task) -> list[Path]:
    """What draws an environment, or says that there is no drawing of it."""
    return [SCRIPT if drawing.can_draw(task.env) else plain_scene.SCRIPT]


def draw_episodes(
    task: Task, recordings: Sequence[Recording]
) -> tuple[list[dict[str, np.ndarray]], dict[str, Any]]:
    """What is shown at each moment of each recording, and the tiles of all pictures.

    `picture` `[M, places]` holds a tile for each place of the picture.
    """
    stride = max(1, -(-sum(game.steps + 1 for game in recordings) // MOST_PICTURES))
    chosen_moments = [
        sorted({*range(0, game.steps + 1, stride), game.steps}) for game in recordings
    ]
    pictures = tile_pictures(
        [
            drawing.frame(task.env, task.params, jax.tree.map(lambda x, t=t: x[t], game.state))
            for game, moments in zip(recordings, chosen_moments, strict=True)
            for t in moments
        ]
    )
    first = np.cumsum([0, *map(len, chosen_moments)])
    frames = []
    for game, moments, begin in zip(recordings, chosen_moments, first, strict=False):
        newest = np.searchsorted(moments, np.arange(game.steps + 1), side="right") - 1
        frames.append({"picture": pictures.pictures[begin + newest]})
    constants = {"tiles": pictures.tiles, "colours": pictures.colours, "side": SIDE}
    return frames, constants | {"pixels": pictures.size}
