"""Plans against rollouts, variances and determinants in plain float64 NumPy."""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics.planning import plan_objectives, stimulation, stimulation_config
from jaxrl.dynamics.planning.predictive_model import PredictiveModel
from jaxrl.dynamics.planning.stimulation_config import Weights
from tests.accelerator_branches import compile_as_on_accelerators
from tests.jaxrl.dynamics.planning.stimulation_parts import (
    FAMILY,
    HIGH,
    KNOWN,
    LOW,
    PLANNED,
    PLANNER,
    D,
    Knowledge,
    expected_cost,
    flatten,
    next_state,
    plans,
    predictive_model,
    single,
)

# Plans.


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    ("objective", "propagate", "shared"),
    [
        ("d_optimal", False, True),
        ("a_optimal", False, True),
        ("d_optimal", True, True),
        ("a_optimal", True, True),
        ("d_optimal", False, False),
        ("a_optimal", True, False),
        ("disagreement", False, True),
    ],
)
def test_the_cost_of_a_plan_is_that_of_the_definition(objective, propagate, shared):
    config = replace(PLANNED, objective=objective, propagate=propagate, action_cost=0.1)
    knowledge, z = KNOWN if shared else FAMILY, np.array([0.3, -0.4])
    cost = jax.jit(
        lambda knowledge, z, x: plan_objectives.plan_cost(config, predictive_model(knowledge), z, x)
    )
    costs = cost(knowledge, single(z), plans(3))
    expected = [expected_cost(config, knowledge, z, plan.astype(np.float64)) for plan in plans(3)]
    np.testing.assert_allclose(costs, expected, rtol=2e-4)
    assert np.ptp(expected) > 1e-2


def goal_cost(states: np.ndarray, goal: tuple[float, ...]) -> float:
    places = [np.array([x + y, x * y, y]) for x, y in states[1:]]
    return sum(np.sqrt(np.sum((place - np.array(goal)) ** 2)) for place in places)


def novelty_gain(states: np.ndarray) -> float:
    return sum(x**2 + 0.1 * y**4 for x, y in states[1:])


@pytest.mark.parametrize(
    "objective", ["goal", "rnd", "goal+rnd", "d_optimal+goal+rnd", "disagreement+d_optimal"]
)
def test_goals_novelty_and_mixtures_cost_what_the_definitions_say(objective):
    """Numbers of the weights, of the goal and of the price of inputs may be traced."""
    weights, goal = Weights(d_optimal=0.7, disagreement=2.0, goal=1.5, rnd=3.0), (0.5, -1.0, 2.0)
    config = replace(PLANNED, objective=objective, action_cost=0.1)
    z = np.array([0.3, -0.4])

    @jax.jit
    def cost(weights, goal, plans):
        traced = replace(config, weights=weights, goal=goal)
        return plan_objectives.plan_cost(traced, predictive_model(KNOWN), single(z), plans)

    flat, _ = flatten(KNOWN)
    for plan, actual in zip(plans(3), cost(weights, goal, plans(3)), strict=True):
        plan, states = plan.astype(np.float64), [z]
        for u in plan:
            states.append(next_state(states[-1], u, flat))
        states, expected = np.array(states), 0.1 * np.sum(plan**2)
        for name in objective.split("+"):
            if name == "goal":
                expected += 1.5 * goal_cost(states, goal)
            elif name == "rnd":
                expected -= 3.0 * novelty_gain(states)
            else:
                alone = replace(config, objective=name, action_cost=0.0)
                expected += getattr(weights, name) * expected_cost(alone, KNOWN, z, plan)
        np.testing.assert_allclose(actual, expected, rtol=2e-4)


def test_one_number_is_a_goal_for_every_component():
    config = replace(PLANNED, objective="goal", goal=(0.5,))
    states = single(np.random.default_rng(3).normal(size=(4, 3)))
    expected = np.sqrt(np.sum((np.asarray(states) - 0.5) ** 2, axis=1))
    np.testing.assert_allclose(plan_objectives.distances(config, states), expected, rtol=1e-5)
    stimulation_config.check_goal(replace(config, goal=(1.0, 2.0)), 2)
    with pytest.raises(ValueError, match="goal has 2 numbers, expected 3, one for each component"):
        stimulation_config.check_goal(replace(config, goal=(1.0, 2.0)), 3)


