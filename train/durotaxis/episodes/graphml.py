"""A colony's whole descent as a graph in GraphML, for tools such as networkx, Gephi and Cytoscape.

Nodes are all that ever lived, edges lead from each parent to its child.
"""

from pathlib import Path

import numpy as np

from envs.durotaxis.pictures.export import write_graph
from train.durotaxis.episodes.record import Episode
from train.host.files.whole_files import replacement_file


def nodes(episode: Episode) -> dict[int, dict[str, float | int]]:
    """The attributes of each node by its id, and the id of its `parent` at birth, -1 for none.

    Place and stiffness of the ground; the steps of birth and death, no death for survivors.
    """
    rows: dict[int, dict[str, float | int]] = {}
    for step, slot in zip(*np.nonzero(episode.alive), strict=True):
        node = int(episode.ids[step, slot])
        if node not in rows:
            parent_slot = int(episode.colony.parent[step, slot])
            rows[node] = {
                "x": float(episode.colony.x[step, slot]),
                "y": float(episode.colony.y[step, slot]),
                "stiffness": float(episode.intensity[step, slot]),
                "birth": int(step),
                "parent": int(episode.ids[step, parent_slot]) if parent_slot >= 0 else -1,
            }
        if episode.deleted[step, slot]:
            rows[node]["death"] = int(step) + 1
    return rows


def write(path: str | Path, episode: Episode) -> None:
    """Writes the graph of one episode, whole or not at all."""
    rows = nodes(episode)
    edges = [(int(row["parent"]), node) for node, row in rows.items() if row["parent"] >= 0]
    attributes = {
        node: {k: v for k, v in row.items() if k != "parent"} for node, row in rows.items()
    }
    with replacement_file(path) as file:
        write_graph(file, "descent", attributes, edges)
