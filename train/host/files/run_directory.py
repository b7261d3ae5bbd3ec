"""What is on disk of a run.

`config.yaml` holds the name and preset of the run and every field of its configuration. For
`metrics.jsonl` see `train.host.files.metrics_file`, for `checkpoints/` `jaxrl.checkpoint`, for
`best/` and `eval.json` `train.host.scoring`, for `snapshots/` and `samples/`
`train.host.files.snapshots`.
"""

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from train.host.errors import UsageError, in_one_line
from train.host.files.whole_files import partial_file, refuse_unwritable, write_whole
from train.host.plain_config import plain

CONFIG, METRICS, EVALUATION = "config.yaml", "metrics.jsonl", "eval.json"
SWEEP_PLAN = "sweep.yaml"  # of the directory of a sweep
CHECKPOINTS, BEST, SNAPSHOTS, SAMPLES = "checkpoints", "best", "snapshots", "samples"
RUNS = "runs"
"""The folder of the runs that no directory is named for."""
ADVICE = "give a directory that a run of train has written, such as runs/NAME-DATE"


@dataclass(frozen=True)
class RunDirectory:
    """The directory of a run: where each of its files lies, and its configuration.

    None of them has to exist: a run that is beginning has none, that of a policy never has.
    """

    path: Path

    @classmethod
    def create(cls, directory: str, name: str) -> "RunDirectory":
        """A fresh one, `runs/NAME-YYYYmmdd-HHMMSS` unless given; see `refuse_unusable`."""
        cls.refuse_unusable(directory)
        if not directory:
            return cls(create_dated(Path(RUNS), name))
        path = Path(directory)
        path.mkdir(parents=True, exist_ok=True)
        return cls(path)

    @classmethod
    def refuse_unusable(cls, directory: str) -> None:
        """Raises UsageError if `create` cannot make it, or if it is in use. Makes nothing."""
        path = Path(directory or RUNS)
        if path.is_file():
            raise UsageError(f"{path} is a file: name a directory that is new or empty")
        if directory and path.exists() and not (path.is_dir() and _has_nothing(path)):
            raise UsageError(f"{path} exists already: name another, or continue it with --resume")
        refuse_unwritable(path, "name a directory in a folder that can")

    @classmethod
    def open(cls, path: str | Path) -> "RunDirectory":
        """The directory of a run that has begun. Raises UsageError if no run has."""
        directory = cls(Path(path))
        if not directory.has_config:
            if (directory.path / SWEEP_PLAN).is_file():
                raise UsageError(f"{path} is a sweep, not a run: {directory._run_of_sweep()}")
            raise UsageError(f"{path} is not a run directory (no {CONFIG} in it): {ADVICE}")
        return directory

    def _run_of_sweep(self) -> str:
        """Where the directory of a sweep has a run."""
        if RunDirectory(self.best).has_config:
            return f"give {self.best}, the run of its best member"
        return f"the run of its best member will be in {self.best}, once all are trained and scored"

    def __str__(self) -> str:
        return str(self.path)

    @property
    def has_config(self) -> bool:
        """Whether a run has begun here."""
        return (self.path / CONFIG).is_file()

    def config(self) -> dict[str, Any]:
        """`{"name", "preset", "config"}`, the last as plain data. Raises UsageError."""
        return read_config_file(self.path / CONFIG)

    def write_config(self, name: str, preset: str, config: Any) -> None:
        """Writes what `config` reads; `config` is a dataclass."""
        content = {"name": name, "preset": preset, "config": plain(config)}
        write_whole(self.path / CONFIG, yaml.safe_dump(content, sort_keys=False))

    @property
    def metrics(self) -> Path:
        """The record: a row per seed and chunk."""
        return self.path / METRICS

    @property
    def checkpoints(self) -> Path:
        """The folder of whole states."""
        return self.path / CHECKPOINTS

    @property
    def best(self) -> Path:
        """The folder of the policies that were best while training, and of their evaluation."""
        return self.path / BEST

    @property
    def evaluation(self) -> Path:
        """The scores of the newest agents."""
        return self.path / EVALUATION

    @property
    def snapshots(self) -> Path:
        """The folder of what the run looked like from time to time."""
        return self.path / SNAPSHOTS

    @property
    def samples(self) -> Path:
        """The folder of what was sampled."""
        return self.path / SAMPLES

    def pictures(self) -> list[Path]:
        """What has been drawn, in the order of the names."""
        return sorted(self.path.glob("*.png"))


def _has_nothing(directory: Path) -> bool:
    """Whether a directory is empty, or a run was killed before it had written its configuration."""
    early_files = {METRICS, partial_file(Path(CONFIG)).name}
    return all(
        path.name in early_files and (path.name.startswith(".") or path.stat().st_size == 0)
        for path in directory.iterdir()
    )


def create_dated(parent: Path, name: str) -> Path:
    """A new folder `NAME-YYYYmmdd-HHMMSS` in `parent`, with `-2`, `-3`, ... if that exists."""
    base = parent / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    for attempt in range(1, 1000):
        path = base if attempt == 1 else base.with_name(f"{base.name}-{attempt}")
        try:
            path.mkdir(parents=True)
            return path
        except FileExistsError:  # made by another process in the same second
            continue
    raise UsageError(f"{base} and 998 more exist already: remove some")


def resume_flag(directory: str | Path | RunDirectory) -> str:
    """How a run in a directory goes on, as a shell takes it."""
    return f"--resume {shell_word(directory)}"


def shell_word(path: str | Path | RunDirectory) -> str:
    """A path as one word of a command."""
    return shlex.quote(str(path))


def read_config_file(path: str | Path) -> dict[str, Any]:
    """`RunDirectory.config` of a file like `config.yaml`, or of a run directory."""
    path = Path(path)
    if path.is_dir():
        return RunDirectory.open(path).config()
    if not path.is_file():
        raise UsageError(f"there is no file {path}: give the {CONFIG} of a run, or its directory")
    try:
        content = yaml.safe_load(path.read_bytes())
        entries = {key: content[key] for key in ("name", "preset", "config")}
        words = (entries["name"], entries["preset"])
        if not all(isinstance(x, str) and x.split() == [x][: len(x)] for x in words):
            raise TypeError("name and preset must be words")
        return entries
    except (yaml.YAMLError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = in_one_line(error)
        raise UsageError(f"{path} is not the configuration of a run ({reason}): {ADVICE}") from None
