"""Every program with environments side by side passes the number of blocks to its learner."""

import pytest

from bench import flags
from tests.jaxrl.sharded_runs import answers, assert_only_sums
from train.host.plain_config import with_field
from train.host.program import find

QUICK = [("snake", "a2c"), ("gymnax", "dqn")]
LEARNERS = {  # the first preset of each kind of learner, as the others differ in numbers alone
    (name, type(config), type(config.agent)): (name, preset)
    for name in flags.PROGRAMS
    for preset, (config, *_) in reversed(list(find(name, "a test").presets.items()))
    if hasattr(config, "loop")
}
OTHERS = [case for case in LEARNERS.values() if case not in QUICK]
CASES = [*QUICK, *(pytest.param(*case, marks=pytest.mark.slow) for case in OTHERS)]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("name", "preset"), CASES)
def test_blocks_change_what_is_learned_from_and_must_be_equal(name, preset):
    program = find(name, "a test")
    config = program.presets[preset].config
    two = with_field(config, "loop.blocks", 2)
    assert flags.fingerprint(program, two) != flags.fingerprint(program, config)
    unequal = with_field(config, "loop.blocks", config.loop.num_envs - 1)
    with pytest.raises(ValueError, match="expected blocks to divide num_envs: change one of them"):
        program.training(unequal)


@pytest.mark.parametrize("preset", ["sampled", pytest.param("environment", marks=pytest.mark.slow)])
def test_allo_names_its_blocks_itself(preset):
    """It has no loop to configure: its updates draw from what was recorded before the first one."""
    program = find("allo", "a test")
    config = program.presets[preset].config
    two = with_field(config, "agent.blocks", 2)
    assert program.training(two).blocks == 2
    assert flags.fingerprint(program, two) != flags.fingerprint(program, config)


SHARDED = [  # noise, opponents of a pool, graphs, images, memories, a replay of images
    "snake:rainbow",
    "two_snake:curriculum",
    "durotaxis:linear:agent.minibatches=4",
    "durotaxis:hybrid:agent.minibatches=4",
    "gymnax:ppo_minatar:agent.shuffle_group=4",
    "gymnax:recurrent:agent.minibatches=2",
    "gymnax:dqn_minatar",
    "gymnax:sac",
]


@pytest.mark.slow
def test_devices_exchange_sums_alone_in_real_programs():
    results = answers(*SHARDED, module="tests.train.sharded_programs")
    for collectives, params in results.values():
        assert_only_sums(collectives, params)
