"""Episodes of colonies as they are kept, told as tables, evaluated and drawn."""

import csv
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import pytest

from envs.durotaxis.actions import FIXED, Bounds
from jaxrl import evaluate as jaxrl_evaluate
from jaxrl.numerics.statistics import wilson
from jaxrl.types import Agent
from tests.envs import durotaxis_oracle as oracle
from tests.train import untrained
from tests.train.images import assert_drawn
from train import evaluate as evaluate_command
from train.allo.program import PROGRAM as ALLO
from train.durotaxis import evaluation, program
from train.durotaxis.config import PRESETS, Config, experiment, make_env
from train.durotaxis.episodes import graphml, tables
from train.durotaxis.episodes import playing as colonies
from train.durotaxis.episodes.record import NUMBERS, Episode
from train.durotaxis.training import make_parts
from train.host.files.run_directory import RunDirectory
from train.host.program import Run
from train.host.running import runs
from train.host.scoring import games, limits
from train.host.training import Evaluation

GROUND = oracle.Ground(width=60, height=40, slope=0.05, base=1.0)
COUNT = 16
SMALL = experiment(
    **{"width": 60, "height": 40, "observation": "local", "capacity": 10, "threshold_nodes": 10.0},
    **{"max_steps_in_episode": 40, "bounds": Bounds(delete_ratio=(0.42, 0.7))},
)


@pytest.fixture(scope="module")
def parts() -> tuple[Any, ...]:
    """An agent that acts at random, so that there is little to compile."""
    env, params = make_env(SMALL)
    act = lambda state, memory, obs, key: (env.action_space(params).sample(key), memory, ())
    refuse = lambda *_: pytest.fail("it learns nothing")
    return env, params, Agent(refuse, lambda: (), act, refuse)


@pytest.fixture(scope="module")
def episodes(parts) -> list[Episode]:
    return colonies.play(parts[0], parts[1], parts[2], (), jax.random.key(3), COUNT)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


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


def make_results(arrived: list[bool], length: list[int], progress: list[float]):
    column: Any = lambda values: np.array(values)[:, None]
    outcome = {"arrived": column(arrived), "progress": column(progress)}
    outcome |= {"num_nodes": column(length), "reward_way": column(progress)}
    complete: Any = np.ones((len(arrived), 1), bool)
    return jaxrl_evaluate.Episodes(
        column(progress), column(length), column(arrived), column(arrived), outcome, complete
    )


def test_the_climb_to_show():
    some = make_results([True, False, True, True, False], [40, 90, 37, 50, 1], [1, 0.9, 1, 1, 0.1])
    assert colonies.typical_index(some) == 0
    none = make_results([False, False, False], [40, 90, 37], [0.2, 0.5, 0.3])
    assert colonies.typical_index(none) == 1


def test_a_summary_counts_goals_and_nothing_else():
    summary = tables.summary(make_results([True, False, True], [40, 90, 50], [1, 0.5, 0.75]))
    low, high = wilson(2, 3)
    assert summary["arrived"] == {"mean": pytest.approx(2 / 3), "low": low, "high": high}
    assert summary["steps_to_goal"]["mean"] == 45
    assert summary["length"] == {
        "mean": 60, "median": 50, "std": pytest.approx(np.sqrt(700)), "min": 40, "max": 90
    }  # fmt: skip
    assert summary["rewards"] == {"way": tables.spread(np.array([1, 0.5, 0.75]))}
    none = tables.summary(make_results([False], [9], [0.5]))
    assert set(none["steps_to_goal"].values()) == {None}
    cut = make_results([True, False], [40, 90], [1, 0.5])
    summary = tables.summary(cut._replace(complete=np.array([[True], [False]])))
    assert (summary["episodes"], summary["arrived"]["mean"], summary["length"]["max"]) == (
        1,
        1.0,
        40,
    )


@pytest.mark.slow
def test_a_colony_that_is_not_over_is_cut(parts, monkeypatch):
    env, params, agent = parts
    monkeypatch.setattr(limits, "MOST", 5)
    (episode,) = colonies.play(env, params, agent, (), jax.random.key(0), 1)
    assert episode.ending == "not finished"
    assert (len(episode.reward), bool(episode.ended.complete)) == (5, False)


@pytest.fixture
def run(parts, tmp_path: Path, monkeypatch) -> Run:
    """A run whose agent acts at random: there is no network to compile."""

    def make(config: Config, greedy: bool = False) -> tuple:
        make_parts(config, greedy)  # refuses what does not fit together
        return *make_env(config.env), parts[2]

    config = replace(PRESETS["linear"].config, env=SMALL)
    RunDirectory(tmp_path).write_config("durotaxis", "linear", config)
    run = Run(tmp_path, program.PROGRAM, config, 7, [()])
    monkeypatch.setattr(runs, "load", lambda directory, best: run)
    for module in (evaluation, program):
        monkeypatch.setattr(module, "make_parts", make)
    return run


