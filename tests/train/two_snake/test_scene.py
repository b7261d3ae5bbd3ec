"""What a report tells of two snakes that learned by deep Q-learning."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from tests.train import untrained
from train.host.program import EpisodeSelection
from train.two_snake import scene
from train.two_snake.config import DQN
from train.two_snake.program import PROGRAM


@pytest.mark.slow
def test_values_of_all_moves_are_told_for_both_sides():
    dqn_config = PROGRAM.presets["dqn"].config
    assert isinstance(dqn_config, DQN)
    small = replace(
        dqn_config,
        env=untrained.two_snakes().config.env,
        agent=replace(dqn_config.agent, capacity=1_000),
        network=replace(dqn_config.network, hidden=(4,)),
    )
    run = untrained.untrained_run(PROGRAM, small)
    recorded_scene = scene.show(run, EpisodeSelection(3, jax.random.key(0), 20))
    *against_scripts, by_itself = recorded_scene.episodes
    assert {"Q", "what it sees"} == set(against_scripts[0].bars)
    assert {"Q", "Q, red", "what it sees"} == set(by_itself.bars)
    own, red = by_itself.bars["Q"], by_itself.bars["Q, red"]
    for bars in (own, red):
        assert bars.chosen is not None
        np.testing.assert_array_equal(np.argmax(bars.values[:-1], axis=1), bars.chosen[:-1])
    assert "value, red" in by_itself.lines
