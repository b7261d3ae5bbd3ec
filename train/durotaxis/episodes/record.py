"""Recorded episodes of colonies: positions, births and deaths of all nodes. NumPy."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from envs.durotaxis import substrate
from envs.durotaxis.env import Params
from envs.durotaxis.rewards.registry import Ending
from envs.durotaxis.rules import Colony, Growth
from envs.durotaxis.substrate import Law
from jaxrl.evaluate import Episodes

NUMBERS = ("delete_ratio", "gamma", "alpha", "noise", "theta")
"""The numbers recorded of every action."""
TIME_UP, GOES_ON = "time up", "not finished"


class Moment(NamedTuple):
    """One recorded step of a colony; T steps of K colonies are `[T, K, ...]`."""

    growth: Growth
    numbers: dict[str, jax.Array]  # of the action, by `NUMBERS`; NaN where there is none
    law: Law
    reward: jax.Array  # of the step: float32, or [components]
    explained: dict[str, jax.Array]  # `Agent.explain`, before the action
    ended: Episodes  # the episode so far; complete at its last step


@dataclass(frozen=True)
class Episode:
    """One episode of S steps in NumPy; position s is the colony after s steps.

    M slots hold the largest colony; slots without a node are 0 and have the id -1.
    """

    colony: Any  # Colony [S + 1, M], num_nodes [S + 1]
    deleted: np.ndarray  # bool [S + 1, M], the nodes that the next step deletes
    ids: np.ndarray  # int32 [S + 1, M]: founders first, then children in the order of their birth
    intensity: np.ndarray  # float32 [S + 1, M], under the nodes
    centroid: np.ndarray  # float32 [S + 1, 2] px; NaN without nodes
    centre_intensity: np.ndarray  # float32 [S + 1], under the centroid
    numbers: dict[str, np.ndarray]  # float32 [S] of each action, by `NUMBERS`; NaN: none
    reward: np.ndarray  # float32 [S], or [S, K] of its components
    explained: dict[str, np.ndarray]  # [S, ...] `Agent.explain` before each action
    law: Any  # Law of the ground
    ended: Any  # Episodes of scalars: return, length, outcome and components of the reward
    delete_chances: np.ndarray | None = None
    """float32 [S + 1, M], the policy's probability of deleting each node, of one that explains any;
    NaN after the last step and where there is no node."""

    @property
    def alive(self) -> np.ndarray:
        """The slots that hold a node, bool `[S + 1, M]`."""
        return np.arange(self.deleted.shape[1]) < self.colony.num_nodes[:, None]

    @property
    def ending(self) -> str:
        """How it ended."""
        outcome = self.ended.outcome
        if not self.ended.complete:
            return GOES_ON
        return next((name for name in Ending._fields if outcome[name]), TIME_UP)


def join_moments(pieces: list[Moment]) -> Episode:
    """One episode from its pieces `[T, ...]`; `add_intensities` fills in the intensities."""
    moments: Any = jax.tree.map(lambda *leaves: np.concatenate(leaves), *pieces)
    growth = moments.growth
    last = last_colony(jax.tree.map(lambda x: x[-1], growth), len(growth.num_nodes))
    num_nodes = np.append(growth.before.num_nodes, last.num_nodes)
    slots = max(1, int(num_nodes.max()))
    nodes: dict[str, Any] = {
        "x": _stack_rows(growth.before.x, last.x, slots, 0),
        "y": _stack_rows(growth.before.y, last.y, slots, 0),
        "parent": _stack_rows(growth.before.parent, last.parent, slots, -1),
        "birth": _stack_rows(growth.before.birth, last.birth, slots, 0),
        "num_nodes": num_nodes,
    }
    colony = Colony(**nodes)
    alive = np.arange(slots) < num_nodes[:, None]
    survives = _stack_rows(growth.survives, np.ones(0, bool), slots, False)
    deleted = alive & ~survives
    deleted[-1] = False
    numbers = dict(moments.numbers)
    share = deleted[:-1].sum(1) / np.maximum(num_nodes[:-1], 1)
    requested_ratio = numbers["delete_ratio"]  # NaN where the action chooses each node by itself
    numbers["delete_ratio"] = np.where(np.isnan(requested_ratio), share, requested_ratio).astype(
        np.float32
    )
    law_and_result = jax.tree.map(lambda x: x[-1], (moments.law, moments.ended))
    nothing = np.zeros(0, np.float32)
    ids = node_ids(num_nodes, survives)
    centroid = _centroid(colony, alive)
    other_fields = numbers, moments.reward, moments.explained, *law_and_result
    return Episode(colony, deleted, ids, nothing, centroid, nothing, *other_fields)


def last_colony(growth: Any, time: int) -> Any:
    """The Colony `[N']` after a Growth, without the limit of capacity; see `rules.next_colony`."""
    before, survives = growth.before, growth.survives
    slots = np.flatnonzero(survives)
    parent = growth.new_parent[slots]
    rank = np.cumsum(survives) - 1
    own = np.arange(len(slots))
    children: dict[str, Any] = {
        "x": np.append(before.x[slots], growth.child_x[slots]),
        "y": np.append(before.y[slots], growth.child_y[slots]),
        "parent": np.append(np.where(parent >= 0, rank[parent], -1), own).astype(np.int32),
        "birth": np.append(before.birth[slots], np.full(len(slots), time)).astype(np.int32),
        "num_nodes": np.int32(2 * len(slots)),
    }
    return Colony(**children)


def node_ids(num_nodes: np.ndarray, survives: np.ndarray) -> np.ndarray:
    """Ids that nodes keep for life, int32 `[S + 1, M]`; -1 for slots without a node.

    From `num_nodes` `[S + 1]` and the nodes that survive each step, `survives`, bool
    `[S + 1, M]`. Survivors keep their order, and children follow in the order of their parents, or
    the nodes of a colony that begins again.
    """
    ids = np.full(survives.shape, -1, np.int32)
    ids[0, : num_nodes[0]] = np.arange(num_nodes[0])
    unused = int(num_nodes[0])
    for s in range(len(ids) - 1):
        surviving_ids = ids[s, survives[s]]
        ids[s + 1, : len(surviving_ids)] = surviving_ids
        num_born = int(num_nodes[s + 1]) - len(surviving_ids)
        ids[s + 1, len(surviving_ids) : num_nodes[s + 1]] = unused + np.arange(num_born)
        unused += num_born
    return ids


def _stack_rows(rows: np.ndarray, last: np.ndarray, slots: int, blank: Any) -> np.ndarray:
    """Rows `[S, C]` and a last one of any length as `[S + 1, slots]`."""
    out = np.full((len(rows) + 1, slots), blank, rows.dtype)
    width = min(slots, rows.shape[1])
    out[:-1, :width] = rows[:, :width]
    out[-1, : len(last)] = last
    return out


def _centroid(colony: Any, alive: np.ndarray) -> np.ndarray:
    count = np.where(colony.num_nodes > 0, colony.num_nodes, np.nan)
    sums = [np.where(alive, v, 0).sum(1, dtype=np.float64) for v in (colony.x, colony.y)]
    return (np.stack(sums) / count).T.astype(np.float32)


def add_intensities(episodes: list[Episode], params: Params) -> list[Episode]:
    """The episodes with the intensity under nodes and centroids, in a single look-up."""
    points = [np.dstack((e.colony.x, e.colony.y)) for e in episodes]
    points = [
        np.append(p, e.centroid[:, None], 1) for p, e in zip(points, episodes, strict=True)
    ]  # [S + 1, M + 1, 2], the last being the centroid
    sizes = [p.shape[0] * p.shape[1] for p in points]
    x, y = np.concatenate([p.reshape(-1, 2) for p in points]).T
    laws = jax.tree.map(lambda *leaves: np.repeat(leaves, sizes), *[e.law for e in episodes])
    intensities = jax.jit(substrate.intensity)(
        laws, params.field, x, y, params.width, params.height
    )
    intensities = np.split(np.asarray(intensities), np.cumsum(sizes)[:-1])
    return [_with_intensity(*pair) for pair in zip(episodes, intensities, strict=True)]


def _with_intensity(episode: Episode, intensities: np.ndarray) -> Episode:
    intensities = intensities.reshape(len(episode.ids), -1)
    node_intensity = np.where(episode.alive, intensities[:, :-1], 0)
    return Episode(
        **{**vars(episode), "intensity": node_intensity, "centre_intensity": intensities[:, -1]}
    )
