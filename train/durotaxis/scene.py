"""Colonies to be looked at step by step, in a report and live."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.durotaxis import actions, drawing, rules, scenery
from envs.durotaxis.env import Durotaxis, Params, State, goal
from envs.durotaxis.rewards import Ending
from envs.durotaxis.substrate import Law
from train.durotaxis import episodes as colonies
from train.durotaxis import tables
from train.durotaxis.record import TIME_UP
from train.durotaxis.record import Episode as Colony
from train.durotaxis.training import make_parts
from train.host.episodes import Bars, Episode, Recording, Scene, lines, with_last
from train.host.live import Edit, Live
from train.host.program import Run, Wanted

SCRIPT = Path(__file__).with_name("durotaxis.js")
CUT = 8.0
"""Distance from a place within which nodes are cut away, px."""
REACH = 120.0
"""Height of the close-up of a live colony, px."""
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
    shown = [episode(env, params, x, wanted.limit) for x in played]
    return Scene([SCRIPT], shown, constants(params))


def live(run: Run, member: int) -> Live:
    """A colony that can be cut, on ground whose slope can be changed."""
    env, params, player = make_parts(run.config, greedy=run.config.run.evaluation_greedy)
    edits = {"cut": Edit(f"cut the colony, {CUT:g} px around a place", cut)}
    if not np.asarray(params.field).size:
        start = float(params.law.slope)
        edits["slope"] = Edit("slope of the stiffness, per px", with_slope, (-0.2, 0.2), start)
    return Live(
        *(env, params, player, run.agents[member]),
        look=lambda game: looks(env, params, game),
        scripts=[SCRIPT],
        constants=lambda state: constants(params) | ground(state.law, params) | {"reach": REACH},
        picture=lambda state: np.asarray(
            drawing.draw(stiffness(state.law, params), state.colony, step=int(state.time))
        ),
        ending=lambda outcome: next((name for name in Ending._fields if outcome[name]), TIME_UP),
        edits=edits,
    )


def constants(params: Params) -> dict[str, Any]:
    """What all colonies of an experiment share."""
    colours = scenery.viridis(np.linspace(0, 1, scenery.LEVELS))
    size = {"width": float(params.width), "height": float(params.height)}
    return {**size, "colours": colours, "goal": float(goal(params.width))}


def looks(
    env: Durotaxis, params: Params, game: Recording
) -> tuple[dict[str, np.ndarray], dict[str, Bars]]:
    """What is drawn of a colony in a game that goes on, and the action it takes next."""
    nodes = game.state.colony  # [1, C]
    action = jax.tree.map(lambda x: x[0], game.action)
    alone = jax.tree.map(lambda x: x[0], nodes)
    alive = np.arange(nodes.x.shape[1]) < nodes.num_nodes[:, None]
    deleted, numbers = jax.device_get(_decided(env, params, action, alone))
    count = max(int(nodes.num_nodes[0]), 1)
    centre = np.array([[x[0, :count].mean() for x in (nodes.x, nodes.y)]], np.float32)
    shown = {
        "count": nodes.num_nodes,
        "x": nodes.x,
        "y": nodes.y,
        "parent": nodes.parent,
        "new": alive & (nodes.birth == game.state.time[:, None]) & (nodes.birth > 0),
        "deleted": alive & deleted[None],
        "centre": centre,
    }
    if "node_probabilities" in game.explained:
        shown["chance"] = game.explained["node_probabilities"][..., 1]
    numbers = {name: x[None] for name, x in numbers.items() if np.isfinite(x)}
    return shown, {"action": _bars(params, numbers)}


@partial(jax.jit, static_argnums=0)
def _decided(
    env: Durotaxis, params: Params, action: Any, colony: Any
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """The nodes that an action deletes, bool `[C]`, and its numbers by name."""
    read = actions.read(env.action, env.spawning, action, colony, params.bounds, params.spawn)
    return read.deleted, colonies.numbers_of(env, params, action)


def cut(state: State, params: Params, place: tuple[float, float]) -> State:
    """The state without the nodes near a place (x, y), px. Raises ValueError if none is left."""
    colony = state.colony
    near = jnp.hypot(colony.x - place[0], colony.y - place[1]) < CUT
    left = rules.without(colony, near)
    if int(left.num_nodes) == int(colony.num_nodes):
        raise ValueError(f"there is no node within {CUT:g} px of that place")
    if int(left.num_nodes) == 0:
        raise ValueError("that would cut away the whole colony; choose a place at its edge")
    return replace(state, colony=left)


def with_slope(state: State, params: Params, slope: float) -> State:
    """The state on ground of another slope, per px."""
    return replace(state, law=replace(state.law, slope=jnp.float32(slope)))


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
        constants=ground(colony.law, params) | {"reach": drawing.reach_of(colony.colony)},
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


def stiffness(law: Law, params: Params) -> np.ndarray:
    """That of every px, float32 `[H, W]`."""
    return scenery.ground(law, np.asarray(params.field), params.width, params.height)


def ground(law: Law, params: Params) -> dict[str, Any]:
    """The colours of the ground by row and column, and the range of its stiffness."""
    found = stiffness(law, params)
    shade, is_log = scenery.shades(found)
    step = -(-found.shape[1] // FINEST)
    levels = np.round(shade[::step, ::step] * (scenery.LEVELS - 1)).astype(np.uint8)
    ends = {"softest": float(found.min()), "stiffest": float(found.max())}
    return {"ground": levels, **ends, "logarithmic": is_log}


def _action(params: Params, colony: Colony, moments: int) -> Bars:
    """The numbers of the action over time."""
    known = {name: x for name, x in colony.numbers.items() if not np.isnan(x).all()}
    made = _bars(params, known)
    return made._replace(values=made.values[:moments])


def _bars(params: Params, numbers: Mapping[str, np.ndarray]) -> Bars:
    """Numbers of actions `[S]` by name, each within its bounds; M = S + 1 moments."""
    values = with_last(np.stack(list(numbers.values()), axis=1))
    known = np.nan_to_num(values)
    limits = [
        (min(*bound, known[:, i].min()), max(*bound, known[:, i].max()))
        for i, bound in enumerate(getattr(params.bounds, name) for name in numbers)
    ]
    return Bars(values, [UNITS[name] for name in numbers], limits=limits)
