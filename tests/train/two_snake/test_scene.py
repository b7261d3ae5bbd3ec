"""What a report tells of two snakes that learned by deep Q-learning."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from tests.train import untrained
from train.host.program import Wanted
from train.two_snake import scene
from train.two_snake.config import DQN
from train.two_snake.program import PROGRAM


@pytest.mark.slow
def test_values_of_all_moves_are_told_for_both_sides():
    by_dqn = PROGRAM.presets["dqn"]
    assert isinstance(by_dqn, DQN)
    small = replace(
        by_dqn,
        env=untrained.two_snakes().config.env,
        agent=replace(by_dqn.agent, capacity=1_000),
        network=replace(by_dqn.network, hidden=(4,)),
    )
    run = untrained.untrained(PROGRAM, small)
    shown = scene.show(run, Wanted(3, jax.random.key(0), 20))
    *against_scripts, by_itself = shown.episodes
    assert {"Q", "what it sees"} == set(against_scripts[0].bars)
    assert {"Q", "Q, red", "what it sees"} == set(by_itself.bars)
    own, red = by_itself.bars["Q"], by_itself.bars["Q, red"]
    for bars in (own, red):
        assert bars.chosen is not None
        np.testing.assert_array_equal(np.argmax(bars.values[:-1], axis=1), bars.chosen[:-1])
    assert "value, red" in by_itself.lines
