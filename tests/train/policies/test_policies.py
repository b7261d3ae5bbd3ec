"""Policies as files: what goes in comes out, and what is no policy is refused in one line."""

import json
import pickle
import re
import shlex
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from flax.traverse_util import flatten_dict

import train
from jaxrl import checkpoint
from tests.train import tiny
from tests.train.policies.exports import (
    assert_refused,
    begin,
    config_change,
    contents,
    flip_bit,
    metadata,
    rewrite,
    scores,
)
from train import evaluate, render
from train.host.command_line import command
from train.host.errors import UsageError
from train.host.files import policy_files
from train.host.files.run_directory import RunDirectory
from train.host.program import find
from train.host.running import saved_policies, saved_runs
from train.policies import card as cards
from train.policies import export as policies
from train.snake.program import PROGRAM
from train.snake.training import make_player


def test_a_file_holds_the_parameters_and_nothing_else(each_export):
    run, path = each_export
    params = run.agents[-1].learner.params if hasattr(run.agents[-1], "learner") else None
    params = run.agents[-1].params if params is None else params
    expected = flatten_dict(params["params"], sep="/")
    header, body = contents(path)
    metadata = header.pop("__metadata__")
    assert header.keys() == expected.keys()
    assert "torso/Dense_0/kernel" in header
    for name, x in expected.items():
        begin, end = header[name]["data_offsets"]
        assert header[name]["dtype"] == "F32"
        array = np.frombuffer(body[begin:end], "<f4").reshape(header[name]["shape"])
        np.testing.assert_array_equal(array, x)
    assert json.loads(metadata["config"])["env"]["rows"] == 5
    assert json.loads(metadata["scores"])["score"]["mean"] == 7.25


def test_a_loaded_policy_acts_as_the_agent_of_its_run(each_export):
    run, path = each_export
    policy = saved_policies.as_run(path)
    assert policy.config.env == run.config.env
    assert policy.program is PROGRAM
    env, params, agent = make_player(policy.config)
    obs = jax.random.normal(jax.random.key(1), (500, *env.observation_space(params).shape))
    act = lambda state, obs: agent.act(state, (), obs, jax.random.key(0))[0]
    act = jax.jit(jax.vmap(act, in_axes=(None, 0)))
    actions = act(run.agents[-1], obs)
    np.testing.assert_array_equal(act(policy.agents[0], obs), actions)
    assert len(set(actions.tolist())) > 1
    for source, seed in ((path, None), (run.directory, run.seeds[-1])):
        loaded = train.load(source, seed=seed)
        np.testing.assert_array_equal(loaded.act(np.asarray(obs))[0], actions)
        assert loaded.act(np.asarray(obs[7]))[0] == actions[7]
        assert loaded.metadata["scores"] == scores(run)
        assert loaded.env == env


def test_one_of_several_seeds_is_chosen_by_name(ppo_export):
    run, _ = ppo_export
    with pytest.raises(UsageError, match="has several seeds: choose one, seed 3, 4"):
        train.load(run.directory)


def test_a_licence_is_named_by_who_gives_it(ppo_export, tmp_path):
    run, path = ppo_export
    assert "Apache" not in path.with_suffix(".md").read_text()
    flags = [str(run.directory), str(tmp_path / "p"), "--seed=3", "--license", "CC-BY-4.0"]
    assert policies.main(["export", *flags]) == 0
    assert (tmp_path / "p.md").read_text().endswith("## Licence\n\nCC-BY-4.0\n")


def test_changed_files_that_were_learned_from_are_told(ppo_export, tmp_path, monkeypatch, caplog):
    run, _ = ppo_export
    meta = checkpoint.read_meta(RunDirectory(run.directory).checkpoints)
    files = {"data": "a.npz (crc32 1)"}
    monkeypatch.setattr(policies.checkpoint, "read_meta", lambda *_: meta | {"files": files})
    path = policies.export(run.directory, tmp_path / "p", 3)
    for now, change in ((files, ""), ({"data": "a.npz (crc32 2)"}, "1) -> a.npz (crc32 2)")):
        monkeypatch.setattr(saved_policies, "files_of", lambda config, now=now: now)
        saved_policies.as_run(path)
        assert bool(caplog.text) == bool(change)
        assert change in caplog.text


def test_what_is_not_known_has_no_line_in_a_card(ppo_export, tmp_path, monkeypatch):
    run, _ = ppo_export
    meta = checkpoint.read_meta(RunDirectory(run.directory).checkpoints)
    monkeypatch.setattr(policies.checkpoint, "read_meta", lambda *_: meta | {"git": None})
    text = policies.export(run.directory, tmp_path / "p", 3).with_suffix(".md").read_text()
    assert "Versions: jax" in text
    for nothing in ("Commit", "unknown", ": None", "Chosen", "\n\n\n"):
        assert nothing not in text
    assert not re.search(r"^- [^:]+:\s*$", text, re.M)
    facts = {"none": None, "numbers": [], "parts": {"a": [], "b": 2.0}, "off": False}
    assert cards.bullets(facts) == "- parts: b 2\n- off: False"


