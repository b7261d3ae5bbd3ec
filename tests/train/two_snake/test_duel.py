"""Duels of any two players: each moves as it does where it meets others, and games are counted."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from envs.two_snake.env import RIVAL
from envs.two_snake.opponents import OPPONENTS
from envs.two_snake.rules import State
from jaxrl.types import Agent, AgentState, PyTree
from tests.train import untrained
from train.host.errors import UsageError
from train.host.showing.live_game import Game, InvalidRequest
from train.two_snake import duel, scene, tournament, trained
from train.two_snake.config import AnyConfig
from train.two_snake.trained import Player


def player_of(config: AnyConfig, name: str) -> Player:
    run = untrained.untrained_run(untrained.TWO_SNAKE, config)
    return Player(name, config, trained.parameters(run.agents[0]))


@pytest.fixture(scope="module")
def config() -> AnyConfig:
    return untrained.two_snakes().config


@pytest.mark.slow
def test_both_players_move_as_in_a_tournament(config):
    """Networks of two kinds, on either side; one of them sees planes."""
    image = replace(config, env=replace(config.env, observation="planes"))
    image = replace(image, network=replace(config.network, mask=False, hidden=(6,)))
    numbers, planes = player_of(config, "numbers"), player_of(image, "planes")
    players = {player.name: player for player in (numbers, planes)}
    env = duel.make_env(config, [*players.values()])
    params = replace(tournament.params_of(config, RIVAL, None), opponent_weights=(1.0,))
    pairing = duel.pairing(players, env, params)
    keys = jax.random.split(jax.random.key(0), 50)
    _, states = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
    alone = {name: tournament_moves(player, states) for name, player in players.items()}
    for blue, red in (("numbers", "planes"), ("planes", "numbers")):
        moves = moves_of(*pairing(blue, red), states)
        np.testing.assert_array_equal(moves[:, 0], alone[blue][:, 0])
        np.testing.assert_array_equal(moves[:, 1], alone[red][:, 1])
        assert len(np.unique(moves)) > 1
    assert pairing("numbers", "planes")[0] is pairing("numbers", "planes")[0]


def tournament_moves(player: Player, states: State) -> np.ndarray:
    """The moves `[N, 2]` of a player that meets itself in a tournament."""
    config = replace(player.config, run=replace(player.config.run, evaluation_greedy=True))
    env, params = tournament.make_env(config), tournament.params_of(config, RIVAL, None)
    obs = jax.jit(jax.vmap(env.get_obs, in_axes=(0, None)))(states, params)
    sides = tournament.Sides(player.learned, player.learned)
    return moves_of(tournament.make_agent(config), sides, obs)


def moves_of(agent: Agent, agent_state: AgentState, obs: PyTree) -> np.ndarray:
    """The moves `[N, 2]` for observations `[N, ...]`."""
    act = jax.jit(jax.vmap(agent.act, (None, None, 0, None)))
    return np.asarray(act(agent_state, (), obs, jax.random.key(1))[0])


@pytest.mark.slow
def test_games_are_counted_unless_somebody_interferes():
    game = Game(scene.duel(untrained.two_snakes(), 0, ("static",)), 0)
    assert game.players == ("two_snake", "static")

    def play(seed: int, blue: str, red: str) -> str:
        game.new(seed, (blue, red))
        while not game.ending:
            game.step()
        return game.ending

    endings = [play(seed, "greedy", "static") for seed in range(3)]
    won = endings.count("blue has won")
    assert won > 0
    assert game.score == [won, 3 - won, 0]
    play(0, "static", "greedy")
    assert game.score == [0, 0, 1]
    play(0, "static", "static")  # neither moves: a draw at once
    assert (game.moment, game.score) == (1, [0, 1, 0])
    game.new(1)
    game.edit("food", [0.5, 0.5])
    game.step()
    assert (game.players, game.ending, game.score) == (("static", "static"), "a draw", [0, 1, 0])
    game.new(1, ("greedy", "static"))
    assert game.score == [won, 3 - won, 0]
    for players in (("nobody", "greedy"), ("", "")):
        with pytest.raises(InvalidRequest, match="there is no player"):
            game.new(2, players)
    assert game.players == ("greedy", "static")
    limited = replace(game.live.params, max_steps_in_episode=1)
    game.live = game.live._replace(params=limited)
    assert play(0, "greedy", "static") == "time up, a draw"
    assert play(0, "static", "static") == "a draw"  # over in its last step, too


def test_a_player_of_planes_needs_its_own_board(config):
    game = replace(config.env, observation="planes", rows=7)
    network = replace(config.network, mask=False)
    player = Player("other", replace(config, env=game, network=network), None)
    with pytest.raises(UsageError, match="other sees 7×9 cells; on 6×9 only players of that board"):
        duel.refuse_other_board(player, config)
    duel.refuse_other_board(
        player._replace(config=replace(config, env=replace(game, observation="features"))), config
    )


def test_players_of_one_name_are_told_apart(config):
    names = [*duel.with_scripts([Player(x, config, None) for x in ("a", "b", "a", "greedy")])]
    assert names == ["1. a", "b", "3. a", "4. greedy", *OPPONENTS]
