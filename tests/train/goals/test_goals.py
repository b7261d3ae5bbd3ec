"""`python -m train.goals` after a small run of train.allo, and the arithmetic behind it."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from rich.table import Table
from scipy import stats

from envs.grid.env import Grid
from envs.grid.layouts import parse
from jaxrl.spectral import hitting_times
from tests.train.allo.directed.test_directed import MAZE as RING
from tests.train.host import crashes
from tests.train.snake.snake_runs import make_run
from train.allo import program as allo
from train.allo.config import PRESETS
from train.allo.config import Config as Training
from train.allo.directed import directed_run, directed_scores
from train.allo.training import make_training
from train.goals import features as goal_features
from train.goals import scene, scores, tasks, training
from train.goals.__main__ import with_run_named
from train.goals.config import ARMS, Config, plan
from train.goals.features import Representation
from train.goals.program import PROGRAM
from train.goals.training import make_training as make_goals
from train.host import training as settings
from train.host.command_line import command
from train.host.program import EpisodeSelection, Run, Views
from train.host.running import saved_runs
from train.snake import program as snake

SMALL = (
    "--env.maze=GridRoomSmall-1 --env.transitions=20000 --network.hidden 64 --agent.num-features=6 "
    "--agent.optimizer=adam --agent.learning-rate=0.005 --run.num-seeds=2 --run.total-steps=200"
)
BUDGET = ("--goals=3", "--learners=3", "--steps=770", "--run.chunk-steps=10")
NAMES = [arm.name for arm in ARMS]
UNDRAWN = Views(pictures=lambda *_: [])


def goals(*arguments: str) -> int:
    """Runs `python -m train.goals` with these arguments and returns its exit code."""
    return command.main(PROGRAM, with_run_named(list(arguments), PROGRAM.presets))


@pytest.fixture(scope="module")
def untrained_run(tmp_path_factory) -> Path:
    """A run that has learned nothing, where what it has learned does not matter."""
    directory = tmp_path_factory.mktemp("goals") / "written"
    return make_run(directory, SMALL, lambda agent: agent, allo.PROGRAM)


@pytest.fixture(scope="module")
def trained_run(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("goals") / "run"
    program = allo.PROGRAM._replace(training=make_unscored_training, views=UNDRAWN)
    assert command.main(program, [*SMALL.split(), f"--run.directory={directory}"]) == 0
    return directory


def make_unscored_training(config: Training) -> settings.Training:
    """The training, without the seconds that its evaluation takes."""
    nothing = {"score": "", "compile_seconds": 0.0, "seconds": 0.0, "seeds": []}
    evaluation = settings.Evaluation(nothing, Table())
    return make_training(config)._replace(evaluate=lambda *of_seeds: evaluation)


@pytest.fixture(scope="module")
def finished_run(trained_run: Path, tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("found") / "run"
    every = "--run.checkpoint-every=2"
    assert goals(str(trained_run), *BUDGET, every, f"--run.directory={directory}") == 0
    return directory


@pytest.mark.slow
def test_a_directed_run_is_compared_with_its_walk_without_direction(tmp_path: Path):
    """Shaped by learned hitting times, and by commute times of the same recorded walk."""
    (tmp_path / "ring.txt").write_text(RING)
    flags = (
        f"directed --maze-file={tmp_path}/ring.txt --env.transitions=20000 --network.hidden 48 48 "
        "--agent.num-features=5 --agent.spare-features=7 --run.num-seeds=2 --run.total-steps=400 "
        f"--agent.schedule=budget --run.directory={tmp_path}/run"
    )
    program = allo.PROGRAM._replace(training=make_unscored_training, views=UNDRAWN)
    assert command.main(program, flags.split()) == 0
    budget = ("--goals=2", "--learners=2", "--steps=400", "--run.chunk-steps=20")
    assert goals(str(tmp_path / "run"), *budget, f"--run.directory={tmp_path}/goals") == 0
    arms = json.loads((tmp_path / "goals" / "eval.json").read_text())["seeds"][0]["arms"]
    assert list(arms) == [*NAMES, "symmetric distance"]
    assert arms["symmetric distance"]["gained"]
    config = Config(learned=str(tmp_path / "run"), goals=2, learners=2)
    experiment = training.make_experiment(config)
    run, arm_indices = experiment.run, {arm.name: k for k, arm in enumerate(experiment.arms)}
    times = hitting_times.exact_times(experiment.problem.chain.toarray())
    for r, agent in enumerate(run.agents):
        (one, _) = directed_run.eigenpairs_and_chain(run.config, experiment.problem, agent)
        learned = np.sqrt(directed_scores.times_of(one))
        for g, goal in enumerate(experiment.goals):
            potential = experiment.potentials[arm_indices["learned distance"], g, r]
            expected = -learned[:, goal] / learned[:, goal].max()
            np.testing.assert_allclose(potential, expected, atol=1e-5)
            others = np.arange(len(times)) != goal
            symmetric = experiment.potentials[arm_indices["symmetric distance"], g, r]
            both = np.asarray(potential)[others], np.asarray(symmetric)[others]
            ranks: Any = [stats.spearmanr(-x, times[others, goal])[0] for x in both]
            assert ranks[0] > 0.9 > ranks[1] + 0.1


@pytest.mark.slow
def test_learned_eigenvectors_find_goals_sooner(finished_run: Path):
    with Image.open(finished_run / "goals.png") as picture:
        assert picture.width > 500
    content = json.loads((finished_run / "eval.json").read_text())
    assert content["distance"] == 5, "half of the ten moves between opposite corners"
    assert content["training_seeds"] == [0, 1]
    assert len(set(content["goals"])) == 3
    (row,) = content["seeds"]
    arms = row["arms"]
    assert list(arms) == NAMES
    for arm in arms.values():
        assert arm["steps"] == (20 * np.arange(1, 41)).tolist(), "770 steps in 40 equal parts"
        each, area = np.array(arm["area_of_each"]), arm["area"]
        assert each.shape == (3, 3)
        assert area["low"] <= area["value"] <= area["high"]
        assert area["value"] == pytest.approx(each.mean())
        assert np.mean(arm["success_curve"]["value"]) == pytest.approx(area["value"], rel=1e-5)
    assert arms["none"]["gained"] is None
    for name in ("learned distance", "true distance", "distance + options"):
        gained = arms[name]["area"]["value"] - arms["none, optimistic"]["area"]["value"]
        assert arms[name]["gained"]["value"] == pytest.approx(gained, rel=1e-5)
        assert arms[name]["gained"]["low"] > 0.1
    assert row["area"]["mean"] == arms["learned distance"]["area"]["value"]


@pytest.mark.slow
def test_the_record_says_how_every_arm_does(finished_run: Path):
    rows = [json.loads(line) for line in (finished_run / "metrics.jsonl").read_text().splitlines()]
    assert [row["steps"] for row in rows] == [10, 20, 30, 40]
    arms = json.loads((finished_run / "eval.json").read_text())["seeds"][0]["arms"]
    for i, arm in enumerate(arms.values()):
        curve = np.array(arm["success_curve"]["value"]).reshape(4, 10)
        success = [row["agent"]["success"][i] for row in rows]
        np.testing.assert_allclose(success, curve.mean(axis=1), rtol=1e-5)


@pytest.mark.slow
def test_a_run_that_was_stopped_continues_as_if_it_had_not_been(finished_run: Path, tmp_path):
    stopped = tmp_path / "run"
    crashes.after_the_first_checkpoint(finished_run, stopped)
    assert goals("--resume", str(stopped)) == 0
    as_seeds = lambda run: json.loads((run / "eval.json").read_text())["seeds"]
    assert as_seeds(stopped) == as_seeds(finished_run)


@pytest.mark.slow
def test_learners_of_every_arm_fit_together_and_are_scored(untrained_run: Path):
    """Shapes of all but the scores, which are those of results by chance."""
    config, _ = command.parse(
        PROGRAM, with_run_named([str(untrained_run), *BUDGET], PROGRAM.presets)
    )
    of_all = make_goals(config)
    state = jax.eval_shape(of_all.init, jax.random.key(0))
    after, metrics = jax.eval_shape(of_all.update, state)
    chex.assert_trees_all_equal_shapes_and_dtypes(after, state)
    assert state.agent.success.shape == (len(NAMES), 3, 3, 40)
    assert metrics.agent["success"].shape == metrics.agent["length"].shape == (len(NAMES),)
    success = np.random.default_rng(0).random(state.agent.success.shape)
    results = training.LearnerResults(jnp.asarray(success), jnp.asarray(5 / success))
    content = of_all.evaluate([results], [0], [jax.random.key(0)]).content
    assert content["distance"] == 5, "half of the ten moves between opposite corners"
    assert content["training_seeds"] == [0, 1]
    assert len(set(content["goals"])) == 3
    (row,) = content["seeds"]
    assert list(row["arms"]) == NAMES
    for arm, each in zip(row["arms"].values(), success, strict=True):
        assert arm["steps"] == (20 * np.arange(1, 41)).tolist(), "770 steps in 40 equal parts"
        np.testing.assert_allclose(arm["area_of_each"], each.mean(-1), rtol=1e-5)
        assert arm["area"]["value"] == pytest.approx(each.mean(), rel=1e-5)
    assert row["area"]["mean"] == row["arms"]["learned distance"]["area"]["value"]
    # A run that was stopped after 11 checkpoints is scored by these.
    reached = np.arange(40) < 11
    stopped = training.LearnerResults(
        jnp.asarray(success * reached), jnp.asarray(5 / success * reached)
    )
    evaluation = of_all.evaluate([stopped], [0], [jax.random.key(0)])
    assert [x["checkpoints_reached"] for x in (content, evaluation.content)] == [40, 11]
    for arm, each in zip(evaluation.content["seeds"][0]["arms"].values(), success, strict=True):
        assert arm["steps"] == (20 * np.arange(1, 12)).tolist()
        np.testing.assert_allclose(arm["area_of_each"], each[..., :11].mean(-1), rtol=1e-5)
        assert arm["success"]["value"] == pytest.approx(each[..., 10].mean(), rel=1e-5)
        assert arm["length"]["value"] == pytest.approx((5 / each[..., 10]).mean(), rel=1e-5)
    console = Console(width=120, file=io.StringIO())
    console.print(evaluation.table)
    assert "Stopped after 11 of 40 checkpoints" in console.file.getvalue()  # pyright: ignore


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--goals=0"], "--goals is 0, expected a number at least 1"),
        (["--distance=0"], "--distance is 0, expected a number at least 1"),
        (["--weight=nan"], "--weight is nan, expected a number above 0"),
        (["--goals=37"], "37 goals were asked for, but only 36 states"),
        (["--distance=11"], "but only 0 states have a start 11 moves away"),
        (["--goal=3"], "--goal"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_bad_input_is_one_line_and_exit_code_2(untrained_run: Path, flags, message, capsys):
    assert goals(str(untrained_run), *flags) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1


def test_other_runs_are_refused(tmp_path, capsys, monkeypatch):
    assert goals(str(tmp_path)) == 2
    assert "is not a run directory" in capsys.readouterr().err
    assert goals() == 2
    assert "expected the directory of a run of train.allo" in capsys.readouterr().err
    one = replace(Training(), agent=replace(PRESETS["paper"].config.agent, num_features=1))  # pyright: ignore
    for program, config, message in [
        (
            snake.PROGRAM,
            snake.PRESETS["ppo"].config,
            "is a run of snake; expected one of train.allo",
        ),
        (allo.PROGRAM, one, "has learned 1 feature; expected at least 2"),
    ]:
        run = Run(tmp_path, program, config, 0, [])
        monkeypatch.setattr(saved_runs, "load", lambda directory, run=run: run)
        assert goals(str(tmp_path)) == 2
        complaint = capsys.readouterr().err
        assert message in complaint
        assert complaint.count("\n") == 1


def test_a_maze_of_too_many_states_is_refused(untrained_run, capsys, monkeypatch):
    monkeypatch.setattr(training, "MOST_STATES", 10)
    assert goals(str(untrained_run)) == 2
    assert "expected at most 10, as the distances between all pairs" in capsys.readouterr().err


def test_the_distance_that_is_asked_for_suits_the_maze():
    config = Config("run")
    corridor = np.abs(np.subtract.outer(np.arange(30), np.arange(30))) * 1.0
    assert plan(config, corridor).min_distance == 8
    assert plan(config, corridor).evaluate_every == 150
    assert plan(config, corridor[:8, :8]).min_distance == 3
    apart = np.where(np.eye(2, dtype=bool), 0.0, np.inf)
    assert plan(config, apart).min_distance == 1
    assert plan(replace(config, distance=20), corridor).min_distance == 20


def test_eigenvalues_of_one_step_are_found_again():
    """λ = 1 - E[μ^k], the expectation written out."""
    steps, discount = 7, 0.8
    mu = np.array([1.0, 0.999, 0.9, 0.37, 0.0])
    mean = np.zeros_like(mu)
    for n in range(1, steps + 1):
        total = sum(discount ** (k - 1) for k in range(1, n + 1))
        for k in range(1, n + 1):
            mean += discount ** (k - 1) / total * mu**k / steps
    eigenvalues = goal_features.one_step_eigenvalues(1 - mean, discount, steps)
    np.testing.assert_allclose(eigenvalues, 1 - mu, rtol=1e-4, atol=1e-9)
    outside = goal_features.one_step_eigenvalues(np.array([-0.1, 1.5]), discount, steps)
    np.testing.assert_array_equal(outside, [0.0, 1.0])


def test_quotients_are_those_of_the_double_sum():
    rng = np.random.default_rng(0)
    features, law = rng.normal(size=(4, 3)), rng.dirichlet(np.ones(16)).reshape(4, 4)
    features[:, 2] = 0.0
    top, bottom = np.zeros(3), np.zeros(3)
    for s, t in np.ndindex(4, 4):
        top += law[s, t] * (features[s] - features[t]) ** 2 / 2
        bottom += law[s, t] * features[s] ** 2
    quotients = goal_features.rayleigh_quotients(features, law)
    np.testing.assert_allclose(quotients[:2], top[:2] / bottom[:2], rtol=1e-9)
    assert quotients[2] == 0.0


@pytest.mark.slow
def test_learners_take_the_training_seeds_in_turn():
    """On a path the commute-time distance is √ of the moves; a collapsed seed knows none."""
    env = Grid(parse("....."), "index")
    place = np.arange(5) + 0.5
    waves = np.cos(np.pi * np.outer(place, np.arange(5)) / 5)  # of a walk on a path
    waves /= np.sqrt(np.mean(waves**2, axis=0))
    values = (1 - np.cos(np.pi * np.arange(5) / 5)) / 2
    exact = Representation(jnp.asarray(waves, jnp.float32), jnp.asarray(values, jnp.float32))
    collapsed = exact._replace(features=jnp.ones((5, 5)))
    distances = tasks.goal_distances(env.default_params)
    np.testing.assert_array_equal(distances, np.abs(np.subtract.outer(np.arange(5), np.arange(5))))
    guidance = goal_features.make_guidance(
        env.default_params, [exact, collapsed], np.array([0, 3]), distances, 3
    )
    moves = np.array([[0, 1, 2, 3, 4], [3, 2, 1, 0, 1]])
    farthest = moves.max(axis=1, keepdims=True)
    learned = guidance.potentials["learned"]
    assert learned.shape == (2, 3, 5)
    for learner in (0, 2):
        np.testing.assert_allclose(learned[:, learner], -np.sqrt(moves / farthest), atol=1e-4)
        np.testing.assert_allclose(guidance.potentials["true"][:, learner], -moves / farthest)
    assert np.all(learned[:, 1] == 0)
    assert np.all(guidance.potentials[""] == 0)
    assert guidance.options.policy.shape == (3, 8, 5)
    assert np.all(guidance.options.terminates[1])
    np.testing.assert_array_equal(guidance.options.policy[0], guidance.options.policy[2])
    assert not np.all(guidance.options.terminates[0])


def test_what_cannot_arrive_counts_as_farthest():
    times = jnp.array([0.0, 2.0, 4.0, 90.0])  # the last is in another part
    reaches = jnp.array([True, True, True, False])
    distance = goal_features.within_reach(times, reaches)
    np.testing.assert_array_equal(distance, [0, 2, 4, 4])
    np.testing.assert_array_equal(goal_features.within_reach(times, times < 99), times)
    nearness = goal_features.true_nearness(np.array([[0.0, 1, 2, np.inf], [np.inf] * 3 + [0.0]]))
    np.testing.assert_array_equal(nearness, [[0, -0.5, -1, -1], [-1, -1, -1, 0]])


def test_intervals_know_that_goals_and_learners_are_shared():
    """The mean of their sum varies by the variance of each, divided by its number."""
    rng = np.random.default_rng(1)
    goal, learner = rng.normal(size=40), 3 * rng.normal(size=60)
    estimate = scores.interval(goal[:, None] + learner[None, :], scores.mean)
    assert estimate["value"] == pytest.approx(goal.mean() + learner.mean())
    width = 2 * 1.96 * np.sqrt(goal.var() / 40 + learner.var() / 60)
    assert estimate["high"] - estimate["low"] == pytest.approx(width, rel=0.15)
    never = np.array([[3.0, 1.0], [np.inf, np.inf]])
    assert scores.interval(never, scores.median) == {
        "value": 3.0,
        "low": 1.0,
        "high": np.inf,
    }


def test_a_title_says_which_of_several_seeds_is_shown():
    assert scores.seed_label([3]) == ""
    assert scores.seed_label([3, 4]) == "; seed 3, the first of 2"


def test_the_table_says_never_and_at_most():
    steps = [10, 20]
    write = lambda value: scores.interval_text(
        {"value": value, "low": 10.0, "high": np.inf}, "{:,.0f}", steps
    )
    assert write(20.0) == "20\n≤ 10 to > 20"
    assert write(np.inf) == "> 20\n≤ 10 to > 20"
    assert scores.interval_text(dict.fromkeys(("value", "low", "high"), 1.0), "{:.3f}") == "1.000"


@pytest.mark.slow
def test_one_goal_one_learner_and_one_checkpoint_are_drawn(tmp_path):
    one = tasks.progress(np.zeros((1, 1, 1)), np.ones((1, 1, 1)), tasks.Config(evaluate_every=5))
    arms = scores.summaries(ARMS, [one] * len(NAMES))
    assert arms["none"]["first"] == {"value": np.inf, "low": np.inf, "high": np.inf}
    content = {"maze": "$m", "goals": [0], "learners": 1, "distance": 1, "level": 0.9}
    content["seeds"] = [{"seed": 3, "arms": arms}]
    scores.draw(content, tmp_path / "goals.png")
    with Image.open(tmp_path / "goals.png") as picture:
        assert picture.width > 500


@pytest.mark.slow
def test_the_report_shows_a_walk_of_every_arm(finished_run: Path):
    run = saved_runs.load(finished_run)
    walks = scene.show(run, EpisodeSelection(7, jax.random.key(0), 60))
    assert walks is not None
    assert [x.title.split(":")[0] for x in walks.episodes] == [*NAMES, NAMES[0]]
    starts = {int(episode.frames["position"][0]) for episode in walks.episodes[:6]}
    assert len(starts) == 1, "all arms begin in the same state"
    for episode in walks.episodes:
        walk, goal = episode.frames["position"], episode.constants["goal"]
        assert ("did not arrive" in episode.title) == (walk[-1] != goal)
        cells = walks.constants["cells"][walk]
        assert (np.abs(np.diff(cells, axis=0)).sum(1) <= 1).all(), "one cell at a time"
        q: Any = episode.bars["Q"]
        chosen = np.take_along_axis(q.values[:-1], q.chosen[:-1, None], axis=1)[:, 0]
        np.testing.assert_array_equal(chosen, q.values[:-1].max(1))
        np.testing.assert_allclose(
            episode.lines["value"][:-1], episode.constants["value"][walk[:-1]]
        )
    assert scene.show(run._replace(state=None), EpisodeSelection(1, jax.random.key(0), 60)) is None


@pytest.mark.slow
def test_weights_of_a_sweep_are_traced(untrained_run):
    """A sweep makes the training of a member whose numbers are known only when it runs."""
    config = Config(learned=str(untrained_run), goals=1, learners=1, steps=40)
    key = jax.random.key(0)
    begin = lambda weight: make_goals(replace(config, weight=weight)).init(key)
    traced, plain = jax.eval_shape(begin, 0.1), jax.eval_shape(lambda: begin(0.1))
    chex.assert_trees_all_equal_shapes_and_dtypes(traced, plain)
