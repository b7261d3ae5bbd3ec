"""`train.evaluate` for Snake on any board, and the film of a policy, by players with a plan.

A player that always goes forward starts in the middle of a classic board, heads right and meets the
wall after `cols - cols // 2` steps, whatever it eats on the way.
"""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from envs.snake.pictures.drawing import LOOKS
from jaxrl.evaluate import Episodes
from tests.train import untrained
from tests.train.snake.snake_runs import UPDATES, make_run
from train import evaluate, render
from train.host.command_line import command
from train.host.errors import UsageError
from train.host.scoring import limits
from train.policies import export
from train.snake import evaluation, pictures
from train.snake.config import Game
from train.snake.program import PROGRAM
from train.snake.training import make_training

SMALL = "--env.rows 6 --env.cols 7 --loop.num_envs 4 --network.hidden 4 --env.observation"


def forward_agent(agent):
    """Chooses action 0 whatever it sees."""
    params = jax.tree.map(jnp.zeros_like, agent.params)
    params["params"]["policy"]["bias"] = jnp.array([50.0, 0.0, 0.0])
    return agent._replace(params=params)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return make_run(
        tmp_path_factory.mktemp("forward") / "run", f"ppo {SMALL} features", forward_agent
    )


@pytest.fixture(scope="module")
def policy(run: Path) -> Path:
    return export.export(run, str(run.parent / "forward.safetensors"))


def read(path: Path) -> dict:
    return json.loads(path.read_text())


@pytest.mark.slow
def test_a_table_of_sizes_says_how_games_end_on_each(run, capsys):
    assert evaluate.main([str(run), "--games=20", "--sizes", "4", "9"]) == 0
    out = capsys.readouterr().out
    assert "9×9 seed 0" in out
    assert "cut after 1,600 · 8,100 steps" in " ".join(out.split())
    boards = read(run / "transfer.json")["boards"]
    for board, size in zip(boards, (4, 9), strict=True):
        (row,) = board["seeds"]
        assert (board["rows"], board["cols"], board["max_steps"]) == (size, size, 100 * size**2)
        assert row["games"] == 20
        assert row["length"]["mean"] == row["length"]["max"] == size - size // 2
        assert row["death_wall"]["mean"] == 1
        meals = row["score"]["mean"] * 20
        assert row["steps_per_food"] == (pytest.approx(row["steps"] / meals) if meals else None)


def test_games_of_sizes_are_cut_by_the_limit_of_their_board_alone(monkeypatch):
    """Neither by the limit of the run's own games, nor by the 100,000 steps of any other game."""
    run = untrained.snake()
    settings = replace(run.config.run, evaluation_steps=7)
    run = run._replace(config=replace(run.config, run=settings))
    longest = []

    def make_training(config):
        own, chosen = config.env.max_steps_in_episode, config.run.evaluation_steps
        longest.append(limits.most_steps(own, chosen))
        return SimpleNamespace(evaluate=lambda *_: SimpleNamespace(content={"seeds": []}))

    monkeypatch.setattr(evaluation, "make_training", make_training)
    options = evaluation.Options(sizes=(4, 32))
    for size in options.sizes:
        game = evaluation.requested_game(run.config.env, size, size, options)
        evaluation.play(run, game, options)
    assert longest == [1_600, 102_400]
    evaluation.play(run, run.config.env, evaluation.Options())
    assert longest[-1] == 7


@pytest.mark.parametrize(
    ("trained", "flags"),
    [
        ("--env.smallest-side=5", {"obstacles": 2, "foods": 2}),
        ("--env.smallest-side=6 --env.square-boards --env.late-share=0.5", {"rows": 4, "cols": 5}),
        ("--env.grown-share=0.3 --env.mirror", {"obstacles": 3}),
    ],
)
def test_how_training_games_began_does_not_matter_on_other_boards(
    trained: str, flags: dict, monkeypatch
):
    """They are not played, so that a game may have what they must not."""
    config, _ = command.parse(PROGRAM, f"ppo {SMALL} features {trained}".split())
    run = untrained.snake()._replace(config=config)
    played = []

    def build_training(config):
        make_training(config)  # which refuses games that cannot be
        played.append(config.env)
        return SimpleNamespace(evaluate=lambda *_: SimpleNamespace(content={"seeds": []}))

    monkeypatch.setattr(evaluation, "make_training", build_training)
    options = evaluation.Options(**flags)
    game = evaluation.requested_game(config.env, options.rows, options.cols, options)
    evaluation.play(run, game, options)
    (game,) = played
    assert {name: getattr(game, name) for name in flags} == flags
    assert game.observation == "features"


