"""Two snakes as a program: `python -m train.two_snake`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import jax
import tyro
from rich.console import RenderableType

from jaxrl.checks import Seed
from train.host.numbers import quantity
from train.host.plain_config import check_options
from train.host.program import Evaluator, Program, Run, Views
from train.host.running import saved_runs
from train.host.running.run import Result, train_program
from train.host.scoring import scores
from train.host.scoring.scores_file import ScoresFile
from train.host.showing import outcomes
from train.host.training import Evaluation, Games
from train.two_snake import evaluation, pictures, scene, tournament
from train.two_snake.agents import with_known_guest
from train.two_snake.config import PRESETS, AnyConfig
from train.two_snake.trained import parameters
from train.two_snake.training import ENDINGS, make_training


@dataclass(frozen=True)
class Options(ScoresFile):
    """Plays the tournament with the newest checkpoint and writes RUN/eval.json."""

    run: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = None
    """Run directory."""
    policy: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Policy instead: a name that `python -m train.policies list` shows, or a file."""
    games: Games = 1_000
    """Games of each seed against each opponent, rounded up to an even number."""
    best: bool = False
    """The policies that were best while training, kept in RUN/best, instead of the newest."""
    key: Seed = 1
    """Root of the random numbers; the evaluation after training uses another one."""
    sampled: bool = False
    """Draw actions from the policy instead of acting greedily."""


def evaluate(run: Run, options: Options) -> RenderableType:
    """Plays, writes `eval.json` and returns the table to print. Raises UsageError."""
    check_options(options)
    greedy = not options.sampled
    changes = {"evaluation_games": options.games, "evaluation_greedy": greedy}
    config = saved_runs.with_run_fields(run.config, **changes)
    keys = scores.evaluation_keys(options.key, run.seeds)
    learned = [parameters(agent) for agent in run.agents]
    tournament_result = evaluation.tournament(config, learned, run.seeds, keys)
    extra = {"updates": run.updates, "key": options.key, "greedy": greedy}
    scores.write_evaluation(run.directory, tournament_result, options.out, **extra)
    return tournament_result.table


def draw(
    run: Run, count: int, key: jax.Array, tournament_result: Evaluation | None = None
) -> list[Path]:
    """Curve and endings of a run; `count` games with `key` against each opponent, two filmed."""
    paths = [pictures.draw_curve(run.directory, run.config, run.title)]
    title = "Two snakes: how training games ended for the learner"
    if path := outcomes.draw_endings(run.directory, ENDINGS, title):
        paths.append(path)
    if not count:
        return paths
    config = saved_runs.with_run_fields(run.config, evaluation_games=count)
    learned = parameters(run.agents[0])
    games, match = tournament_result.detail if tournament_result else games_of(config, learned, key)
    paths.append(pictures.draw_scores(run.directory, games[0]))
    return [*paths, *pictures.films(run.directory, config, learned, key, games[0], match)]


def film(run: Run, games: int, key: jax.Array, directory: Path) -> list[Path | str]:
    """Films of games against scripts, and a line with the share won against each."""
    changes = {"evaluation_games": games, "evaluation_greedy": True}
    config, learned = saved_runs.with_run_fields(run.config, **changes), parameters(run.agents[0])
    (games_by_opponent,), match = games_of(config, learned, key)
    paths = pictures.films(directory, config, learned, key, games_by_opponent, match)
    shares = {
        name: evaluation.measures(episodes)["won"] for name, episodes in games_by_opponent.items()
    }
    won = (
        f"{scores.number_text(share, '.1%') or 'none that was finished'} against {name}"
        for name, share in shares.items()
    )
    return [*paths, f"{quantity(games, 'games')}: won {' and '.join(won)}"]


def games_of(config: AnyConfig, learned: dict, key: jax.Array) -> evaluation.PlayedGames:
    """The games against the scripts that are filmed."""
    match = tournament.compile_games(config, learned)
    sides = tournament.Sides(learned, learned)
    games = tournament.matches(config, match, sides, key, pictures.FILMED)
    return evaluation.PlayedGames([games], match)


PROGRAM = Program(
    name="two_snake",
    presets=PRESETS,
    training=make_training,
    module=__name__,
    complete=with_known_guest,
    environment=lambda config: f"Two snakes {config.env.rows}×{config.env.cols}",
    views=Views(pictures=draw, film=film, episodes=scene.show, live=scene.live, duel=scene.duel),
    evaluator=Evaluator(Options, evaluate),
)


def train(config: AnyConfig, preset: str = "curriculum") -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs."""
    return train_program(PROGRAM, config, preset)
