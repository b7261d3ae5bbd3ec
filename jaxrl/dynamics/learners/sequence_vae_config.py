"""The settings of a sequence VAE that learns online, and what does not fit together.

W steps are in a window, and R the information is recomputed from.
"""

from typing import Literal

import optax
from flax import struct

from jaxrl import checks
from jaxrl.checks import Count, CountOrZero, NonNegative, Positive, TwoOrMore
from jaxrl.dynamics import sequence_elbo
from jaxrl.dynamics.planning import stimulation


@struct.dataclass
class Config:
    """How the model learns and how inputs are chosen."""

    elbo: sequence_elbo.Config = sequence_elbo.Config(samples=1)
    """The ELBO; its dt is that of the experiment. More windows are better than more samples."""
    window: TwoOrMore = struct.field(pytree_node=False, default=20)
    """W, steps of a window."""
    older_windows: CountOrZero = struct.field(pytree_node=False, default=3)
    """Windows from the replay in each gradient step, beside the newest; 0: no replay."""
    capacity: Count = struct.field(pytree_node=False, default=10_000)
    """Steps of each stream in the replay."""
    gradient_steps: Count = struct.field(pytree_node=False, default=1)
    """Gradient steps after each rollout."""
    learning_rate: Positive = 3e-3
    """Step size of Adam."""
    field_decay: NonNegative = 0.5
    """Weight decay of the field, per unit of step size."""
    max_norm: Positive = 10.0
    """Gradients are clipped to this norm."""
    schedule: sequence_elbo.Schedule = struct.field(pytree_node=False, default="none")
    """Schedule of the weight of the divergences; see `sequence_elbo.beta_schedule`."""
    beta: NonNegative = struct.field(pytree_node=False, default=1.0)
    """Weight of the divergences."""
    warmup: CountOrZero = struct.field(pytree_node=False, default=0)
    """Gradient steps with weight 0, before the schedule begins."""
    period: TwoOrMore = struct.field(pytree_node=False, default=1_000)
    """Gradient steps of the schedule's ramp, or of a cycle."""
    state: Literal["carry", "window", "predict"] = struct.field(pytree_node=False, default="carry")
    """How the state is estimated while acting: from the filter's carry; by filtering the newest
    window again; or, for comparison, by the dynamics alone after the first observation."""
    prior_speed: Positive = 0.5
    """Prior root mean square of a component of the field, for the policies."""
    noise: Positive = 0.01
    """Process noise per unit of time before any data; later the model's own is used."""
    recount_steps: Count = 500
    """Rollouts after which the information is recomputed."""
    recount_over: Count = struct.field(pytree_node=False, default=1_000)
    """R, newest steps that it is recomputed from."""
    policy: stimulation.Config = stimulation.Config()
    """How inputs are chosen."""


def make_optimizer(config: Config) -> optax.GradientTransformation:
    """Adam with weight decay of the field, which makes it 0 where there are no data."""
    only_field = lambda params: {name: name == "field" for name in params}
    return optax.chain(
        optax.clip_by_global_norm(config.max_norm),
        optax.adamw(config.learning_rate, weight_decay=config.field_decay, mask=only_field),
    )


def check_config(config: Config) -> None:
    """Raises ValueError for unknown names and out-of-range or inconsistent settings."""
    checks.config_of(Config, config)
    stimulation.check_config(config.policy)
    if config.window <= config.elbo.k_steps:
        raise ValueError(
            f"window is {config.window}, expected more than elbo.k_steps={config.elbo.k_steps}: "
            "a window must contain targets K steps ahead"
        )
    if config.capacity < config.window:
        raise ValueError(
            f"capacity is {config.capacity}, expected at least window={config.window} steps"
        )
