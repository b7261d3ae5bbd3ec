"""Durotaxis as an environment: what its actions do, how episodes end, what they add up to."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.checker import env_checker
from envs.durotaxis import actions, rules
from envs.durotaxis.env import Durotaxis, Params, goal
from envs.durotaxis.rewards import registry
from envs.durotaxis.rules import Colony
from tests.accelerator_branches import compile_as_on_accelerators

LOCAL: Any = {"observation": "local"}  # compiles faster; what is observed has tests of its own
FAST = jnp.array([0.55, 15.0, 0.5, 0.5, 0.0])  # holds the colony at 6 nodes and goes right


STEPS = 40


@partial(jax.jit, static_argnums=0)
def play(env: Durotaxis, params: Params, action: Any):
    """States before, and what `step` returned, over one episode and more; `[STEPS]`."""
    reset_key, key = jax.random.split(jax.random.key(0))
    _, state = env.reset(reset_key, params)

    def step(carry, _):
        key, state = carry
        key, step_key = jax.random.split(key)
        _, after, *rest = env.step(step_key, state, action, params)
        return (key, after), (state, *rest)

    return jax.lax.scan(step, (key, state), length=STEPS)[1]


def colony_of(x: list[float], capacity: int = 16) -> Colony:
    """Nodes in a row, each the child of the one before."""
    beyond = capacity - len(x)
    return Colony(
        x=jnp.array(x + [0.0] * beyond, jnp.float32),
        y=jnp.array([200.0] * len(x) + [0.0] * beyond, jnp.float32),
        parent=jnp.array([*range(-1, len(x) - 1)] + [-1] * beyond, jnp.int32),
        birth=jnp.zeros(capacity, jnp.int32),
        num_nodes=jnp.int32(len(x)),
    )


def one_step(env: Durotaxis, params: Params, colony: Colony, action: Any, **state: Any):
    """`transition` from a colony of the caller's, with other fields of its state."""
    return transition(env, params, colony, action, state)


@partial(jax.jit, static_argnums=0)
def transition(env: Durotaxis, params: Params, colony: Colony, action: Any, state: dict):
    before = replace(env.start(jax.random.key(0), params), colony=colony, **state)
    return env.transition(jax.random.key(1), before, action, params)


@pytest.mark.slow
def test_another_form_keeps_the_contract():
    form = {"spawning": "isotropic", "action": "nodes", "reward_set": "state_machine"}
    env, params = envs.make("Durotaxis-v0", **form, capacity=16, observation="local")
    env_checker(env, replace(params, threshold_nodes=16.0))


@pytest.mark.slow
@pytest.mark.parametrize("deletion", ["forest", "tree"])
def test_accelerators_play_the_same_game(deletion: str):
    env = Durotaxis(capacity=12, deletion=deletion)
    params = replace(env.default_params, threshold_nodes=12.0, max_steps_in_episode=9)

    def watch(key: jax.Array, action: jax.Array):
        reset_key, key = jax.random.split(key)
        _, state = env.reset(reset_key, params)

        def step(carry, _):
            key, state = carry
            key, step_key = jax.random.split(key)
            obs, after, *rest = env.step(step_key, state, action, params)
            return (key, after), (obs, after, *rest)

        return jax.lax.scan(step, (key, state), length=STEPS)[1]

    watch_all = jax.vmap(jax.vmap(watch, (0, None)), (None, 0))
    actions = jnp.stack([FAST.at[0].add(share) for share in (0.0, 0.1, -0.2)])
    inputs = jax.random.split(jax.random.key(3), 2), actions
    expected = jax.jit(watch_all)(*inputs)
    actual = compile_as_on_accelerators(watch_all, *inputs)(*inputs)
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        if a.dtype == jnp.float32:
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
        else:
            np.testing.assert_array_equal(a, b)


