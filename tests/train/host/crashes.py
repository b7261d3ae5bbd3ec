"""What a crash leaves of a run, made from one that came to its end."""

import shutil
from pathlib import Path

from jaxrl import checkpoint
from train.host.records import CHECKPOINTS


def after_the_first_checkpoint(finished: Path, directory: Path) -> None:
    """Makes `directory`: `finished`, as if it had been killed after the first of two checkpoints.

    Its record goes on to the end, for rows are written sooner than the next checkpoint.
    """
    directory.mkdir()
    for name in ("config.yaml", "metrics.jsonl"):
        shutil.copy(finished / name, directory)
    shutil.copytree(finished / CHECKPOINTS, directory / CHECKPOINTS)
    first, last = sorted(checkpoint.steps(directory / CHECKPOINTS))
    for path in (directory / CHECKPOINTS).iterdir():
        if str(last) in path.name:
            shutil.rmtree(path)
    assert checkpoint.steps(directory / CHECKPOINTS) == [first]