def test_the_card_tells_how_to_train_it_again(each_export):
    run, path = each_export
    card = path.with_suffix(".md").read_text()
    line = next(line for line in card.splitlines() if line.startswith("python -m train.snake"))
    repeated_config, _ = command.parse(PROGRAM, shlex.split(line)[3:])
    assert repeated_config == run.config
    for text in ("an abacus", "7.25 (6.5 to 8.125), median 7, most 11", "12 s", "40 complete"):
        assert text in card


def test_scores_of_another_agent_are_left_out(ppo_export, tmp_path, monkeypatch):
    run, _ = ppo_export
    content = json.loads((run.directory / "eval.json").read_text())
    for change, is_kept in (({}, True), ({"updates": 2}, False), ({"greedy": False}, False)):
        monkeypatch.setattr(policies.scores, "read_evaluation", lambda _, c=change: content | c)
        name = tmp_path / "p.safetensors"
        path = policies.export(run.directory, name, run.seeds[-1], overwrite=True)
        assert ("7.25" in path.with_suffix(".md").read_text()) is is_kept
        assert policies.policy_files.read_metadata(path)["scores"] == (
            content["seeds"][0] if is_kept else None
        )


@pytest.mark.slow
def test_a_run_that_has_gone_on_takes_no_score_along(tmp_path):
    """Its `eval.json` is of the agents of before, also if it was resumed without an evaluation."""
    run, name = tmp_path / "run", tmp_path / "p.safetensors"
    command.main(tiny.PROGRAM, ["plain", f"--run.directory={run}", "--run.total-steps=60"])
    path = policies.export(run, name)
    assert policy_files.read_metadata(path)["scores"]["games"] == 6
    longer = ["--run.total-steps=120", "--run.evaluation-games=0"]
    command.main(tiny.PROGRAM, ["--resume", str(run), *longer])
    path = policies.export(run, name, overwrite=True)
    assert policy_files.read_metadata(path)["scores"] is None


def test_what_a_newer_version_asks_has_the_value_of_the_preset(ppo_export, tmp_path):
    run, path = ppo_export
    copy = tmp_path / "old.safetensors"
    copy.write_bytes(path.read_bytes())

    def forget(header):
        config = json.loads(header["__metadata__"]["config"])
        del config["network"]["noisy"], config["run"]["checkpoint_every"]
        header["__metadata__"]["config"] = json.dumps(config)

    rewrite(copy, forget)
    assert saved_policies.as_run(copy).config.network == run.config.network


