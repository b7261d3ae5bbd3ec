"""What is shown while nothing else speaks."""

import io
import re
import time

import pytest
from rich.console import Console

from train.host.machine import progress


def test_a_log_is_told_now_and_then_that_a_call_goes_on(monkeypatch):
    monkeypatch.setattr(progress, "SILENCE", 0.05)
    log = io.StringIO()
    with progress.show_activity("playing", Console(file=log)):
        deadline = time.monotonic() + 60
        while log.getvalue().count("\n") < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    lines = log.getvalue().splitlines()
    assert len(lines) >= 2
    assert all(re.fullmatch(r"playing, [\d.]+s", line) for line in lines)
    time.sleep(0.2)
    assert log.getvalue().splitlines() == lines  # nothing more is said afterwards


def test_what_is_soon_over_is_not_spoken_of():
    log = io.StringIO()
    with progress.show_activity("playing", Console(file=log)):
        pass
    assert not log.getvalue()


def test_a_terminal_shows_a_clock_and_is_left_clean():
    terminal = io.StringIO()
    with progress.show_activity("playing", Console(file=terminal, force_terminal=True, width=60)):
        pass
    assert "playing" in terminal.getvalue()
    assert "0:00:0" in terminal.getvalue()


def test_an_error_passes_and_ends_the_talk(monkeypatch):
    monkeypatch.setattr(progress, "SILENCE", 0.05)
    log = io.StringIO()
    with pytest.raises(ZeroDivisionError), progress.show_activity("dividing", Console(file=log)):
        _ = 1 / 0
    time.sleep(0.2)
    assert not log.getvalue()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_sentences_break_between_words_on_a_terminal_and_stay_whole_in_a_file(
    monkeypatch, is_terminal
):
    sentence = " ".join(["eleven words that together are longer than eighty columns are here"] * 2)
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setenv("COLUMNS", "80")
    progress.print_line(sentence)
    lines = stream.getvalue().splitlines()
    assert " ".join(line.rstrip() for line in lines) == sentence
    assert [len(line) <= 80 for line in lines] == [True] * 2 if is_terminal else [False]
