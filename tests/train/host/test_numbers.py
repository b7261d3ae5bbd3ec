"""Numbers as people write them: in flags, in a configuration's file, in what a sweep varies."""

import dataclasses
from typing import Annotated, Any

import pytest
import yaml

from jaxrl.checks import Range
from tests.train import tiny
from train.host.command_line.command import parse
from train.host.command_line.flags import parse_flags
from train.host.environments import environments
from train.host.errors import UsageError
from train.host.files.run_directory import RunDirectory
from train.host.numbers import convert_value, digits_text, parse_integer, quantity
from train.host.plain_config import numbers, plain, rebuild
from train.sweep import plan


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1e6", 10**6),
        ("5e5", 500_000),
        ("1_000_000", 10**6),
        ("1_0e2", 1_000),
        ("1.5e3", 1_500),
        ("1e22", 10**22),
        ("1000.0", 1_000),
        ("-2E1", -20),
        ("007", 7),
    ],
)
def test_whole_numbers(text, number):
    result = parse_integer(text)
    assert (result, type(result)) == (number, int)


@pytest.mark.parametrize(
    "text",
    [
        *("1.5e0", "1e-3", "x", "", "1e", "inf", "nan", "snan", "1e999999999", "1,000", "9" * 5000),
        *("1_0_0_", "_1e3", "1e3_", "1e_3", "1__0e2", "1_.0"),
    ],
)
def test_other_texts_are_refused_in_one_line(text):
    with pytest.raises(
        ValueError, match="is no whole number; expected one such as 1_000_000 or 1e"
    ):
        parse_integer(text)


@dataclasses.dataclass
class Flags:
    count: Annotated[int, Range(least=1)] = 1
    perhaps: int | None = None
    several: tuple[int, ...] = (1,)
    rate: float = 1


def test_flags_of_every_kind_of_whole_number():
    line = "--count 1e3 --perhaps 2e2 --several 1e1 2_0 --rate 1e-4"
    result = parse_flags("python -m nothing", Flags, line.split())
    assert result == Flags(1_000, 200, (10, 20), 1e-4)
    for flag in ("--count", "--perhaps", "--several"):
        with pytest.raises(UsageError, match=rf"{flag}.*1\.5e0") as error:
            parse_flags("python -m nothing", Flags, [flag, "1.5e0"])
        assert "\n" not in str(error.value)


def test_the_budget_of_a_program():
    config, _ = parse(tiny.PROGRAM, ["--run.total-steps", "1e6", "--agent.replay=3e0"])
    assert (config.run.total_steps, config.agent.replay) == (10**6, 3)


def edited_config(folder, text: str) -> Any:
    """What `--config` makes of a saved configuration in which some lines were changed by hand."""
    RunDirectory(folder).write_config("tests.train.tiny", "plain", tiny.Config())
    path, changes = folder / "config.yaml", yaml.load(text, yaml.BaseLoader)
    lines = path.read_text().splitlines()
    for i, line in enumerate(lines):
        name = line.strip().partition(":")[0]
        if name in changes:
            lines[i] = f"{line.partition(':')[0]}: {changes[name]}"
    path.write_text("\n".join(lines) + "\n")
    return parse(tiny.PROGRAM, [f"--config={path}"])[0]


def test_a_file_that_was_edited_by_hand(tmp_path):
    """Numbers that YAML takes for text, or for numbers of the other kind."""
    config = edited_config(
        tmp_path, "{learning_rate: 1e-4, total_steps: 5e5, replay: 4.0, devices: 2}"
    )
    result = (config.agent.learning_rate, config.run.total_steps, config.agent.replay)
    assert result == (1e-4, 500_000, 4)
    assert tuple(map(type, result)) == (float, int, int)
    assert config.run.devices == "2"


def test_an_integer_for_a_float_is_a_number_that_a_sweep_may_vary(tmp_path):
    config = edited_config(tmp_path, "{learning_rate: 1}")
    assert numbers(config)["agent.learning_rate"] == 1
    assert isinstance(config.agent.learning_rate, float)


@pytest.mark.parametrize("value", ["1.5e0", "3.5", "off", "true", "x"])
def test_a_file_with_other_than_whole_numbers(tmp_path, value):
    with pytest.raises(UsageError, match=r"--agent.replay is .*, expected an integer") as error:
        edited_config(tmp_path, f"{{replay: {value}}}")
    assert "\n" not in str(error.value)


@dataclasses.dataclass(frozen=True)
class Ranges:
    pair: tuple[float, float] | None = None
    sizes: tuple[int, ...] = (64,)
    scale: float = 4  # as a whole number, which makes another program than 4.0
    names: tuple[str, ...] = ()


def test_several_numbers_each_as_declared():
    saved = {"pair": [1, "4e1"], "sizes": ["1e2", 3.0], "names": ["off", "1e2", 3]}
    result = rebuild(Ranges(), saved)
    assert result == Ranges((1.0, 40.0), (100, 3), 4, ("off", "1e2", "3"))
    assert [type(x) for x in (*(result.pair or ()), *result.sizes, result.scale)] == [
        *[float] * 2,
        *[int] * 3,
    ]
    assert plain(rebuild(Ranges(), plain(result))) == plain(result)
    assert rebuild(Ranges(), {"scale": 5}).scale == 5.0
    assert convert_value(tuple[float, float], [1]) == (1.0,)  # refused by its length, elsewhere


def test_values_of_a_sweep():
    config = tiny.Config()
    reader = plan.reader(tiny.PROGRAM, "plain", [])
    result = plan.variation("agent.replay=1e1,2_0", reader, config)
    assert result.choices == (10, 20)
    with pytest.raises(UsageError, match=r"'1\.5e0' is no whole number"):
        plan.variation("agent.replay=1.5e0", reader, config)
    with pytest.raises(UsageError, match="a value is there twice"):
        plan.variation("agent.replay=1e1,10", reader, config)


def test_options_of_an_environment():
    options = ("rows=1e1", "cols=6", "share=1e-1", "size=2.0", "name=1e", "many=1e400")
    result = environments.pairs("env.options", options)
    assert result == {
        "rows": 10,
        "cols": 6,
        "share": 0.1,
        "size": 2.0,
        "name": "1e",
        "many": float("inf"),
    }
    assert (type(result["rows"]), type(result["size"])) == (int, float)


@pytest.mark.parametrize(
    ("count", "things", "text"),
    [
        (1, "seeds", "1 seed"),
        (0, "seeds", "0 seeds"),
        (2_000, "batches", "2,000 batches"),
        (1, "batches", "1 batch"),
        (1, "policies", "1 policy"),
        (1, "environment steps", "1 environment step"),
        (1, "others", "1 other"),
        (1, "boxes", "1 box"),
        (1, "states", "1 state"),
        (1, "mazes", "1 maze"),
        (1, "losses", "1 loss"),
    ],
)
def test_one_thing_is_no_plural(count, things, text):
    assert quantity(count, things) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.0, "0"), (-0.25, "-0.25"), (0.00012345, "0.0001234"), (1e-5, "1e-05")),
        *((1234.56, "1235"), (9999.7, "10000"), (12345.6, "12346"), (-2.5e6, "-2500000")),
        *((999_999_999.4, "999999999"), (1.2345e12, "1.234e+12"), (float("inf"), "inf")),
    ],
)
def test_scores_have_all_digits_before_the_point(value: float, text: str):
    assert digits_text(value) == text
