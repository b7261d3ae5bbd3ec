"""The command line: every mistake is answered in one line, with exit code 2."""

import contextlib
import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import pytest
import yaml

from tests.train import tiny
from train.host.command_line.command import command, describe_presets, main, parse
from train.host.command_line.flags import one_line
from train.host.errors import INTERRUPTED, REFUSED, Interrupted, NonFiniteError, UsageError
from train.host.files.run_directory import RunDirectory
from train.host.plain_config import flag, plain
from train.host.program import Preset
from train.sweep import files
from train.sweep.__main__ import main as sweep


def refusal(arguments: list[str], capsys: pytest.CaptureFixture) -> str:
    """What stderr says about bad arguments."""
    assert main(tiny.PROGRAM, arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("--run.sed 3", "Unrecognized options: --run.sed, 3 (perhaps --run.seed)"),
        ("--run.seed x", "Error parsing --run.seed: 'x' is no whole number; expected one"),
        ("--run.seed", "Missing value for argument '--run.seed'"),
        ("--run.num_seeds 0", "--run.num-seeds is 0, expected a number at least 1"),
        ("--run.total_steps 0", "--run.total-steps is 0, expected a number at least 1"),
        ("--run.max_episodes 0", "--run.max-episodes is 0, expected a number at least 1"),
        ("--run.seed 2147483647 --run.num_seeds 2", "seed must be below 2**31"),
        ("--run.on_nonfinite hope", "invalid choice 'hope'"),
        ("fancy", "there is no preset fancy: choose one of plain, slow, endless"),
        ("plain slow", "Unrecognized options: slow"),
        ("--run.seed 3 slow", "the preset goes before the flags: python -m "),
        (
            "--agent.learning_rate -1",
            "--agent.learning-rate is -1.0, expected a number at least",
        ),
        ("--resume", "Missing value for argument '--resume'"),
        ("--resume nowhere", "nowhere is not a run directory (no config.yaml in it)"),
        ("--resume=nowhere", "nowhere is not a run directory (no config.yaml in it)"),
        ("--resume a --resume=b", "--resume is given twice, a and b; expected it once"),
        ("--config", "--config needs one FILE"),
        ("--config --run.seed 3", "--config needs one FILE"),
        ("--config a --config=b", "--config needs one FILE"),
        ("--config=nowhere.yaml", "there is no file nowhere.yaml: give the config.yaml of a run"),
        ("--config .", ". is not a run directory (no config.yaml in it)"),
    ],
)
def test_a_mistake_is_answered_in_one_line(
    arguments: str, complaint: str, capsys: pytest.CaptureFixture, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert complaint in refusal(arguments.split(), capsys)
    assert list(tmp_path.iterdir()) == []


UTF8 = """\
╭─ Unrecognized options ──────────────────╮
│ Unrecognized options: --run.sed, 3      │
│ ─────────────────────────────────────── │
│ Perhaps you meant:                      │
│     --run.seed INT                      │
│         Root of all--see (default: 0)   │
│ ─────────────────────────────────────── │
│ For full helptext, run this with --help │
╰─────────────────────────────────────────╯
"""
ASCII = """\
 Value error
 -----------------------------------------
  Error parsing run: seed must be at least
  0; got -1
  ----------------------------------------
  For full helptext, see this with --help

"""


@pytest.mark.parametrize(
    ("box", "line"),
    [
        (UTF8, "Unrecognized options: --run.sed, 3"),
        (ASCII, "Error parsing run: seed must be at least 0; got -1"),
    ],
)
def test_complaints_are_unpacked(box: str, line: str):
    """tyro draws frames as the terminal's encoding allows."""
    assert one_line(box) == line


def test_a_run_of_something_else(tmp_path: Path, capsys: pytest.CaptureFixture):
    RunDirectory(tmp_path).write_config("snake", "plain", tiny.Config())
    assert "is a run of snake, not of tests.train.tiny" in refusal(
        ["--resume", str(tmp_path)], capsys
    )
    RunDirectory(tmp_path).write_config("tests.train.tiny", "slow", tiny.Config())
    message = refusal(["plain", "--resume", str(tmp_path)], capsys)
    assert "has the preset slow: leave out plain" in message


def test_a_directory_in_use(tmp_path: Path, capsys: pytest.CaptureFixture):
    (tmp_path / "thesis.tex").touch()
    message = refusal(["--run.directory", str(tmp_path)], capsys)
    assert f"{tmp_path} exists already" in message


def test_presets_and_flags():
    config, preset = parse(tiny.PROGRAM, [])
    assert (config, preset) == (tiny.PRESETS["plain"].config, "plain")
    flags = ["slow", "--agent.learning-rate", "0.5", "--run.chunk_steps", "8"]
    config, preset = parse(tiny.PROGRAM, flags)
    assert preset == "slow"
    assert (config.agent.learning_rate, config.run.chunk_steps) == (0.5, 8)
    assert config.agent.burn == tiny.PRESETS["slow"].config.agent.burn


def test_help_says_what_each_preset_is():
    presets = {x: Preset(tiny.Config(), f"The {x} one.") for x in ("first", "second")}
    text = describe_presets(tiny.PROGRAM._replace(presets=presets), "second")
    assert "\n  first: The first one.\n  second: The second one.\n" in text
    assert describe_presets(tiny.PROGRAM, "plain").startswith("Trains nothing of use.\n")


def test_what_was_saved_is_the_default_of_a_resumption(tmp_path: Path):
    saved = tiny.Config(agent=tiny.AgentConfig(learning_rate=0.25, replay=3))
    RunDirectory(tmp_path).write_config("tests.train.tiny", "slow", saved)
    arguments = ["--run.total_steps", "600", "--resume", str(tmp_path)]
    config, preset = parse(tiny.PROGRAM, arguments)
    expected = plain(saved)
    expected["run"] |= {"total_steps": 600, "resume": str(tmp_path)}
    assert (plain(config), preset) == (expected, "slow")


@pytest.mark.parametrize("of", ["file", "directory"])
@pytest.mark.parametrize("spelled", ["--config={}", "--config {}"])
def test_what_a_run_saved_begins_another(of: str, spelled: str, tmp_path: Path):
    """All of it but its place; flags change it, before and after."""
    agent, place = tiny.AgentConfig(learning_rate=0.25, replay=3), {"directory": "elsewhere"}
    saved = tiny.Config(agent, replace(tiny.Config().run, seed=7, chunk_steps=15, **place))
    RunDirectory(tmp_path).write_config("tests.train.tiny", "slow", saved)
    source = tmp_path / "config.yaml" if of == "file" else tmp_path
    flags = ["--run.seed", "8", *spelled.format(source).split(), "--agent.replay", "4"]
    expected = plain(saved)
    expected["run"] |= {"seed": 8, "directory": ""}
    expected["agent"]["replay"] = 4
    for preset in ([], ["slow"]):
        config, parsed_preset = parse(tiny.PROGRAM, [*preset, *flags])
        assert (plain(config), parsed_preset) == (expected, "slow")
    config, _ = parse(tiny.PROGRAM, flags, ("seed", "chunk_steps"))
    assert (config.run.seed, config.run.chunk_steps) == (8, tiny.Config().run.chunk_steps)
    config, _ = parse(tiny.PROGRAM, flags[2:], ("seed",))
    assert config.run.seed == 0


def test_fields_that_need_each_other_can_be_left(tmp_path: Path):
    saved = replace(tiny.Config().run, evaluate_every=3, patience=2)
    RunDirectory(tmp_path).write_config(
        "tests.train.tiny", "plain", replace(tiny.Config(), run=saved)
    )
    flags = [f"--config={tmp_path}"]
    assert parse(tiny.PROGRAM, flags)[0].run == saved
    config, _ = parse(tiny.PROGRAM, flags, ("evaluate_every", "patience"))
    assert config == tiny.Config()


@pytest.mark.parametrize(
    ("name", "preset", "changes", "flags", "complaint"),
    [
        ("snake", "slow", {}, [], "is a run of snake, not of tests.train.tiny"),
        ("tests.train.tiny", "fast", {}, [], "has the preset fast, which is unknown here"),
        ("tests.train.tiny", "slow", {}, ["plain"], "has the preset slow: leave out plain"),
        ("tests.train.tiny", "slow", {"replay": 0}, [], "config.yaml: --agent.replay is 0, exp"),
        ("tests.train.tiny", "slow", {"replay": "x"}, [], "--agent.replay is 'x', expected an int"),
        ("tests.train.tiny", "slow", {"more": 1}, [], "is of another version: see agent.more"),
        ("two\nlines", "slow", {}, [], "is not the configuration of a run (name and preset must"),
        ("tests.train.tiny", ["a"], {}, [], "is not the configuration of a run (name and preset"),
    ],
)
def test_what_cannot_begin_a_run(
    name: str, preset: Any, changes: dict, flags: list[str], complaint: str, tmp_path: Path, capsys
):
    saved = plain(tiny.Config())
    saved["agent"] |= changes
    content = {"name": name, "preset": preset, "config": saved}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(content))
    assert complaint in refusal([*flags, "--config", str(path)], capsys)


