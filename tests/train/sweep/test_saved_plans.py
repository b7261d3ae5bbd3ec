"""A sweep goes on by the plan that it has saved, and one that does not fit is refused."""

from pathlib import Path

import pytest

from tests.train import tiny
from tests.train.sweep.tiny_sweep import EPISODES, VARY
from train.host.errors import REFUSED, UsageError
from train.host.plain_config import rebuild, with_field
from train.sweep import __main__ as command
from train.sweep import build, files
from train.sweep.options import Options, saved_options


@pytest.fixture(scope="module")
def new_sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a sweep of two rates, two sizes and two seeds has been begun."""
    path = tmp_path_factory.mktemp("sweep") / "begun"
    options = Options([VARY, "agent.replay=3,7"], seeds=2, directory=str(path))
    build.begin(tiny.PROGRAM.address, "plain", options, [f"--run.max-episodes={EPISODES}"])
    return path


@pytest.mark.parametrize(
    ("flags", "more"),
    [
        (["--seeds", "3"], "--seeds"),  # which is the default
        (["--vary", VARY, "--cluster=local"], "--vary"),
        (["--confirm=0"], "--confirm"),
        (["--random", "2"], "--random"),
        (["--directory", "x"], "--directory"),
        (["--agent.learning_rate=1"], "--agent.learning-rate"),
        (["here"], "here"),
    ],
)
def test_a_sweep_goes_on_as_it_began(flags, more, capsys):
    assert command.main(["--resume", "my sweep", *flags]) == REFUSED
    expected = "--resume 'my sweep' continues as it began, with nothing else but --cluster: leave"
    assert capsys.readouterr().err == f"{expected} out {more}\n"


def test_a_sweep_cannot_be_two(capsys):
    assert command.main(["--resume", "one", "--resume=other"]) == REFUSED
    assert "--resume is given twice, one and other; expected it once" in capsys.readouterr().err


def test_a_plan_from_before_searches_were_taken_out(new_sweep):
    options = files.read_plan(new_sweep)["options"]
    old_options = options | {"search": None, "members": None, "reduction": 2}
    plain_options = saved_options(options, new_sweep)
    assert saved_options(old_options, new_sweep) == plain_options
    assert [*plain_options.vary] == options["vary"]
    with pytest.raises(UsageError, match="is a search, which this version cannot continue"):
        saved_options(old_options | {"search": "halving"}, new_sweep)


@pytest.mark.parametrize(
    ("part", "content", "message"),
    [
        ("options", {"nope": 1}, "sweep.yaml: there is no option nope; there are vary, seeds"),
        ("options", None, "sweep.yaml: options is None, expected names and their values"),
        ("options", {"seeds": -1}, "sweep.yaml: --seeds is -1, expected a number at least 1"),
        ("options", {"confirm": "x"}, "sweep.yaml: --confirm is 'x', expected an integer"),
        ("options", {"vary": VARY}, "expected a list of FIELD=VALUE"),
        ("preset", ["plain"], r"has the preset ['plain'], which is unknown here"),
        ("batches", [[0, 1, 2, 3, 4, 5, 6, 7], [8]], "do not have each of its 8 members once"),
        ("batches", 3, "do not have each of its 8 members once"),
    ],
)
def test_a_plan_that_was_edited_is_refused_in_one_line(
    part, content, message, new_sweep, tmp_path, capsys
):
    saved = files.read_plan(new_sweep)
    saved[part] = saved[part] | content if isinstance(content, dict) else content
    files.write_plan(tmp_path, saved)
    assert command.main(["--resume", str(tmp_path)]) == REFUSED
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_saved_plan_can_be_read_by_people(new_sweep):
    saved = files.read_plan(new_sweep)
    assert saved["options"]["vary"] == [VARY, "agent.replay=3,7"]
    config = rebuild(tiny.PRESETS["plain"].config, saved["config"])
    assert config == with_field(tiny.PRESETS["plain"].config, "run.max_episodes", EPISODES)
