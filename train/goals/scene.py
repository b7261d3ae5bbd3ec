"""Walks of trained learners to a goal, to be looked at in a report."""

from pathlib import Path

import jax
import numpy as np

from envs.grid import drawing, frames
from jaxrl.numerics.trees import take
from jaxrl.spectral.control import q_learning
from jaxrl.types import Agent
from train.goals import tasks
from train.goals.space.space_config import SpaceConfig
from train.goals.training import Experiment, make_experiment
from train.host.numbers import quantity
from train.host.program import EpisodeSelection, Run
from train.host.showing import episodes
from train.host.showing.episodes import Episode, Recording, Scene

SCRIPTS = Path(drawing.__file__).with_suffix(".js"), Path(__file__).with_name("goals.js")
SIDES = ("up", "right", "down", "left")


def show(run: Run, selection: EpisodeSelection) -> Scene | None:
    """A greedy walk of the first learner of each arm to a goal; goals in turn, arms within each.

    All arms begin in the same state. None for what has no learners, such as a policy, and in open
    space.
    """
    if run.state is None or isinstance(run.config, SpaceConfig):
        return None
    experiment = make_experiment(run.config)
    several = len(run.seeds) > 1
    agents = run.state.learners.train.agent  # [A, G, R, ...], perhaps after seeds
    agents = take(agents, selection.member) if several else agents
    indices = [divmod(i, len(experiment.arms)) for i in range(selection.count)]
    pairs = [(g, a) for g, a in indices if g < len(experiment.goals)]
    env = experiment.problem.env  # a greedy learner needs no numbers but its table
    player = q_learning.make(q_learning.Config(), env.num_states, env.num_actions, greedy=True)
    walks = [_walk(experiment, player, agents, a, g, selection) for g, a in pairs]
    return Scene(SCRIPTS, walks, frames.layout_data(experiment.problem.layout))


def _walk(
    experiment: Experiment,
    player: Agent,
    agents: q_learning.State,
    arm: int,
    goal: int,
    selection: EpisodeSelection,
) -> Episode:
    """One episode of the first learner of an arm."""
    problem, target = experiment.problem, int(experiment.goals[goal])
    learned = take(agents, (arm, goal, 0))
    task = tasks.task(problem.params, target, experiment.plan)
    key = jax.random.fold_in(selection.key, goal)
    (recording,) = episodes.record(problem.env, task, player, learned, key, 1, selection.limit)
    return episode(recording, learned, experiment.arms[arm].name, target)


def episode(recording: Recording, learned: q_learning.State, arm: str, goal: int) -> Episode:
    """One walk, as the report shows it: `position` `[M]`, and what the learner knows."""
    arrived = "arrived" if recording.terminated else "did not arrive"
    states = np.asarray(recording.state.position)
    return Episode(
        title=f"{arm}: {arrived} after {quantity(recording.steps, 'steps')}",
        frames={"position": states},
        lines=episodes.lines(recording),
        bars=episodes.bars(recording, SIDES),
        constants={
            "goal": goal,
            "value": np.max(learned.q, axis=1),
            "best": np.argmax(learned.q, axis=1),
            "potential": np.asarray(learned.potential),
            "options": np.asarray(learned.options.policy),
            "ends": np.asarray(learned.options.terminates),
        },
    )
