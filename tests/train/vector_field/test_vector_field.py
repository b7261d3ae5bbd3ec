"""`python -m train.vector_field` from the outside: a small run, what it leaves, what it refuses."""

import json
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.table import Table

from jaxrl import checkpoint
from jaxrl.dependent_fields import idle_fields
from tests.train.host import crashes
from tests.train.vector_field.presets import EXPERIMENTS
from train.host.command_line import command
from train.host.files.metrics_file import read_metrics
from train.host.files.run_directory import CHECKPOINTS
from train.host.program import Views
from train.host.training import Evaluation
from train.vector_field import factories
from train.vector_field.config import Config, World
from train.vector_field.experiment import held_out, run_record, scores
from train.vector_field.factories import make_env, make_learner, policy
from train.vector_field.presets import PRESETS
from train.vector_field.program import PROGRAM
from train.vector_field.training import make_training, worlds

SMALL = (
    "seen --env.fields limit_cycle --policies random hold5 --bayesian.grid.per-axis=5 "
    "--run.num-seeds=2 --run.total-steps=100 --run.chunk-steps=50 --run.checkpoint-every=1"
)
TIMES = ("seconds", "steps_per_second", "compile_seconds")
field_command = partial(command.main, PROGRAM)


def parse_config(flags: str) -> Config:
    return command.parse(PROGRAM, flags.split())[0]


def without_times(content: dict) -> dict:
    return {name: value for name, value in content.items() if name not in TIMES}


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out, "HELD_OUT_STEPS", 100)
        directory = tmp_path_factory.mktemp("vector_field") / "run"
        assert field_command(arguments=[*SMALL.split(), f"--run.directory={directory}"]) == 0
    return directory


def test_a_run_leaves_a_record_and_a_score(run_directory):
    rows = read_metrics(run_directory)
    assert [(row["seed"], row["steps"]) for row in rows] == [
        (seed, steps) for steps in (50, 100) for seed in (0, 1)
    ]
    content = json.loads((run_directory / "eval.json").read_text())
    assert (content["fields"], content["policies"]) == (["limit_cycle"], ["random", "hold5"])
    for row, last in zip(content["seeds"], rows[-2:], strict=True):
        (of_policies,) = last["agent"]["error"]  # [F, P]
        errors = [row[name]["error"][0] for name in ("random", "hold5")]
        np.testing.assert_allclose(errors, of_policies, rtol=1e-5)
        assert row["field_error"] == pytest.approx(errors[0])
        assert last["agent"]["field_error"] == pytest.approx(errors[0])
        assert np.shape(row["random"]["r2"]) == np.shape(row["random"]["r2_free"]) == (1, 31)
        assert row["random"]["r2"][0][0] == pytest.approx(1)  # the state is seen
    assert rows[0]["agent"]["error"] != rows[1]["agent"]["error"]
    config = parse_config(SMALL)
    steps, values = run_record.error_curves(rows, config)
    assert steps.tolist() == [50, 100]
    assert values.shape == (2, 2, 1, 2)  # seeds, rows, fields, policies
    for row, (seed, time) in zip(rows, [(0, 0), (1, 0), (0, 1), (1, 1)], strict=True):
        np.testing.assert_array_equal(values[seed, time], row["agent"]["error"])


def test_a_run_leaves_pictures_but_no_film(run_directory):
    """Which makes an experiment again, and is left to `train.render`."""
    pictures = {path.name for path in run_directory.iterdir() if path.suffix in (".png", ".gif")}
    assert pictures == {
        *("fields.png", "information.png", "errors.png", "forecasts.png", "channels.png")
    }


@pytest.mark.slow
def test_stopping_and_resuming_changes_nothing(run_directory, tmp_path, monkeypatch):
    """From what a crash after the first of two checkpoints leaves."""
    nothing = {"score": "field_error", "compile_seconds": 0.0, "seconds": 0.0, "seeds": []}
    unscored = Evaluation(nothing, Table())
    monkeypatch.setattr(scores, "evaluate", lambda *_: unscored)
    interrupted = tmp_path / "run"
    assert sorted(checkpoint.steps(run_directory / CHECKPOINTS)) == [1, 2]
    crashes.after_the_first_checkpoint(run_directory, interrupted)
    undrawn = PROGRAM._replace(views=Views(pictures=lambda *_: ()))
    assert command.main(undrawn, ["--resume", str(interrupted)]) == 0
    runs = (run_directory, interrupted)
    chex.assert_trees_all_equal(*(crashes.last_state_leaves(PROGRAM, run) for run in runs))
    rows = [list(map(without_times, read_metrics(run))) for run in runs]
    assert rows[0] == rows[1]


