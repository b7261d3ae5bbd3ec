"""Flags whose values are needed before a command line can be parsed, as they decide how."""

from collections.abc import Sequence

from train.host.errors import UsageError


def flag_value(arguments: Sequence[str], name: str) -> str | None:
    """The value of a flag if it is not empty, of `NAME VALUE` or `NAME=VALUE`; else None.

    Raises UsageError for two of them.
    """
    values = [x for x in split_flag(arguments, name)[0] if x]
    if len(values) > 1:
        raise UsageError(f"{name} is given twice, {values[0]} and {values[1]}; expected it once")
    return values[0] if values else None


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
