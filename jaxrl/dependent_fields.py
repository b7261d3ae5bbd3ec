"""Fields of a configuration that have no effect together with others, declared beside a field.

    @struct.dataclass
    class Config:
        loss: Literal["huber", "squared"] = "huber"
        huber_delta: Annotated[Positive, needs("loss", "huber")] = 1.0
        anneal: Annotated[bool, sets("agent.anneal_updates")] = True
        agent: Annotated[ppo.Config, never("there are none").of("component_weights")] = ppo.Config()

Names are those of fields and properties of the dataclass that declares them, with dots for nested
ones, so that they mean the same wherever that dataclass is nested. `{}` in a text is its place,
such as "agent.". Of several rules that leave a field without effect the first one says why. A rule
of a nested configuration is one of all its fields, unless `of` names some, and goes before those
within it; `sets` goes after all others.
"""

import dataclasses
import typing
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Rule:
    """When a field has an effect, and what is said where it has none."""

    has_effect: Callable[[Any], bool]
    """Of the dataclass that declares the field."""
    needed: str = ""
    """What would give it one, for "it needs ..."."""
    why: str = ""
    """What is said instead."""
    parts: tuple[str, ...] = ()
    """The parts of a nested configuration that the rule is about; none: all of it."""

    def of(self, *parts: str) -> "Rule":
        """The rule for these parts of the nested configuration that it stands beside."""
        return dataclasses.replace(self, parts=parts)

    def __or__(self, other: "Rule") -> "Rule":
        """The rule of a field that has an effect as soon as one of both gives it one."""
        return Rule(
            lambda config: self.has_effect(config) or other.has_effect(config),
            f"{self.needed} or {other.needed}",
            self.why or other.why,
            self.parts,
        )

    def parts_of(self, name: str) -> list[str]:
        """The fields that the rule is about, where it stands beside the field `name`."""
        return [f"{name}.{x}" for x in self.parts] or [name]

    def reason(self, place: str) -> str:
        """What is said, where the dataclass that declares the field is at `place`."""
        return (self.why or f"it needs {self.needed}").replace("{}", place)


@dataclasses.dataclass(frozen=True)
class Setting:
    """Fields that have no effect because the annotated one sets them."""

    fields: tuple[str, ...]
    why: str
    always: bool

    def applies(self, value: Any) -> bool:
        return self.always or not (value is None or value is False)


def needs(field: str, *values: Any, why: str = "") -> Rule:
    """It has an effect where `field` is one of the values; without values, where that is set.

    Set is what is neither None nor False, 0 or empty.
    """
    needed = " ".join(["{}" + field, " or ".join(map(str, values))]).strip()
    return Rule(partial(_is_one_of, field, values), needed, why)


def unless(field: str, *values: Any, why: str) -> Rule:
    """It has no effect where `field` is one of the values; without values, where that is set."""
    return Rule(lambda config: not _is_one_of(field, values, config), why=why)


def never(why: str) -> Rule:
    """It has no effect, as in a program that sets it or has no use for it."""
    return Rule(lambda config: False, why=why)


def sets(*fields: str, why: str = "", always: bool = False) -> Setting:
    """`fields` have no effect, as this one sets them: where it is not None or False, or always."""
    return Setting(fields, why, always)


def idle_fields(config: Any, place: str = "") -> dict[str, str]:
    """The fields that have no effect with the others, by dotted name after `place`, and why."""
    reasons: dict[str, str] = {}
    for name, reason in chain(
        _reasons_of_rules(config, place), _reasons_of_settings(config, place)
    ):
        reasons.setdefault(name, reason)
    return reasons


def _reasons_of_rules(config: Any, place: str) -> Iterator[tuple[str, str]]:
    """`(dotted name, reason)`: of each field what its own rules say, then what those within say."""
    for name, rules in _declarations(config, Rule):
        for rule in rules:
            parts = [] if rule.has_effect(config) else rule.parts_of(name)
            for part in parts:
                yield from _reasons_below(config, part, place, rule.reason(place))
        if dataclasses.is_dataclass(value := getattr(config, name)):
            yield from idle_fields(value, f"{place}{name}.").items()


def _reasons_of_settings(config: Any, place: str) -> Iterator[tuple[str, str]]:
    """The same of fields that other ones set."""
    for name, settings in _declarations(config, Setting):
        for setting in settings:
            fields = setting.fields if setting.applies(getattr(config, name)) else ()
            reason = (setting.why or f"{{}}{name} sets it").replace("{}", place)
            for field in fields:
                yield from _reasons_below(config, field, place, reason)


def _declarations(config: Any, kind: type[T]) -> Iterator[tuple[str, list[T]]]:
    """Every field and what of one kind it is annotated with."""
    hints = typing.get_type_hints(type(config), include_extras=True)
    for field in dataclasses.fields(config):
        metadata = getattr(hints[field.name], "__metadata__", ())
        yield field.name, [x for x in metadata if isinstance(x, kind)]


def _reasons_below(config: Any, name: str, place: str, reason: str) -> Iterator[tuple[str, str]]:
    """`(dotted name, reason)` of a field, or of all fields of the configuration that it holds."""
    value = attrgetter(name)(config)
    if not dataclasses.is_dataclass(value):
        yield f"{place}{name}", reason
        return
    for field in dataclasses.fields(value):
        yield from _reasons_below(config, f"{name}.{field.name}", place, reason)


def _is_one_of(field: str, values: tuple, config: Any) -> bool:
    value = attrgetter(field)(config)
    return value in values if values else bool(value)
