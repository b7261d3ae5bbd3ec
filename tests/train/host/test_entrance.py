"""What stops a command before it is loaded: message in one line, with exit code 2."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from train.host import entrance
from train.host.command_line.command import command
from train.host.errors import REFUSED, UsageError
from train.host.machine import devices, quiet_libraries, signals, start

ROOT = Path(__file__).resolve().parents[3]


def run_python(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A Python that was started in a folder, with this package installed."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "XLA_FLAGS": ""} | variables,
        capture_output=True,
        encoding="utf-8",
    )


@pytest.mark.parametrize(
    ("file", "package"),
    [
        ("envs.py", "envs"),
        ("envs/__init__.py", "envs"),
        ("jaxrl.py", "jaxrl"),
        ("jax.py", "jax"),
        ("gymnax.py", "gymnax"),
    ],
)
def test_a_file_that_hides_a_package_is_named(file: str, package: str, tmp_path: Path):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).touch()
    process = run_python(tmp_path, "-m", "train.snake", "--run.total-steps", "4096")
    assert process.returncode == REFUSED
    assert process.stdout == ""
    assert process.stderr.startswith(f"{tmp_path / file} hides the package {package}, which train")
    assert process.stderr.count("\n") == 1


def test_a_folder_of_files_hides_nothing(tmp_path: Path):
    """Without `__init__.py` a folder is a package only where there is no other."""
    for name in ("envs", "train", "jaxrl", "jax"):
        (tmp_path / name).mkdir()
    process = run_python(tmp_path, "-c", "import train; print(train.__file__)")
    assert process.stdout.strip() == str(ROOT / "train" / "__init__.py")


def test_an_import_raises(tmp_path: Path):
    (tmp_path / "envs.py").touch()
    code = "try:\n    import train\nexcept ImportError as error:\n    print(error)"
    message = run_python(tmp_path, "-c", code).stdout
    assert message.startswith(f"{tmp_path / 'envs.py'} hides the package envs")


def test_packages_where_they_belong_are_known():
    entrance.refuse_hidden()


@pytest.mark.parametrize(
    ("line", "is_command"),
    [
        ("python -m train.snake --run.resume train", True),
        ("python -X dev -m train.gymnax", True),
        ("python -Bmtrain.evaluate", True),
        ("python -m package", False),
        ("python -m trainer.snake", False),
    ],
)
def test_commands_are_the_modules_of_this_package(line: str, is_command: bool):
    assert entrance.starts_command(["-m"], line.split()) == is_command
    assert not entrance.starts_command(["script.py"], line.split())


def test_importing_leaves_signals_and_garbage_collection_as_they_are(tmp_path: Path):
    """Also from a package that is started with `-m` itself."""
    (tmp_path / "package").mkdir()
    # set, as what is started in the background of a shell may begin with SIGINT ignored
    begin = (
        "import gc, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "gc.set_threshold(123); import train"
    )
    (tmp_path / "package" / "__init__.py").write_text(begin)
    code = "import gc, signal; print(signal.getsignal(signal.SIGINT).__name__, *gc.get_threshold())"
    (tmp_path / "package" / "__main__.py").write_text(code)
    process = run_python(tmp_path, "-m", "package")
    assert process.stdout == "default_int_handler 123 10 10\n", process


def test_a_command_collects_garbage_rarely(monkeypatch):
    thresholds = gc.get_threshold()
    monkeypatch.setattr(sys, "argv", ["-m"])
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "train.snake"])
    for module, change in ((signals, "end_until_handled"), (quiet_libraries, "silence")):
        monkeypatch.setattr(module, change, lambda: None)  # which would last
    try:
        gc.set_threshold(700)  # Python's own
        entrance.check()
        assert gc.get_threshold()[0] == entrance.COLLECT_EVERY > 700
    finally:
        gc.set_threshold(*thresholds)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("--no_such_flag", "Unknown flag in XLA_FLAGS: --no_such_flag)"),
        ("--xla_force_host_platform_device_count=many", "Couldn't interpret value many for flag"),
        ("flags.txt", 'Could not open file "flags.txt"'),
    ],
)
def test_flags_that_would_end_the_process_are_refused(flags, complaint, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XLA_FLAGS", flags)
    with pytest.raises(ImportError, match="change or unset it") as refusal:
        entrance.refuse_flags()
    assert complaint in str(refusal.value)


@pytest.mark.parametrize("flags", ["", "--xla_force_host_platform_device_count=2"])
def test_flags_that_xla_knows_pass(flags, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", flags)
    entrance.refuse_flags()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "variables", "reason"),
    [
        ("train.snake", {"JAX_PLATFORMS": "cuda"}, "JAX has no device with JAX_PLATFORMS=cuda ("),
        ("train.evaluate", {"JAX_PLATFORMS": "nonsense"}, "not in the list of known backends"),
        (
            "train.snake.players",
            {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "0"},
            "with JAX_PLATFORMS=cpu JAX_NUM_CPU_DEVICES=0 (",
        ),
        ("train.report", {"JAX_NUM_CPU_DEVICES": "two"}, 'Invalid value "two" for JAX flag'),
        ("train.gymnax", {"JAX_TRANSFER_GUARD": "disallow"}, "JAX_TRANSFER_GUARD is disallow, but"),
        ("train.render", {"XLA_FLAGS": "--no_such_flag"}, "XLA refuses XLA_FLAGS (Unknown flag"),
    ],
)
def test_a_command_without_its_device_ends_in_one_line(module, variables, reason, tmp_path):
    process = run_python(tmp_path, "-m", module, **variables)
    assert process.returncode == REFUSED
    assert reason in process.stderr
    assert process.stderr.count("\n") == 1
    assert process.stdout == ""


@pytest.mark.parametrize("error", [RuntimeError("no\nplugin"), AssertionError()])
def test_programs_of_ones_own_are_told_of_a_missing_device(error, monkeypatch, capsys):
    def fail() -> None:
        raise error

    monkeypatch.setattr(devices.jax, "devices", fail)
    monkeypatch.setenv("JAX_PLATFORMS", "rocm")
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    assert command(lambda _: pytest.fail("it was called")) == REFUSED
    message = capsys.readouterr().err
    reason = str(error).replace("\n", " ") or "there is none, or no plugin for it is installed"
    assert f"JAX has no device with JAX_PLATFORMS=rocm ({reason}): change or unset" in message
    with pytest.raises(UsageError, match=r"JAX has no device"):
        devices.refuse_none()
    with pytest.raises(SystemExit) as stop:
        start.begin(())
    assert stop.value.code == REFUSED


@pytest.mark.slow
def test_a_command_hears_no_library(tmp_path: Path):
    """Alarms of XLA, which come after seconds of compiling, warnings and loggers."""
    code = """
