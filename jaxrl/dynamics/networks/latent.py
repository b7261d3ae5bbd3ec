"""A sequence VAE: a filter, a vector field, effects of actions and a decoder, learned together.

After the family of Zhao & Park (2020, "Variational online learning of neural dynamics"). The parts
are modules of `recognition`, `fields` and `decoder`; parameters are a dict of their trees:

    recognition    of the filter
    field          of f, a leading axis M on every leaf: M members of an ensemble
    effect         of g
    decoder        of the decoder, its noise apart
    noise          [n] raw variance of the decoder's Gaussian noise, absent with Poisson counts
    process        [d] raw process noise

Letters: T times, S samples, K steps ahead, d latent dimensions, n channels, m action dimensions.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics import sequence_elbo
from jaxrl.dynamics.networks import imputation
from jaxrl.dynamics.networks.decoder import Decoder, raw_variance
from jaxrl.dynamics.networks.fields import (
    ActionEffect,
    FourierField,
    LinearField,
    MLPField,
    RBFField,
)
from jaxrl.dynamics.networks.recognition import SMALLEST, Recognition
from jaxrl.dynamics.sequence_elbo import Config, DiagonalBelief, Dynamics
from jaxrl.types import Metrics, PyTree

PARTS = ("recognition", "field", "effect", "decoder", "noise", "process")


class Window(NamedTuple):
    """T consecutive times of one stream; padding, before or after them, is not valid."""

    y: jax.Array  # [T, n]
    before: jax.Array  # [T, m] the action before each observation; zeros where there was none
    valid: jax.Array  # bool [T]
    observed: jax.Array | None = None  # bool [T, n], false where missing; None: all are observed


@dataclass(frozen=True)
class SequenceVAE:
    """The model; functions of its parameters, pure, for one window or one point.

    Raises ValueError for parts of different latent dimensions, for no members and for unknown names
    in `held`.
    """

    recognition: Recognition
    field: LinearField | MLPField | RBFField | FourierField
    effect: ActionEffect
    decoder: Decoder
    members: int = 1
    """M, size of the ensemble of fields; the first is the model, the others learn from its states,
    for the disagreement between them."""
    process_variance: float = 0.5
    """Initial q, per unit of time; at dt = 0.1 it is about the initial variance of the filter."""
    held: tuple[str, ...] = ()
    """Parts of `PARTS` that are fixed: their gradients are 0."""

    def __post_init__(self):
        sizes = {x.latent for x in (self.recognition, self.field, self.effect, self.decoder)}
        if len(sizes) > 1 or self.members < 1 or not set(self.held) <= set(PARTS):
            raise ValueError(
                f"latent dimensions {sorted(sizes)}, {self.members} members, held {self.held}: "
                f"give all parts one size, at least 1 member, and names of {', '.join(PARTS)}"
            )

    def init(self, key: jax.Array, num_actions: int) -> dict[str, PyTree]:
        """Parameters, for actions of m = `num_actions` numbers; consumes `key`."""
        *keys, field_key = jax.random.split(key, 4)
        z, y, u = (jnp.zeros(x) for x in (self.latent, self.decoder.channels, num_actions))
        field_keys = jax.random.split(field_key, self.members)
        start: Any = self.decoder.init(keys[2], z)
        decoder = dict(start.get("params", {}))
        noise = {"noise": decoder.pop("noise")} if "noise" in decoder else {}
        return {
            "recognition": self.recognition.init(keys[0], self.initial_carry(), y, u),
            "field": jax.vmap(self.field.init, (0, None))(field_keys, z),
            "effect": self.effect.init(keys[1], u, *((z,) if self.effect.depends_on_state else ())),
            "decoder": decoder,
            **noise,
            "process": jnp.full(self.latent, raw_variance(self.process_variance)),
        }

    @property
    def latent(self) -> int:
        """d."""
        return self.field.latent

    def initial_carry(self) -> Any:
        """The carry of the filter before the first observation."""
        return self.recognition.initial_carry()

    def step(self, params: PyTree, carry: Any, y: jax.Array, before: jax.Array):
        """The filter, one step on: `(carry, mean [d], variance [d])` from y `[n]`, u `[m]`."""
        return apply(self.recognition, params["recognition"], carry, y, before)

    def encode(
        self, params: PyTree, carry: Any, window: Window, dt: float | jax.Array | None = None
    ) -> tuple[Any, DiagonalBelief]:
        """The filter over a window that `carry` precedes: the carry after it, and q `[T, d]`.

        Where observations are missing, those expected take their place (see `imputation`); this
        needs `dt`, the time of a step, without which it raises ValueError.
        """
        y, before, valid, observed = window
        if observed is not None:
            if dt is None:
                raise ValueError("observations are missing: give the time of a step, dt")
            filter_model = imputation.Model(
                lambda carry, *now: self.step(params, carry, *now),
                lambda z, u: z + dt * (self.velocity(params, z) + self.push(params, u, z)),
                lambda z: self.emission(params, z)[0],
                self.noise(params) * dt,
            )
            return imputation.encode(filter_model, carry, y, before, valid, observed)
        carry, mean, variance = apply(
            self.recognition, params["recognition"], carry, y, before, valid, method="encode"
        )
        return carry, DiagonalBelief(mean, variance)

    def velocity(self, params: PyTree, z: jax.Array) -> jax.Array:
        """f(z), `[..., d] -> [..., d]`, of the first member."""
        return apply(self.field, jax.tree.map(lambda x: x[0], params["field"]), z)

    def velocities(self, params: PyTree, z: jax.Array) -> jax.Array:
        """f(z) of every member, `[..., d] -> [M, ..., d]`."""
        return jax.vmap(lambda field: apply(self.field, field, z))(params["field"])

    def push(self, params: PyTree, action: jax.Array, z: jax.Array) -> jax.Array:
        """g(u, z), `[..., d]` from u `[..., m]` and z `[..., d]`."""
        state_args = (z,) if self.effect.depends_on_state else ()
        return apply(self.effect, params["effect"], action, *state_args)

    def noise(self, params: PyTree) -> jax.Array:
        """q, `[d]`: process noise, a variance per unit of time."""
        return jax.nn.softplus(params["process"]) + SMALLEST

    def emission(self, params: PyTree, z: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`(mean [..., n], variance [..., n])` of the observation given z `[..., d]`."""
        return apply(self.decoder, decoder_params(params), z)

    def log_prob(
        self, params: PyTree, z: jax.Array, y: jax.Array, observed: jax.Array | None = None
    ) -> jax.Array:
        """log p(y | z), `[...]` from z `[..., d]` and y `[..., n]`, of the channels `observed`."""
        return apply(self.decoder, decoder_params(params), z, y, observed, method="log_prob")

    def loss(
        self,
        params: PyTree,
        window: Window,
        carry: Any,
        key: jax.Array,
        config: Config,
        beta: float | jax.Array = 1.0,
    ) -> tuple[jax.Array, Metrics]:
        """`sequence_elbo.negative_elbo` of a window that `carry` precedes, and its parts.

        Missing channels have no likelihood, and times at which nothing was observed are masked.
        Each further member adds beta times its own divergences, which train its field only;
        `members` among the metrics is their mean. Consumes `key`.
        """
        params = {k: jax.lax.stop_gradient(v) if k in self.held else v for k, v in params.items()}
        _, belief = self.encode(params, carry, window, config.dt)
        dynamics = self._dynamics(params, lambda z: self.velocity(params, z), window)
        draws = sequence_elbo.draw(key, config, *belief.mean.shape)
        observed = window.observed
        if observed is not None:
            any_observed = jnp.any(observed, axis=-1)
            draws = draws._replace(
                keep=any_observed if draws.keep is None else draws.keep & any_observed
            )
            observed = observed[None]  # of every sample
        log_prob = lambda z, y: self.log_prob(params, z, y, observed)
        loss, metrics = sequence_elbo.negative_elbo(
            draws, window.y, window.valid, belief, dynamics, log_prob, config, beta
        )
        if self.members == 1:
            return loss, metrics
        divergences = self._member_divergences(
            params, window, belief, dynamics, draws, config, beta
        )
        return loss + beta * jnp.sum(divergences), {**metrics, "members": jnp.mean(divergences)}

    def _dynamics(self, params: PyTree, velocity: sequence_elbo.Velocity, window: Window):
        """The dynamics in a window, with the field `velocity`."""
        actions, noise = window.before[1:], self.noise(params)
        if self.effect.depends_on_state:
            return Dynamics(velocity, actions, noise, partial(self.push, params))
        return Dynamics(velocity, apply(self.effect, params["effect"], actions), noise)

    def _member_divergences(
        self, params, window, belief, dynamics, draws, config, beta
    ) -> jax.Array:
        """Σ_k w_k KL_k per valid step of every member but the first: `[M - 1]`."""
        valid = window.valid
        state, keep = sequence_elbo.latents(draws, valid, belief, dynamics, config, beta)
        state, belief, fixed_params = jax.lax.stop_gradient((state, belief, params))
        weights = sequence_elbo.kl_weights(config.k_steps, config.decay)

        def divergence(field: PyTree) -> jax.Array:
            member_dynamics = self._dynamics(
                fixed_params, lambda z: apply(self.field, field, z), window
            )
            kl = sequence_elbo.k_step_kl(
                draws.steps, state, belief, valid, keep, member_dynamics, config
            )
            return jnp.sum(weights * kl) / jnp.maximum(jnp.sum(valid), 1)

        # One after the other: batches of such small matrix products are slower on a CPU.
        return jax.lax.map(divergence, jax.tree.map(lambda x: x[1:], params["field"]))


def apply(module: Any, params: PyTree, *args: Any, method: str | None = None) -> Any:
    """`module.apply`, without the union of return types of flax's annotation."""
    return module.apply(params, *args, method=method)


def decoder_params(params: PyTree) -> PyTree:
    """The parameters in the structure of the decoder's module."""
    noise = {"noise": params["noise"]} if "noise" in params else {}
    return {"params": {**params["decoder"], **noise}}
