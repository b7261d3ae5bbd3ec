"""A colony's whole descent as a graph in GraphML, for tools such as networkx, Gephi and Cytoscape.

Nodes are all that ever lived, edges lead from each parent to its child.
"""

from pathlib import Path

import numpy as np

from envs.durotaxis.pictures.export import write_graph
from train.durotaxis.episodes.record import Episode
from train.host.files.run_directory import replacing


def nodes(episode: Episode) -> dict[int, dict[str, float | int]]:
    """The attributes of each node by its id, and the id of its `parent` at birth, -1 for none.

    Place and stiffness of the ground; the steps of birth and death, no death for survivors.
    """
    found: dict[int, dict[str, float | int]] = {}
    for step, slot in zip(*np.nonzero(episode.alive), strict=True):
        node = int(episode.ids[step, slot])
        if node not in found:
            above = int(episode.colony.parent[step, slot])
            found[node] = {
                "x": float(episode.colony.x[step, slot]),
                "y": float(episode.colony.y[step, slot]),
                "stiffness": float(episode.intensity[step, slot]),
                "birth": int(step),
                "parent": int(episode.ids[step, above]) if above >= 0 else -1,
            }
        if episode.deleted[step, slot]:
            found[node]["death"] = int(step) + 1
    return found


def write(path: str | Path, episode: Episode) -> None:
    """Writes the graph of one episode, whole or not at all."""
    found = nodes(episode)
    edges = [(int(row["parent"]), node) for node, row in found.items() if row["parent"] >= 0]
    about = {node: {k: v for k, v in row.items() if k != "parent"} for node, row in found.items()}
    with replacing(path) as file:
        write_graph(file, "descent", about, edges)
