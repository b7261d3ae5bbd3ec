"""What Gymnasium makes by name is registered before any test."""

import pytest

from envs.gymnasium_adapter import register


@pytest.fixture(scope="module", autouse=True)
def ids() -> list[str]:
    return register()
