"""`python -m train.play [RUN]`: watch a policy live in a browser, interfere, and play yourself."""

import asyncio
import sys
import webbrowser
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from jaxrl.checks import CountOrZero, Range, Seed
from train.host import abilities
from train.host.command_line.command import command
from train.host.command_line.flags import parse_flags
from train.host.errors import UsageError
from train.host.machine.progress import show_activity
from train.host.numbers import quantity
from train.host.plain_config import check_options
from train.host.program import Run
from train.host.running import saved_policies
from train.host.showing.live import Live
from train.host.showing.live_game import Game
from train.play import messages, server, terminal
from train.report import page

FAVOURITE = "snake-10x10"
"""Policy that plays unless another is named."""
SCRIPT = Path(__file__).with_name("live.js")


@dataclass(frozen=True)
class Options:
    """Serves a page on which a policy plays, for a browser on this machine.

    Play, pause and step; change the state; take over with the arrow keys. Without a RUN or policy
    the released one of Snake plays. Stop with Ctrl-C.
    """

    run: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = None
    """Run directory."""
    policy: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Policy instead: a name that `python -m train.policies list` shows, or a file."""
    best: bool = False
    """The policy that was best while training, kept in RUN/best, instead of the newest."""
    against: tuple[str, ...] = ()
    """Whom a policy of two snakes meets: run directories, policy files, names that `python -m
    train.policies list` shows, or static, random, greedy, defensive. The first plays red at once;
    the page lets any two meet, and counts who wins."""
    member: CountOrZero = 0
    """Which of the run's seeds, counted from 0."""
    key: Seed = 0
    """Root of the random numbers of the first game."""
    terminal: bool = False
    """Draw it into this terminal instead of serving a page."""
    port: Annotated[int, Range(least=0, most=65535)] = 0
    """Port on 127.0.0.1; 0: any that is free."""
    browser: bool = True
    """Open the page in the default browser."""


def main(arguments: list[str]) -> int:
    def play(arguments: list[str]) -> None:
        options = parse_flags("python -m train.play", Options, arguments)
        check_options(options)
        if options.terminal and options.port:
            raise UsageError("--port has no effect with --terminal: leave it out")
        if options.run is None and options.policy is None:
            options = replace(options, policy=FAVOURITE)
        try:
            if options.terminal:
                terminal.main(live_of(load_run(options), options), options.key)
            else:
                asyncio.run(_serve(set_up(options), options))
        except KeyboardInterrupt:
            print("stopped")

    return command(play, arguments)


def set_up(options: Options) -> server.Table:
    """The table of a run or policy, its programs compiled. Raises UsageError."""
    server.refuse_missing()
    run = load_run(options)
    live = live_of(run, options)
    with show_activity(f"compiling {run.program.address}"):
        warm_up(live)
    name = saved_policies.name_of(options.run, options.policy)
    return server.Table(page_of(name, run, live), lambda: Game(live, options.key))


def load_run(options: Options) -> Run:
    """The run or policy asked for."""
    return saved_policies.load_run_or_policy(options.run, options.policy, options.best)


def live_of(run: Run, options: Options) -> Live:
    """What goes on step by step. Raises UsageError where nothing does."""
    member = options.member
    if member >= len(run.agents):
        raise UsageError(
            f"--member {member}: the run has {quantity(len(run.agents), 'seeds')}, from 0 on"
        )
    if options.against:
        return abilities.duel_of(run, member, options.against)
    return abilities.live_of(run, member)


def warm_up(live: Live) -> None:
    """Compiles all that a step and an edit need, so that none of them is slow."""
    game = Game(live, 0)
    messages.describe(game)
    game.step()
    messages.describe(game)
    for name, edit in live.edits.items():
        middle = [1.0, 1.0] if edit.limits is None else sum(edit.limits) / 2
        messages.answer(game, f'{{"do": "edit", "name": "{name}", "value": {middle}}}')


def page_of(name: str, run: Run, live: Live) -> str:
    """The page, with all that does not change."""
    content = {
        "name": name,
        "program": run.program.address,
        "drawing": live.scripts[-1].stem,
        "hand": live.hand if live.steer else None,
        "edits": [
            {"name": key, "label": edit.label, "limits": edit.limits}
            for key, edit in live.edits.items()
        ],
        "learns": live.learns,
        "duel": live.duel
        and {"names": list(live.duel.names), "start": live.duel.start, "sides": live.duel.sides},
    }
    return page.html(f"{name}, live", content, live.scripts, SCRIPT)


async def _serve(table: server.Table, options: Options) -> None:
    try:
        asyncio_server = await table.listen(options.port)
    except OSError as error:
        raise UsageError(f"--port {options.port} cannot be used: {error.strerror}") from error
    Console().print(f"{table.url}  (Ctrl-C stops)", highlight=False, soft_wrap=True)
    if options.browser:
        webbrowser.open(table.url)
    await asyncio_server.serve_forever()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
