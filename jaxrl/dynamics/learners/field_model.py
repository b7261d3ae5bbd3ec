"""The model of a vector field that `field_learner` learns: its settings, its bases, its velocity.

The state moves by z' = z + dt (f(z) + g(u, z)) + √(q dt) ε. The effect g of inputs and the
observation model are known; f is a weighted sum of the functions of a basis, whose weights have an
exact Gaussian posterior, or a family of fields with few parameters, linearised. Components may be
angles: then the basis sees sine and cosine.

Axes: d latent dimensions, m inputs, n channels, p parameters, C functions.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl.checks import Positive, Span
from jaxrl.dependent_fields import unless
from jaxrl.dynamics import bases, model_choice, posterior, rbf
from jaxrl.dynamics.bases import Basis
from jaxrl.dynamics.planning import distillation, stimulation
from jaxrl.dynamics.planning.stimulation import Constants
from jaxrl.dynamics.posterior import Posterior
from jaxrl.numerics.linalg import matmul
from jaxrl.types import PyTree

MOST_GRID_DIMS = 2
"""In more dimensions auto leaves the bumps out: 15 along each axis are 3,375 in three."""


@struct.dataclass
class Config:
    """The prior, and how inputs are chosen."""

    grid: rbf.Grid = rbf.Grid()
    """bumps: their centres, which must cover all reachable states."""
    basis: Literal["auto", bases.Kind] = struct.field(pytree_node=False, default="bumps")
    """What the field is a sum of: Gaussian bumps on a grid, for two or three dimensions; random
    waves (fourier) in any; or polynomials. auto: all that suit, the likeliest so far counts."""
    linear: bool = struct.field(pytree_node=False, default=False)
    """Whether there is a linear part beside the functions; auto tries waves with and without."""
    prior_linear: Positive = 1.0
    """Prior standard deviation of the entries of a linear part, per unit of time."""
    fourier: bases.Fourier = bases.Fourier()
    """fourier: the waves."""
    polynomial: bases.Polynomial = bases.Polynomial()
    """polynomial: their degree."""
    prior_speed: Positive = 0.5
    """Prior root mean square of a component of the field, or of a family's parameter."""
    process_noise: Positive = 0.01
    """q, variance per unit of time: known, or a first guess."""
    noise_strength: Span = float("inf")
    """Weight of that guess, as a number of observed outputs; infinite: it is known."""
    belief: Literal["exact", "filtered"] = struct.field(pytree_node=False, default="exact")
    """Whether the observation is the state, or the state is filtered from it."""
    first_variance: Annotated[
        Positive, unless("belief", "exact", why="the first state is observed")
    ] = 1.0
    """Variance of each component of the first state, whose mean is 0."""
    policy: stimulation.Config = stimulation.Config()
    """How inputs are chosen."""

    @property
    def functions(self) -> Basis:
        """The basis; of several candidates that of the first one."""
        by_kind = {"bumps": self.grid, "fourier": self.fourier, "polynomial": self.polynomial}
        return by_kind[candidates(self)[0].basis if self.basis == "auto" else self.basis]

    @property
    def num_features(self) -> int:
        """C, those of the linear part included; of several candidates the most that one has."""
        if self.basis == "auto":
            return max(each.num_features for each in candidates(self))
        return self.functions.num_features + self.linear * (self.functions.dims + 1)


def candidates(config: Config) -> tuple[Config, ...]:
    """The settings of each basis that is considered: one, or for auto all that suit."""
    if config.basis != "auto":
        return (config,)
    kinds: list[tuple[bases.Kind, bool]] = [("fourier", False), ("fourier", True)]
    kinds.append(("polynomial", False))
    if config.grid.dims <= MOST_GRID_DIMS:
        kinds.insert(0, ("bumps", False))
    return tuple(replace(config, basis=kind, linear=linear) for kind, linear in kinds)


class Candidate(NamedTuple):
    """A basis that is considered."""

    posterior: Posterior
    log_evidence: jax.Array  # log p(samples), up to a constant that all candidates share


class System(NamedTuple):
    """The known parts of an experiment; each function takes its numbers last."""

    effect: Callable[[jax.Array, jax.Array, PyTree], jax.Array]
    """`(u [m], z [d], numbers) -> [d]`: what an input adds to the velocity."""
    emission: Callable[[jax.Array, PyTree], tuple[jax.Array, jax.Array]]
    """`(z [d], numbers) -> (mean [n], variance [n])` of an observation."""
    family: Callable[[jax.Array, jax.Array], jax.Array] | None = None
    """`(z [d], e [p]) -> velocity [d]`: a family of fields with few parameters; None: the basis."""
    family_start: tuple[float, ...] = ()
    """Prior mean of the family's parameters e."""
    circular: tuple[int, ...] = ()
    """Components of the state that are angles within ±π, in rad; the basis sees the others as they
    are, and then the sines and the cosines of these."""
    angular_channels: tuple[int, ...] = ()
    """Channels that are such angles, which jump by 2 π where the state goes round."""


class State(NamedTuple):
    posterior: Posterior  # of the likeliest candidate, with zeros up to the size of the largest
    known: Constants
    relative_noise: jax.Array  # variance of the last state's observation, in units of its noise
    distilled: distillation.State | tuple[()] = ()  # only for the objective rnd
    candidates: tuple[Candidate, ...] = ()  # only if there are several
    place: jax.Array | tuple[()] = ()  # int32, of the likeliest


