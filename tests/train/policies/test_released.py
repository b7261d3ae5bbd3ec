"""The policies that come with the library: small, with a card, and as good as that says."""

from pathlib import Path

import jax
import numpy as np
import pytest
from jax import export

import train
from train.host.files import policy_files
from train.host.running import saved_policies
from train.host.showing.live_game import Game
from train.play import terminal
from train.policies import compiled

DOCS = Path(__file__).parents[3] / "docs" / "policies.md"
LARGEST = 300_000  # bytes
NAMES = policy_files.names()
PROGRAMS = {
    name: policy_files.read_metadata(policy_files.file_of(name))["entry_point"] for name in NAMES
}
SNAKES = [name for name in NAMES if PROGRAMS[name] in ("snake", "two_snake")]
"""Those that can be watched in a terminal."""
GAMES = 100
LONG = {"snake-20x20", "snake-all-boards", "snake-even-boards"}
"""Policies whose games take minutes."""


@pytest.mark.parametrize("name", NAMES)
def test_each_is_small_has_a_card_and_is_in_the_documentation(name):
    path = policy_files.file_of(name)
    assert path.stat().st_size < LARGEST
    card = path.with_suffix(".md").read_text()
    assert card.startswith(f"# {name}\n")
    assert "Hardware" in card
    scores = policy_files.read_metadata(path)["scores"]
    assert scores["games"] >= 1000
    assert f"| `{name}` |" in DOCS.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", SNAKES)
def test_each_snake_is_watched_in_a_terminal(name):
    run = saved_policies.as_run(name)
    assert run.program.views.live is not None
    game, screens, keys = Game(run.program.views.live(run, 0), 0), [], iter([*[None] * 12, "q"])
    terminal.play(game, lambda seconds: next(keys), screens.append)
    assert game.moment == 12
    assert not game.ending
    assert "step 12" in screens[-2]


@pytest.mark.slow
@pytest.mark.parametrize("name", SNAKES)
def test_each_compiled_snake_acts_as_its_policy(name):
    policy = train.load(name)
    program, _ = compiled.compile_policy(saved_policies.as_run(name))
    act = export.deserialize(bytearray(program)).call
    keys = jax.random.split(jax.random.key(0), 13)
    obs, _ = jax.vmap(policy.env.reset, in_axes=(0, None))(keys, policy.params)
    obs = jax.tree.map(np.asarray, obs)
    (actions,) = act(*jax.tree.leaves(obs))
    np.testing.assert_array_equal(actions, policy.act(obs)[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", [x for x in NAMES if x not in LONG])
def test_each_is_as_good_as_its_card_says(name):
    """In other games: within five standard errors of the difference."""
    run = saved_policies.as_run(name)
    training = run.program.training(run.config)
    assert training.games is not None
    metadata, score = policy_files.read_metadata(policy_files.file_of(name)), training.score.name
    claimed_score = metadata["scores"][score]
    played = jax.jit(training.games(GAMES))(run.agents[0], jax.random.key(20))
    scores = np.ravel(played.outcome[score]).astype(float)
    spread = max(scores.std(ddof=1), 0.02 * abs(claimed_score["mean"]))
    assert scores.mean() == pytest.approx(claimed_score["mean"], abs=5 * spread / np.sqrt(GAMES))
