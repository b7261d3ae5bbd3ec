"""What a report tells of two snakes: by deep Q-learning, and of a dead one."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from envs.two_snake.rules import ALIVE, HIT_WALL
from tests.train import untrained
from train.host.program import EpisodeSelection
from train.host.showing import episodes
from train.host.showing.episodes import Recording
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
        is_dead = np.isnan(bars.values[:-1]).all(axis=1)
        best = np.where(is_dead, -1, np.argmax(bars.values[:-1], axis=1))
        np.testing.assert_array_equal(best, bars.chosen[:-1])
        assert np.isfinite(bars.values[0]).all()
    assert "value, red" in by_itself.lines


def test_nothing_is_told_of_what_a_dead_snake_makes_of_its_zeros():
    """Three steps: blue dies in the first, red in the second."""
    causes = np.array([[ALIVE, ALIVE], [HIT_WALL, ALIVE], [HIT_WALL] * 2, [HIT_WALL] * 2])
    thoughts = np.arange(9, dtype=np.float32).reshape(3, 3)
    game = Recording(
        state=SimpleNamespace(cause=causes),
        obs={"own": np.ones((3, 5), np.float32)},
        action=np.array([[0, 1], [1, 2], [2, 0]]),
        reward=np.zeros(3, np.float32),
        explained={"value": thoughts[:, 0], "other_value": thoughts[:, 1], "other_q": thoughts},
        outcome={},
        terminated=True,
        truncated=False,
    )
    blue, red = scene.recording_of(game, 0), scene.recording_of(game, 1)
    np.testing.assert_array_equal(episodes.lines(blue)["value"], [0, *[np.nan] * 3])
    np.testing.assert_array_equal(episodes.lines(red)["value"], [1, 4, np.nan, np.nan])
    np.testing.assert_array_equal(np.isnan(blue.obs), [[False] * 5, [True] * 5, [True] * 5])
    assert episodes.bars(blue, "ABC") == {}
    bars = episodes.bars(red, "ABC")["Q"]
    np.testing.assert_array_equal(bars.values, [*thoughts[:2], *[[np.nan] * 3] * 2])
    assert bars.chosen is not None
    assert bars.chosen.tolist() == [1, 2, -1, -1]
