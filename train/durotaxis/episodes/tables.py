"""Episodes of colonies as tables: a row for every node and step, or for every episode."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxrl import evaluate
from train.durotaxis.episodes.record import NUMBERS, Episode
from train.host.files.whole_files import replacement_file, write_arrays
from train.host.scoring import scores

Columns = dict[str, np.ndarray]
"""A table: columns `[R]` by name. A missing value is NaN, a missing node -1."""
NODES = ("node_id", "parent_id", "spawn_node_id")


def rows(
    episode: Episode, seed: int = 0, number: int = 0, components: Sequence[str] = ()
) -> Columns:
    """One episode: a row for every node and step, including step 0 and the last.

    Ids are for life. `action` is what happens to the node next: `delete`, or `spawn` with its one
    child (`spawn_node...`); empty after the last step. Lengths and stiffness are in the units of
    the episode. `delete_ratio` is the share that the action asks for, or where it chooses each node
    by itself, the share deleted.
    `value` is the critic's, the sum over the K `components` of the reward; `reward` and
    `reward_NAME` are what the next step earns; `delete_probability` is the policy's for the node:
    its own where each is chosen by itself, else the probability that the share reaches it.
    """
    colony, alive = episode.colony, episode.alive
    step = np.nonzero(alive)[0]  # [R]
    spawns, child_values = _children(episode)

    def step_values(values: np.ndarray) -> np.ndarray:
        return np.append(values, np.float32(np.nan))[step]

    box = [_extent(values, alive)[step] for values in (colony.y, colony.x)]
    action = np.where(episode.deleted[alive], "delete", np.where(spawns, "spawn", ""))
    return {
        "seed": np.full(len(step), seed),
        "episode": np.full(len(step), number),
        "step": step,
        "num_nodes": colony.num_nodes[step],
        "centroid_x": episode.centroid[step, 0],
        "centroid_y": episode.centroid[step, 1],
        "centre_intensity": episode.centre_intensity[step],
        "box_height": box[0],
        "box_width": box[1],
        "delete_ratio": step_values(episode.numbers["delete_ratio"]),
        "node_id": episode.ids[alive],
        "parent_id": _parent_ids(episode),
        "node_x": colony.x[alive],
        "node_y": colony.y[alive],
        "node_intensity": episode.intensity[alive],
        "action": action,
        "spawn_node_id": child_values(episode.ids, -1),
        "spawn_node_x": child_values(colony.x, np.float32(np.nan)),
        "spawn_node_y": child_values(colony.y, np.float32(np.nan)),
        "spawn_node_intensity": child_values(episode.intensity, np.float32(np.nan)),
        **{name: step_values(episode.numbers[name]) for name in NUMBERS[1:]},
        **{name: step_values(x) for name, x in _step_columns(episode, components).items()},
        **_delete_probability(episode.delete_chances, alive),
    }


def _step_columns(episode: Episode, components: Sequence[str]) -> Columns:
    """Value and reward of each step, `[S]`."""
    reward = episode.reward.reshape(len(episode.reward), -1)  # [S, K]
    columns = {"reward": reward.sum(1)}
    columns |= {f"reward_{name}": reward[:, k] for k, name in enumerate(components)}
    if "value" not in episode.explained:
        return columns
    return {"value": episode.explained["value"].reshape(len(reward), -1).sum(1)} | columns


def _delete_probability(chances: np.ndarray | None, alive: np.ndarray) -> Columns:
    """`delete_probability` `[R]`, where the policy explains it."""
    return {} if chances is None else {"delete_probability": chances[alive]}


def _parent_ids(episode: Episode) -> np.ndarray:
    """`[R]`, -1 for roots."""
    step, parent = np.nonzero(episode.alive)[0], episode.colony.parent[episode.alive]
    return np.where(parent >= 0, episode.ids[step, np.maximum(parent, 0)], -1)


def _children(episode: Episode) -> tuple[np.ndarray, Callable[[np.ndarray, Any], np.ndarray]]:
    """Whether each node spawns, bool `[R]`, and a look-up of its child's values `[S + 1, M]`."""
    alive = episode.alive
    steps = len(alive) - 1
    step = np.nonzero(alive)[0]  # [R]
    spawns = alive & ~episode.deleted & (np.arange(steps + 1) < steps)[:, None]
    child = (spawns.sum(1)[:, None] + np.cumsum(spawns, 1) - 1)[alive]  # its slot, a step later
    spawns, next_step = spawns[alive], np.minimum(step + 1, steps)
    child = np.where(spawns, child, 0)

    def child_values(values: np.ndarray, nothing: Any) -> np.ndarray:
        return np.where(spawns, values[next_step, child], nothing)

    return spawns, child_values


