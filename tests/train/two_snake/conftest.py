"""Tournaments that are compiled once for the tests of a file."""

import pytest

from train.two_snake import agents, tournament


@pytest.fixture(scope="module")
def tournaments_compiled_once():
    """All runs here are of one shape, and so are their games."""
    compile_games, compiled_games = tournament.compile_games, {}

    def look_up(config, learned):
        network = agents.make_network(config)
        run, snakes = config.run, config.env.snakes
        key = (network, run.evaluation_games, run.evaluation_greedy, snakes)
        if key not in compiled_games:
            compiled_games[key] = compile_games(config, learned)
        return compiled_games[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tournament, "compile_games", look_up)
        yield
