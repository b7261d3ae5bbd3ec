"""The speed tables of Durotaxis can be made; speeds themselves are for people to read."""

import json

import pytest

from bench import durotaxis_speed as bench
from bench.durotaxis_cases import step_cases


@pytest.mark.bench
def test_tables_are_made(tmp_path, monkeypatch, capsys):
    def few_cases(colonies, steps, updates):
        policies = ["hold", "small"]
        cases = step_cases("local", colonies[0], 128, "directed", steps, policies)
        return cases + step_cases("unseen", colonies[0], 64, "directed", steps, ["hold"])

    monkeypatch.setattr(bench, "all_cases", few_cases)
    out = tmp_path / "speed.json"
    bench.main(["--colonies=4", "--steps=80", "--repeats=2", f"--out={out}"])
    table, rows = capsys.readouterr().out, json.loads(out.read_bytes())[-1]["rows"]
    assert [len(row["steps_per_second"]) for row in rows] == [2, 2, 2]
    for row, steady in zip(rows, (80, 6, 40), strict=True):
        assert f"| {row['name']} |" in table
        assert steady / 2 < row["nodes"] <= steady
