"""Policies are named by files, or by what the package has."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.train.policies.exports import assert_refused, metadata
from train.host.command_line import command
from train.host.errors import UsageError
from train.host.files import policy_files
from train.host.running import preparation, saved_policies
from train.policies import export as policies
from train.snake.program import PROGRAM
from train.snake.training import make_player


def test_names_are_found_in_the_package(ppo_export, tmp_path, monkeypatch, capsys):
    run, path = ppo_export
    monkeypatch.setattr(policy_files, "TRAINED", tmp_path)
    policies.export(run.directory, "tiny-5x6", run.seeds[-1], package=True)
    assert saved_policies.as_run("tiny-5x6").config.env == run.config.env
    foreign = tmp_path / "foreign.safetensors"
    foreign.write_bytes(path.read_bytes())
    metadata(entry_point="nowhere.to.be_found")(foreign)
    assert policies.main(["list"]) == 0
    assert "tiny-5x6" in (listing := capsys.readouterr().out)
    assert "7.25" in listing
    assert re.search(r"foreign +\?", listing)
    with pytest.raises(UsageError, match="is a policy of the package"):
        policies.export(run.directory, "tiny-5x6", run.seeds[-1])


@pytest.mark.parametrize(
    ("name", "message"),
    [("two-snakes", "is a policy of two_snake, not of snake"), ("nowhere", "nowhere")],
)
def test_a_wrong_policy_to_start_from_is_refused_before_anything_is_traced(
    name, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(preparation, "trace", lambda *arguments: pytest.fail("it was traced"))
    flags = [f"--run.policy={name}", f"--run.directory={tmp_path / 'run'}"]
    assert command.main(PROGRAM, flags) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1


@pytest.mark.slow
def test_other_names_are_files_of_the_current_directory(ppo_export, tmp_path, monkeypatch, capsys):
    run, _ = ppo_export
    monkeypatch.chdir(tmp_path)
    directory, seed = str(run.directory), f"--seed={run.seeds[-1]}"
    for name, card in (("mine", "mine.safetensors"), ("some/mine", "some/mine.safetensors")):
        assert policies.main(["export", directory, name, seed]) == 0
        assert capsys.readouterr().out == f"{card}\n{card.replace('safetensors', 'md')}\n"
        assert f"--policy {card} " in Path(card).with_suffix(".md").read_text()
        for source in (name, card):
            assert saved_policies.as_run(source).config.env == run.config.env
        assert policies.main(["export", directory, name, seed]) == 2
        assert_refused(capsys, f"{card} exists already")
        assert policies.main(["export", directory, name, seed, "--overwrite"]) == 0
        capsys.readouterr()
    assert "mine" not in policy_files.names()


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[pytest.mark.slow] * (x != "snake-6x6")) for x in policy_files.names()],
)
def test_a_policy_of_the_package_can_be_loaded_and_has_a_card(name):
    run = saved_policies.as_run(name)
    if run.program.name == "snake":
        obs = jnp.zeros(make_player(run.config)[0].observation_space().shape)
        action, _, _ = make_player(run.config)[2].act(run.agents[0], (), obs, jax.random.key(0))
        assert 0 <= int(action) < 3
    numbers = [
        x
        for x in jax.tree.leaves(run.agents[0])
        if jnp.issubdtype(jnp.result_type(x), jnp.floating)
    ]
    assert numbers
    assert all(np.isfinite(x).all() for x in numbers)
    card = policy_files.file_of(name).with_suffix(".md").read_text()
    assert f"# {name}\n" in card
    assert f"train.render --policy {name}" in card


@pytest.mark.parametrize(
    ("run", "policy", "name"),
    [
        ("runs/lr0.0003", None, "lr0.0003"),
        ("runs/a b/", None, "a b"),
        (None, "policies/snake.v2.safetensors", "snake.v2"),
        (None, "snake.v2", "snake.v2"),
    ],
)
def test_names_keep_what_follows_a_dot(run, policy, name):
    assert saved_policies.name_of(run, policy) == name
