"""The command line of every entry point: presets, flags, `--resume`, and errors in one line.

python -m train.NAME [PRESET] [--field value ...]
"""

import contextlib
import io
import itertools
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

import tyro

from train import records
from train.config import rebuild
from train.errors import QUIT, REFUSED, RunError, UsageError
from train.run import Result, run
from train.settings import Training

C = TypeVar("C")


def main(
    name: str,
    presets: Mapping[str, C],
    make_training: Callable[[C], Training],
    finish: Callable[[C, Result], object] = lambda config, result: None,
    arguments: Sequence[str] | None = None,
) -> int:
    """Trains as the command line says; returns the exit code (see `train.errors`).

    The first preset is the default one. A ValueError of `make_training` counts as bad input.
    `finish` is called with a run that came to its end, to draw pictures of it, say.
    """

    def train() -> None:
        config, preset = parse(name, presets, sys.argv[1:] if arguments is None else arguments)
        try:
            training = make_training(config)
        except ValueError as error:
            raise UsageError(" ".join(str(error).split())) from error
        finish(config, run(training, config, name, preset))

    return command(train)


def command(function: Callable[[], object]) -> int:
    """Calls `function`; turns what a user can mend into one line on stderr and an exit code."""
    try:
        function()
    except RunError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:  # before there was anything to save
        return QUIT
    except BrokenPipeError:  # the reader has gone, as in `--help | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains later
        return QUIT
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
    for flag, value in itertools.zip_longest(arguments, arguments[1:]):
        if flag == "--resume" and value:
            return value
        if flag.startswith("--resume="):
            return flag.partition("=")[2]
    return None


def parse_flags(program: str, default: C | type[C], arguments: Sequence[str]) -> C:
    """tyro's reading of the flags; its boxed complaints are unpacked into one line.

    `default` is an instance that holds the defaults, or a dataclass that has them all.
    """
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            if isinstance(default, type):
                return tyro.cli(cast(type[C], default), args=arguments, prog=program)
            kind = tyro.conf.AvoidSubcommands[type(default)]
            return tyro.cli(kind, default=default, args=arguments, prog=program)
    except SystemExit as stop:
        if stop.code != REFUSED:
            raise
        raise UsageError(f"{one_line(complaint.getvalue())}; --help lists all flags") from None


def one_line(box: str) -> str:
    """What stands in tyro's frame before its first rule, and the flags that it suggests."""
    lines = [line.strip("│ ") for line in box.splitlines()]
    sections, is_rule = [""], lambda line: set(line) <= set("─-╰╯")
    for line in lines[1:]:  # the first is the title
        if is_rule(line):
            sections.append("")
        else:
            sections[-1] += f" {line}"
    message, *rest = [section.strip() for section in sections if section]
    suggested = [section for section in rest if section.startswith("Perhaps you meant")]
    flags = re.findall(r"(?<!\S)--[\w.-]+", " ".join(suggested))
    return f"{message} (perhaps {' or '.join(flags)})" if flags else message
