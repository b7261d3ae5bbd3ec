"""`python -m train.two_snake`: curriculum, a small run from the outside, and its tournament."""

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from envs.two_snake import rules
from envs.two_snake.env import TwoSnake
from jaxrl import checkpoint
from jaxrl.agents import ppo
from jaxrl.loop import LoopMetrics
from jaxrl.losses.distributions import Categorical
from tests.train.host import crashes
from train import evaluate as evaluate_command
from train import render
from train.host.command_line import command
from train.host.files.metrics_file import read_metrics
from train.host.files.run_directory import CHECKPOINTS
from train.host.machine import compiled
from train.host.training import Training
from train.policies import export
from train.two_snake import agents, evaluation, tournament
from train.two_snake.config import PRESETS, Duel
from train.two_snake.curriculum import Curriculum, Stage, Weights, advance, params_at, start
from train.two_snake.program import PROGRAM
from train.two_snake.tournament import PLAYERS, Sides
from train.two_snake.training import ENDINGS, make_training

SMALL = (
    "--env.rows=5 --env.cols=9 --env.max-steps-in-episode=12 --network.hidden 8 "
    "--agent.minibatches=4 --agent.epochs=1 --loop.num-envs=8 --loop.num-steps=16 "
    "--curriculum.static.share=0.25 --curriculum.random.share=0 --curriculum.greedy.share=0.25 "
    "--curriculum.greedy.won=0 --curriculum.greedy.target=1 --curriculum.frozen.share=0.25 "
    "--curriculum.pool.target=2 --rivals.snapshot-updates=1 --rivals.pool-size=2 "
    "--run.total-steps=768 --run.chunk-steps=128 --run.checkpoint-every=4 "
    "--run.evaluation-games=7"
)


def two_snake_command(*arguments: str) -> int:
    return command.main(PROGRAM, arguments)


def assert_refused(flags: str, message: str, directory: Path, capsys) -> None:
    assert two_snake_command(*flags.split(), f"--run.directory={directory}") == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
    assert not directory.exists()


@pytest.fixture(scope="module", autouse=True)
def tournaments_compiled_once():
    """All runs here are of one shape, and so are their games."""
    compile_games, compiled_games = tournament.compile_games, {}

    def look_up(config, learned):
        network = agents.make_network(config)
        key = (network, config.run.evaluation_games, config.run.evaluation_greedy)
        if key not in compiled_games:
            compiled_games[key] = compile_games(config, learned)
        return compiled_games[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tournament, "compile_games", look_up)
        yield


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("two_snake") / "run"
    assert two_snake_command(*SMALL.split(), f"--run.directory={directory}") == 0
    return directory


def final_state(directory: Path):
    config, _ = command.parse(PROGRAM, ["--resume", str(directory)])
    training = make_training(config)
    template = jax.eval_shape(compiled.init_all(training.init, config.run.members.starts), 0)
    return checkpoint.restore(directory / CHECKPOINTS, template)[0]


@pytest.mark.slow
def test_a_run_goes_through_its_stages_and_leaves_score_and_pictures(finished_run: Path):
    rows = read_metrics(finished_run)
    assert [row["steps"] for row in rows] == [128, 256, 384, 512, 640, 768]
    # two updates at most in each stage but the last, and the games of `greedy` need not be won
    assert [row["agent"]["stage"] for row in rows] == [0, 0, 1, 1, 2, 2]
    # each update but the frozen ones, and each new stage, add one to the untrained member
    assert [row["agent"]["snapshots"] for row in rows] == [2, 3, 5, 6, 7, 7]
    for row in rows:
        if row["finished"]["won"] is not None:
            met = [x for name, x in row["finished"].items() if name.startswith("met_")]
            assert sum(met) == pytest.approx(1)
            ways = [row["finished"][name] for name in ENDINGS if name]
            assert sum(ways) <= 1 + 1e-6
    seed = json.loads((finished_run / "eval.json").read_text())["seeds"][0]
    assert seed["games"] == 8  # an even number
    assert set(seed["tournament"]) == {"static", "random", "greedy", "defensive", "itself"}
    for summary in seed["tournament"].values():
        assert sum(summary[x]["mean"] for x in ("won", "draw", "lost")) == pytest.approx(1)
        assert summary["score"]["max"] <= 2  # the target of the last stage
    for name, is_film in (
        ("learning_curve.png", False),
        ("endings.png", False),
        ("scores.png", False),
        ("against_greedy.gif", True),
        ("against_defensive.gif", True),
    ):
        with Image.open(finished_run / name) as image:
            assert (getattr(image, "n_frames", 1) > 1) == is_film