def test_a_run_is_resumed_or_begun(tmp_path: Path, capsys: pytest.CaptureFixture):
    RunDirectory(tmp_path).write_config("tests.train.tiny", "slow", tiny.Config())
    message = refusal(["--resume", str(tmp_path), "--config", str(tmp_path)], capsys)
    assert f"--resume {tmp_path} has a configuration: leave out --config" in message


@pytest.mark.slow
def test_a_sweep_of_what_a_run_saved(tmp_path: Path, capsys: pytest.CaptureFixture):
    """It has the preset and numbers of the run, but seeds, scores and a log of its own."""
    agent = tiny.AgentConfig(learning_rate=0.25, replay=3)
    run = replace(tiny.Config().run, num_seeds=2, evaluate_every=3, patience=2, log="wandb")
    run = replace(run, total_steps=60, evaluation_games=0, evaluate_games=5)
    RunDirectory(tmp_path).write_config("tests.train.tiny", "plain", tiny.Config(agent, run))
    flags = ["--vary", "agent.learning_rate=0.25,0.5", "--seeds", "1", "--confirm", "0"]
    place = ["--directory", str(tmp_path / "sweep"), "--config", str(tmp_path)]
    assert sweep(["tests.train.tiny", *flags, *place, "--agent.replay=4"]) == 0
    assert "2 configurations of 1 seed, 60 environment steps" in capsys.readouterr().out
    planned = files.read_plan(tmp_path / "sweep")["config"]
    assert planned["agent"]["learning_rate"] == 0.25
    assert planned["agent"]["replay"] == 4
    base = plain(tiny.Config().run)
    assert planned["run"] == {**base, "total_steps": 60, "evaluation_games": 0}


