"""Schedules of a DQN follow the budget, and say what they did where nobody had shares."""

import json
from dataclasses import replace

import jax
import pytest

from jaxrl.agents import dqn
from jaxrl.checks import INT32
from train.gymnax import config as gymnax
from train.gymnax import presets as gymnax_presets
from train.host import schedules
from train.host.command_line.command import parse
from train.host.command_line.repetition import beginning, flags
from train.host.errors import UsageError
from train.host.plain_config import plain, rebuild
from train.host.program import find
from train.host.schedules import Shares
from train.host.training import Config
from train.snake import config as snake
from train.snake import presets as snake_presets
from train.two_snake import agents as two_snake

SPANS = {  # of epsilon and of the importance weights, with the usual budget
    ("gymnax", "dqn"): (250_000, 500_000),
    ("gymnax", "dqn_minatar"): (500_000, 5_000_000),
    ("snake", "dqn"): (50_000, 1_000_000),
    ("snake", "rainbow"): (50_000, 1_000_000),
    ("snake", "board"): (4_000, 2_000_000),
    ("snake", "board20"): (4_000, 2_000_000),
    ("snake", "compass"): (200_000, 1_000_000),
    ("two_snake", "dqn"): (1_000_000, 5_000_000),
}
SCHEDULED = {
    "gymnax": gymnax.with_annealing,
    "snake": snake.with_annealing,
    "two_snake": two_snake.with_annealing,
}


@pytest.mark.parametrize(("name", "preset"), SPANS)
def test_spans_are_those_of_the_preset_and_follow_the_budget(name, preset):
    program = find(name, "a test")
    config = program.presets[preset].config
    agent = SCHEDULED[name](config)
    assert (agent.epsilon_transitions, agent.importance_transitions) == SPANS[name, preset]
    assert isinstance(agent.epsilon_transitions, int)
    fifth = replace(config, run=replace(config.run, total_steps=config.run.total_steps // 5))
    agent = SCHEDULED[name](fifth)
    spans = agent.epsilon_transitions, agent.importance_transitions
    assert spans == tuple(x // 5 for x in SPANS[name, preset])
    assert program.training(config).budget_shapes_learning


def test_a_configuration_that_was_saved_without_shares_keeps_its_spans():
    saved = plain(gymnax_presets.PRESETS["dqn"].config)
    saved["agent"]["epsilon_transitions"] = 77
    del saved["explore_share"], saved["importance_share"]
    agent = gymnax.with_annealing(rebuild(gymnax_presets.PRESETS["dqn"].config, saved))
    assert (agent.epsilon_transitions, agent.importance_transitions) == (77, 1_000_000)


@pytest.mark.parametrize("preset", ["dqn", "rainbow"])
def test_a_run_that_was_saved_without_shares_goes_on_and_is_repeated(preset, tmp_path):
    """Neither is refused for what the preset has since; its budget may grow as it could."""
    saved = plain(snake_presets.PRESETS[preset].config)
    del saved["explore_share"], saved["importance_share"]
    content = {"name": "snake", "preset": preset, "config": saved}
    (tmp_path / "config.yaml").write_text(json.dumps(content))
    program = find("snake", "a test")
    old, _ = parse(program, ["--resume", str(tmp_path)])
    assert (old.explore_share, old.importance_share) == (None, None)
    assert program.training(old).budget_shapes_learning == (preset == "rainbow")  # its rate falls
    old = replace(old, run=replace(old.run, resume=""))
    preset_name, default = beginning(program, preset, old)
    assert parse(program, [preset_name, *flags(old, default)])[0] == old


@pytest.mark.parametrize("share", [0.0, 0.025, 0.3, 1.0, 3.0])
def test_a_traced_share_gives_the_same_span(share):
    spans = (schedules.span(x, 2_000_000) for x in (share, jax.numpy.float32(share)))
    assert len({float(x) for x in spans}) == 1
    assert schedules.span(1.0, 10**12) == INT32


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ("--agent.epsilon-transitions 9", "as explore_share sets it, unless that is None"),
        ("--agent.importance-transitions 9", "as it needs agent.prioritised"),
        ("--importance-share 0.3", "as it needs agent.prioritised"),
        ("--agent.epsilon-start 0.05 --explore-share 0.1", "agent.epsilon_end are the same"),
    ],
)
def test_what_has_no_effect_is_refused(flags, reason):
    with pytest.raises(UsageError, match=reason):
        parse(find("gymnax", "a test"), ["dqn", *flags.split()])


def test_agent_fields_count_where_there_are_no_shares():
    flags = ["--explore-share", "None", "--agent.epsilon-transitions", "9"]
    config, _ = parse(find("gymnax", "a test"), ["dqn", *flags])
    assert gymnax.with_annealing(config).epsilon_transitions == 9
    assert schedules.scheduled_agent(dqn.Config(), Shares(), 10) == dqn.Config()


@pytest.mark.parametrize(
    ("name", "preset", "most"),
    [("gymnax", "dqn", 9_990), ("gymnax", "sac", 992), ("two_snake", "dqn", 19_456)],
)
def test_a_budget_that_ends_before_the_warmup_is_told(name, preset, most):
    program = find(name, "a test")
    per_update = program.presets[preset].config.loop.steps_per_update
    for total, is_told in ((most, True), (most + per_update, False)):
        config, _ = parse(program, [preset, "--run.total-steps", str(total)])
        caution = program.training(config).caution
        assert ("nothing will be learned" in caution) == is_told


def test_the_warmup_that_is_told_names_its_numbers():
    line = schedules.caution(30, Config(total_steps=15), 10)
    assert "agent.warmup is 30 transitions and the budget 20:" in line