def test_an_episode_arrives_and_adds_up():
    env = Durotaxis(capacity=12, **LOCAL)
    params = replace(env.default_params, threshold_nodes=12.0)
    state, reward, terminated, truncated, info = jax.device_get(play(env, params, FAST))
    last = int(np.argmax(terminated))
    assert 30 < last < 40
    assert not truncated.any()
    outcome = {name: value[last] for name, value in info["outcome"].items()}
    assert outcome["arrived"]
    assert [outcome[name] for name in ("crowded", "empty", "retreated")] == [False] * 3
    assert (outcome["num_nodes"], outcome["progress"]) == (6, 1)
    assert state.time[: last + 1].tolist() == list(range(last + 1))
    assert int(state.time[last + 1]) == 0
    np.testing.assert_allclose(info["components"].sum(axis=1), reward, rtol=1e-5, atol=1e-5)
    for i, name in enumerate(env.component_names):
        earned = info["components"][: last + 1, i].sum()
        np.testing.assert_allclose(outcome[f"reward_{name}"], earned, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(outcome["reward_termination"], 10)
    way = goal(600.0) - state.colony.x[0, :5].mean()
    assert outcome["reward_distance"] < 5 * way / 599


@pytest.mark.parametrize(
    ("ending", "x", "action", "state"),
    [
        ("crowded", [10.0 * i for i in range(1, 9)], [0.0, 5, 1, 0.1, 0], {}),
        ("retreated", [50.0, 60.0, 70.0, 580.0], [0.0, 0.5, 4, 0.05, 0], {"left_moves": 2}),
        ("arrived", [300.0, 593.0], [0.0, 1.0, 1, 0.5, 0], {}),
        (None, [300.0, 320.0], [0.0, 1.0, 1, 0.5, 0], {}),
    ],
)
def test_endings(ending, x, action, state):
    """In the second case the rightmost node dies, which the leftmost-first rule never does."""
    form = "nodes" if ending == "retreated" else "global"
    env = Durotaxis(capacity=16, action=form, **LOCAL)
    params = replace(env.default_params, threshold_nodes=15.0, left_moves_limit=3)
    env_action: Any = jnp.array(action)
    if form == "nodes":
        env_action = (jnp.zeros(16, jnp.int32).at[3].set(1), env_action[1:])
    state = {name: jnp.int32(value) for name, value in state.items()}
    _, _, terminated, info = one_step(env, params, colony_of(x), env_action, **state)
    assert bool(terminated) == (ending is not None)
    for name in ("crowded", "empty", "retreated", "arrived"):
        assert bool(info["outcome"][name]) == (name == ending), name


def test_a_colony_that_outgrows_its_limit_at_the_goal_has_not_arrived():
    """Kept at 5 nodes until it is near the goal, then left to grow: it gets there too crowded."""
    env = Durotaxis(**LOCAL)
    params = env.default_params

    @jax.jit
    def run(key):
        reset_key, key = jax.random.split(key)
        _, start = env.reset(reset_key, params)

        def step(state, step_key):
            near = jnp.max(state.colony.x) > 573
            action = jnp.array([0.4999, 15.0, 0.5, 0.5, 0.0]).at[0].mul(1 - near)
            _, after, reward, terminated, _, info = env.step(step_key, state, action, params)
            return after, (terminated, reward, info["outcome"])

        return jax.lax.scan(step, start, jax.random.split(key, 60))[1]

    terminated, reward, outcome = jax.device_get(run(jax.random.key(3)))
    last = int(np.argmax(terminated))
    assert outcome["num_nodes"][last] > params.threshold_nodes
    assert outcome["progress"][last] == 1  # it touched the goal
    assert outcome["crowded"][last]
    assert not outcome["arrived"][last]
    np.testing.assert_allclose(outcome["reward_termination"][last], 0.02 * -15, rtol=1e-5)
    assert reward[last] < 0


@pytest.mark.parametrize("number", [jnp.nan, jnp.inf, -jnp.inf])
@pytest.mark.parametrize("form", actions.FORMS)
def test_an_action_that_is_no_number_leaves_numbers_behind(form, number):
    env = Durotaxis(capacity=16, action=form, **LOCAL)
    params = replace(env.default_params, threshold_nodes=16.0)
    env_action: Any = jnp.full(len(actions.names(form, "directed")), number)
    if form == "nodes":
        env_action = (jnp.zeros(16, jnp.int32), env_action)
    after, reward, *_ = one_step(env, params, colony_of([30.0, 50.0, 80.0]), env_action)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((after, reward)))
    if form != "nodes":  # the largest share, 0.7, deletes two of the three; the least one, none
        assert int(after.colony.num_nodes) == (2 if number == jnp.inf else 6)


