"""Configurations as plain data: to and from YAML, differences, fields by dotted name."""

import dataclasses
import enum
import typing
from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from jaxrl import checks
from train.host.errors import UsageError
from train.host.numbers import convert_value

C = TypeVar("C")
MOST_NAMED = 8
"""Fields that a message names, at most."""


def check_options(options: Any, source: str = "") -> None:
    """Raises UsageError, which names the flag, for the first option that is not as declared.

    `source` is the file that they come from, if from one.
    """
    try:
        checks.config(options)
    except checks.OutOfRange as error:
        prefix = f"{source}: " if source else ""
        raise UsageError(f"{prefix}{flag(error.name)} {' '.join(error.problem.split())}") from error


def flag(name: str, config: Any = None) -> str:
    """The flag of a field, by its dotted name, as `--help` spells it.

    `config` is what the field is of: there it may be declared to go without the names before it.
    """
    if config is not None and _has_short_flag(config, name):
        name = name.rpartition(".")[2]
    return f"--{name.replace('_', '-')}"


def _has_short_flag(config: Any, name: str) -> bool:
    """Whether a field is declared with `prefix_name=False`."""
    place, _, last = name.rpartition(".")
    owner = field_of(config, place) if place else config
    hint = typing.get_type_hints(type(owner), include_extras=True)[last]
    return any(getattr(x, "prefix_name", None) is False for x in getattr(hint, "__metadata__", ()))


def plain(value: Any) -> Any:
    """Nested dataclasses as dicts and tuples as lists, for `yaml.safe_dump` and JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, bool | int | float | str | None):
        return value
    if hasattr(value, "dtype"):
        return np.asarray(value).tolist()
    raise TypeError(f"a configuration holds numbers, strings and dataclasses; not {value!r}")


def rebuild(like: C, saved: Any, path: str = "") -> C:
    """The dataclass that `plain` turned into `saved`; `like` is any instance of its type.

    A field that is missing was added since: it gets its default, which must be what was done
    before there was that field. Raises UsageError where fields are unknown, or a value is refused.
    """
    fields = {x.name: x for x in dataclasses.fields(like)}  # pyright: ignore[reportArgumentType]
    saved_names = set(map(str, saved)) if isinstance(saved, dict) else {str(saved)}
    missing = {name for name in fields.keys() - saved_names if not _has_default(fields[name])}
    if wrong := missing | (saved_names - fields.keys()):
        names = ", ".join(f"{path}{_printable_name(name)}" for name in sorted(wrong)[:MOST_NAMED])
        raise UsageError(f"the saved configuration is of another version: see {names}")
    kinds = typing.get_type_hints(type(like), include_extras=True)
    values = {n: _value(getattr(like, n), kinds[n], saved[n], f"{path}{n}.") for n in saved_names}
    try:
        return type(like)(**values)  # pyright: ignore[reportReturnType]
    except (TypeError, ValueError) as error:
        raise UsageError(f"the saved configuration cannot be used: {path}{error}") from error


def _value(like: Any, kind: Any, saved: Any, path: str) -> Any:
    """The value of a field, of the declared `kind`; `like` is that of another instance."""
    if dataclasses.is_dataclass(like):
        return rebuild(like, saved, path)
    if isinstance(like, enum.Enum):
        return type(like)[saved]
    if isinstance(like, bool) == isinstance(saved, bool) and plain(like) == saved:
        return like  # of the same kind of number, too, or a program would be another one
    return convert_value(kind, saved)


def _printable_name(name: str) -> str:
    """A name as it is or, if it could not be that of a field, as Python spells it."""
    return name if name.isidentifier() else repr(name[:40])


def _has_default(field: dataclasses.Field) -> bool:
    nothing = dataclasses.MISSING
    return field.default is not nothing or field.default_factory is not nothing


def differences(saved: Any, current: Any, ignored: Collection[str] = ()) -> list[str]:
    """One `field: saved -> current` for each dotted field that differs and is not ignored."""
    old, new = flatten(saved), flatten(current)
    return [
        f"{name}: {old.get(name, 'absent')} -> {new.get(name, 'absent')}"
        for name in sorted(old.keys() | new.keys())
        if name not in ignored and old.get(name, _ABSENT) != new.get(name, _ABSENT)
    ]


_ABSENT = object()


def names_below(config: Any, prefix: str) -> list[str]:
    """The dotted names, after `prefix`, of all fields of a configuration, nested ones included."""
    return list(flatten(plain(config), prefix))


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """`{dotted name: value}` of nested dicts, as `plain` makes them of a configuration."""
    if not isinstance(value, dict):
        return {prefix: value}
    leaves = {}
    for name, item in value.items():
        leaves |= flatten(item, f"{prefix}.{name}" if prefix else name)
    return leaves


def numbers(config: Any, path: str = "") -> dict[str, float]:
    """`{dotted name: value}` of the float leaves of a configuration: what a sweep may vary.

    Static fields (`pytree_node=False` in their metadata) and `run`, whose numbers alter no update,
    are left out.
    """
    leaves: dict[str, float] = {}
    for field in dataclasses.fields(config):
        value, name = getattr(config, field.name), f"{path}{field.name}"
        if not field.metadata.get("pytree_node", True) or name == "run":
            continue
        if isinstance(value, float):
            leaves[name] = value
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            leaves |= numbers(value, f"{name}.")
    return leaves


def has_kinds_of(config: Any, like: Any) -> bool:
    """Whether two configurations are made of the same classes, so that `rebuild` makes either."""
    parts = (field.name for field in dataclasses.fields(like))
    return type(config) is type(like) and all(
        has_kinds_of(getattr(config, name), getattr(like, name))
        for name in parts
        if dataclasses.is_dataclass(getattr(like, name))
    )


def field_of(config: Any, name: str) -> Any:
    """The field of a dotted name."""
    for part in name.split("."):
        config = getattr(config, part)
    return config


def with_field(config: C, name: str, value: Any) -> C:
    """`config` with another value of the field of a dotted name; the value may be traced."""
    head, _, tail = name.partition(".")
    inner = with_field(getattr(config, head), tail, value) if tail else value
    return dataclasses.replace(config, **{head: inner})  # pyright: ignore
