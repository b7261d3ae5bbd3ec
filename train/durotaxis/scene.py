"""Colonies to be looked at step by step, in a report and live."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.durotaxis import actions, rules, substrate
from envs.durotaxis.env import Durotaxis, Params, State
from envs.durotaxis.pictures import drawing, scenery
from envs.durotaxis.rewards.registry import Ending
from envs.durotaxis.substrate import Law
from envs.durotaxis.units import Units
from train.durotaxis.episodes import chances, shown
from train.durotaxis.episodes import playing as colonies
from train.durotaxis.episodes.record import TIME_UP
from train.durotaxis.episodes.record import Episode as Colony
from train.durotaxis.episodes.shown import Look, look_of
from train.durotaxis.spawn_pictures import factor_of, label_of
from train.durotaxis.training import make_parts
from train.host.numbers import quantity
from train.host.program import EpisodeSelection, Run
from train.host.showing.episodes import Bars, Episode, Recording, Scene, lines, with_last
from train.host.showing.live import Edit, Live

SCRIPT = Path(__file__).with_name("durotaxis.js")
CUT = 8.0
"""Distance from a place within which nodes are cut away, px."""
REACH = 120.0
"""Height of the close-up of a live colony, px."""
NO_GROUND = 255
"""The level of places beyond the ground."""
FINEST = 300
"""Columns of the ground that is drawn; of a wider one every second, third, ... px."""


def show(run: Run, selection: EpisodeSelection) -> Scene:
    """Colonies that the policy moves as it is evaluated."""
    env, params, player = make_parts(run.config, greedy=run.config.run.evaluation_greedy)
    learned = run.agents[selection.member]
    recorded_colonies = colonies.play(env, params, player, learned, selection.key, selection.count)
    look = look_of(run.config.env)
    episodes = [episode(env, params, x, selection.limit, look) for x in recorded_colonies]
    return Scene([SCRIPT], episodes, constants(look))


def live(run: Run, member: int) -> Live:
    """A colony that can be cut, on ground whose slope can be changed."""
    env, params, player = make_parts(run.config, greedy=run.config.run.evaluation_greedy)
    look = look_of(run.config.env)
    edits = {"cut": Edit(f"cut the colony, {CUT:g} px around a place", partial(cut, env, look))}
    if not np.asarray(params.field).size:
        slope_of = lambda state: float(state.law.slope)  # each game may have a law of its own
        edits["slope"] = Edit("slope of the stiffness, per px", with_slope, (-0.2, 0.2), slope_of)
    return Live(
        *(env, params, player, run.agents[member]),
        look=lambda game: live_frame(env, params, game, look),
        scripts=[SCRIPT],
        constants=lambda state: (
            constants(look) | ground(state.law, params, look) | {"reach": REACH}
        ),
        picture=lambda state: draw_picture(state, params, look),
        ending=lambda outcome: next((name for name in Ending._fields if outcome[name]), TIME_UP),
        edits=edits,
    )


def draw_picture(state: State, params: Params, look: Look) -> np.ndarray:
    """A picture of the colony, uint8 `[height, width, 3]`."""
    stiffness = shown.stiffness_in(look, state.law, params)
    x, y = look.placement.to_picture(np.asarray(state.colony.x), np.asarray(state.colony.y))
    colony = replace(state.colony, x=x, y=y)
    return np.asarray(drawing.draw(stiffness, colony, None, int(state.time), "", *look))


def constants(look: Look) -> dict[str, Any]:
    """What all colonies of an experiment share; places are px of the picture."""
    colours = scenery.viridis(np.linspace(0, 1, scenery.LEVELS))
    size = {"width": float(look.placement.width), "height": float(look.placement.height)}
    goal = scenery.goal_line(look.placement).astype(np.float32)
    unit = f" {look.units.stiffness_name}".rstrip()
    return {**size, "colours": colours, "goal": goal, "unit": unit}


def live_frame(
    env: Durotaxis, params: Params, game: Recording, look: Look
) -> tuple[dict[str, np.ndarray], dict[str, Bars]]:
    """What is drawn of a colony in a game that goes on, and the action it takes next, if any."""
    nodes = game.state.colony  # [1, C]
    action = jax.tree.map(lambda x: x[0], game.action)
    colony = jax.tree.map(lambda x: x[0], nodes)
    alive = np.arange(nodes.x.shape[1]) < nodes.num_nodes[:, None]
    deleted, numbers = jax.device_get(_decode_action(env, params, action, colony))
    count = max(int(nodes.num_nodes[0]), 1)
    x, y = look.placement.to_picture(np.asarray(nodes.x), np.asarray(nodes.y))
    centre = np.array([[v[0, :count].mean() for v in (x, y)]], np.float32)
    frame = {
        "count": nodes.num_nodes,
        "x": x,
        "y": y,
        "parent": nodes.parent,
        "new": alive & (nodes.birth == game.state.time[:, None]) & (nodes.birth > 0),
        "deleted": alive & deleted[None] & (not game.terminated),
        "centre": centre,
    }
    explanation = {name: np.asarray(x)[0] for name, x in game.explained.items()}
    chance = chances.node_probabilities(explanation, nodes.x[0], int(nodes.num_nodes[0]))
    if chance is not None:
        frame["chance"] = np.full(nodes.x.shape, np.nan, np.float32)
        frame["chance"][0, : len(chance)] = np.nan if game.terminated else chance
    numbers = {name: x[None] for name, x in numbers.items() if np.isfinite(x)}
    return frame, {"action": _bars(params, numbers, look.units)}


@partial(jax.jit, static_argnums=0)
def _decode_action(
    env: Durotaxis, params: Params, action: Any, colony: Any
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """The nodes that an action deletes, bool `[C]`, and its numbers by name."""
    decision = actions.read(env.action, env.spawning, action, colony, params.bounds, params.spawn)
    return decision.deleted, colonies.numbers_of(env, params, action)


def cut(
    env: Durotaxis, look: Look, state: State, params: Params, place: tuple[float, float]
) -> State:
    """The state without the nodes near a place (x, y) of the picture, px.

    Raises ValueError if none is left.
    """
    colony = state.colony
    x, y = look.placement.to_ground(*np.array(place, float))
    near = jnp.hypot(colony.x - float(x), colony.y - float(y)) < CUT
    remaining_colony = rules.remove_cells(colony, near, env.deletion)
    if int(remaining_colony.num_nodes) == int(colony.num_nodes):
        raise ValueError(f"there is no node within {CUT:g} px of that place")
    if int(remaining_colony.num_nodes) == 0:
        raise ValueError("that would cut away the whole colony; choose a place at its edge")
    return replace(state, colony=remaining_colony)


def with_slope(state: State, params: Params, slope: float) -> State:
    """The state on ground of another slope, per px.

    Raises ValueError for one with which the stiffness of exponential ground overflows.
    """
    law = replace(state.law, slope=slope)  # as it was given, which a refusal repeats
    substrate.check(law, params.width, params.height, params.field)
    return replace(state, law=replace(law, slope=jnp.float32(slope)))


def episode(env: Durotaxis, params: Params, colony: Colony, limit: int, look: Look) -> Episode:
    """One colony and its first `limit` steps, as the report shows them."""
    moments = min(limit, len(colony.reward)) + 1
    truncate = lambda values: {name: x[:moments] for name, x in values.items()}
    result: Any = colony.ended
    nodes = quantity(int(colony.colony.num_nodes[-1]), "nodes")
    title = f"{colony.ending} after {quantity(int(result.length), 'steps')}, {nodes}"
    reward_lines = lines(colony, env.component_names)
    distance_label = "x of the centre" if look.placement.is_upright else "way to the goal"
    colony_lines = {
        "nodes": np.asarray(colony.colony.num_nodes, np.float32),
        f"{distance_label}, {look.units.length_name}": colony.centroid[:, 0] * look.units.length,
    }
    placed_colony = shown.place_episode(colony, look)
    return Episode(
        title=title,
        frames=truncate(frames(placed_colony)),
        lines=truncate(colony_lines | reward_lines),
        bars={"action": _action(params, colony, moments, look.units)},
        constants=ground(colony.law, params, look)
        | {"reach": drawing.reach_of(placed_colony.colony)},
    )


def frames(colony: Colony) -> dict[str, np.ndarray]:
    """Nodes by slot at each of M moments, `[M, slots]`, and the centre `[M, 2]` px.

    `new` are the nodes born with the last step, `deleted` those that the next one deletes, and
    `chance` is the policy's probability of deleting each.
    """
    nodes = colony.colony
    moment = np.arange(len(nodes.num_nodes))[:, None]
    arrays = {
        "count": nodes.num_nodes,
        "x": np.asarray(nodes.x, np.float32),
        "y": np.asarray(nodes.y, np.float32),
        "parent": nodes.parent,
        "new": colony.alive & (nodes.birth == moment) & (moment > 0),
        "deleted": colony.deleted,
        "centre": colony.centroid,
    }
    chance = colony.delete_chances
    return arrays if chance is None else arrays | {"chance": chance}


def ground(law: Law, params: Params, look: Look) -> dict[str, Any]:
    """The colours of the ground by row and column, and the range of its stiffness."""
    stiffness = shown.stiffness_in(look, law, params)
    shade, is_log = scenery.shades(stiffness)
    step = -(-stiffness.shape[1] // FINEST)
    levels = np.round(shade[::step, ::step] * (scenery.LEVELS - 1))
    levels = np.nan_to_num(levels, nan=NO_GROUND).astype(np.uint8)
    ends = {"softest": float(np.nanmin(stiffness)), "stiffest": float(np.nanmax(stiffness))}
    return {"ground": levels, **ends, "logarithmic": is_log}


def _action(params: Params, colony: Colony, moments: int, units: Units) -> Bars:
    """The numbers of the action over time."""
    numbers = {name: x for name, x in colony.numbers.items() if not np.isnan(x).all()}
    bars = _bars(params, numbers, units)
    return bars._replace(values=bars.values[:moments])


def _bars(params: Params, numbers: Mapping[str, np.ndarray], units: Units) -> Bars:
    """Numbers of actions `[S]` by name, each within its bounds; M = S + 1 moments."""
    factors = {name: factor_of(name, units) for name in numbers}
    values = with_last(np.stack([x * factors[name] for name, x in numbers.items()], axis=1))
    finite_values = np.nan_to_num(values)
    bounds = [[end * factor for end in getattr(params.bounds, n)] for n, factor in factors.items()]
    limits = [
        (min(*bound, finite_values[:, i].min()), max(*bound, finite_values[:, i].max()))
        for i, bound in enumerate(bounds)
    ]
    return Bars(values, [label_of(name, units) for name in numbers], limits=limits)
