"""Where children land, as laws with a likelihood: in a preferred direction, or in any.

`directed`: at the Hill distance r(I) from the parent (`rules.hill_distance`), in a direction drawn
from a von Mises distribution. `isotropic`: as `rules.isotropic_children` has it. Places are
observed with a normal error. Errors of parent and child are part of a displacement, so its
likelihood is

    p(d) = ∫ N(d; r u(φ), s² I) VonMises(φ; θ, κ) dφ
         = exp(-(|d|² + r²) / 2 s²) I₀(|r d / s² + κ u(θ)|) / (2π s² I₀(κ)),

in closed form, with s² the variance of both errors and of the scatter of landing places. Axes: B
displacements, P parameters.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.durotaxis import rules
from envs.durotaxis.tracks.bessel import log_i0e

NAMES = ("gamma", "alpha", "noise", "theta", "kappa", "error", "scatter")
"""The parameters, in order."""
POSITIVE = ("gamma", "alpha", "kappa", "error")
"""Those that are fitted as logarithms. `noise` and `scatter` may be 0, where a logarithm has no
end, and are fitted as they are, or as squares where their sign makes no difference."""
SQUARED = {"directed": ("scatter",), "isotropic": ("noise", "scatter")}
SMALLEST_SQUARE = 1e-8
"""Squares below this count as 0: the square root has no derivative there."""
REACHES = np.linspace(-5, 5, 101).astype(np.float32)
"""Standard normal deviates of the isotropic reach at which its density is summed."""


class Spawning(NamedTuple):
    """The numbers of a law of spawning; scalars."""

    gamma: Any  # px, distance on very stiff ground; isotropic: the reach R of `isotropic_terms`
    alpha: Any  # stiffness at which that is half
    noise: Any  # px, added to the distance; isotropic: times a normal deviate
    theta: Any = 0.0  # radians, mean direction, from x towards y
    kappa: Any = 1.0  # concentration around it; 0: any direction
    error: Any = 0.0  # px, standard deviation of an observed coordinate
    scatter: Any = 0.0  # px, that of where children land about the law


class Displacements(NamedTuple):
    """Vectors from parents to children as they were observed, and repeated looks at one place."""

    distance: Any  # [B] px
    angle: Any  # [B] radians, from x towards y
    stiffness: Any  # [B] under the parent
    variance: Any  # [B] of each coordinate, in squared errors of a single observation
    weight: Any  # [B] 1, or 0 in padding
    squares: Any  # sum of squared deviations from means of the same place, px²
    freedom: Any  # degrees of freedom of that sum


def directed_terms(theta: jax.Array, data: Displacements) -> jax.Array:
    """The terms `[B + 1]` of the log-likelihood of fitted parameters `[P]` (see `natural`).

    The last is that of `squares`, which is χ² times the variance of an observation.
    """
    law = natural(theta, "directed")
    radius = rules.hill_distance(data.stiffness, law.gamma, law.alpha, law.noise)
    variance = law.error**2 * data.variance + theta[NAMES.index("scatter")]
    pull = data.distance * radius / variance
    # Differences of large numbers are taken on paper, as float32 would lose them.
    off_axis = 4 * pull * law.kappa * jnp.sin((data.angle - law.theta) / 2) ** 2
    length = jnp.sqrt(jnp.maximum((pull + law.kappa) ** 2 - off_axis, 1e-12))
    terms = -((data.distance - radius) ** 2) / (2 * variance)
    terms -= off_axis / (length + pull + law.kappa)
    terms += log_i0e(length) - log_i0e(law.kappa) - jnp.log(2 * jnp.pi * variance)
    return jnp.append(data.weight * terms, _error_term(law.error, data))


def isotropic_terms(theta: jax.Array, data: Displacements) -> jax.Array:
    """The terms `[B + 1]` of the log-likelihood; direction and scatter are not part of this law.

    The standard deviation of a coordinate is 1 + 2 R with R = max(0, Hill distance + `noise` ε):
    the density is summed over ε.
    """
    law = natural(theta, "isotropic")
    reach = rules.hill_distance(data.stiffness[:, None], law.gamma, law.alpha, 0.0)
    reach = jnp.maximum(reach + law.noise * REACHES[None], 0.0)
    variance = (1 + 2 * reach) ** 2 + law.error**2 * data.variance[:, None]
    log_density = -(data.distance[:, None] ** 2) / (2 * variance) - jnp.log(2 * jnp.pi * variance)
    weights = np.exp(-(REACHES**2) / 2)
    log_weights = np.log(weights / weights.sum())[None]
    terms = jax.nn.logsumexp(log_density + log_weights, axis=1)
    return jnp.append(data.weight * terms, _error_term(law.error, data))


TERMS = {"directed": directed_terms, "isotropic": isotropic_terms}
PARAMETERS = {
    "directed": NAMES,
    "isotropic": ("gamma", "alpha", "noise", "error"),
}
"""The parameters that each law has."""


def natural(theta: jax.Array, law: str) -> Spawning:
    """The numbers of a law from fitted parameters `[P]`."""

    def number(name: str, value: jax.Array) -> jax.Array:
        if name in SQUARED[law]:
            return jnp.sqrt(jnp.maximum(value, SMALLEST_SQUARE))
        return jnp.exp(value) if name in POSITIVE else value

    return Spawning(*(number(name, theta[i]) for i, name in enumerate(NAMES)))


def land(
    key: jax.Array,
    law: Spawning,
    spawning: str,
    x: jax.Array,
    y: jax.Array,
    stiffness: jax.Array,
    width: rules.Number,
    height: rules.Number,
) -> tuple[jax.Array, jax.Array]:
    """Where children of parents at (x, y) `[C]` land, px; consumes the key."""
    angle_key, normal_key = jax.random.split(key)
    normals = jax.random.normal(normal_key, (3, x.size)).T
    if spawning == "isotropic":
        spread = rules.hill_distance(stiffness, law.gamma, law.alpha, law.noise * normals[:, 0])
        spread = 1 + 2 * jnp.maximum(spread, 0)
        offset_x, offset_y = spread * normals[:, 1], spread * normals[:, 2]
    else:
        radius = rules.hill_distance(stiffness, law.gamma, law.alpha, law.noise)
        angle = von_mises(angle_key, law.theta, law.kappa, x.size)
        offset_x = radius * jnp.cos(angle) + law.scatter * normals[:, 1]
        offset_y = radius * jnp.sin(angle) + law.scatter * normals[:, 2]
    return rules.clamp(x + offset_x, y + offset_y, width, height)


def von_mises(
    key: jax.Array, mean: float | jax.Array, kappa: float | jax.Array, count: int
) -> jax.Array:
    """Angles `[count]` about `mean`, radians, by rejection (Best & Fisher 1979); consumes the key.

    Each of 16 proposals is accepted with a probability of 0.65 at least: of 10⁷ angles one is the
    last of them all. Above a `kappa` of 1,000, where float32 is too coarse for that, normal ones.
    """
    proposal_key, sign_key, normal_key = jax.random.split(key, 3)
    concentration = jnp.clip(jnp.asarray(kappa, jnp.float32), 1e-3, 1e3)
    tau = 1 + jnp.sqrt(1 + 4 * concentration**2)
    rho = (tau - jnp.sqrt(2 * tau)) / (2 * concentration)
    r = (1 + rho**2) / (2 * rho)
    uniform = jax.random.uniform(proposal_key, (2, 16, count), minval=1e-7)
    z = jnp.cos(jnp.pi * uniform[0])
    cosine = (1 + r * z) / (r + z)
    c = concentration * (r - cosine)
    accepted = jnp.log(c / uniform[1]) + 1 - c >= 0
    first = jnp.argmax(accepted, axis=0)
    cosine = jnp.take_along_axis(cosine, first[None], axis=0)[0]
    sign = jnp.where(jax.random.bernoulli(sign_key, shape=(count,)), 1.0, -1.0)
    rejected = sign * jnp.arccos(jnp.clip(cosine, -1.0, 1.0))
    normal = jax.random.normal(normal_key, (count,)) / jnp.sqrt(jnp.maximum(kappa, 1e3))
    return mean + jnp.where(jnp.asarray(kappa) > 1e3, normal, rejected)


def _error_term(error: jax.Array, data: Displacements) -> jax.Array:
    return -data.freedom * jnp.log(error) - data.squares / (2 * error**2)
