"""What speeds of training are of: presets by their names, from when all of an agent is at work."""

from bench.snake_training_speed import CASES
from bench.training_speed import WARMUP, warmup_of
from train.host.program import find


def test_rows_that_have_the_name_of_a_preset_are_that_preset():
    presets = find("snake", "a test").presets
    names = {name for name in CASES if name in presets} - {"dqn"}  # the published one is not double
    assert {"ppo", "pqn", "a2c", "reinforce", "rainbow", "board", "fill"} <= names
    for name in names:
        assert CASES[name] == presets[name].config, name
    assert CASES["double"] == presets["dqn"].config


def test_the_clock_starts_after_a_replay_is_learned_from():
    config = lambda program, preset: find(program, "a test").presets[preset].config
    for program, preset in (("two_snake", "dqn"), ("gymnax", "dqn"), ("gymnax", "sac")):
        of_preset = config(program, preset)
        assert warmup_of(of_preset) > of_preset.agent.warmup
    assert warmup_of(config("snake", "ppo")) == WARMUP