# Configurations.


CHANGES: dict[str, Any] = {
    "fields": ("duffing", "van_der_pol"),
    "observation": "loglinear",
    "noise": "none",
    "channels": 7,
    "encoder": "mlp",
    "num_inputs": 3,
    "authority": 0.5,
    "dt": 0.03,
    "process_noise": 0.2,
    "observation_noise": 0.3,
    "bin_width": 0.7,
}


def test_a_learner_that_keeps_all_samples_has_room_for_those_of_its_last_update(monkeypatch):
    """And for no more, so that a run that is resumed keeps its budget."""
    config = PRESETS["latent"].config
    config = replace(config, run=replace(config.run, total_steps=210))
    assert make_training(config).budget_shapes_learning
    monkeypatch.setattr(factories, "state_space", lambda env, agent, *_: agent)
    assert make_learner(config).capacity == 250  # pyright: ignore[reportAttributeAccessIssue]
    assert not make_training(PRESETS["seen"].config).budget_shapes_learning


def test_every_field_of_a_world_arrives_in_it():
    """Numbers arrive in the parameters of the environment, other fields in the environment."""
    assert {*CHANGES, "dimension"} == {field.name for field in fields(World)}
    five = World(fields=("network",), dimension=5, encoder="linear")
    assert make_env(Config(env=five)).dims == 5
    for name, value in CHANGES.items():
        if not isinstance(value, float):
            base = replace(World(), encoder="linear")
            assert getattr(make_env(Config(env=replace(base, **{name: value}))), name) == value
    world = World(**{**CHANGES, "observation": "linear"})
    params = worlds(Config(env=world), jax.random.key(0))
    for name, value in CHANGES.items():
        if isinstance(value, float) and name != "authority":
            np.testing.assert_allclose(getattr(params, name), [value] * 2)
    np.testing.assert_array_equal(params.field, [0, 1])
    velocity, z = make_env(Config(env=world)).velocity, jnp.array([0.5, -1.0])
    first, second = (jax.tree.map(lambda x, i=i: x[i], params) for i in (0, 1))
    duffing = 0.5 * np.array([-1.0, 0.5 + 0.5 - 0.5 * 0.5**3])
    np.testing.assert_allclose(velocity(z, first), duffing, rtol=1e-5)
    van_der_pol = 0.26 * np.array([-1.0, -0.75 - 0.5])
    np.testing.assert_allclose(velocity(z, second), van_der_pol, rtol=1e-5)
    axis = np.linspace(-2, 2, 40)
    x, y = np.meshgrid(axis, axis)
    speed = 0.26 * np.hypot(y, (1 - x**2) * y - x).mean()
    np.testing.assert_allclose(second.action_bound, 0.5 * speed, rtol=1e-4)


def test_policies_are_what_they_are_called():
    config = Config()
    policy_of = lambda name: policy(config, name)
    hold_settings = [
        (policy_of(n).hold_steps, policy_of(n).at_edge, policy_of(n).kind)
        for n in ("hold20", "bang7")
    ]
    assert hold_settings == [(20, False, "hold"), (7, True, "hold")]
    assert (policy_of("random").hold_steps, policy_of("random").at_edge) == (1, False)
    assert (policy_of("off").strength, policy_of("random").strength) == (0.0, 1.0)
    for name in ("d_optimal", "a_optimal", "disagreement"):
        assert (policy_of(name).kind, policy_of(name).objective) == ("planned", name)
    assert policy_of("myopic").kind == "myopic"
    mixed = policy_of("d_optimal+goal+rnd")
    assert (mixed.kind, mixed.objectives) == ("planned", ("d_optimal", "goal", "rnd"))


@pytest.mark.slow
@pytest.mark.parametrize("preset", EXPERIMENTS)
def test_an_update_of_any_preset_keeps_all_shapes(preset):
    """The policy is the preset's first one, which plans, or one that is traced sooner."""
    config = PRESETS[preset].config
    plans = preset in ("vector_field", "family", "sequence_vae")
    config = replace(config, policies=(config.policies[0] if plans else "myopic",))
    training = make_training(config)
    state = jax.eval_shape(training.init, jax.random.key(0))
    after, metrics = jax.eval_shape(training.update, state)
    chex.assert_trees_all_equal_shapes_and_dtypes(after, state)
    assert metrics.agent[training.score.name].shape == ()
    assert metrics.agent["error"].shape == (len(config.env.fields), 1)