def episode_rows(episodes: Sequence[Episode], seed: int = 0) -> Columns:
    """A row for every episode: how it ended, how far it came, the sum of each reward."""
    results: list[Any] = [episode.ended for episode in episodes]
    last = [episode.colony.num_nodes[-1] for episode in episodes]
    rewards = [name for name in results[0].outcome if name.startswith("reward_")]
    recoveries = [name for name in results[0].outcome if name == "recoveries"]
    return {
        "seed": np.full(len(episodes), seed),
        "episode": np.arange(len(episodes)),
        "length": np.array([one.length for one in results]),
        "ending": np.array([episode.ending for episode in episodes]),
        "arrived": np.array([one.outcome["arrived"] for one in results]),
        "final_nodes": np.array(last),
        "farthest_x": np.array([e.colony.x[e.alive].max() for e in episodes]),
        "centroid_start": np.array([episode.centroid[0, 0] for episode in episodes]),
        "centroid_end": np.array([episode.centroid[-1, 0] for episode in episodes]),
        **{name: np.array([one.outcome[name] for one in results]) for name in recoveries},
        "return": np.array([one.return_ for one in results]),
        **{name: np.array([one.outcome[name] for one in results]) for name in rewards},
    }


def summary(episodes: evaluate.Episodes) -> dict[str, Any]:
    """Summary of K episodes `[K, 1]` in plain numbers; those without a score are left out.

    Success means reaching the goal, with its Wilson interval. Steps to the goal are those of the
    episodes that arrived.
    """
    whole = scores.scored_games(episodes)
    outcome, arrived, count = whole.outcome, whole.outcome["arrived"], len(whole.length)
    rewards = {name: x for name, x in outcome.items() if name.startswith("reward_")}
    return {
        "episodes": count,
        "arrived": scores.summary(arrived),
        "steps_to_goal": spread(whole.length[arrived]),
        "length": spread(whole.length),
        "final_nodes": spread(outcome["num_nodes"]),
        "progress": spread(outcome["progress"]),
        "return": spread(whole.return_),
        "rewards": {name.removeprefix("reward_"): spread(x) for name, x in rewards.items()},
    }


def spread(values: Any) -> dict[str, float | None]:
    """Mean, median, sample standard deviation, minimum and maximum; None without values."""
    values = np.asarray(values, np.float64)
    if not values.size:
        return dict.fromkeys(("mean", "median", "std", "min", "max"))
    return {
        "mean": float(values.mean()),
        "median": float(np.median(values)),
        "std": float(values.std(ddof=1)) if values.size > 1 else None,
        "min": float(values.min()),
        "max": float(values.max()),
    }


def write_csv(path: str | Path, tables: Iterable[Columns]) -> None:
    """Writes tables with the same columns one below the other, whole or not at all.

    Numbers are as short as is exact; missing values are left empty.
    """
    with replacement_file(path) as file:
        for i, table in enumerate(tables):
            if i == 0:
                file.write((",".join(table) + "\n").encode())
            texts = (_texts(name, values) for name, values in table.items())
            file.writelines(f"{','.join(row)}\n".encode() for row in zip(*texts, strict=True))


def write_npz(path: str | Path, tables: Iterable[Columns]) -> None:
    """The same as one array per column; NaN and -1 stay."""
    parts = list(tables)
    write_arrays(path, {name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def _texts(name: str, values: np.ndarray) -> list[str]:
    if name in NODES:
        return ["" if value < 0 else str(value) for value in values.tolist()]
    if values.dtype.kind == "f":  # nodes never move, so most numbers repeat
        unique, where = np.unique(values, return_inverse=True)
        texts = np.array(["" if np.isnan(value) else str(value) for value in unique], object)
        return texts[where].tolist()
    return [str(value) for value in values.tolist()]


def _extent(values: np.ndarray, alive: np.ndarray) -> np.ndarray:
    """Largest minus smallest value of each row, float32 `[S + 1]` px; NaN without nodes."""
    low = np.where(alive, values, np.inf).min(1)
    high = np.where(alive, values, -np.inf).max(1)
    return np.where(alive.any(1), high - low, np.nan).astype(np.float32)
