"""The files of a sweep's directory.

`sweep.yaml` says what is trained: program, preset, configuration, what is varied, and the members
of each batch. `batches/000/` and so on hold a record and checkpoints each, like a run, and once
trained `scores.json`; `confirmation/` the same of the configuration that was chosen, on other
seeds, with the members of each batch in `batches.json`. `members.csv` is a table of all members,
`summary.json` one of the configurations, and `best/` a run directory of the best member.
"""

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from train.host.errors import UsageError, in_one_line
from train.host.files.run_directory import BEST, SWEEP_PLAN, RunDirectory
from train.host.files.whole_files import finite_or_null, write_whole

PLAN, SCORES, TABLE = SWEEP_PLAN, "scores.json", "members.csv"
CONFIRMATION, BATCHES = "confirmation", "batches.json"
SUMMARY, CONFIRMED = "summary.json", "confirmation.json"


def batch(directory: Path, index: int) -> Path:
    return directory / "batches" / f"{index:03d}"


def confirmation_batch(directory: Path, index: int) -> Path:
    return directory / CONFIRMATION / f"{index:03d}"


def confirmation_members(directory: Path, split: Callable[[], list[list[int]]]) -> list[list[int]]:
    """The members of each batch of the confirmation, as they were first split."""
    path = directory / CONFIRMATION / BATCHES
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        write_json(path, split())
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise UsageError(
            f"{path} is damaged ({in_one_line(error)}): delete {path.parent} to confirm again"
        ) from None


def best(directory: Path) -> RunDirectory:
    """The run of the best member."""
    return RunDirectory(directory / BEST)


def write_plan(directory: Path, content: dict[str, Any]) -> None:
    write_whole(directory / PLAN, yaml.safe_dump(content, sort_keys=False))


def read_plan(directory: Path) -> dict[str, Any]:
    """The content of `sweep.yaml`. Raises UsageError, in one line, if there is none."""
    path = directory / PLAN
    if not path.is_file():
        raise UsageError(f"{directory} is not the directory of a sweep: it holds no {PLAN}")
    keys = ("program", "preset", "config", "options", "batches")
    try:
        content = yaml.safe_load(path.read_bytes())
        return {key: content[key] for key in keys}
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is not the plan of a sweep: {in_one_line(error)}") from None


def write_json(path: Path, content: Any) -> None:
    """Replaces a JSON file in one step; NaN and infinity become null."""
    write_whole(path, json.dumps(finite_or_null(content), indent=1) + "\n")


def read_scores(directory: Path) -> list[dict[str, Any]] | None:
    """The scores of a batch; None if it is not trained yet."""
    path = directory / SCORES
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise UsageError(f"{path} is damaged ({in_one_line(error)}): delete it") from None


def write_table(directory: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Writes `members.csv`."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(directory / TABLE, text.getvalue())
