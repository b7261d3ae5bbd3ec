"""What a report says of a run: its numbers, its command, its histograms."""

import json
import shlex
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.train import untrained
from train.host.command_line import command
from train.host.files import metrics_file, policy_files, series
from train.host.plain_config import plain
from train.host.running import saved_policies
from train.report import contents
from train.snake.program import PROGRAM as SNAKE


def test_curves_are_those_of_each_part_of_nested_numbers():
    first, second = [[1.0, 2.0], [3.0, 4.0]], [[5, 6], [7, None]]
    members = [{"error": first}, {"error": second}], [{"error": [[0.0, 0.0], [0.0, 0.0]]}, {}]
    rows = [[{"steps": t, "agent": x} for t, x in enumerate(member)] for member in members]
    curve_list = contents.curves(series.timeline(rows), "agent", "error")
    assert len(curve_list) == 4
    np.testing.assert_array_equal(curve_list[3]["members"], [[4.0, np.nan], [0.0, np.nan]])
    np.testing.assert_array_equal(curve_list[0]["mean"], [0.5, 5.0])


def test_long_records_are_thinned_to_means_of_neighbours():
    values = [float(x) if x % 7 else np.nan for x in range(1000)]
    points = contents.thin(values)
    assert len(points) == contents.POINTS
    pieces = np.array_split(np.array(values), len(points))
    np.testing.assert_allclose(points, [np.nanmean(piece) for piece in pieces])
    assert contents.thin([1.0, np.nan]).tolist()[0] == 1.0


@pytest.mark.parametrize(
    "values",
    [
        np.array([3, 3, 4, 9]),
        np.arange(500),
        np.array([0.5, 0.25, 7.5]),
        np.array([2.0]),
        np.zeros(0),
    ],
)
def test_a_histogram_counts_every_game_once(values):
    histogram = contents.distribution("score", values)
    expected_counts = [
        sum(low <= x < high or (x == high == histogram["edges"][-1]) for x in values)
        for low, high in zip(histogram["edges"], histogram["edges"][1:], strict=False)
    ]
    assert histogram["counts"] == expected_counts
    assert sum(expected_counts) == len(values) == histogram["games"]
    assert histogram["mean"] == (pytest.approx(values.mean()) if len(values) else None)


def test_a_histogram_is_of_the_games_with_a_finite_number():
    """An environment of one's own may report any."""
    histogram = contents.distribution("ratio", np.array([0.5, np.nan, 2.5, np.inf], np.float32))
    assert histogram == contents.distribution("ratio", np.array([0.5, 2.5])) | {"unknown": 2}
    none = contents.distribution("ratio", np.array([np.nan]))
    assert (none["games"], none["mean"], none["counts"]) == (0, None, [0])
    assert sum(contents.distribution("cells", 2.0**53 + 2 * np.arange(3))["counts"]) == 3


def test_what_happens_or_not_is_a_share():
    won_share = contents.distribution("won", np.array([True, False, False, True]))
    assert won_share == {"name": "won", "games": 4, "share": 0.5}


def test_the_command_repeats_the_configuration():
    run = untrained.snake()
    config = replace(
        run.config,
        env=replace(run.config.env, rows=5, cols=5),
        agent=replace(run.config.agent, learning_rate=1e-3, standardise=False),
        run=replace(run.config.run, seed=4, total_steps=12_345),
    )
    description = contents.of_run(run._replace(config=config), "mine", SNAKE.training(config))
    words = shlex.split(description["command"])
    assert words[:3] == ["python", "-m", "train.snake"]
    parsed_config, preset = command.parse(SNAKE, words[3:])
    assert preset == description["preset"] == "ppo"
    assert plain(parsed_config) == plain(config)
    bold = {row["name"] for row in description["settings"] if row["changed"]}
    assert {"agent.standardise", "run.seed", "env.rows"} <= bold
    assert "agent.discount" not in bold
    values = {row["name"]: row["value"] for row in description["settings"]}
    assert (values["agent.target_kl"], values["anneal_steps"]) == ("inf", config.anneal_steps)


def test_the_preset_is_the_one_that_the_training_began_from():
    """Not another one that happens to differ in fewer fields, as `gaps` does here."""
    name = "snake-all-boards"
    run = saved_policies.as_run(name)
    preset = policy_files.read_metadata(policy_files.file_of(name))["preset"]
    description = contents.of_run(run, name, SNAKE.training(run.config))
    assert description["preset"] == preset == "fill"
    assert shlex.split(description["command"])[3] == preset


def test_a_record_becomes_series(tmp_path):
    def row(seed: int, t: int) -> dict:
        entry = {"seed": seed, "updates": 10 * t, "steps": 100 * t, "agent": {"loss": [0.5, None]}}
        entry["finished"] = {"return": float(seed + t)}
        return entry | ({"evaluated": {"mean": 7.0, "games": 3}} if t == 2 else {})

    rows = [row(seed, t) for t in (1, 2) for seed in (0, 1)]
    with metrics_file.open_for_process(tmp_path) as record:
        record.append(rows)
    run = untrained.snake()
    config = replace(run.config, run=replace(run.config.run, num_seeds=2))
    report_record: Any = contents.record(run._replace(directory=tmp_path, config=config), {})
    assert report_record["steps"] == [100, 200]
    best = contents.record(run._replace(directory=tmp_path / "best", config=config), {})
    assert best is not None  # of `--best`, whose policies are in a folder of the run
    assert best["steps"] == report_record["steps"]
    assert report_record["evaluated"] == [[200, 7.0]]
    unfinished = [row(0, 2) | {"evaluated": {"mean": None, "games": 0}}]
    assert contents.score_curve(unfinished) == []
    assert contents.score_curve([row(1, 2), *unfinished]) == [[200, 7.0]]
    returns = report_record["series"]["return"]
    assert returns["group"] == "finished"
    assert returns["curves"][0]["members"] == [[1.0, 2.0], [2.0, 3.0]]
    assert len(report_record["series"]["loss"]["curves"]) == 2
    json.dumps(report_record["steps"])
    with metrics_file.open_for_process(tmp_path) as record:
        record.append([row(0, t) for t in range(3, 1000)])
    long = contents.record(run._replace(directory=tmp_path), {})
    assert long is not None
    assert long["steps"][-1] < long["newest"] == 99_900  # not the mean of the last rows
    (tmp_path / "metrics.jsonl").write_text("{}\n")  # no whole row
    empty = contents.record(run._replace(directory=tmp_path), {})
    assert empty is not None
    assert (empty["steps"], empty["newest"]) == ([], 0)


def test_a_run_without_a_record_has_none(tmp_path):
    assert contents.record(untrained.snake()._replace(directory=tmp_path), {}) is None
