"""Policies that stimulate, against rollouts, variances and determinants in plain float64 NumPy."""

from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxrl.dynamics import rbf
from jaxrl.dynamics.planning import icem, stimulation
from jaxrl.dynamics.planning.stimulation import Config, PredictiveModel, Weights

GRID = rbf.Grid(per_axis=4, half_width=2.0)
CENTRES, WIDTH = np.asarray(GRID.centres(), np.float64), GRID.width
DT, BLUR, D, P = 0.3, 0.7, 2, 16
LOW, HIGH = jnp.array([-1.0, -2.0]), jnp.array([1.0, 2.0])
PLANNER = icem.Config(horizon=4, candidates=12, iterations=2, elites=3)
PLANNED = Config(planner=PLANNER, replan_steps=3)
single = partial(jnp.asarray, dtype=jnp.float32)


class Knowledge(NamedTuple):
    """The numbers of a field, `[p, d]` weights of bumps or `[p]` of a family."""

    numbers: jax.Array
    covariance: jax.Array


def family(z, e):
    """A field of three numbers, nonlinear in one of them; NumPy and JAX."""
    x, y = z[0], z[1]
    return [e[0] * y - x**3, e[1] * x + y * e[2] ** 2]


def information_matrix(z):
    return [[1.5 + z[0] ** 2, 0.3], [0.3, 0.8]]


def predictive_model(knowledge: Knowledge) -> PredictiveModel:
    numbers, covariance = knowledge
    if numbers.ndim == 2:
        velocity = lambda z: rbf.features(GRID, z) @ numbers
        design = lambda z: DT * rbf.features(GRID, z)
    else:
        velocity = lambda z: jnp.stack(family(z, numbers))
        design = lambda z: DT * jax.jacfwd(lambda e: jnp.stack(family(z, e)))(numbers)
    return PredictiveModel(
        step=lambda z, u: z + DT * (velocity(z) + u),
        design=design,
        root=jnp.linalg.cholesky(covariance),
        relative_noise=jnp.array(BLUR),
        observation_information=lambda z: jnp.stack(
            [jnp.stack([jnp.asarray(x) for x in row]) for row in information_matrix(z)]
        ),
        predictive_variance=lambda z: (
            rbf.features(GRID, z) @ covariance[:P, :P] @ rbf.features(GRID, z)
        ),
        novelty=lambda z: z[0] ** 2 + 0.1 * z[1] ** 4,
        place=lambda z: jnp.stack([z[0] + z[1], z[0] * z[1], z[1]]),
    )


def bumps(z: np.ndarray) -> np.ndarray:
    return np.exp(-np.sum((z - CENTRES) ** 2, axis=1) / (2 * WIDTH**2))


def next_state(z: np.ndarray, u: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """The next state; `flat` are all the numbers of the field in a row."""
    velocity = bumps(z) @ flat.reshape(P, D) if len(flat) == P * D else family(z, flat)
    return z + DT * (np.asarray(velocity) + u)


def slopes(function, flat: np.ndarray) -> np.ndarray:
    """Central differences by every number, as the last axis."""
    changes = 1e-5 * np.eye(len(flat))
    return np.stack([(function(flat + c) - function(flat - c)) / 2e-5 for c in changes], axis=-1)


def knowledge_of(*shape: int) -> Knowledge:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(shape[0], shape[0] + 2))
    numbers = 0.5 * rng.normal(size=shape)
    return Knowledge(single(numbers), single(rows @ rows.T / shape[0]))


KNOWN, FAMILY = knowledge_of(P, D), knowledge_of(3)


def flatten(knowledge: Knowledge) -> tuple[np.ndarray, np.ndarray]:
    """All numbers in a row, and their covariance, both float64."""
    numbers, covariance = (np.asarray(x, np.float64) for x in knowledge)
    outputs = numbers.shape[1] if numbers.ndim == 2 else 1
    return numbers.ravel(), np.kron(covariance, np.eye(outputs))


