"""Inputs chosen without a plan, against counts and variances in plain NumPy."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxrl.dynamics.planning import icem, stimulation
from jaxrl.dynamics.planning.predictive_model import PredictiveModel
from jaxrl.dynamics.planning.stimulation import Config
from jaxrl.dynamics.planning.stimulation_config import Weights
from tests.jaxrl.dynamics.planning.stimulation_parts import (
    HIGH,
    KNOWN,
    LOW,
    PLANNED,
    PLANNER,
    D,
    bumps,
    flatten,
    next_state,
    predictive_model,
    single,
)

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
    """`[5, STEPS, 2]`."""
    return np.asarray(jax.jit(jax.vmap(inputs_of))(HELD, jax.random.split(jax.random.key(3), 5)))


def in_the_box(inputs: np.ndarray) -> np.ndarray:
    """Inputs `[..., 2]` in units of half the box from its centre."""
    low, high = (np.asarray(x) for x in BOX)
    return (inputs - (low + high) / 2) / ((high - low) / 2)


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
    *shares, off = held_inputs()  # a share of an input is one of its distance from no input, 0
    inside, edge, half, near = (
        in_the_box(x / strength) for x, strength in zip(shares, (1, 1, 0.5, 0.25), strict=True)
    )
    for component in (*inside.T, *half[::4].T):
        assert stats.kstest(component, "uniform", args=(-1, 2)).pvalue > 0.01
    np.testing.assert_allclose(np.abs(edge).max(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(np.abs(near).max(axis=1), 1, atol=1e-5)
    quadrants = np.unique(np.sign(edge[::3]), axis=0, return_counts=True)[1]
    assert len(quadrants) == 4
    assert quadrants.min() > 8  # of 80, 20 expected
    np.testing.assert_array_equal(off, 0)


@pytest.mark.parametrize(
    ("low", "high", "none"), [(0, 1, 0), (0.5, 2, 0.5), (-3, -1, -1), (-1, 3, 0)]
)
def test_an_input_that_is_off_is_none_or_the_least_that_is_allowed(low, high, none):
    box = jnp.array([float(low)]), jnp.array([float(high)])
    policy = stimulation.make(Config(kind="hold", strength=0.0), predictive_model, *box)
    action, _ = policy.act((), jnp.zeros(D), policy.init(), jax.random.key(0))
    assert action.tolist() == [none]


def test_policies_side_by_side_are_those_one_by_one():
    one = jax.jit(inputs_of)
    for i, key in enumerate(jax.random.split(jax.random.key(3), 5)):
        alone = one({name: x[i] for name, x in HELD.items()}, key)
        np.testing.assert_allclose(alone, held_inputs()[i], atol=1e-6)


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


@pytest.mark.parametrize(("num_inputs", "number"), [(0, 1), (1, 17), (2, 33), (3, 33)])
def test_candidates_are_nothing_and_directions_to_the_edge_and_half_way(num_inputs, number):
    directions = np.asarray(stimulation.directions(num_inputs))
    assert len(np.unique(directions, axis=0)) == len(directions) == number
    sizes = np.abs(directions).max(axis=1, initial=0)
    assert sizes.min() == 0
    if num_inputs > 1:
        np.testing.assert_allclose(np.sort(sizes), [0] + [0.5] * 16 + [1] * 16, atol=1e-6)


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


@pytest.mark.parametrize("kind", ["hold", pytest.param("planned", marks=pytest.mark.slow)])
def test_inputs_of_single_precision_are_the_same_where_double_is_on(kind):
    """The state of a policy keeps its types, so that a loop can carry it; no bit is another one."""
    planner = icem.Config(horizon=4, candidates=8, iterations=2, elites=4)
    config = Config(kind=kind, planner=planner, hold_steps=1, replan_steps=2)
    bound, eye = np.ones(2, np.float32), np.eye(2, dtype=np.float32)

    def inputs() -> np.ndarray:
        model = PredictiveModel(
            *(lambda z, u: z + jnp.float32(0.1) * u, jnp.tanh, jnp.asarray(eye), jnp.float32(1)),
            *(lambda z: jnp.asarray(eye), lambda z: jnp.sum(z**2)),
        )
        policy = stimulation.make(config, lambda _: model, -jnp.asarray(bound), jnp.asarray(bound))

        def step(stimulus: stimulation.Stimulus, key: jax.Array):
            action, stimulus = policy.act((), jnp.zeros(2, jnp.float32), stimulus, key)
            return stimulus, action

        keys = jax.random.split(jax.random.key(0), 3)
        return np.asarray(jax.lax.scan(step, policy.init(), keys)[1])

    single = inputs()
    with jax.enable_x64(True):
        double = inputs()
    assert double.dtype == np.float32
    np.testing.assert_allclose(double, single, rtol=1e-6)


def test_a_myopic_input_has_the_precision_of_its_bounds():
    model = PredictiveModel(
        *(lambda z, u: z + u, lambda z: z, jnp.eye(2), jnp.ones(()), lambda z: jnp.eye(2)),
        lambda z: jnp.sum(z**2),
    )
    low = -np.ones(2, np.float32)
    with jax.enable_x64(True):
        args = (jnp.asarray(0 * low), jnp.asarray(low), jnp.asarray(-low))
        assert stimulation.myopic_input(Config(lookahead=1), model, *args).dtype == jnp.float32
