"""What episodes report of `info["outcome"]`, against sums in plain Python."""

from types import SimpleNamespace
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs import contract
from jaxrl import evaluate, loop, outcomes
from jaxrl.types import Agent, where_tree

LIMIT = 50


class State(NamedTuple):
    place: jax.Array  # 0, 1, 2, 0, ...
    time: jax.Array


class Carousel:
    """Goes round by itself from a random place and is cut after `LIMIT` steps; food lies at 0."""

    outcome_kinds: ClassVar = {"food": "sum", "place": "mean", "time": "last"}

    def reset(self, key, params):
        state = State(jax.random.randint(key, (), 0, 3), jnp.int32(0))
        return state.place.astype(jnp.float32), state

    def step(self, key, state, action, params):
        after = State((state.place + 1) % 3, state.time + 1)
        obs, over = after.place.astype(jnp.float32), after.time >= LIMIT
        fresh_obs, fresh = self.reset(key, params)
        outcome = {"food": after.place == 0, "place": after.place, "time": after.time}
        info = {"final_observation": obs, "outcome": outcome | {"fed": after.place == 0}}
        obs, after = where_tree(over, (fresh_obs, fresh), (obs, after))
        return obs, after, jnp.float32(1), jnp.bool_(False), over, info

    def position(self, state, params):
        return state.place, LIMIT - state.time

    def advance_clocks(self, state, steps):
        return state._replace(time=state.time + steps)


def carousel(**kinds: str) -> SimpleNamespace:
    """A carousel that says something else of its outcome."""
    one = Carousel()
    return SimpleNamespace(reset=one.reset, step=one.step, outcome_kinds=kinds)


PLAYER = Agent(
    init=lambda key, obs: (),
    memory=lambda: (),
    act=lambda state, memory, obs, key: (jnp.int32(0), (), ()),
    update=lambda state, rollout, key: (state, {"first": rollout.obs[0]}),
)


def expected_outcome(start: int) -> dict[str, float]:
    places = [(start + t) % 3 for t in range(1, LIMIT + 1)]
    last = {"fed": places[-1] == 0, "time": LIMIT}
    return {"food_sum": places.count(0), "place_mean": sum(places) / LIMIT, **last}


@pytest.mark.parametrize("leaps", [False, True])
def test_an_evaluated_episode_has_sums_means_and_last_values(leaps):
    """Also where rounds are left out, as nothing is random but the start."""
    game = Carousel(), (), PLAYER
    episodes = evaluate.evaluate(*game, (), jax.random.key(0), 4, 1, LIMIT, leaps)  # pyright: ignore
    first = evaluate.begin(*game, jax.random.key(0), 4).world  # pyright: ignore
    starts = np.asarray(first.env.place).tolist()
    assert len(set(starts)) > 1
    for n, start in enumerate(starts):
        for name, value in expected_outcome(start).items():
            np.testing.assert_allclose(episodes.outcome[name][n, 0], value, rtol=1e-6)
    assert episodes.outcome["fed"].dtype == bool
    assert set(episodes.outcome) == set(expected_outcome(0))


def test_a_training_adds_up_whole_episodes():
    """Two rollouts, of which the second ends the episodes that the first began."""
    train_loop = loop.make_loop(Carousel(), (), PLAYER, loop.Config(2, LIMIT // 2))  # pyright: ignore
    state, metrics = loop.make_chunk(train_loop.update, 2)(train_loop.init(jax.random.key(1)))
    starts = np.asarray(metrics.agent["first"])[0].astype(int).tolist()
    assert metrics.episodes.tolist() == [0, 2]
    for name in ("food_sum", "place_mean", "time"):
        total = sum(expected_outcome(start)[name] for start in starts)
        np.testing.assert_allclose(metrics.finished[name], [0, total], rtol=1e-6)
    assert not np.any(state.episode.outcome["food"])  # the next episodes begin with nothing


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (carousel(food="total"), "'food': 'total'; expected one of last, sum, mean"),
        (
            SimpleNamespace(**vars(carousel()) | {"outcome_kinds": "sum"}),
            "outcome_kinds is a str; expected a dict",
        ),
    ],
)
def test_unknown_kinds_are_refused_when_a_loop_is_made(env, message):
    with pytest.raises(ValueError, match=message):
        loop.make_loop(env, (), PLAYER, loop.Config(2, 4))


@pytest.mark.parametrize(
    ("kinds", "outcome", "message"),
    [
        ({"fod": "sum"}, ["food", "won"], "'fod', which info.* has not; it has food, won"),
        ({}, ["length"], "'length', a name that is taken"),
        ({"food": "sum"}, ["food", "food_sum"], "'food_sum', a name that is taken"),
    ],
)
def test_names_that_would_say_something_else_are_refused(kinds, outcome, message):
    with pytest.raises(ValueError, match=message):
        outcomes.check(SimpleNamespace(outcome_kinds=kinds), dict.fromkeys(outcome))


def test_a_name_says_of_what_a_number_is():
    names = ("return", "length", "food_sum", "speed_mean", "food")
    assert [outcomes.is_value_of_last_step(name) for name in names] == [False] * 4 + [True]


def test_the_checker_of_environments_knows_the_same_kinds_and_names():
    assert contract.OUTCOME_KINDS == outcomes.KINDS
    assert contract.OUTCOME_RESERVED == outcomes.RESERVED
