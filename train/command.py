"""The command line of every entry point: presets, flags, `--resume`, and errors in one line.

python -m train.NAME [PRESET] [--field value ...]
"""

import contextlib
import io
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import tyro

from train import records
from train.config import rebuild
from train.errors import REFUSED, RunError, UsageError
from train.run import run
from train.settings import Training

C = TypeVar("C")


def main(
    name: str,
    presets: Mapping[str, C],
    make_training: Callable[[C], Training],
    arguments: Sequence[str] | None = None,
) -> int:
    """Trains as the command line says; returns the exit code (see `train.errors`).

    The first preset is the default one. A ValueError of `make_training` counts as bad input.
    """

    def train() -> None:
        config, preset = parse(name, presets, sys.argv[1:] if arguments is None else arguments)
        try:
            training = make_training(config)
        except ValueError as error:
            raise UsageError(" ".join(str(error).split())) from error
        run(training, config, name, preset)

    return command(train)


def command(function: Callable[[], object]) -> int:
    """Calls `function`; turns what a user can mend into one line on stderr and an exit code."""
    try:
        function()
    except RunError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def parse(name: str, presets: Mapping[str, C], arguments: Sequence[str]) -> tuple[C, str]:
    """`(config, preset)`; with `--resume DIR`, the configuration saved there is the default."""
    arguments, names = list(arguments), list(presets)
    chosen = arguments.pop(0) if arguments and not arguments[0].startswith("-") else None
    if chosen is not None and chosen not in presets:
        raise UsageError(f"there is no preset {chosen}: choose one of {', '.join(names)}")
    preset = chosen or names[0]
    default = presets[preset]
    if directory := resumed(arguments):
        saved = records.read_config(directory)
        if saved["name"] != name or saved["preset"] not in presets:
            raise UsageError(f"{directory} is a run of {saved['name']}, not of {name}")
        if chosen not in (None, saved["preset"]):
            raise UsageError(f"{directory} has the preset {saved['preset']}: leave out {chosen}")
        preset = saved["preset"]
        default = rebuild(presets[preset], saved["config"])
    program = f"python -m train.{name} [{' | '.join(names)}]"
    return parse_flags(program, default, arguments), preset


def resumed(arguments: Sequence[str]) -> str | None:
    """The value of `--resume`, which is needed before the other flags can be read."""
    for flag, value in zip(arguments, [*arguments[1:], ""], strict=True):
        if flag == "--resume" and value:
            return value
        if flag.startswith("--resume="):
            return flag.partition("=")[2]
    return None


def parse_flags(program: str, default: C, arguments: Sequence[str]) -> C:
    """tyro's reading of the flags; its boxed complaints are unpacked into one line."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                tyro.conf.AvoidSubcommands[type(default)],
                default=default,
                args=arguments,
                prog=program,
            )
    except SystemExit as stop:
        if stop.code != REFUSED:
            raise
        raise UsageError(f"{one_line(complaint.getvalue())}; --help lists all flags") from None


def one_line(box: str) -> str:
    """What stands in the frame that tyro draws, up to its first rule, and the flags it suggests."""
    lines = [line.strip("│ ") for line in box.splitlines() if not line.startswith(("╭", "╰"))]
    rules = [i for i, line in enumerate(lines) if set(line) == {"─"}] or [len(lines)]
    message = " ".join(lines[: rules[0]])
    if any(line.startswith("Perhaps you meant") for line in lines):
        flags = [m[0] for line in lines[rules[0] :] if (m := re.match(r"--[\w.-]+", line))]
        message += f" (perhaps {' or '.join(dict.fromkeys(flags))})"
    return message
