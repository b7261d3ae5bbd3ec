"""The settings of state-space models that learn online."""

from collections.abc import Sequence
from typing import Annotated

from flax import struct

from jaxrl import checks
from jaxrl.checks import Count, Positive, Range
from jaxrl.dynamics.planning import standstill, stimulation, stimulation_config
from jaxrl.dynamics.state_space.field_posterior import Prior
from jaxrl.dynamics.state_space.filter import Prediction
from jaxrl.dynamics.state_space.model import StateSpace, check


@struct.dataclass
class Config:
    """How the models learn and how inputs are chosen."""

    capacity: Count = struct.field(pytree_node=False, default=2_000)
    """T, the first samples that are stored; later ones are learned from once, as they come."""
    first_fit: Count = 100
    """Samples before the first fit."""
    growth: Annotated[float, Range(least=1.01)] = 1.25
    """How many times more samples there are at the next fit."""
    first_steps: Count = 6
    """Steps of scoring of fits that begin with principal components: the first one, and another one
    whenever samples have doubled."""
    steps: Count = 2
    """Of each later fit, which begins where the last one ended; the likelier one of both counts."""
    prior: Prior = Prior(weights=0.1)
    """Standard deviations before any data; states have a variance near 1."""
    prediction: Prediction = struct.field(pytree_node=False, default="extended")
    """How the filter predicts: extended or cubature."""
    region: Positive = 3.0
    """How far from the mean of all states so far plans ask for information: the square of the
    distance, in units of that of the rim of a ball that states of their covariance would fill
    uniformly. Below 1 it shrinks; well above 1 plans drive the state ever farther, if they can."""
    random_hold: Count = 20
    """Steps for which myopic and plans hold random inputs: before the first fit and when the
    state has stood still."""
    when_still: standstill.Config = standstill.Config()
    """When plans have kept the state where it is, in units of all states' standard deviation."""
    policy: stimulation.Config = stimulation.Config()
    """How inputs are chosen."""


def check_config(config: Config, models: Sequence[StateSpace]) -> None:
    """Raises ValueError for out-of-range or inconsistent settings."""
    checks.config_of(Config, config)
    stimulation.check_config(config.policy)
    if isinstance(config.first_fit, int) and config.first_fit > config.capacity:
        raise ValueError(
            f"first_fit is {config.first_fit}, expected at most capacity={config.capacity}: fits "
            "are to the samples that are stored, and there would be none"
        )
    if not models:
        raise ValueError("no model to learn: give at least one")
    for model in models:
        check(model)
    sizes = {(x.dims, x.num_inputs, len(x.is_count), x.effect) for x in models}
    if len(sizes) > 1:
        raise ValueError("models differ in more than their fields: give them the same sizes")
    stimulation_config.check_goal(config.policy, len(models[0].is_count))
