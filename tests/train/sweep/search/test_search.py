"""A search compiles once, continues exactly, replaces what fails, and leaves an honest score."""

import csv
import dataclasses
import json
from itertools import pairwise
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.train import tiny
from tests.train.host.crashes import timeless_rows
from train.host.errors import INTERRUPTED, REFUSED
from train.host.files import metrics_file
from train.host.machine import signals
from train.host.plain_config import plain
from train.host.running import saved_runs
from train.host.running.run import run
from train.sweep import __main__ as command
from train.sweep import batches, files
from train.sweep.search import candidates
from train.sweep.search.judge import Judge

VARY = "agent.learning_rate=log:1e-3..1"
KINDS = ("halving", "population")


def search(directory: Path, kind: str, *flags: str, members: int = 5, vary: str = VARY) -> int:
    arguments = ["tests.train.tiny", "plain", "--search", kind, "--vary", vary]
    arguments += ["--members", str(members), "--directory", str(directory)]
    return command.main([*arguments, *flags])


@pytest.fixture(scope="module", params=KINDS)
def finished_search(request, tmp_path_factory) -> tuple[str, Path]:
    directory = tmp_path_factory.mktemp("search") / request.param
    assert search(directory, request.param, "--confirm", "2") == 0
    return request.param, directory


def rows_of(directory: Path) -> list[dict]:
    return metrics_file.read_metrics(files.batch(directory, 0))


def table(directory: Path) -> list[dict[str, str]]:
    with (directory / candidates.TABLE).open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_an_interrupted_search_continues_exactly(finished_search, tmp_path, monkeypatch):
    kind, whole = finished_search
    stop_requests = iter([False] * 9 + [True] + [False] * 1000)
    monkeypatch.setattr(
        signals.StopRequest,
        "requested",
        property(lambda self: next(stop_requests), lambda self, value: None),
        raising=False,
    )
    directory = tmp_path / "s"
    assert search(directory, kind, "--confirm", "2") == INTERRUPTED
    assert 0 < len(rows_of(directory)) < len(rows_of(whole))
    assert command.main(["--resume", str(directory)]) == 0
    places = (files.batch(directory, 0), files.batch(whole, 0))
    assert timeless_rows(places[0]) == timeless_rows(places[1])
    assert table(directory) == table(whole)
    one, other = (json.loads((x / files.CONFIRMED).read_text()) for x in (directory, whole))
    assert one == other


def test_rows_tell_candidates_and_their_numbers(finished_search):
    kind, directory = finished_search
    rows, table_rows = rows_of(directory), table(directory)
    assert {str(row["candidate"]) for row in rows} == {row["candidate"] for row in table_rows}
    assert len({row["candidate"] for row in rows}) > 5
    for row in rows:
        assert row["candidate"] % 5 == row["member"]
        assert row["seed"] == row["candidate"]
        rate = row["numbers"]["agent.learning_rate"]
        assert 1e-3 <= rate <= 1 or row["candidate"] == 0
    ends = [row for row in rows if row["fate"] == "finished"]
    assert len({row["age"] for row in ends}) == 1
    assert all(row["parent"] is None for row in rows) == (kind == "halving")


def test_the_best_is_a_run_like_any_other(finished_search):
    _, directory = finished_search
    best, rows = saved_runs.load(directory / "best"), rows_of(directory)
    ends = [row for row in rows if row["fate"] == "finished"]
    score = lambda row: -1.0 if row["finished"]["right"] is None else row["finished"]["right"]
    chosen = max(ends, key=score)  # the first of equal ones
    assert best.config.agent.learning_rate == chosen["numbers"]["agent.learning_rate"]
    assert best.config.run.seed == chosen["seed"]
    saved_rows = metrics_file.read_metrics(best.directory)
    steps = [row["steps"] for row in saved_rows]
    assert steps == sorted(set(steps))
    assert steps[-1] == chosen["age"]
    assert saved_rows[0]["updates"] * tiny.PER_UPDATE == steps[0]
    assert best.updates * tiny.PER_UPDATE == chosen["age"]
    summary = json.loads((directory / files.SUMMARY).read_text())
    assert summary["configurations"][0]["rank"] == 1


def test_the_best_configuration_is_trained_from_scratch_on_fresh_seeds(finished_search):
    _, directory = finished_search
    content = json.loads((directory / files.CONFIRMED).read_text())
    assert not set(content["fresh"]["seeds"]) & {int(row["seed"]) for row in table(directory)}
    best = saved_runs.load(directory / "best")
    assert content["values"]["agent.learning_rate"] == best.config.agent.learning_rate
    saved_rows = metrics_file.read_metrics(directory / "confirmation" / "000")
    assert saved_rows[-1]["steps"] == best.config.run.total_steps


