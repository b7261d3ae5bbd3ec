"""The numbers of the record also for TensorBoard, or for Weights & Biases.

The log repeats `metrics.jsonl`, row by row, with the steps as its x axis. When a run begins, is
resumed or returns to a checkpoint, the files of its log are written anew from the rows that the
record then holds, so that no row is there twice, whatever crashed. Numbers are named by their place
in the row: `finished/return`, `agent/loss`, `evaluated/mean`; entry 2 of a list is `agent/duals/2`.
What is not finite is left out.

    tensorboard   event files in `tensorboard/`, with several seeds in `tensorboard/seed_N/`;
                  numbers as float32
    wandb         a run for each seed in `wandb/`, with several seeds as one group. Offline: nothing
                  leaves the machine until `wandb sync` is called. Where WANDB_MODE is set it is
                  respected; online, what was sent stays, and rows of earlier steps are not sent
                  again.
"""

import importlib
import math
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from train.host.errors import UsageError, in_one_line, os_errors_with_path
from train.host.files.whole_files import write_whole

PACKAGES = {"tensorboard": "tensorboardX", "wandb": "wandb"}


class Writer(Protocol):
    """The log of one seed."""

    def add(self, steps: int, numbers: Mapping[str, float]) -> None:
        """Adds the numbers of a row."""

    def flush(self) -> None:
        """What was added can be read by other processes."""

    def close(self) -> None:
        """Nothing is added any more."""


class Log:
    """The log of a run; without `create`, none."""

    def __init__(self, seeds: Sequence[int] = (), create: Callable[[int], Writer] | None = None):
        self._seeds, self._create = seeds, create
        self._writers: dict[int, Writer] = {}

    def begin(self, rows: Callable[[], Sequence[dict[str, Any]]]) -> None:
        """Starts over, with the rows that the record holds now."""
        if self._create:
            self.close()
            self._writers = {seed: self._create(seed) for seed in self._seeds}
            self.append(rows())

    def append(self, rows: Sequence[dict[str, Any]]) -> None:
        if not self._writers:
            return
        for row in rows:
            self._writers[row["seed"]].add(row["steps"], numbers_of(row))
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers = {}


def refuse_missing(kind: str) -> None:
    """Raises UsageError if the package that writes this log is not installed."""
    if kind not in PACKAGES:
        return
    try:
        importlib.import_module(PACKAGES[kind])
    except ImportError as error:
        raise UsageError(
            f"--run.log {kind} needs the package {PACKAGES[kind]} ({in_one_line(error)}): "
            "pip install 'jaxrl[log]'"
        ) from None


@contextmanager
def open_log(
    kind: str, directory: Path, seeds: Sequence[int], config: Mapping[str, Any]
) -> Iterator[Log]:
    """The log of the run in `directory`, for `with`; `config` is its configuration, plain."""

    def create(seed: int) -> Writer:
        if kind == "wandb":
            return WeightsAndBiases(directory, seed if len(seeds) > 1 else None, config)
        folder = directory / "tensorboard"
        return TensorBoard(folder / f"seed_{seed}" if len(seeds) > 1 else folder)

    log = Log(seeds, create) if kind in PACKAGES else Log()
    try:
        yield log
    finally:
        log.close()


def numbers_of(row: Mapping[str, Any]) -> dict[str, float]:
    """`{name: number}` of a row of the record, but for its steps and whose it is."""
    measures = {
        name: x for name, x in row.items() if name not in ("row", "seed", "member", "steps")
    }
    return {name: x for name, x in _leaves(measures, "") if x is not None and math.isfinite(x)}


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        value = dict(enumerate(value))
    if not isinstance(value, Mapping):
        yield name, value
        return
    for key, item in value.items():
        yield from _leaves(item, f"{name}/{key}" if name else str(key))


class TensorBoard:
    """A new event file in a folder, in the place of those that are there.

    Written by this thread, unlike with tensorboardX's `SummaryWriter`: an error of the file system
    is raised, and what was flushed is on the disk.
    """

    def __init__(self, folder: Path):
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto import event_pb2, summary_pb2

        event: Any = event_pb2  # what it holds is made when it is imported
        summary: Any = summary_pb2
        self._folder, self._event, self._summary = folder, event.Event, summary.Summary
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("events.out.tfevents.*"):
            old.unlink()
        with os_errors_with_path(folder):
            self._file = EventsWriter(str(folder / "events"))
            start = event.SessionLog(status=event.SessionLog.START)
            self._write(0, session_log=start)  # who is reading forgets the files that were there

    def add(self, steps: int, numbers: Mapping[str, float]) -> None:
        values = [self._summary.Value(tag=name, simple_value=x) for name, x in numbers.items()]
        with os_errors_with_path(self._folder):
            self._write(steps, summary=self._summary(value=values))

    def _write(self, steps: int, **content: Any) -> None:
        self._file.write_event(self._event(wall_time=time.time(), step=steps, **content))

    def flush(self) -> None:
        with os_errors_with_path(self._folder):
            self._file.flush()

    def close(self) -> None:
        with os_errors_with_path(self._folder):
            self._file.close()


class WeightsAndBiases:
    """A run of Weights & Biases; offline it takes the place of the one that is there."""

    def __init__(self, directory: Path, seed: int | None, config: Mapping[str, Any]):
        mode = os.environ.get("WANDB_MODE", "offline")
        if mode in ("offline", "dryrun"):  # its reports of its own usage are sent even then
            os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        import wandb

        # the run, of one seed, takes the place of its earlier files
        folder, name = directory / "wandb", directory.resolve().name
        label = "" if seed is None else f"-{seed}"
        key = f"{identity(folder)}{label}"
        for old in folder.glob(f"offline-run-*-{key}"):
            (old / f"run-{key}.wandb").unlink(missing_ok=True)
            shutil.rmtree(old, ignore_errors=True)  # their process may still write of its own there
        # nothing is printed or recorded beside the numbers
        quiet_settings = wandb.Settings(
            silent=True,
            console="off",
            disable_git=True,
            x_disable_stats=True,
            x_disable_meta=True,
            x_save_requirements=False,
        )
        try:
            self._run = wandb.init(
                dir=directory,
                project=os.environ.get("WANDB_PROJECT", "jaxrl"),
                id=key,
                name=f"{name}{label}",
                group=None if seed is None else name,
                config=dict(config),
                mode=mode,  # pyright: ignore[reportArgumentType]
                resume="allow" if mode == "online" else None,
                reinit="create_new",  # beside those of the other seeds
                settings=quiet_settings,
            )
        except (wandb.Error, ValueError) as error:
            raise UsageError(f"--run.log wandb: {in_one_line(error)}") from error
        self._sent = self._run.step  # of a run that is continued online

    def add(self, steps: int, numbers: Mapping[str, float]) -> None:
        if steps >= self._sent:
            self._run.log(dict(numbers), step=steps)

    def flush(self) -> None:
        """Another process does it."""

    def close(self) -> None:
        self._run.finish()


def identity(folder: Path) -> str:
    """What the run is known by to Weights & Biases, random and kept in its folder."""
    path = folder / "run_id"
    if not path.is_file():
        folder.mkdir(exist_ok=True)
        write_whole(path, uuid.uuid4().hex[:12])
    return path.read_text(encoding="utf-8").strip()