@pytest.mark.slow
def test_a_resumed_run_is_the_same_run(finished_run: Path, tmp_path: Path):
    interrupted = tmp_path / "run"
    crashes.after_the_first_checkpoint(finished_run, interrupted)
    assert two_snake_command("--resume", str(interrupted), "--run.evaluation_games=0") == 0
    without_times = [
        [{k: v for k, v in row.items() if "second" not in k} for row in read_metrics(directory)]
        for directory in (finished_run, interrupted)
    ]
    assert without_times[0] == without_times[1]
    before, after = final_state(finished_run), final_state(interrupted)
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_a_tournament_is_played_by_command(finished_run: Path, capsys):
    before = json.loads((finished_run / "eval.json").read_text())
    assert evaluate_command.main([str(finished_run), "--games=7", "--key=5"]) == 0
    assert "0 defensive" in capsys.readouterr().out
    after = json.loads((finished_run / "eval.json").read_text())
    assert (after["key"], after["updates"], after["greedy"]) == (5, 6, True)
    assert after["seeds"][0]["tournament"] != before["seeds"][0]["tournament"]
    assert evaluate_command.main([str(finished_run), "--games=0"]) == 2
    assert "--games is 0, expected a number at least 1" in capsys.readouterr().err


@pytest.mark.slow
def test_a_policy_is_filmed_and_plays_the_tournament_without_its_run(
    finished_run: Path, tmp_path: Path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    policy = export.export(finished_run, str(tmp_path / "small.safetensors"))
    assert render.main([f"--policy={policy}", "--games=7"]) == 0
    *paths, line = capsys.readouterr().out.splitlines()
    strips, films = paths[::2], paths[1::2]
    assert strips == [path.replace(".gif", "_strip.png") for path in films]
    assert films == [f"runs/policy-small/against_{name}.gif" for name in ("greedy", "defensive")]
    for path in films:
        with Image.open(path) as film:
            assert getattr(film, "n_frames", 1) > 1
    share = r"[\d.]+%"
    assert re.fullmatch(rf"7 games: won {share} against greedy and {share} against defensive", line)
    assert evaluate_command.main([f"--policy={policy}", "--games=7", "--key=5"]) == 0
    of_policy = json.loads(Path("runs/policy-small/eval.json").read_text())
    assert evaluate_command.main([str(finished_run), "--games=7", "--key=5"]) == 0
    of_run = json.loads((finished_run / "eval.json").read_text())
    assert (of_policy["updates"], of_policy["greedy"]) == (6, True)
    assert of_policy["seeds"][0]["tournament"] == of_run["seeds"][0]["tournament"]


def test_a_stage_ends_when_its_own_opponent_is_beaten_or_its_time_is_up():
    """Against a plain loop over games with random numbers of wins."""
    curriculum = Curriculum(
        static=Stage(Weights(static=1.0), won=0.7, share=0.3, target=3),
        random=Stage(Weights(static=1.0, random=2.0), won=0.8, share=0.2, target=4),
        greedy=Stage(Weights(greedy=1.0), share=0.0),
        frozen=Stage(Weights(static=2.0, rival=3.0), won=0.75, share=0.3, target=5),
        pool=Stage(Weights(rival=1.0), won=0.0, share=0.01, target=6),
    )
    names, own, budget, count = ("static", "random", "rival"), (0, 1, 2, 2), 40, 30
    assert curriculum.opponents() == names

    # the progress after each update, by `advance`
    @partial(jax.jit, static_argnums=2)
    def run(met, won, budget):
        def step(progress, games):
            met, won = ({n: x[i] for i, n in enumerate(names)} for x in games)
            finished = {f"met_{n}": x for n, x in met.items()}
            finished |= {f"won_{n}": x for n, x in won.items()}
            metrics = LoopMetrics(jnp.zeros(()), finished, {})
            after = advance(curriculum, progress, metrics, budget)
            return after, after

        return jax.lax.scan(step, start(), (met, won))[1]

    # the plain loop, and that both agree
    rng, reasons = np.random.default_rng(0), set()
    for trial in range(8):
        met = rng.integers(0, 60, (count, 3))
        won = rng.binomial(met, rng.uniform(0.55, 0.95, (1, 3)))
        after = jax.device_get(run(met, won, budget))
        stage, updates, games, wins = 0, 0, 0.0, 0.0
        for i in range(count):
            updates += 1
            games = 0.9 * games + met[i, own[stage]]
            wins = 0.9 * wins + won[i, own[stage]]
            limit = (12, 8, 12, 0.4)[stage]
            beaten = games >= 200 and wins / games >= (0.7, 0.8, 0.75, 0.0)[stage]
            if stage < 3 and (beaten or updates >= limit):
                reasons.add((stage, "beaten" if beaten else "time"))
                stage, updates, games, wins = stage + 1, 0, 0.0, 0.0
            assert (after.stage[i], after.updates[i]) == (stage, updates), trial
            np.testing.assert_allclose([after.games[i], after.won[i]], [games, wins], rtol=1e-5)
    assert len(reasons) == 6  # all three stages ended in both ways
    # each stage has its own target and opponents
    params = TwoSnake(opponents=names, rival=True).default_params
    now = [params_at(curriculum, params, stage) for stage in range(4)]
    assert [int(each.target) for each in now] == [3, 4, 5, 6]
    weights = [np.asarray(each.opponent_weights).tolist() for each in now]
    assert weights == [[1, 0, 0], [1, 2, 0], [2, 0, 3], [0, 0, 1]]


def assert_fits_together(training: Training) -> tuple[Any, LoopMetrics]:
    """An update keeps structure, shapes and dtypes; returns a state and metrics, as shapes."""
    state = jax.eval_shape(training.init, jax.random.key(0))
    after, metrics = jax.eval_shape(training.update, state)
    chex.assert_trees_all_equal_shapes_and_dtypes(after, state)
    return state, metrics


@pytest.mark.slow
def test_a_dqn_and_its_pool_fit_together():
    """Shapes alone: the pool holds parameters as the learner has them, of as many members."""
    config = PRESETS["dqn"].config
    state, metrics = assert_fits_together(make_training(config))
    learner, size = jax.tree.leaves(state.agent.learner.params), config.rivals.pool_size
    pool = jax.tree.leaves(state.agent.pool)
    assert [x.shape for x in pool] == [(size, *x.shape) for x in learner]
    assert {"stage", "snapshots", "updates", "epsilon"} <= set(metrics.agent)


@pytest.mark.slow
def test_the_other_presets_meet_one_opponent():
    """Shapes alone: without a rival, PPO learns by itself."""
    assert PRESETS["direct"].config.curriculum.opponents() == ("rival",)
    assert PRESETS["greedy"].config.curriculum.opponents() == ("greedy",)
    state, metrics = assert_fits_together(make_training(PRESETS["greedy"].config))
    assert isinstance(state.agent, ppo.State)
    assert {name for name in metrics.finished if name.startswith("met_")} == {"met_greedy"}


class FoodSeeker:
    """A network that goes where the food is, as far as `params` is positive; else it flees."""

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
    config = replace(config, run=run, env=replace(config.env, max_steps_in_episode=200))
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


def test_a_game_to_learn_from_ends_with_the_learner():
    env = Duel(opponents=("greedy", "rival"), rival=True, ends_with_learner=True)
    up = [(0, 4), (1, 4), (2, 4)], 0  # about to run into the wall
    also_up = [(0, 7), (1, 7), (2, 7)], 0
    left = [(5, 6), (5, 7), (5, 8)], 3

    @jax.jit
    def go_straight(state):
        chance = env.chances(jax.random.key(0))[0]
        return env.transition(chance, state, jnp.zeros(2, jnp.int32), env.default_params)

    for (mine, others), over, result in (
        ((up, left), True, "lost"),
        ((left, up), False, None),
        ((up, also_up), True, "draw"),
    ):
        headings = mine[1], others[1]
        state = rules.from_bodies(env.board, (mine[0], others[0]), headings, (9, 9))
        _, _, is_over, info = go_straight(replace(state, opponent=jnp.int32(1)))
        outcome = info["outcome"]
        assert bool(is_over) == over
        assert [name for name in ("won", "lost", "draw") if outcome[name]] == [result] * over
        assert (outcome["met_greedy"], outcome["met_rival"]) == (False, True)


TINY = (
    "--env.rows=5 --env.cols=9 --env.max-steps-in-episode=12 --loop.num-envs=8 "
    "--loop.num-steps=16 --run.total-steps=512 --run.chunk-steps=128 --run.evaluation-games=4 "
    "--run.evaluate-every=0"
)
TWO_STAGES = (
    "--curriculum.static.share=0 --curriculum.random.share=0 --curriculum.greedy.share=0.5 "
    "--curriculum.frozen.share=0 --rivals.snapshot-updates=1 --rivals.pool-size=2"
)
BY_DQN = (
    "--network.hidden 8 --agent.batch-size=8 --agent.capacity=400 --agent.warmup=64 "
    "--agent.updates-per-rollout=2"
)


@pytest.fixture(scope="module")
def dqn_run(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("two_snake") / "by_dqn"
    flags = f"dqn {TINY} {TWO_STAGES} {BY_DQN} --run.directory={directory}"
    assert two_snake_command(*flags.split()) == 0
    return directory


@pytest.mark.slow
def test_a_dqn_goes_through_the_stages_too(dqn_run: Path):
    rows = read_metrics(dqn_run)
    assert [row["agent"]["stage"] for row in rows] == [0, 0, 1, 1]
    # the untrained learner, each update, and the new stage
    assert [row["agent"]["snapshots"] for row in rows] == [2, 3, 5, 6]
    assert rows[-1]["agent"]["updates"] == 8
    assert rows[-1]["agent"]["epsilon"] < 1
    (seed,) = json.loads((dqn_run / "eval.json").read_text())["seeds"]
    assert set(seed["tournament"]) == {"static", "random", "greedy", "defensive", "itself"}
    state = final_state(dqn_run)
    pool = jax.tree.leaves(state.agent.pool)
    newest = [x[(6 - 1) % 2] for x in pool]
    jax.tree.map(np.testing.assert_array_equal, newest, jax.tree.leaves(state.agent.learner.params))


@pytest.mark.slow
def test_a_snake_learns_against_one_of_another_network(dqn_run: Path, tmp_path: Path, capsys):
    """PPO against the policy of the DQN; the policy that comes out needs no other file."""
    opponent = export.export(dqn_run, str(tmp_path / "by_dqn.safetensors"))
    flags = f"guest {TINY} --network.hidden 5 7 --agent.minibatches=4".split()
    directory = tmp_path / "run"
    run_flags = [f"--run.directory={directory}", f"--opponent={opponent}"]
    assert two_snake_command(*flags, *run_flags) == 0
    rows = read_metrics(directory)
    assert {row["finished"]["met_guest"] for row in rows if row["episodes"]} <= {1.0}
    learned = export.export(directory, str(tmp_path / "learned.safetensors"))
    opponent.unlink()
    assert evaluate_command.main([f"--policy={learned}", "--games=4"]) == 0
    capsys.readouterr()
    assert two_snake_command(*flags, f"--run.directory={tmp_path / 'no'}", run_flags[1]) == 2
    complaint = capsys.readouterr().err
    assert "by_dqn.safetensors" in complaint
    assert complaint.count("\n") == 1
    assert not (tmp_path / "no").exists()


@pytest.mark.slow
def test_guests_of_other_boards_are_refused(dqn_run: Path, tmp_path: Path, capsys):
    message = "has --env.rows 5, not 10: they cannot meet"
    assert_refused(f"guest --opponent {dqn_run}", message, tmp_path / "run", capsys)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--env.cols=8", "--env.cols is 8, expected a number at least 9"),
        ("--curriculum.pool.target=0", "--curriculum.pool.target is 0, expected a number at"),
        ("--curriculum.pool.opponents.rival=-1", "opponents.rival is -1.0, expected a number"),
        ("greedy --curriculum.greedy.share=0", "no stage of the curriculum has a share above 0"),
        ("direct --curriculum.pool.opponents.rival=0", "curriculum.pool.opponents are all 0"),
        ("--rivals.pool-size=0", "--rivals.pool-size is 0, expected a number"),
        ("--rivals.snapshot-updates=0", "--rivals.snapshot-updates is 0, expected a number"),
        ("--agent.learning-rate=nan", "--agent.learning-rate is nan, expected a number"),
        pytest.param(
            "guest --opponent snake-10x10",
            "expected players of train.two_snake",
            marks=pytest.mark.slow,  # test_ranking.py refuses it, too
        ),
        ("--curriculum.pool.opponents.guest=1", "say who that is with --opponent"),
        ("direct --opponent somebody", "--opponent has no effect, as no stage has a guest"),
        ("dqn --network.mask", "network.mask needs a preset of PPO"),
        ("dqn --agent.categorical", "needs a network with atoms"),
        ("steep", "there is no preset steep: choose one of curriculum, direct, greedy, guest, dqn"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(flags, message, capsys, tmp_path):
    assert_refused(flags, message, tmp_path / "run", capsys)
