"""What a report tells of a game of Snake whose agent is told of soft entrapment."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from tests.train import untrained
from train.host.showing import episodes
from train.snake import scene
from train.snake.program import PROGRAM
from train.snake.training import make_player


@pytest.mark.slow
def test_entrapment_has_a_name_behind_those_of_the_observation():
    base = untrained.snake().config
    game = replace(base.env, observation="near", sees_entrapment=True, entrapment_threshold=1.0)
    run = untrained.untrained_run(PROGRAM, replace(base, env=game))
    env, params, player = make_player(run.config)
    (played,) = episodes.record(env, params, player, run.agents[0], jax.random.key(0), 1, 40)
    bars = scene.frames_and_bars(env, played)[1]["what it sees"]
    assert bars.labels[-2:] == ["hunger", "entrapped"]
    obs = np.asarray(played.obs)
    assert obs.shape[1] == 192
    np.testing.assert_array_equal(bars.values[:-1], obs[:, [*range(29), 191]])
    assert set(obs[:, -1].tolist()) <= {0.0, 1.0}