@pytest.mark.slow
def test_a_plan_for_a_goal_goes_there():
    """The distance after ten steps, against that without inputs."""
    config = replace(PLANNED, objective="goal", goal=(0.0,), replan_steps=1)
    model_of = lambda knowledge: predictive_model(knowledge)._replace(place=lambda z: z)
    policy = stimulation.make(config, model_of, LOW, HIGH)
    start = jnp.array([1.2, -1.0])

    def step(carry, key):
        z, stimulus = carry
        action, stimulus = policy.act(KNOWN, z, stimulus, key)
        return (predictive_model(KNOWN).step(z, action), stimulus), None

    keys = jax.random.split(jax.random.key(0), 10)
    (end, _), _ = jax.jit(lambda: jax.lax.scan(step, (start, policy.init()), keys))()
    alone = start
    for _ in range(10):
        alone = predictive_model(KNOWN).step(alone, jnp.zeros(2))
    assert np.linalg.norm(end) < 0.3 < np.linalg.norm(alone)


@cache
def planned_inputs() -> tuple[np.ndarray, np.ndarray, int]:
    """`(z [2, 7, d], actions [2, 7, m], searches)` of two experiments side by side."""
    calls = []

    def count_searches(knowledge: Knowledge) -> PredictiveModel:
        jax.debug.callback(lambda: calls.append(1))
        return predictive_model(knowledge)

    policy = stimulation.make(PLANNED, count_searches, LOW, HIGH)

    def experiment(key):
        def step(carry, _):
            z, stimulus, key = carry
            key, act_key = jax.random.split(key)
            action, stimulus = policy.act(KNOWN, z, stimulus, act_key)
            return (predictive_model(KNOWN).step(z, action), stimulus, key), (z, action)

        start = (jnp.array([0.3, -0.4]), policy.init(), key)
        return jax.lax.scan(step, start, length=7)[1]

    z, actions = jax.jit(jax.vmap(experiment))(jax.random.split(jax.random.key(0), 2))
    jax.effects_barrier()
    return np.asarray(z), np.asarray(actions), len(calls)


@pytest.mark.slow
def test_a_plan_is_made_when_the_last_one_was_taken_as_far_as_told():
    """At steps 0, 3 and 6, for both experiments together; and each has a plan of its own."""
    _, actions, searches = planned_inputs()
    assert searches == 3
    assert (np.abs(actions) <= np.asarray(HIGH)).all()
    assert np.abs(actions[0] - actions[1]).max() > 0.01
    assert len(np.unique(actions[0], axis=0)) == 7


def test_a_plan_tells_more_than_random_plans():
    """The first three actions of the plan from the start, by what the definition says of them."""
    z, actions, _ = planned_inputs()
    config = replace(PLANNED, every=1)  # so that a plan may be cut after three actions
    plan_gain = lambda x: -expected_cost(config, KNOWN, z[0, 0].astype(float), x.astype(float))
    chosen = [plan_gain(actions[i, :3]) for i in (0, 1)]
    by_chance = [plan_gain(plan[:3]) for plan in plans(60, seed=5)]
    assert min(chosen) > np.quantile(by_chance, 0.8)


@pytest.mark.slow
def test_dear_actions_are_small():
    """And the plan that the search returned is followed without a new look."""
    config = replace(PLANNED, action_cost=100.0, planner=replace(PLANNER, iterations=3))
    policy = stimulation.make(config, predictive_model, LOW, HIGH)
    act = jax.jit(partial(policy.act, KNOWN))
    action, stimulus = act(jnp.array([0.3, -0.4]), policy.init(), jax.random.key(0))
    following, _ = act(jnp.ones(D), stimulus, jax.random.key(1))
    np.testing.assert_array_equal(following, stimulus.actions[0])
    whole = np.concatenate([action[None], stimulus.actions[:-1]])
    assert np.sum(whole**2) < 0.2 * np.sum(np.asarray(plans(60)) ** 2) / 60


def test_a_path_of_accelerators_is_that_of_a_cpu():
    """Where it is not a loop."""
    step = lambda z, u: z + 0.1 * jnp.sin(z[::-1]) + u
    model = PredictiveModel(step, *[None] * 5)  # pyright: ignore[reportArgumentType]
    actions = 0.3 * jax.random.normal(jax.random.key(0), (5, 10, 2))
    paths = jax.vmap(lambda z, plan: plan_objectives.path(model, z, plan), (None, 0))
    z = jnp.array([0.4, -1.0])
    on_accelerators = compile_as_on_accelerators(paths, z, actions)
    assert " while(" not in on_accelerators.as_text()
    states = on_accelerators(z, actions)
    np.testing.assert_allclose(states, jax.jit(paths)(z, actions), rtol=1e-5)
    for t in range(10):
        np.testing.assert_allclose(states[3, t + 1], step(states[3, t], actions[3, t]), rtol=1e-5)