def test_a_colony_without_nodes_is_at_its_end():
    env = Durotaxis(capacity=16, action="nodes", **LOCAL)
    everything = (jnp.ones(16, jnp.int32), jnp.array([5.0, 1.0, 0.1, 0.0]))
    params = replace(env.default_params, threshold_nodes=16.0)
    after, reward, terminated, info = one_step(env, params, colony_of([10.0, 20.0]), everything)
    assert terminated
    assert info["outcome"]["empty"]
    assert (int(after.colony.num_nodes), float(info["outcome"]["progress"])) == (0, 0.0)
    np.testing.assert_allclose(reward, -2.0)  # 0.02 of -100
    obs = jax.jit(env.get_obs)(after, params)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(obs))


def test_more_nodes_than_there_is_room_for_end_the_episode_and_are_all_counted():
    env = Durotaxis(capacity=16, num_founders=9, **LOCAL)
    params = replace(env.default_params, threshold_nodes=16.0)
    action = jnp.array([0.0, 5.0, 1.0, 0.1, 0.0])
    after, _, terminated, info = one_step(env, params, colony_of([9.0] * 9), action)
    assert terminated
    assert info["outcome"]["crowded"]
    assert int(info["outcome"]["num_nodes"]) == 18
    assert int(after.colony.num_nodes) == 16


def test_the_clock_truncates():
    env = Durotaxis(capacity=12, **LOCAL)
    params = replace(env.default_params, threshold_nodes=12.0, max_steps_in_episode=7)
    state, _, terminated, truncated, _ = play(env, params, FAST)
    assert not terminated.any()
    assert np.flatnonzero(truncated).tolist() == [6, 13, 20, 27, 34]
    assert state.time[7] == 0


def test_the_forms_of_an_action_agree():
    """The same nodes and numbers, given in another form, lead to the same colony."""
    colony = colony_of([30.0, 80.0, 20.0, 50.0, 90.0, 10.0])
    numbers = jnp.array([4.0, 1.0, 0.2, 0.3])
    states = {}
    for form in actions.FORMS:
        env = Durotaxis(capacity=16, action=form, **LOCAL)
        params = replace(
            env.default_params, threshold_nodes=16.0, spawn=actions.Spawn(*numbers.tolist())
        )
        share = jnp.array([0.5])  # the three leftmost of six
        choice = jnp.array([0, 0, 1, 0, 0, 1] + [0] * 10, jnp.int32).at[0].set(1)
        action = {
            "global": jnp.concatenate([share, numbers]),
            "ratio": share,
            "nodes": (choice, numbers),
        }[form]
        states[form], *_ = one_step(env, params, colony, action)
    for form in ("ratio", "nodes"):
        for a, b in zip(
            jax.tree.leaves(states["global"].colony),
            jax.tree.leaves(states[form].colony),
            strict=True,
        ):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    assert int(states["global"].colony.num_nodes) == 6


def test_numbers_out_of_bounds_count_as_the_nearest_within():
    env = Durotaxis(capacity=16, **LOCAL)
    params = replace(env.default_params, threshold_nodes=16.0)
    colony = colony_of([30.0, 80.0])
    wild = jnp.array([5.0, 99.0, -1.0, 9.0, 3.0])
    low, high = actions.box("global", "directed", params.bounds)
    one, *_ = one_step(env, params, colony, wild)
    other, *_ = one_step(env, params, colony, jnp.clip(wild, low, high))
    np.testing.assert_array_equal(one.colony.x, other.colony.x)


@pytest.mark.slow
def test_a_measured_field_is_ground_like_any_other():
    """The law written out as a field gives the same episode."""
    env = Durotaxis(capacity=12, **LOCAL)
    params = replace(env.default_params, threshold_nodes=12.0, width=200.0, height=100.0)
    column = np.arange(200, dtype=np.float32)
    field = np.broadcast_to(np.float32(0.05) * column + 1, (100, 200))
    law = play(env, params, FAST)[0].colony.x[:12]
    measured = play(env, replace(params, field=np.array(field)), FAST)[0].colony.x[:12]
    np.testing.assert_allclose(measured, law, rtol=1e-4)