@pytest.mark.slow
def test_a_policy_plays_another_game_beside_players_by_rule(policy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = ["--rows=4", "--rules=modern", "--max-steps=1", "--games=8", "--players", "random"]
    assert evaluate.main(["--policy", str(policy), *flags, "--out=scores.json"]) == 0
    (path,) = Path("runs/policy-forward").iterdir()  # no eval.json, which is of its own game
    assert Path("scores.json").read_bytes() == path.read_bytes()
    assert path.name == "eval-4x7-modern-1.json"
    content = read(path)
    assert (content["updates"], content["key"], content["greedy"]) == (UPDATES, 1, True)
    (board,) = content["boards"]
    assert (board["rows"], board["cols"], board["max_steps"]) == (4, 7, 1)
    for row in (board["seeds"][0], board["players"]["random"]):
        assert row["games"] == 8
        assert row["length"]["max"] == 1
        assert row["truncated"]["mean"] == 1


@pytest.mark.slow
def test_a_policy_is_filmed(policy, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert render.main([f"--policy={policy}", "--games=5", "--out=film"]) == 0
    strip, path, line = capsys.readouterr().out.splitlines()
    assert Path(strip).name == "best_game_strip.png"
    assert Path(strip).is_file()
    assert line.startswith("5 games: food ")
    assert line.endswith("of 39; 0.0% won")
    with Image.open(path) as film:
        assert Path(path) == Path("film/best_game.gif")
        assert film.n_frames == 5  # pyright: ignore
        film.seek(4)
        frame = np.asarray(film.convert("RGB"))[-1, 0].astype(int)
    crashed = np.array(list(bytes.fromhex(LOOKS["crashed"].frame[1:])))
    assert np.abs(frame - crashed).max() < 8


def test_of_games_with_as_much_food_the_shortest_is_shown():
    score, length = jnp.array([[5], [9], [9], [9]]), jnp.array([[1], [40], [30], [90]])
    false = jnp.zeros((4, 1), bool)
    games = Episodes(score, length, ~false, false, {"score": score, "won": false}, ~false)
    ranked = pictures.short_games_first(games).outcome["score"]
    assert jnp.argsort(-ranked[:, 0]).tolist() == [2, 1, 3, 0]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--games 0", "--games is 0, expected a number at least 1"),
        ("--max-steps 0", "--max-steps is 0, expected a number at least 1"),
        ("--rows 3", "--rows is 3, expected a number at least 4"),
        ("--sizes 8 33", "--sizes[1] is 33, expected a number at least 4"),
        ("--sizes 8 --rows 9", "--sizes says how large the boards are: leave out --rows"),
        (f"--key {10**20}", f"--key is {10**20}, expected a number at least 0"),
        ("--rules strict", "invalid choice 'strict'"),
        ("--players best", "no player best for 6×7; choose among random, random_safe, direct"),
        ("--sizes 8 5 --players shortcuts", "no player shortcuts for 5×5"),
    ],
)
def test_a_mistake_is_answered_in_one_line(flags: str, message: str, run, capsys):
    assert evaluate.main([str(run), *flags.split()]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert err.count("\n") == 1
    assert out == ""


@pytest.mark.parametrize("view", ["board", "planes", "egocentric"])
def test_what_suits_no_other_board_is_not_recommended_for_it(view):
    game = Game(rows=6, cols=6, observation=view)
    with pytest.raises(UsageError, match="for other boards train with one of") as refusal:
        evaluation.refuse_other_shape(game, replace(game, rows=8))
    suited = "features, flood, selective, enhanced, tail, near, far, gaps, compass"
    assert str(refusal.value).endswith(f"one of {suited}")


def test_a_list_of_cells_suits_no_board_of_as_many():
    """Entry 6 of 6×7 is the end of the first row, and of 7×6 the beginning of the second."""
    game = Game(rows=6, cols=7, observation="board")
    evaluation.refuse_other_shape(game, game)
    message = "board lists the cells of 6×7 in training and those of 7×6 otherwise: for other"
    with pytest.raises(UsageError, match=message) as refusal:
        evaluation.refuse_other_shape(game, replace(game, rows=7, cols=6))
    assert str(refusal.value).endswith("gaps, compass, egocentric")
    seen_from_the_head = replace(game, observation="egocentric")
    evaluation.refuse_other_shape(seen_from_the_head, replace(seen_from_the_head, rows=7, cols=6))


@pytest.mark.slow
def test_pictures_fit_one_board_and_files_keep_no_exploration(tmp_path, capsys):
    run = make_run(tmp_path / "pictures", f"ppo {SMALL} planes", lambda agent: agent)
    assert evaluate.main([str(run), "--rows=7"]) == 2
    message = "planes has the shape (6, 7, 5) in training and (7, 7, 5) on 7×7: for other boards"
    assert message in capsys.readouterr().err
    run = make_run(tmp_path / "q", f"dqn {SMALL} features --agent.capacity 40", lambda agent: agent)
    path = export.export(run, str(tmp_path / "q.safetensors"))
    assert evaluate.main(["--policy", str(path), "--sampled"]) == 2
    assert f"{path} has no exploration" in capsys.readouterr().err
