"""A colony written as a graph and as a table, read again by networkx and csv."""

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import pytest

from envs.durotaxis.env import Durotaxis
from envs.durotaxis.pictures import export


@cache
def grow_colony(ground: str = "random"):
    env = Durotaxis(capacity=30, ground=ground, observation="local")
    params = replace(env.default_params, threshold_nodes=30.0)
    _, state = env.reset(jax.random.key(0), params)
    for i in range(4):
        action = jnp.array([0.45, 6.0, 1.0, 0.2, 0.3])
        _, state, *_ = env.step(jax.random.key(i), state, action, params)
    return state, params


@pytest.mark.slow
@pytest.mark.parametrize("ground", ["random", "linear"])
def test_a_colony_is_read_again(ground: str, tmp_path: Path):
    state, params = grow_colony(ground)
    export.to_graphml(state, params, tmp_path / "colony.graphml")
    export.to_csv(state, params, tmp_path / "colony.csv")
    graph = networkx.read_graphml(tmp_path / "colony.graphml")
    with (tmp_path / "colony.csv").open() as file:
        rows = list(csv.DictReader(file))
    colony, law = state.colony, state.law
    count = int(colony.num_nodes)
    assert count > 5
    assert sorted(map(int, graph)) == list(range(count)) == [int(row["id"]) for row in rows]
    parents = np.asarray(colony.parent)[:count].tolist()
    assert {(int(a), int(b)) for a, b in graph.edges} == {
        (above, i) for i, above in enumerate(parents) if above >= 0
    }
    for i, row in enumerate(rows):
        about = graph.nodes[str(i)]
        assert int(row["parent"]) == parents[i]
        column = int(colony.x[i])
        linear = float(law.slope) * column + float(law.base)
        steep = float(law.base) * np.exp(float(law.slope) * column)
        stiffness = steep if bool(law.exponential) else linear
        assert float(row["stiffness"]) == about["stiffness"] == pytest.approx(stiffness, rel=1e-5)
        for name, value in (("x", colony.x[i]), ("y", colony.y[i]), ("birth", colony.birth[i])):
            assert float(row[name]) == about[name] == float(value)
        assert isinstance(about["birth"], int)


def test_many_colonies_at_once_are_refused(tmp_path: Path):
    state, params = grow_colony()
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    with pytest.raises(ValueError, match=r"colonies of shape \(2,\); expected one: take one out"):
        export.to_csv(batch, params, tmp_path / "colony.csv")
