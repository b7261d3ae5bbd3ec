"""What was measured is passed over, and measured anew where anything that makes its numbers is."""

import json
import re
import sys
from pathlib import Path

import pytest

from bench import (
    allo_barrier,
    allo_directed,
    allo_directed_mazes,
    blocks,
    common_ground,
    recordings,
    sessions,
    snake_scores,
    vector_field_learning,
)
from bench.peers import scores as peer_scores
from bench.tables import durotaxis as durotaxis_tables
from bench.tables import markdown, rig
from bench.tables import recordings as tables
from bench.tables import vector_field as field_tables


def run_main(monkeypatch, module, *arguments: str) -> None:
    """Runs a benchmark that takes its command line from the process."""
    monkeypatch.setattr(sys, "argv", ["bench", *arguments])
    module.main()


def test_common_ground_continues_no_run_of_other_seeds_or_steps(tmp_path, monkeypatch):
    directories: list[Path] = []

    def measure(case, seeds, directory):
        directories.append(directory)
        return {**common_ground.key_of(case, seeds), "returns": [0.0] * seeds, "seconds": 1.0}

    monkeypatch.setattr(common_ground, "measure", measure)
    one = ["ppo CartPole-v1", f"--out={tmp_path / 'out.json'}", f"--runs={tmp_path}"]
    for seeds in (10, 3, 10, 3):
        run_main(monkeypatch, common_ground, *one, f"--seeds={seeds}")
    longer = common_ground.cases()[0]._replace(steps=700_000)
    monkeypatch.setattr(common_ground, "cases", lambda: [longer])
    run_main(monkeypatch, common_ground, *one, "--seeds=3")
    assert len(directories) == len(set(directories)) == 3
    records = json.loads((tmp_path / "out.json").read_bytes())
    assert [(x["seeds"], x["steps"]) for x in records] == [(10, 5e5), (3, 5e5), (3, 7e5)]


def test_scores_of_snake_with_more_seeds_are_measured_and_take_the_place_of_the_others(
    tmp_path, monkeypatch
):
    def measure(name, observation, budget, seeds):
        seed = dict.fromkeys(("mean", "median", "max", *snake_scores.ENDINGS), 0.5)
        labels = {"algorithm": name, "observation": observation, "budget": budget}
        return {**labels, "greedy": [seed] * seeds, "sampled": [seed] * seeds}

    monkeypatch.setattr(snake_scores, "measure", measure)
    out = tmp_path / "out.json"
    for seeds in (2, 4, 2):
        one = ["ppo", "--observations", "tail", f"--seeds={seeds}", f"--out={out}"]
        run_main(monkeypatch, snake_scores, *one)
    rows = json.loads(out.read_bytes())
    assert [len(row["greedy"]) for row in rows] == [2, 4]
    text = snake_scores.table(rows, "episodes")
    (line,) = [x for x in text.splitlines() if x.startswith("| ppo | tail |")]
    assert line.split(" | ")[3] == "4"


def test_the_true_model_is_scored_again_with_other_particles(tmp_path):
    path = tmp_path / "out.json"
    label = {"system": "ring", "seed": 0, "small": False}
    rows = [{**label, "model": "true", "particles": 500}, {**label, "model": "state_space"}]
    path.write_text(json.dumps(rows), encoding="utf-8")
    missing = lambda particles: recordings.missing_models(
        "ring", 0, ["true", "state_space"], False, particles, path
    )
    assert missing(500) == []
    assert missing(2_000) == ["true"]


def test_directed_mazes_are_learned_again_with_other_sizes(tmp_path, monkeypatch):
    path, names = tmp_path / "out.json", ["ring", "stairs"]
    monkeypatch.setattr(allo_directed_mazes, "sizes", lambda maze: {"features": 32})
    path.write_text(json.dumps([{"walk": "ring", "seeds": 10, "features": 32}]), encoding="utf-8")
    missing = lambda seeds: allo_directed_mazes.missing_mazes(names, seeds, path)
    assert (missing(10), missing(3)) == (["stairs"], names)
    monkeypatch.setattr(allo_directed_mazes, "sizes", lambda maze: {"features": 16})
    assert missing(10) == names


def test_a_barrier_is_measured_again_with_other_steps_seeds_or_starts(monkeypatch):
    case = allo_barrier.CASES[0]
    rows = [
        {"start": start, "step": step, "similarity": [0.9, 0.8, 0.7]}
        for start in (0.1, 0.5, 2.0, 10.0)
        for step in (0.0, 0.01, 1.0)
    ]
    record = {"case": "allo GridMaze-9", "steps": 5_000, "transitions": 200_000, "rows": rows}
    assert allo_barrier.is_measured(case, record)
    assert not allo_barrier.is_measured(case._replace(steps=9_000), record)
    assert not allo_barrier.is_measured(case, record | {"rows": rows[1:]})
    monkeypatch.setattr(allo_barrier, "SEEDS", 5)
    assert not allo_barrier.is_measured(case, record)


