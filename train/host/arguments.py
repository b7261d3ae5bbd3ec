"""Flags whose values are needed before a command line can be parsed, as they decide how."""

from collections.abc import Sequence


def flag_value(arguments: Sequence[str], name: str) -> str | None:
    """The first value of a flag that is not empty, of `NAME VALUE` or `NAME=VALUE`; else None."""
    values, _ = split_flag(arguments, name)
    return next((x for x in values if x), None)


def split_flag(arguments: Sequence[str], name: str) -> tuple[list[str], list[str]]:
    """The values of a flag, empty where one is missing, and the other arguments."""
    values, others, words = [], [], iter(arguments)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag == name:
            values.append(value if equals else next(words, ""))
        else:
            others.append(word)
    return values, others
