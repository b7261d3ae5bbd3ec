"""Which networks treat left and right alike, which guests can be met, and what games report."""

from dataclasses import replace

import jax
import pytest

from jaxrl.networks.mirror import MirrorActorCritic
from train.host.errors import UsageError
from train.two_snake import tournament
from train.two_snake.agents import make_network
from train.two_snake.config import DQN, PPO, PRESETS, check, make_env
from train.two_snake.program import PROGRAM


@pytest.mark.parametrize(
    ("observation", "shared", "is_equivariant"),
    [
        ("near", True, True),
        ("near", False, False),
        ("features", True, False),
        ("planes", True, False),
    ],
)
def test_the_mirror_needs_an_observation_and_a_network_that_have_one(
    observation, shared, is_equivariant
):
    config = PPO()
    config = replace(
        config,
        env=replace(config.env, observation=observation),
        network=replace(config.network, shared=shared, mask=observation != "planes"),
    )
    check(config)
    assert isinstance(make_network(config), MirrorActorCritic) == is_equivariant


def test_odd_widths_are_refused_only_where_units_come_in_pairs():
    config = PPO()
    no_pairs = lambda widths: replace(config, network=replace(config.network, hidden=widths))
    for widths in ((), (128, 5)):
        with pytest.raises(ValueError, match="even widths"):
            check(no_pairs(widths))
    odd = no_pairs((128, 5))
    check(replace(odd, network=replace(odd.network, equivariant=False)))
    check(DQN(network=replace(DQN().network, hidden=(5,))))


def test_the_default_observes_the_cells_around_the_head():
    env, params = make_env(PPO())
    assert env.observation_space(params).spaces["own"].shape == (367,)  # pyright: ignore


@pytest.mark.parametrize(
    ("game", "opponent", "message"),
    [
        ({"rows": 12}, "two-snakes", "has --env.rows 10, not 12: they cannot meet"),
        ({"observation": "features"}, "two-snakes", "has --env.observation near, not features"),
        ({}, "nobody", "nobody"),
        ({}, "snake-6x6", "expected players of train.two_snake"),
    ],
)
def test_a_guest_that_cannot_be_met_is_refused_before_anything_is_traced(game, opponent, message):
    config = PRESETS["guest"].config
    config = replace(config, env=replace(config.env, **game), opponent=opponent)
    with pytest.raises(UsageError, match=message):
        PROGRAM.complete(config)
    nobody_met = replace(PPO(), env=config.env)
    assert PROGRAM.complete(nobody_met) is nobody_met


@pytest.mark.parametrize("make", [make_env, lambda config: (tournament.make_env(config), None)])
def test_games_report_no_mean_of_an_index(make):
    """A training has the share of games with each opponent; a tournament has one at a time."""
    env, params = make(PRESETS["greedy"].config)
    params = params or env.default_params

    def play(key):
        keys = jax.random.split(key, 3)
        _, state = env.reset(keys[0], params)
        action = env.action_space(params).sample(keys[1])
        return env.step(keys[2], state, action, params)[-1]["outcome"]

    outcome = jax.eval_shape(play, jax.random.key(0))
    assert "opponent" not in outcome
    assert ("met_greedy" in outcome) == (env.opponents == ("greedy",))
