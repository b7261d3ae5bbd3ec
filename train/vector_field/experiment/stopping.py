"""When an experiment stops: once it has gained little information for long enough.

The expected gain of information is that of the samples just taken: for a linear model it depends
on where they were taken and not on what was seen, but for which of several bases is the likeliest.
All is of one experiment; `vmap` maps over more.
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


def first_watch(measures: dict[str, Any]) -> Watch:
    """The watch before the first sample; `measures` have the shapes of those to come."""
    none = jnp.zeros((), jnp.int32)
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), measures)
    return Watch(none, none, none, nothing)


def update_watch(
    rule: StopRule, watch: Watch, gain: jax.Array, samples: int, measures: dict[str, jax.Array]
) -> Watch:
    """Counts `samples` that gained `gain` nats; nothing changes once the experiment has stopped."""
    poor = gain < rule.gain * samples
    below = jnp.where(poor, watch.below + samples, 0)
    count = watch.samples + samples
    newest_measures = {name: measures[name] for name in watch.measures}
    new_watch = Watch(below, count, jnp.where(below >= rule.over, count, 0), newest_measures)
    return select(watch.goes_on, new_watch, watch)


def select(goes_on: jax.Array, new: PyTree, old: PyTree) -> PyTree:
    """Selects `new` while the experiment goes on, and `old` once it has stopped."""
    return jax.tree.map(lambda x, y: jnp.where(goes_on, x, y), new, old)
