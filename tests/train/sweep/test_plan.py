"""A plan is checked before anything is compiled."""

import pytest

from train.host.errors import UsageError
from train.host.plain_config import with_field
from train.host.program import find
from train.sweep import plan


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    ("name", "preset", "field", "right", "wrong"),
    [
        ("durotaxis", "linear", "env.threshold_nodes", (50.0, 60.0), 200.0),
        ("snake", "rainbow", "agent.value_low", (-10.0, -20.0), 200.0),
    ],
)
def test_every_configuration_is_refused_as_a_run_of_its_own(
    name, preset, field, right, wrong, place
):
    """What contradicts another field is refused wherever it stands among the values."""
    program = find(name, "here")
    config = program.presets[preset].config
    with pytest.raises(ValueError, match=r"expected") as alone:
        program.training(with_field(config, field, wrong))
    values = [*right[:place], wrong, *right[place:]]
    trials = plan.trials([{field: value} for value in values], [0, 1])
    with pytest.raises(UsageError) as refused:
        plan.groups(program, config, preset, trials)
    assert str(refused.value) == f"{field}={wrong:g}: {alone.value}"
