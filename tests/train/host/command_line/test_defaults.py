"""Defaults that suit an environment and a budget."""

from dataclasses import replace
from typing import Any

import pytest

from tests.train import tiny
from train.allo import program as allo
from train.host import device_presets
from train.host.command_line.command import parse
from train.host.command_line.defaults import LEAST_ROWS, chunks
from train.host.command_line.repetition import beginning
from train.host.command_line.repetition import flags as flags_between
from train.host.errors import UsageError
from train.host.files.run_directory import RunDirectory
from train.host.program import find
from train.host.training import PlayConfig
from train.sweep import plan

PROGRAMS = ("snake", "two_snake", "durotaxis", "gymnax", "allo", "vector_field")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_budget_of_the_usual_size_or_more_has_the_usual_chunks(name):
    program = find(name, "a test")
    for config, *_ in program.presets.values():
        for times in (1, 3):
            run = replace(config.run, total_steps=times * config.run.total_steps)
            assert chunks(run, config.run) == {}


@pytest.mark.parametrize("rows", [5, 20, 150])
@pytest.mark.parametrize("per_update", [1, 7, 64])
def test_a_smaller_budget_has_no_fewer_rows(rows, per_update):
    usual: Any = PlayConfig(total_steps=64_000, chunk_steps=64_000 // rows)
    for total in range(50, 64_000, 97):
        run = replace(usual, total_steps=total)
        run = replace(run, **chunks(run, usual))
        updates, chunk = run.total_updates(per_update), run.chunk_updates(per_update)
        assert -(-updates // chunk) >= min(LEAST_ROWS, updates)


def test_scores_while_training_keep_their_share_of_the_budget():
    usual = PlayConfig(total_steps=200_000, chunk_steps=10_000, evaluate_every=4)
    fields = chunks(replace(usual, total_steps=50_000), usual)
    share = fields["evaluate_every"] * fields["chunk_steps"] / 50_000
    assert share == pytest.approx(4 * 10_000 / 200_000, rel=0.05)
    usual = replace(usual, chunk_steps=1_000)
    assert chunks(replace(usual, total_steps=50_000), usual)["evaluate_every"] == 4


def test_a_budget_of_episodes_counts_too():
    usual = PlayConfig(total_steps=100_000, chunk_steps=1_000, max_episodes=500)
    fields = chunks(replace(usual, max_episodes=50), usual)
    assert fields == {"chunk_steps": 100}
    assert chunks(replace(usual, max_episodes=None), usual) == {}


@pytest.mark.parametrize(
    ("flags", "chunk"),
    [
        ("", 30),
        ("--run.total-steps 600", 30),
        ("--run.total-steps 100", 1),
        ("--run.total-steps 100 --run.chunk-steps 30", 30),
        ("--run.total_steps=100 --run.chunk_steps=60", 60),
    ],
)
def test_a_chunk_that_is_given_stays(flags, chunk):
    config, preset = parse(tiny.PROGRAM, flags.split())
    assert config.run.chunk_steps == chunk
    preset_name, default = beginning(tiny.PROGRAM, preset, config)
    repeat_flags = flags_between(config, default)
    assert parse(tiny.PROGRAM, [preset_name, *repeat_flags]) == (config, preset)


def test_flags_without_the_name_of_their_part_are_repeated():
    """`--maze-file` is the field `env.maze_file`, and `--env.maze-file` nothing."""
    words = ["allo", "--maze-file", "maze.txt", "--allow-disconnected"]
    config, _ = parse(allo.PROGRAM, words)
    assert flags_between(config, allo.PROGRAM.presets["allo"].config) == words[1:]
    assert flags_between(allo.PROGRAM.presets["allo"].config, config)[2:] == [
        "--no-allow-disconnected"
    ]
    with pytest.raises(UsageError, match=r"^--maze-file has no effect"):
        parse(allo.PROGRAM, [*words[:3], "--transitions", "walks.npz"])
    assert plan.reader(allo.PROGRAM, "allo", [])("env.maze_file", "my.txt") == "my.txt"


def test_a_run_that_goes_on_keeps_its_chunks(tmp_path):
    saved, _ = parse(tiny.PROGRAM, ["--run.total-steps", "100"])
    RunDirectory(tmp_path).write_config(tiny.PROGRAM.address, "plain", saved)
    for total in (50, 1_000):
        flags = ["--resume", str(tmp_path), "--run.total-steps", str(total)]
        assert parse(tiny.PROGRAM, flags)[0].run.chunk_steps == saved.run.chunk_steps
    fewer = ["--config", str(tmp_path), "--run.total-steps", "20"]
    assert parse(tiny.PROGRAM, fewer)[0].run.chunk_steps == 1


def test_without_a_name_an_accelerator_gets_the_preset_in_its_shape(monkeypatch, capsys):
    program = find("two_snake", "a test")
    assert parse(program, [])[1] == "curriculum"
    monkeypatch.setattr(device_presets, "on_accelerator", lambda: True)
    config, preset = parse(program, [])
    assert preset == "curriculum_wide"
    assert config == program.presets["curriculum_wide"].config
    assert (
        "two_snake: curriculum_wide on this device (cpu); name curriculum to have that"
        in capsys.readouterr().out
    )
    # What is named is taken, with a word on the other shape; presets in one shape stay silent.
    assert parse(program, ["curriculum"])[1] == "curriculum"
    line = "two_snake: curriculum_wide is curriculum in the shape for this device (cpu)"
    assert capsys.readouterr().out.splitlines() == [line]
    for name in ("curriculum_wide", "direct"):
        assert parse(program, [name])[1] == name
        assert not capsys.readouterr().out


def test_the_shape_is_kept_where_the_environment_asks_for_another_preset():
    program = find("gymnax", "a test")
    config = program.presets["ppo_wide"].config
    assert program.preset_for("ppo_wide", config) == "ppo_wide"
    minatar = replace(config, env=replace(config.env, id="Asterix-MinAtar"))
    assert program.preset_for("ppo_wide", minatar) == "ppo_minatar_wide"


@pytest.mark.parametrize("name", PROGRAMS)
def test_presets_for_accelerators_learn_the_same_in_no_more_steps(name):
    presets = find(name, "a test").presets
    for config, _, wide in presets.values():
        if wide:
            other = presets[wide].config
            assert (other.env, other.network) == (config.env, config.network)
            assert other.run.total_steps <= config.run.total_steps
            assert other.loop.num_envs > config.loop.num_envs
