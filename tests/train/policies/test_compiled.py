"""Policies as compiled programs: run where nothing of this library is, or refused."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.train import untrained
from train.host import abilities
from train.host.errors import UsageError
from train.host.running.saved_runs import with_run_fields
from train.policies import compiled
from train.policies.export import main

SCRIPT = """
import importlib.util, sys
import jax, jax.export, numpy as np
assert not any(importlib.util.find_spec(name) for name in ("jaxrl", "envs", "train"))
policy = jax.export.deserialize(bytearray(open(sys.argv[1], "rb").read()))
with np.load(sys.argv[2]) as inputs:
    out = policy.call(*(inputs[name] for name in inputs))
np.savez(sys.argv[3], *map(np.asarray, out))
"""
RUNS = {**untrained.RUNS, "durotaxis": lambda: untrained.colony("hybrid")}


def run_in_subprocess(program: bytes, arrays: list, folder) -> list[np.ndarray]:
    """What a program makes of arrays in a process that knows JAX and nothing of ours."""
    paths = [folder / name for name in ("policy.jax", "in.npz", "out.npz")]
    paths[0].write_bytes(program)
    np.savez(paths[1], *arrays)
    command = [sys.executable, "-I", "-c", SCRIPT, *map(str, paths)]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    subprocess.run(command, check=True, cwd=folder, env=clean, timeout=120)
    with np.load(paths[2]) as out:
        return [out[name] for name in out]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] * (x != "snake")) for x in RUNS]
)
def test_a_program_acts_as_its_policy_where_nothing_else_is(name, tmp_path):
    run = RUNS[name]()
    program, description = compiled.compile_policy(run)
    player = abilities.player_of(run)
    count = 3
    keys = jax.random.split(jax.random.key(4), count)
    obs = jax.vmap(lambda key: player.env.reset(key, player.env_params)[0])(keys)
    assert [x["shape"] for x in description["inputs"]] == [
        list(x.shape[1:]) for x in jax.tree.leaves(obs)
    ]
    actions = run_in_subprocess(program, [np.asarray(x) for x in jax.tree.leaves(obs)], tmp_path)
    state = player.acting_state(run.agents[0])
    act = jax.vmap(player.agent.act, (None, None, 0, None))
    action = act(state, player.agent.memory(), obs, jax.random.key(0))[0]
    for a, b in zip(actions, jax.tree.leaves(action), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_the_command_writes_two_files_and_replaces_none(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(["compile", "--policy", "snake-10x10"]) == 0
    assert {x.name for x in tmp_path.iterdir()} == {"snake-10x10.jax", "snake-10x10.json"}
    description = json.loads((tmp_path / "snake-10x10.json").read_text())
    assert description["program"] == "snake"
    assert description["outputs"] == [{"name": "action", "shape": [], "type": "int32"}]
    assert main(["compile", "--policy", "snake-10x10"]) == 2
    assert "exists already" in capfd.readouterr().err
    assert main(["compile", "--policy", "snake-10x10", "--out", "no/where/x"]) == 2
    assert main(["compile"]) == 2
    loaded_program = jax.export.deserialize(bytearray((tmp_path / "snake-10x10.jax").read_bytes()))
    shape = description["inputs"][0]["shape"]
    for count in (1, 5):
        assert loaded_program.call(jnp.zeros((count, *shape)))[0].shape == (count,)


@pytest.fixture
def quick_folder(tmp_path, monkeypatch):
    """A command in a folder of its own that writes a program at once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compiled.saved_policies, "load_run_or_policy", lambda *_: untrained.snake())
    monkeypatch.setattr(compiled.saved_runs, "updates_of", lambda run, *_: run.updates)
    monkeypatch.setattr(compiled, "compile_policy", lambda run: (b"program", {}))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["runs/lr0.0003"], "lr0.0003"),
        (["runs/lr0.0003/"], "lr0.0003"),
        (["runs/my run/../größer 1.5"], "größer 1.5"),
        (["runs/lr0.0003", "--best"], "lr0.0003"),
        (["."], "here.v2"),
        (["--policy", "snake.v2.safetensors"], "snake.v2"),
        (["--policy", "snake.v2"], "snake.v2"),
        (["runs/a", "--out", "walk_lr0.001"], "walk_lr0.001"),
        (["runs/a", "--out", "walk_lr0.001.jax"], "walk_lr0.001"),
        (["runs/a", "--out", "walk.json"], "walk.json"),
    ],
)
def test_a_dot_in_a_name_ends_nothing(arguments, name, quick_folder, monkeypatch):
    (quick_folder / "here.v2").mkdir()
    monkeypatch.chdir(quick_folder / "here.v2")
    assert main(["compile", *arguments]) == 0
    files = {x.name for x in (quick_folder / "here.v2").iterdir()}
    assert files == {f"{name}.jax", f"{name}.json"}


def test_one_of_several_seeds_is_compiled(quick_folder, monkeypatch, capfd):
    run = untrained.snake()
    config = with_run_fields(run.config, num_seeds=2)
    several = run._replace(config=config, agents=[*run.agents, "the second"])
    monkeypatch.setattr(compiled.saved_policies, "load_run_or_policy", lambda *_: several)
    monkeypatch.setattr(compiled, "compile_policy", lambda run: (run.agents[0].encode(), {}))
    assert main(["compile", "runs/a"]) == 2
    assert "has several seeds: choose one, --seed 0, 1" in capfd.readouterr().err
    assert main(["compile", "runs/a", "--seed", "1"]) == 0
    assert (quick_folder / "a.jax").read_bytes() == b"the second"


def test_names_that_differ_behind_a_dot_are_two(quick_folder):
    for rate in ("0.001", "0.003"):
        assert main(["compile", "runs/a", "--out", f"walk_lr{rate}"]) == 0
    assert len(list(quick_folder.glob("walk_lr0.00?.jax"))) == 2


@pytest.mark.parametrize("out", [".", "..", "/"])
def test_a_folder_is_no_file_to_write(out, quick_folder, capfd):
    assert main(["compile", "runs/a", "--out", out]) == 2
    assert capfd.readouterr().err == f"--out {out} is a folder; name a file in it\n"
    assert list(quick_folder.iterdir()) == []


def test_what_does_not_act_is_refused():
    run = untrained.snake()
    nothing = replace(run.program.training(run.config), evaluate=str, player=None)
    own = run.program._replace(training=lambda config: nothing, module="mine", alternative="")
    with pytest.raises(
        UsageError, match="mine do not act step by step: their Training has no play"
    ):
        compiled.compile_policy(run._replace(program=own))
