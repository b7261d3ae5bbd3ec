"""Deletion that keeps a colony one tree, against the rule told in lists, cell by cell."""

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import pytest

from envs.durotaxis import parents, rules
from envs.durotaxis.env import Durotaxis
from tests.accelerator_branches import compile_as_on_accelerators

CAPACITY, SIZE = 64, (600.0, 400.0)


@dataclass
class Links:
    """Cells in the order of their slots and directed links, by name; x by name."""

    cells: list[int]
    links: set[tuple[int, int]]
    x: dict[int, float] = field(default_factory=dict)

    def delete(self, name: int, oriented: bool) -> None:
        """The leftmost child takes the place of `name`.

        `oriented`: links are then turned to lead from left to right, as in the original; otherwise
        they lead away from the root.
        """
        above = [a for a, b in self.links if b == name]
        children = [b for a, b in self.links if a == name]
        self.links = {link for link in self.links if name not in link}
        slot = {cell: i for i, cell in enumerate(self.cells)}
        if children:
            heir = min(children, key=lambda child: (self.x[child], slot[child]))
            new = [(heir, child) for child in children if child != heir]
            new += [(a, heir) for a in above]
            if oriented:
                new = [(a, b) if self.x[a] <= self.x[b] else (b, a) for a, b in new]
            self.links |= set(new)
        self.cells.remove(name)


def random_colony(random: np.random.Generator, size: int) -> tuple[rules.Colony, Links]:
    """A tree of `size` cells, each younger one a child of an older one; x anywhere, some equal."""
    x = random.choice(np.arange(0, 300, 2.5), size).astype(np.float32)
    parent = [-1] + [int(random.integers(i)) for i in range(1, size)]
    pad = (0, CAPACITY - size)
    numbers: dict[str, Any] = {  # of NumPy, as JAX would compile a padding for each size
        "x": np.pad(x, pad),
        "y": np.zeros(CAPACITY, np.float32),
        "parent": np.pad(np.array(parent, np.int32), pad, constant_values=-1),
        "birth": np.zeros(CAPACITY, np.int32),
        "num_nodes": np.int32(size),
    }
    links = {(above, i) for i, above in enumerate(parent) if above >= 0}
    return rules.Colony(**numbers), Links(list(range(size)), links, dict(enumerate(x.tolist())))


find = jax.jit(parents.new_parents, static_argnums=3)


@cache
def find_as_accelerators():
    shapes = [jax.ShapeDtypeStruct((CAPACITY,), kind) for kind in (jnp.int32, float, bool)]
    return compile_as_on_accelerators(parents.tree_parents, *shapes)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_the_leftmost_child_takes_the_place_of_the_dead(share: float):
    random = np.random.default_rng(int(10 * share))
    for _ in range(12):
        size = int(random.integers(1, CAPACITY + 1))
        colony, slow = random_colony(random, size)
        survives = np.zeros(CAPACITY, bool)
        survives[:size] = random.random(size) >= share
        for name in reversed(np.flatnonzero(~survives[:size])):
            slow.delete(int(name), oriented=False)
        parent_slots = np.asarray(find(colony.parent, colony.x, survives, "tree"))
        same_parents = find_as_accelerators()(colony.parent, colony.x, survives)
        np.testing.assert_array_equal(same_parents, parent_slots)
        surviving_slots = np.flatnonzero(survives)
        assert {
            (int(parent_slots[i]), int(i)) for i in surviving_slots if parent_slots[i] >= 0
        } == slow.links
        if surviving_slots.size:
            graph = networkx.Graph(list(slow.links))
            graph.add_nodes_from(surviving_slots.tolist())
            assert networkx.is_tree(graph)


@jax.jit
def step(colony: rules.Colony, deleted: jax.Array, x: jax.Array, y: jax.Array, time: jax.Array):
    return rules.next_colony(rules.grow(colony, deleted, x, y, "tree"), time)


@pytest.mark.parametrize("rightward", [True, False])
def test_a_colony_stays_one_tree_for_many_steps(rightward: bool):
    """To the right, as `directed` colonies grow, the links are those of the original, which turns
    each to lead from left to right; in any direction they are those of a tree with a root."""
    random = np.random.default_rng(3)
    colony = rules.founders(jax.random.key(2), CAPACITY, 5, *SIZE)
    names, unused = list(range(5)), 5
    x = dict(enumerate(colony.x[:5].tolist()))
    slow = Links(list(range(5)), {(i, i + 1) for i in range(4)}, x)
    for time in range(1, 25):
        count = len(names)
        number = int(np.clip(random.normal(count / 2, 2), max(count - CAPACITY // 2, 1), count - 1))
        gone = np.zeros(CAPACITY, bool)
        gone[random.permutation(count)[:number]] = True
        reach = random.uniform(0.1 if rightward else -9, 9, CAPACITY).astype(np.float32)
        child_x = np.asarray(colony.x) + reach
        surviving_names = [name for slot, name in enumerate(names) if not gone[slot]]
        for slot, name in enumerate(names):
            if not gone[slot]:
                slow.cells.append(unused)
                slow.links.add((name, unused))
                slow.x[unused] = float(child_x[slot])
                unused += 1
        for slot in reversed(range(count)):
            if gone[slot]:
                slow.delete(names[slot], oriented=rightward)
        names = surviving_names + list(range(unused - len(surviving_names), unused))
        colony = step(colony, gone, child_x, colony.y, np.int32(time))
        assert slow.cells == names
        parent = np.asarray(colony.parent)[: len(names)]
        links = {(names[above], names[i]) for i, above in enumerate(parent) if above >= 0}
        assert links == slow.links
        assert len(links) == len(names) - 1
        graph = networkx.Graph(list(links))
        assert len(names) == 1 or networkx.is_tree(graph)
        assert not np.asarray(colony.parent)[len(names) :].max(initial=-1) >= 0


@pytest.mark.slow
def test_the_environment_deletes_as_it_is_told():
    """The same actions: as many nodes at the same places, but only the tree stays connected."""
    key = jax.random.key(0)
    apart = {}
    for deletion in parents.DELETIONS:
        env = Durotaxis(capacity=40, action="nodes", deletion=deletion, observation="local")
        params = replace(env.default_params, threshold_nodes=40.0)
        obs, state = env.reset(jax.random.clone(key), params)
        doomed = jnp.zeros(40, jnp.int32).at[jnp.array([1, 3, 6])].set(1)
        spawn = jnp.array([5.0, 1.0, 0.1, 0.3])
        positions = []
        for i in range(6):
            obs, state, *_ = env.step(jax.random.key(i), state, (doomed, spawn), params)
            positions.append(np.asarray(state.colony.x))
            edges, nodes = int(obs.n_edge[0]), int(obs.n_node[0])
            apart.setdefault(deletion, []).append(nodes - edges)
        apart[f"{deletion} x"] = np.stack(positions)
    np.testing.assert_array_equal(apart["forest x"], apart["tree x"])
    assert set(apart["tree"]) == {1}
    with pytest.raises(
        ValueError, match="deletion 'none' is unknown; expected one of forest, tree"
    ):
        Durotaxis(deletion="none")
