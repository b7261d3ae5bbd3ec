"""Episodes that can be looked at without a drawing: rewards, values, observations and choices."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxrl.types import AgentState
from train.host.numbers import digits_text, quantity
from train.host.player import Player
from train.host.program import EpisodeSelection
from train.host.showing import episodes
from train.host.showing.episodes import Bars, Episode, Recording, Scene
from train.host.showing.live import Live

SCRIPT = Path(__file__).with_name("plain_scene.js")
FEW = 8
"""Numbers of a part of an observation that are shown as lines."""


def show(player: Player, agent_state: AgentState, selection: EpisodeSelection, name: str) -> Scene:
    """Episodes that a player plays."""
    env, params, agent, acting_state = player
    learned = acting_state(agent_state)
    recordings = episodes.record(
        env, params, agent, learned, selection.key, selection.count, selection.limit
    )
    scene_episodes = [episode(game, moments(game), bars(game)) for game in recordings]
    return Scene([SCRIPT], scene_episodes, {"name": name})


def live(player: Player, agent_state: AgentState, name: str) -> Live:
    """An episode to be watched."""
    return Live(
        *player[:3],
        player.acting_state(agent_state),
        look=lambda game: (moments(game), bars(game)),
        scripts=[SCRIPT],
        constants=lambda state: {"name": name},
    )


def moments(recording: Recording) -> dict[str, np.ndarray]:
    """The frames of an environment without a drawing."""
    return {"moment": np.arange(recording.steps + 1)}


def episode(
    game: Recording, frames: Mapping[str, np.ndarray], choices: Mapping[str, Bars]
) -> Episode:
    """An episode with its numbers beside what is drawn of it."""
    total, length = float(np.sum(game.reward)), int(game.steps)
    ending = "terminated" if game.terminated else "time up" if game.truncated else "goes on"
    return Episode(
        title=f"return {digits_text(total)} in {quantity(length, 'steps')}, {ending}",
        frames=frames,
        lines=episodes.lines(game) | observation_lines(game.obs),
        bars=choices,
    )


def observation_lines(obs: Any) -> dict[str, np.ndarray]:
    """The numbers of a short observation over time, or of its short parts."""
    lines = {}
    for path, part in jax.tree_util.tree_leaves_with_path(obs):
        name = jax.tree_util.keystr(path, simple=True, separator=" ") or "observation"
        values = np.asarray(part)
        if values.ndim > 2 or (values.ndim == 2 and values.shape[1] > FEW):
            continue
        columns = values.reshape(len(values), -1).T.astype(np.float32)
        lines |= {f"{name} {k}": episodes.with_last(x) for k, x in enumerate(columns)}
    return lines


def bars(game: Recording) -> dict[str, Bars]:
    """What the agent makes of each action, where it says so of one number or vector."""
    if not isinstance(game.action, np.ndarray):
        return {}
    sizes = {x.shape[1] for x in game.explained.values() if x.ndim == 2}
    by_size = (episodes.bars(game, [f"action {k}" for k in range(n)]) for n in sizes)
    return {title: x for group in by_size for title, x in group.items()}
