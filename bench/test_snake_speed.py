"""The speed table of Snake can be made; speeds themselves are for people to read."""

import json
import subprocess
import sys

import pytest


@pytest.mark.bench
def test_speed_table_is_made(tmp_path):
    out = tmp_path / "speed.json"
    # A process of its own: Jumanji does not pass the strict modes of our tests.
    command = [sys.executable, "-m", "bench.snake_speed", f"--out={out}"]
    command += ["--games=32", "--steps=20", "--repeats=2"]
    table = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
    record = json.loads(out.read_bytes())[-1]
    assert record["versions"]["jax"]
    for name, runs in record["steps_per_second"].items():
        assert f"| {name} |" in table
        assert len(runs) == 2
        assert min(runs) > 0
