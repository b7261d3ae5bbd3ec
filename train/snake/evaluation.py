"""`python -m train.evaluate` for runs and policies of `train.snake`: any board, any rules."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import tyro
from rich.table import Table

from envs.snake.bitboard import Board
from envs.snake.env import Params
from envs.snake.observations import OBSERVATIONS
from envs.snake.players import PLAYERS
from jaxrl.checks import Count, CountOrZero, Seed
from train.host.errors import UsageError
from train.host.plain_config import check_options
from train.host.program import Run
from train.host.running import saved_runs
from train.host.scoring import scores
from train.host.scoring.scores_file import ScoresFile, write_scores
from train.host.training import Games
from train.snake import rule_based
from train.snake.config import PPO, Game, Side, as_played, board_text
from train.snake.rule_based import BOARD, OpenSnake
from train.snake.training import make_training


@dataclass(frozen=True)
class Options(ScoresFile):
    """Plays games with the agents of a run or a policy, on its own board or others.

    Writes eval.json into the run directory, eval-ROWSxCOLS-RULES-STEPS.json for another game (with
    -N-obstacles and -K-foods where there are such), or
    transfer.json with --sizes; for a policy, into runs/policy-NAME. Flags that are not given are as
    in the run.
    """

    run: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = None
    """Run directory."""
    policy: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Policy instead: a name that `python -m train.policies list` shows, or a file."""
    games: Games = 1_000
    """Complete games per seed."""
    best: bool = False
    """The policies that were best while training, kept in RUN/best, instead of the newest."""
    key: Seed = 1
    """Root of the random numbers; the evaluation after training uses another one."""
    sampled: bool = False
    """Draw actions from the policy, or explore, instead of acting greedily."""
    rows: Annotated[Side | None, tyro.conf.arg(metavar="INT")] = None
    """Height of the board, 4 to 32 cells."""
    cols: Annotated[Side | None, tyro.conf.arg(metavar="INT")] = None
    """Width of the board, 4 to 32 cells."""
    rules: Literal["classic", "modern"] | None = None
    """classic: the tail kills, no win. modern: follow the tail, win on a full board, starve."""
    obstacles: Annotated[CountOrZero | None, tyro.conf.arg(metavar="INT")] = None
    """Cells closed to the snake, drawn anew for every game."""
    foods: Annotated[Count | None, tyro.conf.arg(metavar="INT")] = None
    """Pieces of food on the board at a time."""
    max_steps: Annotated[Count | None, tyro.conf.arg(metavar="INT")] = None
    """Steps after which a game is truncated; by default as in the run, or with --sizes 100 for each
    cell of the board, twice what good players need to fill it, so that only endless loops are
    truncated."""
    players: tuple[str, ...] = ()
    """Rule-based players to score as well; envs/snake/players.py names them."""
    sizes: tuple[Side, ...] = ()
    """Square boards to play on, such as 8 10 15 20."""


def evaluate(run: Run, options: Options) -> Table:
    """Plays, writes the results and returns the table to print. Raises UsageError."""
    check(run, options)
    sides = [(n, n) for n in options.sizes] or [(options.rows, options.cols)]
    games = [requested_game(run.config.env, rows, cols, options) for rows, cols in sides]
    rule_games = [scripted_game(game, options) for game in games]  # refuses before any is played
    for game in games:
        refuse_other_shape(run.config.env, game)
    evaluations = []
    for game, (env, params) in zip(games, rule_games, strict=True):
        player_options = rule_based.Options(games=options.games, key=options.key)
        evaluation = play(run, game, options)
        evaluation.content["players"] = {
            name: rule_based.play(env, params, PLAYERS[name], player_options)
            for name in options.players
        }
        evaluations.append(evaluation)
    write(run, games, evaluations, options)
    return table(games, [x.content for x in evaluations], bool(options.sizes))


def check(run: Run, options: Options) -> None:
    """Raises UsageError for flags that contradict each other, or the run."""
    check_options(options)
    if options.sizes and (options.rows is not None or options.cols is not None):
        raise UsageError("--sizes says how large the boards are: leave out --rows and --cols")
    only_parameters = options.policy is not None or options.best
    if options.sampled and only_parameters and not isinstance(run.config, PPO):
        source = options.policy or run.directory
        raise UsageError(f"{source} has no exploration: leave out --sampled")


def requested_game(game: Game, rows: int | None, cols: int | None, options: Options) -> Game:
    """The game of a run as the options change it."""
    rows, cols = (was if n is None else n for n, was in ((rows, game.rows), (cols, game.cols)))
    limit = 100 * rows * cols if options.sizes else game.max_steps_in_episode
    rules, limit = options.rules or game.rules, options.max_steps or limit
    obstacles = game.obstacles if options.obstacles is None else options.obstacles
    return replace(
        game,
        rows=rows,
        cols=cols,
        rules=rules,
        obstacles=obstacles,
        foods=options.foods or game.foods,
        max_steps_in_episode=limit,
    )