def test_random_ground_is_drawn_anew_for_every_episode():
    env = Durotaxis(capacity=12, ground="random", **LOCAL)
    params = replace(env.default_params, threshold_nodes=12.0)
    starts = jax.jit(jax.vmap(env.start, in_axes=(0, None)))
    laws = starts(jax.random.split(jax.random.key(0), 400), params)
    exponential = np.asarray(laws.law.exponential)
    assert 150 < exponential.sum() < 250
    slope = np.asarray(laws.law.slope)
    assert slope.min() >= 0.01
    assert slope[exponential].max() <= 0.05 < slope[~exponential].max() <= 0.1


def test_grounds_of_a_kind_share_what_is_compiled():
    assert Durotaxis() == Durotaxis(ground="exponential")
    assert hash(Durotaxis()) == hash(Durotaxis(ground="exponential"))
    assert Durotaxis() != Durotaxis(ground="random")
    assert Durotaxis(capacity=12) != Durotaxis()
    assert bool(Durotaxis(ground="exponential").default_params.law.exponential)


@pytest.mark.slow
def test_isotropic_colonies_only_lead_by_deletion():
    """Without deletion at the left the centroid stays; with it, it goes right."""
    env = Durotaxis(64, 16, spawning="isotropic", action="ratio")
    params = replace(env.default_params, threshold_nodes=64.0)
    start = jax.jit(env.start)(jax.random.key(0), params)
    spread = replace(start.colony, x=start.colony.x + 270)
    keys = jax.random.split(jax.random.key(1), 500)

    def shift(key, ratio):
        after, *_ = env.transition(key, replace(start, colony=spread), jnp.array([ratio]), params)
        alive = rules.alive(after.colony)
        return jnp.sum(jnp.where(alive, after.colony.x, 0)) / after.colony.num_nodes

    before = float(np.mean(np.asarray(spread.x)[:16]))
    shifts = jax.jit(jax.vmap(shift, in_axes=(0, None)))
    none = np.asarray(shifts(jax.random.clone(keys), 0.0)) - before
    half = np.asarray(shifts(keys, 0.5)) - before
    assert abs(none.mean()) < 4 * none.std() / np.sqrt(500)
    assert half.mean() > 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ground": "quadratic"}, "ground 'quadratic' is unknown; expected one of linear, "),
        ({"action": "words"}, "action 'words' is unknown; expected one of global, ratio, nodes"),
        ({"spawning": "up"}, "spawning 'up' is unknown; expected one of directed, isotropic"),
        ({"reward_set": "gold"}, "reward_set 'gold' is unknown; expected one of normal, "),
        ({"observation": "eyes"}, "observation 'eyes' is unknown; expected one of full, local"),
        ({"num_founders": 0}, "num_founders is 0; expected 1 to 128, the capacity"),
        ({"num_founders": 200}, "num_founders is 200; expected 1 to 128, the capacity"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message) as error:
        envs.make("Durotaxis-v0", **arguments)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threshold_nodes": 129.0}, "threshold_nodes is 129; expected 5, the founders, to 128"),
        ({"threshold_nodes": float("nan")}, "threshold_nodes is nan; expected 5"),
        ({"width": 19.0}, "width is 19; expected at least 20 px"),
        ({"width": 3.0}, "width is 3; expected at least 20 px"),
        ({"width": float("nan")}, "width is nan"),
        (
            {"field": np.ones((3, 4), np.float32)},
            r"shape \(3, 4\); expected \(400, 600\)",
        ),
        ({"bounds": actions.Bounds(gamma=(2.0, 1.0))}, "bounds of gamma are 2.0 and 1.0"),
        ({"weights": registry.Distance(distance=float("nan"))}, "reward 'distance' is nan"),
        ({"weights": registry.weights_of("normal")}, "weights are a Normal; the reward set 'dist"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(changes, message):
    env = Durotaxis()
    env.check(env.default_params)
    with pytest.raises(ValueError, match=message) as error:
        env.check(replace(env.default_params, **changes))
    assert "\n" not in str(error.value)


def test_ground_that_overflows_is_refused():
    env = Durotaxis(ground="exponential")
    law = replace(env.default_params.law, slope=0.2)
    with pytest.raises(ValueError, match=r"reaches e\^120\.0 over 600 px, which float32 can"):
        env.check(replace(env.default_params, law=law))