@pytest.mark.parametrize("module", [common_ground, allo_barrier, blocks, peer_scores])
def test_everything_that_was_published_is_still_passed_over(module, monkeypatch):
    """Or the next call would train for hours what the tables have."""

    def measure(*arguments, **_):
        raise AssertionError(f"measured again: {arguments}")

    monkeypatch.setattr(module, "measure", measure)
    if module is peer_scores:
        monkeypatch.setattr(peer_scores.shim, "load", lambda checkout: (None, None))
        monkeypatch.setattr(peer_scores.shim, "digest", lambda checkout: "0")
        published = json.loads(peer_scores.RESULTS.read_bytes())
        for record in published:
            peer_scores.main(["--purejaxrl=.", f"--seeds={record['seeds']}", record["case"]])
    elif module is common_ground:
        for record in json.loads(common_ground.RESULTS.read_bytes()):
            if record["flags"] == list(flags_of(record["case"])):
                run_main(monkeypatch, module, f"--seeds={record['seeds']}", record["case"])
    else:
        run_main(monkeypatch, module)


def flags_of(name: str) -> tuple[str, ...]:
    return next(case.flags for case in common_ground.cases() if case.name == name)


def test_sizes_of_directed_walks_are_those_of_the_records():
    record = json.loads(allo_directed.RESULTS.read_bytes())[-1]
    sizes = allo_directed.sizes(allo_directed.maze_of(record["walk"]))
    assert sizes.items() <= record.items()


def test_the_table_of_sessions_has_the_steps_that_its_page_tells_and_no_others(
    tmp_path, monkeypatch
):
    machine = {"date": "2026-11-27", "cores": 2, "cpu": "AMD", "device": "cpu", "python": "3.11"}
    scores = lambda r2: {"r2": dict.fromkeys(("1", "10", "30"), r2)}
    rows = [
        {
            **{**machine, "versions": {"jax": "0.10"}, "system": "ring", "seed": 0, "small": False},
            **{"steps": steps, "division": division, "fit": fit},
            "sessions": {"first": scores(r2), "second": scores(r2)},
        }
        for steps, r2 in ((sessions.STEPS, 0.5), (7, -3.0))
        for division in sessions.DIVISIONS
        for fit in sessions.FITS
    ]
    (tmp_path / "sessions.json").write_text(json.dumps(rows), encoding="utf-8")
    monkeypatch.setattr(markdown, "RESULTS", tmp_path)
    numbers = set(re.findall(r"-?\d\.\d{3}", tables.sessions()))
    assert numbers == {"0.500"}


def test_the_table_of_colonies_compares_trainings_of_as_many_steps(tmp_path, monkeypatch):
    published = json.loads((markdown.RESULTS / "durotaxis_learning.json").read_bytes())
    before = durotaxis_tables.learning()
    newest = next(x for x in published if x["name"] == "linear") | {"date": "2030-01-01"}
    short = newest | {"steps": 5_000, "arrived": [0.25] * 5}
    (tmp_path / "durotaxis_learning.json").write_text(
        json.dumps([*published, short]), encoding="utf-8"
    )
    monkeypatch.setattr(markdown, "RESULTS", tmp_path)
    assert durotaxis_tables.learning() == before


@pytest.mark.parametrize("size", [{"steps": 250}, {"seeds": 1}])
def test_a_quick_look_takes_no_place_in_the_tables_of_active_dynamics(tmp_path, monkeypatch, size):
    before = [f() for f in (field_tables.seen_state, field_tables.baselines, rig.latency)]
    for name in ("vector_field_learning", "vector_field_baselines", "rig_latency"):
        published = json.loads((markdown.RESULTS / f"{name}.json").read_bytes())
        newest = published[0 if name == "vector_field_learning" else -1] | {"date": "2030-01-01"}
        row = newest | {"scores": [], "r2": {"arx": {"random": {}}}, **size}
        if name == "rig_latency":
            row = newest | {"rows": [x | {"samples": 9} for x in newest["rows"]]}
        (tmp_path / f"{name}.json").write_text(json.dumps([*published, row]), encoding="utf-8")
    monkeypatch.setattr(markdown, "RESULTS", tmp_path)
    assert before == [f() for f in (field_tables.seen_state, field_tables.baselines, rig.latency)]


def test_experiments_that_end_before_the_first_score_are_refused(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run_main(monkeypatch, vector_field_learning, "seen", "--steps=200")
    assert "--steps 200 ends before the first score: 250 or more" in capsys.readouterr().err
