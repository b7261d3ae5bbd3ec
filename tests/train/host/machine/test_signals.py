"""A command that is ended by a signal, whatever it does: at once, with a line on what is there."""

import signal
import subprocess
import sys
import time

import pytest

from train.host.errors import INTERRUPTED, QUIT, Interrupted
from train.host.machine import signals

PROGRAM = """
import sys, time
import jax
from train.host.command_line.command import command
from train.host.machine.signals import interruption

def calls(arguments):
    with interruption("kept in DIR"):
        print("begun", flush=True)
        while True:
            time.sleep(0.01)

def computes(arguments):
    endless = jax.jit(lambda x: jax.lax.while_loop(lambda x: x >= 0, lambda x: x * 0.5, x))
    with interruption("kept in DIR"):
        print("begun", flush=True)
        endless(1.0).block_until_ready()

sys.exit(command(globals()[sys.argv[1]]))
"""


def begin(what: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, what]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "number"), [("calls", signal.SIGTERM), ("computes", signal.SIGINT)]
)
def test_a_signal_ends_a_command_that_says_what_is_kept(what: str, number: signal.Signals):
    """Also one that waits for what is compiled, where Python handles no signals."""
    with begin(what) as process:
        time.sleep(0.5)
        sent = time.monotonic()
        process.send_signal(number)
        process.send_signal(number)  # as `timeout` does: that is one request
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (INTERRUPTED, "kept in DIR\n")
    assert time.monotonic() - sent < signals.PATIENCE + 2


@pytest.mark.slow
def test_a_second_signal_quits_at_once():
    with begin("computes") as process:
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        time.sleep(signals.SAME_PRESS + 0.2)
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == QUIT


def test_the_innermost_message_is_the_one_that_is_said():
    with pytest.raises(Interrupted, match="inner"), signals.interruption("outer"):  # noqa: SIM117
        with signals.interruption("inner"):
            raise KeyboardInterrupt
    with pytest.raises(ZeroDivisionError), signals.interruption("outer"):
        _ = 1 / 0
    assert signals._messages == []


def test_handlers_are_as_before():
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    with signals.Ending():
        assert [signal.getsignal(number) for number in numbers] != before
    assert [signal.getsignal(number) for number in numbers] == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_command_that_is_still_loaded(number: signal.Signals):
    command = [sys.executable, "-X", "importtime", "-m", "train.report", "--help"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while not process.stderr.readline().endswith(" numpy\n"):  # JAX imports it
            assert process.poll() is None
        process.send_signal(number)
        *_, last = process.stderr.readlines()
    assert last == "stopped before anything began: start it again\n"
    assert process.returncode == INTERRUPTED


def test_the_handlers_of_a_command_that_is_loaded_do_not_come_back(monkeypatch):
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    monkeypatch.setattr(signals, "_early", {})
    signals.end_until_handled()
    assert [signal.getsignal(number) for number in numbers] == [signals._end_early] * 2
    for _ in range(2):
        with signals.Ending():
            assert signals._end_early not in [signal.getsignal(number) for number in numbers]
        assert [signal.getsignal(number) for number in numbers] == before
