"""How numbers that a sweep varies are called and written in tables and pictures."""

from collections.abc import Iterable, Mapping
from typing import Any

from train.host.numbers import digits_text

LONGEST = 48
"""Characters of a label; beyond them names are shortened, and an index is given."""


def plain_names(dotted: Iterable[str]) -> dict[str, str]:
    """Each dotted name in plain words: its last part, and as many before it as tell them apart.

    `agent.learning_rate` is "learning rate", unless there is a `critic.learning_rate`, too.
    """
    parts = {name: name.replace("-", "_").split(".") for name in dotted}
    names = {}
    for name, own in parts.items():
        others = [other for other in parts.values() if other != own]
        depth = next(
            (d for d in range(1, len(own)) if all(x[-d:] != own[-d:] for x in others)), len(own)
        )
        names[name] = " ".join(own[-depth:]).replace("_", " ")
    return names


def text_of(value: Any) -> str:
    """A value in few characters: switches as on or off, four digits of a number, several as in a
    flag, with spaces between them.

    Those before the point are all there, unless an exponent hides none: 1234567, but 2.5e6.
    """
    if isinstance(value, tuple | list):
        return " ".join(map(text_of, value)) or "none"
    value = value.item() if hasattr(value, "item") else value  # of numpy
    if isinstance(value, bool):
        return "on" if value else "off"
    if not isinstance(value, float):
        return str(value)
    short = f"{value:.3e}"
    is_round = abs(value) >= 1e6 and float(short) == value
    text = short if 0 < abs(value) < 1e-3 or is_round else digits_text(value)
    mantissa, _, exponent = text.partition("e")
    return f"{float(mantissa):g}e{int(exponent)}" if exponent else mantissa


def distinct_values(values: Iterable[Any]) -> dict[str, Any]:
    """Each different value once, by how it is written: in full if four digits hide a difference."""
    unique = {repr(value): value for value in values}.values()
    short = {text_of(value): value for value in unique}
    return short if len(short) == len(unique) else {str(value): value for value in unique}


def label(index: int, values: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """What configuration `index` varied, in one line of at most `LONGEST` characters.

    Of values without a name nothing is said. One that does not fit has short names, and begins
    with the index under which tables and `content` have it.
    """
    entries = {names[name]: text_of(value) for name, value in values.items() if name in names}
    if not entries:
        return f"configuration {index}"
    text = ", ".join(f"{name} {value}" for name, value in entries.items())
    if len(text) <= LONGEST:
        return text
    return cut(f"#{index} {short_label(values, names)}")


def short_label(values: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """The values that have a name, with at most two words of it, abbreviated."""
    entries = {name: text_of(value) for name, value in values.items() if name in names}
    return ", ".join(f"{_abbreviate(names[name])} {value}" for name, value in entries.items())


def cut(text: str, longest: int = LONGEST) -> str:
    """At most so many characters of a text, with an ellipsis where it is cut."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip(' ,')}…"


def _abbreviate(name: str) -> str:
    """At most two words of a name, long ones abbreviated."""
    return " ".join(word if len(word) <= 6 else f"{word[:5]}." for word in name.split()[:2])
