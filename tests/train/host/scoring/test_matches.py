"""Games in pieces: the same games, however long the pieces are, and an end between two of them."""

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.evaluate import evaluate
from jaxrl.types import Agent
from train.host.scoring import games, matches

ENV, PARAMS = gymnax.make("CartPole-v1")
GAMES, LIMIT, ROWS = 5, 60, 4
PLAYER = Agent(
    init=lambda key, obs: (),
    memory=lambda: (),
    act=lambda state, memory, obs, key: (jax.random.randint(key, (), 0, 2) * state, (), ()),
    update=lambda state, rollout, key: (state, {}),
)
STATE = jnp.int32(1)
"""Of a player that acts at random; 0: it always goes left."""
MATCH = games.match_of(ENV, PARAMS, PLAYER, GAMES, LIMIT, ROWS)


@pytest.fixture(scope="module")
def whole_games():
    """The games as one program plays them."""
    play = lambda state, key: evaluate(ENV, PARAMS, PLAYER, state, key, GAMES, 1, LIMIT)
    return jax.device_get(jax.jit(play)(STATE, jax.random.key(5)))


@pytest.fixture(scope="module")
def table() -> matches.CompiledMatch:
    return matches.compile_match(MATCH, STATE, jax.random.key(0))


def assert_equal(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_the_length_of_a_piece_makes_no_difference(size: int, whole_games, table, monkeypatch):
    monkeypatch.setattr(matches, "next_size", lambda *_: size)
    steps: list[int] = []
    assert_equal(table.play(STATE, jax.random.key(5), steps.append), whole_games)
    longest = int(whole_games.length.max())
    assert steps == sorted({1, *range(1 + size, longest, size), longest})


def test_games_that_do_not_end_are_cut_at_the_limit():
    match = games.match_of(ENV, PARAMS, PLAYER, GAMES, 3)
    played = matches.compile_match(match, STATE, jax.random.key(0)).play(STATE, jax.random.key(5))
    assert not played.complete.any()
    assert not played.length.any()


def test_what_is_called_between_pieces_may_end_a_match(table):
    def stop(step: int) -> None:
        raise InterruptedError(step)

    with pytest.raises(InterruptedError, match="1"):
        table.play(STATE, jax.random.key(5), stop)


def test_a_watched_game_is_longer_than_what_is_kept_at_a_time(whole_games, table):
    for which in (0, GAMES - 1):
        length = int(whole_games.length[which, 0])
        assert length > ROWS
        game = table.watch(STATE, jax.random.key(5), which, length)
        assert len(game.action) == length
        np.testing.assert_array_equal(game.state.time, np.arange(length))
        _, last, _, over, _ = ENV.step_env(
            jax.random.key(0), jax.tree.map(lambda x: x[-1], game.state), game.action[-1], PARAMS
        )
        assert bool(over)
        assert int(last.time) == length


def test_players_side_by_side_play_what_each_plays_alone(table):
    states, keys = jnp.array([1, 0], jnp.int32), jax.random.split(jax.random.key(3), 2)
    both = matches.compile_match(MATCH.vectorize(), states, keys).play(states, keys)
    for s in range(2):
        assert_equal(jax.tree.map(lambda x, s=s: x[s], both), table.play(states[s], keys[s]))


def test_games_of_which_no_more_is_known_are_played_at_once(whole_games):
    assert matches.to_match(MATCH) is MATCH
    match = matches.to_match(lambda state, key: MATCH(state, key))
    steps: list[int] = []
    table = matches.compile_match(match, STATE, jax.random.key(0))
    assert_equal(table.play(STATE, jax.random.key(5), steps.append), whole_games)
    assert steps == []


def test_a_piece_is_to_take_half_a_second():
    assert matches.next_size(100, 0.25) == 200
    assert matches.next_size(100, 5.0) == 10
    assert matches.next_size(100, 0.001) == 400  # no more than four times as long
    assert matches.next_size(1, 60.0) == 1
