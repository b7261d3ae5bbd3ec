"""Games that go on step by step: as the environment plays them, with and without interference."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.train import untrained
from train.durotaxis.scene import with_slope
from train.host.program import Run
from train.host.showing.live import DOWN, LEFT, RIGHT, UP, Live
from train.host.showing.live_game import Game, InvalidRequest

RUNS = {**untrained.RUNS, "hybrid": lambda: untrained.colony("hybrid")}


def live_of(run: Run) -> Live:
    assert run.program.views.live is not None
    return run.program.views.live(run, 0)


@pytest.fixture(scope="module", params=RUNS)
def live(request) -> Live:
    return live_of(RUNS[request.param]())


@pytest.mark.slow
def test_the_policy_plays_as_the_environment_has_it(live):
    game = Game(live, 3)
    for _ in range(6):
        before, total = game.now, game.total
        thoughts = live.agent.explain(live.agent_state, before.memory, before.obs)
        for a, b in zip(*map(jax.tree.leaves, (thoughts, before.explained)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        game.step()
        if game.ending:
            break
        step_key = jax.random.split(jax.random.clone(before.key), 3)[0]
        _, state, reward, *_ = live.env.step_env(step_key, before.state, before.action, live.params)
        for a, b in zip(*map(jax.tree.leaves, (state, game.now.state)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
        assert game.total - total == pytest.approx(float(np.sum(reward)), rel=1e-4, abs=1e-5)


@pytest.mark.fast_cases(1)
def test_what_is_shown_has_one_moment_of_everything(live):
    game = Game(live, 0)
    moment = game.moment_data()
    assert moment["moment"] == 0
    assert {len(x) for x in moment["frames"].values()} == {1}
    assert "constants" in moment
    game.step()
    assert "constants" not in game.moment_data()
    for bars in moment["bars"].values():
        assert bars["values"].shape == (1, len(bars["labels"]))
    game.new(1)
    assert "constants" in game.moment_data()


@pytest.mark.slow
def test_equal_seeds_are_equal_games(live):
    games = [Game(live, 5), Game(live, 0)]
    games[1].step()
    games[1].new(5)
    for game in games:
        game.step()
    for a, b in zip(*(jax.tree.leaves(game.now.state) for game in games), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.fast_cases(1)
def test_nothing_happens_after_the_end(live):
    game = Game(live, 0)
    game.ending = "over"
    with pytest.raises(InvalidRequest, match="begin a new one"):
        game.step()
    with pytest.raises(InvalidRequest):
        game.edit(next(iter(live.edits), "none"), [0.0, 0.0])
    moment = game.moment_data()  # nor is anything shown of the step that would have come
    for bars in moment["bars"].values():
        assert np.isnan(bars["values"]).all()
        assert bars["values"].shape == (1, len(bars["labels"]))
        assert bars["chosen"] == -1
    assert not np.any(moment["frames"].get("deleted", False))
    assert np.isnan(moment["frames"].get("chance", np.nan)).all()


def test_a_snake_goes_where_the_arrows_say():
    live = live_of(untrained.snake())
    game = Game(live, 0)
    board = live.env.board
    assert int(game.now.state.heading) == RIGHT
    offsets = {UP: -board.stride, RIGHT: 1, DOWN: board.stride, LEFT: -1}
    for direction in (UP, LEFT, DOWN):
        head = int(game.now.state.head)
        game.step(direction)
        assert int(game.now.state.head) - head == offsets[direction]
    head = int(game.now.state.head)
    game.step(UP)  # backwards is straight on
    assert int(game.now.state.head) - head == offsets[DOWN] or game.ending
    with pytest.raises(InvalidRequest, match="0 to 3"):
        Game(live, 0).step(4)


@pytest.mark.slow
def test_the_red_snake_goes_where_the_arrows_say_and_the_blue_as_it_likes():
    live = live_of(untrained.two_snakes())
    game, free = Game(live, 0), Game(live, 0)
    red = int(game.now.state.snakes.heading[1])
    turn = (red + 1) % 4
    game.step(turn)
    free.step()
    assert int(game.now.state.snakes.heading[1]) == turn
    assert int(game.now.state.snakes.head[0]) == int(free.now.state.snakes.head[0])


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("make", [untrained.snake, untrained.two_snakes])
def test_food_is_moved_to_empty_cells_only(make):
    live = live_of(make())
    game = Game(live, 0)
    board = live.env.board
    game.edit("food", [0.5, 0.5])
    assert int(game.now.state.food) == board.index(0, 0)
    obs = live.env.get_obs(game.now.state, live.params)
    for a, b in zip(jax.tree.leaves(obs), jax.tree.leaves(game.now.obs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    head = int(jnp.ravel(getattr(game.now.state, "snakes", game.now.state).head)[0])
    before = game.now
    row, col = divmod(head, board.stride)
    for place in ([col + 0.5, row + 0.5], [99.0, 0.0], [float("nan"), 0.0], [1.0], "x", None, True):
        with pytest.raises(InvalidRequest):
            game.edit("food", place)
    with pytest.raises(InvalidRequest, match="there is no edit"):
        game.edit("fruit", [0, 0])
    assert game.now is before


@pytest.mark.slow
def test_a_colony_is_cut_but_not_away():
    live = live_of(untrained.colony())
    game = Game(live, 0)
    colony = game.now.state.colony
    count = int(colony.num_nodes)
    last = [float(colony.x[count - 1]), float(colony.y[count - 1])]
    x, y = (np.asarray(v)[:count] for v in (colony.x, colony.y))
    distance = np.hypot(x - last[0], y - last[1])
    near = int((distance < 8).sum())
    if near < count:
        game.edit("cut", last)
        assert int(game.now.state.colony.num_nodes) == count - near
    with pytest.raises(InvalidRequest, match="no node within"):
        game.edit("cut", [59.0, 39.0])
    game.edit("slope", -0.1)
    assert float(game.now.state.law.slope) == pytest.approx(-0.1)
    moment = game.moment_data()
    assert "constants" in moment
    assert moment["numbers"]["slope"] == pytest.approx(-0.1)
    for wrong in (3.0, "steep", [0.1, 0.1], float("inf")):
        with pytest.raises(InvalidRequest):
            game.edit("slope", wrong)
    steep = replace(game.now.state, law=replace(game.now.state.law, exponential=True))
    with pytest.raises(ValueError, match=r"slope 1\.6 reaches"):  # not 1.600000023841858
        with_slope(steep, live.params, 1.6)