def information_gain(before: State, after: State) -> jax.Array:
    """Nats about the field from the samples between two states, never negative.

    Of the basis that is the likeliest after them: each has gained another amount so far, so that
    `Posterior.information` jumps where another one becomes the likeliest.
    """
    if not after.candidates:
        return after.posterior.information - before.posterior.information
    pairs = zip(before.candidates, after.candidates, strict=True)
    gains = [new.posterior.information - old.posterior.information for old, new in pairs]
    assert not isinstance(after.place, tuple)
    return model_choice.select(after.place, gains)


def dims_of(config: Config, system: System) -> int:
    """d, dimensions of the state: those of the basis, but that an angle has two there."""
    return config.functions.dims - len(system.circular)


def embed(config: Config, system: System, z: jax.Array) -> jax.Array:
    """What the basis sees of states `[..., d]`, `[..., d + angles]`; see `System.circular`.

    Circles have the radius 1, but for polynomials that of their box, so that they fill it as the
    other components do.
    """
    radius = config.polynomial.half_width if config.basis == "polynomial" else 1.0
    return without_jumps(system, z, radius)


def without_jumps(system: System, z: jax.Array, radius: float = 1.0) -> jax.Array:
    """States `[..., d]` with sines and cosines of their angles, times `radius`, behind the rest."""
    if not system.circular:
        return z
    others = [i for i in range(z.shape[-1]) if i not in system.circular]
    angles = z[..., jnp.array(system.circular)]
    circles = [radius * jnp.sin(angles), radius * jnp.cos(angles)]
    return jnp.concatenate([z[..., jnp.array(others, int)], *circles], axis=-1)


def wrap(system: System, z: jax.Array) -> jax.Array:
    """States, or differences of states, `[..., d]` with their angles within ±π."""
    if not system.circular:
        return z
    angles = jnp.array(system.circular)
    return z.at[..., angles].set((z[..., angles] + math.pi) % (2 * math.pi) - math.pi)


def unroll(system: System, obs: jax.Array, mean: jax.Array) -> jax.Array:
    """An observation `[n]` with its angles, by whole turns, next to those of its `mean` `[n]`."""
    if not system.angular_channels:
        return obs
    channels = jnp.array(system.angular_channels)
    difference = obs[channels] - mean[channels]
    turns = jnp.round(difference / (2 * math.pi))
    return obs.at[channels].add(-2 * math.pi * turns)


def weight_variance(config: Config) -> jax.Array:
    """Prior variance of a function's weight, of which the field has the prior speed."""
    return config.prior_speed**2 / bases.mean_square(config.functions)


def features(
    config: Config, system: System, place: jax.Array | tuple[()], z: jax.Array
) -> jax.Array:
    """Functions of `z` `[..., d]` that the field is a sum of: `[..., C]`.

    A linear part is in units in which its weights have the prior of the others.
    """
    if config.basis == "auto":
        assert not isinstance(place, tuple)  # which it is where there is one candidate
        of_each = [
            partial(padded_features, config.num_features, x, system) for x in candidates(config)
        ]
        return jax.lax.switch(place, of_each, z)
    embedding = embed(config, system, z)
    functions = bases.features(config.functions, embedding)
    if not config.linear:
        return functions
    unit = config.prior_linear / jnp.sqrt(weight_variance(config))
    one = jnp.ones_like(embedding[..., :1])
    return jnp.concatenate([functions, unit * embedding, unit * one], axis=-1)


def padded_features(size: int, config: Config, system: System, z: jax.Array) -> jax.Array:
    """`features` of one basis, with zeros at the end: `[..., size]`."""
    values = features(config, system, (), z)
    return jnp.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, size - values.shape[-1])])


def velocity(config: Config, system: System, state: State, z: jax.Array) -> jax.Array:
    """The posterior mean of the field, `[..., d]` at `z` `[..., d]`."""
    family, mean = system.family, state.posterior.mean
    if family is not None:
        return jnp.vectorize(lambda z: family(z, mean), signature="(d)->(d)")(z)
    if config.basis == "auto" or config.linear:
        return matmul(features(config, system, state.place, z), mean)
    return bases.weighted_sum(config.functions, mean, embed(config, system, z))


def design(config: Config, system: System, state: State, z: jax.Array) -> jax.Array:
    """Derivative of the next state after `z` `[d]` by the parameters: `[p]` shared, or `[d, p]`.

    0 at a wall, where the cause of a movement cannot be identified.
    """
    dt, family = state.known.dt * is_free(system, state.known, z), system.family
    if family is None:
        return dt * features(config, system, state.place, z)
    return dt * jax.jacfwd(lambda e: family(z, e))(state.posterior.mean)


def is_free(system: System, constants: Constants, z: jax.Array) -> jax.Array:
    """Whether the state `[d]` touches no wall; angles never do."""
    inside = jnp.abs(z) < 0.999 * constants.reach
    return jnp.all(inside.at[jnp.array(system.circular)].set(True) if system.circular else inside)


def next_state(
    config: Config, system: System, state: State, u: jax.Array, z: jax.Array
) -> jax.Array:
    """The expected next state `[d]`."""
    constants = state.known
    push = system.effect(u, z, constants.numbers)
    after = z + constants.dt * (velocity(config, system, state, z) + push)
    clipped = jnp.clip(after, -constants.reach, constants.reach)
    if not system.circular:
        return clipped
    angles = jnp.array(system.circular)  # which know no walls
    return clipped.at[angles].set(wrap(system, after)[angles])


def uncertainty(config: Config, system: System, state: State, z: jax.Array) -> jax.Array:
    """Posterior variance of a component of the velocity at `z` `[d]`."""
    relative = posterior.predictive_variance(state.posterior, design(config, system, state, z))
    return jnp.mean(relative) * posterior.noise_variance(state.posterior) / state.known.dt**2
