"""Which networks treat left and right alike."""

from dataclasses import replace

import pytest

from jaxrl.networks.mirror import MirrorActorCritic
from train.two_snake.agents import make_network
from train.two_snake.config import DQN, PPO, check, make_env


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
