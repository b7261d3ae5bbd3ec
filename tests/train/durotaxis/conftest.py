"""A small colony and its episodes, made once for the tests of a file."""

from typing import Any

import jax
import pytest

from jaxrl.types import Agent
from tests.train.durotaxis.colonies import COUNT, SMALL
from train.durotaxis.config import make_env
from train.durotaxis.episodes import playing as colonies
from train.durotaxis.episodes.record import Episode


@pytest.fixture(scope="module")
def parts() -> tuple[Any, ...]:
    """An agent that acts at random, so that there is little to compile."""
    env, params = make_env(SMALL)
    act = lambda state, memory, obs, key: (env.action_space(params).sample(key), memory, ())
    refuse = lambda *_: pytest.fail("it learns nothing")
    return env, params, Agent(refuse, lambda: (), act, refuse)


@pytest.fixture(scope="module")
def episodes(parts) -> list[Episode]:
    return colonies.play(parts[0], parts[1], parts[2], (), jax.random.key(3), COUNT)
