"""Command lines that tyro would take, and that do not say what they seem to."""

from dataclasses import dataclass, field

import pytest

from train.host.command_line.flags import parse_flags
from train.host.errors import UsageError


@dataclass(frozen=True)
class Names:
    """What files call things."""

    more_names: tuple[str, ...] = ()
    sorted: bool = True


@dataclass(frozen=True)
class Options:
    """A flag of each kind."""

    seed: int = 0
    data: tuple[str, ...] = ()
    plane: tuple[int, int] = (0, 1)
    is_loud: bool = False
    names: Names = field(default_factory=Names)


def parse(line: str) -> Options:
    """The options of a command line."""
    return parse_flags("python -m nothing", Options, line.split())


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("--data a b --data c", "--data is given 2 times"),
        ("--data a --seed 1 --data b --data=c", "--data is given 3 times"),
        ("--plane 0 1 --plane 1 2", "--plane is given 2 times"),
        ("--names.more-names a --names.more_names b", "--names.more-names is given 2 times"),
    ],
)
def test_several_values_stand_after_one_flag(line: str, complaint: str):
    with pytest.raises(UsageError) as error:
        parse(line)
    assert str(error.value).startswith(complaint)
    assert "expected all values after one" in str(error.value)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("--is-loud True", "--is-loud takes no value, and is followed by True: leave that out; -"),
        ("--is_loud=on --seed 1", "--is-loud takes no value, and is followed by on: leave that o"),
        ("--names.sorted False", "leave that out; --names.no-sorted turns it off"),
        ("--names.no-sorted 1", "leave that out; --names.sorted turns it on"),
        ("--is-loud loudly", "Unrecognized options: loudly; --help-all lists all flags"),
        ("--seed 1 True", "Unrecognized options: True; --help-all lists all flags"),
    ],
)
def test_a_switch_takes_no_value(line: str, complaint: str):
    with pytest.raises(UsageError) as error:
        parse(line)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_values_after_one_flag_are_all_taken():
    options = parse("--data a b c --plane 1 2 --names.more_names d e")
    assert options == Options(data=("a", "b", "c"), plane=(1, 2), names=Names(("d", "e")))


def test_the_last_of_a_flag_with_one_value_holds():
    assert parse("--seed 1 --seed 2 --data a").seed == 2
