"""Goals and options in an environment of a user's own: what is paid, and a small run."""

import dataclasses
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.spectral.learning import encoder
from tests.train.allo.environment.own_walks import FILE, MODULE
from tests.train.goals.space.test_space import goals
from tests.train.snake.snake_runs import make_run
from train.allo import encoders
from train.allo import program as allo
from train.goals.space import environment_tasks, tasks_of_run
from train.goals.space.space_config import SpaceConfig

SMALL = (
    "environment --env.transitions=2000 --env.walk-steps=100 --network.hidden 16 "
    "--network.frequencies=4 --agent.num-features=4 --agent.spare-features=2 "
    "--run.num-seeds=1 --env.id"
)
LIMIT = 100  # steps of an episode, by the environment's own numbers


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the module of a user's file, which can be imported."""
    directory = tmp_path_factory.mktemp("own")
    (directory / f"{MODULE}.py").write_text(FILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(directory))
        yield directory


def write_run(folder: Path, name: str) -> Path:
    """A run with features of chance that see the numbers of an observation as they are."""
    rng = np.random.default_rng(0)

    def with_chance(agent):
        draw = lambda x: jnp.asarray(rng.normal(size=x.shape), jnp.float32)
        params = jax.tree.map(draw, agent.learner.params)
        params = encoder.with_range(params, jnp.zeros(2), jnp.ones(2))
        return agent._replace(learner=agent.learner._replace(params=params))

    return make_run(folder / name, f"{SMALL} {MODULE}:{name}", with_chance, allo.PROGRAM)


@pytest.fixture(scope="module")
def ring_run(folder) -> Path:
    return write_run(folder, "Steered")


def test_goals_are_different_places():
    """Many observations of few places; those of many places are taken in the order drawn."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(12, size=500)
    goals = environment_tasks.draw_goals(np.eye(12, dtype=np.float32)[numbers], 12, seed=3)
    assert sorted(numbers[goals]) == list(range(12))
    with pytest.raises(ValueError, match="500 observations of walks are 12 different ones"):
        environment_tasks.draw_goals(np.eye(12, dtype=np.float32)[numbers], 13, seed=3)
    goals = environment_tasks.draw_goals(rng.normal(size=(500, 2)), 4, seed=3)
    assert goals == np.random.default_rng(3).permutation(500)[:4].tolist()


@pytest.mark.slow
def test_rewards_are_those_of_the_distances(ring_run):
    """Episodes by chance, with potentials from the encoder as a user has it."""
    tasks = tasks_of_run.make_tasks(SpaceConfig(learned=str(ring_run), goals=1, options=2))
    titles = [f"goal 1, {arm}" for arm in ("none", "straight line", "learned distance")]
    assert [task.title for task in tasks.tasks] == [*titles, "2, up", "2, down", "3, up", "3, down"]
    assert tasks.limit == LIMIT
    chart = encoders.load(ring_run)
    pay = jax.tree.map(np.asarray, tasks.params.pay)
    play = jax.jit(jax.vmap(tasks.env.step, in_axes=(None, 0, None, tasks.axes)))
    start = jax.vmap(tasks.env.reset, in_axes=(None, tasks.axes))
    obs, state = jax.jit(start)(jax.random.key(0), tasks.params)
    arrivals, ends = 0, 0
    began, is_first = np.zeros(len(tasks.tasks)), np.ones(len(tasks.tasks), bool)
    for t in range(150):
        key, action = jax.random.key(t + 1), jnp.int32(1 if t % 7 else 0)
        before = np.asarray(obs)
        obs, state, reward, terminated, truncated, info = play(key, state, action, tasks.params)
        after = np.asarray(info["final_observation"])
        features = [chart.encode(x) for x in (before, after)]
        for k, task in enumerate(tasks.tasks):
            f, f_next = (x[k] for x in features)
            goal = pay.goal.features[k], pay.goal.place[k]
            line = lambda x, place=goal[1]: np.linalg.norm(x - place)
            arrived = task.goal >= 0 and line(after[k]) <= pay.radius[k]
            if task.title == "goal 1, straight line":
                far = 1 / np.sqrt(pay.place_weight[k])
                phi, phi_next = -line(before[k]) / far, -line(after[k]) / far
            elif task.title == "goal 1, learned distance":
                w = pay.feature_weights[k]
                phi, phi_next = (-np.sqrt(np.sum(w * (x - goal[0]) ** 2)) for x in (f, f_next))
            elif task.goal >= 0:
                phi = phi_next = 0.0
            else:
                i, sign = int(task.title[0]) - 1, 1 if "up" in task.title else -1
                span = 1 / np.abs(pay.direction[k, i])
                phi, phi_next = sign * f[i] / span, sign * f_next[i] / span
            if task.goal >= 0:
                end_potential = 0.0 if terminated[k] else phi_next
                expected = arrived + 0.97 * end_potential - phi
            else:
                expected = phi_next - phi
            assert reward[k] == pytest.approx(expected, abs=1e-3)
            began[k] = phi if is_first[k] else began[k]
            assert info["outcome"]["climbed"][k] == pytest.approx(phi_next - began[k], abs=1e-3)
            assert info["outcome"]["way"][k] == 1
            assert bool(info["outcome"]["arrived"][k]) == arrived
            assert not arrived or terminated[k]
            arrivals, ends = arrivals + arrived, ends + bool(terminated[k] & ~arrived)
        is_first = np.asarray(terminated | truncated)
    assert arrivals > 5
    assert ends > 5  # the environment's own, which are no arrivals


@pytest.mark.slow
def test_learners_reach_goals_on_a_ring(ring_run, tmp_path):
    """The straight line is a good guide on a ring, whatever was learned."""
    run = tmp_path / "run"
    flags = "--goals=1 --options=1 --run.total-steps=15360 --run.chunk-steps=5120"
    assert goals(str(ring_run), *flags.split(), f"--run.directory={run}") == 0
    content = json.loads((run / "eval.json").read_text())
    row = content["seeds"][0]
    assert content["maze"] == f"{MODULE}:Steered"
    assert list(row["goals"]) == ["none", "straight line", "learned distance"]
    assert row["goals"]["straight line"]["success"]["mean"] > 0.8
    assert list(row["options"]) == ["2, up", "2, down"]
    for name in ("arrived", "learning_curve"):
        assert (run / f"{name}.png").is_file()


@pytest.mark.slow
def test_actions_without_a_learner_are_refused_in_one_line(folder, capsys):
    run = write_run(folder, "Pairs")
    assert goals(str(run), "--options=1") == 2
    error = capsys.readouterr().err
    assert "takes actions of a Box; expected Discrete, or a Box of floats" in error
    assert error.strip().count("\n") == 0


@pytest.mark.slow
def test_a_sweep_may_vary_numbers_of_learners(ring_run):
    """Which are traced then, while tasks are made of the run that was learned from."""

    def pay_of(weight, discount):
        agent = dataclasses.replace(SpaceConfig().agent, discount=discount)
        config = SpaceConfig(str(ring_run), goals=1, options=1, weight=weight, agent=agent)
        return tasks_of_run.make_tasks(config).params.pay

    pay = jax.jit(pay_of)(0.5, 0.75)
    assert pay.weight.tolist() == [0, 0.5, 0.5, 1, 1]
    assert pay.discount.tolist() == [0.75, 0.75, 0.75, 1, 1]