@pytest.mark.slow
def test_evaluation_on_other_ground(run: Run, capsys):
    flags = f"--substrate exponential --m 0.02 --b 1.5 --episodes {COUNT} --max-steps 9"
    for _ in range(2):
        assert evaluate_command.main([str(run.directory), *flags.split()]) == 0
    folders = sorted(run.directory.glob("eval-exponential-m0.02-b1.5-*"))
    assert len(folders) == 2  # nothing is overwritten
    assert "arrived" in capsys.readouterr().out
    assert not (run.directory / "eval.json").exists()
    folder = folders[0]
    episodes, rows = rows_of(folder / "episodes.csv"), rows_of(folder / "trajectory.csv")
    assert len(episodes) == COUNT
    for number, episode in enumerate(episodes):
        mine = [row for row in rows if int(row["episode"]) == number]
        assert int(episode["length"]) == int(mine[-1]["step"]) <= 9
        assert int(episode["final_nodes"]) == int(mine[-1]["num_nodes"])
        assert float(episode["farthest_x"]) == max(float(row["node_x"]) for row in mine)
        assert float(episode["centroid_start"]) == float(mine[0]["centroid_x"])
        rewards = [float(value) for name, value in episode.items() if name.startswith("reward_")]
        assert sum(rewards) == pytest.approx(float(episode["return"]), rel=1e-4, abs=1e-5)
    for row in rows[::20]:
        expected = 1.5 * np.exp(0.02 * int(float(row["node_x"])))
        assert float(row["node_intensity"]) == pytest.approx(expected, rel=1e-5)
    summary = json.loads((folder / "summary.json").read_text())
    seed = summary["seeds"][0]
    assert summary["experiment"]["ground"] == "exponential"
    assert seed["endings"] == Counter(episode["ending"] for episode in episodes)
    assert seed["arrived"]["mean"] == np.mean([e["arrived"] == "True" for e in episodes])
    returns = [float(episode["return"]) for episode in episodes]
    assert seed["return"]["std"] == pytest.approx(np.std(returns, ddof=1), rel=1e-5)
    assert_drawn(folder / "trajectories.png")
    assert "jax" in summary["versions"]


def test_evaluation_of_the_runs_own_experiment(run: Run):
    assert evaluate_command.main([str(run.directory), f"--episodes={COUNT}", "--key=4"]) == 0
    content = json.loads((run.directory / "eval.json").read_text())
    assert (content["key"], content["updates"], content["score"]) == (4, 7, "arrived")
    assert content["seeds"][0]["games"] == COUNT
    assert len(list(run.directory.glob("eval-linear-m0.05-b1-*"))) == 1


def test_the_room_for_nodes_grows_with_what_is_asked_for():
    options = evaluation.Options("", threshold_nodes=20.5, num_founders=12, height=99)
    changed_experiment = evaluation.apply_options(SMALL, options)
    changes = {"threshold_nodes": 20.5, "num_founders": 12, "height": 99, "capacity": 21}
    assert changed_experiment == replace(SMALL, **changes)
    assert evaluation.apply_options(SMALL, evaluation.Options("")) == SMALL


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("--episodes 0", "--episodes is 0, expected a number at least 1"),
        ("--max-steps 0", "--max-steps is 0"),
        ("--substrate exponential --m 2", "which float32 cannot hold"),
        ("--substrate random --m 0.1", "--m would have no effect, as random ground"),
        ("--field-file FIELD --b 1 --width 50", "--b and --width would have no effect"),
        ("--field-file FIELD --substrate linear", "exclude each other"),
        ("--field-file nowhere.npy", "there is no file nowhere.npy"),
        ("--width 10", "--width is 10, expected a number at least 20"),
        ("--num-founders 0", "--num-founders is 0"),
        ("--threshold-nodes nan", "--threshold-nodes is nan"),
        ("--substrate cubic", "cubic"),
        ("--games 3", "Unrecognized options"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(run, flags, complaint, capsys):
    field = run.directory / "field.npy"
    np.save(field, np.ones((40, 50), np.float32))
    arguments = [str(run.directory), *flags.replace("FIELD", str(field)).split()]
    assert evaluate_command.main(arguments) == 2
    error_output = capsys.readouterr().err
    assert complaint in error_output
    assert error_output.count("\n") == 1
    assert {entry.name for entry in run.directory.iterdir()} == {"config.yaml", "field.npy"}


@pytest.mark.slow
def test_a_run_is_drawn_at_its_end_and_again(run: Run, episodes, monkeypatch):
    def play(*arguments) -> list[Episode]:
        keep = arguments[6] if len(arguments) > 6 else range(COUNT)
        return [episodes[k] for k in keep]

    monkeypatch.setattr(colonies, "play", play)
    row = {"seed": 0, "updates": 1, "steps": 9, "episodes": 3, "seconds": 1.0, "agent": {}}
    row |= {"finished": {"arrived": 0.5}}
    (run.directory / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    played_games = games.GameResults([colonies.episode_results(episodes)], 0.0, 0.0)
    run_evaluation = Evaluation({}, "", played_games)
    training: Any = SimpleNamespace(evaluate=lambda agents, seeds, keys: run_evaluation)
    monkeypatch.setattr(program, "make_training", lambda config: training)
    pictures = [run.directory / name for name in ("learning_curve.png", "climb.gif", "climb.png")]
    assert program.draw(run, COUNT, jax.random.key(2), run_evaluation) == pictures
    before = [path.read_bytes() for path in pictures[1:]]
    assert program.draw(run, COUNT, jax.random.key(2)) == pictures
    assert [path.read_bytes() for path in pictures[1:]] == before
    for path in pictures:
        assert_drawn(path)


def test_other_runs_know_no_such_flags(tmp_path: Path, capsys):
    preset, (config, *_) = next(iter(ALLO.presets.items()))
    RunDirectory(tmp_path).write_config("allo", preset, config)
    assert evaluate_command.main([str(tmp_path), "--m", "1"]) == 2
    assert "Unrecognized options: --m" in capsys.readouterr().err
    RunDirectory(tmp_path).write_config("chess", preset, config)
    assert evaluate_command.main([str(tmp_path), "--m", "1"]) == 2
    assert "is of the program chess, which is unknown here" in capsys.readouterr().err
