"""Walks other than the uniform one: policies, wind of each walk, random doors, open space."""

import dataclasses
from collections import deque
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.grid import layouts, mazes, tables, windy
from envs.grid.layouts import Layout
from jaxrl.spectral import laplacian
from jaxrl.spectral.learning import allo_walks
from train.allo.config import Config, learning_config
from train.allo.problem import make_problem as problem_of
from train.allo.program import PROGRAM, make_training
from train.allo.recorded import policies, winds
from train.allo.training import make_problem
from train.host.command_line import command
from train.host.training import Training

LAYOUT = layouts.parse("..#.\n.#..\n....")
allo_command = partial(command.main, PROGRAM)


def parse_config(flags: str) -> Config:
    return command.parse(PROGRAM, flags.split())[0]


def start_training(flags: str) -> tuple[Config, Training, Any]:
    """A training and its first state, in which the walks are recorded."""
    config = parse_config(flags)
    training = make_training(config)
    return config, training, jax.jit(training.init)(jax.random.key(0))


def train_and_measure(flags: str, updates: int) -> tuple[Config, float, dict]:
    """The similarity that training ends with, and what was measured last."""
    config, training, state = start_training(flags)
    update = jax.jit(training.update)
    for _ in range(updates):
        state, metrics = update(state)
    return config, float(metrics.agent["similarity"]), {"state": state, **metrics.agent}


# Policies.


def moves_to(goal, layout: Layout = LAYOUT) -> np.ndarray:
    """Least moves from each cell to the goal, by plain breadth-first search."""
    away, waiting = {goal: 0}, deque([goal])
    while waiting:
        row, col = waiting.popleft()
        for cell in ((row - 1, col), (row, col + 1), (row + 1, col), (row, col - 1)):
            inside = 0 <= cell[0] < layout.height and 0 <= cell[1] < layout.width
            if inside and layout.free[cell] and cell not in away:
                away[cell] = away[(row, col)] + 1
                waiting.append(cell)
    return np.array([away[tuple(cell)] for cell in layout.cells.tolist()])


def test_the_greedy_policy_walks_to_its_goal():
    policy = policies.table("greedy", 0.2, "0,0", LAYOUT)
    assert policy is not None
    away = moves_to((0, 0))
    successor = tables.dynamics(LAYOUT).successor[:, :, 0]
    for state, row in enumerate(policy):
        reached = away[successor[state]]
        best = reached == reached.min()
        np.testing.assert_allclose(row, 0.05 + 0.8 * best / best.sum())
    assert policies.goal_cell(layouts.parse("G.."), "") == (0, 0)
    assert policies.goal_cell(LAYOUT, "") == (2, 3)


@pytest.mark.parametrize("wind", [0.01, -0.01])
def test_a_greedy_policy_does_not_wait_for_gusts(wind: float):
    """In hardly any wind it takes as long as without: one move of a hundred goes astray."""
    flags = f"--env.wind={wind} --env.policy=greedy --env.epsilon=0 --env.goal=1,1"
    problem = make_problem(parse_config(flags))
    others = np.arange(problem.layout.num_states) != problem.layout.index[1, 1]
    chain = problem.chain.toarray()[np.ix_(others, others)]
    steps = np.linalg.solve(np.eye(len(chain)) - chain, np.ones(len(chain)))
    np.testing.assert_allclose(steps, moves_to((1, 1), problem.layout)[others], rtol=0.05)


def test_a_greedy_policy_goes_around_doors_that_hardly_open():
    """Through one that opens in one of a hundred tries only where there is no shorter way."""
    means = []
    for back in (0.0, 0.01, 0.9):
        flags = f"--env.doors=10 --env.door-back={back} --env.policy=greedy --env.epsilon=0"
        problem = make_problem(parse_config(flags))
        chain = problem.chain.toarray()[:-1, :-1]  # its goal is the last cell
        means.append(np.linalg.solve(np.eye(len(chain)) - chain, np.ones(len(chain))).mean())
    assert means[2] < means[1] <= means[0] + 1e-6, "a way back is never worse than none"


