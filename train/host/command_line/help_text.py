"""What `--help` of a command prints: flags by group, each with what it does, in whole lines.

tyro knows the flags and what they do. Its boxes hold all of them, and break lines where a docstring
does; here they are laid out anew, without the flags that have no effect.
"""

import contextlib
import io
import os
import re
import shutil
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple
from unittest import mock

FLAGS, ALL = ("-h", "--help"), "--help-all"
WIDEST, NARROWEST = 100, 40  # columns
ONE_COLUMN = 120
"""Width at which tyro does not put boxes side by side."""
INDENT = 6
MOST = 80
"""Flags that a reader looks through; of more, groups within groups are a line each."""
BOX = re.compile(r"╭─ (.*?) ─*╮\n(.*?)╰─*╯", re.DOTALL)


class Flag(NamedTuple):
    """A flag, or an argument without one."""

    usage: str  # such as "--run.seed INT"
    about: str

    @property
    def names(self) -> list[str]:
        return re.findall(r"(?<!\S)--?[\w.-]+", self.usage)


class Group(NamedTuple):
    """Flags that belong together, such as those of `run`."""

    name: str
    about: list[str]  # paragraphs
    flags: list[Flag]


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for help."""
    return any(x in (*FLAGS, ALL) for x in arguments)


def remove_help_flags(arguments: Sequence[str]) -> list[str]:
    """A command line that does not ask for help."""
    return [x for x in arguments if x not in (*FLAGS, ALL)]


def groups(show_help: Callable[[], object]) -> list[Group]:
    """The flags of a command, of which the call prints the help in boxes, as tyro does."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with (
        contextlib.redirect_stdout(output),
        contextlib.suppress(SystemExit),
        mock.patch.dict(os.environ, COLUMNS=str(ONE_COLUMN)),
    ):
        show_help()
    text = output.buffer.getvalue().decode()  # pyright: ignore[reportAttributeAccessIssue]
    return [group_of(name, body) for name, body in BOX.findall(text)]


def group_of(title: str, body: str) -> Group:
    """The flags in a box."""
    about, flags = [""], []
    for line in (line.strip("│").rstrip() for line in body.splitlines()):
        words = line.strip()
        if set(words) == {"─"}:  # below what the group is
            continue
        if not words:
            about.append("")
        elif line.startswith(" " * INDENT):
            flags[-1] = flags[-1]._replace(about=f"{flags[-1].about} {words}".strip())
        elif re.match(r" (-|[A-Z\[{])", line) and (words[0] == "-" or "positional" in title):
            usage, _, about_flag = words.partition("  ")
            flags.append(Flag(usage, about_flag.strip()))
        elif flags:  # a long usage goes on
            gap = "" if flags[-1].usage.endswith(",") else " "
            flags[-1] = flags[-1]._replace(usage=f"{flags[-1].usage}{gap}{words}")
        else:
            about[-1] = f"{about[-1]} {words}".strip()
    return Group(title.removesuffix(" options"), [x for x in about if x], flags)


def text(
    usage: str,
    about: str,
    flags: Sequence[Group],
    idle: Collection[str] = (),
    most: float = MOST,
) -> str:
    """The help of a command, without the flags that are `idle`.

    With more than `most` flags, groups within groups, such as `env.weights`, are folded.
    """
    width = max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns))
    positional = [f"[{flag.usage}]" for group in flags for flag in group.flags if not flag.names]
    start = " ".join(["usage:", usage, *positional, "[--FLAG VALUE ...]"])
    lines = textwrap.wrap(start, width, subsequent_indent=" " * INDENT)
    for paragraph in about.split("\n\n"):
        lines.append("")
        for item in re.split(r"\n(?=  )", paragraph):
            indent = " " * INDENT if item.startswith("  ") else ""
            lines += textwrap.wrap(item, width, subsequent_indent=indent)
    visible = {
        group.name: [flag for flag in group.flags if not {*flag.names} & {*idle}] for group in flags
    }
    is_long = sum(map(len, visible.values())) > most
    for group in flags:
        is_folded = is_long and "." in group.name
        count = f"{len(visible[group.name])} flags, which {ALL} shows."
        sentences = [*group.about, count] if is_folded else group.about
        heading = f"{group.name}: {' '.join(sentences)}" if sentences else group.name
        if visible[group.name]:
            lines += ["", *textwrap.wrap(heading, width)]
        for flag in () if is_folded else visible[group.name]:
            lines += flag_lines(flag, width)
    return "\n".join(lines)


def flag_lines(flag: Flag, width: int) -> Iterator[str]:
    """A flag and what it does, below each other."""
    choices = re.sub(r"(?<=\w),(?=\w)", ", ", flag.usage)  # so that a line can end there
    yield from textwrap.wrap(
        choices, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )
    indent = " " * INDENT
    yield from textwrap.wrap(
        flag.about, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
