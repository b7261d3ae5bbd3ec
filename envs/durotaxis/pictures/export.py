"""A colony as a table of its nodes and as a graph, for networkx, Gephi, Cytoscape or a spreadsheet.

    from envs.durotaxis import env
    from envs.durotaxis.pictures import export

    obs, state = env.reset(key)
    export.to_graphml(state, env.default_params, "colony.graphml")
    export.to_csv(state, env.default_params, "colony.csv")

GraphML: Brandes et al., "GraphML progress report" (Graph Drawing 2001).
"""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree as xml

import numpy as np

from envs.durotaxis import substrate
from envs.durotaxis.state import Params, State

NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
COLUMNS: tuple[str, ...] = ("id", "x", "y", "stiffness", "parent", "birth")


def nodes(state: State, params: Params) -> list[dict[str, int | float]]:
    """The nodes of one colony in the order of their slots, with the `COLUMNS` of each.

    Its `id` is its slot, `parent` the id of its parent, -1 for a root; `x` and `y` are px, `birth`
    the step of its birth, 0 for founders. Raises ValueError for a batch of states.
    """
    colony = state.colony
    if np.ndim(colony.num_nodes):
        raise ValueError(
            f"the state holds colonies of shape {np.shape(colony.num_nodes)}; expected one: take "
            "one out with jax.tree.map(lambda x: x[i], state)"
        )
    size = params.width, params.height
    stiffness = substrate.intensity(state.law, params.field, colony.x, colony.y, *size)
    count = int(colony.num_nodes)
    columns: tuple[Any, ...] = (colony.x, colony.y, stiffness, colony.parent, colony.birth)
    rows = zip(range(count), *(np.asarray(x)[:count].tolist() for x in columns), strict=True)
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def to_csv(state: State, params: Params, path: str | Path) -> None:
    """Writes a row for each node of one colony, see `nodes`."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(nodes(state, params))


def to_graphml(state: State, params: Params, path: str | Path) -> None:
    """Writes one colony as a directed graph whose edges lead from parents to children.

    Nodes have the attributes of `nodes`, but for the parent, which is an edge.
    """
    rows = nodes(state, params)
    attributes = {
        int(row["id"]): {name: row[name] for name in COLUMNS if name != "parent"} for row in rows
    }
    edges = [(int(row["parent"]), int(row["id"])) for row in rows if row["parent"] >= 0]
    with Path(path).open("wb") as file:
        write_graph(file, "colony", attributes, edges)


def write_graph(
    file: IO[bytes],
    name: str,
    attributes: Mapping[int, Mapping[str, int | float]],
    edges: Iterable[tuple[int, int]],
) -> None:
    """Writes GraphML: the attributes of each node by its id, and directed edges between ids.

    Floats are attributes of the type double, others int; a node may lack some.
    """
    root = xml.Element("graphml", xmlns=NAMESPACE)
    kinds = {key: type(value) for row in attributes.values() for key, value in row.items()}
    for key, kind in kinds.items():
        typed = {"attr.name": key, "attr.type": "double" if kind is float else "int"}
        xml.SubElement(root, "key", {"id": key, "for": "node", **typed})
    graph = xml.SubElement(root, "graph", id=name, edgedefault="directed")
    for node, row in attributes.items():
        element = xml.SubElement(graph, "node", id=str(node))
        for key, value in row.items():
            xml.SubElement(element, "data", key=key).text = str(value)
    for source, target in edges:
        xml.SubElement(graph, "edge", source=str(source), target=str(target))
    xml.indent(root)
    xml.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
