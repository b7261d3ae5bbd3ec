"""`python -m train.report RUN [RUN ...]`: one page to look into runs, with a player of episodes."""

import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro

from jaxrl.checks import CountOrZero, Range, Seed
from train.host import abilities
from train.host.command_line.command import command
from train.host.command_line.flags import parse_flags
from train.host.errors import UsageError
from train.host.files.whole_files import (
    refuse_existing,
    refuse_no_file,
    refuse_unwritable,
    write_whole,
)
from train.host.machine.progress import show_activity
from train.host.plain_config import check_options, flag
from train.host.program import EpisodeSelection, Run
from train.host.running import saved_policies, saved_runs
from train.report import contents, live, page
from train.report.arrays import Arrays

MOST_RUNS = 6
"""As many as have a colour of their own."""


@dataclass(frozen=True)
class Options:
    """Writes one page that shows how runs learned, how they play and how to repeat them.

    The page needs no network and no other file. Episodes of several runs begin with equal random
    numbers, and play side by side.
    """

    runs: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = ()
    """Run directories."""
    policy: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME")] = ()
    """Policies, also or instead: files, or names that `python -m train.policies list` shows."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """File to write; None: report.html in the run's directory (of a policy, runs/policy-NAME; of
    several, of the first)."""
    overwrite: bool = False
    """Replace what is there already, of the name that `--out` gives."""
    episodes: Annotated[int, Range(least=0, most=20)] = 6
    """Episodes of each run to play, by the agent of its first seed; 0: none."""
    steps: Annotated[int, Range(least=1, most=20_000)] = 2_000
    """Steps of an episode that are shown, from its start."""
    games: CountOrZero = 200
    """Games for histograms, of the same agent, where games are played; 0: none."""
    live: bool = False
    """Serve the page on this machine while a run grows instead, without episodes and games; it
    takes no other option."""
    best: bool = False
    """The policies that were best while training, instead of the newest."""
    key: Seed = 3
    """Root of the random numbers."""


def main(arguments: list[str]) -> int:
    def report(arguments: list[str]) -> None:
        options = parse_flags("python -m train.report", Options, arguments)
        check_options(options)
        if options.live:
            follow(options)
            return
        if options.overwrite and options.out is None:
            raise UsageError("--overwrite has no effect without --out: leave it out")
        runs_by_name = load_runs(options)
        out = options.out or next(iter(runs_by_name.values())).directory / "report.html"
        if options.out is None:
            refuse_unwritable(out.parent, "name a file in a folder that can with --out")
        else:
            refuse_no_file(out)
            refuse_existing(out, options.overwrite)
        html = build_page(runs_by_name, options)
        out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(out, html)
        print(f"{out}  {out.stat().st_size / 1e3:,.0f} kB")

    return command(report, arguments)


def follow(options: Options) -> None:
    """Serves the page of one run until somebody stops it.

    Raises UsageError for options without an effect on that page.
    """
    if len(options.runs) != 1 or options.policy:
        raise UsageError("--live follows one run: give one run directory")
    for field in fields(options):
        is_idle = field.name not in ("runs", "policy", "live")
        if is_idle and getattr(options, field.name) != field.default:
            raise UsageError(f"{flag(field.name)} has no effect with --live: leave it out")
    live.serve(live.Follower(options.runs[0]))


def load_runs(options: Options) -> dict[str, Run]:
    """The runs and policies asked for, by the names that the page gives them."""
    if options.best and not options.runs:
        raise UsageError("--best is for runs: leave it out, or give a run directory")
    loaded_runs = [saved_runs.load(directory, options.best) for directory in options.runs]
    loaded_runs += [saved_policies.as_run(name) for name in options.policy]
    if not 1 <= len(loaded_runs) <= MOST_RUNS:
        raise UsageError(f"got {len(loaded_runs)} runs; give 1 to {MOST_RUNS} run directories")
    names = [saved_policies.name_of(x, None) for x in options.runs]
    names += [saved_policies.name_of(None, x) for x in options.policy]
    if len(set(names)) < len(names):
        names = [f"{i + 1}. {name}" for i, name in enumerate(names)]
    return dict(zip(names, loaded_runs, strict=True))


def build_page(runs_by_name: dict[str, Run], options: Options) -> str:
    """The page."""
    content, scripts = page_content(runs_by_name, options)
    return page.html(", ".join(runs_by_name), content, scripts)


def page_content(
    runs_by_name: dict[str, Run], options: Options
) -> tuple[dict[str, Any], list[Path]]:
    """What the page shows, and the scripts that draw it."""
    arrays, scenes, histograms = Arrays(), [], []
    entries = [(name, run, run.program.training(run.config)) for name, run in runs_by_name.items()]
    for name, run, training in entries:
        # separate, so that the episodes do not depend on how many games there are
        games, episodes = jax.random.split(jax.random.key(options.key))
        with show_activity(f"playing episodes of {name}"):
            selection = EpisodeSelection(options.episodes, episodes, options.steps)
            scenes.append(abilities.scene_of(run, selection) if options.episodes else None)
        run_histograms = contents.distributions(name, training, run.agents[0], options.games, games)
        histograms.append(run_histograms)
    return {
        "runs": [contents.of_run(run, name, training) for name, run, training in entries],
        "records": [contents.record(run, training.score.labels) for _, run, training in entries],
        "evaluations": [contents.scores(run) for run in runs_by_name.values()],
        "distributions": histograms,
        # a run without episodes is looked at in its pictures
        "pictures": [
            [] if scene is not None else contents.pictures_of(run)
            for scene, run in zip(scenes, runs_by_name.values(), strict=True)
        ],
        "scenes": [None if scene is None else contents.scene(scene, arrays) for scene in scenes],
        "arrays": arrays.text(),
        "made": f"Made on {time.strftime('%Y-%m-%d')} by python -m train.report.",
    }, [x for scene in scenes if scene is not None for x in scene.scripts]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