import logging, os, sys, warnings
sys.orig_argv, sys.argv = ["python", "-m", "train.snake"], ["-m"]
import train
for name in ("jax._src.compiler", "matplotlib.font_manager", "mine"):
    warnings.warn_explicit(f"warning of {name}", UserWarning, "file", 1, module=name)
    logging.getLogger(name).warning(f"line of {name}")
print(os.environ["TF_CPP_MIN_LOG_LEVEL"])
"""
    process = run_python(tmp_path, "-c", code)
    assert process.stdout == "3\n"
    lines = [x for x in process.stderr.splitlines() if " of " in x]
    assert lines == [
        "line of jax._src.compiler",  # such as the device that is used instead of another
        "file:1: UserWarning: warning of mine",
        "line of mine",
    ]
    verbose_process = run_python(
        tmp_path, "-c", code, TF_CPP_MIN_LOG_LEVEL="0", PYTHONWARNINGS="default"
    )
    assert verbose_process.stdout == "0\n"
    assert "warning of matplotlib.font_manager" in verbose_process.stderr


def test_a_library_hears_all(tmp_path: Path):
    code = """
import os, warnings
before = list(warnings.filters)
import train
print(os.environ["TF_CPP_MIN_LOG_LEVEL"], warnings.filters == before)
"""
    assert run_python(tmp_path, "-c", code, TF_CPP_MIN_LOG_LEVEL="1").stdout == "1 True\n"


def test_lines_of_libraries_that_pass_python_by_are_no_output(tmp_path: Path):
    code = (
        "import os, subprocess, sys; from train.host.machine import quiet_libraries as quiet; "
        "print('ours'); quiet.keep_off_output(); os.write(1, b'[Gloo] Rank 0'); "
        "print('ours, too', flush=True); "
        "subprocess.run([sys.executable, '-c', 'print(3)'], stdout=quiet.output_of_children())"
    )
    assert run_python(tmp_path, "-c", code).stdout == "ours\nours, too\n3\n"
