"""What holds the leaves of a tree, as JSON: dicts, tuples, lists, None, and classes by their names.

A treedef of JAX can be written in no other way without pickle, which runs whatever a file says.
"""

import dataclasses
import pkgutil
from typing import Any

import jax

from jaxrl.types import PyTree

STATIC = (str, int, float)
"""Types of the fields of a dataclass that hold no leaves and can be written."""


def encode(structure: Any) -> Any:
    """JSON of a treedef. Raises ValueError for nodes of other kinds, and classes without a name."""
    code = encode_node(jax.tree.unflatten(structure, list(map(Leaf, range(structure.num_leaves)))))
    try:
        is_whole = jax.tree.structure(decode(code, [0] * structure.num_leaves)) == structure
    except Exception as error:  # of what classes do when they are made
        raise ValueError(f"{structure} cannot be made from JSON") from error
    if not is_whole:
        raise ValueError(f"{structure} is another tree when it is made from JSON")
    return code


class Leaf(int):
    """The place of a leaf, from 0; it tells leaves from whole numbers that are static."""


def encode_node(node: Any) -> Any:
    """JSON of a tree whose leaves are `Leaf`."""
    if isinstance(node, Leaf):
        return int(node)
    if node is None:
        return None
    if isinstance(node, dict) and all(isinstance(name, str) for name in node):
        return {"dict": {name: encode_node(x) for name, x in node.items()}}
    if isinstance(node, list):
        return {"list": [encode_node(x) for x in node]}
    if isinstance(node, tuple) and hasattr(node, "_asdict"):
        return {"class": name_of(type(node)), "fields": encode_fields(node._asdict())}  # pyright: ignore
    if isinstance(node, tuple):
        return {"tuple": [encode_node(x) for x in node]}
    if dataclasses.is_dataclass(node):
        names = [x.name for x in dataclasses.fields(node)]
        values = {name: getattr(node, name) for name in names}
        return {"class": name_of(type(node)), "fields": encode_fields(values)}
    raise ValueError(f"a {type(node).__name__} cannot be written as JSON")


def encode_fields(values: dict[str, Any]) -> dict[str, Any]:
    """JSON of the fields of an instance, those that hold no leaves as they are."""
    is_static = lambda x: isinstance(x, STATIC) and not isinstance(x, Leaf)
    return {name: {"static": x} if is_static(x) else encode_node(x) for name, x in values.items()}


def name_of(kind: type) -> str:
    """`module:class`. Raises ValueError for a class that is not found by it."""
    name = f"{kind.__module__}:{kind.__qualname__}"
    if "<" in name:
        raise ValueError(f"{name} has no name outside of a function")
    return name


def decode(code: Any, leaves: list[Any]) -> PyTree:
    """The tree of which `code` is the JSON, with these leaves."""
    if code is None:
        return None
    if isinstance(code, int):
        return leaves[code]
    if "dict" in code:
        return {name: decode(x, leaves) for name, x in code["dict"].items()}
    if "list" in code:
        return [decode(x, leaves) for x in code["list"]]
    if "tuple" in code:
        return tuple(decode(x, leaves) for x in code["tuple"])
    if "static" in code:
        return code["static"]
    fields = {name: decode(x, leaves) for name, x in code["fields"].items()}
    return pkgutil.resolve_name(code["class"])(**fields)
