"""Episodes of colonies as they are kept and told as tables."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import pytest

from envs.durotaxis.actions import FIXED, Bounds
from jaxrl import evaluate as jaxrl_evaluate
from tests.envs.durotaxis import oracle
from tests.train import untrained
from tests.train.durotaxis.colonies import COUNT, GROUND, SMALL, rows_of
from train.durotaxis.config import make_env
from train.durotaxis.episodes import graphml, tables
from train.durotaxis.episodes import playing as colonies
from train.durotaxis.episodes.record import NUMBERS
from train.durotaxis.training import make_parts
from train.host.scoring import limits


def replay(rows: list[dict[str, str]]) -> None:
    """One episode by the plain oracle, from what its table says of founders and actions alone."""
    # The rows of each step, and the founders.
    steps = [
        [row for row in rows if int(row["step"]) == s] for s in range(int(rows[-1]["step"]) + 1)
    ]
    colony = oracle.Colony.path([(float(r["node_x"]), float(r["node_y"])) for r in steps[0]])
    for s, here in enumerate(steps):
        # The table has the names, parents and places of the slow colony.
        assert [cell.name for cell in colony.cells] == [int(row["node_id"]) for row in here]
        recorded_parents = [-1 if row["parent_id"] == "" else int(row["parent_id"]) for row in here]
        parents = [-1 if p < 0 else colony.cells[p].name for p in colony.parents()]
        assert parents == recorded_parents
        x = [cell.x for cell in colony.cells]
        np.testing.assert_allclose(x, [float(row["node_x"]) for row in here], atol=1e-3)
        # Its numbers follow from them.
        first = here[0]
        assert int(first["num_nodes"]) == len(here)
        assert float(first["centroid_x"]) == pytest.approx(np.mean(x), abs=1e-3)
        assert float(first["box_width"]) == pytest.approx(max(x) - min(x), abs=2e-3)
        for row, position in zip(here, x, strict=True):  # a cell of the ground is 1 px
            assert float(row["node_intensity"]) == pytest.approx(
                GROUND.intensity(position), abs=0.06
            )
        if s == len(steps) - 1:
            assert {row["action"] for row in here} == {""}
            assert {row["gamma"] + row["delete_ratio"] + row["spawn_node_id"] for row in here} == {
                ""
            }
            return
        # The leftmost are deleted, the others spawn where the numbers of the action say.
        doomed = [int(row["node_id"]) for row in here if row["action"] == "delete"]
        count = int(np.floor(np.float32(first["delete_ratio"]) * np.float32(len(here))))
        leftmost = sorted(oracle.leftmost(x, count))
        assert doomed == [int(here[slot]["node_id"]) for slot in leftmost]
        numbers = [float(first[name]) for name in NUMBERS[1:]]
        before = {cell.name: cell for cell in colony.cells}
        landing = oracle.directed_landing(GROUND, *numbers)
        for row in here:
            if row["action"] == "spawn":
                where = landing(before[int(row["node_id"])])
                there = float(row["spawn_node_x"]), float(row["spawn_node_y"])
                assert there == pytest.approx(where, abs=1e-3)
        colony.step(doomed, landing, s + 1)


def test_an_episode_can_be_replayed_from_its_table(episodes, tmp_path: Path):
    endings = {episode.ending for episode in episodes}
    assert {"crowded", "arrived"} <= endings  # crowded ones outgrow the slots of the environment
    assert max(e.colony.num_nodes[-1] for e in episodes) > 10
    path = tmp_path / "trajectory.csv"
    tables.write_csv(path, [tables.rows(e, 5, i) for i, e in enumerate(episodes)])
    rows = rows_of(path)
    for i, episode in enumerate(episodes):
        episode_rows = [row for row in rows if int(row["episode"]) == i]
        assert int(episode_rows[-1]["step"]) == episode.ended.length
        replay(episode_rows)
    assert {row["seed"] for row in rows} == {"5"}


def test_the_descent_of_a_colony_is_a_graph(episodes, tmp_path: Path):
    for episode in episodes[:4]:
        graphml.write(tmp_path / "colony.graphml", episode)
        graph = networkx.read_graphml(tmp_path / "colony.graphml")
        rows = tables.rows(episode)
        assert set(map(int, graph)) == set(rows["node_id"].tolist())
        for node, about in graph.nodes(data=True):
            own = rows["node_id"] == int(node)
            assert about["birth"] == rows["step"][own].min()
            assert about["x"] == pytest.approx(float(rows["node_x"][own][0]))
            assert about["stiffness"] == pytest.approx(float(rows["node_intensity"][own][0]))
            died = "delete" in rows["action"][own].tolist()
            assert about.get("death") == (rows["step"][own].max() + 1 if died else None)
        born = rows["action"] == "spawn"
        parent_child_pairs = zip(rows["node_id"][born], rows["spawn_node_id"][born], strict=True)
        founders = {str(k) for k in rows["node_id"][rows["step"] == 0]}
        between = {(a, b) for a, b in graph.edges if b in founders}
        assert set(graph.edges) - between == {(str(a), str(b)) for a, b in parent_child_pairs}
        assert len(between) == len(founders) - 1, "founders are linked as a path"


@pytest.mark.slow
def test_colonies_that_begin_again_have_new_names(parts):
    _, _, agent = parts
    recovery_experiment = replace(SMALL, bounds=Bounds(delete_ratio=(0.0, 1.0)), recovery_nodes=3)
    env, params = make_env(recovery_experiment)
    act = lambda state, memory, obs, key: (jnp.array([1.0, 5.0, 1.0, 0.1, 0.0]), memory, ())
    (episode,) = colonies.play(env, params, agent._replace(act=act), (), jax.random.key(1), 1)
    assert episode.ending == "empty"
    assert episode.colony.num_nodes.tolist() == [5, 3, 3, 0]
    ids = [episode.ids[s][episode.alive[s]].tolist() for s in range(4)]
    assert ids == [[0, 1, 2, 3, 4], [5, 6, 7], [8, 9, 10], []]
    attributes = graphml.nodes(episode)
    assert {node: about["parent"] for node, about in attributes.items()} == {
        **{0: -1, 1: 0, 2: 1, 3: 2, 4: 3, 5: -1, 6: 5, 7: 6, 8: -1, 9: 8, 10: 9}
    }
    assert attributes[9]["birth"] == 2
    assert attributes[9]["death"] == 3
    rows = tables.rows(episode, components=env.component_names)
    at = lambda step: rows["reward_termination"][rows["step"] == step][0]
    assert [at(s) for s in range(3)] == pytest.approx([-1, -1, -2])
    assert tables.episode_rows([episode])["recoveries"].tolist() == [2]


@pytest.mark.slow
def test_tables_tell_rewards_and_values(parts):
    env, params, agent = parts
    valued_agent = agent._replace(
        explain=lambda *_: {"value": jnp.arange(len(env.component_names)) * 1.0}
    )
    names = env.component_names
    for episode in colonies.play(env, params, valued_agent, (), jax.random.key(5), 2):
        rows = tables.rows(episode, components=names)
        first = np.flatnonzero(np.diff(rows["step"], prepend=-1))[:-1]  # of each step but the last
        for name in names:
            total = episode.ended.outcome[f"reward_{name}"]
            assert rows[f"reward_{name}"][first].sum() == pytest.approx(total, rel=1e-4, abs=1e-4)
        total = sum(rows[f"reward_{name}"][first] for name in names)
        np.testing.assert_allclose(rows["reward"][first], total, rtol=1e-4, atol=1e-5)
        assert episode.ended.return_ == pytest.approx(rows["reward"][first].sum(), rel=1e-3)
        np.testing.assert_allclose(rows["value"][first], sum(range(len(names))))
        assert np.isnan(rows["reward"][rows["step"] == rows["step"].max()]).all()


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["hybrid", "linear", "isotropic", "two_stage"])
def test_tables_tell_what_the_policy_thinks_and_earns(preset: str):
    """Value, rewards, spawn parameters and the chance of each node, for all kinds of action."""
    config = untrained.colony(preset).config
    learned = untrained.colony(preset).agents[0]
    env, params, agent = make_parts(config, greedy=True)
    (episode,) = colonies.play(env, params, agent, learned, jax.random.key(5), 1)
    rows = tables.rows(episode, components=env.component_names)
    acts = rows["action"]
    for name in ("value", *(f"reward_{x}" for x in env.component_names), *NUMBERS[1:4]):
        assert np.isfinite(rows[name][acts != ""]).all(), name
    chance = rows["delete_probability"]
    assert ((chance[acts != ""] >= 0) & (chance[acts != ""] <= 1)).all()
    # the greedy action is the median, so what is deleted is what is likelier than not
    sure = (acts != "") & (np.abs(chance - 0.5) > 1e-3)
    np.testing.assert_array_equal((chance > 0.5)[sure], (acts == "delete")[sure])
    assert np.isnan(chance[acts == ""]).all()


def test_csv_and_npz_hold_the_same(episodes, tmp_path: Path):
    row_tables = [tables.rows(e, 0, i) for i, e in enumerate(episodes)]
    tables.write_csv(tmp_path / "t.csv", row_tables)
    tables.write_npz(tmp_path / "t.npz", row_tables)
    rows = rows_of(tmp_path / "t.csv")
    with np.load(tmp_path / "t.npz") as arrays:
        assert list(arrays) == list(rows[0])
        for name, values in arrays.items():
            texts = [row[name] for row in rows]
            if values.dtype.kind == "U":
                assert texts == values.tolist()
            elif values.dtype.kind == "f":
                csv_values = np.array([text or "nan" for text in texts], np.float32)
                np.testing.assert_array_equal(csv_values, values)  # to the last bit
            else:
                assert [int(text or -1) for text in texts] == values.tolist()


@pytest.mark.slow
def test_the_episodes_are_those_of_an_evaluation(parts, episodes):
    env, params, agent = parts
    evaluate = jax.jit(jaxrl_evaluate.evaluate, static_argnums=(0, 2, 5, 6, 7))
    expected = evaluate(env, params, agent, (), jax.random.key(3), COUNT, 1, 40)
    results = colonies.episode_results(episodes)
    for a, b in zip(jax.tree.leaves(results), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="number of episodes is 0"):
        colonies.play(env, params, agent, (), jax.random.key(3), 0)


def test_what_the_action_does_not_say_is_filled_in():
    env, params = make_env(
        replace(SMALL, spawning="isotropic", action="ratio", spawn=FIXED["isotropic"])
    )
    numbers = colonies.numbers_of(env, params, np.array([0.9], np.float32))
    expected = [0.7, 5.0, 2.0, 0.5, np.nan]  # the first clipped; there is no direction
    np.testing.assert_array_equal(list(numbers.values()), np.array(expected, np.float32))
    env, params = make_env(replace(SMALL, action="nodes"))
    numbers = colonies.numbers_of(
        env, params, (np.zeros(10), np.array([9, 2, 0.1, 0.2], np.float32))
    )
    np.testing.assert_array_equal(
        list(numbers.values()), np.array([np.nan, 9, 2, 0.1, 0.2], np.float32)
    )


@pytest.mark.slow
def test_a_colony_that_is_not_over_is_cut(parts, monkeypatch):
    env, params, agent = parts
    monkeypatch.setattr(limits, "MOST", 5)
    (episode,) = colonies.play(env, params, agent, (), jax.random.key(0), 1)
    assert episode.ending == "not finished"
    assert (len(episode.reward), bool(episode.ended.complete)) == (5, False)
