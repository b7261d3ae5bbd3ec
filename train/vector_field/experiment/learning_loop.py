"""The loop of one environment and one learner, which chooses inputs in one of several ways."""

from collections.abc import Callable
from dataclasses import replace

import jax

from envs.vector_field import VectorField
from envs.vector_field.params import Params
from jaxrl import loop
from jaxrl.dynamics.planning import stimulation
from jaxrl.loop import TrainState
from jaxrl.numerics.tracing import trace_once
from jaxrl.types import PyTree, Transition
from train.vector_field.experiment.policy_groups import NUMBERS, Way, way_of
from train.vector_field.learners.learner import Learner

Ways = tuple[stimulation.Config, ...]
"""Ways to choose inputs, as in `Group.ways`."""


def loop_of(
    env: VectorField, learner: Learner, ways: Ways, numbers: dict, params: Params
) -> loop.Loop:
    """A loop of one environment and one learner, with an update after each step.

    Inputs are chosen in one of the `ways`, by `numbers`, which are `Group.arguments`. Its measures
    also hold `seen`: y, u and belief of the step.
    """
    way, fields = numbers["way"], {name: numbers[name] for name in NUMBERS}
    agents = [learner.make(replace(each, **fields), params) for each in ways]
    act_each = [each.act for each in agents]
    agent = agents[0]  # which learns as all of them do

    def act(*arguments):
        return jax.lax.switch(way, act_each, *arguments)  # of a single one it is a call

    def update(state: PyTree, rollout: Transition, key: jax.Array) -> tuple[PyTree, dict]:
        after, measures = agent.update(state, rollout, key)
        sample = rollout.obs, rollout.action, rollout.extras.belief.mean
        return after, measures | {"seen": jax.tree.map(lambda x: x[0, 0], sample)}

    return loop.make_loop(env, params, agent._replace(act=act, update=update), loop.Config(1, 1))


def make_step(env: VectorField, learner: Learner, ways: Ways) -> Callable:
    """`(numbers, params, state) -> (state, LoopMetrics)`, one step of an experiment.

    Traced once for its shapes, for all levels of `vmap` and for all devices.
    """

    def step(numbers: dict, params: Params, state: TrainState):
        return loop_of(env, learner, ways, numbers, params).update(state)

    return trace_once(step)


def cache_by_ways(function: Callable[[Ways], Callable]) -> Callable[[Ways], Callable]:
    """`function`, called once for the same ways, which may hold traced numbers."""
    results: dict[tuple[Way, ...], Callable] = {}

    def call(ways: Ways) -> Callable:
        names = tuple(map(way_of, ways))
        if names not in results:
            results[names] = function(ways)
        return results[names]

    return call
