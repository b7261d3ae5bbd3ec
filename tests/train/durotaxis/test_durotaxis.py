"""`python -m train.durotaxis` from the outside: its presets, a small run, and what it refuses."""

import json
import re
from dataclasses import replace
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.durotaxis.rewards import registry
from jaxrl.loop import LoopMetrics
from jaxrl.networks.graph import PooledTorso
from tests.accelerator_branches import trace_as_on_accelerators
from tests.train.images import assert_drawn
from train import evaluate, render
from train.durotaxis.config import Config, make_env, name_of
from train.durotaxis.presets import PRESETS
from train.durotaxis.program import PROGRAM
from train.durotaxis.training import make_curriculum, make_network, make_parts, make_training
from train.host.command_line import command
from train.host.compilation.cpu_kernels import equations
from train.host.files.metrics_file import read_metrics
from train.policies import export

SMALL = (
    "--env.capacity=12 --env.threshold-nodes=12 --env.observation=local --env.width=80 "
    "--network.torso=pooled --network.width=8 --loop.num-envs=8 --loop.num-steps=16 "
    "--agent.minibatches=4 --agent.epochs=1 --run.total-steps=512 --run.chunk-steps=128 "
    "--run.evaluation-games=4 --env.max-steps-in-episode=40"
)
OF_ANY_WIDTH = SMALL.replace("--env.width=80 ", "")  # a measured field brings its own


def durotaxis_command(*arguments: str) -> int:
    return command.main(PROGRAM, arguments)


def parse_config(flags: str) -> Config:
    return command.parse(PROGRAM, flags.split())[0]


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("durotaxis") / "run"
    assert durotaxis_command(*SMALL.split(), f"--run.directory={directory}") == 0
    return directory


@pytest.mark.slow
def test_a_run_leaves_record_score_and_pictures(run_directory: Path):
    rows = read_metrics(run_directory)
    assert [row["steps"] for row in rows] == [128, 256, 384, 512]
    parts = [
        row["finished"]["reward_distance"] + row["finished"]["reward_termination"] for row in rows
    ]
    returns = [row["finished"]["return"] for row in rows]
    np.testing.assert_allclose(parts, returns, rtol=1e-3, atol=1e-3)
    seed = json.loads((run_directory / "eval.json").read_text())["seeds"][0]
    assert (seed["games"], seed["incomplete"]) == (4, 0)
    assert 0 <= seed["arrived"]["mean"] <= 1
    for name in ("learning_curve.png", "climb.gif", "climb.png"):
        assert (run_directory / name).stat().st_size > 1000


@pytest.mark.slow
def test_a_policy_is_filmed_and_evaluated_without_its_run(
    run_directory: Path, tmp_path: Path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    policy = export.export(run_directory, str(tmp_path / "small.safetensors"))
    assert render.main([f"--policy={policy}", "--games=4"]) == 0
    *films, line = capsys.readouterr().out.splitlines()
    assert films == ["runs/policy-small/climb.gif", "runs/policy-small/climb.png"]
    for path in films:
        assert_drawn(Path(path))
    assert re.fullmatch(r"4 colonies: [\d.]+% arrived", line)
    assert evaluate.main(["--policy", str(policy), "--episodes=4", "--b=2"]) == 0
    (folder,) = Path("runs/policy-small").glob("eval-linear-m0.05-b2-*")
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["updates"], summary["seeds"][0]["episodes"]) == (4, 4)
    assert not Path("runs/policy-small/eval.json").exists()  # it is of the policy's own ground


