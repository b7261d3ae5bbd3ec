"""Colonies to be looked at step by step, in a report."""

from pathlib import Path
from typing import Any

import numpy as np

from envs.durotaxis import drawing, scenery
from envs.durotaxis.env import Durotaxis, Params, goal
from train.durotaxis import episodes as colonies
from train.durotaxis import pictures, tables
from train.durotaxis.record import Episode as Colony
from train.durotaxis.training import make_parts
from train.host.episodes import Bars, Episode, Scene, lines, with_last
from train.host.program import Run, Wanted

SCRIPT = Path(__file__).with_name("durotaxis.js")
FINEST = 300
"""Columns of the ground that is drawn; of a wider one every second, third, ... px."""
UNITS = {
    "delete_ratio": "deletion ratio",
    "gamma": "γ, px",
    "alpha": "α",
    "noise": "noise, px",
    "theta": "θ, rad",
}


def show(run: Run, wanted: Wanted) -> Scene:
    """Colonies that the policy moves as it is evaluated."""
    env, params, player = make_parts(run.config, greedy=run.config.run.evaluation_greedy)
    learned = run.agents[wanted.member]
    played = colonies.play(env, params, player, learned, wanted.key, wanted.count)
    colours = scenery.viridis(np.linspace(0, 1, scenery.LEVELS))
    size = {"width": float(params.width), "height": float(params.height), "colours": colours}
    size["goal"] = float(goal(params.width))
    return Scene([SCRIPT], [episode(env, params, x, wanted.limit) for x in played], size)


def episode(env: Durotaxis, params: Params, colony: Colony, limit: int) -> Episode:
    """One colony and its first `limit` steps, as the report shows them."""
    moments = min(limit, len(colony.reward)) + 1
    until = lambda values: {name: x[:moments] for name, x in values.items()}
    ended: Any = colony.ended
    reached = f"{colony.ending} after {ended.length} steps, {colony.colony.num_nodes[-1]} nodes"
    earned = lines(colony, env.component_names)
    about = {
        "nodes": np.asarray(colony.colony.num_nodes, np.float32),
        "x of the centre, px": colony.centroid[:, 0],
    }
    return Episode(
        title=reached,
        frames=until(frames(colony)),
        lines=until(about | earned),
        bars={"action": _action(params, colony, moments)},
        constants=ground(colony, params) | {"reach": drawing.reach_of(colony.colony)},
    )


def frames(colony: Colony) -> dict[str, np.ndarray]:
    """Nodes by slot at each of M moments, `[M, slots]`, and the centre `[M, 2]` px.

    `new` are the nodes born with the last step, `deleted` those that the next one deletes, and
    `chance` is the policy's probability of deleting each, if it chooses them by itself.
    """
    nodes = colony.colony
    moment = np.arange(len(nodes.num_nodes))[:, None]
    found = {
        "count": nodes.num_nodes,
        "x": np.asarray(nodes.x, np.float32),
        "y": np.asarray(nodes.y, np.float32),
        "parent": nodes.parent,
        "new": colony.alive & (nodes.birth == moment) & (moment > 0),
        "deleted": colony.deleted,
        "centre": colony.centroid,
    }
    chances = tables.deletion(colony)
    return found if chances is None else found | {"chance": chances}


def ground(colony: Colony, params: Params) -> dict[str, Any]:
    """The colours of the ground by row and column, and the range of its stiffness."""
    stiffness = pictures.ground_of(colony, params)
    shade, is_log = scenery.shades(stiffness)
    step = -(-stiffness.shape[1] // FINEST)
    levels = np.round(shade[::step, ::step] * (scenery.LEVELS - 1)).astype(np.uint8)
    ends = {"softest": float(stiffness.min()), "stiffest": float(stiffness.max())}
    return {"ground": levels, **ends, "logarithmic": is_log}


def _action(params: Params, colony: Colony, moments: int) -> Bars:
    """The numbers of the action over time, each within its bounds."""
    names = [name for name, x in colony.numbers.items() if not np.isnan(x).all()]
    values = with_last(np.stack([colony.numbers[name] for name in names], axis=1))
    known = np.nan_to_num(values)
    limits = [
        (
            min(*getattr(params.bounds, name), known[:, i].min()),
            max(*getattr(params.bounds, name), known[:, i].max()),
        )
        for i, name in enumerate(names)
    ]
    return Bars(values[:moments], [UNITS[name] for name in names], limits=limits)
