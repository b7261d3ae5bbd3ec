"""When an experiment stops: once it has gained little information for long enough.

The expected gain of information is that of the samples just taken: for a linear model it depends
on where they were taken and not on what was seen. All is of one experiment; `vmap` maps over more.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.types import PyTree


class StopRule(NamedTuple):
    """An experiment stops when it has gained less than `gain` nats a sample for `over` samples."""

    gain: float | jax.Array
    over: int | jax.Array


class Watch(NamedTuple):
    """Whether an experiment still gains information."""

    below: jax.Array  # int32, samples in a row that gained less than is asked for
    samples: jax.Array  # int32, so far
    stopped_at: jax.Array  # int32, samples after which it stopped; 0 while it goes on
    measures: dict[str, jax.Array]  # the newest

    @property
    def goes_on(self) -> jax.Array:
        """Bool, whether the experiment has not stopped."""
        return self.stopped_at == 0


def begun(measures: dict[str, Any]) -> Watch:
    """Before the first sample; `measures` have the shapes of those to come."""
    none = jnp.zeros((), jnp.int32)
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), measures)
    return Watch(none, none, none, nothing)


def watched(
    rule: StopRule, watch: Watch, gain: jax.Array, samples: int, measures: dict[str, jax.Array]
) -> Watch:
    """After so many `samples`, which gained `gain` nats; nothing changes once it has stopped."""
    poor = gain < rule.gain * samples
    below = jnp.where(poor, watch.below + samples, 0)
    count = watch.samples + samples
    own = {name: measures[name] for name in watch.measures}
    now = Watch(below, count, jnp.where(below >= rule.over, count, 0), own)
    return kept(watch.goes_on, now, watch)


def kept(goes_on: jax.Array, new: PyTree, old: PyTree) -> PyTree:
    """`new` of an experiment that goes on, `old` of one that has stopped."""
    return jax.tree.map(lambda x, y: jnp.where(goes_on, x, y), new, old)
