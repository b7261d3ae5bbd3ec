"""Games of a tournament are fair and are won by the first death."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.two_snake import rules
from envs.two_snake.env import TwoSnake
from jaxrl.losses.distributions.discrete import Categorical
from train.two_snake import agents, evaluation, tournament
from train.two_snake.config import PRESETS
from train.two_snake.tournament import PLAYERS, Sides


class FoodSeeker:
    """A network that goes where the food is, as far as `params` is positive; else it flees."""

    def init(self, key: jax.Array, obs: jax.Array) -> jax.Array:
        return jnp.float32(1)

    def apply(self, params: jax.Array, obs: jax.Array) -> tuple[Categorical, jax.Array]:
        up, right, down = obs[7:10]
        east, south = right - (1.0 - up - right - down), down - up  # where it heads
        to_east, to_south = jnp.sign(obs[3]), jnp.sign(obs[4])
        ahead = east * to_east + south * to_south
        on_the_left = south * to_east - east * to_south
        wish = jnp.stack([ahead, on_the_left, -on_the_left])
        danger = obs[0:3] + obs[13:16]
        return Categorical(params * wish + 0.1 * obs[10:13] - 100.0 * danger), jnp.zeros(())


@pytest.mark.slow
def test_a_copy_against_itself_wins_as_often_from_both_sides(monkeypatch):
    """And a better player wins, whichever of the two networks it is; all under both rules."""
    monkeypatch.setattr(agents, "make_network", lambda config: FoodSeeker())
    config = PRESETS["curriculum"].config
    run = replace(config.run, evaluation_games=400)
    env = replace(config.env, observation="features", max_steps_in_episode=200)
    config = replace(config, run=run, env=env)
    good, bad = jnp.float32(1), jnp.float32(-1)
    play = tournament.compile_games(config, good)
    games = {
        name: tournament.matches(config, play, sides, jax.random.key(0), ["rival"])
        for name, sides in (
            ("equal", Sides(good, good)),
            ("better", Sides(good, bad)),
            ("worse", Sides(bad, good)),
        )
    }
    summaries = {name: evaluation.measures(each["rival"]) for name, each in games.items()}
    equal = summaries["equal"]
    error = 4 * np.sqrt(1 / 400)
    assert equal["won"]["mean"] > 0.25
    assert equal["won"]["mean"] == pytest.approx(equal["lost"]["mean"], abs=error)
    assert equal["won_left"]["mean"] == pytest.approx(equal["won_right"]["mean"], abs=error)
    assert equal["score"]["mean"] == pytest.approx(equal["opponent_score"]["mean"], abs=0.8)
    assert summaries["better"]["won"]["mean"] > 0.9
    assert summaries["worse"]["lost"]["mean"] > 0.9
    check_first_deaths(games["equal"]["rival"].outcome)


def check_first_deaths(outcome):
    """Who has won by the first death, wherever that follows from the end of the game."""
    mine = outcome["death_wall"] | outcome["death_self"] | outcome["death_other"]
    theirs = outcome["opponent_died"]
    expected = {
        "won": np.where(mine == theirs, outcome["won"], theirs),
        "lost": np.where(mine == theirs, outcome["lost"], mine),
    }
    is_decided = ~(mine & theirs)
    for name, values in expected.items():
        np.testing.assert_array_equal(
            outcome[f"first_{name}"][is_decided], values[is_decided], name
        )
    ways = sum(outcome[f"first_{name}"].astype(int) for name in ("won", "lost", "draw"))
    assert np.all(ways == 1)
    assert np.sum(is_decided & (mine | theirs)) > 50


@jax.jit
def both_go_straight(state):
    """The outcome in the game of the tournament, where both heads are about to leave the board."""
    env = tournament.Arena()
    chance = env.chances(jax.random.key(0))[0]
    action, params = jnp.zeros(2, jnp.int32), env.default_params
    return env.transition(chance, state, action, params)[3]["outcome"]


def test_who_died_later_has_won_by_the_first_death():
    bodies = [(0, 4), (1, 4), (2, 4)], [(0, 7), (1, 7), (2, 7)]
    state = rules.from_bodies(TwoSnake().board, bodies, (0, 0), (9, 9))
    state = replace(state, opponent=jnp.int32(PLAYERS.index("rival")))
    for dead, result in ((None, "draw"), (0, "lost"), (1, "won")):
        cause = [rules.HIT_WALL if player == dead else rules.ALIVE for player in (0, 1)]
        outcome = both_go_straight(replace(state, cause=jnp.array(cause, jnp.int32)))
        assert [x for x in ("won", "lost", "draw") if outcome[f"first_{x}"]] == [result]
        assert outcome["draw"]  # under the rules of the game nobody has won
