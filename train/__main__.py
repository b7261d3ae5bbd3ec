"""`python -m train`: the programs and the other commands, a line each."""

import ast
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from train.host.command_line import help_text
from train.host.command_line.command import command
from train.host.command_line.suggestions import suggestion_text
from train.host.errors import UsageError

FOLDER = Path(__file__).parent
START = re.compile(r"`python -m train\.(\w+)[^`]*`")
WIDTH = 16
"""Columns of a name."""


def main(arguments: list[str]) -> int:
    def overview(arguments: list[str]) -> None:
        summaries = dict(commands())
        if name := next(iter(help_text.remove_help_flags(arguments)), ""):
            if name in summaries:
                words = " ".join(arguments[1:])
                raise UsageError(f"write it with a dot: python -m train.{name} {words}".rstrip())
            guess = suggestion_text(name, summaries)
            raise UsageError(
                f"there is no train.{name}{guess}: python -m train lists what there is"
            )
        programs = {name for name in summaries if (FOLDER / name / "program.py").is_file()}
        print("Programs that train, python -m train.NAME [PRESET] [--FLAG VALUE ...]:")
        print(*(line(name, summaries[name]) for name in summaries if name in programs), sep="\n")
        print("\nOther commands, python -m train.NAME:")
        print(
            *(line(name, summaries[name]) for name in summaries if name not in programs), sep="\n"
        )
        print("\nWith --help each tells its presets and flags.")

    return command(overview, arguments)


def commands() -> Iterator[tuple[str, str]]:
    """The modules that can be started, as `(name, what it is for)`: their docstrings say how."""
    for path in sorted(FOLDER.iterdir()):
        source = path / "__init__.py" if path.is_dir() else path
        if path.suffix not in ("", ".py") or not source.is_file() or path == Path(__file__):
            continue
        docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
        about = docstring.partition("\n\n")[0]
        start = START.search(about)
        if start and start[1] == path.stem:
            text = " ".join(START.sub("", about).strip(" :.\n").split())
            yield path.stem, f"{text[0].upper()}{text[1:]}."


def line(name: str, about: str) -> str:
    """A name and what it is for, in a column each."""
    width = min(help_text.WIDEST, shutil.get_terminal_size().columns)
    first, others = f"  {name:{WIDTH}}", " " * (WIDTH + 2)
    return textwrap.fill(
        about, max(width, help_text.NARROWEST), initial_indent=first, subsequent_indent=others
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
