"""A record of small models, fitted once for the tests of a file."""

import jax
import numpy as np
import pytest

from jaxrl.dynamics.bases import Polynomial
from jaxrl.dynamics.state_space.information import Information
from jaxrl.dynamics.state_space.model import Params, StateSpace
from tests.jaxrl.dynamics.state_space.models import random_model, simulate
from tests.jaxrl.dynamics.state_space.posteriors import MIXED, collect


@pytest.fixture(scope="module")
def record_and_fit() -> tuple[StateSpace, Params, Information]:
    """A model of mixed channels and the information of a short record, with C and b."""
    with jax.enable_x64(True):
        model, params = random_model(Polynomial(2, 2, 2.0), MIXED, scale=0.2)
        record = simulate(model, params, 60, 0.1)
        total = collect(model, params, record, with_channels=True)
        return model, *jax.tree.map(np.asarray, (params, total))