def scripted_game(game: Game, options: Options) -> tuple[OpenSnake, Params]:
    """The same game for rule-based players. Raises UsageError for a bad board or player."""
    player_options = rule_based.Options(
        game.rows,
        game.cols,
        game.rules,
        game.actions,
        obstacles=game.obstacles,
        foods=game.foods,
        max_steps=game.max_steps_in_episode,
        players=options.players,
    )
    env, params = rule_based.make_game(player_options)
    return env, replace(params, rewards=game.rewards)


def refuse_other_shape(trained_game: Game, game: Game) -> None:
    """Raises UsageError if the network would get an observation of another shape, or other cells.

    Where cells are listed row by row, 6×7 and 7×6 have the same shape, and other neighbours.
    """
    boards = [Board(x.rows, x.cols) for x in (trained_game, game)]
    fits = lambda x: x.layout(boards[0]) == x.layout(boards[1])
    observation = OBSERVATIONS[game.observation]
    if fits(observation):
        return
    was, now = map(observation.shape, boards)
    suited = (name for name, x in OBSERVATIONS.items() if fits(x))
    advice = f"for other boards train with one of {', '.join(suited)}"
    if was != now:
        raise UsageError(
            f"{game.observation} has the shape {was} in training and {now} on "
            f"{game.rows}×{game.cols}: {advice}"
        )
    rows, cols = trained_game.rows, trained_game.cols
    raise UsageError(
        f"{game.observation} lists the cells of {rows}×{cols} in training and those of "
        f"{game.rows}×{game.cols} otherwise: {advice}"
    )


def play(run: Run, game: Game, options: Options) -> scores.Evaluation:
    """The evaluation of all agents of a run in another game, with the steps per food."""
    changes = {"evaluation_games": options.games, "evaluation_greedy": not options.sampled}
    if options.max_steps is not None or options.sizes:  # no other limit cuts these games first
        changes["evaluation_steps"] = game.max_steps_in_episode
    config = replace(saved_runs.with_run_fields(run.config, **changes), env=as_played(game))
    keys = scores.evaluation_keys(options.key, run.seeds)
    evaluation = make_training(config).evaluate(run.agents, run.seeds, keys)
    for row in evaluation.content["seeds"]:
        meals = (row["score"]["mean"] or 0.0) * row["games"]
        row["steps_per_food"] = row["steps"] / meals if meals else None
    return evaluation


def write(
    run: Run, games: list[Game], evaluations: list[scores.Evaluation], options: Options
) -> None:
    """Writes `eval.json` for the run's own game, another file for other games or boards."""
    run.directory.mkdir(parents=True, exist_ok=True)
    about = {"updates": run.updates, "key": options.key, "greedy": not options.sampled}
    game = games[0]
    if game == run.config.env and not options.sizes:
        scores.write_evaluation(run.directory, evaluations[0], options.out, **about)
        return
    boards = [
        {
            **{name: getattr(x, name) for name in BOARD},
            "max_steps": x.max_steps_in_episode,
            **evaluation.content,
        }
        for x, evaluation in zip(games, evaluations, strict=True)
    ]
    content = {"rules": game.rules, "games": options.games, **about, "boards": boards}
    kind = f"{game.rows}x{game.cols}-{game.rules}-{game.max_steps_in_episode}"
    kind += f"-{game.obstacles}-obstacles" * (game.obstacles > 0)
    kind += f"-{game.foods}-foods" * (game.foods > 1)
    name = "transfer.json" if options.sizes else f"eval-{kind}.json"
    write_scores(content, run.directory / name, options.out)


def table(games: list[Game], contents: list[dict[str, Any]], by_size: bool) -> Table:
    """Two lines for each seed and player of each board, the second with 95 % intervals."""
    rows = {}
    for game, content in zip(games, contents, strict=True):
        board = f"{board_text(game)} " if by_size else ""
        of_seeds = {f"{board}seed {row['seed']}": row for row in content["seeds"]}
        of_players = {f"{board}{name}": row for name, row in content["players"].items()}
        rows |= of_seeds | of_players
    game = games[0]
    of_one = {name: getattr(game, name) for name in BOARD}
    out = rule_based.table({**of_one, "rules": game.rules, "players": rows})
    limits = " · ".join(f"{x.max_steps_in_episode:,}" for x in games)
    board = "" if by_size else f" {board_text(game)}"
    out.title = f"Snake{board}, {game.rules} rules, cut after {limits} steps"
    return out
