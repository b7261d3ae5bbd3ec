"""`python -m train.evaluate RUN` for runs of `train.durotaxis`: colonies on any ground."""

import time
from dataclasses import replace
from typing import Any

from rich.table import Table

from envs.durotaxis.env import Durotaxis, Params
from jaxrl.types import Agent
from train.durotaxis.config import Experiment
from train.durotaxis.episodes import playing as colonies
from train.durotaxis.episodes import tables
from train.durotaxis.episodes.record import Episode
from train.durotaxis.episodes.shown import look_of
from train.durotaxis.evaluation.options import Options, apply_options, with_own_flags
from train.durotaxis.evaluation.results import fresh_folder, table, write, write_graphs
from train.durotaxis.training import SCORE, make_parts
from train.host.errors import UsageError, in_one_line
from train.host.files.provenance import provenance
from train.host.machine.progress import show_activity
from train.host.numbers import quantity
from train.host.plain_config import check_options, plain
from train.host.program import Run
from train.host.scoring import games, scores
from train.host.scoring.scores_file import write_scores


def evaluate(run: Run, options: Options) -> Table:
    """Plays, writes the results and returns the table to print. Raises UsageError."""
    # The experiment of the run, changed by the options.
    check_options(options)
    experiment = apply_options(run.config.env, options)
    curriculum = replace(run.config.curriculum, first_width=None)  # may exceed the new ground
    config = replace(run.config, env=experiment, curriculum=curriculum)
    try:
        env, params, agent = make_parts(config, greedy=not options.sampled)
    except ValueError as error:
        raise UsageError(with_own_flags(in_one_line(error))) from error
    started = time.perf_counter()
    episodes_by_seed = play_all(run, options, env, params, agent)
    seconds = time.perf_counter() - started
    results_by_seed = [colonies.episode_results(episodes) for episodes in episodes_by_seed]
    content = {
        "experiment": plain(experiment) | measured_ground(experiment),
        "units": look_of(experiment)[1]._asdict(),
        "options": plain(options),
        "updates": run.updates,
        "seconds": seconds,
        **provenance(),
        "seeds": [
            {"seed": seed, **tables.summary(episodes), "endings": endings(whole)}
            for seed, episodes, whole in zip(
                run.seeds, results_by_seed, episodes_by_seed, strict=True
            )
        ],
    }
    # The files; `eval.json` is of the run's own experiment alone.
    if experiment == run.config.env:
        write_own_evaluation(run, options, games.GameResults(results_by_seed, 0.0, seconds))
    folder = fresh_folder(run.directory, experiment)
    look = look_of(experiment)
    write(folder, run.seeds, episodes_by_seed, content, look, env.component_names)
    write_scores(content, options.out)
    if options.graphml:
        write_graphs(folder / "graphs", run.seeds, episodes_by_seed, look)
    return table(content, folder)


def play_all(
    run: Run, options: Options, env: Durotaxis, params: Params, agent: Agent
) -> list[list[Episode]]:
    """All episodes of each seed."""
    keys = scores.evaluation_keys(options.key, run.seeds)
    with show_activity(f"playing {quantity(options.episodes, 'colonies')} of each seed"):
        return [
            colonies.play(env, params, agent, learned, key, options.episodes)
            for key, learned in zip(keys, run.agents, strict=True)
        ]


def write_own_evaluation(run: Run, options: Options, results: games.GameResults) -> None:
    """Writes `eval.json`: the games of a run in the experiment that it was trained in."""
    content = games.evaluation_content(run.seeds, results, SCORE)
    evaluation = scores.Evaluation(content, scores.evaluation_table(content))
    extra = {"updates": run.updates, "key": options.key, "greedy": not options.sampled}
    scores.write_evaluation(run.directory, evaluation, **extra)


def measured_ground(experiment: Experiment) -> dict[str, Any]:
    """The size of measured ground as pictures show it, px, whatever the goal; it has no law."""
    if not experiment.field_file:
        return {}
    whole = look_of(experiment).placement
    size = {"width": whole.width, "height": whole.height}
    return {**size, "ground": "measured", "slope": None, "base": None}


def endings(episodes: list[Episode]) -> dict[str, int]:
    """The number of episodes by how they ended, the most frequent first."""
    all_endings = [episode.ending for episode in episodes]
    return {
        name: all_endings.count(name)
        for name in sorted(set(all_endings), key=lambda e: -all_endings.count(e))
    }
