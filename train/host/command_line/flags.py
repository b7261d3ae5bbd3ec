"""Flags of a command line as a dataclass, read by tyro: mistakes in one line, and `--help`."""

import contextlib
import inspect
import io
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar, cast

import tyro

from train.host.command_line import help_text, suggestions
from train.host.compilation import compilation_cache
from train.host.errors import REFUSED, UsageError
from train.host.numbers import FLAGS
from train.host.plain_config import flag, flatten, plain

C = TypeVar("C")
UNKNOWN = "Unrecognized option"
"""How tyro begins to complain of words that it does not know."""
SWITCH_VALUES = ("true", "false", "on", "off", "yes", "no", "1", "0")
"""What other command lines have after a switch."""
COMMON = f"""Also, with every command:
  {compilation_cache.HELP}
  --help-all: show all flags, also those that have no effect with the others."""


def parse_flags(
    program: str,
    default: C | type[C],
    arguments: Sequence[str],
    about: str | None = None,
    idle: Callable[[C], Collection[str]] = lambda options: (),
) -> C:
    """The dataclass that the flags describe. Raises UsageError for others.

    `default` is an instance that holds the defaults, or a dataclass in which all fields have one.
    Help, after which the process ends, leaves out the flags that are `idle` with the others.
    """

    def parse(words: Sequence[str]) -> C:
        if isinstance(default, type):
            return tyro.cli(cast(type[C], default), args=words, prog=program, registry=FLAGS)
        kind = tyro.conf.AvoidSubcommands[type(default)]
        return tyro.cli(kind, default=default, args=words, prog=program, registry=FLAGS)

    if help_text.asks_for_help(arguments):
        options = default
        with contextlib.suppress(UsageError), one_line_usage_errors(parse, arguments):
            options = parse(help_text.remove_help_flags(arguments))
        hidden = () if help_text.ALL in arguments or isinstance(options, type) else idle(options)
        kind = default if isinstance(default, type) else type(default)
        most = math.inf if help_text.ALL in arguments else help_text.MOST
        show_help(program, about or inspect.getdoc(kind) or "", parse, hidden, most)
    with one_line_usage_errors(parse, arguments):
        options = parse(arguments)
    refuse_split_values(options, arguments)
    return options


def refuse_split_values(options: Any, arguments: Sequence[str]) -> None:
    """Raises UsageError for a repeated flag of several values, of which the last alone hold."""
    words = [word.partition("=")[0].replace("_", "-") for word in arguments]
    for name, value in flatten(plain(options)).items():
        count = words.count(flag(name))
        if isinstance(value, list) and count > 1:
            raise UsageError(
                f"{flag(name)} is given {count} times, and the last alone would hold; expected all "
                f"values after one: {flag(name)} A B"
            )


def parse_known(program: str, options: type[C], arguments: Sequence[str]) -> tuple[C, list[str]]:
    """`parse_flags` for a part of the flags, and the arguments that are left."""

    def parse(words: Sequence[str]) -> tuple[C, list[str]]:
        return tyro.cli(options, args=words, prog=program, return_unknown_args=True, registry=FLAGS)

    if help_text.asks_for_help(arguments):
        show_help(program, inspect.getdoc(options) or "", parse)
    with one_line_usage_errors(parse, arguments):
        return parse(arguments)


def show_help(
    program: str,
    about: str,
    parse: Callable[[Sequence[str]], object],
    hidden: Collection[str] = (),
    most: float = help_text.MOST,
) -> None:
    """Prints what a command can be told, and ends the process."""
    flags = help_text.groups(lambda: parse(["--help"]))
    print(help_text.text(program, f"{about}\n\n{COMMON}", flags, hidden, most))
    raise SystemExit(0)


@contextlib.contextmanager
def one_line_usage_errors(
    parse: Callable[[Sequence[str]], Any], arguments: Sequence[str]
) -> Iterator[None]:
    """Raises UsageError with what tyro says in a box before it ends the process."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            yield
    except SystemExit as stop:
        if stop.code != REFUSED:
            raise
        message = one_line(complaint.getvalue())
        groups = help_text.groups(lambda: parse(["--help"]))
        flag_names = [name for group in groups for flag in group.flags for name in flag.names]
        if message.startswith(UNKNOWN):
            refuse_valued_switch(arguments, flag_names)
        raise UsageError(
            f"{message}{suggestion(message, flag_names)}; {help_text.ALL} lists all flags"
        ) from None


def refuse_valued_switch(arguments: Sequence[str], flag_names: Collection[str]) -> None:
    """Raises UsageError for a switch that a value follows, as `--best True` or `--best=True`."""
    words = [part for word in arguments for part in word.partition("=")[::2] if part]
    for word, value in pairwise(words):
        name = word.replace("_", "-")
        start, last = name[: name.rfind(".") + 1] or "--", name.rpartition(".")[2].lstrip("-")
        is_off = last.startswith("no-")
        opposite = start + (last.removeprefix("no-") if is_off else f"no-{last}")
        if value.lower() in SWITCH_VALUES and {name, opposite} <= {*flag_names}:
            raise UsageError(
                f"{name} takes no value, and is followed by {value}: leave that out; {opposite} "
                f"turns it {'on' if is_off else 'off'}"
            )


def suggestion(message: str, flag_names: Collection[str]) -> str:
    """What may have been meant by the first flag that nobody knows, if a message is about one."""
    unknown = re.search(rf"^{UNKNOWN}.*?(--[\w.-]+)", message)
    return suggestions.suggestion_text(unknown[1], flag_names) if unknown else ""


def one_line(box: str) -> str:
    """The message in tyro's box, up to its first rule."""
    lines = [line.strip("│ ") for line in box.splitlines()]
    sections, is_rule = [""], lambda line: set(line) <= set("─-╰╯")
    for line in lines[1:]:  # the first is the title
        if is_rule(line):
            sections.append("")
        else:
            sections[-1] += f" {line}"
    return next(section for section in sections if section).strip()
