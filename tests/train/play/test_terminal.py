"""A policy in a terminal: its picture, its keys, and the whole command on a terminal of its own."""

import itertools
import os
import pty
import re
import select
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from tests.train import untrained
from train.host.showing.live_game import Game
from train.play import __main__ as command
from train.play import terminal

CELL = re.compile(r"\x1b\[38;2;(\d+);(\d+);(\d+);48;2;(\d+);(\d+);(\d+)m▀")


def pixels_of(lines: list[str]) -> np.ndarray:
    """The pixels that coloured half blocks show, uint8 `[H, W, 3]`."""
    rows = []
    for line in filter(CELL.search, lines):
        cells = np.array(CELL.findall(line), int).reshape(-1, 2, 3)
        rows += [cells[:, 0], cells[:, 1]]
    return np.stack(rows)


def test_half_blocks_show_every_pixel_that_fits():
    picture = np.random.default_rng(0).integers(0, 256, (8, 12, 3)).astype(np.uint8)
    lines = terminal.blocks(picture, 12, 4)
    np.testing.assert_array_equal(pixels_of(lines), picture)
    for columns, rows in ((6, 50), (80, 2), (3, 1)):
        small = pixels_of(terminal.blocks(picture, columns, rows))
        assert small.shape[1] <= columns
        assert small.shape[0] <= 2 * rows
        np.testing.assert_allclose(small.mean((0, 1)), picture.mean((0, 1)), atol=25)


def test_a_terminal_too_small_for_the_cells_of_a_board_says_what_it_needs():
    picture = np.zeros((210, 200, 3), np.uint8)  # 20×20 cells of 10 pixels, and a line of text
    rows = 32 + terminal.LINES  # 3 pixels a cell, two of them one character high
    hint = terminal.size_hint(picture, (20, 20), 80, 24)
    assert hint == f"small window: 60×{rows} characters show it better"
    assert terminal.size_hint(picture, (20, 20), 60, rows) == ""
    assert terminal.size_hint(picture, (20, 20), 59, rows) == hint
    assert terminal.size_hint(picture, (10, 10), 80, 24) == ""


def play_keys(make, keys: list[str | None]) -> tuple[Game, list[str]]:
    """A game after some keys, and what was shown."""
    run = make()
    assert run.program.views.live is not None
    game, screens, key_iterator = Game(run.program.views.live(run, 0), 0), [], iter([*keys, "q"])
    terminal.play(game, lambda seconds: next(key_iterator), screens.append)
    return game, screens


@pytest.mark.parametrize(
    "name",  # a page of tests/train/report shows a colony, too
    [pytest.param(x, marks=[pytest.mark.slow] * (x == "durotaxis")) for x in untrained.RUNS],
)
def test_every_program_is_drawn_and_goes_on(name):
    game, screens = play_keys(untrained.RUNS[name], [None, None])
    assert game.moment == 2
    assert "step 2" in screens[-2]
    assert pixels_of(screens[-2].splitlines()).std() > 1
    text = [line for line in screens[-2].splitlines() if "▀" not in line]
    assert any("q quit" in line for line in text)
    assert any("h give back" in line for line in text) == (game.live.steer is not None)
    assert any("→ step" in line for line in text) == (game.live.steer is None)
    assert screens[0].startswith(terminal.HIDE)
    assert terminal.SHOW in screens[-1]


def test_keys_pause_step_begin_anew_and_steer():
    up, left = "\x1b[A", "\x1b[D"
    game, screens = play_keys(untrained.snake, [" ", None, None, up, left])
    assert game.moment == 2  # paused, but for the two arrows
    assert int(game.now.state.heading) == 3
    assert "steer yourself" in screens[-2]
    game, _ = play_keys(untrained.snake, [" ", up, "h", "n", " ", None])
    assert (game.seed, game.moment) == (1, 1)
    game, _ = play_keys(untrained.cart_pole, [None, "\x1b[C", "\x1b[C", None, "x", "+", "-"])
    assert game.moment == 3  # nobody can steer: the arrow steps and pauses


def test_a_game_goes_on_while_a_key_is_held(monkeypatch):
    """Ten steps a second; a key comes every hundredth of one."""
    now = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(now) / 200)  # is asked twice for each key
    monkeypatch.setattr(terminal, "time", clock)
    game, _ = play_keys(untrained.cart_pole, ["x"] * 30)
    assert game.moment in (2, 3)


def test_a_game_that_is_over_waits():
    game, screens = play_keys(untrained.snake, ["\x1b[A", *[None] * 40])
    assert game.ending
    assert game.ending in screens[-2]


def test_where_keys_do_not_come_one_by_one_it_is_refused(capfd, monkeypatch):
    monkeypatch.setattr(terminal, "find_spec", lambda name: None)
    assert command.main(["--terminal"]) == 2
    assert "--terminal: this system has no keys that come one by one" in capfd.readouterr().err


def test_without_a_terminal_it_is_refused(capfd):
    assert command.main(["--terminal"]) == 2
    assert "needs a terminal" in capfd.readouterr().err


@pytest.mark.slow
def test_the_command_plays_in_a_terminal_and_leaves_it_as_it_was():
    leader, follower = pty.openpty()
    arguments = [sys.executable, "-m", "train.play", "--terminal"]
    environment = os.environ | {"COLUMNS": "80", "LINES": "30"}
    process = subprocess.Popen(
        arguments, stdin=follower, stdout=follower, stderr=follower, env=environment
    )
    os.close(follower)
    output, quit_at, begin = b"", None, time.monotonic()
    while time.monotonic() - begin < 120:
        if select.select([leader], [], [], 0.2)[0]:
            try:
                output += os.read(leader, 65536)
            except OSError:  # the other side is closed
                break
        if b"step 3 " in output and quit_at is None:
            quit_at = os.write(leader, b"q")
    assert process.wait(30) == 0
    assert quit_at == 1
    assert "▀".encode() in output
    assert output.rstrip().endswith(b"\x1b[0m")
    os.close(leader)