FIRST = ("hybrid",)
"""With most parts to its action; the others differ in numbers, or in parts of the environment."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "preset", [pytest.param(x, marks=[pytest.mark.slow] * (x not in FIRST)) for x in PRESETS]
)
def test_every_preset_fits_together(preset: str):
    """Shapes alone: what is learnt keeps its structure, a value for each component."""
    config = PRESETS[preset].config
    training = make_training(config)
    state = jax.eval_shape(training.init, jax.random.key(0))
    after, metrics = jax.eval_shape(training.update, state)
    chex.assert_trees_all_equal_shapes_and_dtypes(after, state)
    kind = type(config.env.weights)
    assert state.env.earned.shape == (config.loop.num_envs, len(kind.NAMES))
    head = state.agent.params["params"]["value"]["bias"]
    assert head.shape == (len(kind.NAMES),)
    assert metrics.finished[training.score.name].shape == ()


def test_presets_are_what_they_are_called():
    laws = {name: make_env(PRESETS[name].config.env)[1].law for name in PRESETS}
    assert (laws["linear"].slope, laws["linear"].base) == (0.05, 1.0)
    assert laws["shallow"].slope == 0.01
    assert [name for name, law in laws.items() if law.exponential] == ["exponential"]
    for name in ("normal", "three_part", "state_machine"):
        assert name_of(PRESETS[name].config.env.weights) == name
    isotropic = make_env(PRESETS["isotropic"].config.env)[0]
    assert (isotropic.num_actions, isotropic.spawning) == (1, "isotropic")
    for config, *_ in PRESETS.values():  # no preset pays for being alive, but that of the original
        if not isinstance(config.env.weights, registry.SETS["normal"]):
            assert not {"survival", "company"} & set(type(config.env.weights).NAMES)


def test_weights_of_another_set_come_from_the_command_line():
    config = parse_config("normal --env.weights.hull 0.7 --env.weights.arrived 9")
    _, params = make_env(config.env)
    assert params.weights == registry.weights_of("normal", hull=0.7, arrived=9.0)


@pytest.mark.slow
@pytest.mark.parametrize("deletion", ["forest", "tree"])
def test_no_loop_of_accelerators_is_ended_by_data(deletion: str):
    """Their host would have to look, each round, whether it goes on."""
    flags = SMALL.replace("local", "full").replace("pooled", "graph")
    training = make_training(parse_config(f"{flags} --env.deletion={deletion}"))
    state = jax.eval_shape(training.init, jax.random.key(0))
    traces = (
        trace_as_on_accelerators(training.update, state),
        jax.jit(training.update).trace(state),
    )
    accelerator, cpu = ({x.primitive.name for x in equations(t.jaxpr.jaxpr)} for t in traces)
    assert "scan" in accelerator
    assert "while" not in accelerator
    assert "while" in cpu


def test_a_curriculum_moves_the_goal_away():
    config = parse_config(f"curriculum {SMALL} --curriculum.first-width=50")
    _, params, _ = make_parts(config)
    curriculum = make_curriculum(config, params)
    assert curriculum
    course, widths = curriculum.init(), []
    for _ in range(5):
        widths.append(float(curriculum.params(course).width))
        course, *_ = curriculum.advance(course, (), LoopMetrics(jnp.zeros(()), {}, {}))
    assert widths == [50, 65, 80, 80, 80]  # whole after half of four updates
    assert make_curriculum(PRESETS["linear"].config, params) is None


def test_a_measured_field_brings_its_own_size(tmp_path: Path):
    np.save(tmp_path / "field.npy", np.linspace(1, 5, 60 * 90).reshape(60, 90))
    config = parse_config(f"{OF_ANY_WIDTH} --env.field-file={tmp_path / 'field.npy'}")
    _, params = make_env(config.env)
    assert (params.width, params.height, params.field.shape) == (90, 60, (60, 90))
    assert params.field.dtype == np.float32


@pytest.mark.parametrize(("goal", "length"), [("right", 900), ("up", 60)])
def test_a_goal_on_measured_ground_moves_away_to_the_edge_of_the_field(tmp_path, goal, length):
    """From any place of the field on, which may be larger or smaller than the default ground."""
    np.save(tmp_path / "field.npy", np.linspace(1, 5, 60 * 900).reshape(60, 900))
    flags = f"curriculum {OF_ANY_WIDTH} --env.field-file={tmp_path / 'field.npy'} --env.goal={goal}"
    config = parse_config(f"{flags} --curriculum.first-width={length - 10}")
    make_training(config)
    curriculum = make_curriculum(config, make_env(config.env)[1])
    assert curriculum
    assert [float(curriculum.params(x).width) for x in (0, 99)] == [length - 10, length]
    wider = parse_config(f"{flags} --curriculum.first-width={length + 10}")
    with pytest.raises(ValueError, match=f"is {length + 10}.0, expected a number at most {length}"):
        make_training(wider)


def test_a_mean_takes_the_place_of_messages():
    config = parse_config(SMALL)
    env, _, _ = make_parts(config)
    assert isinstance(make_network(config, env).torso, PooledTorso)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--env.threshold-nodes=200", "--env.threshold-nodes is 200; expected 5, the founders"),
        ("--env.width=19", "--env.width is 19, expected a number at least 20"),
        ("exponential --env.slope=2", "which float32 cannot hold"),
        ("--env.weights.gold=1", "--env.weights.gold"),
        ("--env.weights.distance=nan", "--env.weights.distance is nan, expected a number that is"),
        ("--env.field-file=missing.npy", "there is no file missing.npy"),
        ("--env.field-file=flat.npy", "flat.npy has the shape (3,)"),
        ("--env.field-file=words.npy", "words.npy is not an .npy file"),
        ("--agent.learning-rate=nan", "--agent.learning-rate is nan, expected a number"),
        (f"--env.width={10**21}", f"--env.width is {10**21}, expected a number at least 20"),
        (f"--env.capacity={10**21}", f"--env.capacity is {10**21}, expected a number at least 1"),
        ("--env.bounds.gamma 3 1", "--env.bounds.gamma is 3.0 to 1.0, expected the lower number"),
        ("--network.width=0", "--network.width is 0, expected a number at least 1"),
        ("--curriculum.first-width=5", "--curriculum.first-width is 5.0, expected a number"),
        pytest.param(  # found when it is traced
            *("--agent.minibatches=7", "cannot be split into 7 equal minibatches"),
            marks=pytest.mark.slow,
        ),
        (
            "steep",
            "there is no preset steep (perhaps tree): choose one of linear, linear_wide, shallow",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(flags, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("flat.npy", np.ones(3))
    Path("words.npy").write_text("stiff")
    preset = [flags.split()[0]] if not flags.startswith("-") else []
    other_flags = flags.split()[len(preset) :]
    small = OF_ANY_WIDTH if "field-file" in flags else SMALL
    assert durotaxis_command(*preset, *small.split(), *other_flags) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_field_must_have_the_size_that_is_said():
    env, params = make_env(parse_config(SMALL).env)
    with pytest.raises(ValueError, match=r"shape \(5, 5\); expected \(400, 80\)"):
        env.check(replace(params, field=jnp.ones((5, 5))))