def expected_cost(config: Config, knowledge: Knowledge, z: np.ndarray, plan: np.ndarray) -> float:
    """From the definition, with matrices of all parameters."""
    flat, covariance = flatten(knowledge)

    def path(flat: np.ndarray) -> np.ndarray:
        states = [z]
        for u in plan:
            states.append(next_state(states[-1], u, flat))
        return np.array(states)

    states, price = path(flat), config.action_cost * np.sum(plan**2)
    if config.objective == "disagreement":
        own = np.asarray(knowledge.covariance, np.float64)
        return price - sum(bumps(state) @ own @ bumps(state) for state in states[1:])
    information = np.zeros_like(covariance)
    if config.propagate:
        for state, change in zip(states[1:], slopes(path, flat)[1:], strict=True):
            information += change.T @ np.array(information_matrix(state)) @ change
    else:
        for state in states[config.every :: config.every]:
            change = slopes(lambda flat, at=state: next_state(at, np.zeros(D), flat), flat)
            information += change.T @ change / BLUR
    after = np.linalg.inv(np.linalg.inv(covariance) + information)
    if config.objective == "a_optimal":
        return price - (np.trace(covariance) - np.trace(after))
    return price - (np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(after)[1])


def plans(number: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    box = rng.uniform(np.asarray(LOW), np.asarray(HIGH), (number, PLANNER.horizon, D))
    return box.astype(np.float32)


# Inputs chosen without knowledge.

HELD = {
    "hold_steps": jnp.array([1, 3, 4, 2, 5]),
    "at_edge": jnp.array([False, True, False, True, True]),
    "strength": jnp.array([1.0, 1.0, 0.5, 0.25, 0.0]),
}
BOX = jnp.array([-1.0, -3.0]), jnp.array([2.0, 1.0])  # its centre is not 0
STEPS = 240


@cache
def held_inputs() -> np.ndarray:
    """`[5, STEPS, 2]`, in units of half the box from its centre."""
    inputs = jax.jit(jax.vmap(inputs_of))(HELD, jax.random.split(jax.random.key(3), 5))
    low, high = (np.asarray(x) for x in BOX)
    return (np.asarray(inputs) - (low + high) / 2) / ((high - low) / 2)


def inputs_of(numbers: dict[str, jax.Array], key: jax.Array) -> jax.Array:
    policy = stimulation.make(Config(kind="hold", **numbers), predictive_model, *BOX)  # type: ignore

    def step(carry, _):
        stimulus, key = carry
        key, act_key = jax.random.split(key)
        action, stimulus = policy.act((), jnp.zeros(D), stimulus, act_key)
        return (stimulus, key), action

    return jax.lax.scan(step, (policy.init(), key), length=STEPS)[1]


def test_inputs_are_held_for_as_many_steps_as_told():
    for inputs, steps in zip(held_inputs()[:4], (1, 3, 4, 2), strict=True):
        blocks = inputs.reshape(-1, steps, D)
        np.testing.assert_array_equal(blocks, np.repeat(blocks[:, :1], steps, axis=1))
        assert len(np.unique(blocks[:, 0], axis=0)) == len(blocks)


def test_inputs_lie_inside_or_at_the_edge_and_as_far_out_as_told():
    inside, edge, half, near, off = held_inputs()
    for component in (*inside.T, *half[::4].T * 2):
        assert stats.kstest(component, "uniform", args=(-1, 2)).pvalue > 0.01
    np.testing.assert_allclose(np.abs(edge).max(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(np.abs(near).max(axis=1), 0.25, atol=1e-5)
    quadrants = np.unique(np.sign(edge[::3]), axis=0, return_counts=True)[1]
    assert len(quadrants) == 4
    assert quadrants.min() > 8  # of 80, 20 expected
    np.testing.assert_allclose(off, 0, atol=1e-6)


def test_policies_side_by_side_are_those_one_by_one():
    low, high = (np.asarray(x) for x in BOX)
    one = jax.jit(inputs_of)
    for i, key in enumerate(jax.random.split(jax.random.key(3), 5)):
        alone = one({name: x[i] for name, x in HELD.items()}, key)
        unit = (np.asarray(alone) - (low + high) / 2) / ((high - low) / 2)
        np.testing.assert_allclose(unit, held_inputs()[i], atol=1e-6)


# The input after which least is known.


def candidates() -> np.ndarray:
    rays = []
    for angle in np.arange(16) * np.pi / 8:
        ray = np.array([np.cos(angle), np.sin(angle)])
        rays.append(ray / np.abs(ray).max())
    return np.array([np.zeros(2), *rays, *[ray / 2 for ray in rays]]) * np.asarray(HIGH)


@pytest.mark.parametrize("price", [0.0, 0.05])
def test_myopic_goes_where_least_is_known(price):
    config = Config(kind="myopic", lookahead=3, action_cost=price)
    policy = stimulation.make(config, predictive_model, LOW, HIGH)
    z = np.random.default_rng(2).uniform(-1.5, 1.5, (12, D))
    act = lambda z: policy.act(KNOWN, z, policy.init(), jax.random.key(0))[0]
    actions = jax.jit(jax.vmap(act))(single(z))
    flat = flatten(KNOWN)[0]
    covariance = np.asarray(KNOWN.covariance, np.float64)
    best = []
    for start in z:
        values = []
        for u in candidates():
            end = start
            for _ in range(3):
                end = next_state(end, u, flat)
            values.append(bumps(end) @ covariance @ bumps(end) - price * 3 * np.sum(u**2))
        best.append(candidates()[np.argmax(values)])
    np.testing.assert_allclose(actions, best, atol=1e-5)
    assert len(np.unique(best, axis=0)) > 3


@pytest.mark.parametrize(("num_inputs", "number"), [(1, 17), (2, 33), (3, 33)])
def test_candidates_are_nothing_and_directions_to_the_edge_and_half_way(num_inputs, number):
    directions = np.asarray(stimulation.directions(num_inputs))
    assert len(np.unique(directions, axis=0)) == len(directions) == number
    sizes = np.abs(directions).max(axis=1)
    assert sizes.min() == 0
    if num_inputs > 1:
        np.testing.assert_allclose(np.sort(sizes), [0] + [0.5] * 16 + [1] * 16, atol=1e-6)


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
        lambda knowledge, z, x: stimulation.plan_cost(config, predictive_model(knowledge), z, x)
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
        return stimulation.plan_cost(traced, predictive_model(KNOWN), single(z), plans)

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
    np.testing.assert_allclose(stimulation.distances(config, states), expected, rtol=1e-5)
    stimulation.check_goal(replace(config, goal=(1.0, 2.0)), 2)
    with pytest.raises(ValueError, match="goal has 2 numbers, expected 3, one for each component"):
        stimulation.check_goal(replace(config, goal=(1.0, 2.0)), 3)


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"planner": replace(PLANNER, elites=13)}, "elites is 13, expected at most candidates, 12"),
        ({"replan_steps": 5}, "^replan_steps is 5, expected at most the planned horizon=4"),
        ({"every": 5}, "^every is 5, expected at most the planned horizon=4"),
        ({"every": 0}, "^every is 0, expected a number at least 1"),
        ({"kind": "clever"}, "^kind is clever, expected hold or myopic or planned"),
        (
            {"objective": "e_optimal"},
            "^objective is e_optimal, expected some of d_optimal, a_optimal",
        ),
        ({"objective": "goal+goal"}, "^objective is goal.goal, expected some of .*each once"),
        ({"weights": Weights(rnd=-1.0)}, "^weights.rnd is -1.0, expected a number at least 0"),
        ({"lookahead": 0}, "^lookahead is 0, expected a number at least 1"),
        ({"hold_steps": 0}, "^hold_steps is 0, expected a number at least 1"),
        ({"strength": -0.1}, "^strength is -0.1, expected a number at least 0.0"),
        ({"action_cost": float("nan")}, "^action_cost is nan, expected a number"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_does_not_fit_together_is_refused(changes, message):
    with pytest.raises(ValueError, match=message) as refusal:
        stimulation.make(replace(PLANNED, **changes), predictive_model, LOW, HIGH)
    assert "\n" not in str(refusal.value)
