"""The training of goals and options without cells: learners of all tasks, side by side.

Axes: K tasks, N environments of each, T steps of a rollout.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

from jaxrl import loop
from jaxrl.evaluate import evaluate as play
from jaxrl.loop import LoopMetrics
from jaxrl.types import AgentState
from train.goals.space.space_config import SCORED, SpaceConfig, check, make_agent
from train.goals.space.space_tasks import Tasks
from train.goals.space.tasks_of_run import make_tasks
from train.host.scoring import scores as host_scores
from train.host.training import Evaluation, Quotient, Score, TrainedAgents, Training

GAMES = 64
"""Episodes from random places by which each learner is measured, with the mode of its policy."""


class State(NamedTuple):
    """All learners in training."""

    agent: AgentState  # [K, ...]
    loops: loop.TrainState  # [K, ...], without the agents
    key: jax.Array
    updates: jax.Array  # int32


def make_training(config: SpaceConfig) -> Training:
    """Raises ValueError or UsageError, in one line, for an invalid configuration."""
    check(config)
    tasks = make_tasks(config)
    agent = make_agent(config, tasks.network)
    make_loop = lambda params: loop.make_loop(tasks.env, params, agent, config.loop)
    arms = [x for x in tasks.arms if config.goals]
    names = {"arrived": arms, "climbed": [t.title for t in tasks.tasks if not t.arm]}

    # all learners begin with the same random numbers
    def init(key: jax.Array) -> State:
        start_key, key = jax.random.split(key)
        begin = lambda params: make_loop(params).init(start_key)
        loops = jax.vmap(begin, in_axes=(tasks.axes,))(tasks.params)
        agents, loops = loops.agent, loops._replace(agent=())
        return State(agents, loops, key, jnp.zeros((), jnp.int32))

    def update(state: State) -> tuple[State, LoopMetrics]:
        learn = lambda params, train: make_loop(params).update(train)
        trains = state.loops._replace(agent=state.agent)
        trains, metrics = jax.vmap(learn, in_axes=(tasks.axes, 0))(tasks.params, trains)
        agents, loops = trains.agent, trains._replace(agent=())
        after = State(agents, loops, state.key, state.updates + 1)
        measures = measures_of(tasks, metrics) | {"entropy": jnp.mean(metrics.agent["entropy"])}
        return after, LoopMetrics(jnp.zeros((), jnp.int32), {}, measures)

    return Training(
        init=init,
        update=update,
        evaluate=partial(evaluate, config, tasks),
        steps_per_update=config.loop.steps_per_update,
        unit="environment steps of each learner",
        score=Score(score_of(config), labels=names),
        blocks=config.loop.blocks,
        budget_shapes_learning=bool(np.isfinite(config.agent.anneal_updates)),
    )


def score_of(config: SpaceConfig) -> str:
    """The measure that is the score: how often goals are reached, else how far options climb."""
    return "success" if config.goals else "height"


def measures_of(tasks: Tasks, metrics: LoopMetrics) -> dict[str, Any]:
    """The measures of the episodes that end in a chunk, all learners exploring.

    `arrived` [arms]: the share that arrived, a mean over goals; `climbed` [options]: the share of
    the way up, of all episodes together, as one that begins near the top has hardly any way.
    `success` and `height` are those of the learned distance, and the mean of all options. Few
    episodes end in some updates, and those soon after a start are the ones that arrive: a mean
    of the updates' shares would be too large.
    """
    episodes = metrics.episodes.astype(jnp.float32)
    numbers = lambda arm: np.array([k for k, t in enumerate(tasks.tasks) if t.arm == arm], int)
    measures: dict[str, Any] = {}
    if len(numbers(SCORED)):
        of_arms = np.stack([numbers(arm) for arm in tasks.arms])
        arrived = Quotient(metrics.finished["arrived"][of_arms], episodes[of_arms])
        success = jax.tree.map(lambda x: x[tasks.arms.index(SCORED)], arrived)
        measures = {"success": success, "arrived": arrived}
    if len(options := numbers("")):
        sums = metrics.finished
        height = Quotient(sums["climbed"][options], sums["way"][options])
        climbed = jax.tree.map(lambda x: x[:, None], height)
        measures |= {"height": height, "climbed": climbed}
    return measures


def evaluate(config: SpaceConfig, tasks: Tasks, *trained: *TrainedAgents) -> Evaluation:
    """How often each goal is reached by the mode of each policy, and how far options climb."""
    player = make_agent(config, tasks.network, greedy=True)

    def play_one(params: Any, agent: AgentState, key: jax.Array):
        games = play(tasks.env, params, player, agent, key, GAMES, 1, tasks.limit)
        outcome = games.outcome
        return outcome["arrived"] > 0, games.length, outcome["climbed"], outcome["way"]

    play_all = jax.jit(jax.vmap(play_one, in_axes=(tasks.axes, 0, None)))

    def measure(agent: AgentState, key: jax.Array) -> dict[str, Any]:
        arrived, length, climbed, way = map(np.asarray, play_all(tasks.params, agent, key))
        steps = np.where(arrived, length, tasks.limit)
        row: dict[str, Any] = {"goals": {}, "options": {}}
        for arm in tasks.arms if config.goals else ():
            chosen = np.array([task.arm == arm for task in tasks.tasks])
            row["goals"][arm] = {
                "success": host_scores.summary(arrived[chosen].ravel()),
                "steps": float(steps[chosen].mean()),
            }
        shares = heights_of(climbed, way)
        heights = {t.title: float(x) for t, x in zip(tasks.tasks, shares, strict=True) if not t.arm}
        row["options"] = heights
        if config.goals:
            row["success"] = row["goals"][SCORED]["success"]
        if heights:
            row["height"] = float(np.mean(list(heights.values())))
        return row

    return host_scores.evaluate_by_measure(
        *trained,
        score_of(config),
        measure,
        table,
        maze=tasks.name,
        learned=config.learned,
        games=GAMES,
        max_steps=tasks.limit,
        height_unit=tasks.height,
    )


def heights_of(climbed: np.ndarray, way: np.ndarray) -> np.ndarray:
    """The share `[K]` of the way up, of all episodes `[K, ...]` together; 0 where Φ is flat."""
    climbed, way = (x.reshape(len(x), -1).sum(axis=1) for x in (climbed, way))
    return climbed / np.where(way > 0, way, 1.0)


def table(content: dict[str, Any]) -> Table:
    """A row for each arm and each option, of all seeds together."""
    out = Table(
        title=f"goals and options in {content['maze']}",
        caption=f"{content['games']} episodes of at most "
        f"{content['max_steps']} steps; height: the share of {content['height_unit']}",
    )
    for heading in ("", "arrived", "steps", "height"):
        out.add_column(heading, justify="right" if heading else "left")
    rows = content["seeds"]
    for arm in rows[0]["goals"]:
        of_arm = [row["goals"][arm] for row in rows]
        success = np.mean([x["success"]["mean"] for x in of_arm])
        out.add_row(arm, f"{success:.3f}", f"{np.mean([x['steps'] for x in of_arm]):.1f}", "")
    for title in rows[0]["options"]:
        height = np.mean([row["options"][title] for row in rows])
        out.add_row(f"eigenvector {title}", "", "", f"{height:.3f}")
    return out
