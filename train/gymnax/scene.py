"""Episodes of any environment to be looked at step by step, in a report and live."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from PIL import Image

from train.gymnax import environments
from train.gymnax.config import make_agent
from train.gymnax.drawings import drawing
from train.gymnax.drawings.action_bars import bars
from train.gymnax.drawings.tiles import COLOURS, SIDE, tiled
from train.gymnax.environments import Made
from train.host import undrawn
from train.host.machine.progress import busy
from train.host.program import Run, Wanted
from train.host.showing import episodes
from train.host.showing.episodes import Bars, Recording, Scene
from train.host.showing.live import Live

SCRIPT = Path(__file__).with_name("gymnax.js")
MOST_PICTURES = 1_200
"""Of all episodes; of longer ones every second, third, ... moment is drawn."""


def show(run: Run, wanted: Wanted) -> Scene:
    """Episodes that the policy plays as it is evaluated."""
    made = environments.make(run.config.env)
    player = make_agent(run.config, made, run.config.run.evaluation_greedy)
    learned = run.agents[wanted.member]
    game = made.env, made.params, player, learned
    played = episodes.record(*game, wanted.key, wanted.count, wanted.limit)
    if drawing.can_draw(made.env):
        with busy("drawing the episodes"):
            shown, constants = drawn(made, played)
    else:
        shown, constants = [undrawn.moments(recording) for recording in played], {}
    return Scene(
        scripts(made),
        [
            undrawn.episode(game, frames, bars(game, made.action))
            for game, frames in zip(played, shown, strict=True)
        ],
        {"name": run.config.env.id, **constants},
    )


def live(run: Run, member: int) -> Live:
    """An episode to be watched."""
    made = environments.make(run.config.env)
    player = make_agent(run.config, made, run.config.run.evaluation_greedy)
    is_drawn = drawing.can_draw(made.env)

    def look(game: Recording) -> tuple[dict[str, np.ndarray], dict[str, Bars]]:
        shown = undrawn.moments(game)
        if is_drawn:
            state = jax.tree.map(lambda x: x[0], game.state)
            picture = Image.fromarray(drawing.frame(made.env, made.params, state)).quantize(COLOURS)
            colours = np.array(picture.getpalette(), np.uint8)
            shown = {
                "image": np.asarray(picture)[None],
                "palette": colours[None],
                "pixels": np.array([picture.size]),
            }
        return shown, bars(game, made.action)

    return Live(
        *(made.env, made.params, player, run.agents[member]),
        look=look,
        scripts=scripts(made),
        constants=lambda state: {"name": run.config.env.id},
        picture=(lambda state: drawing.frame(made.env, made.params, jax.device_get(state)))
        if is_drawn
        else None,
        ending=lambda outcome: "the episode is over",
    )


def scripts(made: Made) -> list[Path]:
    """What draws an environment, or says that there is no drawing of it."""
    return [SCRIPT if drawing.can_draw(made.env) else undrawn.SCRIPT]


def drawn(
    made: Made, played: Sequence[Recording]
) -> tuple[list[dict[str, np.ndarray]], dict[str, Any]]:
    """What is shown at each moment of each recording, and the tiles of all pictures.

    `picture` `[M, places]` holds a tile for each place of the picture.
    """
    stride = max(1, -(-sum(game.steps + 1 for game in played) // MOST_PICTURES))
    chosen = [sorted({*range(0, game.steps + 1, stride), game.steps}) for game in played]
    pictures = tiled(
        [
            drawing.frame(made.env, made.params, jax.tree.map(lambda x, t=t: x[t], game.state))
            for game, moments in zip(played, chosen, strict=True)
            for t in moments
        ]
    )
    first = np.cumsum([0, *map(len, chosen)])
    frames = []
    for game, moments, begin in zip(played, chosen, first, strict=False):
        newest = np.searchsorted(moments, np.arange(game.steps + 1), side="right") - 1
        frames.append({"picture": pictures.pictures[begin + newest]})
    constants = {"tiles": pictures.tiles, "colours": pictures.colours, "side": SIDE}
    return frames, constants | {"pixels": pictures.size}