@pytest.mark.fast_cases(8)
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--env.fields roessler", "field 'roessler' is unknown; expected one of limit_cycle, "),
        ("--env.fields duffing duffing", "fields are duffing, duffing; give at least one, each"),
        ("--policies clever", "policy 'clever' is unknown; expected off, random, hold20"),
        ("--policies hold0", "policy 'hold0' is unknown"),
        ("--policies d_optimal+clever", "policy 'd_optimal+clever' is unknown"),
        ("--policies goal+goal", "objective is goal+goal, expected some of d_optimal, a_optimal"),
        ("--policies goal --bayesian.policy.goal 1 2 3", "goal has 3 numbers, expected 2, one for"),
        ("--env.fields lorenz", "dimension is 2, but the field 'lorenz' needs 3"),
        ("lorenz --plane 1 1", "plane is (1, 1), expected two different coordinates from 0 to 2"),
        ("cart_pole --env.observation linear", "a cart_pole has no observation linear with noise"),
        ("cart_pole --env.fields cart_pole lorenz", "cart_pole is no field beside others"),
        ("--stop-gain=-1", "--stop-gain is -1.0, expected a number at least 0"),
        ("sequence_vae --stop-gain=0.1", "--stop-gain is for the learners bayesian and family"),
        ("sequence_vae --model.grid.dims=3", "model.grid.dims is 3, expected 2, as the state has"),
        ("--bayesian.basis=fourier --bayesian.fourier.length=0", "fourier.length is 0.0"),
        ("--policies random random", "policies are random, random; give at least one, each once"),
        ("--bayesian.belief=exact", "bayesian.belief exact needs the state itself"),
        ("--learner=sequence_vae --env.observation=mlp", "choose --env.observation linear or lo"),
        ("--env.dt=0", "--env.dt is 0.0, expected a number above 0.0"),
        ("--env.process-noise=-1", "--env.process-noise is -1.0, expected a number above 0"),
        ("--env.observation-noise=nan", "--env.observation-noise is nan, expected a number"),
        ("spikes --env.bin-width=0", "--env.bin-width is 0.0"),
        ("--env.authority=0", "--env.authority is 0.0"),
        ("--box=0", "--box is 0.0"),
        ("--box=1e30", "--box is 1e+30, expected a number above 0.0 and at most 1000000.0"),
        ("--policies hold3000000000", "--policies is hold3000000000, expected at most 2147483647"),
        ("--env.num-inputs=3", "--env.num-inputs is 3, but the encoder 'identity' takes 2"),
        ("seen --env.channels=3", "channels is 3, but the observation 'identity' has 2"),
        ("--env.noise=poisson", "noise 'poisson' needs rates above 0"),
        (
            "--policies d_optimal --bayesian.policy.planner.elites=99",
            "elites is 99, expected at most candidates",
        ),
        (
            "--policies d_optimal --bayesian.policy.replan-steps=99",
            "is 99, expected at most",
        ),
        ("--bayesian.prior-speed=0", "--bayesian.prior-speed is 0.0, expected a number above"),
        ("sequence_vae --vae.window=3", "window is 3, expected more than elbo.k_steps"),
        (
            "sequence_vae --policies d_optimal --vae.policy.planner.elites=99",
            "elites is 99, expected at most candidates",
        ),
        ("sequence_vae --vae.learning-rate=-1", "--vae.learning-rate is -1.0"),
        ("sequence_vae --model.effect=identity --env.encoder=linear --env.num-inputs=3", "actions"),
    ],
    ids=lambda value: value if value.startswith(("-", "se")) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(flags, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chosen = [] if "--policies" in flags else ["--policies", "myopic"]
    assert field_command(arguments=[*flags.split(), *chosen, "--run.directory=run"]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_help_of_recordings_is_of_data_before_they_are_named():
    """And a flag of theirs is not refused for having no effect, but for want of data."""
    idle = idle_fields(PRESETS["recordings"].config)
    assert {"policies", "env.fields", "online.fields"} <= {*idle}
    assert "state_space.dims" not in idle
    auto = World(noise="auto")  # no learner of data: still one of experiments
    assert "policies" not in idle_fields(Config(env=auto))