@pytest.mark.slow
def test_a_run_begins_with_a_policy_and_goes_on_without_it(each_export, tmp_path):
    run, path = each_export
    copy = tmp_path / "lent.safetensors"
    copy.write_bytes(path.read_bytes())
    preset = RunDirectory.open(run.directory).config()["preset"]
    assert begin(tmp_path / "run", copy, preset) == 0
    expected_params = policy_files.parameters(run.agents[-1])
    begun_run = saved_runs.load(tmp_path / "run")
    assert len(begun_run.agents) == len(run.agents)
    for agent in begun_run.agents:
        agent_params = policy_files.parameters(agent)
        assert agent_params.keys() == expected_params.keys()
        for name, x in expected_params.items():
            np.testing.assert_allclose(agent_params[name], x, rtol=0, atol=1e-9)
        if preset == "dqn":
            target, params = agent.learner.target_params, agent.learner.params
            jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-9), target, params)
    copy.unlink()
    words = ["--resume", str(tmp_path / "run")]
    assert command.main(PROGRAM, words) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "policy", "message"),
    [
        ("", "nobody", "there is no policy nobody"),
        ("--network.hidden 8 9", "POLICY", "expected [8, 9]"),
        ("", "FOREIGN", "is a policy of two_snake, not of snake"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused_before_anything_is_written(
    flags, policy, message, ppo_export, tmp_path, capsys
):
    _, path = ppo_export
    foreign = tmp_path / "foreign.safetensors"
    foreign.write_bytes(path.read_bytes())
    metadata(entry_point="two_snake")(foreign)
    names = {"POLICY": path, "FOREIGN": foreign}
    assert begin(tmp_path / "run", names.get(policy, policy), "ppo", flags) == 2
    assert_refused(capsys, message)
    assert not (tmp_path / "run").exists()


def rename_kernel(header: dict[str, Any]) -> None:
    header["policy/weight"] = header.pop("policy/kernel")


def insert_nan(path: Path) -> None:
    header, body = contents(path)
    place = header["policy/kernel"]["data_offsets"][0]
    bad = body[:place] + np.float32(np.nan).tobytes() + body[place + 4 :]
    rewrite(path, lambda header: None, bad)


BROKEN = {
    "empty": (lambda path: path.write_bytes(b""), "cannot be read"),
    "pickle": (lambda path: path.write_bytes(pickle.dumps({"w": 1.0})), "cannot be read"),
    "in the header": (lambda path: path.write_bytes(path.read_bytes()[:300]), "cannot be read"),
    "in the numbers": (lambda path: path.write_bytes(path.read_bytes()[:-9]), "cannot be read"),
    "foreign": (lambda path: rewrite(path, lambda h: h.pop("__metadata__")), "has no metadata"),
    "format": (metadata(format=1), "has format 1; this program reads format 2"),
    "no JSON": (
        lambda path: rewrite(path, lambda h: h["__metadata__"].update(updates="{")),
        "has metadata that are not JSON",
    ),
    "entry": (metadata(entry_point="os"), "is of the program os, which is unknown here"),
    "preset": (metadata(preset="best"), "has the preset best, which is unknown here"),
    "board": (
        config_change(lambda c: c["env"].update(rows=99)),
        "env.rows is 99, expected a number at least 4 and at most 32",
    ),
    "field": (config_change(lambda c: c["env"].update(luck=1)), "see env.luck"),
    "word": (config_change(lambda c: c["network"].update(hidden="ab")), "cannot be used"),
    "width": (config_change(lambda c: c["network"].update(hidden=[8, 9])), "expected [8, 9]"),
    "bit": (flip_bit, "is damaged (its checksum differs)"),
    "name": (lambda path: rewrite(path, rename_kernel), "policy/weight is [7, 3], expected none"),
    "NaN": (insert_nan, "parameter policy/kernel of"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_no_policy_is_refused_in_one_line(kind: str, ppo_export, tmp_path, capsys):
    _, path = ppo_export
    damage, message = BROKEN[kind]
    copy = tmp_path / "broken.safetensors"
    copy.write_bytes(path.read_bytes())
    damage(copy)
    assert render.main([f"--policy={copy}", f"--out={tmp_path}"]) == 2
    assert_refused(capsys, message)
    assert evaluate.main(["--policy", str(copy)]) == 2
    assert_refused(capsys, message)


@pytest.mark.parametrize(
    ("main", "flags", "message"),
    [
        (policies.main, "", "expected: train.policies export RUN NAME, compile RUN, or list"),
        (policies.main, "export nowhere a", "nowhere is not a run directory"),
        (policies.main, "export RUN a", "has several seeds: choose one, --seed 3, 4"),
        (policies.main, "export RUN a --seed 5", "has no seed 5: choose --seed among 3, 4"),
        (policies.main, "export RUN a/.b --seed 3", "'a/.b' is no name of a policy"),
        (policies.main, "export RUN .a --seed 3", "'.a' is no name of a policy"),
        (policies.main, "export RUN a/b --package", "expects a name such as snake-10x10"),
        (policies.main, "export RUN POLICY --seed 3", "exists already: choose another name, or"),
        (policies.main, "export RUN a --seeds 3", "--seeds"),
        (render.main, "--policy nobody", "there is no policy nobody"),
        (render.main, "", "expected a run directory, or --policy NAME: give one of them"),
        (render.main, "RUN --policy POLICY", "not both"),
        (render.main, "RUN --out away", "--out is for policies"),
        (evaluate.main, "", "expected a run directory, or --policy NAME: give one of them"),
        (evaluate.main, "RUN --policy POLICY", "not both"),
        (evaluate.main, "--policy nobody", "there is no policy nobody"),
        (evaluate.main, "--policy RUN", "is a directory, not a policy: give a run without"),
    ],
)
def test_a_mistake_is_answered_in_one_line(
    main, flags, message, ppo_export, capsys, monkeypatch, tmp_path
):
    run, path = ppo_export
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(policy_files, "TRAINED", path.parent / "package")
    names = {"RUN": str(run.directory), "POLICY": str(path)}
    assert main([names.get(word, word) for word in flags.split()]) == 2
    assert_refused(capsys, message)
    assert not policy_files.names()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("place", "name", "value", "message"),
    [
        (policies, "LARGEST", 100, "bytes; expected at most 100"),
        (policy_files, "parameters", lambda agent: {"w": np.full(3, np.inf)}, "parameter w of"),
    ],
)
def test_what_cannot_be_kept_is_not_exported(place, name, value, message, ppo_export, monkeypatch):
    run, path = ppo_export
    package = path.parent / "refused"
    monkeypatch.setattr(policy_files, "TRAINED", package)
    monkeypatch.setattr(place, name, value)
    with pytest.raises(UsageError, match=message):
        policies.export(run.directory, "a", run.seeds[0], package=True)
    assert not list(package.glob("*"))


@pytest.mark.parametrize("name", ["vector_field", "goals"])
def test_a_program_whose_agents_are_no_policies_exports_none(
    name, ppo_export, tmp_path, monkeypatch
):
    run, path = ppo_export
    program = find(name, path)
    alike = run._replace(program=program)
    monkeypatch.setattr(saved_runs, "load", lambda *_: alike)
    message = f"is of {name}, what it learns cannot be exported as a policy: train."
    with pytest.raises(UsageError, match=message):
        policies.export(run.directory, tmp_path / "none.safetensors", run.seeds[0])
    assert not (tmp_path / "none.safetensors").exists()
    renamed = tmp_path / "renamed.safetensors"
    renamed.write_bytes(path.read_bytes())
    metadata(entry_point=name)(renamed)
    with pytest.raises(UsageError, match=message):
        saved_policies.as_run(renamed)
