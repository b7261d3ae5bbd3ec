"""The training of a configuration of goals: learners of every arm, goal and seed, side by side.

Axes: A arms, G goals, R learners of each, C checkpoints, S states, O options.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Group

from jaxrl.loop import LoopMetrics
from jaxrl.spectral.control import q_learning
from jaxrl.spectral.control.options import Options
from jaxrl.types import PyTree
from train.allo.training import make_problem
from train.goals import features, scores, tasks
from train.goals.config import ARMS, DIRECTED, Config, check, learner, plan, seed_of_tasks
from train.goals.scores import Arm
from train.goals.tasks import Learner
from train.host.errors import UsageError
from train.host.program import Run
from train.host.running import saved_runs
from train.host.scoring import scores as host_scores
from train.host.training import Evaluation, Score, TrainedAgents, Training

MOST_STATES = 5_000
"""States of a maze, at most; a table of distances has the square of it."""
SCORE = "area"
"""Area under the success curve of the arm `SCORED`: its mean over the checkpoints."""
SCORED = "learned distance"


class LearnerResults(NamedTuple):
    """Results of the learners at each checkpoint; 0 at those not reached yet."""

    success: jax.Array  # [A, G, R, C] share of greedy episodes that arrived
    length: jax.Array  # [A, G, R, C] their mean steps, 1 or more

    @property
    def num_reached(self) -> int:
        """Checkpoints reached so far. Host code."""
        return int(np.sum(np.any(np.asarray(self.length) > 0, axis=(0, 1, 2))))


class State(NamedTuple):
    """All learners in training."""

    agent: LearnerResults
    learners: Learner  # [A, G, R, ...]
    key: jax.Array
    updates: jax.Array  # int32, checkpoints so far


class Experiment(NamedTuple):
    """What is fixed before any learner starts."""

    run: Run  # of train.allo
    problem: Any
    arms: tuple[Arm, ...]  # A
    plan: tasks.Config
    goals: np.ndarray  # int32 [G]
    potentials: jax.Array  # [A, G, R, S]
    options: Options  # [R, O, S]
    numbers: q_learning.Config  # each leaf [A]


def make_training(config: Config) -> Training:
    """Raises ValueError or UsageError, in one line, for an invalid configuration."""
    check(config)
    experiment = make_experiment(config)
    count, arms = config.run.total_updates(1), experiment.arms
    map_all = partial(map_learners, experiment)

    # all learners begin with the same keys in every arm and goal
    def init(key: jax.Array) -> State:
        key, learner_key = jax.random.split(key)
        keys = jax.random.split(learner_key, config.learners)
        start = map_all(tasks.begin)(keys)
        empty = jnp.zeros((len(arms), len(experiment.goals), config.learners, count))
        return State(LearnerResults(empty, empty), start, key, jnp.zeros((), jnp.int32))

    # an update is a checkpoint: training and greedy episodes of all learners
    def update(state: State) -> tuple[State, LoopMetrics]:
        learners, success, length = map_all(tasks.checkpoint)(state.learners)
        results = LearnerResults(
            state.agent.success.at[..., state.updates].set(success),
            state.agent.length.at[..., state.updates].set(length),
        )
        updates = state.updates + 1
        areas = jnp.sum(jnp.mean(results.success, axis=(1, 2)), axis=-1) / updates  # [A]
        measures = {
            SCORE: areas[[arm.name for arm in arms].index(SCORED)],
            "success": jnp.mean(success, axis=(1, 2)),
            "length": jnp.mean(length, axis=(1, 2)),
        }
        after = State(results, learners, state.key, updates)
        return after, LoopMetrics(jnp.zeros((), jnp.int32), {}, measures)

    arm_names = [arm.name for arm in arms]
    return Training(
        init=init,
        update=update,
        evaluate=partial(evaluate, config, experiment),
        steps_per_update=1,
        unit="checkpoints",
        score=Score(SCORE, labels={"success": arm_names, "length": arm_names}),
        budget_shapes_learning=True,  # it sets the size of the arrays of results
    )


def make_experiment(config: Config) -> Experiment:
    """Goals, and the potentials and options that every arm is given."""
    with jax.ensure_compile_time_eval():  # a sweep traces the numbers of its members
        run = load(config.learned)
        problem = make_problem(run.config)
        if (count := problem.layout.num_states) > MOST_STATES:
            raise UsageError(
                f"the maze of {config.learned} has {count:,} states; expected at most "
                f"{MOST_STATES:,}, as the distances between all pairs are computed: train on a "
                "smaller maze"
            )
        params, distances = problem.params, tasks.goal_distances(problem.params)
        sizes = plan(config, distances)
        goals = tasks.draw_goals(params, config.goals, seed_of_tasks(config), sizes)
        arms = ARMS + DIRECTED if run.config.agent.directed else ARMS
        representations = [features.represent(run.config, problem, agent) for agent in run.agents]
        guidance = features.make_guidance(
            params, representations, goals, distances, config.learners
        )
        potentials = jnp.stack([guidance.potentials[arm.potential] for arm in arms])
    numbers = [learner(arm, config.weight) for arm in arms]
    return Experiment(
        run=run,
        problem=problem,
        arms=arms,
        plan=sizes,
        goals=goals,
        potentials=potentials,
        options=guidance.options,
        numbers=jax.tree.map(lambda *x: jnp.stack([jnp.asarray(each) for each in x]), *numbers),
    )


def load(directory: str) -> Run:
    """The run of train.allo in `directory`. Raises UsageError if its features cannot be used."""
    run = saved_runs.load(directory)
    if run.program.name != "allo":
        raise UsageError(f"{directory} is a run of {run.program.name}; expected one of train.allo")
    if run.config.transitions or run.config.env.step or run.config.env.wind_spread:
        raise UsageError(
            f"{directory} was not learned in a maze of cells; expected a run of train.allo without "
            "--transitions, --env.step and --env.wind-spread"
        )
    if (d := run.config.agent.num_features) < 2:
        raise UsageError(
            f"{directory} has learned {d} feature; expected at least 2, as the first one is "
            "constant: train with a larger --agent.num-features"
        )
    return run


def map_learners(experiment: Experiment, body: Any) -> Any:
    """`body(env, params, agent, greedy, learner, plan)` for `[A, G, R]` learners.

    Arms differ in numbers alone and share one compilation. Before the start learners are keys,
    `[R]`, the same for all arms and goals; later they are states, `[A, G, R, ...]`.
    """
    env, params = experiment.problem.env, experiment.problem.params

    def call_one(numbers: q_learning.Config, goal, potential, options, learner: PyTree):
        make = partial(q_learning.make, numbers, env.num_states, env.num_actions)
        agents = (make(potential, options, greedy=greedy) for greedy in (False, True))
        task = tasks.task(params, goal, experiment.plan)
        return body(env, task, *agents, learner, experiment.plan)

    def map_all(learners: PyTree) -> PyTree:
        learner_axis = None if isinstance(learners, jax.Array) else 0
        of_learners = jax.vmap(call_one, in_axes=(None, None, 0, 0, 0))
        of_goals = jax.vmap(of_learners, in_axes=(None, 0, 0, None, learner_axis))
        of_arms = jax.vmap(of_goals, in_axes=(0, None, 0, None, learner_axis))
        goals = jnp.asarray(experiment.goals)
        return of_arms(
            experiment.numbers, goals, experiment.potentials, experiment.options, learners
        )

    return map_all


def evaluate(config: Config, experiment: Experiment, *trained: *TrainedAgents) -> Evaluation:
    """Every measure of every arm, with its interval over goals and learners.

    Of the checkpoints that have been reached: a run may have been stopped before its end.
    """
    sizes, maze = experiment.plan, experiment.problem.layout
    reached = max(results.num_reached for results in trained[0])

    def measure(results: LearnerResults, key: jax.Array) -> dict[str, Any]:
        del key  # nothing is drawn
        success, length = (np.asarray(x)[..., : max(reached, 1)] for x in results)
        progress = [tasks.progress(*pair, sizes) for pair in zip(success, length, strict=True)]
        arms = scores.summaries(experiment.arms, progress)
        area = arms[SCORED]["area"]
        return {SCORE: {"mean": area["value"], **area}, "arms": arms}

    return host_scores.evaluate_by_measure(
        *trained,
        SCORE,
        measure,
        lambda content: Group(*(scores.table(content, row) for row in content["seeds"])),
        maze=maze.name,
        states=maze.num_states,
        training_seeds=experiment.run.seeds,
        updates_of_training=experiment.run.updates,
        goals=experiment.goals.tolist(),
        learners=config.learners,
        distance=sizes.min_distance,
        max_steps=sizes.max_steps,
        games=sizes.games,
        checkpoints_reached=reached,
        checkpoints_planned=config.run.total_updates(1),
        level=sizes.level,
        weight=config.weight,
    )
