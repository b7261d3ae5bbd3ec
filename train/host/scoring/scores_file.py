"""`--out` of `train.evaluate`: the scores in a JSON file that the user names, too."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from train.host.errors import UsageError
from train.host.files.whole_files import (
    finite_or_null,
    refuse_existing,
    refuse_no_file,
    write_whole,
)

SUFFIX = ".json"


@dataclass(frozen=True, kw_only=True)
class ScoresFile:
    """Flags of a file of scores."""

    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE.json")] = None
    """File that the scores are written to as well."""
    overwrite: bool = False
    """Replace that file if it exists."""


def refuse(options: Any) -> None:
    """Raises UsageError for an `--out` that cannot, or must not, be written; flags of a program
    of one's own need not have it."""
    if not isinstance(options, ScoresFile):
        return
    if options.out is None:
        if options.overwrite:
            raise UsageError("--overwrite has no effect without --out: leave it out")
        return
    if options.out.suffix != SUFFIX:
        raise UsageError(f"--out {options.out} is no {SUFFIX} file, as scores are: name one")
    refuse_no_file(options.out)
    refuse_existing(options.out, options.overwrite)


def write_scores(content: dict[str, Any], *paths: Path | None) -> None:
    """Writes scores into each file, with null for what is not finite; None is no file."""
    text = json.dumps(finite_or_null(content), indent=1) + "\n"
    for path in filter(None, paths):
        write_whole(path, text)
