"""Maximum likelihood of a few parameters, with intervals by profile likelihood.

The interval of a parameter holds every value that the data do not reject: those at which twice the
log-likelihood, maximised over all other parameters, is less than the 95 % quantile of χ²₁ below its
maximum (Wilks 1938; Venzon & Moolgavkar 1988). Unlike one from the curvature it need not be
symmetric, and where data leave a parameter open it has no end, which a curvature cannot say.

All functions are pure and can be mapped over data. Axes: P parameters, n terms, S starts, G points
of a profile.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.numerics import linalg

Terms = Callable[[jax.Array, Any], jax.Array]
"""`(theta [P], data) -> [n]`, the terms of a log-likelihood."""

DROP = 1.920729
"""Half of the 95 % quantile of χ²₁."""
SEARCH, PATH, REFINEMENTS = 60, 6, 6
"""Newton steps from a start and at each point of a profile; halvings of the bracket of an end."""
OUTWARD = 0.4 * 1.35 ** np.arange(16, dtype=np.float32)
"""Points of a profile on each side, in standard errors."""
SIGNS = np.array([-1.0, 1.0], np.float32)
"""The two sides of a profile."""
LONGEST = 2.0
"""The largest change of a parameter in a Newton step."""


class Bounds(NamedTuple):
    """Where parameters are sought, float32 `[P]` each; those that are not `free` stay."""

    low: jax.Array
    high: jax.Array
    free: jax.Array  # bool


class Profile(NamedTuple):
    """How far the log-likelihood falls as one parameter leaves its estimate, on both sides."""

    value: jax.Array  # [2 G + 1], rising
    drop: jax.Array  # [2 G + 1]
    theta: jax.Array  # [2 G + 1, P], all parameters there


class Estimate(NamedTuple):
    """The estimates of parameters, and what the data say of each."""

    theta: jax.Array  # [P]
    low: jax.Array  # [P] ends of the 95 % intervals; -inf where there is none
    high: jax.Array  # [P] inf where there is none
    information: jax.Array  # [P, P] the negative Hessian; identity rows where not free
    log_likelihood: jax.Array
    gradient: jax.Array  # [P], nearly 0 but at bounds
    profile: Profile  # of each parameter: leaves [P, ...]


def fit(terms: Terms, data: Any, starts: jax.Array, bounds: Bounds) -> Estimate:
    """The estimates from the best of several `starts` `[S, P]`, and their profiles."""
    bounds = Bounds(*map(jnp.asarray, bounds))
    climb = lambda start: maximise(terms, data, start, bounds, SEARCH)
    candidates = jax.vmap(climb)(starts)
    heights = jax.vmap(lambda theta: jnp.sum(terms(theta, data)))(candidates)
    best = jnp.argmax(jnp.where(jnp.isfinite(heights), heights, -jnp.inf))
    theta = candidates[best]
    gradient, information = derivatives(terms, data, theta, bounds.free)
    profile, low, high = profiles(terms, data, theta, information, bounds)
    height = jnp.sum(terms(theta, data))
    return Estimate(theta, low, high, information, height, gradient, profile)


def maximise(
    terms: Terms, data: Any, start: jax.Array, bounds: Bounds, iterations: int
) -> jax.Array:
    """The parameters `[P]` after damped Newton steps (Levenberg 1944), none of which goes down.

    Gains are sums of differences of terms: those of the sums would be lost to rounding in float32.
    """

    def step(carry: tuple[jax.Array, jax.Array], _: None):
        theta, damping = carry
        gradient, information = derivatives(terms, data, theta, bounds.free)
        scale = jnp.maximum(jnp.abs(jnp.diagonal(information)), 1e-3)
        direction = linalg.solve_positive(
            information + damping * jnp.diag(scale), gradient[:, None]
        )[:, 0]
        candidate = theta + jnp.clip(direction, -LONGEST, LONGEST)
        candidate = jnp.where(bounds.free, jnp.clip(candidate, bounds.low, bounds.high), theta)
        gain = jnp.sum(terms(candidate, data) - terms(theta, data))
        is_better = gain > 0  # false for NaN
        damping = jnp.clip(jnp.where(is_better, damping / 5, damping * 8), 1e-6, 1e8)
        return (jnp.where(is_better, candidate, theta), damping), None

    start = jnp.where(bounds.free, jnp.clip(start, bounds.low, bounds.high), start)
    (theta, _), _ = jax.lax.scan(step, (start, jnp.float32(1e-2)), length=iterations)
    return theta


def derivatives(
    terms: Terms, data: Any, theta: jax.Array, free: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Gradient `[P]` and negative Hessian `[P, P]` in the free parameters.

    The others have a gradient of 0 and rows of the identity.
    """
    log_likelihood = lambda x: jnp.sum(terms(x, data))
    gradient = jnp.where(free, jax.grad(log_likelihood)(theta), 0.0)
    hessian = jax.hessian(log_likelihood)(theta)
    both = free[:, None] & free[None]
    return gradient, jnp.where(both, -hessian, jnp.diag(jnp.where(free, 0.0, 1.0)))