def test_a_survivor_of_halving_is_trained_as_a_run_of_its_own(finished_search, tmp_path):
    kind, directory = finished_search
    if kind != "halving":
        return
    best = saved_runs.load(directory / "best")
    settings = dataclasses.replace(best.config.run, directory=str(tmp_path / "alone"))
    config = dataclasses.replace(best.config, run=settings)
    result = run(tiny.make_training(config), config, tiny.PROGRAM.address, "plain")
    losses = lambda x: [row["agent"]["loss"] for row in metrics_file.read_metrics(x)]
    # numbers are traced in float32 here, and constants of the compiler there
    np.testing.assert_allclose(losses(best.directory), losses(result.directory), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_members_that_are_not_finite_are_replaced(kind, tmp_path):
    """Two of three learning rates diverge within a few updates."""
    vary = "agent.learning_rate=log:1e-3..1e30"
    assert search(tmp_path / "s", kind, "--confirm=0", members=6, vary=vary) == 0
    rows = rows_of(tmp_path / "s")
    for slot in range(6):
        slot_rows = [row for row in rows if row["member"] == slot]
        for row, after in pairwise(slot_rows):
            assert (row["candidate"] != after["candidate"]) >= (row["fate"] == "failed")
    failed = [row for row in rows if row["fate"] == "failed"]
    assert failed
    assert all(row["candidate"] != 0 for row in failed)
    best = saved_runs.load(tmp_path / "s" / "best")
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(best.agents[0].params))
    if kind == "population":  # those that failed are copies of what works
        assert any(row["parent"] is not None and row["fate"] != "failed" for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_traced_again_for_replacements(kind, monkeypatch, tmp_path):
    traces, replacements = [], []
    make, original_init = tiny.make_training, Judge.__init__

    def make_counted(config: tiny.Config):
        training = make(config)

        def update(state):
            traces.append("update")
            return training.update(state)

        def init(key):
            traces.append("init")
            return training.init(key)

        return training._replace(init=init, update=update)

    def init_watched(self, *arguments):
        original_init(self, *arguments)
        inner = self.replace
        self.replace = lambda *inputs: replacements.append(1) or inner(*inputs)

    monkeypatch.setattr(Judge, "__init__", init_watched)
    monkeypatch.setattr(tiny, "PROGRAM", tiny.PROGRAM._replace(training=make_counted))
    counts = []
    for name, steps in (("s", 300), ("t", 600)):
        traces.clear()
        replacements.clear()
        flags = ("--confirm=0", f"--run.total-steps={steps}", "--rung=30")
        assert search(tmp_path / name, kind, *flags) == 0
        counts.append((traces.count("update"), traces.count("init"), len(replacements)))
    assert counts[0][:2] == counts[1][:2]
    assert counts[0][2] < counts[1][2]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--search", "halving"], "needs ranges"),
        (["--search", "halving", "--vary", "agent.learning_rate=0.1,0.2"], "draws from a range"),
        (["--search", "halving", "--vary", VARY, "--seeds", "5"], "--seeds has no effect"),
        (["--search", "halving", "--vary", VARY, "--random", "5"], "--random has no effect"),
        (["--search", "halving", "--vary", VARY, "--members", "1"], "two at least"),
        (["--search", "halving", "--vary", VARY, "--rung", "290"], "nothing to compare"),
        (["--search", "halving", "--vary", VARY, "--run.max-episodes", "9"], "max-episodes"),
        (["--search", "halving", "--vary", "agent.learning_rate=-1..1"], "at least 0"),
        (["--search", "population", "--vary", VARY, "--budgets", "2"], "for --search halving"),
        (["--vary", VARY, "--random", "3", "--members", "4"], "without --search"),
        (["--vary", VARY, "--random", "3", "--rung", "40"], "without --search"),
    ],
)
def test_bad_input_is_refused_in_one_line(flags, message, tmp_path, capsys):
    arguments = ["tests.train.tiny", "plain", "--directory", str(tmp_path / "s"), *flags]
    assert command.main(arguments) == REFUSED
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "s").exists()


def test_slots_that_do_not_fit_are_refused_with_the_number_that_does(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(batches, "max_members", lambda program, group: 3)
    assert search(tmp_path / "s", "halving") == REFUSED
    assert "--members 5: 3 fit into memory together" in capsys.readouterr().err


def test_a_saved_plan_says_what_was_asked(finished_search):
    kind, directory = finished_search
    saved = files.read_plan(directory)
    assert saved["options"]["search"] == kind
    assert saved["options"]["members"] == 5
    assert saved["config"] == plain(tiny.PRESETS["plain"].config)