def test_help_explains_every_field(capsys: pytest.CaptureFixture):
    with pytest.raises(SystemExit) as stop:
        parse(tiny.PROGRAM, ["--help-all"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "python -m tests.train.tiny [plain | slow | endless]" in text
    assert "--resume DIR" in text
    assert "--config FILE: begin with the values in FILE" in text
    for section in ("agent", "run"):
        for field in plain(tiny.Config())[section]:
            short = field in ("resume", "devices", "distributed", "live")
            assert f"--{'' if short else f'{section}.'}{field.replace('_', '-')}" in text
    assert "Budget of environment steps per seed" in text


@pytest.mark.parametrize(
    ("error", "code"),
    [(UsageError("no"), 2), (NonFiniteError("nan"), 1), (Interrupted("later"), 75)],
)
def test_exit_codes(error: Exception, code: int, capsys: pytest.CaptureFixture):
    def fail(arguments):
        raise error

    assert command(fail) == code
    assert capsys.readouterr().err == f"{error}\n"


def test_other_exits(capsys: pytest.CaptureFixture):
    def press_ctrl_c(arguments):
        raise KeyboardInterrupt

    def bug_of_a_user(arguments):
        raise RuntimeError("a bug\nand more of it")

    assert command(lambda arguments: None) == 0
    assert command(press_ctrl_c) == INTERRUPTED
    assert "what it had written is whole; start it again" in capsys.readouterr().err
    assert command(bug_of_a_user) == REFUSED
    error = capsys.readouterr().err
    assert error.startswith("RuntimeError: a bug (")
    assert f"{Path(__file__).name}:" in error
    assert error.count("\n") == 1
    with pytest.raises(AttributeError):
        command(flag)  # pyright: ignore  # a bug of this library is one: a traceback helps to mend it


def test_signs_that_stdout_cannot_hold_are_replaced(monkeypatch: pytest.MonkeyPatch):
    """Another encoding has no `²`, no encoding a lone surrogate, as in the name of a folder."""
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii", newline="\n"))
    assert command(lambda _: print("R² · 8×8 …", "run-\udcfc")) == 0
    assert written.getvalue() == b"R? ? 8?8 ? run-?\n"


@pytest.mark.slow
def test_help_may_be_cut_short():
    help_cut = [sys.executable, "-m", "tests.train.tiny", "--help"]
    with subprocess.Popen(help_cut, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()  # as `head` does when it has enough
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("setting", "start"),
    [
        (jax.disable_jit(), "JAX_DISABLE_JIT is on, but"),
        (jax.transfer_guard("disallow"), "JAX_TRANSFER_GUARD is disallow, but"),
        (
            jax.transfer_guard_host_to_device("disallow_explicit"),
            "JAX_TRANSFER_GUARD_HOST_TO_DEVICE is disallow_explicit, but",
        ),
        (jax.numpy_dtype_promotion("strict"), "JAX_NUMPY_DTYPE_PROMOTION is strict, but"),
    ],
)
def test_settings_of_jax_that_no_run_can_work_with_are_refused(
    setting: contextlib.AbstractContextManager, start: str, capsys: pytest.CaptureFixture
):
    with setting:
        message = refusal(["plain"], capsys)
    assert message.startswith(start)
    assert ": leave it out" in message
