"""What the adapter cannot do is refused in one line; it alone needs Gymnasium."""

import re
from pathlib import Path

import numpy as np
import pytest

import envs
from envs.gymnasium_adapter import GymnasiumEnv, GymnasiumVectorEnv
from envs.vector_field import VectorField
from tests.envs.gymnasium_adapter.environments import SNAKE


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GymnasiumEnv("Snake-v0"), "env is a str; expected an environment"),
        (lambda: GymnasiumEnv(SNAKE, render_mode="human"), "'human'; expected None or 'rgb_array'"),
        (lambda: GymnasiumEnv(VectorField(), None, "rgb_array"), "'rgb_array'; expected None$"),
        (lambda: GymnasiumEnv(SNAKE).step(0), "there is no episode to step in; call reset first"),
        (
            lambda: GymnasiumEnv(SNAKE).reset(seed=-1),
            "seed is -1; expected an integer of at least 0",
        ),
        (
            lambda: GymnasiumEnv(SNAKE).reset(options={"a": 1}),
            r"options are \['a'\]; expected none",
        ),
        (lambda: GymnasiumVectorEnv(SNAKE, 0), "num_envs is 0; expected an integer of at least 1"),
        (lambda: GymnasiumVectorEnv(SNAKE, True), "num_envs is True; expected an integer"),
        (
            lambda: GymnasiumVectorEnv(SNAKE, 2, None, "Never"),
            "autoreset_mode is 'Never'; expected one of NextStep, SameStep, Disabled",
        ),
        (lambda: GymnasiumVectorEnv(SNAKE, 2).step([0, 0]), "there are no episodes to step in"),
        (
            lambda: GymnasiumVectorEnv(SNAKE, 2).reset(seed=1.5),  # type: ignore
            "seed is 1.5; expected an integer",
        ),
        (lambda: GymnasiumVectorEnv(SNAKE, 2).reset(seed=[1]), "got 1 of 2 seeds; expected all"),
        (
            lambda: GymnasiumVectorEnv(SNAKE, 2).reset(options={"reset_mask": [True, True]}),
            r"reset_mask is \[True, True\]; expected a NumPy array, bool \[2\]",
        ),
        (
            lambda: GymnasiumVectorEnv(SNAKE, 2).reset(options={"reset_mask": np.eye(2)[0] > 0}),
            "reset_mask leaves environments without an episode; reset all",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_only_the_adapter_imports_gymnasium():
    root = Path(envs.__file__).parent
    needs = re.compile(r"^\s*(import|from) gymnasium\b", re.MULTILINE)
    importers = {
        path.relative_to(root).parts[0]
        for path in root.rglob("*.py")
        if needs.search(path.read_text())
    }
    assert importers == {"gymnasium_adapter"}
