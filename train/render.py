"""`python -m train.render RUN`: pictures of a finished or running run, into its directory.

`python -m train.render --policy NAME` films a trained policy, without a run.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import jax
import tyro

from jaxrl.checks import Seed
from train.host import abilities
from train.host.command_line.command import command
from train.host.command_line.flags import parse_flags
from train.host.errors import UsageError
from train.host.files.whole_files import refuse_unwritable
from train.host.machine import jax_settings
from train.host.plain_config import check_options
from train.host.running import saved_policies
from train.host.showing import diagnostics, films
from train.host.training import Games


@dataclass(frozen=True)
class Options:
    """Draws the learning curve and other pictures of the newest checkpoint, and prints their paths.

    Where games are played, these are films of chosen games. Of a policy there is only the film.
    """

    run: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = None
    """Run directory."""
    policy: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Policy instead: a file, or a name that `python -m train.policies list` shows."""
    games: Games = 100
    """Number of games to choose from, where games are played."""
    best: bool = False
    """The policy that was best while training instead, as a film in RUN/best."""
    key: Seed = 2
    """Root of the random numbers."""
    format: Literal["gif", "webp"] = "gif"
    """Format of films: webp is as sharp and a half to a quarter of the size, but fewer viewers show
    it."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder for the film of a policy, or of --best; None: runs/policy-NAME, or RUN/best."""


def main(arguments: list[str]) -> int:
    def render(arguments: list[str]) -> None:
        options = parse_flags("python -m train.render", Options, arguments)
        check_options(options)
        run = saved_policies.load_run_or_policy(options.run, options.policy, options.best)
        key = jax.random.key(options.key)
        precision = jax_settings.network_precision(run.config.run.precision)
        if options.policy is not None or options.best:
            directory = options.out or run.directory
            film = abilities.film_of(run.program)
            refuse_unwritable(directory, "name a folder that can with --out")
            directory.mkdir(parents=True, exist_ok=True)
            with precision:
                finish(film(run, options.games, key, directory), options.format)
            return
        if options.out:
            raise UsageError("--out is for policies: a run has its own directory, so leave it out")
        refuse_unwritable(run.directory, "its pictures are kept there, so draw a copy of it")
        with precision:
            finish(run.program.views.pictures(run, options.games, key, None), options.format)
        training = run.program.training(run.config)
        about = run.title, training.unit, training.score.labels
        if path := diagnostics.draw(run.directory, run.seeds, *about):
            print(path)

    return command(render, arguments)


def finish(products: Iterable[Any], form: str) -> None:
    """Prints what was made; films get a strip for print, and another format where it is wanted."""
    for x in products:
        if not (isinstance(x, Path) and x.suffix == ".gif"):
            print(x)
            continue
        if not x.with_suffix(".png").is_file():  # or it has a strip of its own
            print(films.strip(x))
        print(films.convert_to_webp(x) if form == "webp" else x)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
