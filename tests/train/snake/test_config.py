"""What a configuration of Snake becomes."""

from dataclasses import replace

import pytest

from train.snake.config import check, environment, make_env, reflection, with_annealing
from train.snake.presets import PRESETS
from train.snake.training import make_training

BUDGET = 1_000_000  # environment steps


@pytest.mark.parametrize(
    ("preset", "updates"),
    [
        ("ppo", 31),  # rollouts of 512 x 64 steps, the last one whole
        ("pqn", 62),  # rollouts of 512 x 32 steps
        ("rainbow", 8 * 3907),  # gradient updates, eight for each 256 steps
        ("dqn", float("inf")),  # as published
    ],
)
def test_learning_rates_reach_zero_with_the_budget(preset, updates):
    config = PRESETS[preset].config
    config = replace(config, run=replace(config.run, total_steps=BUDGET))
    assert with_annealing(config).anneal_updates == updates


@pytest.mark.parametrize("preset", ["ppo", "pqn", "dqn"])
def test_or_after_as_many_steps_as_are_asked_for(preset):
    config = PRESETS[preset].config
    per_rollout = config.loop.num_envs * config.loop.num_steps
    per_step = getattr(config.agent, "updates_per_rollout", 1) / per_rollout
    annealing_config = replace(config, anneal_steps=50_000)
    assert with_annealing(annealing_config).anneal_updates == pytest.approx(50_000 * per_step)
    assert with_annealing(replace(config, anneal_steps=0)).anneal_updates == float("inf")


def test_late_starts_are_for_training():
    game = replace(PRESETS["fill"].config.env, late_share=0.8)
    assert [make_env(game, training)[0].late_starts for training in (True, False)] == [True, False]
    assert make_env(game, True)[1].late_share == 0.8
    assert not make_env(PRESETS["fill"].config.env, True)[0].late_starts


def test_boards_of_many_sizes_are_for_training_and_named_in_titles():
    config = PRESETS["near"].config
    game = replace(config.env, smallest_side=6)
    assert [make_env(game, training)[0].smallest_side for training in (True, False)] == [6, 0]
    square = replace(game, square_boards=True)
    assert [make_env(square, x)[0].square_boards for x in (True, False)] == [True, False]
    assert environment(config) == "Snake 10×10, near"
    assert environment(replace(config, env=game)) == "Snake 6×6 to 10×10, near"


@pytest.mark.parametrize(
    ("env", "network", "is_equivariant"),
    [
        ({}, {}, True),
        ({"observation": "near"}, {}, True),
        ({"observation": "flood"}, {}, False),
        ({"observation": "egocentric"}, {}, False),
        ({"actions": "absolute"}, {}, False),
        ({"sees_entrapment": True}, {}, False),
        ({}, {"equivariant": False}, False),
        ({}, {"shared": False}, False),
        ({}, {"layer_norm": True}, False),
    ],
)
def test_left_and_right_are_alike_where_the_game_has_a_mirror(env, network, is_equivariant):
    config = PRESETS["ppo"].config
    network = replace(config.network, **{"equivariant": True, **network})
    config = replace(config, env=replace(config.env, **env), network=network)
    assert (reflection(config) is not None) == is_equivariant


def test_pairs_of_units_need_even_widths():
    config = PRESETS["ppo"].config
    for widths in ((), (7, 8)):
        config = replace(config, network=replace(config.network, hidden=widths, equivariant=True))
        with pytest.raises(ValueError, match=r"needs even widths in network\.hidden, one at least"):
            check(config)
    check(replace(config, env=replace(config.env, observation="flood")))


def test_a_mask_needs_an_observation_that_shows_what_kills():
    config = PRESETS["ppo"].config
    masked = lambda observation: replace(
        config,
        env=replace(config.env, observation=observation),
        network=replace(config.network, mask=True),
    )
    for observation in ("features", "tail", "gaps"):
        check(masked(observation))
    for observation in ("compass", "board", "planes", "egocentric"):
        with pytest.raises(ValueError, match=rf"mask finds no danger .* {observation}: choose"):
            check(masked(observation))


@pytest.mark.parametrize(
    ("preset", "observation", "is_mostly_seeing"),
    [("near", "gaps", True), ("ppo", "near", True), ("ppo", "tail", False), ("dqn", "near", False)],
)
def test_kernels_suit_what_the_snake_sees(preset, observation, is_mostly_seeing):
    config = PRESETS[preset].config
    config = replace(config, env=replace(config.env, observation=observation))
    assert make_training(config).work.shared_words is is_mostly_seeing
