"""Policies that are exported once for the tests of a file."""

from pathlib import Path

import pytest

from tests.train.policies.exports import export
from train.host.program import Run


@pytest.fixture(scope="module")
def ppo_export(tmp_path_factory) -> tuple[Run, Path]:
    """A run of PPO, and the policy of its last seed."""
    return export("ppo", tmp_path_factory)


@pytest.fixture(scope="module", params=["ppo", pytest.param("dqn", marks=pytest.mark.slow)])
def each_export(request, tmp_path_factory) -> tuple[Run, Path]:
    """A run of each agent, and the policy of its last seed."""
    return export(request.param, tmp_path_factory)
