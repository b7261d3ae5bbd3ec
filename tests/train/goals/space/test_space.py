"""Goals and options in open space: rewards against a slow walk, potentials, a small run."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.checker import env_checker
from envs.grid import layouts
from envs.grid.space import continuous
from envs.grid.space.guided import GuidedWalk
from jaxrl.loop import LoopMetrics
from jaxrl.numerics.trees import take
from tests.train.snake.snake_runs import make_run
from train.allo import program as allo
from train.goals.__main__ import with_run_named
from train.goals.config import seed_of_tasks
from train.goals.program import PROGRAM
from train.goals.space import space_pictures, tasks_of_run
from train.goals.space.space_config import ARMS, SpaceConfig
from train.goals.space.space_tasks import Task, Tasks, limits_of_parts
from train.goals.space.space_training import heights_of, make_training, measures_of
from train.host.command_line import command
from train.host.compilation.compiled import Report
from train.host.files.rows import agent_means

float32 = lambda x: jnp.asarray(x, jnp.float32)
LAYOUT = layouts.parse("..#.\n.#..\n....")
SMALL = (
    "continuous --env.maze=GridRoomSmall-1 --env.transitions=2000 --network.hidden 16 "
    "--agent.num-features=4 --agent.spare-features=2 --env.truth-cells=4 --run.total-steps=50"
)


def goals(*arguments: str) -> int:
    """Runs `python -m train.goals` with these arguments and returns its exit code."""
    return command.main(PROGRAM, with_run_named(list(arguments), PROGRAM.presets))


@pytest.fixture(scope="module")
def untrained_run(tmp_path_factory) -> Path:
    """A run with features of chance."""
    rng = np.random.default_rng(0)

    def with_chance(agent):
        draw = lambda x: jnp.asarray(rng.normal(size=x.shape), jnp.float32)
        params = jax.tree.map(draw, agent.learner.params)
        return agent._replace(learner=agent.learner._replace(params=params))

    directory = tmp_path_factory.mktemp("space") / "written"
    return make_run(directory, SMALL, with_chance, allo.PROGRAM)


def make_params(env: GuidedWalk, **numbers):
    rng = np.random.default_rng(0)
    potential = rng.normal(size=(env.height * env.parts, env.width * env.parts))
    return dataclasses.replace(
        env.default_params, potential=jnp.asarray(potential, jnp.float32), **numbers
    )


@pytest.mark.slow
def test_the_environment_keeps_the_contract():
    env_checker(GuidedWalk(LAYOUT, 0.7, 4))


@pytest.mark.slow
def test_rewards_are_those_of_a_slow_walk():
    env = GuidedWalk(LAYOUT, 0.7, 4)
    goal = np.array([2.5, 2.5])
    numbers = {"radius": 0.6, "weight": 3.0, "shaping_discount": 0.9}
    params = make_params(env, goal=jnp.asarray(goal, jnp.float32), **numbers)
    keys, step_keys = jax.random.split(jax.random.key(0), (2, 400))
    _, state = jax.jit(jax.vmap(env.reset, in_axes=(0, None)))(keys, params)
    action = jax.random.uniform(jax.random.key(1), (400, 2), minval=-1.0)
    step = jax.jit(jax.vmap(env.step_env, in_axes=(0, 0, 0, None)))
    _, after, reward, terminated, info = step(step_keys, state, action, params)
    potential = np.asarray(params.potential)
    top, arrivals = potential.max(), 0
    for n in range(400):
        before, now = np.asarray(state.position[n]), np.asarray(after.position[n])
        phi, phi_next = (potential[tuple((x * 4).astype(int))] for x in (before, now))
        arrived = np.linalg.norm(now - goal) <= 0.6  # no wall is so near to the goal
        arrivals += arrived
        expected = arrived + 3.0 * (0.9 * (0 if arrived else phi_next) - phi)
        assert reward[n] == pytest.approx(expected, abs=1e-4)
        assert bool(terminated[n]) == arrived
        assert info["outcome"]["climbed"][n] == pytest.approx(phi_next - phi, abs=1e-4)
        assert info["outcome"]["way"][n] == pytest.approx(top - phi, abs=1e-4)
    assert 5 < arrivals < 200


def test_a_goal_behind_a_wall_is_not_reached():
    env = GuidedWalk(LAYOUT, 0.5, 4)
    params = make_params(env, goal=jnp.array([0.9, 1.9]), radius=0.5)  # beside a corner of walls
    _, state = env.reset(jax.random.key(0), params)
    for place, expected in (([1.1, 2.1], False), ([0.7, 1.6], True), ([0.5, 1.0], False)):
        state = state.replace(position=jnp.array(place))
        *_, arrived, _ = env.transition(jax.random.key(1), state, jnp.zeros(2), params)
        assert bool(arrived) == expected, place


def test_tasks_keep_within_the_parts_of_a_space():
    """Two rooms of 3 and 2 tiles that no walk connects, four fine cells in each tile."""
    layout = layouts.parse("...#..", allow_disconnected=True)
    problem: Any = SimpleNamespace(
        layout=continuous.fine_layout(layout, 2), chain=continuous.fine_chain(layout, 0.5, 2)
    )
    height = np.linspace(0.0, 1.0, problem.layout.num_states)
    room = problem.layout.cells[:, 1] >= 6
    tasks = [Task(height, int(np.argmax(room)), "none", ""), Task(-height, -1, "", "")]
    limits = limits_of_parts(problem, layout, tasks)
    assert limits["num_starts"].tolist() == [2, 5]
    assert limits["cells"][0, :2].tolist() == [[0, 4], [0, 5]]
    highest = np.asarray(limits["highest"])[1][tuple(problem.layout.cells.T)]
    tops = [(-height[room == part]).max() for part in (False, True)]
    np.testing.assert_allclose(highest, np.where(room, tops[1], tops[0]), rtol=1e-6)
    env = GuidedWalk(layout, 0.5, 2)
    params = make_params(env, **take(limits, 0))
    keys = jax.random.split(jax.random.key(0), 20)
    start = jax.vmap(env.start, in_axes=(0, None))(keys, params)
    assert (start.position[:, 1] >= 4).all()
    flat = dataclasses.replace(params, potential=params.highest)
    state = env.start(jax.random.key(0), flat)
    *_, info = env.transition(jax.random.key(1), state, jnp.zeros(2), flat)
    assert info["outcome"]["way"] == 0
    whole = layouts.parse("......")
    problem.layout = continuous.fine_layout(whole, 2)
    problem.chain = continuous.fine_chain(whole, 0.5, 2)
    assert limits_of_parts(problem, whole, tasks) == {}


def test_potentials_fall_away_from_goals_and_options_go_both_ways(untrained_run):
    config = SpaceConfig(learned=str(untrained_run), goals=2, options=2)
    tasks = tasks_of_run.make_tasks(config)
    assert [task.arm for task in tasks.tasks] == [*ARMS, *ARMS, "", "", "", ""]
    count = tasks.problem.layout.num_states
    for task in tasks.tasks[:8]:
        assert task.potential.shape == (count,)
        assert task.potential[task.goal] == pytest.approx(task.potential.max())
        if task.arm != "none":
            assert task.potential.min() == pytest.approx(-1)
    up, down = tasks.tasks[8:10]
    np.testing.assert_array_equal(up.potential, -down.potential)
    assert np.ptp(up.potential) == pytest.approx(1)
    fewest = next(task for task in tasks.tasks if task.arm == "fewest moves")
    cells = tasks.problem.layout.cells
    apart = np.abs(cells - cells[fewest.goal]).max(axis=1)  # moves are of at most 2 fine cells
    moves = -(-apart // 2)
    np.testing.assert_allclose(fewest.potential, -moves / moves.max(), atol=1e-6)
    weights = np.asarray(tasks.params.weight)
    np.testing.assert_array_equal(weights, [0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1])
    radius = np.asarray(tasks.params.radius)
    assert (radius[:8] > 0).all()
    assert (radius[8:] < 0).all()
    # the potential that the environment looks up is that of the cell
    row, col = tasks.problem.layout.cells[7]
    np.testing.assert_allclose(
        np.asarray(tasks.params.potential)[:, row, col],
        [task.potential[7] for task in tasks.tasks],
        atol=1e-6,
    )
    lowest = np.asarray(tasks.params.potential).min(axis=(1, 2))  # walls are no lower
    np.testing.assert_allclose(lowest, [task.potential.min() for task in tasks.tasks], atol=1e-6)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["space"], "expected the directory of a run of train.allo"),
        (["space", "--goals=0", "--options=0"], "there are no goals and no options"),
        (["--options=4"], "has learned 4 features, the constant one included: ask for at most 3"),
    ],
)
def test_what_does_not_fit_is_refused(flags, message, untrained_run, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = [] if "expected the" in message else [str(untrained_run)]
    preset = [x for x in flags if not x.startswith("-")]
    arguments = [*preset, *run, *[x for x in flags if x.startswith("-")]]
    assert goals(*arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.strip().count("\n") == 0


def test_a_run_in_space_names_its_preset(untrained_run):
    run = str(untrained_run)
    presets = PROGRAM.presets
    assert with_run_named([run, "--goals=2"], presets) == ["space", "--learned", run, "--goals=2"]
    assert with_run_named(["goals", run], presets) == ["goals", "--learned", run]
    assert with_run_named(["nowhere"], presets) == ["--learned", "nowhere"]
    assert with_run_named(["--goals=2"], presets) == ["--goals=2"]
    for flags in (["--goals=2"], ["--goals", "2"]):  # a run may stand behind them
        assert with_run_named([*flags, run], presets) == ["space", "--learned", run, *flags]
        after = [*flags, "--options=1"]
        assert with_run_named([*flags, run, after[-1]], presets)[2:] == [run, *after]
    assert with_run_named(["--resume", run], presets) == ["--resume", run]


@pytest.mark.slow
def test_learners_climb_a_slope_and_reach_goals(untrained_run, tmp_path):
    """Straight lines and fewest moves are good guides in an open room, whatever was learned."""
    run = tmp_path / "run"
    flags = "--goals=1 --options=1 --run.total-steps=15360 --run.chunk-steps=5120"
    assert goals(str(untrained_run), *flags.split(), f"--run.directory={run}") == 0
    content = json.loads((run / "eval.json").read_text())
    row = content["seeds"][0]
    assert content["score"] == "success"
    assert set(row["goals"]) == set(ARMS)
    assert row["goals"]["fewest moves"]["success"]["mean"] > 0.8
    assert row["goals"]["straight line"]["success"]["mean"] > 0.8
    assert list(row["options"]) == ["2, up", "2, down"]
    for name in ("goals", "options", "arrived", "learning_curve"):
        assert (run / f"{name}.png").is_file()


def test_a_row_has_shares_of_the_episodes_of_its_chunk():
    """Sums over three updates of two goals and two options, then the mean over goals.

    In the first update only what arrives early has ended, and in the second one nothing. Of the
    four episodes of an option one begins near the top and ends far below it.
    """
    arms, nowhere = ("none", "learned distance"), np.zeros(0)
    kinds = [(0, arms[0]), (0, arms[1]), (1, arms[0]), (1, arms[1]), (-1, ""), (-1, "")]
    tasks: Any = SimpleNamespace(arms=arms, tasks=[Task(nowhere, *kind, "") for kind in kinds])
    episodes = np.array([[2, 1, 0, 3, 1, 0], [0] * 6, [8, 9, 0, 5, 3, 0]])
    arrived = np.array([[2, 1, 0, 3, 0, 0], [0] * 6, [1, 2, 0, 1, 0, 0]])
    climbed = np.array([[0, 0, 0, 0, -0.4, 0], [0] * 6, [0, 0, 0, 0, 1.8, 0]])
    way = np.array([[0, 0, 0, 0, 0.01, 0], [0] * 6, [0, 0, 0, 0, 1.99, 0]])

    def report_of(ended, *sums) -> Report:
        arrived, climbed, way = map(float32, sums)
        finished = {"arrived": arrived, "climbed": climbed, "way": way}
        metrics = LoopMetrics(jnp.asarray(ended), finished, {})
        return Report(LoopMetrics(jnp.int32(0), {}, measures_of(tasks, metrics)), jnp.array(True))

    updates = [report_of(*rows) for rows in zip(episodes, arrived, climbed, way, strict=True)]
    report = jax.tree.map(lambda *x: np.stack(x)[:, None], *updates)
    row = agent_means(report, 0)
    assert row["arrived"] == pytest.approx([3 / 10, (3 / 10 + 4 / 8) / 2])  # the first of one goal
    assert row["success"] == pytest.approx(0.4)
    assert row["climbed"] == [pytest.approx(0.7), None]
    assert row["height"] == pytest.approx(0.7)


@pytest.mark.slow
def test_paths_begin_in_the_same_places_in_all_tasks(untrained_run):
    config = SpaceConfig(learned=str(untrained_run), goals=1, options=0, hidden=(8,))
    tasks = tasks_of_run.make_tasks(config)
    training = make_training(config)
    state = jax.jit(training.init)(jax.random.key(0))
    walk = lambda tasks: space_pictures.walk(config, tasks, state.agent, jax.random.key(1))
    paths = walk(with_goal(tasks, np.zeros(2), -1.0))  # which nobody reaches
    assert paths.shape == (len(ARMS), space_pictures.PATHS, 101, 2)
    assert np.isfinite(paths).all()
    np.testing.assert_array_equal(
        paths[:, :, 0], np.broadcast_to(paths[:1, :, 0], paths[:, :, 0].shape)
    )
    # A goal on the way of one of them: its path ends there, and not a step before.
    goal = paths[0, 0, 30]
    shorter = walk(with_goal(tasks, goal, 1e-3))
    is_there = np.linalg.norm(paths[0] - goal, axis=-1) <= 1e-3
    is_there[:, 0] = False  # an episode ends by a move
    end = int(np.argmax(is_there[0]))
    np.testing.assert_allclose(shorter[0, 0, : end + 1], paths[0, 0, : end + 1], atol=1e-5)
    over = np.any(np.isnan(shorter), axis=-1)
    assert (over[..., 1:] >= over[..., :-1]).all()
    assert over[0, 0].sum() == 100 - end


def test_heights_are_of_all_episodes_together():
    """One that begins near the top does not outweigh the others; of a flat potential it is 0."""
    climbed, way = np.array([[[-0.3], [0.9]], [[0], [0]]]), np.array([[[0.01], [0.99]], [[0], [0]]])
    np.testing.assert_allclose(heights_of(climbed, way), [0.6, 0])


def test_arms_without_a_finished_episode_have_no_curve(tmp_path):
    """One chunk of two seeds, in which no episode of the first arm has ended; then none of any."""
    row = {"steps": 1024, "finished": {}}
    for arrived in ([None, 0.5], [None, None]):
        rows = [row | {"seed": seed, "agent": {"arrived": arrived}} for seed in (0, 1)]
        space_pictures.draw_arrivals(rows, ("none", "learned distance"), tmp_path / "arrived.png")
        assert (tmp_path / "arrived.png").stat().st_size > 1_000


def with_goal(tasks: Tasks, goal: np.ndarray, radius: float) -> Tasks:
    """The tasks with one goal for all."""
    count = len(tasks.tasks)
    numbers = {
        "goal": jnp.broadcast_to(jnp.asarray(goal, jnp.float32), (count, 2)),
        "radius": jnp.full(count, radius, jnp.float32),
    }
    return tasks._replace(params=dataclasses.replace(tasks.params, **numbers))


@pytest.mark.slow
def test_more_goals_than_cells_are_refused(untrained_run, capsys):
    assert goals(str(untrained_run), "--goals=577", "--options=1") == 2
    assert "goals is 577, but the space has 576 cells" in capsys.readouterr().err


def test_a_sweep_may_vary_numbers_of_learners(untrained_run):
    """Which are traced then, while tasks are made of the run that was learned from."""

    def params_of(weight, discount):
        agent = dataclasses.replace(SpaceConfig().agent, discount=discount)
        config = SpaceConfig(str(untrained_run), goals=1, options=1, weight=weight, agent=agent)
        return tasks_of_run.make_tasks(config).params

    params = jax.jit(params_of)(0.5, 0.75)
    assert params.weight.tolist() == [0, 0.5, 0.5, 0.5, 1, 1]
    assert params.shaping_discount.tolist() == [0.75, 0.75, 0.75, 0.75, 1, 1]


@pytest.mark.parametrize("preset", PROGRAM.presets)
def test_members_of_a_sweep_have_the_same_goals(preset):
    """Also its best one, as a run of its own that is scored or goes on."""
    default = PROGRAM.presets[preset].config
    of_seed = lambda config, seed: dataclasses.replace(
        config, run=dataclasses.replace(config.run, seed=seed)
    )
    config = PROGRAM.for_sweep(of_seed(default, 5))
    assert seed_of_tasks(of_seed(config, 6)) == 5
    assert seed_of_tasks(of_seed(default, 6)) == 6
    assert PROGRAM.for_sweep(of_seed(config, 6)) == of_seed(config, 6)
