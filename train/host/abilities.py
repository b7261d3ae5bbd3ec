"""What a command does with the policy of a run, and what the program must have for it.

compile, train.load     a player: `games.of_player(...).fields` has one, or `Training(player=...)`
train.play              `Views.live`, or a player of an environment with gymnax's `step_env`
episodes of a report    `Views.episodes`, or such a player
train.render            `Views.film`
export, --policy        `Program.exports`
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from train.host.errors import UsageError
from train.host.player import Player
from train.host.program import EpisodeSelection, Program, Run
from train.host.running.saved_runs import with_run_fields
from train.host.showing import plain_scene
from train.host.showing.episodes import Scene
from train.host.showing.live import Live

PAGE = "see Your own program in docs/policies.md"
STEPWISE = ("step_env", "get_obs", "is_truncated")
"""What is called of an environment whose episodes are looked at."""


def player_of(run: Run, greedy: bool = True) -> Player:
    """Who acts by the agents of a run. Raises UsageError if nobody does."""
    program, config = run.program, run.config
    if run.plays_games:
        config = with_run_fields(config, evaluation_greedy=greedy)
    player = program.training(config).player
    if player is None:
        raise _no_player_error(program, "do not act step by step")
    return player


def live_of(run: Run, member: int) -> Live:
    """What goes on step by step. Raises UsageError where nothing does."""
    program = run.program
    if program.views.live is not None:
        return program.views.live(run, member)
    player = program.training(run.config).player
    if player is None:
        raise _no_player_error(program, "cannot be watched live")
    if names := missing_methods(player):
        raise UsageError(
            f"policies of {program.address} cannot be watched live: the environment has no "
            f"{names}, and the Program no Views(live=...); {PAGE}"
        )
    return plain_scene.live(player, run.agents[member], program.address)


def duel_of(run: Run, member: int, against: Sequence[str]) -> Live:
    """The same against others by name. Raises UsageError where nobody can meet another."""
    if run.program.views.duel is None:
        raise UsageError(
            f"policies of {run.program.address} meet nobody: leave out --against, or choose one of "
            "train.two_snake"
        )
    return run.program.views.duel(run, member, against)


def scene_of(run: Run, selection: EpisodeSelection) -> Scene | None:
    """Episodes to be looked at, without a drawing if the program has none; None: there are none."""
    program = run.program
    if program.views.episodes is not None:
        return program.views.episodes(run, selection)
    player = program.training(run.config).player
    if player is None or missing_methods(player):
        return None
    return plain_scene.show(player, run.agents[selection.member], selection, program.address)


def film_of(program: Program) -> Callable[..., Any]:
    """`Views.film` of a program. Raises UsageError if there is none."""
    if program.views.film is None:
        advice = "use train.evaluate"
        if not program.is_ours:
            advice += f", or give its Program Views(film=...); {PAGE}"
        raise UsageError(f"policies of {program.address} cannot be filmed: {advice}")
    return program.views.film


def refuse_no_policies(program: Program, source: str | Path) -> None:
    """Raises UsageError for a run, or a file, of a program whose agents are no policies."""
    if not program.exports:
        raise UsageError(
            f"{source} is of {program.address}, what it learns cannot be exported as a policy: "
            + (program.alternative or "leave it in its run")
        )


def missing_methods(player: Player) -> str:
    """The names of what an environment needs for its episodes to be looked at, and lacks."""
    return ", ".join(name for name in STEPWISE if not hasattr(player.env, name))


def _no_player_error(program: Program, problem: str) -> UsageError:
    advice = program.alternative or (
        "their Training has no player: give it the fields of games.of_player(...), or "
        f"Training(player=Player(env, params, agent)); {PAGE}"
    )
    return UsageError(f"policies of {program.address} {problem}: {advice}")
