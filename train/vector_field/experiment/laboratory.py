"""Many online experiments in one program: every policy on every field.

Policies share one compiled body, but for how they choose inputs (`policy_groups`). Within a seed
all policies have the same world, initial state and random numbers.

Axes: F fields, P policies of a group.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from envs.vector_field import VectorField
from envs.vector_field.params import Params
from jaxrl.dynamics.planning import stimulation
from jaxrl.types import PyTree
from train.vector_field.experiment.experiments import Setting, advance, begin
from train.vector_field.experiment.learning_loop import cache_by_ways, make_step
from train.vector_field.experiment.policy_groups import groups, map_ways
from train.vector_field.experiment.reach import reachable
from train.vector_field.experiment.stopping import StopRule
from train.vector_field.learners.learner import Learner


class Laboratory(NamedTuple):
    """Runs the experiments of one seed; its trees have leading axes `[F]` or `[P, F]`."""

    init: Callable[[jax.Array], tuple[PyTree, PyTree]]
    """`key -> (agents, progress)`: dicts by the first policy of each group; `progress` also holds
    the reachable cells."""
    advance: Callable[[PyTree, PyTree], tuple[PyTree, PyTree, dict[str, jax.Array]]]
    """`(agents, progress) -> (agents, progress, scores)` after `Setting.samples` steps; each score
    is `[F, policies]`, in the order of the policies."""


def make(
    env: VectorField,
    worlds: Callable[[jax.Array], Params],
    learner: Learner,
    policies: dict[str, stimulation.Config],
    box: float,
    samples: int,
    keep: int = 0,
    stop: StopRule | None = None,
    goal: tuple[float, ...] = (),
    in_turns: bool = False,
) -> Laboratory:
    """Experiments that advance by `samples` at a time; arguments as `Setting` describes them."""
    names, grouped = tuple(policies), groups(policies)
    step_of = cache_by_ways(partial(make_step, env, learner))
    keep = max(keep, samples)
    setting = Setting(
        env, worlds, learner, names, grouped, step_of, box, samples, keep, stop, goal, in_turns
    )
    return Laboratory(partial(begin_all, setting), partial(advance_all, setting))


def begin_all(setting: Setting, key: jax.Array) -> tuple[PyTree, PyTree]:
    """`Laboratory.init`."""
    world_key, reach_key, start_key = jax.random.split(key, 3)
    params, fields = setting.worlds(world_key), len(setting.env.fields)
    find = partial(reachable, setting.env, box=setting.box)
    within = jax.vmap(lambda p, k: find(p, key=k))(params, jax.random.split(reach_key, fields))
    agents, experiments = {}, {}
    for group in setting.groups:
        keys = jax.random.split(jax.random.clone(start_key), fields)  # alike for all policies
        body, by_policy = partial(begin, setting), (False, False, False)
        run = map_ways(body, group, by_policy, fields, setting.in_turns)
        initial = run(params, within, keys)
        agents[group.policies[0]], experiments[group.policies[0]] = initial
    return agents, (experiments, within)


def advance_all(
    setting: Setting, agents: PyTree, progress: PyTree
) -> tuple[PyTree, PyTree, dict[str, jax.Array]]:
    """`Laboratory.advance`."""
    experiments, within = progress
    agents, experiments, policy_scores = dict(agents), dict(experiments), {}
    for group in setting.groups:
        name = group.policies[0]
        body, by_policy = partial(advance, setting), (True, True, False)
        run = map_ways(body, group, by_policy, len(setting.env.fields), setting.in_turns)
        agents[name], experiments[name], group_scores = run(agents[name], experiments[name], within)
        for i, policy in enumerate(group.policies):
            policy_scores[policy] = {
                measure: x[i] for measure, x in group_scores.items()
            }  # each [F]
    ordered_scores = [policy_scores[name] for name in setting.policies]
    by_measure = {m: jnp.stack([x[m] for x in ordered_scores], axis=1) for m in ordered_scores[0]}
    return agents, (experiments, within), by_measure
