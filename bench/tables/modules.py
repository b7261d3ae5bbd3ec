"""The lists of modules on the pages of the API reference."""

from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("snake", "two_snake", "allo", "goals", "durotaxis", "vector_field", "gymnax")
SHOWN = {"train.host.command_line.command": "train.host.command_line.command.main"}
"""Shown instead of a module whose usage line Markdown would take for a link."""


def tables() -> dict[str, str]:
    """The folders of the library by the name of the table that lists their modules."""
    folders = sorted({path.parent.relative_to(ROOT) for path in (ROOT / "jaxrl").rglob("*.py")})
    return {"modules_" + "_".join(x.parts[1:] or x.parts): x.as_posix() for x in folders}


def folder_directives(folder: str, inner: bool = False) -> str:
    """mkdocstrings directives for the modules of a folder, and with `inner` of its subfolders."""
    paths = sorted((ROOT / folder).glob("**/*.py" if inner else "*.py"))
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in paths
        if not path.name.startswith("__")
    ]
    return directives(names)


def directives(names: Iterable[str]) -> str:
    """mkdocstrings directives for modules, by name."""
    return "\n\n".join(f"::: {SHOWN.get(name, name)}" for name in names)
