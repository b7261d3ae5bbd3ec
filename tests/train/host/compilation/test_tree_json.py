"""Trees that are written as JSON come back as they were, or are refused."""

import json
from collections import OrderedDict
from typing import Any, NamedTuple

import jax
import optax
import pytest
from flax import struct

from train.host.compilation import tree_json


class Pair(NamedTuple):
    first: Any
    second: Any = None


@struct.dataclass
class State:
    table: Any
    count: int = struct.field(pytree_node=False, default=3)
    name: str = struct.field(pytree_node=False, default="x")
    rest: Any = None


class Outer:
    class Inner(NamedTuple):
        x: Any


TREES = {
    "leaf": 1.5,
    "none": None,
    "dict": {"b": 1, "a": {"c": None, "d": ()}},
    "sequences": [1, (2, [3]), []],
    "named": Pair(1, Pair({"x": 2})),
    "dataclass": State(table=[1, 2], count=7, rest=Pair(3)),
    "nested class": Outer.Inner((1, 2)),
    "optimiser": optax.adam(1e-3).init({"w": 1.0}),
    "counts that are leaves": Pair(0, State(0)),
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_a_tree_comes_back(tree):
    leaves, structure = jax.tree.flatten(tree)
    code = json.loads(json.dumps(tree_json.encode(structure)))
    assert jax.tree.structure(tree_json.decode(code, leaves)) == structure
    assert tree_json.decode(code, leaves) == tree


def local_class() -> Any:
    class Local(NamedTuple):
        x: Any

    return Local(1)


REFUSED = {
    "a class without a name": local_class(),
    "a function": State(1, name=len),  # pyright: ignore[reportArgumentType]
    "names that are no texts": {1: 2},
    "another kind of dict": OrderedDict(x=1),
}


@pytest.mark.parametrize("tree", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_written_is_refused(tree):
    with pytest.raises(ValueError, match=r"JSON|name"):
        tree_json.encode(jax.tree.structure(tree))