def test_policies_of_numbers_and_of_a_file(tmp_path):
    assert policies.table("uniform", 0.5, "", LAYOUT) is None
    policy = policies.table("0.5,0.25,0.25,0", 0.5, "", LAYOUT)
    assert policy is not None
    np.testing.assert_allclose(policy, np.tile([0.5, 0.25, 0.25, 0], (10, 1)))
    random_policy = np.random.default_rng(0).dirichlet(np.ones(4), 10)
    np.save(tmp_path / "policy.npy", random_policy)
    file_policy = policies.table(str(tmp_path / "policy.npy"), 0.5, "", LAYOUT)
    assert file_policy is not None
    np.testing.assert_allclose(file_policy, random_policy)
    walk = jax.jit(jax.vmap(policies.walker(random_policy), in_axes=(None, 0)))
    action, ratio = walk(jnp.asarray(3), jax.random.split(jax.random.key(0), 20_000))
    share = np.bincount(action, minlength=4) / 20_000
    np.testing.assert_allclose(share, random_policy[3], atol=0.02)
    np.testing.assert_allclose(ratio, np.log(0.25) - np.log(random_policy[3])[action], rtol=1e-4)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--env.policy=1,2,3", "env.policy is '1,2,3'; expected uniform, exploring, greedy, four"),
        ("--env.policy=0.5,0.5,0.5,0.2", "which sums to 1.7; expected probabilities that sum to 1"),
        ("--env.policy=0,0,0,0", "which sums to 0; expected probabilities"),
        ("--env.policy=1,inf,0,0", "which sums to inf; expected probabilities"),
        ("--env.policy=1,-1,1,1", "expected uniform, exploring, greedy, four"),
        ("--env.policy=north", "env.policy is 'north'; expected uniform"),
        ("--env.policy=none.npy", "there is no file none.npy; expected uniform"),
        ("--env.policy=small.npy", "small.npy has shape (2, 4); expected (13, 4)"),
        ("--env.policy=wrong.npy", "row 1 of wrong.npy is no distribution"),
        ("--env.policy=greedy --env.goal=0,0", "--env.goal is '0,0'; expected ROW,COL of a free"),
        ("--env.goal=4,1", "--env.goal has no effect, as it needs env.policy greedy"),
        ("--agent.importance", "--agent.importance needs an --env.policy other than uniform"),
        (
            "--agent.importance --env.policy=0.5,0.25,0.25,0",
            "but action 3 has probability 0 in state 0: give it some",
        ),
        (
            "--env.policy=exploring --env.doors=2 --env.maze=GridRoom-4",
            "choose a maze without doors, portals and --env.wind",
        ),
        ("--env.policy=exploring --env.wind=0.1", "--env.policy exploring visits all states alike"),
        ("sampled --env.policy=exploring", "exploring needs --agent.expectation exact, without"),
        ("--env.policy=exploring --agent.importance", "exploring needs --agent.expectation exact"),
        (
            "--env.policy=exploring --agent.estimate=pairs",
            "--agent.estimate has no effect, as env.policy exploring sets it to actions",
        ),
        (
            "--agent.importance --agent.estimate=actions --env.policy=0.2,0.2,0.2,0.4",
            "estimate chain",
        ),
        ("directed --agent.estimate=actions --env.wind=0.1", "needs --agent.estimate chain"),
        ("--env.wind=0.6 --env.wind-spread=0.5", "expected winds between -1 and 1"),
        ("--env.maze=corridors-600 --env.wind-spread=0.5", "600 states; expected at most 500"),
        ("--env.doors=1", "has room for 0 random doors that leave a way back; expected 1"),
        ("--env.door-back=0.5", "--env.door-back has no effect, as it needs env.doors"),
        ("--env.maze-seed=1", "--env.maze-seed has no effect, as it needs env.doors or"),
        (
            "sampled --env.step=0.5 --agent.expectation=exact",
            "--env.step above 0 makes states positions",
        ),
        ("continuous --env.wind=0.5", "--env.wind has no effect, as env.step makes the walk"),
        (
            "continuous --network.observation=pixels",
            "network.observation fourier, coordinates or rendered",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(flags, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("small.npy", np.full((2, 4), 0.25))
    np.save("wrong.npy", np.full((13, 4), 0.25) + (np.arange(13) == 1)[:, None])
    maze = "" if "--env.maze=" in flags else "--env.maze=GridMaze-9"
    assert allo_command(arguments=f"{flags} {maze} --run.directory=run".split()) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1


SMALL = (
    "--env.maze=GridMaze-9 --env.transitions=50000 --env.walk-steps=20 --network.hidden 32 32 "
    "--agent.num-features=4 --agent.spare-features=2 --agent.optimizer=adam "
    "--agent.steps-per-update=250"
)
BIASED = "--env.policy=0.4,0.2,0.2,0.2"


def matrices() -> tuple[np.ndarray, np.ndarray]:
    """P of the uniform walk and of the biased one."""
    table = tables.dynamics(mazes.layout_by_name("GridMaze-9"))
    biased = np.tile([0.4, 0.2, 0.2, 0.2], (13, 1))
    return tables.transition_matrix(table), tables.transition_matrix(table, biased)


def test_the_truth_of_a_policy_and_of_importance_weights():
    start = np.full(13, 1 / 13)
    for flags, P in zip((f"{BIASED} --agent.importance", BIASED), matrices(), strict=True):
        config = parse_config(f"{SMALL} {flags}")
        expected = laplacian.eigensystem(laplacian.sampled_pairs(P, start, 20, 0.9))
        np.testing.assert_allclose(
            make_problem(config).truth.values, expected.values[:4], atol=1e-6
        )


biased_walk_flags = pytest.mark.parametrize(
    "flags", ["", "--agent.importance"], ids=["of the behaviour", "of the uniform walk"]
)


@pytest.mark.slow
@biased_walk_flags
def test_a_biased_walk_teaches_its_own_eigenvectors_or_those_of_the_uniform_one(flags):
    assert train_and_measure(f"{SMALL} {BIASED} {flags}", 4)[1] > 0.99


@pytest.mark.slow
@biased_walk_flags
def test_a_biased_walk_has_its_own_law_or_that_of_the_uniform_one(flags):
    config, _, state = start_training(f"{SMALL} {BIASED} {flags}")
    M = np.asarray(allo_walks.pair_law(learning_config(config), state.agent), float)
    uniform, biased = (laplacian.sampled_pairs(P, np.full(13, 1 / 13), 20, 0.9) for P in matrices())
    nearer, farther = (uniform, biased) if flags else (biased, uniform)
    assert np.abs(M - nearer).max() < 0.25 * np.abs(M - farther).max()
    assert allo_walks.visits(learning_config(config), state.agent).sum() == 50_000


@pytest.mark.slow
def test_importance_weights_of_minibatches():
    flags = "--agent.expectation=sampled --agent.schedule=budget --agent.turn-pairs=8192"
    _, similarity, metrics = train_and_measure(f"{SMALL} {BIASED} --agent.importance {flags}", 6)
    assert similarity > 0.97
    assert 0.3 < float(metrics["effective_share"]) < 0.9


# Wind of each walk.


def test_the_law_of_winds_is_the_mean_over_very_many_of_them():
    gusts, start = tables.gusts(LAYOUT), np.full(10, 0.1)
    law = lambda w: laplacian.sampled_pairs(windy.transition_matrix(gusts, w), start, 7, 0.8)
    grid = np.linspace(-0.2, 0.7, 1_801)
    weights = np.ones(1_801)
    weights[[0, -1]] = 0.5  # the trapezoidal rule, whose error is of order 1e-7
    expected = sum(w * law(x) for w, x in zip(weights / weights.sum(), grid, strict=True))
    pair_law = winds.sampled_pairs(gusts, (-0.2, 0.7), 7, 0.8)
    np.testing.assert_allclose(pair_law, expected, atol=1e-6)
    assert pair_law.sum() == pytest.approx(1, abs=1e-12)
    chain = sum(
        w * windy.transition_matrix(gusts, x)
        for w, x in zip(weights / weights.sum(), grid, strict=True)
    )
    markov = laplacian.sampled_pairs(np.asarray(chain), start, 7, 0.8)
    assert np.abs(pair_law - markov).max() > 1e-3  # it is not the law of the mean chain


@pytest.mark.slow
def test_nodes_are_enough_for_long_walks():
    gusts = tables.gusts(LAYOUT)
    first = winds.sampled_pairs(gusts, (-0.9, 0.9), 300, 0.9)
    num_nodes, winds.NODES = winds.NODES, 160
    try:
        np.testing.assert_allclose(
            first, winds.sampled_pairs(gusts, (-0.9, 0.9), 300, 0.9), atol=1e-9
        )
    finally:
        winds.NODES = num_nodes


# A walk that explores.


@pytest.mark.slow
@pytest.mark.parametrize("maze", ["rooms-3x3-size4", "GridMaze-9"])
def test_pairs_of_an_exploring_walk_have_the_law_of_the_uniform_one(maze):
    config, _, state = start_training(
        f"--env.maze={maze} --env.transitions=50000 --env.walk-steps=20 --env.policy=exploring"
    )
    learning = learning_config(config)
    assert learning.estimate == "actions"
    M = np.asarray(allo_walks.pair_law(learning, state.agent), float)
    P = tables.transition_matrix(tables.dynamics(mazes.layout_by_name(maze)))
    expected = laplacian.sampled_pairs(P, np.full(len(P), 1 / len(P)), 20, 0.9)
    # all states are visited alike, and where each move leads is known after one try
    np.testing.assert_allclose(M, expected, rtol=0.05)
    visits = np.asarray(allo_walks.visits(learning, state.agent))
    assert visits.sum() == 50_000
    assert visits.std() < 0.02 * visits.mean()


@pytest.mark.slow
def test_walks_with_a_wind_each_are_learned_from_their_own_pairs():
    assert train_and_measure(f"{SMALL} --env.wind-spread=0.8", 4)[1] > 0.98


@pytest.mark.slow
def test_pairs_of_walks_with_a_wind_each_have_their_own_law():
    config, _, state = start_training(f"{SMALL} --env.wind-spread=0.8")
    assert learning_config(config).estimate == "pairs"
    M = np.asarray(allo_walks.pair_law(learning_config(config), state.agent), float)
    gusts = tables.gusts(mazes.layout_by_name("GridMaze-9"))
    expected = winds.sampled_pairs(gusts, (-0.8, 0.8), 20, 0.9)
    pairs_per_walk = 20  # the pairs of a walk, at worst
    assert np.abs(M - expected).max() < 6 * np.sqrt(expected.max() * pairs_per_walk / 50_000)
    assert allo_walks.visits(learning_config(config), state.agent).sum() == 50_000


# Random doors and openings.


def test_random_doors_and_openings_are_part_of_the_maze():
    flags = "--env.maze=GridRoom-4 --env.openings=3 --env.doors=8 --env.maze-seed=4"
    problem = make_problem(parse_config(f"{flags} --env.transitions=1000"))
    assert (problem.layout.num_states, len(problem.layout.doors), problem.published) == (
        107,
        8,
        None,
    )
    P = tables.transition_matrix(tables.dynamics(problem.layout))
    expected = laplacian.eigensystem(laplacian.sampled_pairs(P, np.full(107, 1 / 107), 50, 0.9))
    np.testing.assert_allclose(problem.truth.values, expected.values[:11], atol=1e-6)


# Open space.


@pytest.mark.slow
def test_the_truth_of_open_space_converges_with_its_cells():
    """Eigenvalues at finer cells approach each other, about as the square of a cell's length."""
    config = parse_config("continuous --env.maze=GridMaze-7 --agent.num-features=5")
    eigenvalues = []
    for parts in (3, 6, 12):
        env = dataclasses.replace(config.env, truth_cells=parts)
        problem = problem_of(env, "coordinates", learning_config(config))
        assert problem.layout.num_states == 11 * parts**2
        assert np.abs(problem.inputs).max() < 1
        eigenvalues.append(np.asarray(problem.truth.values)[1:])
    near, far = np.abs(eigenvalues[1] - eigenvalues[2]), np.abs(eigenvalues[0] - eigenvalues[2])
    assert (near < 0.03 * eigenvalues[2]).all()
    assert (near < 0.3 * far).all()


@pytest.mark.slow
def test_eigenfunctions_of_open_space_are_learned():
    _, similarity, _ = train_and_measure(
        "continuous --env.maze=GridMaze-7 --env.truth-cells=2 --env.transitions=100000 "
        "--network.hidden 64 64 --network.frequencies=6 --agent.num-features=4 "
        "--agent.spare-features=3 --agent.batch-size=512 --agent.turn-pairs=8192 "
        "--run.total-steps=1500",
        30,
    )
    assert similarity > 0.97


# Rendered pictures.


@pytest.mark.slow
def test_eigenvectors_are_learned_from_rendered_pictures():
    _, similarity, _ = train_and_measure(
        f"{SMALL} --network.observation=rendered --agent.optimizer=muon", 3
    )
    assert similarity > 0.97
