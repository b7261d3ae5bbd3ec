"""One online experiment: a policy chooses inputs of a field, a learner learns it, and is scored.

Axes: F fields, R newest samples, n channels, m inputs, G points of the grid along each axis, d
latent dimensions, Q states that a controller can reach; places are the grid's cells `[G, G]`, or
these states `[Q]`.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from envs.vector_field import VectorField
from envs.vector_field.params import Params
from jaxrl.dynamics.planning import plan_objectives, stimulation
from jaxrl.loop import TrainState
from jaxrl.types import PyTree
from train.vector_field.experiment import stopping
from train.vector_field.experiment.field_errors import fields_at, relative_error
from train.vector_field.experiment.learning_loop import Ways, loop_of
from train.vector_field.experiment.policy_groups import Group
from train.vector_field.experiment.reach import scored_points, visits
from train.vector_field.experiment.stopping import StopRule, Watch
from train.vector_field.learners.learner import Learner

TRAIL = 1_000
"""Number of newest latent states that are kept for pictures."""


class Sample(NamedTuple):
    """What is recorded of one step."""

    y: jax.Array  # [n] observed
    u: jax.Array  # [m] the input given then
    z: jax.Array  # [d] the true latent state
    belief: jax.Array  # [learned dimensions] where the learner took the state to be


class Experiment(NamedTuple):
    """One online experiment in progress."""

    train: TrainState  # of the loop with one environment; its agent is held elsewhere
    trail: jax.Array  # [TRAIL, d] newest latent states, the newest last
    visited: jax.Array  # bool, of the places
    recent: Sample | tuple[()] = ()  # [R, ...] newest samples, the newest last
    watch: Watch | tuple[()] = ()  # only where experiments may stop


class Setting(NamedTuple):
    """What all experiments of a laboratory share."""

    env: VectorField
    worlds: Callable[[jax.Array], Params]  # key -> parameters of the environment, [F, ...]
    learner: Learner
    policies: tuple[str, ...]
    groups: list[Group]
    step_of: Callable[[Ways], Callable]  # `make_step` of ways to choose inputs
    box: float  # the field is scored within ± this
    samples: int  # steps of one `Laboratory.advance`
    keep: int  # R, newest samples that an experiment holds
    stop: StopRule | None = None  # None: experiments last as long as the run
    goal: tuple[float, ...] = ()  # of some policy, in coordinates of the state; empty: none
    in_turns: bool = False  # one experiment of a group after another, as suits a CPU; else at once


def begin(
    setting: Setting,
    ways: Ways,
    numbers: dict,
    params: Params,
    within: jax.Array,
    key: jax.Array,
) -> tuple[PyTree, Experiment]:
    """`(agent, experiment)` before the first step."""
    state = loop_of(setting.env, setting.learner, ways, numbers, params).init(key)
    trail = jnp.broadcast_to(state.env.z, (TRAIL, setting.env.dims))
    visited = jnp.zeros(within.shape[: 2 if setting.env.dims == 2 else 1], bool)
    sample, measures = shapes_of_step(setting, ways, numbers, state)
    recent = jax.tree.map(lambda x: jnp.zeros((setting.keep, *x.shape)), sample)
    watch = ()
    if setting.stop is not None:
        if setting.goal:
            measures["goal_distance"] = jax.eval_shape(lambda: jnp.zeros(()))
        watch = stopping.first_watch(measures)
    return state.agent, Experiment(state._replace(agent=()), trail, visited, recent, watch)


def shapes_of_step(
    setting: Setting, ways: Ways, numbers: dict, state: TrainState
) -> tuple[Sample, dict]:
    """The shapes of a sample, and of what a learner measures."""
    world = setting.learner.world(state.agent)
    measures = dict(jax.eval_shape(setting.step_of(ways), numbers, world, state)[1].agent)
    y, u, belief = measures.pop("seen")
    return Sample(y, u, jax.eval_shape(lambda: state.env.z[0]), belief), measures


def advance(
    setting: Setting,
    ways: Ways,
    numbers: dict,
    agent: PyTree,
    experiment: Experiment,
    within: jax.Array,
) -> tuple[PyTree, Experiment, dict[str, jax.Array]]:
    """`samples` steps of one experiment, and the scores of its learner after them."""
    world, step = setting.learner.world(agent), setting.step_of(ways)

    def step_and_record(state: TrainState, _):
        after, metrics = step(numbers, world, state)
        measures = dict(metrics.agent)
        y, u, belief = measures.pop("seen")
        return after, (after.env.z[0], Sample(y, u, state.env.z[0], belief), measures)

    before = experiment.train._replace(agent=agent)
    state, (path, samples, metrics) = jax.lax.scan(step_and_record, before, length=setting.samples)
    visited = experiment.visited | visits(path, setting.box, within, setting.env.wrap_angles)
    trail = jnp.concatenate([experiment.trail, path])[-TRAIL:]
    newest_of = lambda old, new: jnp.concatenate([old, new])[-setting.keep :]
    recent = jax.tree.map(newest_of, experiment.recent, samples)
    newest = {name: x[-1] for name, x in metrics.items()}
    if setting.goal:
        newest["goal_distance"] = mean_distance(setting, path)
    after = Experiment(state._replace(agent=()), trail, visited, recent, experiment.watch)
    new_agent = state.agent
    if setting.stop is not None:
        agents = agent, new_agent
        new_agent, after, newest = freeze_stopped(
            setting, setting.stop, agents, experiment, after, newest
        )
    return new_agent, after, scores(setting, new_agent, after.visited, within) | newest


def mean_distance(setting: Setting, path: jax.Array) -> jax.Array:
    """Mean distance of the states `[T, d]` from the goal, the shorter way round of angles."""
    goal_policy = stimulation.Config(kind="planned", objective="goal", goal=setting.goal)
    return jnp.mean(plan_objectives.distances(goal_policy, path, setting.env.wrap_angles))


def freeze_stopped(
    setting: Setting,
    rule: StopRule,
    agents: tuple[PyTree, PyTree],
    before: Experiment,
    after: Experiment,
    measures: dict[str, jax.Array],
) -> tuple[PyTree, Experiment, dict[str, jax.Array]]:
    """Agent, experiment and measures after some samples, or, but for the key, as they were if it
    had stopped.

    `agents` are that before and that after. Of an experiment that has stopped nothing is recorded
    but zeros.
    """
    assert isinstance(before.watch, Watch)
    information_gain = setting.learner.information_gain
    assert information_gain is not None  # or `config_checks` had refused the rule
    agent, new_agent = agents
    goes_on, newest = before.watch.goes_on, setting.samples
    gain = information_gain(agent, new_agent)
    watch = stopping.update_watch(rule, before.watch, gain, newest, measures)
    recent = jax.tree.map(lambda x: x.at[-newest:].multiply(goes_on.astype(x.dtype)), after.recent)
    key = after.train.key  # which goes on: a key is used once, whatever comes of it
    without_records = lambda x: x._replace(recent=(), watch=(), train=x.train._replace(key=()))
    new_agent, experiment = stopping.select(
        goes_on, (new_agent, without_records(after)), (agent, without_records(before))
    )
    train = experiment.train._replace(key=key)
    stopped = {"stopped_at": watch.stopped_at.astype(jnp.float32)}
    experiment = experiment._replace(recent=recent, watch=watch, train=train)
    return new_agent, experiment, measures | watch.measures | stopped


def scores(
    setting: Setting, agent: PyTree, visited: jax.Array, within: jax.Array
) -> dict[str, jax.Array]:
    """The scores of one learner. Of the places `visited` is bool, and `within` is where a
    controller can come: bool `[G, G]`, or states `[Q, d]`."""
    points = scored_points(setting.box, setting.env.dims)
    fields_on = partial(fields_at, setting.env, setting.learner, agent)
    learned, true = fields_on(points)
    if setting.env.dims == 2:
        return {
            "error": relative_error(learned, true, jnp.ones_like(within)),
            "reachable_error": relative_error(learned, true, within),
            "coverage": jnp.sum(visited & within) / jnp.sum(within),
        }
    everywhere = jnp.ones(len(within))
    return {
        "error": relative_error(learned, true, everywhere),
        "reachable_error": relative_error(*fields_on(within), everywhere),
        "coverage": jnp.mean(visited),
    }
