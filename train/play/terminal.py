"""A policy in a terminal: `python -m train.play --terminal`, with arrow keys to take over.

Two pixels of a picture are one character, the upper half of which has its own colour (U+2580).
"""

import math
import os
import select
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from importlib.util import find_spec

import numpy as np
from PIL import Image

from train.host.errors import UsageError
from train.host.machine.progress import show_activity
from train.host.numbers import digits_text
from train.host.showing.live import DOWN, LEFT, RIGHT, UP, Live
from train.host.showing.live_game import Game, InvalidRequest

SPEEDS = (1, 2, 5, 10, 20, 30)  # steps a second
ARROWS = {"\x1b[A": UP, "\x1b[B": DOWN, "\x1b[C": RIGHT, "\x1b[D": LEFT}
HELP = "space pause · {}+ − speed · n new game · q quit"
STEP = "→ step · "  # where arrows do not steer
CLEAR, HOME, HIDE, SHOW = "\x1b[2J", "\x1b[H", "\x1b[?25l", "\x1b[?25h"
LINES = 4  # of text below the picture
SHARP = 3  # pixels across a cell of a board that show which way a body turns

ReadKey = Callable[[float], str | None]
"""`seconds -> key`: the next key, or None if there is none for so long."""


def blocks(picture: np.ndarray, columns: int, rows: int) -> list[str]:
    """A picture uint8 `[H, W, 3]` as lines of coloured half blocks that fit into a terminal."""
    height, width = picture.shape[:2]
    scale = min(columns / width, 2 * rows / height)
    size = max(1, int(width * scale)), max(2, 2 * int(height * scale / 2))
    small = np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BOX))
    lines = []
    for upper, lower in zip(small[::2], small[1::2], strict=True):
        pairs = zip(upper.tolist(), lower.tolist(), strict=True)
        line = "".join(
            f"\x1b[38;2;{a[0]};{a[1]};{a[2]};48;2;{b[0]};{b[1]};{b[2]}m▀" for a, b in pairs
        )
        lines.append(f"{line}\x1b[0m\x1b[K")
    return lines


def size_hint(picture: np.ndarray, cells: tuple[int, int], columns: int, rows: int) -> str:
    """What a terminal says that is too small for a board of so many cells; empty if it is not."""
    height, width = picture.shape[:2]
    scale = SHARP * max(Fraction(cells[0], height), Fraction(cells[1], width))
    needed = math.ceil(scale * width), math.ceil(scale * height / 2) + LINES
    if needed[0] <= columns and needed[1] <= rows:
        return ""
    return f"small window: {needed[0]}×{needed[1]} characters show it better"


def play(game: Game, read_key: ReadKey, write: Callable[[str], object]) -> None:
    """Plays until somebody quits. An arrow takes over, h gives back or takes over without one."""
    speed, paused, direction, by_hand, message = 3, False, None, False, ""
    due = time.monotonic() + 1 / SPEEDS[speed]  # of the next step, also while a key is held down
    write(HIDE + CLEAR)
    try:
        while True:
            # show the moment, and wait for a key
            write(screen(game, message, paused, by_hand))
            message = ""
            key = read_key(max(due - time.monotonic(), 0.0))
            is_due, by_key = key is None or time.monotonic() >= due, False
            if is_due or key in (" ", "n"):
                due = time.monotonic() + 1 / SPEEDS[speed]
            # obey the key
            match key:
                case "q" | "\x03":
                    return
                case " ":
                    paused, is_due = not paused, False
                case "n":
                    game.new(game.seed + 1)
                    direction, is_due = None, False
                case "h" if game.live.steer:
                    by_hand, direction = not by_hand, None
                case "+" | "-":
                    speed = min(max(speed + (1 if key == "+" else -1), 0), len(SPEEDS) - 1)
                case _ if key in ARROWS and game.live.steer:
                    by_hand, direction = True, ARROWS[key]
                    by_key = paused
                case _ if key in ARROWS:
                    paused, by_key = True, ARROWS[key] == RIGHT
            # make a step, unless the game is over
            if (by_key or (is_due and not paused)) and not game.ending:
                try:
                    game.step(direction if by_hand else None)
                except InvalidRequest as error:
                    message = str(error)
    finally:
        write(f"{SHOW}\x1b[0m\n")


def screen(game: Game, message: str, paused: bool, by_hand: bool) -> str:
    """All that is shown of a moment."""
    columns, rows = shutil.get_terminal_size()
    assert game.live.picture is not None
    picture = game.live.picture(game.now.state)
    lines = blocks(picture, columns, rows - LINES)
    status = [f"step {game.moment:,}", f"return {digits_text(game.total)}"]
    if game.players is not None:
        won, drawn, lost = game.score
        status.append(f"{game.players[0]} {won} : {lost} {game.players[1]}, {drawn} drawn")
    status += ["paused"] * paused + [game.live.hand] * by_hand + [game.ending] * bool(game.ending)
    hint = size_hint(picture, game.live.cells, columns, rows) if game.live.cells else ""
    status += [hint] * bool(hint)
    steering = [f"arrows {game.live.hand} · h give back"] if game.live.steer else []
    text = [
        " · ".join(status),
        message or HELP.format("" if game.live.steer else STEP),
        *steering,
    ]  # each fits into 80 columns
    return HOME + "\n".join([*lines, *(f"{x[:columns]}\x1b[K" for x in text)])


def main(live: Live, seed: int) -> None:
    """Plays in this terminal. Raises UsageError where there is none, or nothing to draw."""
    if live.picture is None:
        raise UsageError("--terminal: there is no picture of this program; leave it out")
    if find_spec("termios") is None:  # as on Windows
        raise UsageError("--terminal: this system has no keys that come one by one; leave it out")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--terminal needs a terminal for its keys and its picture; leave it out")
    with show_activity("compiling the game"):
        Game(live, seed).step()  # or the first one would stand still for as long
        game = Game(live, seed)
    with keys() as read_key:
        play(game, read_key, lambda text: (sys.stdout.write(text), sys.stdout.flush()))


@contextmanager
def keys() -> Iterator[ReadKey]:
    """Keys of this terminal one by one, without the need to press return."""
    import termios
    import tty

    terminal = sys.stdin.fileno()  # read without Python's buffer, which `select` does not see
    before = termios.tcgetattr(terminal)

    def read_key(seconds: float) -> str | None:
        if not select.select([terminal], [], [], seconds)[0]:
            return None
        key_bytes = os.read(terminal, 1)
        if key_bytes == b"\x1b" and select.select([terminal], [], [], 0.01)[0]:
            key_bytes += os.read(terminal, 2)
        return key_bytes.decode(errors="replace") or "q"  # nothing: the terminal is gone

    try:
        tty.setcbreak(terminal)
        yield read_key
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
