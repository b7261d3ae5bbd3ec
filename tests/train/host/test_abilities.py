"""Programs without a drawing of their own are watched and shown by their player alone."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from tests.train import untrained
from train.allo.program import PROGRAM as ALLO
from train.goals.program import PROGRAM as GOALS
from train.host import abilities
from train.host.errors import UsageError
from train.host.program import EpisodeSelection, Program, Run, Views
from train.host.showing import plain_scene
from train.host.showing.live_game import Game
from train.vector_field.program import PROGRAM as VECTOR_FIELD


@pytest.fixture(scope="module")
def run() -> Run:
    """A run of a program that only trains and evaluates, as a user's own may."""
    run = untrained.cart_pole()
    own = Program("poles", run.program.presets, run.program.training, module="my_poles")
    return run._replace(program=own)


def test_a_game_is_watched_by_its_numbers(run: Run):
    game = Game(abilities.live_of(run, 0), 0)
    game.step()
    moment = game.moment_data()
    assert moment["constants"] == {"name": "my_poles"}
    assert moment["lines"]["reward"] == moment["lines"]["return so far"] == 1.0
    bars = moment["bars"]["probability"]
    assert bars["labels"] == ["action 0", "action 1"]
    np.testing.assert_allclose(np.sum(bars["values"]), 1.0, rtol=1e-6)
    assert game.live.scripts == [plain_scene.SCRIPT]


def test_episodes_are_shown_by_their_numbers(run: Run):
    scene = abilities.scene_of(run, EpisodeSelection(1, jax.random.key(1), 5))
    assert scene is not None
    (episode,) = scene.episodes
    assert episode.title == "return 5 in 5 steps, goes on"
    assert {f"observation {k}" for k in range(4)} < episode.lines.keys()
    assert len(episode.frames["moment"]) == len(episode.lines["observation 0"]) == 6


def test_short_parts_of_an_observation_have_lines():
    obs = {"at": np.arange(6.0).reshape(3, 2), "image": np.zeros((3, 9)), "word": np.arange(3)}
    lines = plain_scene.observation_lines(obs)
    assert lines.keys() == {"at 0", "at 1", "word 0"}
    np.testing.assert_array_equal(lines["at 1"], [1.0, 3.0, 5.0, np.nan])


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (ALLO, "train.allo.encoders loads what they have learned; see docs/allo.md"),
        (GOALS, "train.report shows what the learners"),
        (VECTOR_FIELD, "train.vector_field.fitted.load loads what"),
    ],
)
def test_where_nothing_acts_it_is_said_what_to_use(program: Program, words: str, run: Run):
    nobody = replace(run.program.training(run.config), evaluate=str, player=None)
    silent = program._replace(training=lambda config: nobody, views=Views())
    of_one = run._replace(program=silent)
    for look in (abilities.player_of, lambda run: abilities.live_of(run, 0)):
        with pytest.raises(UsageError, match=words) as error:
            look(of_one)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("program", [ALLO, GOALS])
def test_programs_of_ours_that_do_not_act_say_so(program: Program):
    assert program.alternative
    with pytest.raises(UsageError, match=r"cannot be filmed: use train\.evaluate$"):
        abilities.film_of(program)
