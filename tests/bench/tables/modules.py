"""The lists of modules on the pages of the API reference."""

from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ("snake", "two_snake", "allo", "durotaxis", "vector_field", "gymnax")
SHOWN = {"train.host.command": "train.host.command.main"}
"""Shown instead of a module whose usage line Markdown would take for a link."""


def of_folder(folder: str, inner: bool = False) -> str:
    """mkdocstrings directives for the modules of a folder, and with `inner` of its subfolders."""
    paths = sorted((ROOT / folder).glob("**/*.py" if inner else "*.py"))
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in paths
        if not path.name.startswith("__")
    ]
    return shown(names)


def shown(names: Iterable[str]) -> str:
    """mkdocstrings directives for modules, by name."""
    return "\n\n".join(f"::: {SHOWN.get(name, name)}" for name in names)
