"""A colony's whole descent as a graph in GraphML, for tools such as networkx, Gephi and Cytoscape.

Nodes are all that ever lived, edges lead from each parent to its child. GraphML: Brandes et al.,
"GraphML progress report" (Graph Drawing 2001).
"""

from pathlib import Path
from xml.etree import ElementTree as xml

import numpy as np

from train.durotaxis.record import Episode
from train.host.records import replacing

NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
KEYS = {"x": "double", "y": "double", "stiffness": "double", "birth": "int", "death": "int"}
"""Place (px) and stiffness of the ground; the steps of birth and death, no death for survivors."""


def nodes(episode: Episode) -> dict[int, dict[str, float | int]]:
    """The attributes of each node by its id, and the id of its `parent` at birth, -1 for none."""
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
    root = xml.Element("graphml", xmlns=NAMESPACE)
    for name, kind in KEYS.items():
        xml.SubElement(
            root, "key", {"id": name, "for": "node", "attr.name": name, "attr.type": kind}
        )
    graph = xml.SubElement(root, "graph", id="descent", edgedefault="directed")
    found = nodes(episode)
    for node, about in found.items():
        element = xml.SubElement(graph, "node", id=str(node))
        for name in KEYS:
            if name in about:
                xml.SubElement(element, "data", key=name).text = str(about[name])
    for node, about in found.items():
        if about["parent"] >= 0:
            xml.SubElement(graph, "edge", source=str(about["parent"]), target=str(node))
    xml.indent(root)
    with replacing(path) as file:
        xml.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