def profiles(
    terms: Terms, data: Any, theta: jax.Array, information: jax.Array, bounds: Bounds
) -> tuple[Profile, jax.Array, jax.Array]:
    """`(profile, low, high)` of every parameter: leaves `[P, ...]`, `[P]`, `[P]`."""
    size = theta.size
    steps = standard_errors(information)
    follow_side = lambda which, sign: follow(terms, data, theta, steps[which], which, sign, bounds)
    sides = jax.vmap(lambda which: jax.vmap(lambda sign: follow_side(which, sign))(SIGNS))
    value, drop, paths, ends = sides(jnp.arange(size))  # [P, 2, G], ..., [P, 2]
    middle = theta[:, None], jnp.zeros((size, 1)), jnp.broadcast_to(theta, (size, 1, size))
    joined = (
        jnp.concatenate([side[:, 0, ::-1], centre, side[:, 1]], axis=1)
        for side, centre in zip((value, drop, paths), middle, strict=True)
    )
    low, high = (jnp.where(bounds.free, ends[:, i], theta) for i in (0, 1))
    return Profile(*joined), low, high

def standard_errors(information: jax.Array) -> jax.Array:
    """First steps `[P]` of profiles: standard errors where there are any, within 1e-3 and 2."""
    size = len(information)
    covariance = linalg.solve_positive(information, jnp.eye(size, dtype=information.dtype))
    variance = jnp.diagonal(covariance)
    has_one = jnp.isfinite(variance) & (variance > 0)
    alone = 1 / jnp.maximum(jnp.diagonal(information), 1e-6)  # with the others fixed
    return jnp.clip(jnp.sqrt(jnp.where(has_one, variance, alone)), 1e-3, 2.0)


def follow(
    terms: Terms,
    data: Any,
    theta: jax.Array,
    step: jax.Array,
    which: jax.Array,
    sign: jax.Array,
    bounds: Bounds,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """One side of a profile: values `[G]`, drops `[G]`, parameters `[G, P]` and the interval's end.

    The end is infinite if the log-likelihood has not dropped by `DROP` at the bound.
    """
    is_own = jnp.arange(theta.size) == which
    others = bounds._replace(free=bounds.free & ~is_own)
    reference = terms(theta, data)

    def evaluate(start: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        best = maximise(terms, data, jnp.where(is_own, value, start), others, PATH)
        drop = jnp.sum(reference - terms(best, data))
        return best, jnp.where(jnp.isfinite(drop), drop, jnp.inf)

    offsets = jnp.append(step * OUTWARD, jnp.zeros(REFINEMENTS))

    def move(bracket: Bracket, offset: jax.Array):
        """One point farther out, or in the middle of the bracket once there is one."""
        outward = jnp.clip(theta[which] + sign * offset, bounds.low[which], bounds.high[which])
        value = jnp.where(offset > 0, outward, (bracket.inner + bracket.outer) / 2)
        best, drop = evaluate(bracket.path, value)
        is_inside, is_closed = drop <= DROP, jnp.isfinite(bracket.outer)
        moves_in = is_inside & ((offset == 0) | ~is_closed)
        moves_out = ~is_inside & ((offset == 0) | ~is_closed)
        inner = jnp.where(moves_in, value, bracket.inner)
        outer = jnp.where(moves_out, value, bracket.outer)
        # Beyond the end a profile goes on from where it is; halvings begin within.
        path = jnp.where((offset > 0) | is_inside, best, bracket.path)
        inside = jnp.where(moves_in, best, bracket.inside)
        path = jnp.where(offset == offsets[len(OUTWARD) - 1], inside, path)
        return Bracket(inner, outer, path, inside), (value, drop, best)

    start = Bracket(theta[which], sign * jnp.inf, theta, theta)
    bracket, (value, drop, path) = jax.lax.scan(move, start, offsets)
    count = len(OUTWARD)
    return value[:count], drop[:count], path[:count], bracket.outer


class Bracket(NamedTuple):
    """Where an interval ends: between the farthest value inside and the nearest one outside."""

    inner: jax.Array
    outer: jax.Array  # infinite as long as there is none
    path: jax.Array  # [P] where the search at the next value starts
    inside: jax.Array  # [P] the maximum at `inner`
